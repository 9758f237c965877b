# Few words: demo, test, coverage, bench, study-NAME, docs, site, dist, format, clean.  Each creates what it needs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check

.PHONY: bench-solvers demo test test-slow test-mlflow test-nvflare coverage lint bench docs site dist format clean

# One environment; a stamp remembers which extra is in it.
$(VENV)/.stamp-%: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e ".[$*]"
	touch $@

demo: $(VENV)/.stamp-exchange
	$(BIN)/anymix demo

lint: $(VENV)/.stamp-test
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
test: lint
	$(PYTEST)

# Lines that no test runs, on the screen and in coverage.json.
coverage: $(VENV)/.stamp-test
	$(PYTEST) --cov=anymix --cov-report=term:skip-covered --cov-report=json:coverage.json

test-slow: $(VENV)/.stamp-test
	$(BIN)/python -m pytest -m slow

# Folders for MLflow, opened by MLflow: it brings much along, so it has an environment of its own.
test-mlflow:
	test -x build/mlflow/bin/python || $(PYTHON) -m venv build/mlflow
	build/mlflow/bin/pip install -q --disable-pip-version-check -e ".[exchange]" hypothesis \
		mlflow-skinny pandas pytest pyyaml
	build/mlflow/bin/python -m pytest -m slow tests/models/test_mlflow.py

# Sites over NVFlare, as real processes on loopback; it needs another protobuf than Flower.
test-nvflare:
	test -x build/nvflare/bin/python || $(PYTHON) -m venv build/nvflare
	build/nvflare/bin/pip install -q --disable-pip-version-check -e ".[nvflare]" hypothesis pytest pyyaml
	build/nvflare/bin/python -m pytest -m slow tests/engines/test_nvflare_processes.py

bench: $(VENV)/.stamp-bench
	$(BIN)/python -m benchmarks

# Regret and robust beside one start of SLSQP, at all sizes and losses.
bench-solvers: $(VENV)/.stamp-bench
	$(BIN)/python -m benchmarks.descents
	$(BIN)/python -m benchmarks.solvers

docs: $(VENV)/.stamp-test
	$(BIN)/python tools/docs.py
	$(BIN)/python tools/cli_docs.py
	$(BIN)/python tools/results.py

# The pages as a site, in build/site; a warning or a link that leads nowhere stops it.  The variable
# keeps the theme from advertising its successor.
site: export NO_MKDOCS_2_WARNING = 1
site: $(VENV)/.stamp-site
	$(BIN)/mkdocs build --strict --site-dir build/site
	$(BIN)/python tools/site_links.py build/site

# What is released, in dist/: built from a clean tree, checked, and tried in an empty environment.
dist: $(VENV)/.stamp-dist
	rm -rf dist build/trial
	$(BIN)/python -m build --outdir dist .
	$(BIN)/twine check --strict dist/*
	$(PYTHON) -m venv build/trial
	build/trial/bin/pip install -q --disable-pip-version-check "$$(echo dist/*.whl)[exchange]"
	cd build/trial && bin/python -I ../../tools/smoke.py

# The paper's experiments, e.g. `make study-office DATA=folder SEEDS=10`; records go to results/.
DATA ?= ../shared/data
SEEDS ?=
study-%: $(VENV)/.stamp-test
	$(BIN)/python -m experiments $* --data $(DATA) $(if $(SEEDS),--seeds $(SEEDS)) --out results/$*.jsonl

format: $(VENV)/.stamp-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist demo-output examples-output .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage coverage.json
