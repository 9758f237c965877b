import json

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize, minimize_scalar

from anymix.monitor import estimate_mixture, uncertainty
from anymix.monitor.mixture import (
    confusion_matrix,
    expectation_maximisation,
    nearest_to_origin,
    posterior,
    simplex_least_squares,
    whitener,
)
from experiments.simplex_grid import simplex_grid

numbers = st.floats(-3, 3, allow_nan=False, width=32)


def objective(A, b, x):
    return float(np.sum((A @ x - b) ** 2))


@given(arrays(np.float64, (4, 3), elements=numbers), arrays(np.float64, 4, elements=numbers))
def test_least_squares_is_no_worse_than_any_point_of_a_grid(A, b):
    x = simplex_least_squares(A, b)
    assert x.min() >= 0
    assert x.sum() == pytest.approx(1.0)
    best = min(objective(A, b, g) for g in simplex_grid(3, 25))
    assert objective(A, b, x) <= best + 1e-9


# All columns lie in one plane, and scipy's nnls loses its way among them.
IN_A_PLANE = np.vstack([np.float32([1.0, -1.55852389, 0.0, 0.0]), np.zeros((4, 4))])


def is_optimal(A, b, x):
    """Every used entry has the smallest slope: Σ x_k g_k = min_k g_k."""
    gradient = A.T @ (A @ x - b)
    return x @ gradient - gradient.min() <= 1e-9 * (1 + np.abs(gradient).max())


@example(IN_A_PLANE, np.ones(5))
@given(arrays(np.float64, (5, 4), elements=numbers), arrays(np.float64, 5, elements=numbers))
def test_least_squares_meets_its_optimality_conditions(A, b):
    x = simplex_least_squares(A, b)
    assert x.min() >= 0
    assert x.sum() == pytest.approx(1.0)
    assert is_optimal(A, b, x)


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 6))
def test_both_ways_of_least_squares_agree(seed, n, p):
    """Columns of small whole numbers: many are equal, on a line or in a plane."""
    rng = np.random.default_rng(seed)
    A, b = rng.integers(-2, 3, (n, p)).astype(float), rng.integers(-2, 3, n).astype(float)
    one, other = simplex_least_squares(A, b), nearest_to_origin(A - b[:, None])
    assert is_optimal(A, b, other)
    np.testing.assert_allclose(A @ one, A @ other, atol=1e-6)


def test_least_squares_is_the_projection_for_the_identity():
    rng = np.random.default_rng(0)
    for b in rng.normal(size=(50, 6)):
        ordered = np.sort(b)[::-1]
        excess = (np.cumsum(ordered) - 1) / np.arange(1, 7)
        shift = excess[np.flatnonzero(ordered > excess)[-1]]
        expected = np.maximum(b - shift, 0)
        np.testing.assert_allclose(simplex_least_squares(np.eye(6), b), expected, atol=1e-12)


@given(st.integers(0, 10**6), st.tuples(*[st.integers(0, 3)] * 3).filter(any))
@pytest.mark.parametrize("temperature", [1.0, 0.2])
def test_inversion_is_exact_when_traffic_repeats_the_reference(temperature, seed, times):
    """Whatever the responsibilities are worth: calibrated or far too sure."""
    rng = np.random.default_rng(seed)
    domain = np.repeat([0, 1, 2], 40)
    log_r = rng.normal(size=(3, 120)) + 2.0 * np.eye(3)[:, domain]
    log_r = log_r / temperature - np.logaddexp.reduce(log_r / temperature, axis=0)
    traffic = np.repeat(log_r, np.array(times)[domain], axis=1)
    estimate = estimate_mixture(traffic, log_r, domain, n_bootstrap=20)
    np.testing.assert_allclose(estimate.mixture, np.array(times) / sum(times), atol=1e-6)


@pytest.mark.parametrize("method", ["inversion", "em"])
def test_perfect_responsibilities_count_rows(method):
    """Then λ̂ is a share of n, and its interval the textbook's."""
    n, domain = 1000, np.repeat([0, 1], 500)
    traffic = np.repeat([0, 1], [700, 300])
    with np.errstate(divide="ignore"):
        log_r, log_t = np.log(np.eye(2)[:, domain]), np.log(np.eye(2)[:, traffic])
    estimate = estimate_mixture(log_t, log_r, domain, method=method, n_bootstrap=4000)
    np.testing.assert_allclose(estimate.mixture, [0.7, 0.3], atol=1e-6)
    width = 2 * 1.96 * np.sqrt(0.7 * 0.3 / n)
    np.testing.assert_allclose(estimate.upper - estimate.lower, width, rtol=0.1)
    assert estimate.condition_number == pytest.approx(1.0)


