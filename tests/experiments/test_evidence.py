"""The study of the evidence: what is fitted, what is recorded, and what is made of it."""

from collections import Counter
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone

from anymix.densities import BigramModel
from experiments import beyond, evidence, evidence_methods
from experiments.beyond import ReviewRegressor
from experiments.evidence import Judged, judge, records, split
from experiments.evidence_methods import PRIVILEGED, PROTOCOLS, learner, methods, row_losses
from experiments.made_up import made_up_evidence
from experiments.reviews import fit_svr, predictions, read_corpus
from tests.experiments.study_cases import rehearsal


@pytest.mark.xdist_group("evidence")
def test_the_study_on_a_made_up_table():
    results = rehearsal("evidence").alone
    value = {(r.table, r.method, r.target): r.value for r in results}
    assert {r.method for r in results} == set(PROTOCOLS)
    assert {r.method for r in results if r.privileged} == set(PRIVILEGED)
    for method in PROTOCOLS:
        parts = [value["Loss in a domain", method, f"heart: {k}"] for k in ("cleveland", "va")]
        home = [value["Loss in a domain", "own", f"heart: {k}"] for k in ("cleveland", "va")]
        gaps = np.subtract(parts, home)
        assert value["Mean loss", method, "heart"] == pytest.approx(np.mean(parts))
        assert value["Worst domain", method, "heart"] == pytest.approx(max(parts))
        assert value["Mean regret", method, "heart"] == pytest.approx(gaps.mean())
        assert value["Worst regret", method, "heart"] == pytest.approx(gaps.max())


@pytest.mark.parametrize("kind", [1, 2], ids=["texts", "vectors"])
def test_every_method_takes_texts_and_vectors(kind):
    rows = made_up_evidence(30)[kind]
    train, test = (rows.take(part) for part in split(rows, 0))
    told = []
    found = judge(train, test, 0, lambda *step: told.append(step))
    assert set(found) == set(PROTOCOLS)
    assert [n for n, _ in told] == list(range(1, len(found)))
    for name, (losses, right) in found.items():
        assert losses.shape == test.y.shape, name
        assert (losses >= 0).all()
        assert right is None or 0 <= right <= 100


def test_own_is_each_domains_model_at_home():
    for rows in made_up_evidence(30):
        train, test = (rows.take(part) for part in split(rows, 0))
        uniform = methods(train, 0)["uniform"].fit(train.X, train.y, sample_domain=train.domain)
        losses = evidence_methods.own_losses(uniform, test)
        for name in rows.domains:
            home, here = (part.take(np.flatnonzero(part.domain == name)) for part in (train, test))
            model = clone(learner(train)).fit(home.X, home.y)
            at_home = losses[test.domain == name]
            np.testing.assert_allclose(at_home, row_losses(model, here), rtol=1e-5)


def test_the_learner_is_the_one_that_anymix_takes_by_default():
    for rows in made_up_evidence(30):
        found = methods(rows, 0)
        models = [
            found[name].fit(rows.X, rows.y, sample_domain=rows.domain)
            for name in ("uniform", "DW, density alone")
        ]
        given, chosen = ([s.predict(rows.X) for s in m.sources_] for m in models)
        np.testing.assert_allclose(given, chosen, err_msg=rows.name)


class Certain:
    """Says the label 1 without a doubt."""

    classes_ = np.array([0, 1])

    def predict_proba(self, X):
        return np.tile([0.0, 1.0], (len(X), 1))


def test_a_label_that_was_ruled_out_costs_what_the_floor_says():
    rows = made_up_evidence(10)[0]
    losses = row_losses(Certain(), rows)
    np.testing.assert_allclose(losses, np.where(rows.y == 1, 0.0, -np.log(1e-6)), atol=2e-6)


def test_standard_errors_are_those_of_paired_differences(monkeypatch):
    rng = np.random.default_rng(0)
    test = made_up_evidence(20)[2]
    judged = {name: Judged(rng.random(40)) for name in ("own", "joint", "best pooled", "DW")}
    found = {(r.table, r.method, r.target): r.value for r in records(test, judged, 0)}
    gap = judged["DW"].losses - judged["joint"].losses
    parts = [gap[test.domain == name] for name in test.domains]
    # The mean over domains is a sum of row differences with weights 1/(p n_k).
    variance = sum(np.var(part, ddof=1) * len(part) / (2 * len(part)) ** 2 for part in parts)
    value = found["Standard error against joint", "DW", "office"]
    assert value == pytest.approx(np.sqrt(variance))
    assert found["Standard error against own", "own", "office"] == 0
    # By drawing rows again.
    drawn = [np.mean([rng.choice(part, len(part)).mean() for part in parts]) for _ in range(4000)]
    assert np.std(drawn) == pytest.approx(value, rel=0.1)


