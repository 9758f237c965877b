"""What rows say of a predictor, source by source: its losses there, and those of the own model.

A statement asks for a few numbers of them: `LossSummary`.  Rows at hand are `Evidence`; rows in
parts answer the same questions, since each source's numbers need that source's rows alone.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from anymix._arrays import FloatArray, IntArray
from anymix.core.evaluated_points import EvaluatedPoints
from anymix.core.guarantees.confidence import Method, mean_upper_bound
from anymix.core.guarantees.moments import Moments


class LossSummary(Protocol):
    """What a statement asks of rows, wherever they are; see `Evidence`."""

    @property
    def n_folds(self) -> int:
        """In how many parts the rows are that judge."""

    @property
    def n_rows(self) -> float:
        """Of the source that has the fewest."""

    @property
    def least(self) -> float:
        """The least loss, of what is judged or of an own model."""

    @property
    def largest(self) -> float:
        """The largest loss, of what is judged or of an own model."""

    @property
    def alike(self) -> bool:
        """Whether the rows of each source count alike, and can be seen one after the other."""

    @property
    def source_losses(self) -> FloatArray:
        """L_k, (p,)."""

    @property
    def own_losses(self) -> FloatArray:
        """ε_k, (p,)."""

    def own_quantile(self, q: float, without: int | None = None) -> float:
        """The q-quantile of the own models' losses at home, over the rows of all folds but one."""

    def exact_upper(self, c: float, paired: bool, delta: float, method: Method) -> float:
        """The largest over sources of the mean over folds of bounds, each at δ/K."""

    def normal_upper(self, c: float, paired: bool, delta: float) -> float:
        """The largest over sources of the bound that holds as rows become many."""


class SourceSample(NamedTuple):
    """The rows of one source: losses of what is judged and of the own model, and weights.

    fold says which part of what is judged speaks at each row: the part that was learned without it.
    """

    losses: FloatArray
    own: FloatArray
    weights: FloatArray
    fold: IntArray

    @property
    def n_rows(self) -> float:
        """(Σ w)²/Σ w²: as many rows of equal weight would tell as much."""
        return float(self.weights.sum() ** 2 / (self.weights @ self.weights))

    @property
    def equal(self) -> bool:
        """Whether all rows count alike."""
        return bool(np.ptp(self.weights) <= 1e-9 * self.weights.max())

    def clipped(self, c: float, paired: bool) -> FloatArray:
        """min(ℓ, c), and less the own model's where they are paired."""
        losses = np.minimum(self.losses, c)
        return losses - np.minimum(self.own, c) if paired else losses

    def mean(self, values: FloatArray) -> float:
        """Average over the source."""
        return float(self.weights @ values)

    def exact_upper(
        self, c: float, paired: bool, delta: float, method: Method, n_folds: int = 1
    ) -> float:
        """(1/K) Σ_t of bounds on the folds' means of min(ℓ, c), which all hold with 1 − δ."""
        values, limits = self.clipped(c, paired), (-c if paired else 0.0, c)
        parts = [part for t in range(n_folds) if (part := values[self.fold == t]).size]
        rng, each = np.random.default_rng(0), delta / len(parts)
        return float(np.mean([mean_upper_bound(x, each, method, limits, rng=rng) for x in parts]))

    def moments(self, c: float, paired: bool) -> Moments:
        """What is needed of min(ℓ, c) for a bound that holds as rows become many."""
        return Moments.of(self.clipped(c, paired), self.weights)


class Evidence(NamedTuple):
    """The homes of all sources, and in how many parts their rows are."""

    homes: tuple[SourceSample, ...]
    n_folds: int = 1

    @classmethod
    def at(cls, problem: EvaluatedPoints, z: FloatArray) -> Self:
        """Return what the points of a problem say of h_z; all of them are one part."""
        h, homes = problem.ratio(z)[0], []
        for k in range(problem.n_sources):
            points, w = problem.measure.take(k)
            y, there = problem.targets[points], w > 0
            losses = problem.loss.value(h[points], y)[there]
            own = problem.loss.value(problem.predictions[k, points], y)[there]
            homes.append(SourceSample(losses, own, w[there], np.zeros(losses.size, dtype=np.intp)))
        return cls(tuple(homes))

    @classmethod
    def of_rows(
        cls,
        losses: FloatArray,
        own: FloatArray,
        domain: IntArray,
        weight: ArrayLike | None = None,
        fold: IntArray | None = None,
        p: int | None = None,
    ) -> Self:
        """Gather rows (m,) by their source 0..p−1; fold (m,) is 0..K−1, or one for all."""
        w = np.ones(losses.size) if weight is None else np.asarray(weight, dtype=float)
        parts = np.zeros(losses.size, dtype=np.intp) if fold is None else fold
        homes = []
        for k in range(int(domain.max()) + 1 if p is None else p):
            rows = np.flatnonzero((domain == k) & (w > 0))
            if not rows.size:
                raise ValueError(f"there are no rows of source {k} to judge by.")
            homes.append(
                SourceSample(losses[rows], own[rows], w[rows] / w[rows].sum(), parts[rows])
            )
        return cls(tuple(homes), int(parts.max()) + 1)

    @property
    def n_rows(self) -> float:
        """Of the source that has the fewest."""
        return min(home.n_rows for home in self.homes)

    @property
    def largest(self) -> float:
        """The largest loss, of what is judged or of an own model."""
        return max(float(max(home.losses.max(), home.own.max())) for home in self.homes)

    @property
    def least(self) -> float:
        """The least loss, of what is judged or of an own model."""
        return min(float(min(home.losses.min(), home.own.min())) for home in self.homes)

    @property
    def alike(self) -> bool:
        """Whether the rows of each source count alike."""
        return all(home.equal for home in self.homes)

    @property
    def source_losses(self) -> FloatArray:
        """L_k, (p,)."""
        return np.array([home.mean(home.losses) for home in self.homes])

    @property
    def own_losses(self) -> FloatArray:
        """ε_k, (p,)."""
        return np.array([home.mean(home.own) for home in self.homes])

    def own_quantile(self, q: float, without: int | None = None) -> float:
        """The q-quantile of the own models' losses at home, over the rows of all folds but one."""
        kept = [h.own if without is None else h.own[h.fold != without] for h in self.homes]
        return float(np.quantile(np.concatenate(kept), q))

    def exact_upper(self, c: float, paired: bool, delta: float, method: Method) -> float:
        """max_k of the mean over folds of bounds on E min(ℓ, c), paired or not, each at δ/K."""
        given = c, paired, delta, method, self.n_folds
        return max(home.exact_upper(*given) for home in self.homes)

    def normal_upper(self, c: float, paired: bool, delta: float) -> float:
        """max_k of the bound on E min(ℓ, c), paired or not, that holds as rows become many."""
        return max(home.moments(c, paired).upper(delta) for home in self.homes)
