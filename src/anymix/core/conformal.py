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
determine the size of the sets.  With a tilt above 0 mostly the likely sources of x count at x.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray, IntArray
from anymix._parameters import check, share_rule
from anymix.core.records import Record

# Tilts that are tried, in units of the usual error; 0 is the plain largest p-value.
TILTS = (0.0, 0.03, 0.1, 0.3)
# Rows of the usual error that are added to those of each source, so that few do not decide.
PRIOR_ROWS = 10.0
# Below it a source has nothing to do with a point.
LEAST_LOG = -700.0
# 1 − 0.9 times 20 is to be 2: the α that is kept is larger by less than this over n + 1.
ROUNDING = 1e-9


def fewest(alpha: float) -> int:
    """The number of rows that a source needs, n ≥ 1/α − 1, for a p-value of α or less."""
    return int(np.ceil(1 / (alpha + ROUNDING / 2) - 1 - ROUNDING))


def least_count(n: int, alpha: float) -> int:
    """The number of n rows with a score at least that of y that gives p > α: 1 + c > α (n + 1)."""
    return int(np.floor(alpha * (n + 1) + ROUNDING))


def errors_at(h: FloatArray, y: FloatArray | IntArray) -> FloatArray:
    """|y − h(x)| of numbers h (n,), 1 − h(x, y) of probabilities h (n, c): (n,)."""
    if h.ndim == 1:
        return np.abs(np.asarray(y, dtype=float) - h)
    return np.asarray(1.0 - h[np.arange(len(h)), np.asarray(y, dtype=np.intp)])


@dataclass(frozen=True, eq=False)
class ErrorScale(Record):
    """The scale of errors σ(x) = Σ_k r_k(x) σ_k, and the weight a of log r_k(x) in scores.

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
        """a log r_k(x), (p, n) or (n,), by which a source's limit at x is lowered."""
        return np.asarray(self.tilt * np.maximum(log_r, LEAST_LOG))

    def scores(self, errors: FloatArray, log_r: FloatArray, domain: IntArray) -> FloatArray:
        """s_k(x_i, y_i) of rows, each for its own source k, (n,)."""
        own = log_r[domain, np.arange(domain.size)]
        return np.asarray(errors / self.scale(log_r) - self.pull(own))


def learn_error_scale(
    errors: FloatArray,
    log_r: FloatArray,
    domain: IntArray,
    alpha: float,
    labels: FloatArray | None = None,
) -> ErrorScale:
    """Learn σ_k = (n₀ ē + Σ_i r_k(x_i) e_i) / (n₀ + Σ_i r_k(x_i)), and the tilt of smallest sets.

    Errors of labels lie in [0, 1], so σ is ē for all; `labels` (n, c) are the errors of all labels.
    """
    p, mean = len(log_r), float(errors.mean())
    spread = np.full(p, mean if mean > 0 else 1.0)
    if labels is None and mean > 0:
        r = np.exp(log_r)
        spread = (PRIOR_ROWS * mean + r @ errors) / (PRIOR_ROWS + r.sum(axis=1))
    tried = [ErrorScale(spread, tilt) for tilt in TILTS]
    if labels is not None and labels.shape[1] == 1:
        return tried[0]  # from the label alone the size of a set is unknown
    sizes = []
    for by in tried:
        # The mean size of sets at these rows, sources counting equally, that they would give.
        own, limits = by.scores(errors, log_r, domain), np.empty((p, 1))
        for k in range(p):
            errors_k = own[domain == k]
            limits[k] = nth_largest(errors_k, max(least_count(errors_k.size, alpha), 1))
        limit = (limits + by.pull(log_r)).max(axis=0) * by.scale(log_r)
        size = np.maximum(limit, 0.0) if labels is None else (labels <= limit[:, None]).sum(axis=1)
        sizes.append(np.mean([size[domain == k].mean() for k in np.unique(domain)]))
    return tried[int(np.argmin(sizes))]


def nth_largest(values: FloatArray, n: int) -> float:
    """Return the n-th largest value, infinity where there are fewer."""
    return float(np.partition(values, -n)[-n]) if values.size >= n else np.inf


def check_alpha(alpha: float) -> float:
    """Check the share of rows that may be missed."""
    check(alpha, "alpha, the share of rows that sets may miss,", share_rule)
    return float(alpha)


def crossed_bound(n: FloatArray | IntArray, n_parts: int, alpha: float) -> FloatArray:
    """Largest miss rate of cross-fitted sets, 2α + 2(1 − α)(K − 1)/(n + K); see docs/sets.md."""
    n = np.asarray(n, dtype=float)
    if n_parts == 1:
        return np.full(n.shape, alpha)
    more = 2 * (1 - alpha) * (n_parts - 1) / (n + n_parts)
    return np.asarray(np.minimum(2 * alpha + more, 1.0))