def test_no_cell_is_filled_twice_and_all_domains_have_one():
    rows = made_up_evidence(20)[0]
    judged = {name: Judged(np.ones(40), 50.0) for name in ("own", "joint", "best pooled")}
    cells = Counter((r.table, r.method, r.target) for r in records(rows, judged, 0))
    assert set(cells.values()) == {1}
    assert cells["Loss in a domain", "own", "heart: va"] == 1


class Kept:
    """In the place of the estimators: it keeps what it is made with."""

    def __init__(self, **settings):
        self.settings = settings


def test_each_part_alone_and_the_default_are_what_their_names_say(monkeypatch):
    for name in ("DistributionWeightedClassifier", "DistributionWeightedRegressor"):
        monkeypatch.setattr(evidence_methods, name, Kept)
    found = methods(made_up_evidence(20)[0], 3)
    made = {name: model.settings for name, model in found.items() if hasattr(model, "settings")}
    assert made["anymix"] == {"random_state": 3}
    plain = {"random_state", "estimator", "generalist"}
    assert set(made["DW"]) == plain | {"density", "consult"}
    assert made["DW"]["consult"] is made["DW, density alone"]["consult"] is False
    assert made["DW"]["generalist"] is None
    assert set(made["DW, density alone"]) == plain | {"consult"}
    assert made["DW, consulting alone"]["density"] is made["DW"]["density"]
    assert "consult" not in made["DW, consulting alone"]
    assert made["anymix, no rows pooled"] == {"random_state": 3, "share_rows": False}


def test_some_methods_run_alone_with_those_that_they_are_compared_with(monkeypatch):
    rows = made_up_evidence(20)[2]
    monkeypatch.setattr(evidence, "LOADERS", {"office": lambda data: rows})
    alone = list(evidence.run_part(None, [0], lambda *step: None, ["stacking"]))
    assert {r.method for r in alone} == {"stacking"}
    tables = {r.table for r in alone}
    assert {f"Standard error against {other}" for other in evidence.REFERENCES} <= tables


def test_all_sets_are_read_before_the_first_is_run(monkeypatch):
    read = []

    def loader(rows, data):
        read.append((rows.name, data))
        return rows

    loaders = {rows.name: partial(loader, rows) for rows in made_up_evidence(10)}
    monkeypatch.setattr(evidence, "LOADERS", loaders)
    monkeypatch.setattr(evidence, "study", lambda sets, seeds, progress: [len(sets), *seeds])
    assert list(evidence.run("folder", [7], None)) == [3, 7]
    assert read == [(name, "folder") for name in loaders]


def test_documents_are_told_by_the_regressor_of_the_study(reviews):
    view = read_corpus(reviews).view()
    rows, asked = np.arange(0, 60), np.arange(60, 90)
    model = ReviewRegressor(view).fit(view.documents(rows), view.corpus.ratings[rows])
    expected = predictions(view, [fit_svr(view, rows)], asked)[0]
    np.testing.assert_allclose(model.predict(view.documents(asked)), expected, atol=1e-8)
    assert clone(model).view is view
    doubled = clone(model).fit(view.documents(rows), np.zeros(60))
    assert np.abs(doubled.predict(view.documents(asked))).max() < 0.2


def test_the_row_anymix_is_fitted_to_training_documents_alone(monkeypatch, reviews):
    view = read_corpus(reviews).view()
    train = [np.flatnonzero(view.corpus.domain == k)[:40] for k in range(4)]
    asked = np.flatnonzero(np.arange(240) % 60 >= 40)
    seen = []

    class Spy:
        def __init__(self, estimator, random_state):
            self.estimator = estimator

        def fit(self, X, y, sample_domain):
            seen.append((X, sample_domain))
            self.estimator.fit(X, y)
            return self

        def predict(self, X):
            return self.estimator.predict(X)

    monkeypatch.setattr(beyond, "DistributionWeightedRegressor", Spy)
    found = beyond.review_ratings(view, train, asked)
    assert found.shape == (80,)
    ((documents, domain),) = seen
    assert documents == view.documents(np.concatenate(train))
    assert np.bincount(domain).tolist() == [40] * 4


def test_bigrams_know_the_words_that_all_domains_share():
    rows = made_up_evidence(30)[1]
    density = evidence_methods.paper_density(rows, 0)
    model = density.fit(rows.X)[-1]
    assert isinstance(model, BigramModel)
    assert "good" in model.vocabulary
