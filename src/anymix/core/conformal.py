"""Sets that cover on every mixture: conformal p-values, source by source.

The combination is an average of parts t; row i is scored by the part t(i) that never saw it, and
so is a new point x when it is compared with row i:

    e_t(x, y)  = |y − h_t(x)| of numbers, 1 − h_t(x, y) of labels             the error
    σ_t(x)     = Σ_k r_kt(x) σ_kt                                             its usual size at x
    s_kt(x, y) = e_t(x, y)/σ_t(x) − a_t log r_kt(x)                           the score for source k
    p_k(x, y)  = (1 + #{i of k: s_k,t(i)(x_i, y_i) ≥ s_k,t(i)(x, y)}) / (n_k + 1)

y is in the set when max_k p_k(x, y) > α.  A row of source k is missed only if p_k ≤ α, which has a
probability of at most α where the scores of k's rows and of the new one are exchangeable; and what
holds on each source holds on each mixture.  σ and the tilt a are learned without the row: they
decide how large the sets are, never whether they cover.  A tilt above 0 asks at x mostly the
sources that x may come from, so that not the worst source of all rules everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray, IntArray
from anymix._parameters import Share, check
from anymix.core.error_scale import ErrorScale, least_count


def check_alpha(alpha: float) -> float:
    """Refuse what is no share of rows that may be missed."""
    check(alpha, "alpha, the share of rows that sets may miss,", Share())
    return float(alpha)


def crossed_bound(n: FloatArray | IntArray, n_parts: int, alpha: float) -> FloatArray:
    """The most that sets of cross-fitted scores can miss: 2α + 2(1 − α)(K − 1)/(n + K).

    Fold by fold p-values are exact, and twice a mean of p-values is one (Vovk and Wang 2020); the
    rest is what the K − 1 further ones in (K + c)/(n + K) add.  See docs/sets.md.

    >>> crossed_bound(np.array([100]), 1, 0.1), crossed_bound(np.array([100]), 3, 0.1).round(3)
    (array([0.1]), array([0.235]))
    """
    n = np.asarray(n, dtype=float)
    if n_parts == 1:
        return np.full(n.shape, alpha)
    more = 2 * (1 - alpha) * (n_parts - 1) / (n + n_parts)
    return np.asarray(np.minimum(2 * alpha + more, 1.0))


@dataclass(frozen=True, eq=False)
class Conformal:
    """The scores of rows, by part and source, and what they say of new points.

    Attributes
    ----------
    yardsticks : tuple of Yardstick
        One for each part.
    scores : tuple of tuples of arrays
        scores[t][k], ascending, are s_kt of the rows of source k that part t never saw.
    """

    yardsticks: tuple[ErrorScale, ...]
    scores: tuple[tuple[FloatArray, ...], ...]

    @classmethod
    def of(
        cls,
        yardsticks: Sequence[ErrorScale],
        scores: FloatArray,
        fold: IntArray,
        domain: IntArray,
    ) -> Conformal:
        """Sort the scores (m,) of rows by their part and their source."""
        p = yardsticks[0].spread.size
        parts = [
            tuple(np.sort(scores[(fold == t) & (domain == k)]) for k in range(p))
            for t in range(len(yardsticks))
        ]
        return cls(tuple(yardsticks), tuple(parts))

    @property
    def n(self) -> IntArray:
        """Rows of each source, (p,)."""
        sizes = [[own.size for own in part] for part in self.scores]
        return np.asarray(np.sum(sizes, axis=0, dtype=np.intp))

    def counts(self, errors: Sequence[FloatArray], log_r: Sequence[FloatArray]) -> IntArray:
        """#{i of k: s_k,t(i)(x_i, y_i) ≥ s_k,t(i)(x, y)}, (p, n[, c]).

        errors[t] are (n,) of one y each, or (n, c) of all labels; log_r[t] are (p, n).
        """
        found = np.zeros((self.n.size, *errors[0].shape), dtype=np.intp)
        for by, rows, error, logs in zip(self.yardsticks, self.scores, errors, log_r, strict=True):
            shape = (-1, *[1] * (error.ndim - 1))
            relative = error / by.scale(logs).reshape(shape)
            for k, known in enumerate(rows):
                score = relative - by.pull(logs[k]).reshape(shape)
                found[k] += known.size - np.searchsorted(known, score, side="left")
        return found

    def p_values(self, errors: Sequence[FloatArray], log_r: Sequence[FloatArray]) -> FloatArray:
        """p_k(x, y), (p, n[, c]); see the head of this file."""
        found = self.counts(errors, log_r)
        n = self.n.reshape(-1, *[1] * (found.ndim - 1))
        return np.asarray((1 + found) / (n + 1))

    def covers(
        self, errors: Sequence[FloatArray], log_r: Sequence[FloatArray], alpha: float
    ) -> NDArray[np.bool_]:
        """Whether p_k(x, y) > α, of each source, (p, n[, c]) of bool."""
        found = self.counts(errors, log_r)
        least = np.array([least_count(int(n), alpha) for n in self.n])
        return np.asarray(found >= least.reshape(-1, *[1] * (found.ndim - 1)))

    def interval(
        self, h: Sequence[FloatArray], log_r: Sequence[FloatArray], alpha: float
    ) -> FloatArray:
        """An interval that holds {y: max_k p_k(x, y) > α}, (n, 2), from h_t(x) and log r_kt(x).

        Row i is as strange as y where |y − h_t(x)| ≤ R_i(x) = σ_t(x) (s_i + a_t log r_kt(x)).  If c
        rows are needed, y is at least the c-th smallest h_t − R_i and at most the c-th largest
        h_t + R_i; of one part these are the ends themselves.  Where no y is left it is [h, h].
        """
        middle, needed = np.mean(h, axis=0), [least_count(int(n), alpha) for n in self.n]
        if not all(needed):
            return np.tile([-np.inf, np.inf], (middle.size, 1))
        at = _Points(self, h, log_r)
        inner, outer = at.bounds(needed)
        found = np.stack([inner[0].min(axis=0), inner[1].max(axis=0)], axis=1)
        if len(self.scores) > 1:
            # Most sources cannot reach beyond what others are sure to reach.
            far = (outer[0] <= found[:, 0]) | (outer[1] >= found[:, 1])
            for k, least in enumerate(needed):
                rows = np.flatnonzero(far[k])
                low, high = at.ends(k, least, rows)
                some = low <= high
                found[rows, 0] = np.where(some, np.minimum(found[rows, 0], low), found[rows, 0])
                found[rows, 1] = np.where(some, np.maximum(found[rows, 1], high), found[rows, 1])
        nothing = found[:, 0] > found[:, 1]
        return np.where(nothing[:, None], middle[:, None], found)


class _Points:
    """New points, and how far the rows of each part and source reach there."""

    def __init__(self, known: Conformal, h: Sequence[FloatArray], log_r: Sequence[FloatArray]):
        self.scores, self.h = known.scores, h
        given = list(zip(known.yardsticks, log_r, strict=True))
        self.scale = [by.scale(logs) for by, logs in given]
        self.pull = [by.pull(logs) for by, logs in given]

    def reach(self, t: int, k: int, rows: Any, best: FloatArray) -> FloatArray:
        """R of some scores of source k, of part t, at some points, (n, scores); −∞ if below 0."""
        reach = best + self.pull[t][k, rows, None]
        return np.where(reach >= 0, reach * self.scale[t][rows, None], -np.inf)

    def bounds(self, needed: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        """Ends within and beyond which those of each source cannot lie, both (2, p, n).

        If c of all rows are needed, the c-th largest end of K parts lies between the smallest and
        the largest of their ⌈c/K⌉-th largest ones.  No inner ends where they might cross.
        """
        K, every = len(self.scores), slice(None)
        inner, outer = np.empty((2, 2, len(needed), self.h[0].size))
        for k, least in enumerate(needed):
            rank = -(-least // K)
            ends = []
            for t, middle in enumerate(self.h):
                own = self.scores[t][k]
                best = own[-rank:][:1] if own.size >= rank else np.array([-np.inf])
                half = self.reach(t, k, every, best)[:, 0]
                ends.append((middle - half, middle + half))
            lower, upper = np.moveaxis(np.array(ends), 1, 0)
            outer[:, k] = lower.min(axis=0), upper.max(axis=0)
            sure = lower.max(axis=0), upper.min(axis=0)
            inner[0, k] = np.where(sure[0] <= sure[1], sure[0], np.inf)
            inner[1, k] = np.where(sure[0] <= sure[1], sure[1], -np.inf)
        return inner, outer

    def ends(self, k: int, least: int, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """The ends of source k at some points; of each part only the largest scores can be them."""
        halves = [self.reach(t, k, rows, own[k][-least:]) for t, own in enumerate(self.scores)]
        given = list(zip(self.h, halves, strict=True))
        least -= 1
        lower = np.concatenate([middle[rows, None] - half for middle, half in given], axis=1)
        upper = np.concatenate([-middle[rows, None] - half for middle, half in given], axis=1)
        lower.partition(least, axis=1)
        upper.partition(least, axis=1)
        return lower[:, least], -upper[:, least]
