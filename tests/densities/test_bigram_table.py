"""Drawing from a table: the inverse distribution function at a fine grid must give P(w | h)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anymix.densities import bigram_table
from anymix.densities.bigram_table import SMOOTHINGS, BigramTable, _Inverse, smooth_counts

GRID = 4000


def random_table(seed, size, n_steps, smoothing):
    rng = np.random.default_rng(seed)
    share = rng.dirichlet(np.full(size, 0.5))
    contexts, nexts = rng.choice(size, n_steps, p=share), rng.choice(size, n_steps, p=share)
    keys, counts = np.unique(contexts * size + nexts, return_counts=True)
    return smooth_counts(keys, counts, size, smoothing, counts > 0)


@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(1, 9),
    n_steps=st.integers(1, 120),
    smoothing=st.sampled_from(sorted(SMOOTHINGS)),
)
def test_inverse_at_a_grid_gives_the_probabilities(seed, size, n_steps, smoothing):
    """Each word owns at most two intervals of [0, 1), so its grid points err by less than 3."""
    table = random_table(seed, size, n_steps, smoothing)
    draw = _Inverse(table)
    uniforms = (np.arange(GRID) + 0.5) / GRID
    for h in range(size):
        drawn = draw(np.full(GRID, h), uniforms)
        expected = np.exp(table.log_prob(np.full(size, h), np.arange(size)))
        np.testing.assert_allclose(np.bincount(drawn, minlength=size), GRID * expected, atol=3)


def test_uniform_numbers_next_to_an_edge_stay_in_their_row():
    """h + u rounds up to h + the listed mass, and the next entry is of another context."""
    table = random_table(0, 40, 200, "absolute")
    draw = _Inverse(table)
    contexts = np.unique(table.pairs[0])
    drawn = draw(contexts, np.nextafter(draw.listed[contexts], 0.0))
    last = table.pairs[1][np.searchsorted(table.pairs[0], contexts, side="right") - 1]
    np.testing.assert_array_equal(drawn, last)
    drawn = draw(np.arange(40), np.full(40, np.nextafter(1.0, 0.0)))
    assert ((drawn >= 0) & (drawn < 40)).all()


def test_a_table_that_lists_nothing_is_the_unigram_model():
    table = BigramTable(np.log([0.25, 0.75]), np.zeros(2), np.empty(0, np.int64), np.empty(0))
    np.testing.assert_allclose(table.sums(), 1.0)
    ids, lengths = table.sample(4000, np.random.RandomState(0))
    assert len(ids) == lengths.sum()
    assert lengths.mean() == pytest.approx(1 / 3, abs=0.05)


def test_a_model_that_never_ends_is_stopped(monkeypatch):
    monkeypatch.setattr(bigram_table, "MAX_WORDS", 50)
    table = BigramTable(np.log([1.0, 1e-300]), np.zeros(2), np.empty(0, np.int64), np.empty(0))
    with pytest.raises(ValueError, match="more than 50 words"):
        table.sample(2, np.random.RandomState(0))
