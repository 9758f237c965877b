"""Descents for losses with a kink: around ever less rounded ones, to the loss itself.

Where a loss has a kink at h = y, so has L_k at each point, and models of second order are blind
to it.  Rounded within a width w the loss is smooth and at most κw/2 too high; its minima lead to
those of the loss as w → 0, and each is a good start for the next.
"""

from __future__ import annotations

import numpy as np

from anymix._arrays import FloatArray
from anymix.core import simplex
from anymix.core.solvers.found import TOL, Found, judged
from anymix.core.solvers.minimax import descend
from anymix.core.solvers.oracle import Oracle
from anymix.core.solvers.penalty import Penalty

# Widths, in parts of the worst loss at the first start: the last is what can be missed by at most.
WIDTHS = tuple(10.0 ** -(1 + i / 2) for i in range(13))
# Part of the width that a descent may leave: with 1e-3 three problems of 24 ended above SLSQP.
LEFT = 1e-5
# Minima as far apart as this go on, at most so many; wide roundings say little of which is lowest.
APART, N_KEPT = 1e-3, 12


def descend_kinks(
    oracle: Oracle, starts: FloatArray, penalty: Penalty, tol: float = TOL
) -> list[Found]:
    """Descend as `minimax.descend` does, around rounded kinks, and judge by the loss itself."""
    exact = oracle.problem
    worst = float(np.abs(oracle.losses(starts[0]) + oracle.baseline).max())
    unit = 2.0 * worst / exact.loss.kink
    ends: list[Found] = []
    for width in WIDTHS if unit > 0 else ():
        oracle.problem = exact.smoothed(width * unit)
        ends = descend(oracle, starts, penalty, max(tol, LEFT * width), slack=width * worst)
        starts = simplex.apart([found.z for found in ends], APART, N_KEPT)
    oracle.problem = exact
    return _judged(oracle, starts, penalty, ends, tol)


def _judged(
    oracle: Oracle, Z: FloatArray, penalty: Penalty, ends: list[Found], tol: float
) -> list[Found]:
    """Put the ends in order by the loss itself; what is left is what the last rounding left."""
    f, _, _ = oracle.ask(Z, np.full(Z.shape, 1.0 / Z.shape[1]))
    values = f.max(axis=1) + penalty.values(Z)
    left = {found.z.tobytes(): found for found in ends}
    found = []
    for i in np.argsort(values, kind="stable"):
        end = left.get(Z[i].tobytes())
        rest = 0.0 if end is None else end.optimality
        lam = None if end is None else end.multipliers
        one = judged(Z[i], float(values[i]), rest, max(tol, LEFT * WIDTHS[-1]))
        found.append(one if lam is None else one._replace(multipliers=lam))
    return found