@pytest.mark.parametrize("method", ["inversion", "em"])
def test_intervals_cover_the_truth_about_as_often_as_they_say(planar, method):
    rng = np.random.default_rng(5)
    mixture, domain = np.array([0.5, 0.3, 0.2]), np.repeat([0, 1, 2], 80)
    covered = []
    for _ in range(100):
        reference = planar.log_responsibilities(planar.rows(domain, rng))
        traffic = planar.log_responsibilities(planar.rows(rng.choice(3, 300, p=mixture), rng))
        e = estimate_mixture(
            traffic, reference, domain, method, n_bootstrap=100, confidence=0.9, rng=rng
        )
        covered.append((e.lower <= mixture) & (mixture <= e.upper))
    # Three binomial rates of 100; 0.9 less four sigma, and not all of them.
    assert 0.78 < np.mean(covered) < 0.98


@pytest.mark.parametrize("method", ["inversion", "em"])
def test_intervals_that_hold_at_once_are_wider_and_no_wider_than_a_divided_risk(planar, method):
    rng, domain = np.random.default_rng(1), np.repeat([0, 1, 2], 200)
    tables = [
        planar.log_responsibilities(planar.rows(d, rng))
        for d in (rng.choice(3, 500, p=[0.5, 0.3, 0.2]), domain)
    ]
    e = estimate_mixture(*tables, domain, method, n_bootstrap=2000, confidence=0.9)
    lower, upper = e.intervals(simultaneous=True)
    divided = estimate_mixture(*tables, domain, method, n_bootstrap=2000, confidence=1 - 0.1 / 3)
    assert ((lower < e.lower) & (e.upper < upper)).all()
    np.testing.assert_array_less(upper - lower, 1.05 * (divided.upper - divided.lower))
    assert [x.tolist() for x in e.intervals()] == [e.lower.tolist(), e.upper.tolist()]


def test_the_shares_of_two_sources_are_one_number():
    rng, domain = np.random.default_rng(0), np.repeat([0, 1], 60)
    score = rng.normal(np.r_[domain, domain[::2]] * 2.0 - 1.0)
    log_r = -np.logaddexp(0.0, [2.0 * score, -2.0 * score])
    e = estimate_mixture(log_r[:, 120:], log_r[:, :120], domain)
    np.testing.assert_allclose(e.lower, 1 - e.upper[::-1], atol=1e-9)
    np.testing.assert_array_equal(e.joint_lower, e.lower)


@given(arrays(np.float64, (3, 30), elements=st.floats(0.01, 1)))
def test_em_meets_the_conditions_of_the_maximum(weights):
    r = weights / weights.sum(axis=0)
    mixture = expectation_maximisation(r)
    slope = np.mean(r / (mixture @ r), axis=1)
    assert slope.max() <= 1 + 1e-3 / 30 + 1e-12
    assert mixture @ slope == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(3))
def test_em_finds_what_a_search_on_the_line_finds(seed):
    rng = np.random.default_rng(seed)
    r0 = rng.beta(2, 1, size=400)
    r = np.stack([r0, 1 - r0])
    best = minimize_scalar(
        lambda t: -np.log(t * r[0] + (1 - t) * r[1]).sum(), bounds=(0, 1), method="bounded"
    )
    assert expectation_maximisation(r)[0] == pytest.approx(best.x, abs=2e-3)


def test_em_intervals_are_those_of_em_on_resampled_rows(planar):
    rng = np.random.default_rng(0)
    domain = np.repeat([0, 1, 2], 20)
    reference = planar.log_responsibilities(planar.rows(domain, rng))
    traffic = planar.log_responsibilities(planar.rows(rng.choice(3, 400, p=[0.6, 0.3, 0.1]), rng))
    e = estimate_mixture(traffic, reference, domain, "em", n_bootstrap=2000, confidence=0.8)
    r = np.exp(traffic)
    draws = [expectation_maximisation(r[:, rng.integers(400, size=400)]) for _ in range(400)]
    lower, upper = np.percentile(draws, [10, 90], axis=0)
    np.testing.assert_allclose(e.lower, lower, atol=0.012)
    np.testing.assert_allclose(e.upper, upper, atol=0.012)


def test_inversion_is_what_a_general_solver_finds(planar):
    rng = np.random.default_rng(2)
    domain = np.repeat([0, 1, 2], 50)
    reference = planar.log_responsibilities(planar.rows(domain, rng))
    traffic = planar.log_responsibilities(planar.rows(rng.choice(3, 300), rng))
    mixture = estimate_mixture(traffic, reference, domain, n_bootstrap=20).mixture
    # The answer is a fixed point: shares posterior to it lead back to it.
    r, t = (posterior(np.exp(table), mixture) for table in (reference, traffic))
    W = whitener(t, r, domain)
    A, b = W @ confusion_matrix(r, domain), W @ t.mean(axis=1)
    found = minimize(
        lambda x: objective(A, b, x),
        np.full(3, 1 / 3),
        bounds=[(0, 1)] * 3,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-14},
    )
    np.testing.assert_allclose(mixture, found.x, atol=2e-4)