@dataclass(frozen=True, eq=False)
class Conformal:
    """Conformity scores of held-out rows by part and source, and the sets that they give.

    Attributes
    ----------
    error_scales : tuple of ErrorScale
        One for each part.
    scores : tuple of tuples of arrays
        scores[t][k], ascending, are s_kt of the rows of source k that part t never saw.
    """

    error_scales: tuple[ErrorScale, ...]
    scores: tuple[tuple[FloatArray, ...], ...]

    @classmethod
    def of(
        cls,
        error_scales: Sequence[ErrorScale],
        scores: FloatArray,
        fold: IntArray,
        domain: IntArray,
    ) -> Conformal:
        """Sort the scores (m,) of rows by their part and their source."""
        p = error_scales[0].spread.size
        parts = [
            tuple(np.sort(scores[(fold == t) & (domain == k)]) for k in range(p))
            for t in range(len(error_scales))
        ]
        return cls(tuple(error_scales), tuple(parts))

    @property
    def n(self) -> IntArray:
        """The number of rows of each source, (p,)."""
        sizes = [[own.size for own in part] for part in self.scores]
        return np.asarray(np.sum(sizes, axis=0, dtype=np.intp))

    def counts(self, errors: Sequence[FloatArray], log_r: Sequence[FloatArray]) -> IntArray:
        """#{i of k: s_k,t(i)(x_i, y_i) ≥ s_k,t(i)(x, y)}, (p, n[, c]).

        errors[t] are (n,) of one y each, or (n, c) of all labels; log_r[t] are (p, n).
        """
        counts = np.zeros((self.n.size, *errors[0].shape), dtype=np.intp)
        for by, rows, error, logs in zip(
            self.error_scales, self.scores, errors, log_r, strict=True
        ):
            shape = (-1, *[1] * (error.ndim - 1))
            relative = error / by.scale(logs).reshape(shape)
            for k, scores in enumerate(rows):
                score = relative - by.pull(logs[k]).reshape(shape)
                counts[k] += scores.size - np.searchsorted(scores, score, side="left")
        return counts

    def covers(
        self, errors: Sequence[FloatArray], log_r: Sequence[FloatArray], alpha: float
    ) -> NDArray[np.bool_]:
        """Whether p_k(x, y) > α, of each source, (p, n[, c]) of bool."""
        counts = self.counts(errors, log_r)
        least = np.array([least_count(int(n), alpha) for n in self.n])
        return np.asarray(counts >= least.reshape(-1, *[1] * (counts.ndim - 1)))

    def interval(
        self, h: Sequence[FloatArray], log_r: Sequence[FloatArray], alpha: float
    ) -> FloatArray:
        """An interval that holds {y: max_k p_k(x, y) > α}, (n, 2), from h_t(x) and log r_kt(x).

        Row i is as strange as y where |y − h_t(x)| ≤ R_i(x) = σ_t(x) (s_i + a_t log r_kt(x)).  If c
        rows are needed, the ends are the c-th smallest h_t − R_i and the c-th largest h_t + R_i;
        where no y is left it is [h, h].
        """
        middle, needed = np.mean(h, axis=0), [least_count(int(n), alpha) for n in self.n]
        if not all(needed):
            return np.tile([-np.inf, np.inf], (middle.size, 1))
        parts_in = zip(self.error_scales, self.scores, h, log_r, strict=True)
        parts = [(own, h_k, by.scale(logs), by.pull(logs)) for by, own, h_k, logs in parts_in]
        inner, outer = _bounds(parts, needed)
        ends = np.stack([inner[0].min(axis=0), inner[1].max(axis=0)], axis=1)
        if len(self.scores) > 1:
            # Most sources cannot reach beyond what others are sure to reach.
            far = (outer[0] <= ends[:, 0]) | (outer[1] >= ends[:, 1])
            for k, least in enumerate(needed):
                rows = np.flatnonzero(far[k])
                # Of each part only the largest scores can be the ends.
                lower, upper = [], []
                for own, h_k, scale, pull in parts:
                    half = _reach(own[k][-least:], scale[rows], pull[k, rows])
                    lower.append(h_k[rows, None] - half)
                    upper.append(h_k[rows, None] + half)
                low = np.partition(np.concatenate(lower, axis=1), least - 1, axis=1)[:, least - 1]
                high = np.partition(np.concatenate(upper, axis=1), -least, axis=1)[:, -least]
                some = low <= high
                ends[rows, 0] = np.where(some, np.minimum(ends[rows, 0], low), ends[rows, 0])
                ends[rows, 1] = np.where(some, np.maximum(ends[rows, 1], high), ends[rows, 1])
        nothing = ends[:, 0] > ends[:, 1]
        return np.where(nothing[:, None], middle[:, None], ends)


