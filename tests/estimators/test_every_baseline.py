"""What must hold for every exported estimator, and that a wrong one would not pass."""

import inspect
from typing import ClassVar

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss, mean_squared_error

from anymix import compare, estimators, evaluate
from anymix.estimators import Joint, SingleSource, Uniform
from tests.estimators.baseline_cases import (
    BY_HAND,
    ROWS,
    BaselineCase,
    answer,
    cases,
    every_baseline,
    every_classifier,
    exported,
    failures,
)
from tests.estimators.several_sources import classification

KINDS = pytest.mark.parametrize("kind", exported())


@pytest.mark.filterwarnings("ignore")
@every_baseline
def test_check_estimator(case):
    assert failures(case.make()) == []


@every_baseline
def test_domains_go_by_name(case):
    """Names in another order, and numbers for names, are the same domains."""
    X, y, domain = ROWS[case.task]()
    names = np.unique(domain)
    expected = answer(case.fit(), X)
    for other in (names[::-1], np.arange(names.size)[::-1]):
        renamed = other[np.searchsorted(names, domain)]
        model = case.make(names=tuple(map(str, other))).fit(X, y, sample_domain=renamed)
        # Folds are drawn domain by domain, so what is learned from them moves a little.
        np.testing.assert_allclose(answer(model, X), expected, atol=0.1)
        assert np.abs(answer(model, X) - expected).mean() < 0.02
        if hasattr(model, "source_names_"):
            assert list(model.source_names_) == sorted(other)


@every_classifier
def test_labels_of_every_domain_are_known(case):
    """Domains need not have the same labels: probabilities are of all of them, in one order."""
    X, y, domain = classification()
    y = np.where((domain == "a") & (y == "near"), "very near", y)
    model = case.make(names=("a", "b", "c")).fit(X, y, sample_domain=domain)
    proba = model.predict_proba(X)
    assert list(model.classes_) == ["far", "near", "very near"]
    assert proba.shape == (len(X), 3)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert proba.min() >= 0.0
    np.testing.assert_array_equal(model.predict(X), model.classes_[proba.argmax(axis=1)])


@every_baseline
def test_weights_sum_to_one_and_give_the_prediction(case):
    """h(x) = Σ_k w_k(x) h_k(x), which lies between the sources' own answers."""
    X, _, domain = ROWS[case.task]()
    model = case.fit()
    if not hasattr(model, "source_weights"):
        assert model.privileged, "who has no sources has seen all rows"
        return
    weights = model.source_weights(X)
    assert weights.shape == (len(X), np.unique(domain).size)
    assert weights.min() >= 0.0
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    classes = getattr(model, "classes_", None)
    h = evaluate(model.sources_, X, classes, model.router_).predictions
    said = answer(model, X)
    np.testing.assert_allclose(said, np.einsum("ik,ki...->i...", weights, h), atol=1e-5)
    assert np.all(h.min(axis=0) - 1e-5 <= said)
    assert np.all(said <= h.max(axis=0) + 1e-5)


class Watched(Ridge):
    """Remembers which rows it was shown."""

    seen: ClassVar[list[np.ndarray]] = []

    def fit(self, X, y, sample_weight=None):
        Watched.seen.append(np.asarray(X)[:, 0])
        return super().fit(X, y, sample_weight)


class WatchedClassifier(LogisticRegression):
    """Likewise."""

    def fit(self, X, y, sample_weight=None):
        Watched.seen.append(np.asarray(X)[:, 0])
        return super().fit(X, y, sample_weight)


@every_baseline
def test_privileged_is_who_sees_what_others_may_not(case):
    """Rows of two domains in one model, rows of the target, or the target's mixture."""
    X, _, domain = ROWS[case.task]()
    where = dict(zip(X[:, 0], domain, strict=True))
    Watched.seen = []
    model = case.fit(Watched() if case.task == "regression" else WatchedClassifier())
    assert Watched.seen, "the estimator inside was never trained"
    together = any(len({where[x] for x in rows}) > 1 for rows in Watched.seen)
    informed = hasattr(model, "for_mixture") or "mixture" in model.get_params()
    target = "X_target" in inspect.signature(model.fit).parameters
    assert case.kind.privileged is (together or informed or target)


@every_baseline
def test_compare_gives_the_loss_at_home(case):
    X, y, domain = ROWS[case.task](60, seed=7)
    model = case.fit()
    table = compare({"it": model}, X, y, domain)
    assert table.privileged == (case.kind.privileged,)
    for k, name in enumerate(table.sources):
        home = domain == name
        here = model.for_mixture(np.eye(len(table.sources))[k]) if case.kind in INFORMED else model
        said = answer(here, X[home])
        if case.task == "regression":
            by_hand = mean_squared_error(y[home], said)
        else:
            by_hand = log_loss(y[home], np.maximum(said, 1e-6), labels=here.classes_)
        assert table.loss[0, k] == pytest.approx(by_hand, abs=1e-5)


INFORMED = [kind for kind in exported() if hasattr(kind, "for_mixture")]


@KINDS
def test_a_value_by_hand(kind):
    assert kind in BY_HAND, f"give {kind.__name__} a value in baseline_cases.BY_HAND"
    found, expected = BY_HAND[kind]()
    np.testing.assert_allclose(found, expected, atol=1e-5)


class TwiceTooMuch(Uniform):
    """Weights that sum to 2."""

    def source_weights(self, X):
        return 2.0 * super().source_weights(X)


class Impostor(SingleSource):
    """Says that it asks one source, and asks another."""

    def predict(self, X):
        return self.sources_[-1].predict(X)


class Beyond(Uniform):
    """Outside of what any source says."""

    def predict(self, X):
        return super().predict(X) + 10.0


class Peeping(Joint):
    """All rows in one place, and does not say so."""

    privileged = False


class Discreet(Uniform):
    """Claims a privilege that it does not use."""

    privileged = True


WRONG = {
    TwiceTooMuch: test_weights_sum_to_one_and_give_the_prediction,
    Impostor: test_weights_sum_to_one_and_give_the_prediction,
    Beyond: test_weights_sum_to_one_and_give_the_prediction,
    Peeping: test_privileged_is_who_sees_what_others_may_not,
    Discreet: test_privileged_is_who_sees_what_others_may_not,
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_baseline_fails_once_it_is_exported(kind, monkeypatch):
    monkeypatch.setattr(estimators, kind.__name__, kind, raising=False)
    monkeypatch.setattr(estimators, "__all__", [*estimators.__all__, kind.__name__])
    assert exported()[-1] is kind
    case = next(case for case in cases(exported()) if case.kind is kind)
    assert case == BaselineCase(kind, "regression")
    with pytest.raises(AssertionError):
        WRONG[kind](case)
    with pytest.raises(AssertionError, match=f"give {kind.__name__} a value"):
        test_a_value_by_hand(kind)
