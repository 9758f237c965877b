"""min over the simplex of the largest of p convex functions: a primal-dual interior-point method.

    min_{z, t} t   subject to   f_k(z) ≤ t,   z ≥ 0,   Σ_k z_k = 1

This is the convex problem inside each step of the DCA (`minimise_max`), and, with f_k linear plus
a common quadratic, the model inside each step of the minimax solver (`quadratic`), of which there
is a stack.  Both take the same steps of Newton's method on

    Gᵀλ − ν + y = 0    Σ λ_k = 1    λ_k s_k = μ    z_k ν_k = μ    s = t − f    Σ z_k = 1,    μ → 0

with Mehrotra's predictor and corrector, for all of a stack at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from anymix._arrays import FloatArray
from anymix.core.simplex import clean
from anymix.core.solvers.oracle import TOL, SolverResult

# λ ↦ Σ_k λ_k ∇²f_k, and z ↦ f (p,), its Jacobian (p, p), and that.
Hessian = Callable[[FloatArray], FloatArray]
Model = Callable[[FloatArray], tuple[FloatArray, FloatArray, Hessian]]


# Most models take 7 to 12; with 30 the DCA stopped short on one problem of four, 120 gave no more.
MAX_STEPS = 60
# How far z moves to the middle first, as z > 0 is needed.  Tried .01 to .3: the DCA's γ is equal.
INWARD = 0.1
# Slopes come out less exact than values, for the last systems are ill-conditioned: with 1 here two
# more of 21 descents stalled and the DCA for γ took 1.7 times the passes.
SLOPE_UNIT = 1e3
# Keeps t above the f_k, so that s > 0, where these are all equal.  Tried 1e-12 to 1e-4: the same.
LEAST_SPREAD = 1e-8
# Mehrotra's rule: aim for μ times the cube of what the predictor leaves of it, and not at zero.
LEAST_AHEAD, MEHROTRA = 1e-3, 3
# The part of the way to the boundary that a step may go: s, z, λ and ν must stay positive.
INSIDE = 0.995


class InnerPoint(NamedTuple):
    """Primal z, t, slacks s; dual λ, ν, y: (s, p) or (s, 1) of a stack.  Also a direction."""

    z: FloatArray
    t: FloatArray
    s: FloatArray
    lam: FloatArray
    nu: FloatArray
    y: FloatArray

    @classmethod
    def first(cls, z: FloatArray, f: FloatArray, least: FloatArray | float) -> InnerPoint:
        """Begin at z > 0 with functions f; the slacks are `least` where these are all equal."""
        p, top = z.shape[1], f.max(axis=1, keepdims=True)
        spread = np.maximum(np.ptp(f, axis=1, keepdims=True), least)
        t = top + spread
        return cls(z, t, t - f, np.full_like(f, 1.0 / p), spread / (p * p * z), np.zeros_like(t))

    def moved(self, d: InnerPoint, primal: FloatArray, dual: FloatArray) -> InnerPoint:
        """Return the point after a step along a direction."""
        steps = (primal, primal, primal, dual, dual, dual)
        return InnerPoint(*(own + a * da for own, da, a in zip(self, d, steps, strict=True)))

    def steps(self, d: InnerPoint) -> tuple[FloatArray, FloatArray]:
        """The longest primal and dual steps along a direction that stay inside."""
        primal = np.minimum(step_to_boundary(self.s, d.s), step_to_boundary(self.z, d.z))
        dual = np.minimum(step_to_boundary(self.lam, d.lam), step_to_boundary(self.nu, d.nu))
        return primal, dual

    def gap(self) -> FloatArray:
        """λ's + ν'z, (s, 1)."""
        return np.asarray((self.lam * self.s + self.nu * self.z).sum(axis=1, keepdims=True))


def step_to_boundary(x: FloatArray, dx: FloatArray) -> FloatArray:
    """The largest a ≤ 1 with x + a dx ≥ 0, for each of a stack, (..., 1)."""
    ratio = np.divide(-x, dx, out=np.ones_like(x), where=dx < 0)
    return np.asarray(np.minimum(1.0, ratio.min(axis=-1, keepdims=True)))


def times(A: FloatArray, x: FloatArray) -> FloatArray:
    """A x for a stack of both, (s, n)."""
    return np.asarray((A @ x[:, :, None])[:, :, 0])


def solved(A: FloatArray, b: FloatArray) -> FloatArray:
    """A⁻¹b for a stack; least squares where one of them is singular.

    Near a solution a system is as ill-conditioned as the multipliers, and least squares still gives
    the step that matters where an exact solve refuses.
    """
    try:
        return np.asarray(np.linalg.solve(A, b[:, :, None])[:, :, 0])
    except np.linalg.LinAlgError:
        pairs = zip(A, b, strict=True)
        return np.stack([np.linalg.lstsq(matrix, rhs, rcond=None)[0] for matrix, rhs in pairs])


def interior_step(
    at: InnerPoint,
    G: FloatArray,
    H: FloatArray,
    dual: FloatArray,
    slack: FloatArray,
    shares: FloatArray | float,
) -> InnerPoint:
    """One step of Mehrotra's predictor-corrector method.

    G (s, p, p) is the Jacobian and H (s, p, p) the Hessian of Σ_k λ_k f_k; dual and slack are the
    residuals of the first and the fifth condition, and z must have the sum of `shares`.
    """
    p, w, GT = at.z.shape[1], at.lam / at.s, G.transpose(0, 2, 1)
    # The system for (dz, dt, dy) that is left after ds, dλ and dν are eliminated.
    A = np.zeros((len(w), p + 2, p + 2))
    i = np.arange(p)
    A[:, :p, :p] = H + (GT * w[:, None, :]) @ G
    A[:, i, i] += at.nu / at.z
    A[:, :p, p] = A[:, p, :p] = -times(GT, w)
    A[:, p, p], A[:, :p, p + 1], A[:, p + 1, :p] = w.sum(axis=1), 1.0, 1.0

    def direction(rs: FloatArray, rz: FloatArray) -> InnerPoint:
        """Solve s dλ + λ ds = rs, z dν + ν dz = rz and the linear conditions."""
        pull = rs / at.s + w * slack
        last = [pull.sum(axis=1) - 1.0 + at.lam.sum(axis=1), (shares - at.z).sum(axis=1)]
        u = solved(A, np.column_stack([rz / at.z - dual - times(GT, pull), *last]))
        dz, dt, dy = u[:, :p], u[:, p : p + 1], u[:, p + 1 :]
        ds = dt - times(G, dz) - slack
        return InnerPoint(dz, dt, ds, rs / at.s - w * ds, rz / at.z - at.nu / at.z * dz, dy)

    d = direction(-at.lam * at.s, -at.z * at.nu)
    left = at.moved(d, *at.steps(d)).gap() / at.gap()
    aim = np.minimum(1.0, np.maximum(left, LEAST_AHEAD) ** MEHROTRA) * at.gap() / (2 * p)
    d = direction(aim - at.lam * at.s - d.s * d.lam, aim - at.z * at.nu - d.z * d.nu)
    primal, dual_step = at.steps(d)
    return at.moved(d, INSIDE * primal, INSIDE * dual_step)


def minimise_max(model: Model, z: FloatArray, tol: float = TOL) -> SolverResult:
    """Minimise max_k f_k over the simplex, f_k convex.

    Paper: Eq. 6.
    """
    z = (1 - INWARD) * z + INWARD / z.size
    f, G, hessian = model(z)
    at = InnerPoint.first(z[None], f[None], LEAST_SPREAD * (1.0 + float(np.abs(f).max())))
    best_z, best = z, float(f.max())
    n, left = 0, np.inf
    dual, slack = G.T @ at.lam[0] - at.nu + at.y, at.s - at.t + f
    while not left < tol and n < MAX_STEPS:
        n += 1
        at = interior_step(at, G[None], hessian(at.lam[0])[None], dual, slack, 1.0 / z.size)
        # Rounding in an ill-conditioned system must not let z leave the simplex.
        at = at._replace(z=at.z / at.z.sum())
        f, G, hessian = model(at.z[0])
        if f.max() < best:
            best_z, best = at.z[0], float(f.max())
        dual, slack = G.T @ at.lam[0] - at.nu + at.y, at.s - at.t + f
        residual = max(float(np.abs(slack).max()), float(at.gap()[0, 0]))
        left = max(float(np.abs(dual).max()) / SLOPE_UNIT, residual) / (
            1.0 + abs(float(at.t[0, 0]))
        )
    status = "converged" if left < tol else "out of evaluations"
    return SolverResult(clean(best_z), best, left, status, at.lam[0] / at.lam.sum(), n + 1, n)
