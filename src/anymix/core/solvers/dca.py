"""The DC algorithm, faithful to eq. (6): linearise v_k at z_t, solve the convex problem, repeat.

    z_{t+1} ∈ argmin_z max_k  u_k(z) − v_k(z_t) − (z − z_t)·∇v_k(z_t)

The objective max_k (u_k − v_k) never rises.  It converges to a stationary point; γ need not
be zero there, and its value shows whether it is.

Differences of convex functions: u_k − v_k, both convex in z, one rule for every loss.

With a = D∘h − h_z D, so that ∇h_z = a/K, and C, q from the loss (`loss.dc_terms`),

    F = ℓ(h_z) + q(h_z) − C log K       E = q(h_z) − C log K       Kℓ(J/K)

are convex at every point: F and E by the choice of C, the last as a perspective.  Two objectives:

    gamma, pooled measure   u_k = Σ (D_k + ηU) F   v_k = Σ (D_k + ηU) E + Σ Kℓ   u − v = L_k − L_z
    worst, any measure      u_k = Σ P_k F          v_k = Σ P_k E                 u − v = L_k

Prop. 5 is the first with ℓ = (h − y)², C = 2M; Prop. 6 with ℓ = −log h, C = 1.  Where the
conditionals are distinct (P ≠ D, Q = Σ_j z_j P_j) the first is no longer a decomposition; for the
cross-entropy this one is:

    u_k = −Σ P_k log J + Σ Q log(Q/K)      v_k = −Σ P_k log K + Σ Q log(Q/J)
"""

from __future__ import annotations

from operator import attrgetter

import numpy as np
from scipy.special import xlogy

from anymix._arrays import FloatArray
from anymix.core.losses import DCTerms
from anymix.core.problem import Problem, components, gap
from anymix.core.records import Step
from anymix.core.simplex import uniform
from anymix.core.solvers.interior import Hessian, minimise_max
from anymix.core.solvers.oracle import TINY, TOL, Meter, SolverResult


def decompose(problem: Problem, objective: str, constant: str = "pointwise") -> Decomposition:
    """Return the decomposition of L_k − L_z ("gamma") or of L_k ("robust", "regret").

    `constant="global"` uses the largest C everywhere, as the paper's 2M; it converges far slower.

    Paper: Eq. 5, Prop. 5, Prop. 6, App. D.
    """
    if objective not in ("gamma", "robust", "regret"):
        raise ValueError(f"objective must be 'regret', 'robust' or 'gamma'; got {objective!r}.")
    if constant not in ("pointwise", "global"):
        raise ValueError(f"constant must be 'pointwise' or 'global'; got {constant!r}.")
    terms = problem.loss.dc_terms(problem.predictions, problem.targets)
    if constant == "global":
        terms = terms._replace(C=np.full_like(terms.C, terms.C.max()))
    if objective in ("robust", "regret"):
        return _Curved(problem, terms, problem.measure.rows(), with_mixture=False)
    if problem.pooled:
        spread = problem.masses + problem.eta * problem.reference
        return _Curved(problem, terms, spread, with_mixture=True)
    if problem.loss.logarithmic:
        return _DistinctCrossEntropy(problem)
    raise ValueError(
        "the DCA for objective 'gamma' with distinct conditionals (the own measure) is known for "
        "the cross-entropy only; use method='auto', or objective 'regret' or 'robust'."
    )


# Class by class a, the slope and the curvature of ℓ, and the slope of q.
_Classes = list[tuple[FloatArray, FloatArray, FloatArray, FloatArray]]


