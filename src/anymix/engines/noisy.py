"""Find z where every answer is noisy, and each costs privacy: a few small steps, averaged."""

from __future__ import annotations

import numpy as np

from anymix._arrays import FloatArray
from anymix.core import Solution, gap, simplex
from anymix.engines.partitioned import SummedProblem

# Of the first step, in units of 1/slope; later ones shrink with the root of their number.
STEP = 1.0


def solve_noisily(problem: SummedProblem, objective: str, releases: int) -> Solution:
    """Minimise max_k (L_k − b_k) by mirror descent: z ∝ z exp(−s_t g), g the slopes of the worst.

    b is the own loss of each source for "regret", 0 for "robust"; "gamma" seeks the equilibrium
    that "robust" has, too.  The mean of the second half of the steps is returned: noise averages
    out, and nobody looks at one answer alone.  One release each, and one for the own losses.
    """
    p = problem.n_sources
    own = problem.own_losses
    baseline = own if objective == "regret" else np.zeros(p)
    z, seen, losses = simplex.uniform(p), [], []
    for t in range(releases):
        L, G = problem.losses_and_jacobian(z)
        seen.append(z)
        losses.append(L)
        z = _step(z, G[int(np.argmax(L - baseline))], t)
    half = releases // 2
    found, L = np.mean(seen[half:], axis=0), np.mean(losses[half:], axis=0)
    return _solution(simplex.clean(found), L, own, objective, releases)


def _step(z: FloatArray, slope: FloatArray, t: int) -> FloatArray:
    scale = max(float(np.ptp(slope)), 1e-12)
    moved = z * np.exp(-STEP / np.sqrt(t + 1.0) * (slope - slope.min()) / scale)
    return np.asarray(moved / moved.sum())


def _solution(
    z: FloatArray, losses: FloatArray, own: FloatArray, objective: str, releases: int
) -> Solution:
    return Solution(
        z=z,
        gamma=gap(losses, z),
        robust_loss=float(losses.max()),
        regret=float((losses - own).max()),
        source_losses=losses,
        own_losses=own,
        objective=objective,
        method="noisy",
        status="out of evaluations",
        optimality=float("inf"),
        n_evaluations=float(releases),
        n_hessians=0.0,
    )
