"""Site files on a coarse grid: what cannot be got out of them any more, and what still can be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import logsumexp

from anymix.exchange import SiteTable, bits_for_a_spy, is_rounded
from anymix.exchange.rounding import POWERS, round_outcomes
from anymix.sources import round_responsibilities

LOSSES = ["cross_entropy", "squared"]


def outcomes_of(loss, seed=0, p=3, m=500):
    rng = np.random.default_rng(seed)
    return rng.random((p, m)) if loss == "cross_entropy" else rng.normal(size=(p, m))


@pytest.mark.parametrize("loss", LOSSES)
def test_a_source_has_few_levels(loss):
    found = round_outcomes(outcomes_of(loss, m=5000), loss)
    most = 12 if loss == "cross_entropy" else 2 * POWERS + 1
    assert max(len(np.unique(row)) for row in found) <= most


@pytest.mark.parametrize("loss", LOSSES)
def test_rounding_twice_tells_no_more(loss):
    once = round_outcomes(outcomes_of(loss), loss)
    np.testing.assert_array_equal(round_outcomes(once, loss), once)
    assert is_rounded(once, loss)
    assert not is_rounded(outcomes_of(loss), loss)


@given(arrays(float, (3, 7), elements=st.floats(-1e4, 0.0)))
def test_responsibilities_stay_responsibilities(logs):
    exact = logs - logsumexp(logs, axis=0)
    found = round_responsibilities(exact)
    assert np.abs(logsumexp(found, axis=0)).max() < 1e-9
    # of two sources the likelier one stays so
    assert (np.diff(found, axis=0) * np.diff(exact, axis=0) >= -1e-9).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_the_mean_loss_stays(loss):
    exact = outcomes_of(loss, m=20000)
    found = round_outcomes(exact, loss)
    losses = [
        (-np.log(a) if loss == "cross_entropy" else a**2).mean(axis=1) for a in (exact, found)
    ]
    np.testing.assert_allclose(losses[1], losses[0], rtol=0.1)


def test_one_source_of_wild_errors_leaves_the_others_as_they_are():
    calm = outcomes_of("squared")
    wild = np.concatenate([calm, 1e9 * calm[:1]])
    found = round_outcomes(wild, "squared")
    np.testing.assert_array_equal(found[:3], round_outcomes(calm, "squared"))


def test_numbers_at_the_ends():
    edges = np.array([[0.0, 1.0, 1e-300, 1.0 - 1e-16]])
    found = round_outcomes(edges, "cross_entropy")
    assert found.min() > 0
    assert found.max() == 1
    assert not round_outcomes(np.zeros((2, 4)), "squared").any()
    far = round_responsibilities(np.array([[0.0], [-np.inf]]))
    assert np.isfinite(far).all()


def test_how_likely_a_row_is_stays_at_home():
    log_r = np.log(np.full((2, 3), 0.5))
    table = SiteTable("a", "squared", ("a", "b"), ("", ""), log_r, np.ones((2, 3)), np.arange(3.0))
    assert table.rounded().log_total is None


def test_the_digits_of_a_spy_do_not_pass():
    """A probability that spells out the row, eleven bits for each of four features."""
    rng = np.random.default_rng(0)
    code = rng.integers(2**44, size=200).astype(float)
    h = 0.6 + 0.3 * code / 2**44
    log_r = np.log(np.full((2, 200), 0.5))
    table = SiteTable("a", "cross_entropy", ("a", "b"), ("", ""), log_r, np.stack([h, h]))
    assert len(np.unique(table.outcomes[1])) == 200
    assert len(np.unique(table.rounded().outcomes[1])) <= 3


def test_the_bits_of_a_spy_are_bounded_as_stated():
    """It may choose its probability and its density freely; the honest one is as it is."""
    h = np.exp(-np.exp2(np.linspace(-12, 6, 2001)))
    depth = np.concatenate(
        [np.exp2(np.linspace(-8, 14, 2001)), -np.exp2(np.linspace(-8, 14, 2001))]
    )
    both = np.stack([np.zeros_like(depth), depth])
    log_r = both - logsumexp(both, axis=0)
    patterns = len(np.unique(np.round(round_responsibilities(log_r), 9), axis=1).T)
    levels = len(np.unique(round_outcomes(h[None], "cross_entropy")))
    assert np.log2(patterns * levels) <= bits_for_a_spy("cross_entropy", 2) < 9
