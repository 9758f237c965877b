"""min_z max_k (L_k(z) − b_k) + ρ KL(u ‖ z): "robust" has b = 0, "regret" b = the own losses.

Several descents advance in lockstep: a round evaluates all their trial points in one pass.  Each
is a sequential quadratic minimax in the coordinates log(z_k + e), in which J/K bends evenly
however small z_k is: with a = z + e, a step d leads to

    z⁺ ∝ a exp(d/a) − e,        d_k ≥ −a_k log(a_k/e), where z_k⁺ = 0,

and the model of f_k = L_k − b_k + ρ KL(u ‖ z) is f_k + G_k d + ½ d'Bd + ½ τ Σ d²/a, with

    B = |Σ_k λ_k ∇²f_k + diag((g − g·z)/a)|,        g = Σ_k λ_k ∇f_k,

where |·| takes the absolute values of the eigenvalues in the metric 1/a.  `quadratic` minimises
the largest.  B is exact for the sources together and not for each: where a trial misses, the next
adds to each f_k what it was missed by (a second-order correction), and only then τ grows.  Near
the end a Newton step without |·| is tried as well.  Descents that meet are merged, and one that
cannot reach the best any more is dropped.

Where a loss has a kink at h = y, so has L_k at each point, and models of second order are blind
to it.  Rounded within a width w the loss is smooth and at most κw/2 too high; its minima lead to
those of the loss as w → 0, and each is a good start for the next.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray
from anymix.core import simplex
from anymix.core.solvers.equilibrium import find_equilibrium
from anymix.core.solvers.oracle import (
    LEAST_SHARE,
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
from anymix.core.solvers.quadratic import Quadratics, minimise, swap

# "Tried": on 48 random problems of p = 3 to 27, "robust" and "regret".
# How far z moves to the prior first: on the boundary the penalty is infinite.
INWARD = 0.001
# e in parts of 1/p, in turns; the first where there is a penalty.  .003 and .1: three problems of
# 48 not solved in 100 rounds; .01: all.  Where η is tiny, so are shares that matter, and .01 alone
# ends too high on a tenth of problems.
SOFTNESS = 1e-2, 1e-5
# The longest step, in logarithms; and what it leaves of a z_k that a penalty holds above 0.
FURTHEST, KEPT = 30.0, 0.02
# A z_k below this is 0.
LEAST = 1e-12
# Part of the losses within which sources share the first multipliers.
NEAR_WORST = 0.1
# Part of the promised decrease that makes a trial a step; beyond the next τ falls or stays.
ENOUGH, GOOD, FAIR = 1e-2, 0.75, 0.25
# τ falls and grows by these, at most so far at once, and at first to a part of the losses.
FALL, GROWTH, LEAP, LEAST_TAU = 0.25, 4.0, 20.0, 1e-6
# τ a little above what the miss asks for.
MARGIN = 1.3
# Flattest direction to steepest: B must be positive.
LEAST_BEND = 1e-4
# Newton's step is tried below this promise, no longer than this, with what falls fast put to 0.
NEAR_END, LONGEST, FALLING = 1e-2, 3.0, 0.3
# What is left, relative to the losses, that no step can better.
EXACT = 1e-15
# A descent is dropped if so many times its promise do not reach the best.  5: one problem missed.
HOPE, STIFF = 20.0, 0.1
# Descents as near as this are one, or so near where the one ahead has arrived.
SAME, NEARBY = 1e-4, 0.1

Rows = NDArray[np.intp]
# Where to ask with which λ; whose trial it is; its Σ d²/a, what is foretold and promised.
Trials = tuple[FloatArray, FloatArray, Rows, FloatArray, FloatArray, FloatArray]


class DescentBatch:
    """A batch of descents: the position of each, its τ and B, its active sets, and its last error.

    z (s, p) with f (s, p), G and H (s, p, p), penalty included, and the λ that H was asked with.
    """

    def __init__(self, oracle: Oracle, penalty: Penalty, z: FloatArray, slack: float):
        s, p = z.shape
        self.oracle, self.penalty, self.slack = oracle, penalty, slack
        if penalty.rho > 0:
            z = (1 - INWARD) * z + INWARD * penalty.prior
        self.z, (self.f, self.G, self.H) = z.copy(), self._ask(z, np.full(z.shape, 1.0 / p))
        self.values = self.f.max(axis=1)
        losses = np.abs(self.f - penalty.values(z)[:, None] + oracle.baseline)
        self.scale = max(float(losses.max(axis=1).min()), TINY)
        self.softness = np.resize(SOFTNESS if penalty.rho == 0 else SOFTNESS[:1], (s, 1)) / p
        # Where the penalty is infinite at z_k = 0, a part of z_k is kept.
        self.kept = KEPT * (penalty.rho * penalty.prior > 0)
        # First multipliers: those near the worst share the weight.
        below = self.f - self.values[:, None]
        lam = np.exp(below / max(NEAR_WORST * self.scale, TINY))
        self.lam = lam / lam.sum(axis=1, keepdims=True)
        self.tau, self.asked, self.left = np.zeros(s), np.zeros(s), np.full(s, np.inf)
        self.missed, self.corrected = np.zeros((s, p)), np.zeros(s, dtype=bool)
        self.free, self.on = np.ones((s, p), dtype=bool), below >= 0
        self.active, self.arrived = np.arange(s), np.zeros(s, dtype=bool)
        self.B = self._bend(self.active)

    def _ask(self, Z: FloatArray, lam: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        f, G, H = self.oracle.ask(Z, lam)
        assert H is not None
        if self.penalty.rho > 0:
            f, i = f + self.penalty.values(Z)[:, None], np.arange(Z.shape[1])
            G = G - self.penalty.pull(Z)[:, None, :]
            H[:, i, i] += self.penalty.pull(Z * Z)
        return f, G, H

    def advance(self, tol: float) -> bool:
        """Advance by one round; return whether any descent is still running."""
        trials = self._trials(tol) if self.active.size else None
        if trials is None or not trials[0].size:
            return False
        self._learn(trials, *self._ask(*trials[:2]))
        return True

    def _hessian(self, rows: Rows, lam: FloatArray) -> FloatArray:
        """Σ_k λ_k ∇²f_k in the coordinates log(z + e)."""
        z, H = self.z[rows], self.H[rows].copy()
        g = (lam[:, None, :] @ self.G[rows])[:, 0]
        i = np.arange(z.shape[1])
        H[:, i, i] += (g - (g * z).sum(axis=1, keepdims=True)) / (z + self.softness[rows])
        return H

    def _bend(self, rows: Rows) -> FloatArray:
        """B = |H| in the metric 1/a."""
        root = np.sqrt(self.z[rows] + self.softness[rows])
        H = self._hessian(rows, self.lam[rows])
        values, V = np.linalg.eigh(root[:, :, None] * H * root[:, None, :])
        size, V = np.abs(values), V / root[:, :, None]
        least = LEAST_BEND * np.maximum(size.max(axis=1, keepdims=True), TINY)
        return np.asarray((V * np.maximum(size, least)[:, None, :]) @ V.transpose(0, 2, 1))

    def _moved(self, rows: Rows, d: FloatArray) -> FloatArray:
        """z⁺ ∝ a exp(d/a) − e."""
        e = self.softness[rows]
        a = self.z[rows] + e
        z = a * np.exp(np.clip(d / a, -FURTHEST, FURTHEST)) - e
        z = np.where(z < LEAST, 0.0, z)
        return np.asarray(z / z.sum(axis=1, keepdims=True))

    def _trials(self, tol: float) -> Trials:
        """Minimise the models, drop descents that are done, and say where to ask for the others.

        The first trials are the models' minima, one for each active descent, in their order.
        """
        rows = self.active
        z, e, i = self.z[rows], self.softness[rows], np.arange(self.z.shape[1])
        a = z + e
        B, room = self.B[rows].copy(), a * np.log(a / (e + self.kept * z))
        B[:, i, i] += self.tau[rows, None] / a
        models = Quadratics(self.f[rows] + self.missed[rows], self.G[rows], B, room)
        d, lam, self.free[rows], self.on[rows] = minimise(models, self.free[rows], self.on[rows])
        foretold = models.functions(d)
        promised = self.values[rows] - foretold.max(axis=1)
        idle = rows[self.corrected[rows] & (promised <= tol * self.scale)]
        if idle.size:
            # A correction that leads nowhere: without it, and stiffer.
            self._stiffen(idle)
            return self._trials(tol)
        going = np.flatnonzero(self._goes_on(promised, tol))
        self.active = rows = rows[going]
        d, lam, size = d[going], lam[going], (d * d / a).sum(axis=1)[going]
        plain = self._moved(rows, d), lam, rows, size, foretold[going], promised[going]
        near = np.flatnonzero(promised[going] < NEAR_END * self.scale)
        return self._with_newton(plain, d, room[going], near) if near.size else plain

    def _stiffen(self, rows: Rows) -> None:
        """Give up the correction, and let τ grow as the trial before it asks for."""
        self.tau[rows] = np.maximum(GROWTH * self.tau[rows], self.asked[rows])
        self.missed[rows], self.corrected[rows] = 0.0, False

    def _goes_on(self, promised: FloatArray, tol: float) -> NDArray[np.bool_]:
        """Which have neither arrived, nor met a better one, nor lost all hope to reach the best."""
        rows, v = self.active, self.values
        # What is promised after a correction proves nothing.
        sure = ~self.corrected[rows]
        self.left[rows[sure]] = np.maximum(promised[sure], 0.0) / self.scale
        done = sure & (promised <= tol * self.scale)
        # A model that was stiffened promises little.
        lost = sure & (self.tau[rows] < STIFF * self.scale)
        lost &= v[rows] - HOPE * promised > v.min() + self.slack
        self.arrived[rows[done]] = True
        # Met: where a better one is, or near one that has arrived, and downhill to it.
        away = self.z[None] - self.z[rows][:, None]
        far = np.abs(away).sum(axis=2)
        better = v[None] < v[rows, None]
        better |= (v[None] == v[rows, None]) & (np.arange(v.size)[None] < rows[:, None])
        along = self.f[rows][:, None] + away @ self.G[rows].transpose(0, 2, 1)
        downhill = along.max(axis=2) < v[rows, None]
        met = (far < SAME) | ((far < NEARBY) & self.arrived[None] & downhill)
        return np.asarray(~(done | lost | (met & better).any(axis=1)))

    def _with_newton(self, plain: Trials, d: FloatArray, room: FloatArray, near: Rows) -> Trials:
        """Add, for some, a Newton step on the face that the model's minimum is on."""
        _, lam, lane, size, foretold, promised = plain
        rows = lane[near]
        a = self.z[rows] + self.softness[rows]
        free = self.free[rows] & ~(d[near] / a < -FALLING)
        H = self._hessian(rows, lam[near])
        exact = Quadratics(self.f[rows], self.G[rows], H, room[near])
        (step, newton_lam, _, _), solved = swap(exact, free, self.on[rows], most=1)
        good = solved & (np.abs(np.where(free, step, 0.0)) / a < LONGEST).all(axis=1)
        some, rows = near[good], rows[good]
        asked = self._moved(rows, step[good]), newton_lam[good], rows
        both = zip(plain, (*asked, size[some], foretold[some], promised[some]), strict=True)
        return cast(Trials, tuple(np.concatenate(pair) for pair in both))

    def _learn(self, trials: Trials, f: FloatArray, G: FloatArray, H: FloatArray) -> None:
        """Take the best trial of each descent as its step, or correct its model and try again."""
        z, lam, lane, size, foretold, promise = trials
        rows, n, values = self.active, len(self.active), f.max(axis=1)
        gains = self.values[lane] - values
        order = np.lexsort((-gains, lane))
        best = order[np.unique(lane[order], return_index=True)[1]]
        promised = np.maximum(promise[best], TINY)
        taken = gains[best] > np.where(best < n, ENOUGH * promised, 0.0)
        miss = f[:n] - foretold[:n]
        # τ falls where the model kept its promise; what a miss asks for is remembered.
        tau, kept, again = self.tau[rows], gains[:n] / promised, self.corrected[rows]
        wanted = MARGIN * 2.0 * np.maximum(np.nan_to_num(miss.max(axis=1) / size[:n]), 0.0)
        most = LEAP * np.maximum(np.maximum(tau, wanted), LEAST_TAU * self.scale)
        asked = np.clip(tau + wanted, LEAST_TAU * self.scale, most)
        fair = np.where(kept > FAIR, tau, asked)
        self.tau[rows] = np.where(taken, np.where(kept > GOOD, FALL * tau, fair), tau)
        self.asked[rows] = np.where(again, np.maximum(asked, self.asked[rows]), asked)
        first = ~taken & ~again & np.isfinite(miss).all(axis=1)
        self._stiffen(rows[~first & ~taken])
        self.missed[rows], self.corrected[rows] = np.where(first[:, None], miss, 0.0), first
        steps, to = rows[taken], best[taken]
        self.z[steps], self.lam[steps], self.values[steps] = z[to], lam[to], values[to]
        self.f[steps], self.G[steps], self.H[steps] = f[to], G[to], H[to]
        self.B[steps] = self._bend(steps)


