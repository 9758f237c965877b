"""One bandwidth serves columns of one scale: others are named."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from anymix.densities import GaussianKDE
from anymix.densities._scales import column_variances, narrow_share


def patients(n=80):
    rng = np.random.default_rng(0)
    return np.c_[rng.normal(size=(n, 3)), rng.normal(50_000, 20_000, n)]


def test_a_column_of_money_is_named_and_scaling_is_the_remedy():
    X = patients()
    with pytest.warns(UserWarning, match=r"column 3, the widest.*make_pipeline\(StandardScaler"):
        GaussianKDE(random_state=0).fit(X)
    frame = pd.DataFrame(X, columns=["age", "height", "weight", "income"])
    with pytest.warns(UserWarning, match="beside column 'income'"):
        GaussianKDE(1.0).fit(frame)
    make_pipeline(StandardScaler(), GaussianKDE(random_state=0)).fit(frame)


@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
def test_raw_measurements_are_far_beyond_the_limit(load):
    X = load().data
    assert narrow_share(column_variances(X, np.ones(len(X)))) < 2e-5


def word_counts(rng):
    """Zipf's law: a few words are everywhere, most are hardly ever seen."""
    return rng.poisson(20.0 / np.arange(1, 2001), size=(200, 2000)).astype(float)


def sparse_units(rng):
    """Units of a network that fire at different rates, some hardly ever."""
    return np.maximum(rng.normal(rng.uniform(-3, 1, 256), 1.0, size=(200, 256)), 0)


@pytest.mark.parametrize(
    "X",
    [
        word_counts(np.random.default_rng(0)),
        sparse_units(np.random.default_rng(0)),
        load_digits().data,
        # Spreads that differ by thirty still leave the narrow column a say.
        np.random.default_rng(0).normal(size=(100, 2)) * [1.0, 30.0],
        # Rounding is no spread, and a single column has nothing to be compared with.
        np.c_[np.random.default_rng(0).normal(size=100), np.full(100, 0.1) + 1e-17],
        1e9 * np.random.default_rng(0).normal(size=(100, 1)),
        np.c_[np.arange(100.0), 1e9 + np.cumsum(np.full(100, 1e-9))],
    ],
    ids=["words", "units", "pixels", "thirty", "constant", "one", "rounding"],
)
def test_columns_that_one_bandwidth_serves_are_left_alone(X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GaussianKDE(1.0).fit(X)


def test_variances_are_those_of_numpy():
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(50, 3)) * [1, 10, 100] + 5, rng.random(50)
    expected = np.diag(np.cov(X.T, aweights=w, ddof=0))
    np.testing.assert_allclose(column_variances(X, w), expected, rtol=1e-12)
