"""min_z max_k (L_k(z) − b_k) + ρ KL(u ‖ z): "robust" has b = 0, "regret" b = the own losses.

Sequential quadratic minimax.  At z with multipliers λ, the model of each f_k = L_k − b_k is

    f_k + G_k d + ½ d'Bd + ½ c_k d'diag(1/z)d + ρ KL(u ‖ z + d),      B = |Σ_k λ_k ∇²L_k|,

whose largest is minimised over the simplex exactly (`interior`).  |H| takes the absolute values of
the eigenvalues in the metric diag(1/z), in which the ratio J/K bends evenly: B is positive, so the
step is one of descent, and it is exact where the problem is convex.  B serves all sources at once;
c_k is what source k bends beyond it, learned from how far the last trial missed its loss.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anymix._arrays import FloatArray
from anymix.core.solvers.found import LEAST_SHARE, TINY, TOL, Found, judged
from anymix.core.solvers.interior import Hessian, Model, minimise_max
from anymix.core.solvers.oracle import Oracle

# "Tried": on 17 problems, kinks included, from three starts, for "robust".
# Evaluations of one descent.  Tried 50 to 1000: the same answers.
BUDGET = 200.0
# How far z moves to the prior first: on the boundary the penalty is infinite.
INWARD = 0.001
# Part of the losses within which sources share the first multipliers.  Tried .01 to 1: evaluations
# within a tenth.
NEAR_WORST = 0.1
# Part of the promised decrease that makes a trial a step.  Tried 1e-4 to .1: the same evaluations.
ENOUGH = 1e-2
# c after a step keeps at least this part: with 0 or .9 there, 1.7 and 1.3 times the evaluations.
REMEMBERED = 0.3
# c grows by this after a miss that c foretold.  Tried 1.1 to 4: the same.
STIFFER = 1.5
# c a little above what the miss asks for.  Tried 1 to 3: evaluations within a tenth.
MARGIN = 1.3
# Even c, so many times the largest, so often: with one try two more problems stalled.
EVEN, EVEN_TRIES = 3.0, 5
# Finer than the decrease that a model must promise; with 1e-13 one more problem stalled.
INNER_TOL = 1e-12
# Flattest direction to steepest: B must be positive.  Tried 1e-10 to 1e-3: evaluations within 5 %.
LEAST_BEND = 1e-6


class Penalty(NamedTuple):
    """ρ KL(u ‖ z) = ρ Σ_k u_k log(u_k/z_k), which holds z near the prior u."""

    rho: float
    prior: FloatArray

    def value(self, z: FloatArray) -> float:
        """Return the penalty; infinite where z_k = 0 < u_k."""
        if self.rho == 0.0:
            return 0.0
        on = self.prior > 0
        if z[on].min() <= 0.0:
            return np.inf
        return self.rho * float(self.prior[on] @ np.log(self.prior[on] / z[on]))

    def worst(self, f: FloatArray, z: FloatArray) -> float:
        """max_k f_k and the penalty."""
        return float(f.max()) + self.value(z)

    def slope(self, z: FloatArray) -> FloatArray:
        """−ρ u/z."""
        return -self.rho * self.prior / z

    def curvature(self, z: FloatArray) -> FloatArray:
        """ρ u/z², the diagonal of the Hessian."""
        return self.rho * self.prior / (z * z)


class _Iterate(NamedTuple):
    z: FloatArray
    f: FloatArray
    G: FloatArray
    value: float


def descend(
    oracle: Oracle,
    z: FloatArray,
    penalty: Penalty,
    tol: float = TOL,
    multipliers: FloatArray | None = None,
) -> Found:
    """Descend from z to a stationary point of max_k f_k + penalty."""
    limit = oracle.n_evaluations + BUDGET
    if penalty.rho > 0:
        z = (1 - INWARD) * z + INWARD * penalty.prior
    at = _evaluate(oracle, z, penalty)
    scale = max(float(np.abs(at.f + oracle.baseline).max()), TINY)
    lam = _soft_worst(at.f, NEAR_WORST * scale) if multipliers is None else multipliers
    c, kept, left = np.zeros(z.size), 0.0, np.inf
    while oracle.n_evaluations < limit:
        bend = _Bend(at.z, oracle.hessian(at.z, lam))
        while oracle.n_evaluations < limit:
            step, c = _trial(at, bend, c, penalty, tol * scale)
            promised = at.value - step.value
            if promised <= tol * scale:
                # A model that could not be minimised proves nothing: the last promise stands.
                left = max(promised, 0.0) / scale if step.converged else left
                return judged(at.z, at.value, left, tol, lam)
            left = promised / scale
            new = _evaluate(oracle, step.z, penalty)
            kept = (at.value - new.value) / promised
            missed = bend.missed(at, new)
            if kept > ENOUGH:
                c = np.maximum(missed, REMEMBERED * c)
                break
            # A miss that nothing new explains only asks for a shorter step.
            c = np.maximum(missed, c if (missed > c).any() else STIFFER * c)
        if kept <= 0:
            break
        at, lam = new, step.multipliers
    return judged(at.z, at.value, left, tol, lam)


def _trial(
    at: _Iterate, bend: _Bend, c: FloatArray, penalty: Penalty, enough: float
) -> tuple[Found, FloatArray]:
    """Minimise the model; where uneven c defeat the inner method, with even and larger ones."""
    for _ in range(EVEN_TRIES):
        step = minimise_max(_model(at, bend, c, penalty), at.z, tol=INNER_TOL)
        if step.converged or at.value - step.value > enough:
            break
        c = np.full_like(c, EVEN * float(c.max()))
    return step, c


def _evaluate(oracle: Oracle, z: FloatArray, penalty: Penalty) -> _Iterate:
    f, G = oracle.losses_and_jacobian(z)
    return _Iterate(z, f, G, penalty.worst(f, z))


def _soft_worst(f: FloatArray, width: float) -> FloatArray:
    """First multipliers: those within `width` of the worst share the weight."""
    lam = np.exp((f - f.max()) / max(width, TINY))
    return np.asarray(lam / lam.sum())


class _Bend:
    """B = |H| in the metric w = 1/z."""

    def __init__(self, z: FloatArray, H: FloatArray):
        self.metric = 1.0 / np.maximum(z, LEAST_SHARE / z.size)
        root = 1.0 / np.sqrt(self.metric)
        values, V = np.linalg.eigh(root[:, None] * H * root)
        size = np.abs(values)
        V = V / root[:, None]
        self.B = (V * np.maximum(size, LEAST_BEND * max(float(size.max()), TINY))) @ V.T

    def missed(self, at: _Iterate, new: _Iterate) -> FloatArray:
        """c_k ≥ 0 that would have foretold the losses at the new point, and a third more."""
        d = new.z - at.z
        foretold = at.f + at.G @ d + 0.5 * float(d @ self.B @ d)
        return np.maximum(0.0, MARGIN * 2.0 * (new.f - foretold) / float(d @ (self.metric * d)))


def _model(at: _Iterate, bend: _Bend, c: FloatArray, penalty: Penalty) -> Model:
    """The convex model around an iterate."""
    B, w = bend.B, bend.metric

    def model(x: FloatArray) -> tuple[FloatArray, FloatArray, Hessian]:
        d = x - at.z
        Bd, wd = B @ d, w * d
        value, slope = 0.5 * float(d @ Bd), Bd
        diagonal: FloatArray | float = 0.0
        if penalty.rho > 0:
            value, slope = value + penalty.value(x), slope + penalty.slope(x)
            diagonal = penalty.curvature(x)

        def hessian(lam: FloatArray) -> FloatArray:
            bent = float(lam.sum()) * diagonal + float(lam @ c) * w
            return np.asarray(float(lam.sum()) * B + np.diag(bent))

        f = at.f + at.G @ d + value + 0.5 * c * float(d @ wd)
        return f, at.G + slope + c[:, None] * wd, hessian

    return model
