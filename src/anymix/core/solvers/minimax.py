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
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray
from anymix.core.solvers.found import TINY, TOL, Found, judged
from anymix.core.solvers.oracle import Oracle
from anymix.core.solvers.penalty import Penalty
from anymix.core.solvers.quadratic import Guess, Minima, Quadratics, minimise, swap

# "Tried": on 48 random problems of p = 3 to 27, "robust" and "regret".
# Rounds of one descent.
MAX_ROUNDS = 100
# e in parts of 1/p.  .003 and .1: three problems of 48 not solved in 100 rounds; .01: all.
SOFTNESS = 1e-2
# The longest step, in logarithms; and what it leaves of a z_k that a penalty holds above 0.
FURTHEST, KEPT = 30.0, 0.02
# A z_k below this is 0.
LEAST = 1e-12
# How far z moves to the prior first: on the boundary the penalty is infinite.
INWARD = 0.001
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
# A descent is dropped if so many times its promise do not reach the best.  5: one problem missed.
HOPE, STIFF = 20.0, 0.1
# Descents as near as this are one, or so near where the one ahead has arrived.
SAME, NEARBY = 1e-4, 0.2

Rows = NDArray[np.intp]


class _Points(NamedTuple):
    """z with f (s, p), G and H (s, p, p), penalty included, and the λ that H was asked with."""

    z: FloatArray
    f: FloatArray
    G: FloatArray
    H: FloatArray
    lam: FloatArray

    @property
    def values(self) -> FloatArray:
        """max_k f_k, (s,)."""
        return np.asarray(self.f.max(axis=1))


def descend(
    oracle: Oracle,
    starts: FloatArray,
    penalty: Penalty,
    tol: float = TOL,
    slack: float = 0.0,
    multipliers: FloatArray | None = None,
) -> list[Found]:
    """Descend from each start (s, p) to a stationary point of max_k f_k + penalty, best first.

    A descent is not dropped while it is within `slack` of the best; multipliers (s, p) are a guess
    of those at the end, where there is one.
    """
    lanes = _Lanes(oracle, starts, penalty, multipliers)
    lanes.slack = slack
    for _ in range(MAX_ROUNDS):
        trials = lanes.trials(tol)
        if not len(trials.lane):
            break
        lanes.learn(trials, _ask(oracle, trials.z, trials.lam, penalty))
    return lanes.ends(tol)


def _ask(oracle: Oracle, Z: FloatArray, lam: FloatArray, penalty: Penalty) -> _Points:
    f, G, H = oracle.ask(Z, lam)
    if penalty.rho > 0:
        f, G = f + penalty.values(Z)[:, None], G + penalty.slope(Z)[:, None, :]
        i = np.arange(Z.shape[1])
        H[:, i, i] += penalty.curvature(Z)
    return _Points(Z, f, G, H, lam)


def _soft_worst(f: FloatArray, width: float) -> FloatArray:
    """First multipliers: those within `width` of the worst share the weight."""
    lam = np.exp((f - f.max(axis=1, keepdims=True)) / max(width, TINY))
    return np.asarray(lam / lam.sum(axis=1, keepdims=True))


class _Trials(NamedTuple):
    """Where to ask with which λ; whose trial it is; its Σ d²/a, what is foretold and promised.

    The first are the models' minima, one for each descent that goes on, in their order.
    """

    z: FloatArray
    lam: FloatArray
    lane: Rows
    size: FloatArray
    foretold: FloatArray
    promised: FloatArray


