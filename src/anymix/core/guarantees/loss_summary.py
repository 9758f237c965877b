"""Summaries of losses for upper bounds: quantiles, moments and bounds for each source.

    loss      min(ℓ(h, y), c)
    regret    min(ℓ(h, y), c) − min(ℓ(h_k, y), c)
    above     1 where ℓ(h, y) > c
    excess    (min(ℓ(h, y), c) − t)₊

are the kinds of values of rows whose means are bounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from anymix._arrays import FloatArray, IntArray
from anymix.core.guarantees.confidence import Method, Moments, mean_upper_bound
from anymix.core.problem import EvaluatedPoints

BoundKind = Literal["loss", "regret", "above", "excess"]

# About so many rows of a source lose more than the clip.
ROWS_ABOVE_CLIP, LOWEST_QUANTILE = 10, 0.95
# Thresholds t that are tried, in parts of c: close where most losses are.
THRESHOLDS = (np.arange(64) / 64) ** 2


def largest_value(kind: BoundKind, c: float, t: float = 0.0) -> float:
    """The largest possible value of a kind: see `SourceSample.values`."""
    return {"loss": c, "regret": c, "above": 1.0, "excess": c - t}[kind]


class SourceSample(NamedTuple):
    """The rows of one source: losses of the evaluated model and of the own model, and weights.

    fold is the part of the average that predicts each row: the part that was learned without it.
    Where rows come in groups, weights and fold are those of groups, `group` says which one a row is
    of, and `part` how much of it: bounds are on means of groups, which are independent draws.
    """

    losses: FloatArray
    own: FloatArray
    weights: FloatArray
    fold: IntArray
    group: IntArray | None = None
    part: FloatArray | None = None

    def quantile(self, share: float = 1.0, most_rows: float = np.inf) -> float:
        """The quantile of losses and own losses that about ten rows exceed, of `most_rows` rows."""
        w = self.weights
        q = clip_shares(np.array([min(w.sum() ** 2 / (w @ w), most_rows)]), share)[0]
        return float(max(np.quantile(self.losses, q), np.quantile(self.own, q)))

    @classmethod
    def of(
        cls,
        losses: FloatArray,
        own: FloatArray,
        weights: FloatArray,
        fold: IntArray,
        groups: IntArray | None = None,
    ) -> Self:
        """Gather rows; the rows of a group count as one draw.

        >>> rows = np.array([1.0, 3.0, 5.0]), np.zeros(3), np.ones(3), np.zeros(3, dtype=np.intp)
        >>> found = SourceSample.of(*rows, np.array([7, 7, 9]))
        >>> found.by_group(found.losses), found.weights
        (array([2., 5.]), array([2., 1.]))
        """
        if groups is None:
            return cls(losses, own, weights, fold)
        _, first, group = np.unique(groups, return_index=True, return_inverse=True)
        total: FloatArray = np.bincount(group, weights).astype(float)
        return cls(losses, own, total, fold[first], group, weights / total[group])

    def by_group(self, values: FloatArray) -> FloatArray:
        """Average values of rows over each group."""
        if self.group is None or self.part is None:
            return values
        return np.bincount(self.group, self.part * values).astype(float)

    def values(self, kind: BoundKind, c: float, t: float = 0.0) -> FloatArray:
        """min(ℓ, c); that less the own model's; 1 where ℓ > c; or (min(ℓ, c) − t)₊."""
        if kind == "above":
            return self.by_group((self.losses > c).astype(float))
        losses = np.minimum(self.losses, c)
        if kind == "excess":
            return self.by_group(np.maximum(losses - t, 0.0))
        return self.by_group(losses if kind == "loss" else losses - np.minimum(self.own, c))

    def exact_uppers(
        self,
        kind: BoundKind,
        c: float,
        delta: float,
        method: Method,
        n_folds: int,
        t: float = 0.0,
    ) -> FloatArray:
        """Bounds (K,) on the mean of each fold at δ; without rows the largest value."""
        values, rng = self.values(kind, c, t), np.random.default_rng(0)
        if self.group is not None and method == "binomial":
            method = "betting"  # a group's share is not 0 or 1
        b = largest_value(kind, c, t)
        a = -b if kind == "regret" else 0.0
        folds = (values[self.fold == t] for t in range(n_folds))
        return np.array(
            [mean_upper_bound(x, delta, method, (a, b), rng=rng) if x.size else b for x in folds]
        )

    def moments(self, kind: BoundKind, c: float, t: float = 0.0) -> tuple[Moments, list[float]]:
        """The moments of the values, and Σw and Σwx over those above half of the largest."""
        values, w = self.values(kind, c, t), self.weights
        high = values > largest_value(kind, c, t) / 2
        return Moments.of(values, w), [w[high].sum(), w[high] @ values[high]]


