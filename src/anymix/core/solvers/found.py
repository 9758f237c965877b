"""What every solver hands back, and the numbers that several of them share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anymix._arrays import FloatArray
from anymix.core.records import Step

# What may be left, relative to the losses: far below sampling errors, and far above rounding.
TOL = 1e-10
# An answer this good has converged, whatever was asked for: sums over points round.
ROUNDING = 1e-12
# Divisors are at least this; the losses of perfect sources are zero.
TINY = 1e-300
# The metric 1/z is cut at this part of 1/p: uncut, a source at z_k = 0 could never come back.
LEAST_SHARE = 1e-3
# The multipliers of a method that has none.
NONE = np.empty(0)


class Found(NamedTuple):
    """A solver's z, what it minimised there, and how it ended.

    `value` is γ, or the largest of the functions and the penalty; `optimality` is what is left of
    it, relative to the losses.  Multipliers are those of the functions, where a method has them.
    """

    z: FloatArray
    value: float
    optimality: float
    status: str
    multipliers: FloatArray = NONE
    n_evaluations: float = 0.0
    n_hessians: float = 0.0
    n_rounds: int = 0
    trace: tuple[Step, ...] = ()

    @property
    def converged(self) -> bool:
        """Whether it is as good as was asked for."""
        return self.status == "converged"


def judged(
    z: FloatArray, value: float, optimality: float, tol: float, multipliers: FloatArray = NONE
) -> Found:
    """Return z as "converged" if no more than tol is left, else as "stalled"."""
    status = "converged" if optimality <= max(tol, ROUNDING) else "stalled"
    return Found(z, value, optimality, status, multipliers)
