"""What a report is told of a model is what the model and its tables say."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anymix import DistributionWeightedRegressor, Source, evaluate
from anymix.densities import GaussianKDE, balanced_weights
from anymix.estimators.model_summary import mean_weights, reliability, summarise
from tests.densities.calibration_measures import calibration_error


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    domain = np.repeat([0, 1, 2], [60, 50, 40])
    X = rng.normal(2.0 * domain[:, None], 1.0)
    y = np.sin(X[:, 0])
    sources = [
        Source(name, lambda X, k=k: np.sin(X[:, 0]) + 0.3 * (X[:, 0] - 2 * k), GaussianKDE(0.3))
        for k, name in enumerate("abc")
    ]
    for k, source in enumerate(sources):
        source.density.fit(rng.normal(2.0 * k, 1.0, (80, 1)))
    tables = evaluate(sources, X).labelled(y, domain)
    return DistributionWeightedRegressor.from_sources(sources).fit_tables(tables), tables, X


def test_the_record_is_plain_and_complete(fitted):
    model, _, _ = fitted
    record = json.loads(json.dumps(summarise(model, name="Claims"), allow_nan=False))
    assert record["name"] == "Claims"
    assert record["sources"] == ["a", "b", "c"]
    assert record["rows"] == [60, 50, 40]
    assert record["certificate"]["sentence"] == model.certificate_.sentence
    assert record["cross_loss"]["mean"] == model.cross_loss_.mean.tolist()
    assert record["comparison"] is None
    assert len(record["solution"]["trace"]) == len(model.solution_.trace)


def test_weights_are_those_of_predictions(fitted):
    model, tables, X = fitted
    used = model.source_weights(X)
    for k in range(3):
        for j in range(3):
            expected = used[tables.sample_domain == j, k].mean()
            assert summarise(model)["weights"][k][j] == pytest.approx(expected)


def test_the_curve_is_told_before_and_after_calibration(fitted):
    model, tables, _ = fitted
    calibration = summarise(model)["calibration"]
    assert calibration["before"] == reliability(tables.log_masses, tables.sample_domain)
    assert calibration["after"] != calibration["before"]


@pytest.mark.filterwarnings("ignore:sample_domain names the one source")
def test_one_source_has_no_report():
    X, y = np.arange(20.0)[:, None], np.arange(20.0)
    with pytest.raises(ValueError, match="at least two"):
        summarise(DistributionWeightedRegressor().fit(X, y, np.zeros(20)))


@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.integers(1, 20))
def test_the_curve_has_the_calibration_error(seed, p, n_bins):
    rng = np.random.default_rng(seed)
    domain = np.r_[np.arange(p), rng.integers(0, p, 60)]
    log_r = np.log(rng.dirichlet(np.ones(p), domain.size).T)
    bins = reliability(log_r + rng.normal(size=domain.size), domain, n_bins)
    assert sum(b["share"] for b in bins) == pytest.approx(1.0)
    error = sum(b["share"] * abs(b["accuracy"] - b["confidence"]) for b in bins)
    weight = balanced_weights(domain, np.ones(domain.size), p)
    assert error == pytest.approx(calibration_error(log_r, domain, weight, n_bins), abs=1e-9)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_mean_weights_sum_to_one_on_each_domain(seed):
    rng = np.random.default_rng(seed)
    domain = np.r_[0, 1, 2, rng.integers(0, 3, 20)]
    found = mean_weights(rng.dirichlet(np.ones(3), domain.size).T, domain)
    np.testing.assert_allclose(found.sum(axis=0), 1.0)


def test_a_row_that_all_call_impossible_spoils_no_other_bin():
    log_masses = np.array([[0.0, -9.0, -np.inf], [-9.0, 0.0, -np.inf]])
    bins = reliability(log_masses, np.array([0, 1, 0]))
    assert all(np.isfinite(list(one.values())).all() for one in bins)
    assert sum(one["share"] for one in bins) == pytest.approx(1.0)


def test_a_certificate_of_new_rows_takes_the_place_of_that_of_fit(fitted):
    model, tables, X = fitted
    new = model.certify(X + 0.01, np.asarray(tables.targets), tables.domain, confidence=None)
    record = summarise(model, certificate=new)
    assert record["certificate"]["sentence"] == new.sentence
    with pytest.raises(TypeError, match="certificate must be what certify returns; got dict"):
        summarise(model, certificate={})