class LossSummary:
    """Summaries of the losses of all sources, from which bounds are computed.

    For rows in memory; `sources.certification` has the same for rows in blocks.

    Parameters
    ----------
    samples : sequence of SourceSample
    n_folds : int
        The number of folds of the evaluation rows.  Of several, each trained the others' models.

    Attributes
    ----------
    source_losses, own_losses : array (p,)
        L_k and ε_k.
    rows : array (p,)
        (Σ w)²/Σ w² of each source: the effective sample size.
    least, largest : float
        The least and the largest loss, of the evaluated or of an own model.
    alike : bool
        Whether the rows of each source have equal weights, and are available one by one.
    """

    source_losses: FloatArray
    own_losses: FloatArray
    rows: FloatArray
    least: float
    largest: float
    alike: bool

    def __init__(self, samples: Sequence[SourceSample], n_folds: int = 1):
        self.samples, self.n_folds = samples, n_folds
        pairs = [(s.weights, np.stack([*map(s.by_group, (s.losses, s.own))])) for s in samples]
        means = np.array([both @ w / w.sum() for w, both in pairs])
        self.source_losses, self.own_losses = means.T
        self.rows = np.array([w.sum() ** 2 / (w @ w) for w, _ in pairs])
        self.least = min(min(s.losses.min(), s.own.min()) for s in samples)
        self.largest = max(max(s.losses.max(), s.own.max()) for s in samples)
        self.alike = all(bool(np.ptp(w) <= 1e-9 * w.max()) for w, _ in pairs)

    @property
    def n_rows(self) -> float:
        """The number of rows of the smallest source."""
        return float(self.rows.min())

    @classmethod
    def at(cls, problem: EvaluatedPoints, z: FloatArray) -> Self:
        """Return the summary of h_z at the points of a problem, as a single part."""
        h, samples = problem.ratio(z)[0], []
        for k in range(problem.n_sources):
            points, w = problem.measure.take(k)
            y, there = problem.targets[points], w > 0
            losses = problem.loss.value(h[points], y)[there]
            own = problem.loss.value(problem.predictions[k, points], y)[there]
            fold = np.zeros(losses.size, dtype=np.intp)
            samples.append(SourceSample(losses, own, w[there], fold))
        return cls(samples)

    @classmethod
    def of_rows(
        cls,
        losses: FloatArray,
        own: FloatArray,
        domain: IntArray,
        weight: ArrayLike | None = None,
        fold: IntArray | None = None,
        p: int | None = None,
        groups: IntArray | None = None,
    ) -> Self:
        """Gather rows (m,) by their source 0..p−1; fold (m,) is 0..K−1, or one for all.

        Rows of one of the groups (m,) count as one draw.
        """
        w = np.ones(losses.size) if weight is None else np.asarray(weight, dtype=float)
        parts = np.zeros(losses.size, dtype=np.intp) if fold is None else fold
        samples = []
        for k in range(int(domain.max()) + 1 if p is None else p):
            rows = np.flatnonzero((domain == k) & (w > 0))
            if not rows.size:
                raise ValueError(f"there are no rows of source {k} to evaluate.")
            own_groups = None if groups is None else groups[rows]
            known = losses[rows], own[rows], w[rows], parts[rows], own_groups
            samples.append(SourceSample.of(*known))
        return cls(samples, int(parts.max()) + 1)

    def quantiles(self, share: float = 1.0) -> FloatArray:
        """Quantiles of each source's losses that about ten of its rows exceed: (p,)."""
        return np.array([sample.quantile(share) for sample in self.samples])

    def threshold(self, share: float, c: float) -> float:
        """t ≥ 0, of some, at which t + max_k E (min(ℓ, c) − t)₊ / share is least by these rows."""
        tried = c * THRESHOLDS

        def mean(s: SourceSample, t: float) -> float:
            return float(s.weights @ s.values("excess", c, t) / s.weights.sum())

        bounds = [t + max(mean(s, t) for s in self.samples) / share for t in tried.tolist()]
        return float(tried[int(np.argmin(bounds))])

    def exact_uppers(
        self, kind: BoundKind, c: float, delta: float, method: Method, t: float = 0.0
    ) -> FloatArray:
        """Bounds (K, p) on the mean of source k for part t of the evaluated model, each at δ/K."""
        known = kind, c, delta / self.n_folds, method, self.n_folds, t
        return np.stack([s.exact_uppers(*known) for s in self.samples], axis=1)

    def asymptotic_uppers(
        self, kind: BoundKind, c: float, delta: float, t: float = 0.0
    ) -> FloatArray:
        """Asymptotic bounds (p,), each at δ."""
        known, most = [s.moments(kind, c, t) for s in self.samples], largest_value(kind, c, t)
        return np.array([one.upper(delta, most, tail) for one, tail in known])


def clip_shares(rows: FloatArray, share: float = 1.0) -> FloatArray:
    """The quantile of a source's losses at which losses are clipped: 1 − 10/n, at least .95.

    For subpopulations of a share β it is at least 1 − β/20: one in twenty of their rows is above.
    """
    return np.maximum(1.0 - (1.0 - LOWEST_QUANTILE) * share, 1.0 - ROWS_ABOVE_CLIP / rows)


def clip_of(
    summary: LossSummary, most: float = np.inf, least: float | None = None, share: float = 1.0
) -> float:
    """c: the largest quantile that about ten rows of a source exceed, within bounds.

    For labels it is at least the loss of chance.
    """
    return float(min(max(summary.quantiles(share).max(), least or -np.inf), most))
