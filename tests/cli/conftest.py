"""Three organisations with sources, held-out and test tables, and a model fitted from them."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeClassifier

from anymix import Source
from anymix.cli import main
from anymix.densities import GaussianKDE, GaussianMixtureDensity
from anymix.exchange import pack_source
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
