"""The search for "robust" and "regret": descents from several starts, on few points first."""

from __future__ import annotations

import numpy as np

from anymix._arrays import FloatArray
from anymix.core import simplex
from anymix.core.solvers.equilibrium import find_equilibrium
from anymix.core.solvers.found import Found
from anymix.core.solvers.kinks import descend_kinks
from anymix.core.solvers.minimax import descend
from anymix.core.solvers.oracle import Oracle
from anymix.core.solvers.request import ROUGH_TOL, Request, oracles

# Descents begin on so many points, or so many a source, where there are several times as many, and
# go on with so many times more.
FEW_POINTS, FEW_A_SOURCE, SEVERAL, MORE = 500, 40, 4, 40
# The equilibrium is but one start of a descent.  Tried 1e-6 to 1e-10: evaluations within 3 %.
START_TOL, START_BUDGET = 1e-8, 60
# Corners are kept off: nothing is learned of sources that have no weight.
OFF_CORNER = 0.1
# One start by chance for so many of all: without them three more of 64 problems ended above SLSQP.
ONE_BY_CHANCE_IN = 3
# And one for so many sources: without them two of 120 problems, of 80 sources, ended higher.
SOURCES_A_START = 10
# Of descents on some of the points so many go on, as far apart, and as near to the best: which is
# the best there is chance, the less so the more points there are.
N_KEPT, APART, NOISE = 6, 1e-3, 0.1


def find_worst(request: Request) -> Found:
    """Descend from several starts, on few points first if there are many; keep the best."""
    sizes = _sizes(request)
    *parts, oracle = oracles(request, sizes)
    starts = _starts(request)
    for part, size in zip(parts, sizes, strict=True):
        starts = _promising(request, part, starts, NOISE * (sizes[0] / size) ** 0.5)
    best = _descents(request, oracle, starts, request.tol)[0]
    if request.n_starts > 1 and best.value > _reachable(request, oracle):
        budget = oracle.n_evaluations + START_BUDGET
        level = find_equilibrium(oracle, request.first, START_TOL, budget)
        # Beside the best: a descent that meets it ends there.
        best = _descents(request, oracle, np.stack([best.z, level.z]), request.tol)[0]
    return oracle.billed(best)


def _sizes(request: Request) -> list[int]:
    """How many points are looked at first, and then, while all are several times as many."""
    size, sizes = max(FEW_POINTS, FEW_A_SOURCE * request.problem.n_sources), []
    while SEVERAL * size <= request.problem.n_points:
        sizes.append(size)
        size *= MORE
    return sizes


def _promising(request: Request, part: Oracle, starts: FloatArray, noise: float) -> FloatArray:
    """Where descents on a part of the points end that may be the best on all of them."""
    ends = _descents(request, part, starts, ROUGH_TOL)
    size = abs(ends[0].value) + float(np.abs(request.problem.own_losses).max())
    near = ends[0].value + noise * size
    return simplex.apart([end.z for end in ends if end.value <= near], APART, N_KEPT)


def _descents(request: Request, oracle: Oracle, starts: FloatArray, tol: float) -> list[Found]:
    if request.problem.loss.kink:
        return descend_kinks(oracle, starts, request.penalty, tol)
    return descend(oracle, starts, request.penalty, tol, polish=tol < ROUGH_TOL)


def _reachable(request: Request, oracle: Oracle) -> float:
    """max_k (ε_k − b_k), which the equilibrium does not exceed but for ηM, and the penalty there.

    Paper: Cor. 2.
    """
    own = request.problem.own_losses
    return float((own - oracle.baseline).max()) + request.penalty.value(request.first)


def _starts(request: Request) -> FloatArray:
    """The prior, the user's, some near corners, and some by chance: (s, p)."""
    p = request.problem.n_sources
    starts = [request.penalty.prior]
    if request.start is not None:
        starts.append(request.start)
    for k in request.rng.permutation(p)[: request.n_starts - 1]:
        starts.append(OFF_CORNER * simplex.uniform(p) + (1 - OFF_CORNER) * np.eye(p)[k])
    by_chance = request.n_starts // ONE_BY_CHANCE_IN
    by_chance += p // SOURCES_A_START if request.n_starts > 1 else 0
    starts += [simplex.random(p, request.rng) for _ in range(by_chance)]
    return np.stack(starts)
