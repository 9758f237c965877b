"""Bootstrap means: every statistic here is a function of means over rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anymix.core.simplex import FloatArray

# Indices drawn at a time; tables of 16 MB.
CHUNK = 2_000_000
# The mean of so many bounded rows is Gaussian to more digits than an interval shows.
MANY_ROWS = 20_000


def row_counts(n: int, size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """How often each of n rows is drawn in `size` draws of n with replacement: (size, n)."""
    rows = rng.integers(n, size=(size, n))
    rows += n * np.arange(size)[:, None]
    return np.bincount(rows.ravel(), minlength=size * n).reshape(size, n)


def resampled_means(table: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
    """Means over resampled columns of a table (d, n): shape (size, d).

    Examples
    --------
    >>> means = resampled_means(np.array([[0.0, 1.0, 2.0]]), 4000, np.random.default_rng(0))
    >>> print(means.mean().round(1), means.var().round(1))  # in the limit 1 and (2/3)/3
    1.0 0.2
    """
    n = table.shape[1]
    if n >= MANY_ROWS:
        covariance = np.atleast_2d(np.cov(table, bias=True)) / n
        noise = rng.multivariate_normal(np.zeros(len(table)), covariance, size, method="eigh")
        return np.asarray(table.mean(axis=1) + noise)
    step = max(1, CHUNK // n)
    sizes = [min(step, size - first) for first in range(0, size, step)]
    return np.concatenate([row_counts(n, s, rng) @ table.T / n for s in sizes])


def resampled_source_means(
    table: FloatArray, domain: NDArray[np.intp], size: int, rng: np.random.Generator
) -> FloatArray:
    """Means over resampled columns, source by source: shape (size, d, p)."""
    p = int(domain.max()) + 1
    means = [resampled_means(table[:, domain == k], size, rng) for k in range(p)]
    return np.stack(means, axis=2)
