"""The interface of solvers to a problem: losses minus a baseline, derivatives, and a budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic
from typing import NamedTuple, Protocol

import numpy as np

from anymix._arrays import FloatArray
from anymix.core.losses import Loss
from anymix.core.problem import Sums, gap
from anymix.core.records import Step
from anymix.core.simplex import clean

# What may be left, relative to the losses: far below sampling errors, and far above rounding.
TOL = 1e-10
# An answer this good has converged, whatever was asked for: sums over points round.
ROUNDING = 1e-12
# Divisors are at least this; the losses of perfect sources are zero.
TINY = 1e-300
# The metric 1/z is cut at this part of 1/p: uncut, a source at z_k = 0 could never come back.
LEAST_SHARE = 1e-3
# The multipliers of a method that has none.
NONE = np.empty(0)


class SolverResult(NamedTuple):
    """The result of a solver: z, the minimised value, and the status.

    `value` is γ, or the largest of the functions and the penalty; `optimality` is what is left of
    it, relative to the losses.  Multipliers are those of the functions, where a method has them.
    """

    z: FloatArray
    value: float
    optimality: float
    status: str
    multipliers: FloatArray = NONE
    n_evaluations: float = 0.0
    n_hessians: float = 0.0
    n_rounds: int = 0
    trace: tuple[Step, ...] = ()

    @property
    def converged(self) -> bool:
        """Whether the tolerance is reached."""
        return self.status == "converged"


def with_status(
    z: FloatArray, value: float, optimality: float, tol: float, multipliers: FloatArray = NONE
) -> SolverResult:
    """Return z as "converged" if no more than tol is left, else as "stalled"."""
    status = "converged" if optimality <= max(tol, ROUNDING) else "stalled"
    return SolverResult(z, value, optimality, status, multipliers)


class Budget(NamedTuple):
    """The budget of `solve`: evaluations, in passes over all points, and seconds.

    Far more than honest problems need: 300 sources take some thousand passes and a minute.

    Examples
    --------
    >>> Budget(seconds=60.0)
    Budget(evaluations=100000.0, seconds=60.0)
    """

    evaluations: float = 1e5
    seconds: float = 1800.0


class SpentError(Exception):
    """The budget is used up; `solve` returns the best z so far."""


class Meter:
    """Count the evaluations of a search, and keep the best z.

    `value` says how good z is, from f = L(z) − b and z; what was evaluated on all points, and not
    on a part of them, comes first.
    """

    def __init__(
        self,
        budget: Budget | None = None,
        value: Callable[[FloatArray, FloatArray], float] | None = None,
    ):
        self.budget, self.value, self.spent = budget or Budget(), value, 0.0
        self.end = monotonic() + self.budget.seconds
        self.best: FloatArray | None = None
        self._rank = (np.inf, np.inf)

    def pay(self, share: float = 1.0) -> None:
        """Spend a pass, or a share of one; the first is always allowed."""
        if self.spent and (self.spent >= self.budget.evaluations or monotonic() >= self.end):
            raise SpentError
        self.spent += share

    def note(self, f: FloatArray, z: FloatArray, share: float = 1.0) -> None:
        """Remember z if it is the best so far."""
        if self.value is not None:
            rank = (-share, self.value(f, z))
            if rank < self._rank:
                self._rank, self.best = rank, z


class Penalty(NamedTuple):
    """ρ KL(u ‖ z) = ρ Σ_k u_k log(u_k/z_k), which holds z near the prior u; z (p,) or (s, p)."""

    rho: float
    prior: FloatArray

    def values(self, z: FloatArray) -> FloatArray:
        """Return the penalty of each z; infinite where z_k = 0 < u_k."""
        if self.rho == 0.0:
            return np.zeros(z.shape[:-1])
        on = self.prior > 0
        with np.errstate(divide="ignore"):
            logs = np.log(self.prior[on]) - np.log(np.maximum(z[..., on], 0.0))
        return np.asarray(self.rho * (logs @ self.prior[on]))

    def pull(self, z: FloatArray) -> FloatArray:
        """ρ u/z, 0 where u_k = 0: the slope is −pull(z), the Hessian's diagonal pull(z²)."""
        pull = np.broadcast_to(self.rho * self.prior, z.shape)
        return np.asarray(np.divide(pull, z, out=np.zeros(z.shape), where=pull > 0))

    def worst(self, f: FloatArray, z: FloatArray) -> float:
        """max_k f_k and the penalty."""
        return float(f.max() + self.values(z))


