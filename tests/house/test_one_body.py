"""h_z is computed in one place: whatever predicts, weighs, learns or compares goes through it."""

import numpy as np
import pytest

from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor, compare
from anymix.core import combination
from anymix.densities import GaussianKDE
from tests.estimators.several_sources import classification, regression
from tools.trace import Trace

PLACE = "core/combination.py"


def make(kind, **parameters):
    # A trace is slow, so the objective is the quickest.
    density = GaussianKDE(bandwidth=0.8)
    return kind(density=density, cv=2, objective="gamma", random_state=0, **parameters)


@pytest.fixture(scope="module", params=["marginal", "normalised", "regression"])
def fitted(request):
    """A fitted model, its rows, and what ran in the one place while it was fitted."""
    if request.param == "regression":
        model, rows = make(DistributionWeightedRegressor), regression()
    else:
        model, rows = make(DistributionWeightedClassifier, rule=request.param), classification()
    X, y, domain = rows
    with Trace() as trace:
        model.fit(X, y, sample_domain=domain)
    return model, rows, trace.names(PLACE)


def ran(call, *arguments):
    with Trace() as trace:
        call(*arguments)
    return trace.names(PLACE)


@pytest.mark.filterwarnings("ignore:the rows of")
def test_fit_predict_and_compare_go_through_it(fitted):
    model, (X, y, domain), while_fitting = fitted
    assert while_fitting
    # Of weights alone the parts' mean is taken before the one sum, of all else after it.
    linear = model.rule == "marginal" and not model.combination_.consults
    body = "mix" if linear else "Combination.predict"
    assert body in ran(model.predict, X)
    if hasattr(model, "predict_proba"):
        assert body in ran(model.predict_proba, X)
    assert "Combination.weights" in ran(model.source_weights, X)
    assert body in ran(compare, {"anymix": model}, X, y, domain)


def test_another_body_there_is_another_prediction_everywhere(fitted, monkeypatch):
    """Nothing else computes h_z: what that place says is what comes out."""
    model, (X, _, _), _ = fitted
    shape = (len(X), len(model.classes_)) if hasattr(model, "predict_proba") else (len(X),)
    said = np.random.default_rng(0).random(shape)
    monkeypatch.setattr(combination.CrossFittedCombination, "predict", lambda *_, **__: said)
    if hasattr(model, "predict_proba"):
        np.testing.assert_array_equal(model.predict_proba(X), said)
        np.testing.assert_array_equal(model.predict(X), model.classes_[said.argmax(axis=1)])
    else:
        np.testing.assert_array_equal(model.predict(X), said)


def test_a_trace_sees_only_what_ran():
    assert ran(combination.combine, [[0.0], [0.0]], [[1.0], [3.0]], [0.5, 0.5]) >= {"combine"}
    assert ran(len, "nothing of ours") == set()