# Rounds of one descent: most take 10 to 30, some with a hundred sources that hardly differ 200.
MAX_ROUNDS = 300


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
    further step: near the end it squares the error, so that z no longer depends on the path.
    """
    batch = DescentBatch(oracle, penalty, starts, slack)
    for _ in range(MAX_ROUNDS):
        if not batch.advance(tol):
            break
    if polish:
        best = np.array([batch.values.argmin()])
        batch.active = best[batch.left[best] > EXACT]
        batch.missed[best], batch.corrected[best] = 0.0, False
        batch.advance(0.0)
    return [
        with_status(batch.z[i], float(batch.values[i]), float(batch.left[i]), tol, batch.lam[i])
        for i in np.argsort(batch.values, kind="stable")
    ]


# Widths, in parts of the worst loss at the first start: the last is what can be missed by at most.
WIDTHS = tuple(10.0 ** -(1 + i / 2) for i in range(13))
# Part of the width that a descent may leave: with 1e-3 three problems of 24 ended above SLSQP.
LEFT = 1e-5
# Minima as far apart as this go on, at most so many; wide roundings say little of which is lowest.
KINK_APART, N_KINKED = 1e-3, 12


def descend_kinks(
    oracle: Oracle,
    starts: FloatArray,
    penalty: Penalty,
    tol: float = TOL,
    widths: tuple[float, ...] = WIDTHS,
) -> list[SolverResult]:
    """Descend with smoothed kinks, and sort the results by the loss itself."""
    exact = oracle.problem
    worst = float(np.abs(oracle.losses(starts[0]) + oracle.baseline).max())
    unit = 2.0 * worst / exact.loss.kink
    ends: list[SolverResult] = []
    for width in widths if unit > 0 else ():
        oracle.problem = exact.smoothed(width * unit)
        ends = descend(oracle, starts, penalty, max(tol, LEFT * width), slack=width * worst)
        starts = simplex.apart([results.z for results in ends], KINK_APART, N_KINKED)
    oracle.problem = exact
    values = oracle.ask(starts).losses.max(axis=1) + penalty.values(starts)
    # What is left is what the last rounding left.
    left = {results.z.tobytes(): (results.optimality, results.multipliers) for results in ends}
    tol, results = max(tol, LEFT * WIDTHS[-1]), []
    for i in np.argsort(values, kind="stable"):
        rest, lam = left.get(starts[i].tobytes(), (0.0, NONE))
        results.append(with_status(starts[i], float(values[i]), rest, tol, lam))
    return results


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
# Spread of scattered shares in logarithms; rounds and starts of hops; how narrow kinks begin there.
# Three starts a round: nine took a quarter more evaluations and found nothing lower, 102 problems.
SCATTER, HOPS, N_HOPS, HOP_WIDTH, HOP_SPREAD = 4.0, 5, 3, 4, (0.1, 4.0)
# Of descents on some of the points so many go on, as far apart, and as near to the best: which is
# the best there is chance, the less so the more points there are.
N_KEPT, APART, NOISE = 6, 1e-3, 0.1


def find_worst(request: Request) -> SolverResult:
    """Multistart descent, first on a sample if there are many points; keep the best."""
    problem, n_starts, rng = request.problem, request.n_starts, request.rng
    p = problem.n_sources
    # How many points are looked at first, and then, while all are several times as many.
    size, sizes = max(FEW_POINTS, FEW_A_SOURCE * p), []
    while SEVERAL * size <= problem.n_points:
        sizes.append(size)
        size *= MORE
    *parts, oracle = oracles(request, sizes)
    # The prior, the user's start, some near corners, and some by chance.
    points = [request.penalty.prior, *([] if request.start is None else [request.start])]
    for k in rng.permutation(p)[: n_starts - 1]:
        points.append(OFF_CORNER * simplex.uniform(p) + (1 - OFF_CORNER) * np.eye(p)[k])
    by_chance = n_starts // ONE_BY_CHANCE_IN + (p // SOURCES_A_START if n_starts > 1 else 0)
    starts = np.stack([*points, *(simplex.random(p, rng) for _ in range(by_chance))])
    first, many = (parts or [oracle])[0], n_starts > 1 and request.penalty.rho == 0
    if many:
        # The best vertex, and shares of all magnitudes.
        vertices = np.eye(p)
        best_vertex = first.ask(vertices).losses.max(axis=1).argmin()
        starts = np.concatenate(
            [
                starts,
                vertices[[best_vertex]],
                _scattered(starts[0], np.full(2 * n_starts, SCATTER), rng),
            ]
        )
    for part, size in zip(parts, sizes, strict=True):
        # Where descents on a part of the points end that may be the best on all of them.
        ends = _descents(request, part, starts, ROUGH_TOL)
        if many and part is first:
            ends = _hop(request, part, ends, ROUGH_TOL)
        noise = NOISE * (sizes[0] / size) ** 0.5
        near = abs(ends[0].value) + float(np.abs(problem.own_losses).max())
        near = ends[0].value + noise * near
        starts = simplex.apart([end.z for end in ends if end.value <= near], APART, N_KEPT)
    ends = _descents(request, oracle, starts, request.tol)
    best = (_hop(request, oracle, ends, request.tol) if many and not parts else ends)[0]
    if n_starts > 1 and best.value > _reachable(request, oracle):
        budget = oracle.n_evaluations + START_BUDGET
        level = find_equilibrium(oracle, request.first, START_TOL, budget)
        # Together with the best: a descent that meets it ends there.
        best = _descents(request, oracle, np.stack([best.z, level.z]), request.tol)[0]
    if best.converged and p > 1:
        # No step leads lower; that no other valley does is not proven.
        best = best._replace(status="stationary")
    return oracle.billed(best)


def _scattered(z: FloatArray, spread: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Multiply shares, none of them zero, by log-normal numbers, once a spread: (n, p)."""
    scattered = (z + LEAST_SHARE / z.size) * np.exp(
        spread[:, None] * rng.normal(size=(spread.size, z.size))
    )
    return np.asarray(scattered / scattered.sum(axis=1, keepdims=True))


