"""The DC algorithm, faithful to eq. (6): linearise v_k at z_t, solve the convex problem, repeat.

    z_{t+1} ∈ argmin_z max_k  u_k(z) − v_k(z_t) − (z − z_t)·∇v_k(z_t)

The objective max_k (u_k − v_k) never rises.  It converges to a stationary point; for γ that need
not be zero, and γ itself tells.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anymix._arrays import FloatArray
from anymix.core.problem import Problem, gap
from anymix.core.records import Step
from anymix.core.simplex import uniform
from anymix.core.solvers.decomposition import Decomposition, decompose
from anymix.core.solvers.interior import Hessian, Model, minimise_max


class DCAResult(NamedTuple):
    """The last z, why it stopped, what is left, the passes, and the way there.

    What is left is γ, or the last decrease of the worst loss, relative to the losses at the start.
    """

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

    It stops with status "converged" (γ below tol), "stationary" (a step no longer helps), "stalled"
    (nor does one that fell short of its minimum, as kinks of a loss can cause) or "out of
    evaluations".

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
            status = "converged"
            break
        v, slope = parts.v(z)
        # Below the rounding of u − v no step can be told from another.
        rounding = 1e-15 * float(np.abs(v).max())
        model = _convexified(parts, z, v + b, slope)
        inner = minimise_max(model, z, tol=max(1e-3 * tol, 1e-13, rounding))
        f = problem.source_losses(inner.z) - b
        # u at the start and after each inner step, v once, the losses once.
        passes += inner.n_iterations + 3
        step = Step(passes, gap(f, inner.z), float(f.max()))
        before, after = (
            (trace[-1].gamma, step.gamma) if objective == "gamma" else (trace[-1].worst, step.worst)
        )
        left = (before - after) / scale
        if left <= 0.0:
            status, left = ("stationary" if inner.converged else "stalled"), max(left, 0.0)
            break
        z = inner.z
        trace.append(step)
        if left <= tol:
            status = "stationary"
            break
    if objective == "gamma":
        left = trace[-1].gamma / scale
    return DCAResult(z, status, float(left), passes, tuple(trace))


def _convexified(parts: Decomposition, z0: FloatArray, v0: FloatArray, slope: FloatArray) -> Model:
    """u_k(z) − v0_k − (z − z0)·∇v_k(z0), with its derivatives."""

    def model(z: FloatArray) -> tuple[FloatArray, FloatArray, Hessian]:
        u, G, hessian = parts.u(z)
        return u - v0 - slope @ (z - z0), G - slope, hessian

    return model
