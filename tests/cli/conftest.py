"""Three organisations with sources, held-out and test tables, and a model fitted from them."""

from hashlib import sha256
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeClassifier

from anymix import Source
from anymix.cli import main
from anymix.densities import GaussianKDE, GaussianMixtureDensity
from anymix.exchange import pack_source, read
from tests.cli.organisations import NAMES, draw, label, write_csv


def _build(folder, task):
    """Pack a source for each name, write held-out and test tables, and fit a model."""
    rng, held, test = np.random.default_rng(0), [], []
    for name in NAMES:
        X, y = draw(name, 200, rng)
        if task == "classification":
            model = DecisionTreeClassifier(max_depth=3) if name == "west" else LogisticRegression()
            model.fit(X, label(y))
        else:
            model = Ridge().fit(X, y)
        density = GaussianMixtureDensity(2) if name == "south" else GaussianKDE(0.5)
        source = Source(name, model, density.fit(X), feature_names=["a", "b"], n_rows=200)
        pack_source(source, folder / name)
        for part, tables in (("held", held), ("test", test)):
            X, y = draw(name, 100, rng)
            target = label(y) if task == "classification" else y
            tables.append(f"{name}={write_csv(folder / f'{name}_{part}.csv', X, target)}")
    sources = [str(folder / name) for name in NAMES]
    assert (
        main(["fit", *sources, "--held-out", *held, "--out", str(folder / "model"), "--quiet"]) == 0
    )
    return SimpleNamespace(
        folder=folder, sources=sources, held=held, test=test, model=str(folder / "model")
    )


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    return _build(tmp_path_factory.mktemp("world"), "classification")


@pytest.fixture(scope="session")
def numbers(tmp_path_factory):
    return _build(tmp_path_factory.mktemp("numbers"), "regression")


@pytest.fixture(scope="package", autouse=True)
def remembered_audits():
    """Try each ONNX file out once: the same bytes pass again, and what was refused is tried again.

    An audit is a process that loads onnx; nearly every command reads the same few sources.  That
    it happens at all is tested in tests/exchange.
    """
    passed: set[tuple[bytes, str]] = set()
    audit = read.audit_predictors

    def once(predictors):
        keys = [(sha256(content).digest(), repr(wanted)) for _, content, wanted in predictors]
        audit([p for p, key in zip(predictors, keys, strict=True) if key not in passed])
        passed.update(keys)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(read, "audit_predictors", once)
        yield


@pytest.fixture
def run(capsys):
    """Run a command and return its exit code and what it printed."""

    def call(*arguments):
        capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return SimpleNamespace(status=status, out=said.out, err=said.err)

    return call
