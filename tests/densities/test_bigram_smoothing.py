"""The four smoothings: hand-made numbers, OpenGrm's models, and what discounts must satisfy."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anymix.densities.bigram import BigramModel
from anymix.densities.bigram_formats import read_arpa
from anymix.densities.bigram_table import absolute_discount, katz_discounts

ORACLES = Path(__file__).parents[3] / "shared" / "data" / "oracles"
SMOOTHINGS = ["katz", "kneser_ney", "witten_bell", "absolute"]

# Pairs: begin a 3, a b 2, a end 1, b b 1, b end 2; of the nine next words a is 3, b 3, end 3.
# n_1 = 2, n_2 = 2, n_3 = 1: D = 2/6; Katz with m = 0: d_1 = 2, so .999; d_2 = 3/4;
# d_3 = 4/3, so .999. Different words before a: 1, b: 2, end: 2.
CORPUS = [["a", "b", "b"], ["a", "b"], ["a"]]
BY_HAND = {
    #              begin a             a b                 a end               b b
    "katz": [0.999, 0.75 * 2 / 3, 0.999 / 3, 0.999 / 3],
    "absolute": [
        (3 - 1 / 3) / 3 + 1 / 9 / 3,
        (2 - 1 / 3) / 3 + 2 / 9 / 3,
        (1 - 1 / 3) / 3 + 2 / 9 / 3,
        (1 - 1 / 3) / 3 + 2 / 9 / 3,
    ],
    "kneser_ney": [
        (3 - 1 / 3) / 3 + 1 / 9 / 5,
        (2 - 1 / 3) / 3 + 2 / 9 * 2 / 5,
        (1 - 1 / 3) / 3 + 2 / 9 * 2 / 5,
        (1 - 1 / 3) / 3 + 2 / 9 * 2 / 5,
    ],
    "witten_bell": [3 / 4 + 1 / 4 / 3, 2 / 5 + 2 / 5 / 3, 1 / 5 + 2 / 5 / 3, 1 / 5 + 2 / 5 / 3],
}
BACKOFF_BY_HAND = {
    # of begin, which lists one word of three; of a, which lists two
    "katz": [0.001 / (2 / 3), (1 - 0.5 - 0.333) / (1 / 3)],
    "absolute": [1 / 9, 2 / 9],
    "kneser_ney": [1 / 9, 2 / 9],
    "witten_bell": [1 / 4, 2 / 5],
}


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_equals_the_numbers_worked_out_by_hand(smoothing):
    table = BigramModel(smoothing).fit(CORPUS).table_
    a, b, edge = 0, 1, 2
    listed = table.log_prob(np.array([edge, a, a, b]), np.array([a, b, edge, b]))
    np.testing.assert_allclose(np.exp(listed), BY_HAND[smoothing], rtol=1e-12)
    backoff = np.exp(table.log_backoff[[edge, a]])
    np.testing.assert_allclose(backoff, BACKOFF_BY_HAND[smoothing], rtol=1e-9)


@pytest.mark.skipif(not ORACLES.is_dir(), reason="the OpenGrm models are not beside the project")
@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_equals_opengrm(smoothing):
    """Every unigram, listed pair and back-off weight, within 2e-6 in log10: a rounded file."""
    docs = [line.split() for line in (ORACLES / "kitchen_small.txt").read_text().splitlines()]
    names, theirs = read_arpa(ORACLES / f"kitchen_small.{smoothing}.arpa.gz")
    ours = BigramModel(smoothing, vocabulary=names).fit(docs).table_
    assert len(names) == 986
    np.testing.assert_array_equal(ours.keys, theirs.keys)
    for field in ("log_unigram", "log_backoff", "log_listed"):
        difference = (getattr(ours, field) - getattr(theirs, field)) / np.log(10)
        assert np.abs(difference).max() < 2e-6


@given(excess=st.lists(st.integers(1, 50), min_size=6, max_size=6))
def test_good_turing_frees_the_mass_of_the_pairs_seen_once(excess):
    """sum_r n_r r (1 - d_r) = n_1, here for r n_r that fall with r: then no factor is replaced."""
    n = np.zeros(8, dtype=int)
    for r, more in zip(range(6, 0, -1), excess, strict=True):
        n[r] = (r + 1) * n[r + 1] // r + more
    factors = katz_discounts(np.repeat(np.arange(8), n))
    r = np.arange(1, 6)
    assert np.sum(n[r] * r * (1 - factors[r])) == pytest.approx(n[1])


@given(counts=st.lists(st.integers(1, 12), min_size=1, max_size=60))
def test_discounts_leave_something_and_take_something(counts):
    factors = katz_discounts(np.array(counts))
    assert ((factors > 0) & (factors < 1)).all()
    assert 0 < absolute_discount(np.array(counts)) < 1


def test_a_context_that_lists_every_word_shares_its_reserve_in_proportion():
    model = BigramModel("katz").fit([["a", "a"], ["a"]])
    context = np.zeros(2, dtype=np.int64)
    shares = np.exp(model.table_.log_prob(context, np.arange(2)))
    # n_1 = 1 and n_2 = 2: d_1 = 4 and d_2 = 3/4 (n_3 taken as 1), so .999 x 1 against .75 x 2.
    np.testing.assert_allclose(shares, np.array([0.999, 1.5]) / 2.499, rtol=1e-12)


def test_katz_without_pairs_seen_once_starts_at_the_lowest_count():
    """m = 6 n_6 / (2 n_2) = 1/4, so d_2 = (3 n_3 / (2 n_2) - m) / (1 - m) = 1/3."""
    counts = np.repeat([2, 3, 6], [12, 4, 1])
    assert katz_discounts(counts)[2] == pytest.approx(1 / 3)