class SumOverPoints(Protocol):
    """What an `Oracle` needs of a problem: sums over points, wherever these are kept."""

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
        """Return the problem with kinks rounded; only used where the loss has one."""


class Solvable(SumOverPoints, Protocol):
    """What `solve` needs of a problem in addition; the DCA needs a `Problem`."""

    @property
    def n_points(self) -> int:
        """m; where it is large, a part is searched first."""

    @property
    def own_losses(self) -> FloatArray:
        """ε_k, the baseline of "regret", shape (p,)."""

    def thin(self, n: int, rng: np.random.Generator) -> Solvable:
        """Return the problem on about n of the points; only used where there are many."""

    def paired_moments(self, z: FloatArray) -> FloatArray:
        """Σw, Σwd, Σw², Σw²d, Σw²d² (5, p); only used by shrinkage="auto"."""


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
        self.problem, self.p, self.share = problem, problem.n_sources, share
        self.meter = meter or Meter()
        self.baseline = np.broadcast_to(np.asarray(baseline, dtype=float), (self.p,))
        self.n_evaluations = self.n_hessians = 0.0
        self.n_rounds = 0
        self.trace: list[Step] = []
        self.helpers: tuple[Oracle, ...] = ()

    def losses(self, z: FloatArray) -> FloatArray:
        """Return f = L(z) − b."""
        return np.asarray(self.ask(z[None], slopes=False).losses[0])

    def ask(
        self, Z: FloatArray, multipliers: FloatArray | None = None, slopes: bool = True
    ) -> Sums:
        """Return f, its Jacobians and, with λ, Σ_k λ_k ∇²f_k for a stack of z, in one round."""
        cost = self.share * len(Z)
        self.meter.pay(cost)
        self.n_evaluations += cost
        self.n_hessians += 0.0 if multipliers is None else cost
        self.n_rounds += 1
        if slopes:
            found = self.problem.evaluate_many(Z, multipliers)
        else:
            found = Sums(np.stack([self.problem.source_losses(z) for z in Z]), NONE)
        f = np.asarray(found.losses - self.baseline)
        best = int(f.max(axis=1).argmin())
        self.trace.append(Step(self.n_evaluations, gap(f[best], Z[best]), float(f[best].max())))
        for one, z in zip(f, Z, strict=True):
            self.meter.note(one, z, self.share)
        return Sums(f, found.jacobians, found.hessians)

    def billed(self, result: SolverResult) -> SolverResult:
        """Clean z, and add the cost of this oracle and of those on samples."""
        bills = [
            (oracle.n_evaluations, oracle.n_hessians, oracle.n_rounds)
            for oracle in (self, *self.helpers)
        ]
        n_evaluations, n_hessians, n_rounds = map(sum, zip(*bills, strict=True))
        result = result._replace(z=clean(result.z), n_evaluations=n_evaluations, n_rounds=n_rounds)
        return result._replace(n_hessians=n_hessians, trace=tuple(self.trace))


# How well the problem on a part of the points is solved: it differs from all by far more than this.
ROUGH_TOL = 1e-6


class Request(NamedTuple):
    """The checked arguments of `solve`."""

    problem: Solvable
    objective: str
    penalty: Penalty
    start: FloatArray | None
    n_starts: int
    tol: float
    rng: np.random.Generator
    meter: Meter | None = None

    @property
    def first(self) -> FloatArray:
        """The start of a method with a single start."""
        return self.penalty.prior if self.start is None else self.start


def oracles(request: Request, sizes: Sequence[int]) -> list[Oracle]:
    """Return oracles on growing, nested samples of the points and on all points.

    The last, of all points, pays for all.
    """
    problem, n, created = request.problem, request.problem.n_points, list[Oracle]()
    for size in (n, *reversed(sizes)):
        problem = problem.thin(size, request.rng) if created else problem
        b = problem.own_losses if request.objective == "regret" else 0.0
        created.insert(0, Oracle(problem, b, size / n, request.meter))
    created[-1].helpers = tuple(created[:-1])
    return created
