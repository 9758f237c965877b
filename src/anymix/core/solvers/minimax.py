"""min_z max_k (L_k(z) − b_k) + ρ KL(u ‖ z): "robust" has b = 0, "regret" b = the own losses.

Several descents advance in lockstep: a round asks about all their trial points in one pass.  Each
is a sequential quadratic minimax in the coordinates log(z_k + e), in which J/K bends evenly
however small z_k is: with a = z + e, a step d leads to

    z⁺ ∝ a exp(d/a) − e,        d_k ≥ −a_k log(a_k/e), where z_k⁺ = 0,

and the model of f_k = L_k − b_k + ρ KL(u ‖ z) is f_k + G_k d + ½ d'Bd + ½ τ Σ d²/a, with

    B = |Σ_k λ_k ∇²f_k + diag((g − g·z)/a)|,        g = Σ_k λ_k ∇f_k,

where |·| takes the absolute values of the eigenvalues in the metric 1/a.  `quadratic` minimises
the largest.  B is exact for the sources together and not for each: where a trial misses, the next
adds to each f_k what it was missed by (a second-order correction), and only then τ grows.  Near
the end a Newton step without |·| is asked about as well.  Descents that meet are merged, and one
that cannot reach the best any more is dropped.
"""

from __future__ import annotations

import numpy as np

from anymix._arrays import FloatArray
from anymix.core.solvers.descents import DescentBatch, Points
from anymix.core.solvers.found import TINY, TOL, Found
from anymix.core.solvers.oracle import Oracle
from anymix.core.solvers.penalty import Penalty

# Rounds of one descent: most take 10 to 30, some with a hundred sources that hardly differ 200.
MAX_ROUNDS = 300
# How far z moves to the prior first: on the boundary the penalty is infinite.
INWARD = 0.001


def descend(
    oracle: Oracle,
    starts: FloatArray,
    penalty: Penalty,
    tol: float = TOL,
    slack: float = 0.0,
    polish: bool = False,
) -> list[Found]:
    """Descend from each start (s, p) to a stationary point of max_k f_k + penalty, best first.

    A descent is not dropped while it is within `slack` of the best.  To `polish`, the best takes a
    step more: near the end it squares what is left, so that z depends on its way no longer.
    """
    p = starts.shape[1]
    z = starts if penalty.rho == 0.0 else (1 - INWARD) * starts + INWARD * penalty.prior
    at = _ask(oracle, z, np.full(z.shape, 1.0 / p), penalty)
    losses = np.abs(at.f - penalty.values(z)[:, None] + oracle.baseline)
    lanes = DescentBatch(at, penalty, max(float(losses.max(axis=1).min()), TINY))
    lanes.slack = slack
    for _ in range(MAX_ROUNDS):
        if not _advance(lanes, oracle, penalty, tol):
            break
    if polish:
        lanes.keep_best()
        _advance(lanes, oracle, penalty, 0.0)
    return lanes.ends(tol)


def _advance(lanes: DescentBatch, oracle: Oracle, penalty: Penalty, tol: float) -> bool:
    """Go one round further; tell whether anybody does."""
    if not lanes.active.size:
        return False
    trials = lanes.trials(tol)
    if trials.lane.size:
        lanes.learn(trials, _ask(oracle, trials.z, trials.lam, penalty))
    return bool(trials.lane.size)


def _ask(oracle: Oracle, Z: FloatArray, lam: FloatArray, penalty: Penalty) -> Points:
    f, G, H = oracle.ask(Z, lam)
    if penalty.rho > 0:
        f, G = f + penalty.values(Z)[:, None], G + penalty.slope(Z)[:, None, :]
        i = np.arange(Z.shape[1])
        H[:, i, i] += penalty.curvature(Z)
    return Points(Z, f, G, H, lam)
