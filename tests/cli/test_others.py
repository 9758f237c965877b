"""source pack --others: the second round is packed as one graph if it is better at home."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.tree import DecisionTreeRegressor

from anymix import Source
from anymix.exchange import OwnLoss, read_source, second_round_graph
from anymix.exchange.conversion import graphs_of
from anymix.exchange.predictor import OnnxPredictor
from anymix.sources import SecondRound, pool_of_others
from tests.cli.organisations import write_csv


def _rows(n, seed, twist=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)).round(4)
    return X, np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + twist * X[:, 1] + 0.1 * rng.normal(size=n)


def _pack(run, folder, name, rows, *options):
    table = write_csv(folder / f"{name}.csv", *rows)
    words = ["--name", name, "--rows", table, "--task", "regression"]
    return run("source", "pack", folder / name, *words, *options)


def test_one_graph_is_the_sum_of_its_parts():
    X, y = _rows(200, 0)
    other = DecisionTreeRegressor(max_depth=4).fit(*_rows(500, 1))
    said = other.predict(X)[None]
    weights, offset = pool_of_others(said, y)
    rest = Ridge().fit(X, y - weights @ said - offset)
    part = graphs_of(Source("o", other), 2, False, "float32")
    part[0].in_process = True
    content = second_round_graph(part, weights, offset, rest, X)
    model = SimpleNamespace(predict=lambda X: part[0](X).ravel())
    due = SecondRound([model], weights, offset, rest).predict(X)
    found = OnnxPredictor(content, "float64", in_process=True)(X)
    np.testing.assert_allclose(found.ravel(), due, atol=1e-9)


def test_a_site_of_few_rows_learns_from_one_of_many(run, tmp_path):
    assert _pack(run, tmp_path, "many", _rows(3000, 1), "--estimator", "boosted").status == 0
    few = _rows(60, 2, twist=0.5)
    held = write_csv(tmp_path / "held.csv", *_rows(400, 3, twist=0.5))
    options = ["--held-out", held, "--json"]
    alone = _pack(run, tmp_path, "alone", few, *options)
    own = OwnLoss(**json.loads(alone.out)["own_loss"])
    both = ["--others", tmp_path / "many", "--held-out", held]
    said = _pack(run, tmp_path, "few", few, *both)
    assert said.status == 0, said.err
    assert "the second round was packed" in said.out
    X, y = _rows(400, 3, twist=0.5)
    loss = np.mean((read_source(tmp_path / "few").predict(X) - y) ** 2)
    assert loss < 0.5 * own.value
    manifest = json.loads((tmp_path / "few" / "manifest.json").read_text())
    assert manifest["own_loss"]["value"] == pytest.approx(loss, rel=1e-6)
    # a plain folder: it needs the other one no more
    assert run("source", "check", tmp_path / "few", tmp_path / "many").status == 0


def test_an_other_of_noise_does_no_harm(run, tmp_path):
    X, _ = _rows(300, 1)
    noise = 100 * np.random.default_rng(5).normal(size=300)
    assert _pack(run, tmp_path, "noise", (X, noise), "--estimator", "boosted").status == 0
    rows = _rows(300, 2)
    alone = _pack(run, tmp_path, "alone", rows)
    assert alone.status == 0
    said = _pack(run, tmp_path, "here", rows, "--others", tmp_path / "noise")
    assert said.status == 0, said.err
    X, y = _rows(400, 3)
    mine, own = (
        np.mean((read_source(tmp_path / name).predict(X) - y) ** 2) for name in ("here", "alone")
    )
    assert mine < 1.05 * own


def test_others_that_do_not_fit_are_refused(run, tmp_path, world, numbers):
    rows = _rows(80, 0)
    labels = _pack(run, tmp_path, "x", rows, "--others", world.sources[0])
    assert labels.status == 3
    assert "is for classification, but --others is only for regression" in labels.err
    table = write_csv(tmp_path / "t.csv", *rows, names=("a", "c"))
    words = ["--name", "x", "--rows", table, "--task", "regression"]
    other = run("source", "pack", tmp_path / "x", *words, "--others", numbers.sources[0])
    assert other.status == 3
    assert "has other columns or categories than the table" in other.err
    words[-1] = "classification"
    usage = run("source", "pack", tmp_path / "x", *words, "--others", numbers.sources[0])
    assert usage.status == 2
    assert not (tmp_path / "x").exists()


def test_the_judgement_is_cross_fitted():
    """A learner that remembers its rows is not better for it."""
    from anymix.cli.packing import _cross_fitted

    X, y = _rows(200, 0)
    learner, folds = DecisionTreeRegressor(random_state=0), KFold(5, shuffle=True, random_state=7)
    own, second = _cross_fitted(learner, X, y, np.stack([y, -y]), 7)
    due = cross_val_predict(learner, X, y, cv=folds)
    assert own == pytest.approx(np.mean((due - y) ** 2))
    assert own > 0.01
    # others that know the answer leave next to nothing
    assert second < 1e-6
