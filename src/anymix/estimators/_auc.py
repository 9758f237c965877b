"""The area under the ROC curve: how often a row of a label is ranked above a row without it.

    area       Σ_ij a_i b_j (1[s_i > s_j] + 1[s_i = s_j]/2), i having the label and j not
    interval   Newcombe (2006), method 5: all areas A whose distance from what was measured is at
               most z times Hanley and McNeil's (1982) standard error *at A*; it stays in [0, 1],
               and is wide where no pair was ranked wrongly by luck

Weights a and b make a mixture of sources: then rows of one source are ranked against those of
another, too, as they are where the mixture is met.  Of more than two labels it is the mean over
those that occur, each against all others; these are no independent numbers, so that the ends of
the interval are the means of theirs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from anymix._arrays import FloatArray
from anymix.estimators._intervals import Interval

NEAR = 1e-9


def area(scores: FloatArray, positive: NDArray[np.bool_], weight: FloatArray) -> float:
    """Return the area for scores (n,) of rows that have a label, or not.

    Examples
    --------
    >>> scores, positive = np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True])
    >>> area(scores, positive, np.ones(4))
    0.75
    """
    levels, where = np.unique(scores, return_inverse=True)
    with_it, without = (
        np.bincount(where, np.where(rows, weight, 0.0), levels.size)
        for rows in (positive, ~positive)
    )
    below = np.cumsum(without) - without
    total = float(with_it.sum() * without.sum())
    return float(with_it @ (below + without / 2)) / total


def area_ends(value: float, m: float, n: float, z: float) -> tuple[float, float]:
    """Return the ends of the interval for m rows with the label and n without.

    Examples
    --------
    >>> low, high = area_ends(1.0, 20, 20, 1.96)
    >>> round(low, 3), high
    (0.899, 1.0)
    """
    more = max((m + n) / 2 - 1.0, 0.0)

    def beyond(A: float) -> float:
        spread = 1.0 + more * ((1 - A) / (2 - A) + A / (1 + A))
        return (A - value) ** 2 - z * z * A * (1 - A) * spread / (m * n)

    # At 0 and at 1 the standard error vanishes, and they would be taken for the other end.
    low = 0.0 if value <= NEAR else float(brentq(beyond, 0.0, min(value, 1 - NEAR)))
    high = 1.0 if value >= 1 - NEAR else float(brentq(beyond, max(value, NEAR), 1.0))
    return low, high


def area_interval(
    h: FloatArray, y: NDArray[Any], weight: FloatArray, z: float
) -> tuple[float, float, float]:
    """Return area, lower and upper for probabilities (n, c) at rows of labels 0..c−1."""
    c = h.shape[1]
    labels = [1] if c == 2 else [k for k in range(c) if 0 < np.count_nonzero(y == k) < y.size]
    found = []
    for k in labels:
        has = y == k
        value = area(h[:, k], has, weight)
        found.append((value, *area_ends(value, _rows(weight[has]), _rows(weight[~has]), z)))
    mean, low, high = np.mean(found, axis=0).tolist()
    return mean, low, high


def _rows(weight: FloatArray) -> float:
    """As how many equal rows weights count."""
    return float(weight.sum() ** 2 / (weight @ weight))


def areas(versions: list[FloatArray], y: NDArray[Any], weights: FloatArray, z: float) -> Interval:
    """Return the areas (t,) on mixtures, of which each gives the rows weights (t, n).

    versions are a method's probabilities, one for each mixture or one for all.
    """
    found = []
    for t, weight in enumerate(weights):
        rows = weight > 0
        h = versions[t if len(versions) > 1 else 0]
        found.append(area_interval(h[rows], y[rows], weight[rows], z))
    return Interval(*np.array(found).T)