# The scores of one part by source, and h (n,), σ (n,) and a log r (p, n) at new points.
_Part = tuple[tuple[FloatArray, ...], FloatArray, FloatArray, FloatArray]


def _bounds(parts: Sequence[_Part], needed: Sequence[int]) -> tuple[FloatArray, FloatArray]:
    """Ends within and beyond which those of each source cannot lie, both (2, p, n).

    The c-th largest end of K parts lies between the least and the largest ⌈c/K⌉-th largest one.
    """
    h = np.stack([one for _, one, _, _ in parts])
    inner, outer = np.empty((2, 2, len(needed), h.shape[1]))
    for k, least in enumerate(needed):
        rank, halves = -(-least // len(parts)), []
        for own, _, scale, pull in parts:
            best = own[k][-rank:][:1] if own[k].size >= rank else np.array([-np.inf])
            halves.append(_reach(best, scale, pull[k])[:, 0])
        lower, upper = h - halves, h + halves
        outer[:, k] = lower.min(axis=0), upper.max(axis=0)
        sure = lower.max(axis=0), upper.min(axis=0)
        inner[0, k] = np.where(sure[0] <= sure[1], sure[0], np.inf)
        inner[1, k] = np.where(sure[0] <= sure[1], sure[1], -np.inf)
    return inner, outer


def _reach(scores: FloatArray, scale: FloatArray, pull: FloatArray) -> FloatArray:
    """R of some scores of one source and part at points, (n, scores); −∞ if below 0."""
    reach = scores + pull[:, None]
    return np.where(reach >= 0, reach * scale[:, None], -np.inf)


def limits_without(scores: FloatArray, domain: IntArray, p: int, alpha: float) -> FloatArray:
    """The largest score that source k accepts at row i, if row i itself is left out: (p, m)."""
    limits = np.empty((p, scores.size))
    for k in range(p):
        own = np.flatnonzero(domain == k)
        own_scores = scores[own]
        least = least_count(own_scores.size, alpha)
        limits[k] = nth_largest(own_scores, least) if least else np.inf
        least = least_count(own_scores.size - 1, alpha)
        if not least:
            limits[k, own] = np.inf
            continue
        first, second = nth_largest(own_scores, least), nth_largest(own_scores, least + 1)
        limits[k, own] = np.where(own_scores >= first, second, first)
    return limits


@dataclass(frozen=True, eq=False)
class Coverage(Record):
    """The coverage of sets or intervals on each source: guarantee, ground, measured values.

    Attributes
    ----------
    alpha : float
        The share of rows that may be missed.
    rows : array (p,)
        Rows that the scores come from.
    coverage, size : array (p,)
        On these rows, each compared with the others by the part that never saw it: the share that
        is covered, and the mean number of labels or width; NaN where it is unknown.
    ground : "exact", "asymptotic" or "measured"
        What "at most α is missed" rests on.  Exact holds at every number of rows; asymptotic as
        rows become many; of what is only measured nothing is claimed.
    most : float
        The most that can be missed at this number of rows; 1 if nothing is proven.
    reason : str
        Why nothing more is claimed.
    of : "labels" or "numbers"
    sentence : str
        All of this in words; made from the numbers, never read.

    Examples
    --------
    >>> print(Coverage(0.1, np.array([50.0, 80.0]), np.ones(2), np.ones(2), "exact", 0.1))
    Sets miss at most 10 % of the rows of each of the 2 sources, and so of every mixture of them.
    """

    alpha: float
    rows: FloatArray
    coverage: FloatArray
    size: FloatArray
    ground: str
    most: float
    reason: str = ""
    of: str = "labels"
    sentence: str = field(init=False)

    def __post_init__(self) -> None:
        what = "Sets" if self.of == "labels" else "Intervals"
        share, p = f"{100 * self.alpha:.3g} %", self.rows.size
        where = f"the rows of each of the {p} sources, and so of every mixture of them"
        sentence = (
            f"{what} are made to miss at most {share} of {where}; measured, not guaranteed: "
            f"{self.reason}."
        )
        if self.ground == "exact":
            sentence = f"{what} miss at most {share} of {where}."
        elif self.ground == "asymptotic":
            few = f", and at most {100 * self.most:.3g} % at any number of rows"
            few = few if self.most < 1 else ""
            sentence = f"{what} miss at most {share} of {where} as rows become many{few}: "
            sentence += f"{self.reason}."
        object.__setattr__(self, "sentence", sentence)

    def __str__(self) -> str:
        return self.sentence
