"""γ(z) = 0 as a variational inequality: Lemma 4's map, then a Newton method that follows its flow.

γ(z) = 0 exactly when, with f = L − b and some level c,

    f_k(z) = c  where z_k > 0,      f_k(z) ≤ c  where z_k = 0.

The map of Lemma 4's proof, z_k ← z_k f_k / Σ_j z_j f_j, is a step of the flow
ż_k = z_k (f_k − f_z), which leads there, slowly.  An implicit step of length τ of the same flow,
with f linearised, asks for

    s = c − f − G(z' − z) + (z' − z)/(τ z) ≥ 0,     z' ≥ 0,     z'·s = 0,     Σ z' = 1,

and costs one evaluation, too.  With τ small it follows the flow, with τ → ∞ it is Newton's method;
τ grows as γ falls.
"""

from __future__ import annotations

import numpy as np

from anymix._arrays import FloatArray
from anymix.core.problem import gap
from anymix.core.simplex import uniform
from anymix.core.solvers.interior import MEHROTRA, step_to_boundary
from anymix.core.solvers.oracle import (
    LEAST_SHARE,
    ROUNDING,
    TINY,
    TOL,
    Oracle,
    SolverResult,
    with_status,
)

# How to set out: steps of the map, first τ in units of 1/γ, most steps after that.  The first is
# enough for most problems, in some ten steps; the flow is followed ever more patiently where it is
# not.
ATTEMPTS = ((0, 2.0, 25), (0, 0.5, 40), (10, 0.5, 40), (200, 0.2, 80), (2000, 0.05, 80))
# Rounds of pivots before the interior method, which always answers, takes over.  On 150 random
# problems 3 to 30 cost the same within 3 %; without pivots three were missed.
PIVOTS = 8
# τ grows by the first times the fall of γ, counted between the others.  Tried 1 to 2, .03 to 1, 2
# to 100: all 150 problems are solved, with evaluations within a tenth.
GROWTH, SLOWEST, FASTEST = 1.3, 0.3, 10.0
# z_k above this is on the face.  Zero takes rounding for a share: one of 150 problems was missed.
ON_FACE = 1e-12
# The interior method's start: half-way to the middle, z and s above zero.  Tried .1 to .9, 1e-12
# to 1e-4, 1e-4 to 1: evaluations within a tenth.
INWARD, LEAST_START, ABOVE = 0.5, 1e-8, 1e-2
# Its end: steps (tried 20 to 100: within 2 %), or a duality gap and residuals near rounding.
MAX_STEPS = 40
GAP_LEFT, RESIDUAL_LEFT = 1e-14, 1e-13
# The part of the way to the boundary that it may go (tried .9 to .999: within a tenth); μ > 0.
INSIDE, LEAST_AIM = 0.99, 1e-40
# What it leaves of a z_k that is zero.  Tried 0 to 1e-9: the same.
DROPPED = 1e-13


def brouwer_map(z: FloatArray, losses: FloatArray, eta_prime: float = 0.0) -> FloatArray:
    """Φ(z)_k = (z_k L_k + η'/p) / (Σ_j z_j L_j + η'); losses of any sign are shifted to be ≥ 0.

    Paper: Lemma 4.
    """
    L = losses - min(float(losses.min()), 0.0)
    total = float(z @ L) + eta_prime
    if total == 0.0:
        return z
    return np.asarray((z * L + eta_prime / z.size) / total)


def find_equilibrium(
    oracle: Oracle, z: FloatArray | None = None, tol: float = TOL, budget: float = np.inf
) -> SolverResult:
    """Find z with γ(z) ≤ tol · max_k |f_k|, with ever smaller steps within the budget.

    Paper: Lemma 4, Eq. 4.
    """
    start = uniform(oracle.p) if z is None else z
    best = with_status(start, np.inf, np.inf, tol)
    for attempt in ATTEMPTS:
        result = _follow(oracle, start, attempt, tol, budget)
        if result.optimality < best.optimality:
            best = result
        if best.optimality <= tol or oracle.n_evaluations >= budget:
            break
    return best


