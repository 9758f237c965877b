"""min_z max_k (L_k(z) − b_k) + ρ KL(u ‖ z): "robust" has b = 0, "regret" b = the own losses.

Several descents advance in lockstep: a round asks about all their trial points in one pass.  Each
is a sequential quadratic minimax in the coordinates log(z_k + e), in which J/K bends evenly
however small z_k is: with a = z + e, a step d leads to

    z⁺ ∝ a exp(d/a) − e,        d_k ≥ −a_k log(a_k/e), where z_k⁺ = 0,

and the model of f_k = L_k − b_k + ρ KL(u ‖ z) is f_k + G_k d + ½ d'Bd + ½ τ Σ d²/a, with

    B = |Σ_k λ_k ∇²f_k + diag((g − g·z)/a)|,        g = Σ_k λ_k ∇f_k,

where |·| takes the absolute values of the eigenvalues in the metric 1/a.  `quadratic` minimises
the largest.  B is exact for the sources together and not for each: where a trial misses, the next
adds to each f_k what it was missed by (a second-order correction), and only then τ grows.  Near
the end a Newton step without |·| is asked about as well.  Descents that meet are merged, and one
that cannot reach the best any more is dropped.

Descents for losses with a kink: around ever less rounded ones, to the loss itself.

Where a loss has a kink at h = y, so has L_k at each point, and models of second order are blind
to it.  Rounded within a width w the loss is smooth and at most κw/2 too high; its minima lead to
those of the loss as w → 0, and each is a good start for the next.
"""

from __future__ import annotations

import numpy as np

from anymix._arrays import FloatArray
from anymix.core import simplex
from anymix.core.solvers.descents import DescentBatch, DescentPoints
from anymix.core.solvers.equilibrium import find_equilibrium
from anymix.core.solvers.oracle import (
    NONE,
    ROUGH_TOL,
    TINY,
    TOL,
    Oracle,
    Penalty,
    Request,
    SolverResult,
    oracles,
    with_status,
)

# Rounds of one descent: most take 10 to 30, some with a hundred sources that hardly differ 200.
MAX_ROUNDS = 300
# How far z moves to the prior first: on the boundary the penalty is infinite.
INWARD = 0.001


def descend(
    oracle: Oracle,
    starts: FloatArray,
    penalty: Penalty,
    tol: float = TOL,
    slack: float = 0.0,
    polish: bool = False,
) -> list[SolverResult]:
    """Descend from each start (s, p) to a stationary point of max_k f_k + penalty, best first.

    A descent is not dropped while it is within `slack` of the best.  To `polish`, the best takes a
    step more: near the end it squares what is left, so that z depends on its way no longer.
    """
    p = starts.shape[1]
    z = starts if penalty.rho == 0.0 else (1 - INWARD) * starts + INWARD * penalty.prior
    at = _ask(oracle, z, np.full(z.shape, 1.0 / p), penalty)
    losses = np.abs(at.f - penalty.values(z)[:, None] + oracle.baseline)
    batch = DescentBatch(at, penalty, max(float(losses.max(axis=1).min()), TINY))
    batch.slack = slack
    for _ in range(MAX_ROUNDS):
        if not _advance(batch, oracle, penalty, tol):
            break
    if polish:
        batch.keep_best()
        _advance(batch, oracle, penalty, 0.0)
    return batch.ends(tol)


def _advance(batch: DescentBatch, oracle: Oracle, penalty: Penalty, tol: float) -> bool:
    """Go one round further; tell whether anybody does."""
    if not batch.active.size:
        return False
    trials = batch.trials(tol)
    if trials.lane.size:
        batch.learn(trials, _ask(oracle, trials.z, trials.lam, penalty))
    return bool(trials.lane.size)


def _ask(oracle: Oracle, Z: FloatArray, lam: FloatArray, penalty: Penalty) -> DescentPoints:
    f, G, H = oracle.ask(Z, lam)
    if penalty.rho > 0:
        f, G = f + penalty.values(Z)[:, None], G + penalty.slope(Z)[:, None, :]
        i = np.arange(Z.shape[1])
        H[:, i, i] += penalty.curvature(Z)
    return DescentPoints(Z, f, G, H, lam)


# Widths, in parts of the worst loss at the first start: the last is what can be missed by at most.
WIDTHS = tuple(10.0 ** -(1 + i / 2) for i in range(13))
# Part of the width that a descent may leave: with 1e-3 three problems of 24 ended above SLSQP.
LEFT = 1e-5
# Minima as far apart as this go on, at most so many; wide roundings say little of which is lowest.
KINK_APART, N_KINKED = 1e-3, 12


def descend_kinks(
    oracle: Oracle, starts: FloatArray, penalty: Penalty, tol: float = TOL
) -> list[SolverResult]:
    """Descend as `minimax.descend` does, around rounded kinks, and judge by the loss itself."""
    exact = oracle.problem
    worst = float(np.abs(oracle.losses(starts[0]) + oracle.baseline).max())
    unit = 2.0 * worst / exact.loss.kink
    ends: list[SolverResult] = []
    for width in WIDTHS if unit > 0 else ():
        oracle.problem = exact.smoothed(width * unit)
        ends = descend(oracle, starts, penalty, max(tol, LEFT * width), slack=width * worst)
        starts = simplex.apart([found.z for found in ends], KINK_APART, N_KINKED)
    oracle.problem = exact
    return _judged(oracle, starts, penalty, ends, tol)


def _judged(
    oracle: Oracle, Z: FloatArray, penalty: Penalty, ends: list[SolverResult], tol: float
) -> list[SolverResult]:
    """Put the ends in order by the loss itself; what is left is what the last rounding left."""
    f, _, _ = oracle.ask(Z, np.full(Z.shape, 1.0 / Z.shape[1]))
    values = f.max(axis=1) + penalty.values(Z)
    left = {found.z.tobytes(): found for found in ends}
    found = []
    for i in np.argsort(values, kind="stable"):
        end = left.get(Z[i].tobytes())
        rest, lam = (0.0, NONE) if end is None else (end.optimality, end.multipliers)
        found.append(with_status(Z[i], float(values[i]), rest, max(tol, LEFT * WIDTHS[-1]), lam))
    return found


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


def find_worst(request: Request) -> SolverResult:
    """Descend from several starts, on few points first if there are many; keep the best."""
    # How many points are looked at first, and then, while all are several times as many.
    size, sizes = max(FEW_POINTS, FEW_A_SOURCE * request.problem.n_sources), []
    while SEVERAL * size <= request.problem.n_points:
        sizes.append(size)
        size *= MORE
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


def _reachable(request: Request, oracle: Oracle) -> float:
    """max_k (ε_k − b_k), which the equilibrium does not exceed but for ηM, and the penalty there.

    Paper: Cor. 2.
    """
    own = request.problem.own_losses
    return float((own - oracle.baseline).max()) + request.penalty.value(request.first)


def _promising(request: Request, part: Oracle, starts: FloatArray, noise: float) -> FloatArray:
    """Where descents on a part of the points end that may be the best on all of them."""
    ends = _descents(request, part, starts, ROUGH_TOL)
    size = abs(ends[0].value) + float(np.abs(request.problem.own_losses).max())
    near = ends[0].value + noise * size
    return simplex.apart([end.z for end in ends if end.value <= near], APART, N_KEPT)


def _descents(
    request: Request, oracle: Oracle, starts: FloatArray, tol: float
) -> list[SolverResult]:
    if request.problem.loss.kink:
        return descend_kinks(oracle, starts, request.penalty, tol)
    return descend(oracle, starts, request.penalty, tol, polish=tol < ROUGH_TOL)


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
