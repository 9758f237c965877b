"""Calibration: the convex problem, its robustness, and what it buys."""

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, minimize
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression

from anymix.densities.domain_likelihood import (
    LOG_TINY,
    DomainRows,
    balanced_weights,
    likelihood,
    newton,
    penalty,
)
from anymix.densities.temperature_scaling import TemperatureScaling
from tests.densities.calibration_measures import calibration_error, domain_log_loss


def noisy_table(rng, p, m, sharpness=5.0, signal=1.0):
    """Log-densities that know the source a little and say so `sharpness` times too loudly."""
    domain = np.concatenate([np.arange(p), rng.integers(p, size=m - p)])
    table = rng.normal(size=(p, m)) + signal * (np.arange(p)[:, None] == domain)
    return sharpness * table, domain


# -- the formulas ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_likelihood_derivatives_by_finite_differences(seed):
    rng = np.random.default_rng(seed)
    p, m = 3, 20
    log_r = log_softmax(rng.normal(size=(p, m)), axis=0)
    targets = rng.dirichlet(np.ones(p), size=m).T
    weight = rng.uniform(size=m)
    theta = np.concatenate([rng.uniform(0.5, 2, p), rng.normal(size=p)])
    _, gradient, hessian = likelihood(theta, log_r, targets, weight)
    numeric = approx_fprime(theta, lambda t: likelihood(t, log_r, targets, weight)[0], 1e-7)
    np.testing.assert_allclose(gradient, numeric, atol=1e-5)
    numeric = approx_fprime(theta, lambda t: likelihood(t, log_r, targets, weight)[1], 1e-7)
    np.testing.assert_allclose(hessian, numeric, atol=1e-5)
    assert np.linalg.eigvalsh(hessian).min() > -1e-10


@pytest.mark.parametrize("n_scales", [1, 3])
def test_penalty_derivatives_by_finite_differences(n_scales):
    rng = np.random.default_rng(n_scales)
    theta, centre = (
        np.concatenate([rng.uniform(0.5, 2, n_scales), rng.normal(size=3)]) for _ in range(2)
    )
    _, gradient, hessian = penalty(theta, centre, n_scales)
    numeric = approx_fprime(theta, lambda t: penalty(t, centre, n_scales)[0], 1e-7)
    np.testing.assert_allclose(gradient, numeric, atol=1e-5)
    numeric = approx_fprime(theta, lambda t: penalty(t, centre, n_scales)[1], 1e-7)
    np.testing.assert_allclose(hessian, numeric, atol=1e-5)
    assert penalty(centre, centre, n_scales)[0] == 0


@given(seed=st.integers(0, 10_000), p=st.integers(1, 4), shared=st.booleans())
def test_no_neighbour_is_better(seed, p, shared):
    """The answer minimises the stated objective: a random neighbour is never below it."""
    rng = np.random.default_rng(seed)
    table, domain = noisy_table(rng, p, 30, sharpness=rng.uniform(0.5, 20))
    log_r, weight = log_softmax(table, axis=0), balanced_weights(domain, np.ones(30), p)
    scaling = TemperatureScaling(temperature="shared" if shared else "own", doubt=0.0)
    centre = scaling.set_params(temperature="shared").fit(table, domain)
    a0, b0 = 1 / centre.temperature_, centre.offset_
    if shared:
        a, b, a0, b0 = a0, b0, np.ones(p), np.zeros(p)
    else:
        own = clone(scaling).set_params(temperature="own").fit(table, domain)
        a, b = 1 / own.temperature_, own.offset_

    def value(a, b):
        n = 1 if shared else p
        pulled = penalty(np.r_[a[:n], b], np.r_[a0[:n], b0], n)[0]
        return likelihood(np.r_[a, b], log_r, np.eye(p)[:, domain], weight)[0] + pulled

    best = value(a, b)
    for _ in range(10):
        factor = np.exp(0.05 * rng.normal(size=1 if shared else p))
        assert value(a * factor, b + 0.05 * rng.normal(size=p)) >= best - 1e-9 * abs(best)


