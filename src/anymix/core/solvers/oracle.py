"""All that a solver sees of a problem: losses less a baseline, their derivatives, and the bill."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from anymix._arrays import FloatArray
from anymix.core.problem import gap
from anymix.core.records import Step
from anymix.core.simplex import clean
from anymix.core.solvers.budget import Meter
from anymix.core.solvers.found import Found


class SumOverPoints(Protocol):
    """What an `Oracle` asks of a problem: sums over points, wherever these are kept."""

    @property
    def n_sources(self) -> int:
        """p."""

    def source_losses(self, z: FloatArray) -> FloatArray:
        """Return L_k(z), shape (p,)."""

    def losses_and_jacobian(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return L (p,) and G (p, p)."""

    def hessian(self, z: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Return Σ_k λ_k ∇²L_k (p, p)."""


class Solvable(SumOverPoints, Protocol):
    """What `solve` asks of a problem besides; the DCA and shrinkage="auto" need a `Problem`."""

    @property
    def n_points(self) -> int:
        """m; where it is large, a part is searched first."""

    @property
    def own_losses(self) -> FloatArray:
        """ε_k, the baseline of "regret", shape (p,)."""

    def thin(self, n: int, rng: np.random.Generator) -> Solvable:
        """Return the problem on about n of the points; only asked for where there are many."""


def baseline(problem: Solvable, objective: str) -> FloatArray:
    """b: the sources' own losses for "regret", zero for "robust" and "gamma"."""
    return problem.own_losses if objective == "regret" else np.zeros(problem.n_sources)


class Oracle:
    """L_k − b_k and derivatives, each pass counted as `share` of a pass over all points.

    The meter ends the search where too much is spent.
    """

    def __init__(
        self,
        problem: SumOverPoints,
        baseline: FloatArray | float,
        share: float = 1.0,
        meter: Meter | None = None,
    ):
        self.problem = problem
        self.meter = meter or Meter()
        self.p = problem.n_sources
        self.baseline = np.broadcast_to(np.asarray(baseline, dtype=float), (self.p,))
        self.share = share
        self.n_evaluations = 0.0
        self.n_hessians = 0.0
        self.trace: list[Step] = []
        self.helper: Oracle | None = None

    def _note(self, losses: FloatArray, z: FloatArray) -> FloatArray:
        self.n_evaluations += self.share
        f = np.asarray(losses - self.baseline)
        self.trace.append(Step(self.n_evaluations, gap(f, z), float(f.max())))
        self.meter.note(f, z, self.share)
        return f

    def losses(self, z: FloatArray) -> FloatArray:
        """Return f = L(z) − b."""
        self.meter.pay(self.share)
        return self._note(self.problem.source_losses(z), z)

    def losses_and_jacobian(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return f = L(z) − b and its Jacobian."""
        self.meter.pay(self.share)
        L, G = self.problem.losses_and_jacobian(z)
        return self._note(L, z), G

    def hessian(self, z: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Return Σ_k λ_k ∇²f_k."""
        self.n_hessians += self.share
        return self.problem.hessian(z, multipliers)

    def billed(self, found: Found) -> Found:
        """Clean z, and add what it cost here and at the helper, which sees part of the points."""
        oracles = [self] if self.helper is None else [self, self.helper]
        return found._replace(
            z=clean(found.z),
            n_evaluations=sum(oracle.n_evaluations for oracle in oracles),
            n_hessians=sum(oracle.n_hessians for oracle in oracles),
            trace=tuple(self.trace),
        )
