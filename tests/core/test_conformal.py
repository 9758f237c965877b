"""Conformal p-values by brute force, by exchanging rows, and by closed forms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax

from anymix.core import (
    Conformal,
    Coverage,
    ErrorScale,
    check_alpha,
    crossed_bound,
    errors_at,
    fewest,
    learn_error_scale,
    limits_without,
)
from anymix.core.conformal import TILTS, least_count

seeds = st.integers(0, 10**6)
alphas = st.sampled_from([0.05, 0.1, 0.2, 1 - 0.9, 0.35])


def problem(seed, p=3, K=2, n=4, c=None):
    """Yardsticks, scores of rows, and what K parts say at n new points."""
    rng = np.random.default_rng(seed)
    error_scales = [ErrorScale(rng.uniform(0.5, 2, p), float(rng.choice(TILTS))) for _ in range(K)]
    domain = np.r_[np.arange(p), rng.integers(p, size=rng.integers(20, 60))]
    fold = rng.integers(K, size=domain.size)
    # Ties are common: they count as strange.
    scores = rng.integers(0, 12, domain.size) / 3
    log_r = [log_softmax(2 * rng.normal(size=(p, n)), axis=0) for _ in range(K)]
    errors = [rng.integers(0, 9, (n, c) if c else n) / 2.0 for _ in range(K)]
    return error_scales, scores, fold, domain, log_r, errors


def p_by_hand(k, i, e, given):
    """(1 + #{rows of k that are as strange}) / (n_k + 1), row by row; e[t] is the error of y."""
    error_scales, scores, fold, domain, log_r, _ = given
    count, n = 0, 0
    for s, t, j in zip(scores, fold, domain, strict=True):
        if j == k:
            by, r = error_scales[t], np.exp(log_r[t][:, i])
            n += 1
            count += s >= e[t] / (by.spread @ r) - by.tilt * log_r[t][k, i] - 1e-12
    return (1 + count) / (n + 1)


def p_values(known, errors, log_r):
    counts = known.counts(errors, log_r)
    return (1 + counts) / (known.n.reshape(-1, *[1] * (counts.ndim - 1)) + 1)


@given(seeds, alphas)
def test_p_values_are_those_of_the_definition(seed, alpha):
    case = problem(seed, c=3)
    error_scales, scores, fold, domain, log_r, errors = case
    # Sums in another order must not part what is equal.
    known = Conformal.of(error_scales, scores + 1e-12, fold, domain)
    found, covers = p_values(known, errors, log_r), known.covers(errors, log_r, alpha)
    for k, i, c in np.ndindex(found.shape):
        p = p_by_hand(k, i, [e[i, c] for e in errors], case)
        assert found[k, i, c] == pytest.approx(p, abs=1e-12)
        assert covers[k, i, c] == (p > alpha + 1e-9)


@given(seeds, alphas, st.integers(1, 3))
def test_intervals_hold_all_numbers_with_a_large_p_value(seed, alpha, K):
    case = problem(seed, K=K)
    error_scales, scores, fold, domain, log_r, _ = case
    h = list(np.random.default_rng(seed + 1).normal(size=(K, 4)) * 0.3)
    found = Conformal.of(error_scales, scores, fold, domain).interval(h, log_r, alpha)
    for i, (low, high) in enumerate(found):
        for y in np.r_[np.linspace(-9, 9, 61), low, high, low - 1e-6, high + 1e-6]:
            if not np.isfinite(y):
                continue
            e = [abs(y - one[i]) for one in h]
            best = max(p_by_hand(k, i, e, case) for k in range(3))
            inside = low <= y <= high
            assert inside or best <= alpha + 1e-9
            if K == 1 and low < high and y not in (low, high):
                assert inside == (best > alpha + 1e-9), "of one part the ends are exact"


@given(seeds, alphas, st.integers(1, 4))
def test_ends_are_the_extreme_rows_of_any_source(seed, alpha, K):
    """All rows' intervals, sorted, source by source: none is left out that reaches further."""
    case = problem(seed, K=K)
    error_scales, scores, fold, domain, log_r, _ = case
    h = list(np.random.default_rng(seed + 1).normal(size=(K, 4)) * 2)
    found = Conformal.of(error_scales, scores, fold, domain).interval(h, log_r, alpha)
    for i in range(4):
        low, high = np.inf, -np.inf
        for k in range(3):
            n = int((domain == k).sum())
            least = least_count(n, alpha)
            rows = []
            for s, t in zip(scores[domain == k], fold[domain == k], strict=True):
                by, logs = error_scales[t], log_r[t][:, i]
                R = (s + by.tilt * logs[k]) * (by.spread @ np.exp(logs))
                rows += [(h[t][i] - R, h[t][i] + R)] if R >= 0 else [(np.inf, -np.inf)]
            ends = -np.inf, np.inf
            if least:
                ends = sorted(r[0] for r in rows)[least - 1], sorted(r[1] for r in rows)[-least]
            if ends[0] <= ends[1]:
                low, high = min(low, ends[0]), max(high, ends[1])
        expected = [low, high] if low <= high else [np.mean(h, axis=0)[i]] * 2
        np.testing.assert_allclose(found[i], expected, atol=1e-9)


@pytest.mark.parametrize("n", [9, 19, 20, 57])
def test_one_source_and_one_part_are_split_conformal(n):
    """The ⌈(1 − α)(n + 1)⌉-th smallest error to both sides."""
    rng = np.random.default_rng(n)
    errors = rng.exponential(size=n)
    known = Conformal.of([ErrorScale(np.ones(1))], errors, np.zeros(n, int), np.zeros(n, int))
    found = known.interval([np.array([2.0])], [np.zeros((1, 1))], 0.1)
    half = np.sort(errors)[int(np.ceil(0.9 * (n + 1) - 1e-9)) - 1]
    np.testing.assert_allclose(found, [[2 - half, 2 + half]])


@given(seeds, alphas)
def test_whichever_row_is_the_new_one_at_most_alpha_are_missed(seed, alpha):
    """The proof, in numbers: each row of a source is equally likely to be the new one."""
    rng = np.random.default_rng(seed)
    domain = np.repeat([0, 1], [rng.integers(1, 50), rng.integers(1, 50)])
    scores = rng.integers(0, 15, domain.size).astype(float)
    limits = limits_without(scores, domain, 2, alpha)
    for k in (0, 1):
        rows, missed = np.flatnonzero(domain == k), 0
        for i in rows:
            others = scores[rows[rows != i]]
            p = (1 + (others >= scores[i]).sum()) / (others.size + 1)
            missed += p <= alpha + 1e-9
            assert (scores[i] <= limits[k, i]) == (p > alpha + 1e-9)
        assert missed <= alpha * rows.size + 1e-6
        strangers = np.flatnonzero(domain != k)
        least = least_count(rows.size, alpha)
        expected = np.sort(scores[rows])[-least] if least else np.inf
        assert (limits[k, strangers] == expected).all()


def test_different_scores_miss_exactly_what_is_allowed():
    """n + 1 different scores: ⌊α(n + 1)⌋ of them are missed, no fewer."""
    scores = np.arange(40.0)
    missed = scores > limits_without(scores, np.zeros(40, int), 1, 0.1)[0]
    assert missed.sum() == 4


@given(seeds, alphas)
def test_a_tilt_and_a_scale_cost_no_coverage(seed, alpha):
    """Whatever they are, they only say what a score is: the same count bounds what is missed."""
    rng = np.random.default_rng(seed)
    p, m = 3, 90
    domain, log_r = rng.integers(p, size=m), log_softmax(3 * rng.normal(size=(p, m)), axis=0)
    by = ErrorScale(rng.uniform(0.1, 5, p), rng.uniform(0, 3))
    scores = by.scores(rng.exponential(size=m), log_r, domain)
    inside = scores <= limits_without(scores, domain, p, alpha)[domain, np.arange(m)]
    for k in range(p):
        assert (~inside[domain == k]).sum() <= alpha * (domain == k).sum() + 1e-6


@given(st.integers(2, 500), st.integers(2, 10), st.floats(0.01, 0.5))
def test_the_bound_on_crossed_scores_follows_from_twice_a_mean(n, K, alpha):
    """If (1 + c)/(n + 1) ≤ α, the weighted mean (K + c)/(n + K) is at most half the bound."""
    for c in range(n + 1):
        if (1 + c) / (n + 1) <= alpha:
            half = crossed_bound(np.array([n]), K, alpha)[0] / 2
            assert (K + c) / (n + K) <= half + 1e-9 or half == 0.5


def test_twice_a_mean_of_p_values_can_be_needed_and_is_enough():
    """Two uniform p-values that depend on each other: P(mean ≤ α) is 2α, and never more."""
    u = (np.arange(10**5) + 0.5) / 10**5
    other = np.where(u <= 0.2, 0.2 - u, u)
    assert np.mean((u + other) / 2 <= 0.1 + 1e-12) == pytest.approx(0.2)
    assert crossed_bound(np.array([10**9]), 2, 0.1)[0] == pytest.approx(0.2)


@given(st.floats(0.001, 0.6))
def test_so_many_rows_are_needed_and_no_fewer(alpha):
    n = fewest(alpha)
    assert least_count(n, alpha) >= 1
    assert n == 0 or least_count(n - 1, alpha) == 0


def test_errors_are_distances_or_missing_probability():
    assert errors_at(np.array([1.0, -1.0]), np.array([2.0, 1.0])).tolist() == [1, 2]
    h = np.array([[0.7, 0.3], [0.1, 0.9]])
    np.testing.assert_allclose(errors_at(h, np.array([1, 1])), [0.7, 0.1])


def unequal(n=200, noise=(0.2, 1.0), sharp=8.0, seed=0):
    """Two sources, one noisy; how well x tells them apart is `sharp`."""
    rng = np.random.default_rng(seed)
    domain = np.repeat([0, 1], n)
    log_r = log_softmax(sharp * np.array([domain == 0, domain == 1]), axis=0)
    return np.array(noise)[domain] * np.abs(rng.normal(size=2 * n)), log_r, domain


def mean_size(by, errors, log_r, domain, alpha):
    """Row by row: the largest error that any source accepts there."""
    scores = by.scores(errors, log_r, domain)
    sizes = []
    for i in range(errors.size):
        reach = []
        for k in range(len(log_r)):
            known = np.sort(scores[domain == k])
            reach.append(known[-least_count(known.size, alpha)] + by.tilt * log_r[k, i])
        sizes.append(max(max(reach), 0) * (by.spread @ np.exp(log_r[:, i])))
    return np.mean(sizes)


@pytest.mark.parametrize("sharp", [0.5, 2.0, 8.0])
def test_the_tilt_is_that_of_the_smallest_sets(sharp):
    errors, log_r, domain = unequal(60, sharp=sharp)
    by = learn_error_scale(errors, log_r, domain, 0.1)
    r = np.exp(log_r)
    expected = (10 * errors.mean() + r @ errors) / (10 + r.sum(axis=1))
    np.testing.assert_allclose(by.spread, expected)
    tried = [mean_size(ErrorScale(by.spread, a), errors, log_r, domain, 0.1) for a in TILTS]
    assert mean_size(by, errors, log_r, domain, 0.1) == pytest.approx(min(tried))


def test_where_x_tells_the_sources_apart_each_has_its_own_width():
    """As an oracle would have it, while the largest p-value alone gives all the worst width."""
    errors, log_r, domain = unequal()
    by = learn_error_scale(errors, log_r, domain, 0.1)
    oracle = np.mean([np.sort(errors[domain == k])[-20] for k in (0, 1)])
    plain = mean_size(ErrorScale(np.ones(2)), errors, log_r, domain, 0.1)
    ours = mean_size(by, errors, log_r, domain, 0.1)
    assert ours < 1.1 * oracle
    assert plain > 1.5 * oracle


def test_where_x_tells_nothing_there_is_no_tilt():
    errors, log_r, domain = unequal(sharp=0.0)
    assert learn_error_scale(errors, log_r, domain, 0.1).tilt == 0


def test_perfect_models_and_labels_alone_have_a_plain_yardstick():
    _, log_r, domain = unequal(20)
    assert learn_error_scale(np.zeros(40), log_r, domain, 0.1).spread.tolist() == [1, 1]
    alone = learn_error_scale(np.full(40, 0.5), log_r, domain, 0.1, np.full((40, 1), 0.5))
    assert (alone.spread.tolist(), alone.tilt) == ([0.5, 0.5], 0)


def test_impossible_sources_are_no_fault():
    by, log_r = ErrorScale(np.ones(2)), np.array([[0.0], [-np.inf]])
    known = Conformal.of([by], np.arange(40.0), np.zeros(40, int), np.repeat([0, 1], 20))
    assert np.isfinite(known.interval([np.zeros(1)], [log_r], 0.1)).all()
    tilted = Conformal.of([ErrorScale(np.ones(2), 0.1)], np.arange(40.0), *np.zeros((2, 40), int))
    assert p_values(tilted, [np.zeros(1)], [log_r])[0, 0] == 1


def test_where_no_number_is_left_the_interval_is_the_prediction():
    known = Conformal.of(
        [ErrorScale(np.ones(2), 1.0)], np.zeros(40), np.zeros(40, int), np.repeat([0, 1], 20)
    )
    found = known.interval([np.array([3.0])], [np.log([[0.5], [0.5]])], 0.1)
    assert found.tolist() == [[3, 3]]


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 2, np.nan])
def test_shares_that_are_none_are_refused(alpha):
    with pytest.raises(ValueError, match="is a share between 0 and 1"):
        check_alpha(alpha)


def test_the_sentence_names_the_ground():
    given = 0.1, np.array([50.0, 80.0]), np.ones(2), np.ones(2)
    proven = Coverage(*given, "asymptotic", 0.23, "each by its part", "numbers")
    assert "Intervals miss at most 10 %" in proven.sentence
    assert "at most 23 % at any number of rows: each by its part." in proven.sentence
    measured = Coverage(*given, "measured", 1.0, "they are of fold models")
    assert "measured, not guaranteed: they are of fold models." in str(measured)
    again = Coverage.from_dict(proven.to_dict())
    assert again.sentence == proven.sentence
