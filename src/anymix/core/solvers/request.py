"""What `solve` was asked for, checked, and the oracles that answer it."""

from __future__ import annotations

from collections.abc import Sequence
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


def oracles(request: Request, sizes: Sequence[int]) -> list[Oracle]:
    """The losses at about so many points, rising, and at all: a smaller set is drawn from the next.

    The last, of all points, pays for all.
    """
    problem, objective = request.problem, request.objective
    n, found = problem.n_points, [Oracle(problem, baseline(problem, objective), 1.0, request.meter)]
    for size in reversed(sizes):
        problem = problem.thin(size, request.rng)
        found.insert(0, Oracle(problem, baseline(problem, objective), size / n, request.meter))
    found[-1].helpers = tuple(found[:-1])
    return found
