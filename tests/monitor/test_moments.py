"""θ̃ = F'C⁻¹q and its error: finite differences, simulation, textbook values."""

from collections import namedtuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import multivariate_normal, norm, skew, t

from anymix.monitor import uncertainty
from anymix.monitor.uncertainty import (
    POWERS,
    confusion_matrix,
    joint_confidence,
    less_sure,
    mean_moments,
    posterior,
    skewed_interval,
    student_interval,
)

DOMAIN = np.repeat([0, 1, 2], [40, 30, 50])
Spread = namedtuple("Spread", "value error freedom skewness covariance")


def spread(*given_):
    return Spread(*uncertainty.spread(*given_))


def evidence(planar, rng, n=200, mixture=(0.5, 0.3, 0.2), domain=DOMAIN):
    tables = [
        np.exp(planar.log_responsibilities(planar.rows(rows, rng)))
        for rows in (rng.choice(3, n, p=mixture), domain)
    ]
    return *tables, domain, np.array(mixture)


def weighted_value(given, f, v, w):
    """θ̃ with weights v of the rows of traffic and w of the held-out rows, shares as they are."""
    traffic, reference, domain, mixture = given
    s, r = posterior(traffic, mixture), posterior(reference, mixture)
    means = [
        np.average(np.vstack([r, f])[:, domain == k], axis=1, weights=w[domain == k])
        for k in range(3)
    ]
    M = np.stack(means, axis=1)
    return M[3] @ np.linalg.solve(M[:3], np.average(s, axis=1, weights=v))


def test_the_variance_is_that_of_finite_differences(planar):
    """Σ over rows of (dθ̃/dw_i)², the infinitesimal jackknife, where rows are many."""
    rng = np.random.default_rng(0)
    domain = np.repeat([0, 1, 2], 300)
    given_ = evidence(planar, rng, 900, domain=domain)
    f = rng.exponential(size=900) * (1 + domain)
    found, ones, h = spread(*given_, f[None]), np.ones(900), 1e-5
    at = weighted_value(given_, f, ones, ones)
    bumped = ones + h * np.eye(900)
    slopes = [(weighted_value(given_, f, b, ones) - at) / h for b in bumped]
    slopes += [(weighted_value(given_, f, ones, b) - at) / h for b in bumped]
    assert found.value[0] == pytest.approx(at)
    assert found.error[0] == pytest.approx(np.sqrt(np.sum(np.square(slopes))), rel=0.01)
    cubes = np.sum(np.power(slopes, 3))
    assert found.skewness[0] == pytest.approx(cubes / found.error[0] ** 3, rel=0.05)


def test_the_error_is_the_spread_of_repeated_samples(planar):
    rng = np.random.default_rng(1)
    mean, mixture = np.array([1.0, 2.0, 0.5]), np.array([0.5, 0.3, 0.2])
    values, errors = [], []
    for _ in range(400):
        given_ = evidence(planar, rng)
        f = mean[DOMAIN] * rng.exponential(size=DOMAIN.size)
        found = spread(*given_, f[None])
        values.append(found.value[0])
        errors.append(found.error[0])
    # Of 400 draws a standard deviation is known to 3.5 %.
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(np.std(values), rel=0.12)
    assert abs(np.mean(values) - mean @ mixture) < 4 * np.std(values) / 20


def test_rows_that_name_their_source_give_the_textbooks_error():
    rng, counts = np.random.default_rng(2), np.array([500, 300, 200])
    eye, domain = np.eye(3), np.repeat([0, 1, 2], 100)
    traffic, reference = eye[:, np.repeat([0, 1, 2], counts)], eye[:, domain]
    f = rng.normal(domain, 1.0 + domain)
    found = spread(traffic, reference, domain, counts / 1000, f[None])
    L = np.array([f[domain == k].mean() for k in range(3)])
    v = np.array([f[domain == k].var(ddof=1) for k in range(3)])
    share = counts / 1000
    variance = (share @ L**2 - (share @ L) ** 2) / 999 + share**2 @ v / 100
    assert found.value[0] == pytest.approx(share @ L)
    assert found.error[0] == pytest.approx(np.sqrt(variance), rel=1e-3)


def test_welch_counts_the_degrees_of_freedom():
    """One source holds nearly all the variance: its n_k − 1."""
    domain, rng = np.repeat([0, 1], [9, 400]), np.random.default_rng(0)
    eye = np.eye(2)
    f = np.where(domain == 0, 100 * rng.normal(size=409), 0.0)
    found = spread(eye[:, domain], eye[:, domain], domain, np.array([0.5, 0.5]), f[None])
    assert found.freedom[0] > 8
    sure = eye[:, np.zeros(5000, int)], eye[:, domain], domain, np.array([1.0, 0.0])
    assert spread(*sure, f[None]).freedom[0] == pytest.approx(8.0, rel=0.02)


