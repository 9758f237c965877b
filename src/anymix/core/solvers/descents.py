"""Descents side by side: models, trials and steps of a stack of them; see `minimax`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray
from anymix.core.solvers.oracle import TINY, Penalty, SolverResult, with_status
from anymix.core.solvers.quadratic import Quadratics, minimise, swap

# "Tried": on 48 random problems of p = 3 to 27, "robust" and "regret".
# e in parts of 1/p.  .003 and .1: three problems of 48 not solved in 100 rounds; .01: all.
SOFTNESS = 1e-2
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


class DescentPoints(NamedTuple):
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


class Trials(NamedTuple):
    """Where to ask with which λ; whose trial it is; its Σ d²/a, what is foretold and promised.

    The first are the models' minima, one for each descent that goes on, in their order.
    """

    z: FloatArray
    lam: FloatArray
    lane: Rows
    size: FloatArray
    foretold: FloatArray
    promised: FloatArray


class DescentBatch:
    """Descents side by side: where each is, its τ and B, its sets, and what its trial missed."""

    slack = 0.0

    def __init__(self, at: DescentPoints, penalty: Penalty, scale: float):
        s, p = at.z.shape
        self.softness, self.scale = SOFTNESS / p, scale
        # Where the penalty is infinite at z_k = 0, a part of z_k is kept.
        self.kept = KEPT * (penalty.rho * penalty.prior > 0)
        # First multipliers: those near the worst share the weight.
        lam = np.exp((at.f - at.values[:, None]) / max(NEAR_WORST * self.scale, TINY))
        self.at = at._replace(lam=lam / lam.sum(axis=1, keepdims=True))
        self.tau, self.asked, self.left = np.zeros(s), np.zeros(s), np.full(s, np.inf)
        self.missed, self.corrected = np.zeros((s, p)), np.zeros(s, dtype=bool)
        self.free, self.on = np.ones((s, p), dtype=bool), at.f >= at.values[:, None]
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

    def trials(self, tol: float) -> Trials:
        """Minimise the models, let go of who is done, and say where to ask for the others."""
        rows, models = self.active, self._models(self.active)
        step = minimise(models, self.free[rows], self.on[rows])
        self.free[rows], self.on[rows] = step.free, step.on
        foretold = models.functions(step.d)
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
        plain = Trials(self._moved(rows, d), step.multipliers[going], rows, *told)
        near = np.flatnonzero(plain.promised < NEAR_END * self.scale)
        return self._with_newton(plain, d, models.room[going], near) if near.size else plain

    def keep_best(self) -> None:
        """Let go of all but the best, and of that one if it is at its end to rounding."""
        best = np.array([self.at.values.argmin()])
        self.active = best[self.left[best] > EXACT]
        self.missed[best], self.corrected[best] = 0.0, False

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

    def _with_newton(self, plain: Trials, d: FloatArray, room: FloatArray, near: Rows) -> Trials:
        """Add, for some, a Newton step on the face that the model's minimum is on."""
        rows, lam = plain.lane[near], plain.lam[near]
        a = self.at.z[rows] + self.softness
        free = self.free[rows] & ~(d[near] / a < -FALLING)
        exact = Quadratics(self.at.f[rows], self.at.G[rows], self._hessian(rows, lam), room[near])
        step, solved = swap(exact, free, self.on[rows], most=1)
        good = solved & (np.abs(np.where(free, step.d, 0.0)) / a < LONGEST).all(axis=1)
        some, rows = near[good], rows[good]
        asked = self._moved(rows, step.d[good]), step.multipliers[good], rows
        told = plain.size[some], plain.foretold[some], plain.promised[some]
        both = zip(plain, (*asked, *told), strict=True)
        return Trials(*(np.concatenate(pair) for pair in both))

    def learn(self, trials: Trials, found: DescentPoints) -> None:
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

    def ends(self, tol: float) -> list[SolverResult]:
        """Where the descents ended, best first."""
        at, values = self.at, self.at.values
        order = np.argsort(values, kind="stable")
        return [
            with_status(at.z[i], float(values[i]), float(self.left[i]), tol, at.lam[i])
            for i in order
        ]