def test_inversion_is_as_sharp_as_em_where_that_is_right_and_right_where_it_is_not(planar):
    rng = np.random.default_rng(0)
    mixture, domain = np.array([0.7, 0.2, 0.1]), np.repeat([0, 1, 2], 2000)
    errors = {key: [] for key in ("inversion", "em", "raw inversion", "raw em")}
    for _ in range(40):
        rows = planar.rows(domain, rng), planar.rows(rng.choice(3, 500, p=mixture), rng)
        tables = [planar.log_responsibilities(X) for X in rows]
        raw = [4.0 * t - np.logaddexp.reduce(4.0 * t, axis=0) for t in tables]
        for key in errors:
            home, here = raw if key.startswith("raw") else tables
            e = estimate_mixture(here, home, domain, key.split()[-1], n_bootstrap=20)
            errors[key].append(np.abs(e.mixture - mixture).sum())
    mean = {key: np.mean(values) for key, values in errors.items()}
    assert mean["inversion"] < 1.15 * mean["em"]
    assert mean["raw inversion"] < 0.8 * mean["raw em"]


def test_sources_that_cannot_be_told_apart_have_wide_intervals():
    rng = np.random.default_rng(0)
    score = rng.normal(size=(2, 400))
    log_r = score - np.logaddexp.reduce(score, axis=0)
    e = estimate_mixture(log_r[:, :200], log_r[:, 200:], np.arange(200) % 2)
    assert e.condition_number > 10
    assert (e.upper - e.lower).max() > 0.9


def test_a_single_source_is_the_whole_traffic():
    e = estimate_mixture(np.zeros((1, 30)), np.zeros((1, 9)), np.zeros(9, dtype=int))
    assert (e.mixture, e.lower, e.upper) == ([1.0], [1.0], [1.0])


@pytest.mark.parametrize("n", [50, uncertainty.MANY_ROWS])
def test_resampled_means_have_the_spread_of_means(n):
    rng = np.random.default_rng(0)
    table = rng.random((2, n))
    table[1] += table[0]
    means = uncertainty.resampled_means(table, 3000, rng)
    se = np.sqrt(table.var(axis=1) / n)
    assert np.all(np.abs(means.mean(axis=0) - table.mean(axis=1)) < 5 * se / np.sqrt(3000))
    np.testing.assert_allclose(np.cov(means.T) * n, np.cov(table), rtol=0.15)


@pytest.mark.parametrize("n", [60, uncertainty.MANY_ROWS])
def test_rows_are_drawn_with_their_chances(n):
    rng = np.random.default_rng(0)
    table, share = rng.random((2, 30)), rng.dirichlet(np.ones(30))
    means = uncertainty.resampled_means(table, 3000, rng, share, n)
    np.testing.assert_allclose(means.mean(axis=0), table @ share, atol=5e-3)
    spread = np.cov(table, aweights=share, ddof=0)
    np.testing.assert_allclose(np.cov(means.T) * n, spread, rtol=0.2, atol=5e-3)


def test_row_counts_are_draws_of_n_rows_that_have_a_chance():
    share = np.array([0.0, 0.5, 0.0, 0.5, 0.0])
    means = uncertainty.resampled_means(np.eye(5), 11, np.random.default_rng(0), share, 7)
    counts = np.rint(7 * means)
    np.testing.assert_allclose(7 * means, counts, atol=1e-9)
    assert counts.shape == (11, 5)
    assert (counts.sum(axis=1) == 7).all()
    assert not counts[:, share == 0].any()


def test_the_record_is_frozen_repeatable_and_json(planar):
    domain = np.repeat([0, 1, 2], 20)
    log_r = planar.log_responsibilities(planar.rows(domain, np.random.default_rng(0)))
    one, two = (estimate_mixture(log_r, log_r, domain, rng=3) for _ in range(2))
    assert one.to_json() == two.to_json()
    assert json.loads(one.to_json())["method"] == "inversion"
    with pytest.raises(AttributeError):
        one.n = 3


EVEN, DOMAIN = np.full((2, 4), np.log(0.5)), np.array([0, 0, 1, 1])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"log_r_traffic": EVEN + 1}, "subtract its logsumexp"),
        ({"log_r_traffic": EVEN[:, :0]}, "neither empty"),
        ({"method": "guess"}, "'inversion' or 'em'"),
        ({"n_bootstrap": 3}, "20 or more"),
        ({"confidence": 95}, "between 0 and 1"),
        ({"sample_domain": DOMAIN + 0.0}, "whole numbers"),
    ],
)
def test_bad_input_gets_a_sentence(arguments, sentence):
    good = {"log_r_traffic": EVEN, "log_r_reference": EVEN, "sample_domain": DOMAIN}
    with pytest.raises(ValueError, match=sentence):
        estimate_mixture(**(good | arguments))
