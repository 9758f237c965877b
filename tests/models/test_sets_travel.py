"""A model that was saved and read again gives the same sets and intervals, and says the same."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

import anymix
from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor
from anymix.densities import GaussianKDE
from tests.estimators.several_sources import classification, regression
from tests.estimators.test_sets import given

KDE = GaussianKDE(bandwidth=0.8)


def models():
    numbers, labels = regression(60, seed=5), classification(60, seed=5)
    return {
        "given numbers": (DistributionWeightedRegressor.from_sources(given(numbers, Ridge)), False),
        "given labels": (
            DistributionWeightedClassifier.from_sources(given(labels, LogisticRegression)),
            True,
        ),
        "trained numbers": (DistributionWeightedRegressor(density=KDE, cv=3), False),
        "one part": (DistributionWeightedRegressor(Ridge(), density=KDE, cv=2), False),
    }


@pytest.mark.parametrize("case", models())
def test_a_loaded_model_gives_the_same_sets(case, tmp_path):
    model, labels = models()[case]
    draw = classification if labels else regression
    model.fit(*draw(11 if case == "one part" else 60))
    anymix.save(model, tmp_path / "m")
    loaded = anymix.load(tmp_path / "m")
    X = draw(100, seed=1)[0]
    if labels:
        for by_label in (False, True):
            expected = model.predict_set(X, 0.2, by_label=by_label)
            np.testing.assert_array_equal(loaded.predict_set(X, 0.2, by_label=by_label), expected)
    else:
        expected = model.predict_interval(X, 0.2)
        assert np.isfinite(expected).all()
        np.testing.assert_allclose(loaded.predict_interval(X, 0.2), expected, atol=1e-5)
    told, found = model.coverage(0.2), loaded.coverage(0.2)
    assert (found.ground, found.sentence) == (told.ground, told.sentence)
    np.testing.assert_allclose(found.coverage, told.coverage)
    np.testing.assert_allclose(found.size, told.size, rtol=1e-5)
    fresh = draw(40, seed=2)
    ask = "predict_set" if labels else "predict_interval"
    one, other = (getattr(m, ask)(X, 0.2, calibration=fresh) for m in (model, loaded))
    np.testing.assert_allclose(one.astype(float), other.astype(float), atol=1e-5)
