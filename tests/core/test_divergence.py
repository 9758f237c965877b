import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

from anymix.core.guarantees.divergence import gaussian_renyi_ratio, renyi_ratio, sampled_renyi_ratio

ORDERS = [0.5, 1.0, 1.0 + 1e-9, 1.5, 2.0, 7.0, np.inf]
quick = settings(deadline=None)


def distributions(n: int = 4):
    mass = st.floats(0.01, 1.0)
    return st.lists(mass, min_size=n, max_size=n).map(lambda v: np.array(v) / sum(v))


def gaussian(rng: np.random.Generator, d: int, scale: float = 1.0):
    A = rng.normal(size=(d, d))
    return rng.normal(size=d), scale * (A @ A.T / d + 0.5 * np.eye(d))


def plain_ratio(p: np.ndarray, q: np.ndarray, alpha: float) -> float:
    return float((p**alpha / q ** (alpha - 1)).sum() ** (1 / (alpha - 1)))


# -- discrete ------------------------------------------------------------------------------------


@quick
@given(p=distributions(), q=distributions(), alpha=st.floats(0.1, 20))
def test_the_ratio_is_the_plain_formula(p, q, alpha):
    if abs(alpha - 1) > 1e-3:
        assert renyi_ratio(p, q, alpha) == pytest.approx(plain_ratio(p, q, alpha), rel=1e-9)


def test_limits_are_kullback_leibler_and_the_largest_ratio():
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(6), 2)
    assert np.log(renyi_ratio(p, q, 1.0)) == pytest.approx(stats.entropy(p, q), rel=1e-12)
    assert renyi_ratio(p, q, np.inf) == pytest.approx((p / q).max(), rel=1e-12)
    assert renyi_ratio(p, q, 1 + 1e-11) == pytest.approx(renyi_ratio(p, q, 1.0), rel=1e-9)
    assert renyi_ratio(p, q, 1e5) == pytest.approx(renyi_ratio(p, q, np.inf), rel=1e-3)


@quick
@given(p=distributions(), q=distributions())
def test_at_least_one_and_never_falling_in_alpha(p, q):
    values = [renyi_ratio(p, q, alpha) for alpha in ORDERS]
    assert min(values) >= 1 - 1e-12
    assert np.all(np.diff(values) >= -1e-9 * np.array(values[1:]))


@quick
@given(p=distributions(), q=distributions())
def test_one_only_for_equal_distributions(p, q):
    for alpha in ORDERS:
        assert renyi_ratio(p, p, alpha) == pytest.approx(1.0, abs=1e-12)
        # Pinsker: D ≥ |P − Q|²/2 from α = 1 on, and min(α, 1) times that below.
        distance = np.abs(p - q).sum()
        assert np.log(renyi_ratio(p, q, alpha)) >= min(alpha, 1) * distance**2 / 2 - 1e-9


def test_masses_are_normalised_in_any_shape_and_scale():
    p, q = np.array([[1.0, 3.0], [2.0, 2.0]]), np.ones((2, 2))
    expected = renyi_ratio(p.ravel() / 8, q.ravel() / 4, 2.0)
    assert renyi_ratio(p * 1e-300, q * 1e200, 2.0) == pytest.approx(expected, rel=1e-12)


def test_supports_that_differ():
    p, q = [0.5, 0.5, 0.0], [1.0, 0.0, 0.0]
    assert [renyi_ratio(p, q, a) for a in (1.0, 2.0, np.inf)] == [np.inf] * 3
    assert renyi_ratio(p, q, 0.5) == pytest.approx(2.0)
    assert renyi_ratio(q, p, np.inf) == pytest.approx(2.0)
    assert renyi_ratio([1, 0], [0, 1], 0.5) == np.inf


# -- Gaussian ------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.3, 2.0])
def test_gaussian_closed_form_by_quadrature(alpha):
    P, Q = stats.norm(0.3, 0.8), stats.norm(-0.2, 1.1)
    got = gaussian_renyi_ratio([0.3], [[0.64]], [-0.2], [[1.21]], alpha)

    def integrand(x):
        a = P.logpdf(x) - Q.logpdf(x)
        return P.pdf(x) * (a if alpha == 1 else np.exp((alpha - 1) * a))

    total = quad(integrand, -12, 12, epsabs=1e-12)[0]
    expected = np.exp(total) if alpha == 1 else total ** (1 / (alpha - 1))
    assert got == pytest.approx(expected, rel=1e-8)