@given(st.integers(0, 10**6), st.integers(2, 5), st.floats(0.1, 9), st.floats(-5, 5))
def test_values_and_errors_follow_the_unit(seed, p, scale, shift):
    rng = np.random.default_rng(seed)
    domain = np.repeat(np.arange(p), 12)
    r = rng.dirichlet(np.ones(p), 12 * p).T + 3 * np.eye(p)[:, domain]
    t_ = rng.dirichlet(np.ones(p), 40).T
    given_ = t_, r / r.sum(axis=0), domain, rng.dirichlet(np.ones(p))
    f = rng.normal(size=12 * p)
    one, other = (spread(*given_, x[None]) for x in (f, scale * f + shift))
    np.testing.assert_allclose(other.value, scale * one.value + shift, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(other.error, scale * one.error, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(other.freedom, one.freedom, rtol=1e-4)
    shares = spread(*given_, np.eye(p)[:, domain])
    assert shares.value.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(shares.covariance.sum(axis=0), 0.0, atol=1e-9)


def test_what_cannot_be_told_apart_has_no_finite_error():
    r, domain = np.full((2, 8), 0.5), np.repeat([0, 1], 4)
    found = spread(r, r, domain, np.array([0.4, 0.6]), np.arange(8.0)[None])
    assert np.isinf(found.error[0])
    assert np.isneginf(skewed_interval(found, 0.9)[0][0])


def test_cumulants_of_a_mean_are_those_of_scipy():
    x = np.random.default_rng(0).exponential(size=(2, 30))
    covariance, third = mean_moments(x)
    np.testing.assert_allclose(covariance, np.cov(x) / 30)
    unbiased = skew(x, axis=1, bias=False) * x.var(axis=1, ddof=1) ** 1.5
    np.testing.assert_allclose(third, unbiased / 30**2)
    assert mean_moments(x[:, :2])[1].tolist() == [0.0, 0.0]
    assert mean_moments(x[:, :1])[0].tolist() == [[0.0, 0.0], [0.0, 0.0]]


def one_spread(g, freedom=30.0):
    return Spread(np.ones(1), np.full(1, 2.0), np.array([freedom]), np.array([g]), np.eye(1))


@settings(deadline=None)
@given(st.floats(-1.5, 1.5).filter(lambda g: abs(g) > 0.01), st.floats(0.5, 0.99))
def test_skewed_ends_solve_halls_equation(g, confidence):
    x = t.ppf(0.5 + confidence / 2, 30.0)

    def at(y):
        return brentq(lambda T: T + g * T**2 / 3 + g**2 * T**3 / 27 + g / 6 - y, -1e3, 1e3)

    lower, upper = skewed_interval(one_spread(g), confidence)
    assert lower[0] == pytest.approx(min(1 - 2 * x, 1 - 2 * at(x)), abs=1e-6)
    assert upper[0] == pytest.approx(max(1 + 2 * x, 1 - 2 * at(-x)), abs=1e-6)


def test_without_skewness_both_intervals_are_students():
    for one, other in zip(
        student_interval(one_spread(0.0), 0.9), skewed_interval(one_spread(0.0), 0.9), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_skewed_intervals_cover_the_mean_of_few_skewed_rows_where_students_do_not():
    rng, missed = np.random.default_rng(0), np.zeros(2)
    for _ in range(1500):
        x = rng.normal(size=(1, 20)) ** 2
        covariance, third = mean_moments(x)
        error = np.sqrt(np.diag(covariance))
        found = Spread(x.mean(axis=1), error, np.array([19.0]), third / error**3, covariance)
        ends = student_interval(found, 0.95), skewed_interval(found, 0.95)
        missed += [not low[0] <= 1.0 <= high[0] for low, high in ends]
    student, skewed = missed / 1500
    assert student > 0.085
    assert skewed < 0.05 + 2 * np.sqrt(0.05 * 0.95 / 1500)


@pytest.mark.parametrize("correlation", [-0.5, 0.0, 0.8])
def test_joint_confidence_is_that_of_the_gaussian(correlation):
    R = np.full((3, 3), correlation) + (1 - correlation) * np.eye(3)
    scale = np.array([1.0, 10.0, 0.1])
    each = joint_confidence(R * np.outer(scale, scale), 0.9, np.random.default_rng(0))
    c = norm.ppf(0.5 + each / 2)
    gaussian = multivariate_normal(np.zeros(3), R, allow_singular=True)
    # 5000 draws know it to 0.0042.
    assert gaussian.cdf(np.full(3, c), lower_limit=np.full(3, -c)) == pytest.approx(0.9, abs=0.015)
    assert 0.9 < each <= 1 - 0.1 / 3 + 0.005


def test_without_variance_shares_count_as_independent():
    each = joint_confidence(np.zeros((4, 4)), 0.95, np.random.default_rng(0))
    assert each == pytest.approx(0.95**0.25, abs=0.003)


@pytest.mark.parametrize("sure", [1.0, 3.0])
def test_what_is_too_sure_is_made_less_so(planar, sure):
    rng, domain = np.random.default_rng(0), np.repeat([0, 1, 2], 500)
    log_r = planar.log_responsibilities(planar.rows(domain, rng))

    def minus_log(power):
        at = power * sure * log_r
        return -np.mean((at - np.logaddexp.reduce(at, axis=0))[domain, np.arange(1500)])

    best = minimize_scalar(minus_log, bounds=(0.1, 2.0), method="bounded").x
    power = min(POWERS, key=lambda b: abs(b - min(best, 1.0)))
    r = np.exp(sure * log_r - np.logaddexp.reduce(sure * log_r, axis=0))
    expected = r**power / (r**power).sum(axis=0)
    np.testing.assert_allclose(less_sure(r, domain), expected, atol=1e-6)


def test_rows_that_name_their_source_stay_as_they_are():
    named = np.eye(3)[:, DOMAIN]
    np.testing.assert_allclose(less_sure(named, DOMAIN), named, atol=1e-300)


def test_confusion_is_a_mean_a_source():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(4, DOMAIN.size))
    for k in range(3):
        expected = table[:, k == DOMAIN].mean(axis=1)
        np.testing.assert_allclose(confusion_matrix(table, DOMAIN)[:, k], expected)
