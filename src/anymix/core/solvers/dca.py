"""The DC algorithm, faithful to eq. (6): linearise v_k at z_t, solve the convex problem, repeat.

    z_{t+1} ∈ argmin_z max_k  u_k(z) − v_k(z_t) − (z − z_t)·∇v_k(z_t)

The objective max_k (u_k − v_k) never rises.  It converges to a stationary point; γ need not
be zero there, and its value shows whether it is.
"""

from __future__ import annotations

from operator import attrgetter

import numpy as np

from anymix._arrays import FloatArray
from anymix.core.problem import Problem, gap
from anymix.core.records import Step
from anymix.core.simplex import uniform
from anymix.core.solvers.budget import Meter
from anymix.core.solvers.decomposition import Decomposition, decompose
from anymix.core.solvers.found import TINY, TOL, Found
from anymix.core.solvers.interior import Hessian, Model, minimise_max
from anymix.core.solvers.oracle import baseline

# The DCA can crawl, as it does with the paper's one constant: some limit must be set.
MAX_STEPS = 500
# The convex problem is solved this much better than asked for, as far as rounding allows.  Tried .1
# to 1e-5 for the first: the same answers to 1e-10.
INNER_SHARE, INNER_TOL = 1e-3, 1e-13
# A few units of rounding: C makes u and v much larger than their difference.  With 0 the DCA for γ
# took 1.7 times the passes.
EPSILON = 1e-15


def dca(
    problem: Problem,
    objective: str = "gamma",
    start: FloatArray | None = None,
    tol: float = TOL,
    max_iter: int = MAX_STEPS,
    constant: str = "pointwise",
    meter: Meter | None = None,
) -> Found:
    """Run the DCA on max_k (L_k − b_k) − [Σ_k z_k (L_k − b_k)]; b = own losses for "regret".

    It stops with status "converged" (γ below tol), "stationary" (a step no longer helps), "stalled"
    (nor does one that fell short of its minimum, as kinks of a loss can cause) or "out of
    evaluations".  What is left is γ, or the last decrease of the worst loss, relative to the losses
    at the start.

    Paper: Eq. 5, Eq. 6.
    """
    parts, meter = decompose(problem, objective, constant), meter or Meter()
    b = baseline(problem, objective)
    z = uniform(problem.n_sources) if start is None else start
    meter.pay()
    f = problem.source_losses(z) - b
    meter.note(f, z)
    trace, left = [Step(1, gap(f, z), float(f.max()))], np.inf
    scale = max(float(np.abs(f + b).max()), TINY)
    passes: float = 1
    status, watched = "out of evaluations", attrgetter("gamma" if objective == "gamma" else "worst")
    for _ in range(max_iter):
        if objective == "gamma" and trace[-1].gamma <= tol * scale:
            status = "converged"
            break
        v, slope = parts.v(z)
        # Below the rounding of u − v no step can be told from another.
        rounding = EPSILON * float(np.abs(v).max())
        model = _convexified(parts, z, v + b, slope, meter)
        inner = minimise_max(model, z, tol=max(INNER_SHARE * tol, INNER_TOL, rounding))
        meter.pay(2)
        f = problem.source_losses(inner.z) - b
        meter.note(f, inner.z)
        # v and the losses once each, beside the inner method's passes for u.
        passes += inner.n_evaluations + 2
        step = Step(passes, gap(f, inner.z), float(f.max()))
        left = (watched(trace[-1]) - watched(step)) / scale
        if left <= 0.0:
            status, left = ("stationary" if inner.converged else "stalled"), max(left, 0.0)
            break
        z = inner.z
        trace.append(step)
        if left <= tol:
            status = "stationary"
            break
    value = watched(trace[-1])
    if objective == "gamma":
        left = value / scale
    return Found(z, value, float(left), status, n_evaluations=passes, trace=tuple(trace))


def _convexified(
    parts: Decomposition, z0: FloatArray, v0: FloatArray, slope: FloatArray, meter: Meter
) -> Model:
    """u_k(z) − v0_k − (z − z0)·∇v_k(z0), with its derivatives."""

    def model(z: FloatArray) -> tuple[FloatArray, FloatArray, Hessian]:
        meter.pay()
        u, G, hessian = parts.u(z)
        return u - v0 - slope @ (z - z0), G - slope, hessian

    return model
