"""Coarse log-densities and responsibilities, which a site may share.

Log-responsibilities lie on a grid.  The log-density of a source at its own rows is given by
quantiles, each the mean of five rows, and log Σ_k D_k(x) by a histogram of five rows or more a
cell, by which traffic can be compared exactly.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp

from anymix._arrays import FloatArray, IntArray, winsorised_means

# Calibration needs to see how far log-densities lie apart, and in many dimensions that is far.
BOUNDS_R = 2.0**-5, 2.0**12
LEAST, MOST_QUANTILES, STEPS = 5, 65, 2**10  # rows of a mean; quantiles; steps of their range
STEP, FURTHEST = 0.5, 2.0**20  # nats between edges of a histogram; no value lies beyond


def on_grid(a: FloatArray, least: FloatArray | float, largest: FloatArray | float) -> FloatArray:
    """Round to powers of two within bounds; numbers far below them become zero."""
    near = np.clip(a, least, largest)
    return np.where(a < np.asarray(least) / np.sqrt(2.0), 0.0, power_of_two(near))


def power_of_two(a: FloatArray) -> FloatArray:
    """Round to the nearest power of two."""
    return np.asarray(np.exp2(np.round(np.log2(a))))


def round_responsibilities(log_r: FloatArray) -> FloatArray:
    """Round log-responsibilities (p, m); they sum to one as before."""
    rounded = -on_grid(-np.minimum(log_r, 0.0), *BOUNDS_R)
    return np.asarray(rounded - logsumexp(rounded, axis=0))


def coarse_quantiles(values: FloatArray) -> FloatArray:
    """Return at most 65 increasing quantiles of log-densities: rounded means of five.

    >>> coarse_quantiles(np.arange(100.0))[[0, 1, -1]].round(2).tolist()
    [2.0, 7.0, 97.0]
    """
    finite = values[np.isfinite(values)]
    if finite.size < LEAST:
        return np.empty(0)
    ordered = np.sort(np.where(np.isfinite(values), values, finite.min()))
    windows = ordered[_starts(ordered.size)[:, None] + np.arange(LEAST)]
    found = windows.mean(axis=1)
    # A mean would tell one far value.
    found[[0, -1]] = winsorised_means(windows[[0, -1]])
    found.sort()
    spread = max(float(np.ptp(found)), 1e-9 * float(np.abs(found).max()), 1e-300)
    step = float(power_of_two(np.array(spread / STEPS)))
    return np.asarray(np.round(found / step) * step)


def _starts(n: int) -> IntArray:
    m = max(2, min(MOST_QUANTILES, n // LEAST))
    return np.linspace(0, n - LEAST, m).astype(np.intp)


def histogram_of(values: FloatArray) -> FloatArray:
    """Count log-densities between edges at multiples of half a nat: [edges, counts], (2, e).

    All values lie between the outer edges, which are a power of two away from their neighbours;
    between two neighbours are five or more, and a 64th part of all.  The last count is 0.

    >>> histogram_of(np.arange(20.0) / 4)
    array([[-0.5,  1.5,  3. ,  5. ],
           [ 6. ,  6. ,  8. ,  0. ]])
    """
    values = np.sort(np.clip(values, -FURTHEST, FURTHEST))
    first = np.floor(values[0] / STEP)
    cells, counts = np.unique(np.floor(values / STEP), return_counts=True)
    edges, found, least = [float(first)], [0], max(LEAST, values.size / (MOST_QUANTILES - 1))
    for cell, count in zip(cells.tolist(), counts.tolist(), strict=True):
        if found[-1] >= least:
            edges.append(cell)
            found.append(0)
        found[-1] += count
    if len(found) > 1 and found[-1] < least:
        edges.pop()
        found[-2:] = [found[-2] + found[-1]]
    edges.append(float(cells[-1]) + 1.0)
    # How far the outermost value lies out is told to a factor of two.
    inner = edges[1:-1] or [float(np.floor(np.median(values) / STEP))]
    low, high = inner[0] - edges[0], edges[-1] - inner[-1]
    edges[0] = max(inner[0] - _power_above(low), -FURTHEST / STEP)
    edges[-1] = min(inner[-1] + _power_above(high), FURTHEST / STEP + 1)
    return np.stack([np.array(edges) * STEP, np.array([*found, 0.0])])


def _power_above(cells: float) -> float:
    return float(2.0 ** np.ceil(np.log2(max(cells, 1.0))))


def is_histogram(both: FloatArray, n_rows: int) -> bool:
    """Whether this is a valid output of `histogram_of` for `n` rows.

    >>> is_histogram(histogram_of(np.arange(20.0)), 20), is_histogram(np.zeros((2, 3)), 20)
    (True, False)
    """
    if both.ndim != 2 or len(both) != 2 or not 2 <= both.shape[1] <= MOST_QUANTILES + 1:
        return False
    edges, counts = both
    whole = (counts >= 0).all() and (counts % 1 == 0).all()
    rises = (np.diff(edges) > 0).all() and np.abs(edges).max() <= FURTHEST + 1
    return bool(whole and rises and counts[-1] == 0 and counts.sum() == n_rows)


def common_edges(histograms: Sequence[FloatArray]) -> FloatArray:
    """Return the edges that are common to all histograms."""
    edges = np.unique(np.concatenate([edges for edges, _ in histograms]))
    known = [np.isin(edges, e) | (edges <= e[0]) | (edges >= e[-1]) for e, _ in histograms]
    return np.asarray(edges[np.all(known, axis=0)])


def levels_of(values: FloatArray, edges: FloatArray) -> FloatArray:
    """Return the number of edges up to each value, (n,)."""
    clipped = np.clip(values, -FURTHEST, FURTHEST)
    return np.searchsorted(edges, clipped, side="right").astype(np.float64)


def levels_of_rows(
    histograms: Sequence[FloatArray], domain: IntArray, rng: np.random.Generator
) -> FloatArray:
    """Return levels (m,) as the rows of each source have them, in random order within a source.

    Examples
    --------
    >>> values, domain = np.random.default_rng(0).normal(size=200), np.repeat([0, 1], 100)
    >>> both = [histogram_of(values[domain == k]) for k in (0, 1)]
    >>> levels = levels_of_rows(both, domain, np.random.default_rng(0))
    >>> due = levels_of(values, common_edges(both))
    >>> [bool((np.sort(levels[domain == k]) == np.sort(due[domain == k])).all()) for k in (0, 1)]
    [True, True]
    """
    edges, out = common_edges(histograms), np.empty(domain.size)
    for k, (own, counts) in enumerate(histograms):
        rows = np.flatnonzero(domain == k)
        below = np.append(0.0, np.cumsum(counts))[np.searchsorted(own, edges, side="left")]
        in_each = np.diff(below, prepend=0.0, append=counts.sum()).astype(np.int64)
        out[rows] = rng.permutation(np.repeat(np.arange(edges.size + 1.0), in_each))
    return out
