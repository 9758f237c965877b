# `make` or `make help` lists the targets; each creates what it needs.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check

.PHONY: help bench-solvers demo test test-slow test-lowest test-mlflow test-trees test-nvflare coverage lint bench docs site dist format clean

# One environment; a stamp remembers which extra is in it.
$(VENV)/.stamp-%: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e ".[$*]"
	touch $@

help:  ## list the targets
	@sed -n 's/^\([a-z%-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

demo: $(VENV)/.stamp-exchange  ## run the demo: three sources to one model, from the command line
	$(BIN)/anymix demo

lint: $(VENV)/.stamp-test  ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Two test processes on two cores: threads of BLAS and OpenMP would only wait for each other (boosted
# trees then take several times as much processor time).  Each process begins with its half, so that
# what a folder's tests share is made once, and takes from the other at the end.
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"
test coverage: export OPENBLAS_NUM_THREADS = 1
test coverage: export OMP_NUM_THREADS = 1
# Tests start processes: each would compile the library anew without its byte code.
test coverage: export PYTHONDONTWRITEBYTECODE =
test: lint  ## run all tests but the slow ones, after lint
	$(PYTEST)

# Lines that no test runs, on the screen and in coverage.json.
coverage: $(VENV)/.stamp-test  ## run them and list lines that no test runs
	$(PYTEST) --cov=anymix --cov-report=term:skip-covered --cov-report=json:coverage.json

test-slow: $(VENV)/.stamp-test  ## run the slow tests
	$(BIN)/python -m pytest -m slow

# The attacks, with the lowest versions that pyproject.toml allows.
test-lowest:  ## run the attacks with the lowest versions that are allowed
	test -x build/lowest/bin/python || $(PYTHON) -m venv build/lowest
	build/lowest/bin/pip install -q --disable-pip-version-check -c constraints-lowest.txt \
		-e ".[exchange]" hypothesis pandas pytest
	build/lowest/bin/python -m pytest tests/hostile tests/sandbox tests/exchange/test_hostile.py

# Folders for MLflow, opened by MLflow: it brings much along, so it has an environment of its own.
test-mlflow: ## open exported folders with MLflow, in an environment of its own
	test -x build/mlflow/bin/python || $(PYTHON) -m venv build/mlflow
	build/mlflow/bin/pip install -q --disable-pip-version-check -e ".[exchange]" hypothesis \
		mlflow-skinny pandas pytest pyyaml
	build/mlflow/bin/python -m pytest -m slow tests/models/test_mlflow.py

# Sites over NVFlare, as real processes on loopback; it needs another protobuf than Flower.
test-nvflare:  ## test the jobs of NVFlare
	test -x build/nvflare/bin/python || $(PYTHON) -m venv build/nvflare
	build/nvflare/bin/pip install -q --disable-pip-version-check -e ".[nvflare]" hypothesis pytest pyyaml
	build/nvflare/bin/python -m pytest -m slow tests/engines/test_nvflare_processes.py

# Their wheels are large, so that `make test` runs these tests only where they are installed.
test-trees: $(VENV)/.stamp-test  ## test XGBoost, LightGBM and CatBoost (wheels of 110 MB)
	$(PIP) xgboost-cpu lightgbm catboost
	$(BIN)/python -m pytest tests/exchange/test_foreign_trees.py

bench: $(VENV)/.stamp-bench  ## run the benchmarks and their rivals
	$(BIN)/python -m benchmarks

# Regret and robust beside one start of SLSQP, at all sizes and losses.
bench-solvers: $(VENV)/.stamp-bench  ## compare the solvers with SLSQP
	$(BIN)/python -m benchmarks.descents
	$(BIN)/python -m benchmarks.solvers

docs: $(VENV)/.stamp-test  ## regenerate the API page, the help texts and the tables of results
	$(BIN)/python tools/docs.py
	$(BIN)/python tools/cli_docs.py
	$(BIN)/python tools/results.py

# The pages as a site, in build/site; a warning or a link that leads nowhere stops it.  The variable
# keeps the theme from advertising its successor.
site: export NO_MKDOCS_2_WARNING = 1
site: $(VENV)/.stamp-site  ## build the documentation in build/site
	$(BIN)/mkdocs build --strict --site-dir build/site
	$(BIN)/python tools/site_links.py build/site

# What is released, in dist/: built from a clean tree, checked, and tried in an empty environment.
dist: $(VENV)/.stamp-dist  ## build a release and try it
	rm -rf dist build/trial
	$(BIN)/python -m build --outdir dist .
	$(BIN)/twine check --strict dist/*
	$(PYTHON) -m venv build/trial
	build/trial/bin/pip install -q --disable-pip-version-check "$$(echo dist/*.whl)[exchange]"
	cd build/trial && bin/python -I ../../tools/smoke.py

# The paper's experiments, e.g. `make study-office DATA=folder SEEDS=10`; records go to results/.
DATA ?= ../shared/data
SEEDS ?=
study-%: $(VENV)/.stamp-test  ## run a study, such as make study-office
	$(BIN)/python -m experiments $* --data $(DATA) $(if $(SEEDS),--seeds $(SEEDS)) --out results/$*.jsonl

format: $(VENV)/.stamp-test  ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove all that make has made
	rm -rf $(VENV) build dist demo-output examples-output .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage coverage.json
