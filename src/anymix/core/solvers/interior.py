"""min over the simplex of the largest of p convex functions: a primal-dual interior-point method.

    min_{z, t} t   subject to   f_k(z) ≤ t,   z ≥ 0,   Σ_k z_k = 1

This is the convex problem inside each step of the DCA, and, with f_k linear plus a common
quadratic, the model inside each step of the minimax solver.  Newton's method on

    Gᵀλ − ν + y = 0    Σ λ_k = 1    λ_k s_k = μ    z_k ν_k = μ    s = t − f    Σ z_k = 1,    μ → 0

with Mehrotra's predictor and corrector.
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


class _Point(NamedTuple):
    """Primal z, t, slacks s; dual λ, ν, y.  Also the shape of a direction."""

    z: FloatArray
    t: float
    s: FloatArray
    lam: FloatArray
    nu: FloatArray
    y: float

    def moved(self, d: _Point, primal: float, dual: float) -> _Point:
        return _Point(
            self.z + primal * d.z,
            self.t + primal * d.t,
            self.s + primal * d.s,
            self.lam + dual * d.lam,
            self.nu + dual * d.nu,
            self.y + dual * d.y,
        )

    def steps(self, d: _Point) -> tuple[float, float]:
        primal = min(step_to_boundary(self.s, d.s), step_to_boundary(self.z, d.z))
        dual = min(step_to_boundary(self.lam, d.lam), step_to_boundary(self.nu, d.nu))
        return primal, dual

    def gap(self) -> float:
        return float(self.lam @ self.s + self.nu @ self.z)


def step_to_boundary(x: FloatArray, dx: FloatArray) -> float:
    """Return the largest a ≤ 1 with x + a dx ≥ 0."""
    falling = dx < 0
    return min(1.0, float((x[falling] / -dx[falling]).min())) if falling.any() else 1.0


def minimise_max(model: Model, z: FloatArray, tol: float = TOL) -> SolverResult:
    """Minimise max_k f_k over the simplex, f_k convex.

    Paper: Eq. 6.
    """
    z = (1 - INWARD) * z + INWARD / z.size
    f, G, hessian = model(z)
    x = _first_point(z, f)
    best_z, best = z, float(f.max())
    n, left = 0, np.inf
    while not left < tol and n < MAX_STEPS:
        n += 1
        x = _step(x, f, G, hessian(x.lam))
        # Rounding in an ill-conditioned system must not let z leave the simplex.
        x = x._replace(z=x.z / x.z.sum())
        f, G, hessian = model(x.z)
        if f.max() < best:
            best_z, best = x.z, float(f.max())
        slope = float(np.abs(G.T @ x.lam - x.nu + x.y).max())
        residual = max(float(np.abs(x.s - x.t + f).max()), x.gap())
        left = max(slope / SLOPE_UNIT, residual) / (1.0 + abs(x.t))
    status = "converged" if left < tol else "out of evaluations"
    return SolverResult(clean(best_z), best, left, status, x.lam / x.lam.sum(), n + 1, n)


def _first_point(z: FloatArray, f: FloatArray) -> _Point:
    p = z.size
    spread = max(float(np.ptp(f)), LEAST_SPREAD * (1.0 + float(np.abs(f).max())))
    t = float(f.max()) + spread
    return _Point(z, t, t - f, np.full(p, 1.0 / p), spread / (p * p * z), 0.0)


def _step(x: _Point, f: FloatArray, G: FloatArray, H: FloatArray) -> _Point:
    """Predict with μ = 0, see how far that gets, aim for the μ it earned, correct, step."""
    p = x.z.size
    dual = G.T @ x.lam - x.nu + x.y
    slack = x.s - x.t + f
    A = _matrix(x, G, H)
    d = _direction(x, A, G, dual, slack, -x.lam * x.s, -x.z * x.nu)
    ahead = x.moved(d, *x.steps(d)).gap() / x.gap()
    aim = min(1.0, max(ahead, LEAST_AHEAD) ** MEHROTRA) * x.gap() / (2 * p)
    d = _direction(
        x, A, G, dual, slack, aim - x.lam * x.s - d.s * d.lam, aim - x.z * x.nu - d.z * d.nu
    )
    primal, dual_step = x.steps(d)
    return x.moved(d, min(1.0, INSIDE * primal), min(1.0, INSIDE * dual_step))


def _matrix(x: _Point, G: FloatArray, H: FloatArray) -> FloatArray:
    """Build the system for (dz, dt, dy) that is left after ds, dλ and dν are eliminated."""
    p, w = x.z.size, x.lam / x.s
    A = np.zeros((p + 2, p + 2))
    A[:p, :p] = H + (G.T * w) @ G + np.diag(x.nu / x.z)
    A[:p, p] = A[p, :p] = -(G.T @ w)
    A[p, p] = w.sum()
    A[:p, p + 1] = A[p + 1, :p] = 1.0
    return A


def _direction(
    x: _Point,
    A: FloatArray,
    G: FloatArray,
    dual: FloatArray,
    slack: FloatArray,
    rs: FloatArray,
    rz: FloatArray,
) -> _Point:
    """Solve s dλ + λ ds = rs, z dν + ν dz = rz and the linear conditions for one direction."""
    p, w = x.z.size, x.lam / x.s
    pull = rs / x.s + w * slack
    rhs = np.concatenate(
        [rz / x.z - dual - G.T @ pull, [pull.sum() - 1.0 + x.lam.sum(), 1.0 - x.z.sum()]]
    )
    # Near the answer the system is as ill-conditioned as the multipliers; least squares still
    # gives the step that matters where an exact solve refuses.
    try:
        solved = np.linalg.solve(A, rhs)
    except np.linalg.LinAlgError:
        solved = np.linalg.lstsq(A, rhs, rcond=None)[0]
    dz, dt, dy = solved[:p], float(solved[p]), float(solved[p + 1])
    ds = dt - G @ dz - slack
    return _Point(dz, dt, ds, rs / x.s - w * ds, rz / x.z - (x.nu / x.z) * dz, dy)
