"""With few rows an interval is as wide as so few rows allow."""

import numpy as np
import pytest
from scipy.stats import binomtest

from anymix.monitor import Monitor, adapt_z, estimate_mixture
from anymix.monitor.mixture import confusion_matrix
from anymix.monitor.uncertainty import exact_interval, worth

DOMAIN = np.repeat([0, 1, 2], 60)


def perfect(source):
    with np.errstate(divide="ignore"):
        return np.log(np.eye(3)[:, source])


@pytest.mark.parametrize("method", ["inversion", "em"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_few_rows_of_one_source_leave_room_for_the_others(method, n):
    e = estimate_mixture(perfect(np.zeros(n, int)), perfect(DOMAIN), DOMAIN, method)
    expected = binomtest(n, n).proportion_ci(0.95)
    assert e.lower[0] == pytest.approx(expected.low, abs=0.02)
    assert e.upper[1] == pytest.approx(1 - expected.low, abs=0.02)
    assert e.upper[0] == pytest.approx(1.0)


def test_the_sentence_about_two_rows_is_not_sure_of_itself(planar):
    rng = np.random.default_rng(0)
    monitor = Monitor(planar, planar.rows(DOMAIN, rng), DOMAIN)
    report = monitor.estimate(np.array([[-1.0, -1.0], [-0.5, -1.0]]))
    assert "(100 to 100)" not in report.sentence
    assert (report.estimate.upper - report.estimate.lower).min() > 0.5
    robust = np.full(3, 1 / 3)
    assert np.abs(adapt_z(robust, report.estimate) - robust).max() < 0.2


@pytest.mark.parametrize("mixture", [[1 / 3, 1 / 3, 1 / 3], [0.6, 0.3, 0.1], [0.9, 0.1, 0.0]])
@pytest.mark.parametrize("n", [1, 3, 12])
def test_small_samples_are_covered_as_often_as_promised(planar, n, mixture):
    rng = np.random.default_rng(n)
    covered = []
    for _ in range(120):
        reference = planar.log_responsibilities(planar.rows(DOMAIN, rng))
        traffic = planar.log_responsibilities(planar.rows(rng.choice(3, n, p=mixture), rng))
        e = estimate_mixture(traffic, reference, DOMAIN, n_bootstrap=20, confidence=0.9, rng=rng)
        # Half a percent is what the sentence rounds away.
        covered.append((e.lower <= np.add(mixture, 0.005)) & (np.add(e.upper, 0.005) >= mixture))
    # 0.9 less three standard errors of 120 trials, for each share; bootstrap alone has 0 to 0.8.
    assert np.mean(covered, axis=0).min() > 0.82


def test_many_rows_are_told_by_the_bootstrap(planar):
    """Where rows are many and overlap, the floor lies inside the interval or near its ends."""
    rng = np.random.default_rng(0)
    reference = planar.rows(np.repeat([0, 1, 2], 400), rng)
    traffic = planar.rows(rng.choice(3, 1000, p=[0.5, 0.3, 0.2]), rng)
    tables = [planar.log_responsibilities(X) for X in (traffic, reference)]
    e = estimate_mixture(*tables, np.repeat([0, 1, 2], 400))
    assert (e.upper - e.lower).max() < 0.11


@pytest.mark.parametrize(("k", "n"), [(0, 1), (1, 1), (2, 3), (3, 10), (50, 100)])
def test_the_interval_is_that_of_scipy_for_counts(k, n):
    expected = binomtest(k, n).proportion_ci(0.9, method="exact")
    lower, upper = exact_interval(np.array([k / n]), np.array([float(n)]), 0.9)
    assert (lower[0], upper[0]) == pytest.approx((expected.low, expected.high), abs=1e-4)


def test_no_rows_say_nothing():
    lower, upper = exact_interval(np.array([0.7, 0.3]), np.zeros(2), 0.95)
    assert (lower.tolist(), upper.tolist()) == ([0.0, 0.0], [1.0, 1.0])


def test_worth_is_the_ratio_of_variances_of_simulated_shares(planar):
    rng = np.random.default_rng(0)
    domain = np.repeat([0, 1, 2], 4000)
    r = np.exp(planar.log_responsibilities(planar.rows(domain, rng)))
    C = confusion_matrix(r, domain)
    drawn = rng.integers(3, size=(3000, 50))
    rows = planar.rows(drawn.ravel(), rng)
    means = np.exp(planar.log_responsibilities(rows)).reshape(3, 3000, 50).mean(axis=2)
    variance = np.linalg.solve(C, means).var(axis=1)
    np.testing.assert_allclose(worth(r, C, domain), (2 / 9 / 50) / variance, rtol=0.1)
