"""A density far above all others: `fit` goes on, and names the source that lies, not the honest."""

import warnings

import numpy as np
import pytest

from anymix import DistributionWeightedRegressor, Source
from anymix.core import Problem
from anymix.estimators._description import claims_all

CENTRES = {"north": -2.0, "south": 2.0}
HEIGHTS = (300.0, 1e6, 1e99)


def rows(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(centre, size=(n, 2)) for centre in CENTRES.values()])
    return X, np.abs(X[:, 0]), np.repeat(list(CENTRES), n)


def sources(height):
    honest = [
        Source(
            name,
            lambda X, c=centre: np.sign(c) * X[:, 0],
            lambda X, c=centre: -0.5 * ((X - c) ** 2).sum(axis=1),
        )
        for name, centre in CENTRES.items()
    ]
    liar = Source("evil", lambda X: 0 * X[:, 0], lambda X: np.full(len(X), float(height)))
    return [*honest, liar]


def fitted(height, **settings):
    X, y, domain = rows()
    X, y = np.r_[X, X[:30] + 0.01], np.r_[y, np.zeros(30)]
    model = DistributionWeightedRegressor.from_sources(sources(height), random_state=0, **settings)
    return model.fit(X, y, sample_domain=np.r_[domain, np.repeat("evil", 30)])


@pytest.mark.parametrize("height", HEIGHTS)
@pytest.mark.parametrize("calibrate", [False, True])
def test_a_fit_with_a_density_far_above_names_its_source(height, calibrate):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fitted(height, calibrate=calibrate)
    said = [str(one.message) for one in caught]
    assert any(
        text.startswith("the density of evil is so far above that of north") for text in said
    )
    assert not any(text.startswith("the density of north") for text in said)
    assert claims_all(model.tables_) == 2
    assert np.isfinite(model.predict(rows(seed=1)[0])).all()
    assert np.isfinite(model.z_).all()


def test_logarithms_that_no_density_has_are_refused_by_name():
    with pytest.raises(
        ValueError, match="source 'evil': its density returned the logarithm 1e\\+300"
    ):
        fitted(1e300)


def test_honest_densities_are_not_named():
    X, y, domain = rows()
    model = DistributionWeightedRegressor.from_sources(sources(0.0)[:2], random_state=0)
    assert claims_all(model.fit(X, y, sample_domain=domain).tables_) is None


def test_a_source_without_any_density_is_still_refused():
    logs = np.array([[0.0, 0.0], [-np.inf, -np.inf]])
    with pytest.raises(ValueError, match="source 1 has no mass at any point next to source 0"):
        Problem.from_log_densities(logs, np.zeros((2, 2)), np.zeros(2), sample_domain=[0, 1])