def _hop(
    request: Request, oracle: Oracle, ends: list[SolverResult], tol: float
) -> list[SolverResult]:
    """Descend again from around the best end, while that leads lower."""
    spread = np.geomspace(*HOP_SPREAD, N_HOPS)
    for _ in range(HOPS):
        best = ends[0]
        starts = np.stack([best.z, *_scattered(best.z, spread, request.rng)])
        results = _descents(request, oracle, starts, tol, WIDTHS[HOP_WIDTH:])
        if results[0].value < best.value:
            ends = [results[0], *ends]
        if not results[0].value < best.value - request.tol * abs(best.value):
            break
    return ends


def _reachable(request: Request, oracle: Oracle) -> float:
    """max_k (ε_k − b_k), which the equilibrium does not exceed but for ηM, and the penalty there.

    Paper: Cor. 2.
    """
    own = request.problem.own_losses
    return float((own - oracle.baseline).max()) + float(request.penalty.values(request.first))


def _descents(
    request: Request,
    oracle: Oracle,
    starts: FloatArray,
    tol: float,
    widths: tuple[float, ...] = WIDTHS,
) -> list[SolverResult]:
    if request.problem.loss.kink:
        return descend_kinks(oracle, starts, request.penalty, tol, widths)
    return descend(oracle, starts, request.penalty, tol, polish=tol < ROUGH_TOL)
