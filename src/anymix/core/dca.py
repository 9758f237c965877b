"""The DC algorithm, faithful to eq. (6): linearise v_k at z_t, solve the convex problem, repeat.

    z_{t+1} ∈ argmin_z max_k  u_k(z) − v_k(z_t) − (z − z_t)·∇v_k(z_t)

The objective max_k (u_k − v_k) never rises.  It converges to a stationary point; for γ that need
not be zero, and γ itself tells.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anymix.core.decomposition import Decomposition, decompose
from anymix.core.interior import Hessian, Model, minimise_max
from anymix.core.problem import Problem, gap
from anymix.core.records import Step
from anymix.core.simplex import FloatArray, uniform


class DCAResult(NamedTuple):
    """The last z, why it stopped, the last relative decrease, the passes, and the way there."""

    z: FloatArray
    status: str
    optimality: float
    n_evaluations: int
    trace: tuple[Step, ...]


def dca(
    problem: Problem,
    objective: str = "gamma",
    start: FloatArray | None = None,
    tol: float = 1e-10,
    max_iter: int = 500,
    constant: str = "pointwise",
) -> DCAResult:
    """Run the DCA on max_k (L_k − b_k) − [Σ_k z_k (L_k − b_k)]; b = own losses for "regret".

    It stops with status "converged" (γ below tol), "stationary" (a step no longer helps) or
    "out of evaluations".

    Paper: Eq. 5, Eq. 6.
    """
    parts = decompose(problem, objective, constant)
    b = problem.own_losses if objective == "regret" else np.zeros(problem.n_sources)
    z = uniform(problem.n_sources) if start is None else start
    f = problem.source_losses(z) - b
    trace, passes, left = [Step(1, gap(f, z), float(f.max()))], 1, np.inf
    scale = max(float(np.abs(f + b).max()), 1e-300)
    status = "out of evaluations"
    for _ in range(max_iter):
        if objective == "gamma" and trace[-1].gamma <= tol * scale:
            status, left = "converged", trace[-1].gamma / scale
            break
        inner = minimise_max(_convexified(parts, z, b), z, tol=max(1e-3 * tol, 1e-13))
        f = problem.source_losses(inner.z) - b
        passes += inner.n_iterations + 2
        step = Step(passes, gap(f, inner.z), float(f.max()))
        before, after = (
            (trace[-1].gamma, step.gamma) if objective == "gamma" else (trace[-1].worst, step.worst)
        )
        left = (before - after) / scale
        if left <= 0.0:
            status, left = "stationary", max(left, 0.0)
            break
        z = inner.z
        trace.append(step)
        if left <= tol:
            status = "stationary"
            break
    return DCAResult(z, status, float(left), passes, tuple(trace))


def _convexified(parts: Decomposition, z0: FloatArray, b: FloatArray) -> Model:
    """u_k(z) − b_k − v_k(z0) − (z − z0)·∇v_k(z0), with its derivatives."""
    v, slope = parts.v(z0)

    def model(z: FloatArray) -> tuple[FloatArray, FloatArray, Hessian]:
        u, G, hessian = parts.u(z)
        return u - b - v - slope @ (z - z0), G - slope, hessian

    return model