class _Curved:
    """Σ_i W_k(i) F(i) and Σ_i W_k(i) E(i) [+ Σ_i K ℓ]."""

    def __init__(self, problem: Problem, terms: DCTerms, weights: FloatArray, with_mixture: bool):
        self.problem, self.terms, self.weights = problem, terms, weights
        self.with_mixture = with_mixture

    def _at(self, z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, _Classes]:
        """K, ℓ and q at the points for one z, and what each class adds to the derivatives."""
        problem, (_, bend, centre) = self.problem, self.terms
        h, K = problem.ratio(z)
        y = problem.targets
        slope, curvature = problem.loss.slope(h, y), problem.loss.curvature(h, y)
        parts = [
            (B - g * problem.masses, s, c, 2 * bend * (g - centre))
            for B, g, s, c in components(problem.weighted, h, slope, curvature)
        ]
        # No vector loss has flat pieces, so q is that of a scalar loss or zero.
        q = bend * (h - centre) ** 2 if h.ndim == 1 else np.zeros_like(K)
        return K, problem.loss.value(h, y), q, parts

    def u(self, z: FloatArray) -> tuple[FloatArray, FloatArray, Hessian]:
        """Σ W F, its gradient, its Hessian.

        K²∇²F = (ℓ'' + q'') aa' − (ℓ' + q')(Da' + aD') + C DD'

        Paper: Prop. 5, Prop. 6.
        """
        (K, loss, q, parts), (C, bend, _), D = self._at(z), self.terms, self.problem.masses
        value = self.weights @ (loss + q - C * np.log(K))
        slope = sum(a * (s + t) for a, s, _, t in parts) - C * D

        def hessian(lam: FloatArray) -> FloatArray:
            # K twice, never K²: that underflows where all masses are tiny.
            W = (lam @ self.weights) / K
            H = (D * (W * C)) @ (D / K).T
            for a, s, c, t in parts:
                M = (a * (W * (c + 2 * bend)) - 2 * D * (W * (s + t))) @ (a / K).T
                H += (M + M.T) / 2
            return np.asarray(H)

        return value, (self.weights / K) @ np.asarray(slope).T, hessian

    def v(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Σ W E, plus Σ Kℓ for γ, and the gradient.

        Paper: Prop. 5, Prop. 6.
        """
        (K, loss, q, parts), (C, _, _), D = self._at(z), self.terms, self.problem.masses
        value = self.weights @ (q - C * np.log(K))
        slope = sum(a * t for a, _, _, t in parts) - C * D
        jacobian = (self.weights / K) @ np.asarray(slope).T
        if self.with_mixture:
            value = value + K @ loss
            jacobian = jacobian + D @ loss + sum((a @ s for a, s, _, _ in parts))
        return np.asarray(value), np.asarray(jacobian)


class _DistinctCrossEntropy:
    """The cross-entropy under the own measure: Q log(Q/K) and Q log(Q/J) are jointly convex."""

    def __init__(self, problem: Problem):
        self.problem, self.P = problem, problem.measure.rows()

    def _at(self, z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        h, K = self.problem.ratio(z)
        return h * K, K, z @ self.P

    def _entropy(self, table: FloatArray, X: FloatArray, Q: FloatArray) -> tuple[float, FloatArray]:
        """Σ Q log(Q/X) and its gradient, X = Σ_j z_j table_j + constant."""
        log_ratio = np.log(Q, out=np.zeros_like(Q), where=Q > 0) - np.log(X)
        return float(xlogy(Q, Q).sum() - Q @ np.log(X)), self.P @ (log_ratio + 1) - table @ (Q / X)

    def u(self, z: FloatArray) -> tuple[FloatArray, FloatArray, Hessian]:
        """−Σ P_k log J + Σ Q log(Q/K)."""
        P, D, B = self.P, self.problem.masses, self.problem.weighted
        J, K, Q = self._at(z)
        entropy, slope = self._entropy(D, K, Q)

        def hessian(lam: FloatArray) -> FloatArray:
            inverse = np.divide(1.0, Q, out=np.zeros_like(Q), where=Q > 0)
            cross = (P / K) @ D.T
            joint = (P * inverse) @ P.T + (D * (Q / K)) @ (D / K).T - cross - cross.T
            return np.asarray((B * ((lam @ P) / J)) @ (B / J).T + float(lam.sum()) * joint)

        return entropy - P @ np.log(J), slope - (P / J) @ B.T, hessian

    def v(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """−Σ P_k log K + Σ Q log(Q/J)."""
        J, K, Q = self._at(z)
        entropy, slope = self._entropy(self.problem.weighted, J, Q)
        value = entropy - self.P @ np.log(K)
        return value, slope - (self.P / K) @ self.problem.masses.T


# u with Jacobian and Hessian of Σ_k λ_k u_k, and v with Jacobian.
Decomposition = _Curved | _DistinctCrossEntropy
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
) -> SolverResult:
    """Run the DCA on max_k (L_k − b_k) − [Σ_k z_k (L_k − b_k)]; b = own losses for "regret".

    It stops with status "converged" (γ below tol), "stationary" (a step no longer helps), "stalled"
    (nor does one that fell short of its minimum, as kinks of a loss can cause) or "out of
    evaluations".  What is left is γ, or the last decrease of the worst loss, relative to the losses
    at the start.

    Paper: Eq. 5, Eq. 6.
    """
    parts, meter = decompose(problem, objective, constant), meter or Meter()
    b = problem.own_losses if objective == "regret" else np.zeros(problem.n_sources)
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
        # Below the rounding of u − v steps cannot be compared.
        rounding = EPSILON * float(np.abs(v).max())

        def model(
            x: FloatArray, v0: FloatArray = v + b, at: FloatArray = z, slope: FloatArray = slope
        ) -> tuple[FloatArray, FloatArray, Hessian]:
            """u_k(x) − v0_k − (x − z)·∇v_k(z), with its derivatives."""
            meter.pay()
            u, G, hessian = parts.u(x)
            return u - v0 - slope @ (x - at), G - slope, hessian

        inner = minimise_max(model, z, tol=max(INNER_SHARE * tol, INNER_TOL, rounding))
        meter.pay(2)
        f = problem.source_losses(inner.z) - b
        meter.note(f, inner.z)
        # v and the losses once each, plus the inner method's passes for u.
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
    left = value / scale if objective == "gamma" else left
    return SolverResult(z, value, float(left), status, n_evaluations=passes, trace=tuple(trace))
