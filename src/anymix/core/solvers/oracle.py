"""All that a solver sees of a problem: losses less a baseline, their derivatives, and the bill."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from anymix._arrays import FloatArray
from anymix.core.losses import Loss
from anymix.core.problem import gap
from anymix.core.records import Step
from anymix.core.simplex import clean
from anymix.core.solvers.budget import Meter
from anymix.core.solvers.found import Found
from anymix.core.sums import Sums


class SumOverPoints(Protocol):
    """What an `Oracle` asks of a problem: sums over points, wherever these are kept."""

    @property
    def n_sources(self) -> int:
        """p."""

    def source_losses(self, z: FloatArray) -> FloatArray:
        """Return L_k(z), shape (p,)."""

    def evaluate_many(self, Z: FloatArray, multipliers: FloatArray | None = None) -> Sums:
        """Return L, G and, with multipliers (s, p), Σ_k λ_k ∇²L_k, for a stack Z (s, p)."""

    @property
    def loss(self) -> Loss:
        """ℓ; kinks are rounded first."""

    def smoothed(self, width: float) -> SumOverPoints:
        """Return the problem with kinks rounded; only asked for where the loss has one."""


class Solvable(SumOverPoints, Protocol):
    """What `solve` asks of a problem besides; the DCA needs a `Problem`."""

    @property
    def n_points(self) -> int:
        """m; where it is large, a part is searched first."""

    @property
    def own_losses(self) -> FloatArray:
        """ε_k, the baseline of "regret", shape (p,)."""

    def thin(self, n: int, rng: np.random.Generator) -> Solvable:
        """Return the problem on about n of the points; only asked for where there are many."""

    def paired_moments(self, z: FloatArray) -> FloatArray:
        """Σw, Σwd, Σw², Σw²d, Σw²d² (5, p); only asked for by shrinkage="auto"."""


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
        self.n_rounds = 0
        self.trace: list[Step] = []
        self.helpers: tuple[Oracle, ...] = ()

    def losses(self, z: FloatArray) -> FloatArray:
        """Return f = L(z) − b."""
        self._pay(1)
        return np.asarray(self._noted(self.problem.source_losses(z)[None], z[None])[0])

    def losses_and_jacobian(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return f = L(z) − b and its Jacobian."""
        self._pay(1)
        found = self.problem.evaluate_many(z[None])
        return self._noted(found.losses, z[None])[0], found.jacobians[0]

    def ask(
        self, Z: FloatArray, multipliers: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return f, its Jacobians and Σ_k λ_k ∇²f_k for a stack of z, in one round."""
        self._pay(len(Z))
        self.n_hessians += self.share * len(Z)
        found = self.problem.evaluate_many(Z, multipliers)
        assert found.hessians is not None
        return self._noted(found.losses, Z), found.jacobians, found.hessians

    def _pay(self, n: int) -> None:
        self.meter.pay(self.share * n)
        self.n_evaluations += self.share * n
        self.n_rounds += 1

    def _noted(self, losses: FloatArray, Z: FloatArray) -> FloatArray:
        """Take the baseline off, and remember the best of the stack."""
        f = np.asarray(losses - self.baseline)
        best = int(f.max(axis=1).argmin())
        self.trace.append(Step(self.n_evaluations, gap(f[best], Z[best]), float(f[best].max())))
        for one, z in zip(f, Z, strict=True):
            self.meter.note(one, z, self.share)
        return f

    def billed(self, found: Found) -> Found:
        """Clean z, and add what it cost here and at the helpers, which see part of the points."""
        oracles = [self, *self.helpers]
        return found._replace(
            z=clean(found.z),
            n_evaluations=sum(oracle.n_evaluations for oracle in oracles),
            n_hessians=sum(oracle.n_hessians for oracle in oracles),
            n_rounds=sum(oracle.n_rounds for oracle in oracles),
            trace=tuple(self.trace),
        )
