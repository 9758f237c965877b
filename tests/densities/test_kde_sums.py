"""Kernel sums against brute force, where products round badly as well as where they do not."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp
from threadpoolctl import threadpool_limits

from anymix.densities import kernel_sums as sums
from anymix.densities.centres import Kernels, cluster
from anymix.densities.kernel_sums import Chains

DIMENSIONS = [2, 16, 64, 512, 4096]
GRID = 2.0 ** ((7 - np.arange(15)) / 10)


def brute(queries, centres, weights, bandwidths):
    squares = np.array([np.sum((x - centres) ** 2, axis=1) for x in queries])
    heights = -queries.shape[1] * np.log(np.asarray(bandwidths) * np.sqrt(2 * np.pi))
    logs = [logsumexp(-squares / (2 * h * h), b=weights, axis=1) for h in bandwidths]
    return np.array(logs) - np.log(weights.sum()) + heights[:, None]


def assert_promise(found, expected):
    np.testing.assert_allclose(found, expected, atol=sums.ATOL, rtol=sums.RTOL)


def problem(n, d, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + shift, rng.uniform(0.5, 2, n)


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_log_densities_are_those_of_brute_force(d, shift):
    centres, weights = problem(550, d, shift=shift)
    queries = 1.5 * problem(30, d, seed=1)[0] + shift
    queries[0], queries[1] = centres[0], centres[1] + 1e-3
    bandwidths = [*GRID, 0.1]
    found = sums.log_densities(queries, centres, weights, bandwidths)
    assert_promise(found, brute(queries, centres, weights, bandwidths))


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("outlier", [1e7, 1e12])
def test_outliers_do_not_spoil_the_others(d, outlier):
    centres, weights = problem(60, d)
    queries = problem(20, d, seed=1)[0]
    centres[5] += outlier
    queries[0] = centres[5] + 0.5
    found = sums.log_densities(queries, centres, weights, [1.0, 0.01])
    assert_promise(found, brute(queries, centres, weights, [1.0, 0.01]))


@pytest.mark.parametrize("bandwidth", [0.3, 1.0])
def test_correlated_features_keep_the_promise(bandwidth):
    """Smooth, positive rows like images: the running sums of their products are large."""
    rng = np.random.default_rng(0)
    waves = np.cumsum(rng.normal(size=(400, 2000)), axis=1) / 30
    rows = np.abs(waves) * rng.uniform(0, 3, size=(400, 1))
    expected = brute(rows[:100], rows, np.ones(400), [bandwidth])
    assert_promise(sums.log_densities(rows[:100], rows, np.ones(400), [bandwidth]), expected)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_folds_hold_out_their_rows(d):
    rows, weights = problem(120, d)
    folds = np.random.default_rng(1).integers(0, 3, 120)
    bandwidths = GRID
    found = sums.held_out_log_densities(rows, weights, bandwidths, folds)
    for k in range(3):
        out = folds == k
        expected = brute(rows[out], rows[~out], weights[~out], bandwidths)
        assert_promise(found[:, out], expected)


@pytest.mark.parametrize("d", [2, 64])
@pytest.mark.parametrize("n", [2, 513, 1025])  # one row alone in the last tile
def test_without_folds_each_row_is_left_out(n, d):
    rows, weights = problem(n, d)
    found = sums.held_out_log_densities(rows, weights, [1.0, 0.3])
    for i in {0, n // 2, n - 1}:
        rest = np.arange(n) != i
        expected = brute(rows[i : i + 1], rows[rest], weights[rest], [1.0, 0.3])
        assert_promise(found[:, [i]], expected)


def test_held_out_sums_refine_where_products_round():
    rows, weights = problem(40, 64)
    rows[20:] += 1e9
    found = sums.held_out_log_densities(rows, weights, [1.0])
    expected = [
        brute(rows[[i]], np.delete(rows, i, 0), np.delete(weights, i), [1.0])[0, 0]
        for i in range(40)
    ]
    assert_promise(found[0], expected)


def test_means_need_less_than_rows(monkeypatch):
    rows = np.random.default_rng(0).normal(size=(600, 400))
    # log f crosses zero inside this grid, where only the absolute part of the promise is left
    bandwidths = 0.25 * GRID
    rows *= 0.25
    used = []
    plain = sums._pair_sums
    monkeypatch.setattr(sums, "_pair_sums", lambda *args: used.append(args[-1]) or plain(*args))
    weights, folds = np.ones(600), np.arange(600) % 5
    exact = sums.held_out_log_densities(rows, weights, bandwidths, folds)
    assert used == ["float32", "float64"]
    means = sums.held_out_log_densities(rows, weights, bandwidths, folds, for_means=True)
    assert used == ["float32", "float64", "float32"]
    assert_promise(means.mean(axis=1), exact.mean(axis=1))


def test_float32_alone_would_break_the_promise():
    centres, weights = problem(40, 64)
    centres[20:] += 1e4
    frame = sums.Frame(centres, [1.0])
    logs = sums._query_sums(centres, centres, weights, frame, "float32")
    logs += frame.log_heights - np.log(weights.sum())
    error = np.abs(logs - brute(centres, centres, weights, [1.0]))[0]
    norms = frame.norms(centres)
    bound = sums._rounding(logs, norms, norms.max(), frame, "float32")
    doubtful = ~sums._kept(bound, logs)[0]
    assert error[doubtful].max() > 0.1
    assert error[~doubtful].max(initial=0.0) < sums.ATOL


def test_far_centres_about_a_query_in_the_middle_are_told_apart():
    """Log f is near 0 as height and distance cancel, so only the absolute promise counts."""
    h = np.exp(-12.5) / np.sqrt(2 * np.pi)
    half = np.random.default_rng(0).normal(size=(30, 400))
    half *= 100 * h / np.linalg.norm(half, axis=1, keepdims=True)
    centres, query = np.vstack([half, -half]), np.zeros((1, 400))
    found = sums.log_densities(query, centres, np.ones(60), [h])
    expected = brute(query, centres, np.ones(60), [h])
    assert abs(expected[0, 0]) < 10
    assert_promise(found, expected)
    frame = sums.Frame(centres, [h])
    reach = frame.norms(query), frame.norms(centres).max()
    assert not sums._kept(sums._rounding(found, *reach, frame, "float32"), found).any()


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 30),
    d=st.integers(1, 50),
    log_scale=st.floats(-6, 6),
    log_bandwidth=st.floats(-3, 3),
)
def test_any_scale_keeps_the_promise(seed, n, d, log_scale, log_bandwidth):
    rng = np.random.default_rng(seed)
    centres = rng.standard_cauchy(size=(n, d)) * 10.0**log_scale
    queries = np.vstack([centres[:3], rng.standard_cauchy(size=(3, d)) * 10.0**log_scale])
    weights = rng.uniform(0.1, 1, n)
    h = 10.0 ** (log_scale + log_bandwidth)
    assert_promise(
        sums.log_densities(queries, centres, weights, [h, h / np.sqrt(2)]),
        brute(queries, centres, weights, [h, h / np.sqrt(2)]),
    )


def test_threads_change_nothing():
    rows, weights = problem(1300, 40)
    folds = np.arange(1300) % 5
    both = sums.held_out_log_densities(rows, weights, [1.0], folds)
    with threadpool_limits(1):
        alone = sums.held_out_log_densities(rows, weights, [1.0], folds)
    np.testing.assert_allclose(alone, both, rtol=1e-6)


@given(weights=st.lists(st.floats(1e-30, 1), min_size=1, max_size=9))
def test_sums_of_others_are_exact(weights):
    expected = [math.fsum(weights[:i] + weights[i + 1 :]) for i in range(len(weights))]
    np.testing.assert_allclose(sums._sums_of_others(np.array(weights)), expected, rtol=1e-12)


def test_the_default_grid_needs_five_exponentials():
    chains = Chains(0.37 * GRID, np.ones(2)).chains
    assert [len(chain) for chain in chains] == [3] * 5
    assert sorted(i for chain in chains for i in chain) == list(range(15))


@given(seed=st.integers(0, 2**32 - 1), log_ratio=st.floats(0, 29), gap=st.floats(0, 15))
def test_weights_of_any_size_keep_the_promise(seed, log_ratio, gap):
    rng = np.random.default_rng(seed)
    centres = np.vstack([rng.normal(size=(300, 2)), rng.normal(size=(30, 2)) + gap])
    weights = np.append(np.ones(300), np.full(30, 10.0**-log_ratio))
    bandwidths = 2.0 ** -np.arange(0, 2, 0.5)
    assert_promise(
        sums.log_densities(centres[-40:], centres, weights, bandwidths),
        brute(centres[-40:], centres, weights, bandwidths),
    )


@given(bandwidths=st.lists(st.floats(0.5, 4), min_size=1, max_size=9), axis=st.integers(0, 1))
def test_chains_give_the_sums_of_exponentials(bandwidths, axis):
    chains = Chains(np.array(bandwidths), np.ones(2))
    products = -np.random.default_rng(0).exponential(20, size=(6, 9))
    weights = np.linspace(1, 2, products.shape[axis])
    column = weights[:, None] if axis == 0 else weights
    expected = [
        logsumexp(products * (max(bandwidths) / h) ** 2, axis=axis, b=column) for h in bandwidths
    ]
    np.testing.assert_allclose(chains.log_sums(products, weights, axis), expected, atol=1e-5)


def test_chains_are_short_where_weights_differ():
    bandwidths = np.array([4.0, 2.0, np.sqrt(8), 1.0, np.sqrt(2), 3.0])
    assert Chains(bandwidths, np.ones(2)).chains == [[0, 2, 1], [5], [4, 3]]
    n_chains = [
        len(Chains(np.sqrt([4, 2, 1]), np.array([1, 1 / w])).chains) for w in (1, 1e6, 1e20)
    ]
    assert n_chains == [1, 2, 3]


def test_kernels_with_a_common_variance_are_a_wider_bandwidth():
    centres, weights = problem(50, 3)
    queries = problem(20, 3, seed=1)[0]
    kernels = Kernels(centres, weights / weights.sum(), np.full(50, 0.5**2))
    assert_promise(
        kernels.log_densities(queries, [1.2, 0.3]),
        brute(queries, centres, weights, [1.3, np.hypot(0.3, 0.5)]),
    )


def test_clusters_keep_mass_mean_and_variance():
    rows, weights = problem(400, 3)
    found = cluster(rows, weights, 12, np.random.RandomState(0))
    w = weights / weights.sum()
    mean, total = w @ rows, np.sum(w @ (rows - w @ rows) ** 2)
    np.testing.assert_allclose(found.weights.sum(), 1)
    np.testing.assert_allclose(found.weights @ found.centres, mean)
    between = found.weights @ np.sum((found.centres - mean) ** 2, axis=1)
    np.testing.assert_allclose(between + 3 * found.weights @ found.variances, total)
