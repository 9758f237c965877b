"""source pack --others: the second round is packed as one graph if it is better at home."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from anymix import Source
from anymix.cli.second_round import fit_labels, mean_logarithm
from anymix.densities import GaussianKDE
from anymix.exceptions import InputError
from anymix.exchange import (
    HomeTable,
    OwnLoss,
    evaluate_site,
    home_folds,
    pack_source,
    read_home,
    read_source,
    read_sources,
    second_round_graph,
    second_round_of_labels,
)
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


def _packed(folder, name, model, X, **known):
    pack_source(Source(name, model, GaussianKDE(0.5).fit(X), **known), folder / name)
    return read_sources([folder / name], in_process=True)[0]


def test_one_graph_is_the_sum_of_its_parts(tmp_path):
    X, y = _rows(200, 0)
    other = DecisionTreeRegressor(max_depth=4, min_samples_leaf=5).fit(*_rows(500, 1))
    said = other.predict(X)[None]
    weights, offset = pool_of_others(said, y)
    rest = Ridge().fit(X, y - weights @ said - offset)
    part = _packed(tmp_path, "o", other, X)
    content = second_round_graph([part], weights, offset, rest, X)
    due = SecondRound([part.source], weights, offset, rest).predict(X)
    found = OnnxPredictor(content, "float64", in_process=True)(X)
    np.testing.assert_allclose(found.ravel(), due, atol=1e-9)


@pytest.mark.parametrize("labels", [2, 3])
def test_one_graph_of_labels(tmp_path, labels):
    """A regression on the columns and the logarithms of the others, in one graph."""
    X, y = _rows(300, 0)
    y = np.digitize(y, [0.5, 1.5][: labels - 1])
    other = DecisionTreeClassifier(max_depth=3, min_samples_leaf=9).fit(X[:150], y[:150])
    part = _packed(tmp_path, "o", other, X)
    logs = mean_logarithm([part.source], X, np.unique(y))
    model = fit_labels(LogisticRegression(), [part.source], (X, y, logs), 0.5)
    graph, _ = second_round_of_labels([part], model.mixing, model.rest, X)
    due = LogisticRegression(C=0.5).fit(np.hstack([X, logs]), y)
    found = OnnxPredictor(graph, "float64", in_process=True)(X)
    np.testing.assert_allclose(found, due.predict_proba(np.hstack([X, logs])), atol=1e-5)
    np.testing.assert_allclose(found, model.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("labels", [False, True])
def test_others_are_evaluated_as_if_they_had_consulted_fold_models(tmp_path, labels):
    """At home, what another site has learned from the own model has not seen the rows."""
    X, y = _rows(120, 0)
    y = (y > 1).astype(int) if labels else y
    kind = DecisionTreeClassifier if labels else DecisionTreeRegressor
    learner, fold = kind(min_samples_leaf=5, random_state=0), home_folds(X, y, labels)
    first = _packed(tmp_path, "north", learner.fit(X, y), X)
    there = _rows(150, 1)
    if labels:
        logs = mean_logarithm([first.source], X, np.array([0, 1]))
        second = fit_labels(LogisticRegression(), [first.source], (X, 1 - y, logs), 1.0)
        content, _ = second_round_of_labels([first], second.mixing, second.rest, X)
    else:
        content = second_round_graph([first], np.array([0.7]), 0.2, Ridge().fit(*there), X)
    known = {"classes": [0, 1]} if labels else {}
    other = _packed(tmp_path, "south", content, X, **known)

    def train(rest):
        return kind(min_samples_leaf=5, random_state=0).fit(X[rest], y[rest]), GaussianKDE(0.5).fit(
            X
        )

    home = HomeTable.of(train, X, y, fold, [0, 1] if labels else None)
    home.packed(first, X).write(tmp_path / "home")
    home = read_home(tmp_path / "home")
    found = evaluate_site([first, other], "north", X, y, home=home).whole.predictions[1]
    if labels:
        stub = SimpleNamespace(predict_proba=lambda X, labels: np.maximum(home.predictions, 1e-6))
        due = replace_others(second, stub).predict_proba(X)
    else:
        due = 0.7 * home.predictions + 0.2 + Ridge().fit(*there).predict(X)
    np.testing.assert_allclose(found, due, atol=1e-5)
    strange = replace(home, answers=None)
    with pytest.raises(InputError, match="pack the second round with the --home file"):
        evaluate_site([first, other], "north", X, y, home=strange)


def replace_others(model, other):
    model.others = (other,)
    return model


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
    assert "is for classification; give folders of sources for regression" in labels.err
    table = write_csv(tmp_path / "t.csv", *rows, names=("a", "c"))
    words = ["--name", "x", "--rows", table, "--task", "regression"]
    other = run("source", "pack", tmp_path / "x", *words, "--others", numbers.sources[0])
    assert other.status == 3
    assert "has other columns or categories than the table" in other.err
    words[-1] = "classification"
    usage = run("source", "pack", tmp_path / "x", *words, "--others", numbers.sources[0])
    assert usage.status == 3
    assert "for numbers choose --task regression" in usage.err
    assert not (tmp_path / "x").exists()


def test_the_judgement_is_cross_fitted():
    """A learner that remembers its rows is not better for it."""
    from anymix.cli.second_round import _cross_fitted

    X, y = _rows(200, 0)
    learner, folds = DecisionTreeRegressor(random_state=0), KFold(5, shuffle=True, random_state=7)
    own, second = _cross_fitted(learner, X, y, np.stack([y, -y]), 7)
    due = cross_val_predict(learner, X, y, cv=folds)
    assert own == pytest.approx(np.mean((due - y) ** 2))
    assert own > 0.01
    # others that know the answer leave next to nothing
    assert second < 1e-6


def test_labels_have_a_second_round_by_command(run, tmp_path):
    """From folders and home files to site files; a site of few rows gains."""
    for name, n, seed in (("many", 600, 1), ("few", 60, 2)):
        X, y = _rows(n, seed)
        write_csv(tmp_path / f"{name}.csv", X, np.where(X.sum(axis=1) + y > 1.2, "a", "b"))
    own = {}
    for i in (0, 1):
        for name in ("many", "few"):
            other = "few" if name == "many" else "many"
            words = ["--name", name, "--rows", tmp_path / f"{name}.csv", "--estimator", "linear"]
            words += ["--task", "classification", "--home", tmp_path / f"{name}.home", "--force"]
            words += ["--others", tmp_path / f"{other}0"] if i else []
            said = run("source", "pack", tmp_path / f"{name}{i}", *words, "--json")
            assert said.status == 0, said.err
            own[name, i] = json.loads(said.out)["own_loss"]["value"]
    assert own["few", 1] < own["few", 0]
    assert read_home(tmp_path / "many.home").first is not None
    sources = [tmp_path / "many1", tmp_path / "few1"]
    for name in ("many", "few"):
        words = ["--rows", tmp_path / f"{name}.csv", "--home", tmp_path / f"{name}.home"]
        said = run("site", "evaluate", *sources, "--site", name, *words, "--out",
                   tmp_path / f"{name}.site")  # fmt: skip
        assert said.status == 0, said.err
    files = [tmp_path / f"{name}.site" for name in ("many", "few")]
    assert run("fit", *sources, "--from-sites", *files, "--out", tmp_path / "m").status == 0