def _follow(
    oracle: Oracle,
    z: FloatArray,
    attempt: tuple[int, float, int],
    tol: float,
    budget: float,
) -> SolverResult:
    """Some steps of the map, then implicit steps whose length grows as γ falls."""
    map_steps, first_step, max_steps = attempt
    for _ in range(map_steps):
        if oracle.n_evaluations >= budget:
            break
        z = brouwer_map(z, oracle.losses(z))
    best, before, tau = with_status(z, np.inf, np.inf, tol), np.inf, 0.0
    for step in range(max_steps):
        (f,), (G,), _ = oracle.ask(z[None])
        scale = max(float(np.abs(f).max()), TINY)
        gamma = gap(f, z) / scale
        if gamma < best.optimality:
            best = with_status(z, gamma * scale, gamma, tol)
        if gamma <= tol or oracle.n_evaluations >= budget:
            break
        if step == 0:
            tau = first_step / (gamma * scale)
        else:
            tau *= GROWTH * min(max(before / gamma, SLOWEST), FASTEST)
        before = gamma
        # Solve the linearised problem: by pivots from the face that z is on, else in general.
        M = -G
        M.flat[:: z.size + 1] += 1.0 / (tau * np.maximum(z, LEAST_SHARE / z.size))
        guess = _by_pivots(z, f + M @ z, M)
        z = _affine_equilibrium(z, f, M) if guess is None else guess
    return best


def _by_pivots(z: FloatArray, target: FloatArray, M: FloatArray) -> FloatArray | None:
    """Solve on a face, z_k = 0 off it and s_k = 0 on it; swap every k whose other one is negative.

    Few rounds lead to a face where none is; None where they do not.
    """
    p = z.size
    A = np.ones((p + 1, p + 1))
    A[:p, :p], A[p, p] = M, 0.0
    rhs, eye = np.append(target, 1.0), np.eye(p + 1)
    on = np.append(z > ON_FACE, True)
    for _ in range(PIVOTS):
        try:
            x = np.linalg.solve(np.where(on[:, None], A, eye), np.where(on, rhs, 0.0))
        except np.linalg.LinAlgError:
            return None
        s = A @ x - rhs
        wrong = np.where(on, x, s) < 0.0
        wrong[p] = False
        if not wrong.any():
            return np.asarray(x[:p]) if np.isfinite(x).all() else None
        on ^= wrong
    return None


def _affine_equilibrium(z0: FloatArray, f: FloatArray, M: FloatArray) -> FloatArray:
    """z, s ≥ 0, z·s = 0, s = c − f + M(z − z0), Σz = 1, by predictor and corrector."""
    p = z0.size
    z = (1 - INWARD) * np.maximum(z0, LEAST_START) + INWARD / p
    z /= z.sum()
    F = f - M @ (z - z0)
    scale = float(np.abs(f).max()) + TINY
    c = float(F.max()) + max(float(F.max() - z @ F), ABOVE * float(np.ptp(F)), ROUNDING * scale)
    s = c - F
    for _ in range(MAX_STEPS):
        r = s - c + f - M @ (z - z0)
        mu = float(z @ s) / p
        if p * mu < GAP_LEFT * scale and np.abs(r).max() < RESIDUAL_LEFT * scale:
            break
        A = np.zeros((p + 1, p + 1))
        A[:p, :p] = z[:, None] * M + np.diag(s)
        A[:p, p], A[p, :p] = z, 1.0
        try:
            dz, dc, ds = _newton(A, M, r, np.append(z * r - z * s, 0.0))
            a = step_to_boundary(np.append(z, s), np.append(dz, ds))[0]
            ahead = max(float((z + a * dz) @ (s + a * ds)) / p, 0.0)
            aim = max(min(1.0, (ahead / mu) ** MEHROTRA) * mu, LEAST_AIM)
            dz, dc, ds = _newton(A, M, r, np.append(z * r - z * s + aim - a * a * dz * ds, 0.0))
        except np.linalg.LinAlgError:
            break
        a = INSIDE * step_to_boundary(np.append(z, s), np.append(dz, ds))[0]
        z, c, s = np.maximum(z + a * dz, TINY), c + a * dc, np.maximum(s + a * ds, TINY)
    z = np.where(z < DROPPED, 0.0, z)
    return np.asarray(z / z.sum())


def _newton(
    A: FloatArray, M: FloatArray, r: FloatArray, rhs: FloatArray
) -> tuple[FloatArray, float, FloatArray]:
    d = np.asarray(np.linalg.solve(A, rhs), dtype=float)
    dz, dc = d[:-1], float(d[-1])
    return dz, dc, dc + M @ dz - r