def test_gaussian_largest_ratio_on_a_grid():
    x = np.linspace(-10, 10, 200_001)
    expected = np.exp((stats.norm(0.3, 0.8).logpdf(x) - stats.norm(-0.2, 1.1).logpdf(x)).max())
    got = gaussian_renyi_ratio([0.3], [[0.64]], [-0.2], [[1.21]], np.inf)
    assert got == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_gaussian_matches_the_textbook_determinants(seed):
    rng = np.random.default_rng(seed)
    (m, P), (n, Q), alpha = gaussian(rng, 3), gaussian(rng, 3, 3.0), 1.2
    S = alpha * Q + (1 - alpha) * P
    log_det = [np.linalg.slogdet(A)[1] for A in (S, P, Q)]
    volume = (log_det[0] - (1 - alpha) * log_det[1] - alpha * log_det[2]) / (2 * (alpha - 1))
    expected = alpha / 2 * (m - n) @ np.linalg.solve(S, m - n) - volume
    assert np.log(gaussian_renyi_ratio(m, P, n, Q, alpha)) == pytest.approx(expected, rel=1e-10)


@quick
@given(seed=st.integers(0, 10_000))
def test_gaussian_at_least_one_and_never_falling(seed):
    rng = np.random.default_rng(seed)
    (m, P), (n, Q) = gaussian(rng, 2), gaussian(rng, 2, 2.0)
    values = [gaussian_renyi_ratio(m, P, n, Q, alpha) for alpha in ORDERS]
    assert min(values) >= 1
    assert all(high >= low * (1 - 1e-6) for low, high in itertools.pairwise(values))
    assert gaussian_renyi_ratio(m, P, m, P, np.inf) == pytest.approx(1.0, abs=1e-9)


def test_gaussian_is_infinite_where_the_integral_is():
    assert gaussian_renyi_ratio([0.0], [[2.0]], [0.0], [[1.0]], 2.0) == np.inf
    assert np.isfinite(gaussian_renyi_ratio([0.0], [[2.0]], [0.0], [[1.0]], 1.9))
    assert gaussian_renyi_ratio([1.0], [[1.0]], [0.0], [[1.0]], np.inf) == np.inf


# -- from draws ----------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.5, 2.0])
def test_draws_agree_with_the_closed_form_within_their_error(alpha):
    rng = np.random.default_rng(0)
    P, Q = stats.multivariate_normal([0, 0], np.eye(2)), stats.multivariate_normal([0.4, 0], 2.0)
    truth = gaussian_renyi_ratio([0, 0], np.eye(2), [0.4, 0], 2 * np.eye(2), alpha)
    scores = []
    for _ in range(60):
        x = P.rvs(1000, random_state=rng)
        estimate = sampled_renyi_ratio(P.logpdf(x), Q.logpdf(x), alpha)
        scores.append((estimate.value - truth) / estimate.standard_error)
    # The standardised errors of 60 runs: mean near 0, spread near 1.
    assert abs(np.mean(scores)) < 0.6
    assert 0.7 < np.std(scores) < 1.3


def test_draws_at_log_densities_of_any_size():
    a = np.array([-20_000.0, -19_000.0, -20_500.0])
    assert sampled_renyi_ratio(a, a - 0.5, 3.0).value == pytest.approx(np.exp(0.5))
    assert sampled_renyi_ratio(a, a - 5000, 3.0).value == np.inf


# -- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: renyi_ratio([1, 1], [1, 1], 0.0), "alpha"),
        (lambda: renyi_ratio([1, 1], [1, 1], np.nan), "alpha"),
        (lambda: renyi_ratio([1, 1], [1], 2.0), "agree"),
        (lambda: renyi_ratio([1, -1], [1, 1], 2.0), "negative"),
        (lambda: renyi_ratio([0, 0], [1, 1], 2.0), "no mass"),
        (lambda: renyi_ratio([np.inf, 0], [1, 1], 2.0), "finite"),
        (lambda: gaussian_renyi_ratio([0], [[1]], [0, 1], np.eye(2), 2.0), "covariances"),
        (lambda: gaussian_renyi_ratio([0], [[1]], [0], [[-1]], 2.0), "cov_q"),
        (lambda: gaussian_renyi_ratio([0], [[-1]], [0], [[1]], 2.0), "cov_p"),
        (lambda: sampled_renyi_ratio([0, 1], [0, 1], np.inf), "draws"),
        (lambda: sampled_renyi_ratio([0, 1], [0], 2.0), "equal length"),
        (lambda: sampled_renyi_ratio([0], [0], 2.0), "two draws"),
        (lambda: sampled_renyi_ratio([0, -np.inf], [0, 1], 2.0), "finite"),
        (lambda: sampled_renyi_ratio([0, 1], [0, np.nan], 2.0), "NaN"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