@pytest.mark.parametrize("temperature", ["shared", "own"])
def test_agrees_with_logistic_regression(temperature):
    """Two sources, (almost) no prior: the same model as a logistic regression on log r."""
    rng = np.random.default_rng(0)
    table, domain = noisy_table(rng, 2, 400)
    scaling = TemperatureScaling(temperature=temperature, prior=1e-9, doubt=0.0, tol=1e-13)
    log_q = scaling.fit(table, domain).transform(table)
    log_r = log_softmax(table, axis=0)
    X = (log_r[1] - log_r[0])[:, None] if temperature == "shared" else log_r.T
    witness = LogisticRegression(C=np.inf, class_weight="balanced", tol=1e-10, max_iter=10_000)
    expected = witness.fit(X, domain).predict_proba(X).T
    np.testing.assert_allclose(np.exp(log_q), expected, atol=1e-5)
    if temperature == "shared":
        assert scaling.temperature_ == pytest.approx(1 / witness.coef_[0, 0], rel=1e-4)


def test_newton_agrees_with_bfgs():
    rng = np.random.default_rng(1)
    table, domain = noisy_table(rng, 3, 50)
    log_r, targets = log_softmax(table, axis=0), np.eye(3)[:, domain]
    centre = np.r_[np.ones(3), np.zeros(3)]

    def objective(theta):
        parts = likelihood(theta, log_r, targets, np.ones(50)), penalty(theta, centre, 3)
        return tuple(one + other for one, other in zip(*parts, strict=True))

    theta, n_iter = newton(objective, centre, 3, 1e-12, 100)
    assert n_iter < 15
    witness = minimize(
        lambda s: objective(np.r_[np.exp(s[:3]), s[3:]])[0], np.zeros(6), options={"gtol": 1e-5}
    )
    assert objective(theta)[0] <= witness.fun + 1e-9
    np.testing.assert_allclose(theta[:3], np.exp(witness.x[:3]), atol=1e-4)


def test_newton_says_when_it_has_not_converged():
    table, domain = noisy_table(np.random.default_rng(2), 3, 50)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        TemperatureScaling(max_iter=1).fit(table, domain)


def test_measures_against_scikit_learn_and_by_hand():
    rng = np.random.default_rng(3)
    log_r = log_softmax(rng.normal(size=(3, 40)), axis=0)
    rows = DomainRows(log_r, rng.integers(3, size=40), rng.uniform(0.1, 1, size=40), doubt=0.1)
    temperature, offset = np.array([0.5, 2.0, 3.0]), np.array([0.5, 0.0, -0.5])
    total, *sums = rows.tally(temperature, offset)
    after = log_softmax(log_r / temperature[:, None] + offset[:, None], axis=0)
    for log_q, (loss, *bins) in zip((log_r, after), np.split(np.array(sums), 2), strict=True):
        given = log_q, rows.domain, rows.weight
        assert loss / total == pytest.approx(domain_log_loss(*given))
        assert np.abs(bins).sum() / total == pytest.approx(calibration_error(*given))


# -- what it does --------------------------------------------------------------------------------


@given(seed=st.integers(0, 10_000), p=st.integers(1, 4), m=st.integers(8, 60))
def test_answers_are_distributions_and_only_ratios_count(seed, p, m):
    rng = np.random.default_rng(seed)
    table, domain = noisy_table(rng, p, m, sharpness=10.0 ** rng.uniform(-1, 4))
    scaling = TemperatureScaling().fit(table, domain)
    log_q = scaling.transform(table)
    np.testing.assert_allclose(np.exp(log_q).sum(axis=0), 1)
    assert (scaling.temperature_ > 0).all()
    assert np.isfinite(scaling.temperature_).all()
    assert abs(scaling.offset_.sum()) < 1e-6
    shifted = table + rng.normal(size=m)
    np.testing.assert_allclose(scaling.transform(shifted), log_q, atol=1e-6 * np.ptp(table))


def test_a_known_temperature_is_found():
    """Points drawn with r themselves: the raw table is 7 times too sure, T is 7."""
    rng = np.random.default_rng(4)
    log_r = log_softmax(1.5 * rng.normal(size=(3, 20_000)), axis=0)
    domain = np.array([rng.choice(3, p=column) for column in np.exp(log_r).T])
    for temperature in ("shared", "own"):
        scaling = TemperatureScaling(temperature=temperature).fit(7 * log_r, domain)
        np.testing.assert_allclose(scaling.temperature_, 7, rtol=0.15)
        np.testing.assert_allclose(scaling.offset_, 0, atol=0.15)


