"""What `solve` was asked for, checked, and the oracles that answer it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anymix._arrays import FloatArray
from anymix.core.solvers.budget import Meter
from anymix.core.solvers.oracle import Oracle, Solvable, baseline
from anymix.core.solvers.penalty import Penalty

# How well the problem on a part of the points is solved: it differs from all by far more than this.
ROUGH_TOL = 1e-6


class Request(NamedTuple):
    """What `solve` was asked for, checked."""

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
        """Where a method of one start begins."""
        return self.penalty.prior if self.start is None else self.start


def oracles(request: Request, many: int, few: int) -> tuple[Oracle, Oracle | None]:
    """The losses at all points and, from `many` on, at about `few` of them on the same bill."""
    problem, objective = request.problem, request.objective
    oracle = Oracle(problem, baseline(problem, objective), 1.0, request.meter)
    if problem.n_points >= many:
        part, share = problem.thin(few, request.rng), few / problem.n_points
        oracle.helper = Oracle(part, baseline(part, objective), share, request.meter)
    return oracle, oracle.helper
