"""Upper confidence bounds on sampled divergences: coverage where the truth is known."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from anymix.core import gaussian_renyi_ratio, sampled_renyi_ratio, sampled_renyi_upper_bound
from anymix.core.guarantees.nearest import nearest_mixture, sampled_nearest_mixture

P = stats.norm(0, 1)


def mixed(shift):
    """Q = 0.9 N(shift, 1) + 0.1 P, so that P/Q ≤ 10."""
    Q = stats.norm(shift, 1)
    return lambda x: np.logaddexp(np.log(0.9) + Q.logpdf(x), np.log(0.1) + P.logpdf(x))


@pytest.mark.parametrize("alpha", [2.0, 4.0])
@pytest.mark.parametrize("shift", [0.5, 1.5])
def test_the_exact_bound_fails_no_more_often_than_it_says(alpha, shift):
    log_q, rng = mixed(shift), np.random.default_rng(0)

    def integrand(x):
        return P.pdf(x) * np.exp((alpha - 1) * (P.logpdf(x) - log_q(x)))

    truth = quad(integrand, -12, 12, epsabs=1e-12)[0] ** (1 / (alpha - 1))
    bounds = []
    for _ in range(200):
        x = rng.normal(size=400)
        found = sampled_renyi_upper_bound(P.logpdf(x), log_q(x), alpha, 10.0, 0.05, rng)
        assert found.exact
        assert found.trusted
        bounds.append(found.value)
    # 5 % of 200 is 10; more than 17 would happen in 1.5 % of all such tests.
    assert np.sum(np.array(bounds) < truth) <= 17
    assert np.mean(bounds) < 3 * truth
    assert max(bounds) <= 10.0


def test_without_a_bound_on_the_ratio_it_is_an_estimate_and_says_so():
    """α = 4 and means 1.5 apart: nearly all weight sits on points that no draw meets."""
    truth = gaussian_renyi_ratio([0.0], [[1.0]], [1.5], [[1.0]], 4.0)
    rng, Q, failures = np.random.default_rng(1), stats.norm(1.5, 1), 0
    for _ in range(60):
        x = rng.normal(size=1000)
        found = sampled_renyi_upper_bound(P.logpdf(x), Q.logpdf(x), 4.0)
        assert not found.exact
        assert not found.trusted
        assert not sampled_renyi_ratio(P.logpdf(x), Q.logpdf(x), 4.0).trusted
        failures += found.value < truth
    assert failures > 30


@pytest.mark.parametrize("shift", [0.5, 1.0])
def test_trusted_estimates_cover(shift):
    truth = gaussian_renyi_ratio([0.0], [[1.0]], [shift], [[1.0]], 2.0)
    rng, Q, hits = np.random.default_rng(2), stats.norm(shift, 1), []
    for _ in range(200):
        x = rng.normal(size=1000)
        found = sampled_renyi_ratio(P.logpdf(x), Q.logpdf(x), 2.0)
        if found.trusted:
            hits.append(abs(found.value - truth) <= 1.96 * found.standard_error)
    assert len(hits) > 100
    assert np.mean(hits) > 0.89


def test_equal_distributions_are_at_one_and_weights_all_count():
    a = np.array([-1.0, -2.0, -3.0, -2.5])
    found = sampled_renyi_ratio(a, a, 3.0)
    assert found[:3] == (pytest.approx(1.0), pytest.approx(0.0), pytest.approx(4.0))
    assert sampled_renyi_upper_bound(a, a, 3.0).value == pytest.approx(1.0)
    # Nothing but 1 can be the largest ratio of equal densities.
    assert sampled_renyi_upper_bound(a, a, 3.0, largest_ratio=1.0).value == pytest.approx(1.0)


def test_log_densities_of_any_size():
    a = np.linspace(-20_000.0, -19_000.0, 50)
    found = sampled_renyi_upper_bound(a, a - 0.5, 3.0, largest_ratio=np.exp(0.5))
    assert found.value == pytest.approx(np.exp(0.5))


def test_the_error_of_the_nearest_mixture_is_the_spread_of_its_value():
    rng = np.random.default_rng(3)
    sources = [stats.norm(-1, 1), stats.norm(1, 1)]
    T = stats.norm(0.2, 1.0)
    found = []
    for _ in range(80):
        x = T.rvs(500, random_state=rng)
        log_d = np.stack([s.logpdf(x) for s in sources])
        found.append(sampled_nearest_mixture(T.logpdf(x), log_d, 2.0))
    spread = np.std([one.value for one in found])
    assert np.median([one.standard_error for one in found]) == pytest.approx(spread, rel=0.3)
    assert all(one.trusted for one in found)
    assert nearest_mixture([0.5, 0.5], [[1, 0], [0, 1]], 2.0).standard_error == 0


def test_a_target_beyond_all_sources_is_not_trusted():
    found = sampled_nearest_mixture([0.0, 0.0], [[0.0, -np.inf]], 2.0)
    assert found.value == np.inf
    assert not found.trusted


@pytest.mark.parametrize(
    ("alpha", "largest", "message"),
    [
        (1.0, 9.0, "above 1 and finite"),
        (np.inf, 9.0, "above 1 and finite"),
        (2.0, 0.5, "at least 1"),
        (2.0, 1.5, "at a draw"),
    ],
)
def test_bad_input_is_named(alpha, largest, message):
    with pytest.raises(ValueError, match=message):
        sampled_renyi_upper_bound([0.0, 0.0], [-1.0, 0.0], alpha, largest)
