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

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray, IntArray
from anymix.core.records import Record

# Tilts that are tried, in units of the usual error; 0 is the plain largest p-value.
TILTS = (0.0, 0.03, 0.1, 0.3)
# So many rows of the usual error stand behind that of each source, lest few rows decide it.
PRIOR_ROWS = 10.0
# Below it a source has nothing to do with a point.
LEAST_LOG = -700.0
# 1 − 0.9 times 20 is to be 2: the α that is kept is larger by less than this over n + 1.
ROUNDING = 1e-9


def fewest(alpha: float) -> int:
    """How many rows a source needs, n ≥ 1/α − 1, so that its p-value can be α or less.

    >>> fewest(0.1), fewest(0.05), fewest(1 - 0.9)
    (9, 19, 9)
    """
    return int(np.ceil(1 / (alpha + ROUNDING / 2) - 1 - ROUNDING))


def least_count(n: int, alpha: float) -> int:
    """How many of n rows must be as strange as y, so that p > α: 1 + c > α (n + 1).

    >>> least_count(19, 0.1), least_count(8, 0.1)
    (2, 0)
    """
    return int(np.floor(alpha * (n + 1) + ROUNDING))


def check_alpha(alpha: float) -> float:
    """Refuse what is no share of rows that may be missed."""
    if not 0 < alpha < 1:
        raise ValueError(
            f"alpha, the share of rows that sets may miss, must lie between 0 and 1; got {alpha}."
        )
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


def errors_at(h: FloatArray, y: FloatArray | IntArray) -> FloatArray:
    """|y − h(x)| of numbers h (n,), 1 − h(x, y) of probabilities h (n, c): (n,).

    >>> errors_at(np.array([1.0]), np.array([3.0])), errors_at(np.array([[0.5, 0.5]]), [1])
    (array([2.]), array([0.5]))
    """
    if h.ndim == 1:
        return np.abs(np.asarray(y, dtype=float) - h)
    return np.asarray(1.0 - h[np.arange(len(h)), np.asarray(y, dtype=np.intp)])


@dataclass(frozen=True, eq=False)
class Yardstick(Record):
    """What errors are measured by: σ(x) = Σ_k r_k(x) σ_k, and the tilt a.

    Attributes
    ----------
    spread : array (p,)
        σ_k > 0.
    tilt : float
        a ≥ 0.
    """

    spread: FloatArray
    tilt: float = 0.0

    def scale(self, log_r: FloatArray) -> FloatArray:
        """σ(x) from log r_k, (p, n): (n,)."""
        return np.asarray(self.spread @ np.exp(log_r))

    def pull(self, log_r: FloatArray) -> FloatArray:
        """a log r_k(x), (p, n) or (n,): what a source's limit at x is lowered by."""
        return np.asarray(self.tilt * np.maximum(log_r, LEAST_LOG))

    def scores(self, errors: FloatArray, log_r: FloatArray, domain: IntArray) -> FloatArray:
        """s_k(x_i, y_i) of rows, each for its own source k, (n,)."""
        own = log_r[domain, np.arange(domain.size)]
        return np.asarray(errors / self.scale(log_r) - self.pull(own))


