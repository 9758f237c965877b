"""Bootstrap means: every statistic here is a function of means over rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray

# Indices drawn at a time; tables of 16 MB.
CHUNK = 2_000_000
# The mean of so many bounded rows is Gaussian to more digits than an interval shows.
MANY_ROWS = 10_000


def row_counts(
    m: int, n: int, size: int, rng: np.random.Generator, share: FloatArray | None = None
) -> NDArray[np.intp]:
    """How often each of m rows is drawn, with chances `share`, in `size` draws of n: (size, m)."""
    if share is not None:
        return np.asarray(rng.multinomial(n, share, size))
    rows = rng.integers(m, size=(size, n))
    rows += m * np.arange(size)[:, None]
    return np.bincount(rows.ravel(), minlength=size * m).reshape(size, m)


def resampled_means(
    table: FloatArray,
    size: int,
    rng: np.random.Generator,
    share: FloatArray | None = None,
    n: int | None = None,
) -> FloatArray:
    """Means over n columns, drawn with chances `share`, of a table (d, m): shape (size, d).

    By default the bootstrap: n = m and equal chances.

    Examples
    --------
    >>> means = resampled_means(np.array([[0.0, 1.0, 2.0]]), 4000, np.random.default_rng(0))
    >>> print(means.mean().round(1), means.var().round(1))  # in the limit 1 and (2/3)/3
    1.0 0.2
    """
    m = table.shape[1]
    n = m if n is None else n
    if n >= MANY_ROWS:
        chance = np.full(m, 1.0 / m) if share is None else share
        mean = table @ chance
        centred = table - mean[:, None]
        covariance = (centred * chance) @ centred.T / n
        return np.asarray(rng.multivariate_normal(mean, covariance, size, method="eigh"))
    step = max(1, CHUNK // max(m, n))
    sizes = [min(step, size - first) for first in range(0, size, step)]
    return np.concatenate([row_counts(m, n, s, rng, share) @ table.T / n for s in sizes])


def resampled_source_means(
    table: FloatArray, domain: NDArray[np.intp], size: int, rng: np.random.Generator
) -> FloatArray:
    """Means over resampled columns, source by source: shape (size, d, p)."""
    p = int(domain.max()) + 1
    means = [resampled_means(table[:, domain == k], size, rng) for k in range(p)]
    return np.stack(means, axis=2)
