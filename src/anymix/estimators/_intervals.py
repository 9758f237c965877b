"""Intervals of means over rows: of numbers, of shares, and of differences of shares.

    number       mean ± t s/√n
    share        Wilson (1927): inside [0, 1], and wide where nothing was wrong by luck
    difference   of shares on the same rows, each row −1, 0 or 1: Agresti and Min (2005), the normal
                 interval after half a row of each of the four kinds was added

Over a mixture, Σ λ_k m_k, each side of an interval is √(Σ λ_k² side_k²): as long as the λ_k sum to
1 it cannot leave the range that each of them stays in.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from scipy import stats

from anymix._arrays import FloatArray

Kind = Literal["number", "share", "difference"]


class Interval(NamedTuple):
    """Means with the ends of their intervals, of any one shape."""

    mean: FloatArray
    lower: FloatArray
    upper: FloatArray

    def mixed(self, mixture: FloatArray) -> Interval:
        """Return the interval of Σ_k λ_k m_k, k being the last axis."""
        mean = (self.mean * mixture).sum(axis=-1)
        below, above = (
            np.sqrt(((side * mixture) ** 2).sum(axis=-1))
            for side in (self.mean - self.lower, self.upper - self.mean)
        )
        return Interval(mean, mean - below, mean + above)


def mean_interval(
    values: FloatArray, share: FloatArray, alpha: float, kind: Kind = "number"
) -> tuple[float, float, float]:
    """Return mean, lower and upper of values (n,) with weights of sum 1; 1 − α is the confidence.

    Weights count as n = 1/Σ w² equal rows would.

    Examples
    --------
    >>> share = np.full(50, 0.02)
    >>> [round(end, 3) for end in mean_interval(np.zeros(50), share, 0.05, "share")]
    [0.0, 0.0, 0.071]
    """
    mean, n = float(share @ values), 1.0 / float(share @ share)
    if kind == "share":
        return (mean, *_wilson(mean, n, alpha))
    if kind == "difference":
        low, high = _agresti_min(values, share, n, alpha)
        return mean, min(mean, low), max(mean, high)
    if n < 2.0 - 1e-9:
        return mean, -np.inf, np.inf
    spread = float(((share * (values - mean)) ** 2).sum()) * n / (n - 1.0)
    half = float(stats.t.isf(alpha / 2, n - 1.0)) * float(np.sqrt(spread))
    return mean, mean - half, mean + half


def wilson(mean: FloatArray, n: FloatArray | float, z: float) -> tuple[FloatArray, FloatArray]:
    """Shares m that a test at z does not refute: |m − mean| ≤ z √(m (1 − m)/n)."""
    shrunk = 1.0 + z * z / n
    centre = (mean + z * z / (2 * n)) / shrunk
    half = z / shrunk * np.sqrt(mean * (1 - mean) / n + z * z / (4 * n * n))
    # The ends of 0 and 1 are 0 and 1; rounding must not put the mean outside.
    return np.minimum(mean, np.maximum(centre - half, 0)), np.maximum(
        mean, np.minimum(centre + half, 1)
    )


def _wilson(mean: float, n: float, alpha: float) -> tuple[float, float]:
    low, high = wilson(np.array(mean), n, float(stats.norm.isf(alpha / 2)))
    return float(low), float(high)


def _agresti_min(
    values: FloatArray, share: FloatArray, n: float, alpha: float
) -> tuple[float, float]:
    more, less = ((n * float(share @ (sign * values > 0)) + 0.5) / (n + 2) for sign in (1, -1))
    centre, z = more - less, float(stats.norm.isf(alpha / 2))
    half = z * float(np.sqrt((more + less - centre**2) / (n + 2)))
    return max(centre - half, -1.0), min(centre + half, 1.0)