def learn_yardstick(
    errors: FloatArray,
    log_r: FloatArray,
    domain: IntArray,
    alpha: float,
    labels: FloatArray | None = None,
) -> Yardstick:
    """Learn σ_k, the mean error that x tells of, and the tilt that makes sets smallest.

    σ_k = (n₀ ē + Σ_i r_k(x_i) e_i) / (n₀ + Σ_i r_k(x_i)), ē being the mean error.  Errors of labels
    lie between 0 and 1 already: there σ is ē for all, and `labels` (n, c) are those of all labels.

    Examples
    --------
    >>> errors = np.array([1.0, 1.0, 3.0, 3.0])
    >>> log_r = np.log([[0.99, 0.99, 0.01, 0.01], [0.01, 0.01, 0.99, 0.99]])
    >>> learn_yardstick(errors, log_r, np.array([0, 0, 1, 1]), 0.1).spread.round(2)
    array([1.84, 2.16])
    """
    p, mean = len(log_r), float(errors.mean())
    spread = np.full(p, mean if mean > 0 else 1.0)
    if labels is None and mean > 0:
        r = np.exp(log_r)
        spread = (PRIOR_ROWS * mean + r @ errors) / (PRIOR_ROWS + r.sum(axis=1))
    tried = [Yardstick(spread, tilt) for tilt in TILTS]
    if labels is not None and labels.shape[1] == 1:
        return tried[0]  # of the label alone nobody knows how large a set would be
    sizes = [_mean_size(one, errors, log_r, domain, alpha, labels) for one in tried]
    return tried[int(np.argmin(sizes))]


def _mean_size(
    by: Yardstick,
    errors: FloatArray,
    log_r: FloatArray,
    domain: IntArray,
    alpha: float,
    labels: FloatArray | None,
) -> float:
    """The mean size of sets at rows, sources counting equally, that these rows would give."""
    own, limits = by.scores(errors, log_r, domain), []
    for k in range(len(log_r)):
        known = own[domain == k]
        limits.append(nth_largest(known, max(least_count(known.size, alpha), 1)))
    limit = (np.array(limits)[:, None] + by.pull(log_r)).max(axis=0) * by.scale(log_r)
    size = np.maximum(limit, 0.0) if labels is None else (labels <= limit[:, None]).sum(axis=1)
    return float(np.mean([size[domain == k].mean() for k in np.unique(domain)]))


def nth_largest(values: FloatArray, n: int) -> float:
    """Return infinity where there are fewer than n values."""
    return float(np.partition(values, -n)[-n]) if values.size >= n else np.inf


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

    yardsticks: tuple[Yardstick, ...]
    scores: tuple[tuple[FloatArray, ...], ...]

    @classmethod
    def of(
        cls,
        yardsticks: Sequence[Yardstick],
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
        middle = np.mean(h, axis=0)
        found = np.stack([np.full(middle.size, np.inf), np.full(middle.size, -np.inf)], axis=1)
        for k, n in enumerate(self.n):
            least = least_count(int(n), alpha)
            ends = self._ends(k, least, h, log_r) if least else np.array([[-np.inf, np.inf]])
            some = ends[:, 0] <= ends[:, 1]
            found[:, 0] = np.where(some, np.minimum(found[:, 0], ends[:, 0]), found[:, 0])
            found[:, 1] = np.where(some, np.maximum(found[:, 1], ends[:, 1]), found[:, 1])
        nothing = found[:, 0] > found[:, 1]
        return np.where(nothing[:, None], middle[:, None], found)

    def _ends(
        self, k: int, least: int, h: Sequence[FloatArray], log_r: Sequence[FloatArray]
    ) -> FloatArray:
        """The ends of source k, (n, 2); of each part only the largest scores can be among them."""
        lower, upper = [], []
        if len(self.scores) == 1:  # one middle: the rows' intervals lie in each other
            by, logs = self.yardsticks[0], log_r[0]
            reach = (self.scores[0][k][-least] + by.pull(logs[k])) * by.scale(logs)
            half = np.where(reach >= 0, reach, -np.inf)
            return np.stack([h[0] - half, h[0] + half], axis=1)
        for by, rows, middle, logs in zip(self.yardsticks, self.scores, h, log_r, strict=True):
            reach = rows[k][-least:] + by.pull(logs[k])[:, None]
            half = np.where(reach >= 0, reach * by.scale(logs)[:, None], -np.inf)
            lower.append(middle[:, None] - half)
            upper.append(middle[:, None] + half)
        least -= 1
        low = np.partition(np.concatenate(lower, axis=1), least, axis=1)[:, least]
        high = np.partition(-np.concatenate(upper, axis=1), least, axis=1)[:, least]
        return np.stack([low, -high], axis=1)
