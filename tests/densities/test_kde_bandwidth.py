"""Rules of thumb and the search for a bandwidth."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import gaussian_kde

from anymix.densities import bandwidth
from anymix.densities.kernel_sums import held_out_log_densities


@pytest.mark.parametrize("rule", ["scott", "silverman"])
@pytest.mark.parametrize("d", [1, 3])
def test_rules_are_scipys_times_the_spread(rule, d):
    rng = np.random.default_rng(0)
    rows, weights = rng.normal(size=(40, d)), rng.uniform(0.2, 1, 40)
    factor = gaussian_kde(rows.T, bw_method=rule, weights=weights).factor
    found = getattr(bandwidth, rule)(rows, weights)
    assert found == pytest.approx(factor * bandwidth.spread(rows, weights))


def test_spread_is_the_mean_standard_deviation():
    rows = np.random.default_rng(0).normal(size=(2000, 3)) * [1, 2, 3] + 1e6
    expected = np.sqrt(rows.var(axis=0).mean())
    assert bandwidth.spread(rows, np.ones(2000)) == pytest.approx(expected)
    assert bandwidth.spread(np.full((7, 2), 0.1), np.ones(7)) == 0


@pytest.mark.parametrize("d", [1, 8, 100])
def test_the_pilot_is_near_the_best_bandwidth(d):
    rows, weights = np.random.default_rng(0).normal(size=(500, d)), np.ones(500)
    pilot = bandwidth.pilot_grid(rows, weights, np.random.RandomState(0))[7]
    best = minimize_scalar(
        lambda log_h: -held_out_log_densities(rows, weights, np.exp(log_h)).mean(),
        bounds=(np.log(pilot / 4), np.log(pilot * 4)),
        method="bounded",
    )
    assert np.exp(abs(best.x - np.log(pilot))) < 1.5


@given(peak=st.floats(-20, 20), start=st.floats(-3, 3))
def test_climbing_ends_with_the_best_inside(peak, start):
    grid, scores = bandwidth.climb(
        lambda h: -np.abs(np.log2(h) - peak), 2.0 ** (start - np.arange(5))
    )
    best = int(np.argmax(scores))
    assert 0 < best < len(grid) - 1
    assert abs(np.log2(grid[best]) - peak) <= 0.5 + 1e-9
    np.testing.assert_allclose(grid[:-1] / grid[1:], 2)


def test_climbing_without_end_is_told():
    with pytest.raises(ValueError, match="still rising at a bandwidth of"):
        bandwidth.climb(lambda h: -np.log(h), np.array([4.0, 2.0, 1.0]))


@given(rows=st.lists(st.tuples(st.integers(-1, 1), st.integers(0, 1)), min_size=1, max_size=20))
def test_merged_rows_carry_the_weights(rows):
    merged, weights = bandwidth.merge_repeats(np.array(rows, dtype=float), np.ones(len(rows)))
    assert [tuple(row) for row in merged] == list(dict.fromkeys(rows))
    assert weights.tolist() == [rows.count(tuple(row)) for row in merged]


def test_minus_zero_is_zero():
    merged, weights = bandwidth.merge_repeats(np.array([[0.0], [-0.0]]), np.ones(2))
    assert len(merged) == 1
    assert weights.tolist() == [2.0]
