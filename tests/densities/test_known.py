"""A log-density that the user knows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from anymix.densities.density import KnownDensity


def log_normal_density(X):
    return norm.logpdf(X).sum(axis=1)


def draw(n_samples, random_state):
    return random_state.standard_normal((n_samples, 1))


def test_sampling_then_scoring_gives_the_entropy():
    density = KnownDensity(log_normal_density, draw)
    drawn = density.sample(20_000, random_state=0)
    assert -density.score(drawn) == pytest.approx(norm.entropy(), abs=0.02)
    np.testing.assert_array_equal(drawn, density.sample(20_000, random_state=0))


@given(values=st.lists(st.floats(-50, 50), min_size=1))
def test_scores_are_those_of_the_function(values):
    X = np.array(values)[:, None]
    np.testing.assert_array_equal(
        KnownDensity(log_normal_density).score_samples(X), log_normal_density(X)
    )


def test_is_fitted_from_the_start_and_can_be_cloned():
    density = clone(KnownDensity(log_normal_density, sampler=draw))
    check_is_fitted(density)
    assert density.fit() is density
    assert density.sampler is draw


def test_rows_may_be_anything_with_a_length():
    density = KnownDensity(lambda docs: [-float(len(doc)) for doc in docs])
    np.testing.assert_array_equal(density.score_samples(["a", "bcd"]), [-1.0, -3.0])


def test_zero_density_is_minus_infinity():
    density = KnownDensity(lambda X: np.where(X[:, 0] > 0, 0.0, -np.inf))
    np.testing.assert_array_equal(density.score_samples(np.array([[-1.0], [1.0]])), [-np.inf, 0])


@pytest.mark.parametrize("wrong", [np.zeros(3), np.zeros((2, 1)), 0.0])
def test_a_wrong_shape_is_told(wrong):
    with pytest.raises(ValueError, match=r"one number for each row, shape \(2,\)"):
        KnownDensity(lambda X: wrong).score_samples(np.zeros((2, 1)))


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_what_is_no_log_density_is_told(wrong):
    with pytest.raises(ValueError, match=r"NaN or \+inf"):
        KnownDensity(lambda X: np.array([wrong])).score_samples(np.zeros((1, 1)))


def test_sampling_needs_a_sampler():
    with pytest.raises(ValueError, match="pass a sampler"):
        KnownDensity(log_normal_density).sample(3)
