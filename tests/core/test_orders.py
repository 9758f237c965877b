import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anymix.core import (
    Assumptions,
    best_hoelder,
    gaussian_renyi_ratio,
    nearest_mixture,
    renyi_ratio,
)
from anymix.core.guarantees.bounds import hoelder

quick = settings(deadline=None)
seeds = st.integers(0, 100_000)


def random_case(seed):
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.full(8, 0.5), 2) + 1e-6
    losses = rng.uniform(0, 2, 8) ** 3
    return p / p.sum(), q / q.sum(), losses


@quick
@given(seed=seeds)
def test_no_order_of_a_fine_grid_is_better_and_the_bound_holds(seed):
    p, q, losses = random_case(seed)
    L, M = float(q @ losses), float(losses.max())
    best = best_hoelder(L, lambda alpha: renyi_ratio(p, q, alpha), M)
    orders = [*(1 / np.linspace(0.005, 0.96, 400)), np.inf]
    least = min(hoelder(L, renyi_ratio(p, q, alpha), alpha, M) for alpha in orders)
    assert best.value <= least * (1 + 1e-5)
    assert p @ losses <= best.value * (1 + 1e-9)
    assert best.value == pytest.approx(hoelder(L, best.divergence, best.alpha, M))


@quick
@given(seed=seeds)
def test_the_logarithm_of_the_bound_is_convex_in_one_over_alpha(seed):
    p, q, losses = random_case(seed)
    L, M = float(q @ losses), 1e9
    t = np.linspace(0.02, 0.98, 49)
    logs = np.log([hoelder(L, renyi_ratio(p, q, 1 / s), 1 / s, M) for s in t])
    assert np.diff(logs, 2).min() >= -1e-9


def test_two_gaussians_have_their_best_order_in_closed_form():
    """log of the bound: (1 − t)(log L + δ²/2t) + t log M, least at t² = δ²/2 / log(M/L)."""
    loss, M, delta = 0.01, 5.0, 0.7

    def divergence(alpha):
        return gaussian_renyi_ratio([0.0], [[1.0]], [delta], [[1.0]], alpha)

    t = np.sqrt(delta**2 / 2 / np.log(M / loss))
    best = best_hoelder(loss, divergence, M)
    assert best.alpha == pytest.approx(1 / t, rel=1e-3)
    expected = (1 - t) * (np.log(loss) + delta**2 / (2 * t)) + t * np.log(M)
    assert np.log(best.value) == pytest.approx(expected, abs=1e-6)


def test_an_equal_target_needs_the_order_infinity_and_a_far_one_has_no_bound_but_m():
    same = best_hoelder(0.1, lambda alpha: 1.0, 3.0)
    assert (same.alpha, same.value) == (np.inf, pytest.approx(0.1))
    assert best_hoelder(0.1, lambda alpha: np.inf, 3.0).value == 3.0


def test_the_largest_of_several_divergences_counts():
    p, q, _ = random_case(1)
    pair = best_hoelder(0.1, lambda a: [1.0, renyi_ratio(p, q, a)], 2.0)
    assert pair == best_hoelder(0.1, lambda a: renyi_ratio(p, q, a), 2.0)


def test_a_table_gives_its_best_entry():
    table = {2.0: 1.5, 4.0: [1.2, 2.0], np.inf: 9.0}
    values = {a: hoelder(0.1, d, a, 2.0) for a, d in table.items()}
    best = best_hoelder(0.1, table, 2.0)
    assert best.value == min(values.values())
    assert values[best.alpha] == best.value
    words = Assumptions(alpha=best.alpha, target_divergence=best.divergence)
    words.check()


def test_over_mixtures_too():
    rng = np.random.default_rng(3)
    T, D = rng.dirichlet(np.ones(9)), rng.dirichlet(np.full(9, 0.5), 3) + 1e-6
    D /= D.sum(axis=1, keepdims=True)
    best = best_hoelder(0.05, lambda a: nearest_mixture(T, D, a).value, 4.0)
    orders = (1.2, 1.5, 2.0, 3.0, 6.0, 20.0, np.inf)
    fixed = [hoelder(0.05, nearest_mixture(T, D, a).value, a, 4.0) for a in orders]
    assert best.value <= min(fixed) + 1e-9


@pytest.mark.parametrize(
    ("loss", "divergence", "M", "message"),
    [
        (-0.1, {2.0: 1.0}, 1.0, "loss must be"),
        (0.1, {2.0: 1.0}, np.inf, "loss_bound"),
        (0.1, {}, 1.0, "orders above 1"),
        (0.1, {1.0: 1.0}, 1.0, "orders above 1"),
    ],
)
def test_bad_input_is_named(loss, divergence, M, message):
    with pytest.raises(ValueError, match=message):
        best_hoelder(loss, divergence, M)