def test_held_out_log_loss_and_error_fall():
    rng = np.random.default_rng(5)
    table, domain = noisy_table(rng, 4, 2000, sharpness=30, signal=2.0)
    scaling = TemperatureScaling().fit(table[:, :1000], domain[:1000])
    report = scaling.report_
    assert report.log_loss_after < 0.3 * report.log_loss_before
    assert report.error_after < 0.3 * report.error_before
    new, weight = domain[1000:], np.ones(1000)
    after = scaling.transform(table[:, 1000:])
    raw = log_softmax(table[:, 1000:], axis=0)
    assert domain_log_loss(after, new, weight) < 0.3 * domain_log_loss(raw, new, weight)
    assert calibration_error(after, new, weight) < 0.3 * calibration_error(raw, new, weight)
    assert json.loads(json.dumps(dataclasses.asdict(report)))["n_points"] == 1000


def test_own_temperatures_help_where_sources_differ_and_cost_little_where_they_do_not():
    rng = np.random.default_rng(6)
    log_r = log_softmax(2 * rng.normal(size=(2, 8000)), axis=0)
    domain = np.array([rng.choice(2, p=column) for column in np.exp(log_r).T])
    fit, new = slice(0, 4000), slice(4000, None)
    for factors, gain in (((1, 8), 0.005), ((5, 5), -0.002)):
        # Own temperatures act on log r, so the raw table is built there and re-read as it is.
        raw = log_softmax(np.array(factors)[:, None] * log_r, axis=0)
        losses = [
            domain_log_loss(
                TemperatureScaling(temperature=t)
                .fit(raw[:, fit], domain[fit])
                .transform(raw[:, new]),
                domain[new],
                np.ones(4000),
            )
            for t in ("shared", "own")
        ]
        assert losses[0] - losses[1] > gain


def test_every_source_counts_equally():
    """Copies of one source's points change only how much they weigh against the prior."""
    rng = np.random.default_rng(7)
    table, domain = noisy_table(rng, 2, 200)
    copies = np.where(domain == 0, 10, 1)
    plain = TemperatureScaling(prior=1e-6, doubt=0).fit(table, domain)
    unequal = TemperatureScaling(prior=1e-6, doubt=0).fit(
        table.repeat(copies, axis=1), domain.repeat(copies)
    )
    weighted = TemperatureScaling(prior=1e-6, doubt=0).fit(table, domain, sample_weight=copies)
    np.testing.assert_allclose(unequal.temperature_, plain.temperature_, rtol=1e-3)
    np.testing.assert_allclose(weighted.offset_, plain.offset_, atol=1e-3)


def test_the_unit_of_weights_and_points_without_weight_do_not_count():
    rng = np.random.default_rng(9)
    table, domain = noisy_table(rng, 3, 60)
    weight = rng.uniform(0.5, 2, size=60)
    plain = TemperatureScaling().fit(table, domain, sample_weight=weight)
    scaled = TemperatureScaling().fit(table, domain, sample_weight=1e-6 * weight)
    np.testing.assert_allclose(scaled.temperature_, plain.temperature_)
    more = np.concatenate([table, 100 * rng.normal(size=(3, 5))], axis=1)
    padded = TemperatureScaling().fit(
        more, np.r_[domain, np.zeros(5, dtype=int)], sample_weight=np.r_[weight, np.zeros(5)]
    )
    np.testing.assert_allclose(padded.temperature_, plain.temperature_)
    assert padded.report_ == plain.report_


# -- robustness ------------------------------------------------------------------------------------


def test_separable_points_stay_humble():
    """Six right answers at 500 nats do not prove certainty: the doubt caps it."""
    table = np.where(np.eye(2)[:, [0, 1, 0, 1, 0, 1]] == 1, 0.0, -500.0)
    scaling = TemperatureScaling().fit(table, [0, 1, 0, 1, 0, 1])
    surest = np.exp(scaling.transform(table).max(axis=0))
    assert (surest > 0.9).all()
    assert (surest < 0.9999).all()