class _Lanes:
    """Descents side by side: where each is, its τ and B, its sets, and what its trial missed."""

    slack = 0.0

    def __init__(
        self, oracle: Oracle, starts: FloatArray, penalty: Penalty, lam: FloatArray | None
    ):
        s, p = starts.shape
        z = starts if penalty.rho == 0.0 else (1 - INWARD) * starts + INWARD * penalty.prior
        self.softness = SOFTNESS / p
        # Where the penalty is infinite at z_k = 0, a part of z_k is kept.
        self.kept = KEPT * (penalty.rho * penalty.prior > 0)
        at = _ask(oracle, z, np.full((s, p), 1.0 / p) if lam is None else lam, penalty)
        losses = np.abs(at.f - penalty.values(z)[:, None] + oracle.baseline)
        self.scale = max(float(losses.max(axis=1).min()), TINY)
        soft = _soft_worst(at.f, NEAR_WORST * self.scale)
        self.at = at._replace(lam=soft if lam is None else lam)
        self.tau, self.asked, self.left = np.zeros(s), np.zeros(s), np.full(s, np.inf)
        self.missed, self.corrected = np.zeros((s, p)), np.zeros(s, dtype=bool)
        self.guess = Guess(np.ones((s, p), dtype=bool), at.f >= at.values[:, None])
        self.B = self._bend(np.arange(s))
        self.active, self.arrived = np.arange(s), np.zeros(s, dtype=bool)

    def _hessian(self, rows: Rows, lam: FloatArray) -> FloatArray:
        """Σ_k λ_k ∇²f_k in the coordinates log(z + e)."""
        z, H = self.at.z[rows], self.at.H[rows].copy()
        g = (lam[:, None, :] @ self.at.G[rows])[:, 0]
        i = np.arange(z.shape[1])
        H[:, i, i] += (g - (g * z).sum(axis=1, keepdims=True)) / (z + self.softness)
        return H

    def _bend(self, rows: Rows) -> FloatArray:
        """B = |H| in the metric 1/a."""
        root = np.sqrt(self.at.z[rows] + self.softness)
        H = self._hessian(rows, self.at.lam[rows])
        values, V = np.linalg.eigh(root[:, :, None] * H * root[:, None, :])
        size, V = np.abs(values), V / root[:, :, None]
        least = LEAST_BEND * np.maximum(size.max(axis=1, keepdims=True), TINY)
        return np.asarray((V * np.maximum(size, least)[:, None, :]) @ V.transpose(0, 2, 1))

    def _moved(self, rows: Rows, d: FloatArray) -> FloatArray:
        """z⁺ ∝ a exp(d/a) − e."""
        a = self.at.z[rows] + self.softness
        z = a * np.exp(np.clip(d / a, -FURTHEST, FURTHEST)) - self.softness
        z = np.where(z < LEAST, 0.0, z)
        return np.asarray(z / z.sum(axis=1, keepdims=True))

    def _models(self, rows: Rows) -> Quadratics:
        """The models of some descents, what their last trial missed included."""
        a, B = self.at.z[rows] + self.softness, self.B[rows].copy()
        room = a * np.log(a / (self.softness + self.kept * self.at.z[rows]))
        i = np.arange(a.shape[1])
        B[:, i, i] += self.tau[rows, None] / a
        return Quadratics(self.at.f[rows] + self.missed[rows], self.at.G[rows], B, room)

    def trials(self, tol: float) -> _Trials:
        """Minimise the models, let go of who is done, and say where to ask for the others."""
        step, models = self._minimised(self.active)
        foretold, rows = models.functions(step.d), self.active
        promised = self.at.values[rows] - foretold.max(axis=1)
        idle = rows[self.corrected[rows] & (promised <= tol * self.scale)]
        if idle.size:
            # A correction that leads nowhere: without it, and stiffer.
            self._stiffen(idle)
            return self.trials(tol)
        going = np.flatnonzero(self._goes_on(promised, tol))
        self.active, rows = rows[going], rows[going]
        d, a = step.d[going], self.at.z[rows] + self.softness
        told = (d * d / a).sum(axis=1), foretold[going], promised[going]
        plain = _Trials(self._moved(rows, d), step.multipliers[going], rows, *told)
        near = np.flatnonzero(plain.promised < NEAR_END * self.scale)
        return self._with_newton(plain, d, models.room[going], near) if near.size else plain

    def _minimised(self, rows: Rows) -> tuple[Minima, Quadratics]:
        models = self._models(rows)
        found = minimise(models, Guess(self.guess.free[rows], self.guess.on[rows]))
        self.guess.free[rows], self.guess.on[rows] = found.sets
        return found, models

    def _stiffen(self, rows: Rows) -> None:
        """Give up the correction, and let τ grow as the trial before it asks for."""
        self.tau[rows] = np.maximum(GROWTH * self.tau[rows], self.asked[rows])
        self.missed[rows], self.corrected[rows] = 0.0, False

    def _goes_on(self, promised: FloatArray, tol: float) -> NDArray[np.bool_]:
        """Who has neither arrived, nor met a better one, nor lost all hope to reach the best."""
        rows, values = self.active, self.at.values
        # What is promised after a correction proves nothing.
        sure = ~self.corrected[rows]
        self.left[rows[sure]] = np.maximum(promised[sure], 0.0) / self.scale
        done = sure & (promised <= tol * self.scale)
        # A model that was stiffened promises little.
        lost = sure & (self.tau[rows] < STIFF * self.scale)
        lost &= values[rows] - HOPE * promised > values.min() + self.slack
        self.arrived[rows[done]] = True
        return np.asarray(~(done | lost | self._met(rows)))

    def _met(self, rows: Rows) -> NDArray[np.bool_]:
        """Who is where a better one is, or near one that has arrived, and downhill to it."""
        z, v = self.at.z[rows], self.at.values
        away = self.at.z[None] - z[:, None]
        far = np.abs(away).sum(axis=2)
        better = v[None] < v[rows, None]
        better |= (v[None] == v[rows, None]) & (np.arange(v.size)[None] < rows[:, None])
        along = self.at.f[rows][:, None] + away @ self.at.G[rows].transpose(0, 2, 1)
        downhill = along.max(axis=2) < v[rows, None]
        met = (far < SAME) | ((far < NEARBY) & self.arrived[None] & downhill)
        return np.asarray((met & better).any(axis=1))

    def _with_newton(self, plain: _Trials, d: FloatArray, room: FloatArray, near: Rows) -> _Trials:
        """Add, for some, a Newton step on the face that the model's minimum is on."""
        rows, lam = plain.lane[near], plain.lam[near]
        a = self.at.z[rows] + self.softness
        free = self.guess.free[rows] & ~(d[near] / a < -FALLING)
        exact = Quadratics(self.at.f[rows], self.at.G[rows], self._hessian(rows, lam), room[near])
        step, solved = swap(exact, Guess(free, self.guess.on[rows]), most=1)
        good = solved & (np.abs(np.where(free, step.d, 0.0)) / a < LONGEST).all(axis=1)
        some, rows = near[good], rows[good]
        asked = self._moved(rows, step.d[good]), step.multipliers[good], rows
        told = plain.size[some], plain.foretold[some], plain.promised[some]
        both = zip(plain, (*asked, *told), strict=True)
        return _Trials(*(np.concatenate(pair) for pair in both))

    def learn(self, trials: _Trials, found: _Points) -> None:
        """Take the best trial of each descent as its step, or correct its model and try again."""
        rows, n = self.active, len(self.active)
        gains = self.at.values[trials.lane] - found.values
        order = np.lexsort((-gains, trials.lane))
        best = order[np.unique(trials.lane[order], return_index=True)[1]]
        promised = np.maximum(trials.promised[best], TINY)
        taken = gains[best] > np.where(best < n, ENOUGH * promised, 0.0)
        miss = found.f[:n] - trials.foretold[:n]
        self._adapt(rows, taken, gains[:n] / promised, miss.max(axis=1) / trials.size[:n])
        refused = ~taken & self.corrected[rows]
        first = ~taken & ~refused & np.isfinite(miss).all(axis=1)
        self._stiffen(rows[~first & ~taken])
        self.missed[rows] = np.where(first[:, None], miss, 0.0)
        self.corrected[rows] = first
        steps, to = rows[taken], best[taken]
        for mine, new in zip(self.at, found, strict=True):
            mine[steps] = new[to]
        self.B[steps] = self._bend(steps)

    def _adapt(
        self, rows: Rows, taken: NDArray[np.bool_], kept: FloatArray, missed: FloatArray
    ) -> None:
        """τ falls where the model kept its promise; what a miss asks for is remembered."""
        tau = self.tau[rows]
        wanted = MARGIN * 2.0 * np.maximum(np.nan_to_num(missed), 0.0)
        most = LEAP * np.maximum(np.maximum(tau, wanted), LEAST_TAU * self.scale)
        asked = np.clip(tau + wanted, LEAST_TAU * self.scale, most)
        fair = np.where(kept > FAIR, tau, asked)
        self.tau[rows] = np.where(taken, np.where(kept > GOOD, FALL * tau, fair), tau)
        again = self.corrected[rows]
        self.asked[rows] = np.where(again, np.maximum(asked, self.asked[rows]), asked)

    def ends(self, tol: float) -> list[Found]:
        """Where the descents ended, best first."""
        at, values = self.at, self.at.values
        order = np.argsort(values, kind="stable")
        return [
            judged(at.z[i], float(values[i]), float(self.left[i]), tol, at.lam[i]) for i in order
        ]
