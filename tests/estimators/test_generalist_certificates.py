"""The generalist is cross-fitted, and the regret is against the own models."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor

from anymix import DistributionWeightedRegressor


@pytest.mark.parametrize("own", [Ridge(), KNeighborsRegressor(1)])
def test_no_row_is_judged_by_a_generalist_that_has_seen_it(own):
    """A nearest neighbour knows the targets of its own rows, which are noise, and no others."""
    rng = np.random.default_rng(0)
    domain = np.repeat([0, 1, 2], 100)
    X, y = rng.normal(1.5 * domain, 1.0)[:, None], rng.normal(size=300)
    generalist = KNeighborsRegressor(1)
    model = DistributionWeightedRegressor(own, generalist=generalist, random_state=0)
    model = model.fit(X, y, sample_domain=domain)
    tables = model.tables_
    np.testing.assert_allclose(model.generalist_.predict(X), y)
    assert np.mean((tables.generalist - tables.targets) ** 2) > 1.5
    losses = (tables.own_predictions() - tables.targets) ** 2
    due = [losses[tables.domain == k].mean() for k in range(3)]
    np.testing.assert_allclose(model.certificate_.own_losses, due)