def test_separable_points_without_doubt_stay_at_the_identity():
    table = np.where(np.eye(2)[:, [0, 1, 0, 1]] == 1, 0.0, -500.0)
    scaling = TemperatureScaling(doubt=0.0).fit(table, [0, 1, 0, 1])
    np.testing.assert_allclose(scaling.temperature_, 1)


def test_few_points_stay_near_the_identity():
    table = np.array([[0.0, -1.0], [-1.0, 0.0]])
    scaling = TemperatureScaling(prior=10.0).fit(table, [0, 1])
    np.testing.assert_allclose(scaling.temperature_, 1, atol=0.15)


@pytest.mark.parametrize("temperature", ["shared", "own"])
def test_log_densities_of_minus_twenty_thousand(temperature):
    rng = np.random.default_rng(8)
    table, domain = noisy_table(rng, 3, 300, sharpness=2000.0)
    scaling = TemperatureScaling(temperature=temperature).fit(table - 20_000, domain)
    assert scaling.n_iter_ < 60
    assert scaling.report_.log_loss_after < np.log(3)
    assert np.isfinite(scaling.transform(table - 20_000)).all()


def test_impossible_points():
    """-inf for the own source, for another, and for all sources."""
    table = np.array([[-np.inf, -1.0, -np.inf, -2.0], [-1.0, -np.inf, -np.inf, -1.0]])
    scaling = TemperatureScaling().fit(table, [0, 0, 1, 1])
    assert scaling.floor_ == LOG_TINY
    log_q = scaling.transform(table)
    assert np.isfinite(log_q).all()
    nothing_known = scaling.transform([[-5.0], [-5.0]])
    np.testing.assert_allclose(log_q[:, [2]], nothing_known)
    far = scaling.transform([[-np.inf, -1e6], [0.0, 0.0]])
    np.testing.assert_array_equal(far[:, 0], far[:, 1])


def test_uninformative_and_misleading_densities():
    domain = np.tile([0, 1, 2], 30)
    equal = TemperatureScaling().fit(np.zeros((3, 90)), domain).transform(np.zeros((3, 1)))
    np.testing.assert_allclose(np.exp(equal), 1 / 3)
    wrong = -50.0 * np.eye(3)[:, domain]
    scaling = TemperatureScaling().fit(wrong, domain)
    np.testing.assert_allclose(np.exp(scaling.transform(wrong)), 1 / 3, atol=0.1)


def test_one_source():
    scaling = TemperatureScaling().fit([[-3.0, -400.0]], [0, 0])
    np.testing.assert_array_equal(scaling.temperature_, [1.0])
    np.testing.assert_array_equal(scaling.transform([[-7.0]]), [[0.0]])
    assert scaling.report_.log_loss_after == 0


def test_bad_input_speaks():
    table = np.zeros((2, 3))
    fit = TemperatureScaling().fit
    with pytest.raises(ValueError, match=r"source\(s\) \[1\]"):
        fit(table, [0, 0, 0])
    with pytest.raises(ValueError, match=r"must lie in 0\.\.1"):
        fit(table, [0, 1, 2])
    with pytest.raises(ValueError, match="3 whole numbers"):
        fit(table, ["a", "b", "a"])
    with pytest.raises(ValueError, match="NaN"):
        fit([[np.nan, 0.0], [0.0, 0.0]], [0, 1])
    with pytest.raises(ValueError, match="one row for each source"):
        fit(np.zeros(3), [0, 1, 0])
    with pytest.raises(ValueError, match="none of them negative"):
        fit(table, [0, 1, 0], sample_weight=[1, 1, -1])
    with pytest.raises(ValueError, match="'own' or 'shared'"):
        TemperatureScaling(temperature="cold").fit(table, [0, 1, 0])
    with pytest.raises(ValueError, match="prior must be a number above 0"):
        TemperatureScaling(prior=0).fit(table, [0, 1, 0])
    with pytest.raises(ValueError, match="fitted with 2 sources"):
        fit(table, [0, 1, 0]).transform(np.zeros((3, 1)))
    with pytest.raises(NotFittedError):
        TemperatureScaling().transform(table)
