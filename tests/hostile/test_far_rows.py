"""One row far from all others: no file for others tells its value, or how likely it is."""

import numpy as np
import pytest

from anymix.densities.marginals import Marginal
from anymix.sources import coarse_quantiles, histogram_of, is_histogram

BULK = np.random.default_rng(0).normal(size=79)


@pytest.mark.parametrize("far", [-98765.43, 98765.43])
@pytest.mark.parametrize("n", [6, 79])
def test_no_quantile_is_decided_by_one_far_row(far, n):
    """The mean of five of them tells it, to a thousandth in 0.3.0."""
    values = np.append(BULK[:n], far)
    for told in (Marginal.of(values, 5).quantiles, coarse_quantiles(values)):
        assert np.abs(told).max() < 10


@pytest.mark.parametrize("far", [70_000.0, 100_000.0, 130_000.0])
def test_a_histogram_tells_how_far_out_it_is_to_a_factor_of_two(far):
    found = histogram_of(np.append(BULK, -far))
    assert is_histogram(found, 80)
    assert found[0, 0] == histogram_of(np.append(BULK, -100_000.0))[0, 0]
    assert found[0, 0] <= -far
