import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from anymix.monitor import novelty_scores
from anymix.sources.tables import tail_probabilities

DOMAIN = np.repeat([0, 1], [5, 4])
# Whole numbers: ties are common, and affine maps are exact.
tables = arrays(np.float64, (2, 9), elements=st.integers(-50, 50).map(float))
points = arrays(np.float64, (2, 6), elements=st.integers(-60, 60).map(float))


def by_loops(table, reference, domain):
    novelty = []
    for column in table.T:
        best = 0.0
        for k, s in enumerate(column):
            own = reference[k, domain == k]
            p = (1 + sum(o <= s for o in own)) / (len(own) + 1)
            if s < min(own):
                low = np.sort(own)[: (len(own) + 1) // 2]
                b = np.mean([np.median(own) - o for o in low])
                p = (np.exp(-(min(own) - s) / b) if b > 0 else 0.0) / (len(own) + 1)
            best = max(best, p)
        novelty.append(1 - best)
    return np.array(novelty)


@given(points, tables)
def test_equals_the_formula_in_loops(table, reference):
    expected = by_loops(table, reference, DOMAIN)
    np.testing.assert_allclose(novelty_scores(table, reference, DOMAIN), expected, atol=1e-12)


@given(points, tables, st.integers(-1000, 1000), st.sampled_from([0.25, 2.0, 8.0]))
def test_units_and_temperatures_of_a_source_change_nothing(table, reference, shift, factor):
    moved = [np.vstack([factor * t[:1] + shift, t[1:]]) for t in (table, reference)]
    before = novelty_scores(table, reference, DOMAIN)
    np.testing.assert_allclose(novelty_scores(*moved, DOMAIN), before, atol=1e-12)


@given(arrays(np.float64, 9, elements=st.integers(-5, 5).map(float)), st.integers(1, 9))
def test_a_row_of_a_source_is_novel_no_more_often_than_it_may(scores, tenths):
    """Each of n + 1 exchangeable rows in turn against the others: P(p ≤ α) ≤ α, exactly."""
    alpha = tenths / 9
    p = [tail_probabilities(scores[[i]], np.delete(scores, i))[0] for i in range(9)]
    assert np.mean(np.array(p) <= alpha + 1e-12) <= alpha + 1e-12


@pytest.mark.parametrize("mixture", [(1.0, 0.0, 0.0), (0.2, 0.5, 0.3), (0.0, 0.1, 0.9)])
def test_any_mixture_is_rarely_novel_and_far_rows_always_are(planar, mixture):
    rng = np.random.default_rng(0)
    domain = np.repeat([0, 1, 2], 400)
    reference = planar.log_densities(planar.rows(domain, rng))
    traffic = planar.log_densities(planar.rows(rng.choice(3, 1000, p=mixture), rng))
    # 5 % allowed; the excess covers 400 reference rows and 1000 of traffic at four sigma.
    assert np.mean(novelty_scores(traffic, reference, domain) > 0.95) < 0.10
    far = planar.log_densities(np.full((1, 2), 30.0))
    assert novelty_scores(far, reference, domain)[0] > 0.999


def test_beyond_all_rows_farther_is_more_novel():
    scores = tail_probabilities(np.array([-3.0, -2.0, -1.0, -np.inf]), np.arange(10.0))
    assert scores[3] == 0.0 < scores[0] < scores[1] < scores[2] < 1 / 11


def test_a_source_that_calls_its_own_rows_impossible_vouches_for_all():
    assert tail_probabilities(np.array([-np.inf, -9.0]), np.array([-np.inf, 0.0, 1.0]))[0] == 0.5


def test_own_scores_all_alike_have_a_sharp_edge():
    assert tail_probabilities(np.array([0.9, 1.0]), np.ones(3)).tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("table", "reference", "domain", "sentence"),
    [
        (np.zeros(3), np.zeros((2, 9)), DOMAIN, "must be"),
        (np.zeros((3, 4)), np.zeros((2, 9)), DOMAIN, "one row for each source in both"),
        (np.full((2, 4), np.nan), np.zeros((2, 9)), DOMAIN, "NaN"),
        (np.zeros((2, 4)), np.zeros((2, 9)), DOMAIN[:-1], "9 whole numbers"),
        (np.zeros((2, 4)), np.zeros((2, 9)), DOMAIN + 1, "0..1"),
        (np.zeros((2, 4)), np.zeros((2, 9)), np.arange(9) // 8, "2 or more"),
    ],
)
def test_bad_input_gets_a_sentence(table, reference, domain, sentence):
    with pytest.raises(ValueError, match=sentence):
        novelty_scores(table, reference, domain)
