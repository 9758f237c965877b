"""One column in a few numbers: it sums to one, matches its draws and tells no row's value."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import kstest, norm

from anymix.densities.marginals import (
    LEVELS,
    Marginal,
    atoms_of,
    centre_and_scale,
    pooled_log_density,
)

ONE = np.ones(1)


def spiky(n=2000, seed=0):
    """Normal numbers, a spike at 0 and gaps."""
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(3, 2, n), np.zeros(n // 2), np.full(n // 4, np.nan)])


def total(parts, weights):
    """Sum of gaps and atoms, and the integral of the rest."""
    values = atoms_of(parts, weights)[0]
    ends = sorted({q for part in parts for q in part.quantiles})
    shares = np.exp(pooled_log_density(parts, weights, values)).sum() if values.size else 0.0
    if not ends:
        return shares + weights @ [part.gaps for part in parts]
    width = 40 * max(ends[1] - ends[0], ends[-1] - ends[-2], ends[-1] - ends[0])
    edges = [ends[0] - width, *ends, ends[-1] + width]
    inside = sum(
        quad(lambda x: np.exp(pooled_log_density(parts, weights, np.array([x]))[0]), a, b)[0]
        for a, b in pairwise(edges)
    )
    return shares + inside + weights @ [part.gaps for part in parts]


@pytest.mark.parametrize(
    "column",
    [spiky(300), np.arange(40.0), np.repeat([1.0, 2.0, 7.0], 20), np.full(9, np.nan), np.ones(9)],
    ids=["spiky", "even", "codes", "empty", "constant"],
)
def test_it_sums_to_one(column):
    part = Marginal.of(column, 5)
    assert total([part], ONE) == pytest.approx(1, abs=1e-5)
    assert part.gaps + sum(part.shares) + part.body == pytest.approx(1, abs=1e-12)


def test_the_mixture_of_two_sites_sums_to_one():
    parts = [Marginal.of(spiky(200), 5), Marginal.of(np.repeat([0.0, 3.0, np.nan], 30), 5)]
    assert total(parts, np.array([0.3, 0.7])) == pytest.approx(1, abs=1e-5)


def test_draws_match_the_density():
    column = spiky(5000)
    part = Marginal.of(column, 5)
    drawn = part.sample(20_000, np.random.RandomState(0))
    assert np.isnan(drawn).mean() == pytest.approx(np.isnan(column).mean(), abs=0.01)
    assert (drawn == 0).mean() == pytest.approx(np.mean(column == 0), abs=0.015)
    body = drawn[(drawn != 0) & ~np.isnan(drawn)]
    # An independent value: the rows were drawn from this normal distribution.
    assert kstest(body, norm(3, 2).cdf).statistic < 0.03
    grid = np.linspace(-2, 8, 11)
    found = np.exp(pooled_log_density([part], ONE, grid + 0.01))
    share = part.body * norm(3, 2).pdf(grid + 0.01)
    np.testing.assert_allclose(found, share, atol=0.2 * share.max())


def test_tails_are_exponential_far_beyond_the_ends():
    part = Marginal.of(np.random.default_rng(0).normal(size=500), 5)
    far = pooled_log_density([part], ONE, np.array([1e3, 2e3, -1e6, 1e12]))
    assert np.isfinite(far).all()
    assert far[0] - far[1] > 500
    drawn = part.sample(50_000, np.random.RandomState(1))
    assert np.mean(drawn > part.quantiles[-1]) == pytest.approx(part.tail, abs=0.002)
    beyond = drawn[drawn > part.quantiles[-1]] - part.quantiles[-1]
    assert beyond.mean() == pytest.approx((part.quantiles[-1] - part.quantiles[-2]) / 2, rel=0.3)


def test_codes_are_drawn_as_codes_and_strays_are_left_out():
    column = np.concatenate([np.repeat([1.0, 2.0, 4.0], [50, 30, 20]), [9.0, 9.0]])
    part = Marginal.of(column, 5)
    assert part.values == (1.0, 2.0, 4.0)
    assert part.shares == pytest.approx((0.5, 0.3, 0.2))
    assert set(part.sample(500, np.random.RandomState(0))) == {1.0, 2.0, 4.0}
    unseen = pooled_log_density([part], ONE, np.array([9.0, np.nan]))
    np.testing.assert_allclose(unseen, np.log(1e-9))


@given(
    st.lists(st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1.0, np.nan]), min_size=1, max_size=200),
    st.integers(1, 9),
)
def test_no_number_is_a_single_rows(values, min_count):
    column = np.array(values)
    part = Marginal.of(column, min_count)
    least = min(min_count, len(column))
    for value, share in zip(part.values, part.shares, strict=True):
        assert np.sum(column == value) >= least
        assert share > 0
    rest = np.sort(column[~np.isnan(column) & ~np.isin(column, part.values)])
    if part.body:
        assert len(part.quantiles) <= max(2, min(LEVELS, len(rest) // least))
        # A mean of the first rows, in which one far value counts as a nearer one.
        slack = 1e-9 * (1 + np.abs(rest).max())
        assert rest[0] - slack <= part.quantiles[0] <= rest[least - 1] + slack
        assert np.all(np.diff(part.quantiles) > 0)
    assert np.isfinite(pooled_log_density([part], ONE, column)).all()
    assert Marginal.from_dict(part.to_dict(), None) == part


def test_words_of_few_rows_are_gaps():
    part = Marginal.of_codes(np.array([0.0] * 8 + [1.0] * 2 + [2.0] * 8 + [np.nan] * 6), 3, 5)
    assert part.values == (0.0, 2.0)
    assert part.gaps == pytest.approx(8 / 24)
    assert part.recoded([5, 1, -1]) == Marginal(part.gaps + part.shares[1], (5.0,), (8 / 24,))
    odd = Marginal.of_codes(np.array([-1.0, 0.5, 7.0, 1.0]), 2, 1)
    assert odd.values == (1.0,)


def test_median_and_scale_are_those_of_the_rows():
    column = np.random.default_rng(0).gamma(3, 2, size=4000)
    median, scale = centre_and_scale([Marginal.of(column, 5)], ONE)
    assert median == pytest.approx(np.median(column), rel=0.05)
    assert scale == pytest.approx(column.std(), rel=0.05)
    assert centre_and_scale([Marginal.of(np.full(20, 7.0), 5)], ONE) == (7.0, 1.0)
    assert centre_and_scale([Marginal(gaps=1.0)], ONE) == (0.0, 1.0)


SOUND = {"gaps": 0.25, "values": [1.0], "shares": [0.25], "body": 0.5}
SOUND |= {"quantiles": [0.0, 2.0, 3.0], "tail": 0.1}


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"gaps": 0.3}, "sum to 1"),
        ({"gaps": -0.25, "body": 1.0}, "below 0"),
        ({"gaps": "much"}, "non-numeric"),
        ({"gaps": True}, "non-numeric"),
        ({"gaps": float("nan")}, "non-numeric"),
        ({"values": [1.0, 2.0]}, "no share"),
        ({"values": 1.0}, "not a list"),
        ({"values": [2.0, 1.0], "shares": [0.2, 0.05]}, "do not increase"),
        ({"quantiles": [0.0, 3.0, 2.0]}, "do not increase"),
        ({"quantiles": [0.0]}, "fewer than 2"),
        ({"quantiles": [0.0, float("inf")]}, "non-numeric"),
        ({"quantiles": [1.0, 1.0 + 1e-15]}, "hardly differ"),
        ({"quantiles": list(range(2000))}, "more than 1000"),
        ({"tail": 0.5}, "tail"),
        ({"tail": 0}, "tail"),
        ({"more": 1}, "other parts"),
    ],
)
def test_strangers_are_not_trusted(change, cause):
    assert Marginal.from_dict(SOUND, None).body == 0.5
    with pytest.raises(ValueError, match=cause):
        Marginal.from_dict(SOUND | change, None)


def test_a_category_must_be_listed():
    with pytest.raises(ValueError, match="does not list"):
        Marginal.from_dict({"gaps": 0.5, "values": [3.0], "shares": [0.5]}, 3)
    with pytest.raises(ValueError, match="not an object"):
        Marginal.from_dict([], 3)


def test_equal_values_that_are_too_few_to_tell_are_pulled_apart():
    part = Marginal.of(np.array([1.0, 1.0, 1.0, 1.0, 5.0, 6.0, 7.0, 7.0, 7.0, 7.0]), 5)
    assert not part.values
    assert total([part], ONE) == pytest.approx(1, abs=1e-5)
