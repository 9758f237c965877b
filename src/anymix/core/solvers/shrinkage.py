"""How much to hold z near a prior when it is learned from few held-out points.

A z that minimises an average over n_k points chases their noise.  ρ KL(u ‖ z) holds it back, with
ρ three times the largest standard error of what is being minimised, measured at z = u.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anymix._arrays import FloatArray
from anymix.core.solvers.oracle import Solvable

# On five held-out sets never much worse than the better of no shrinkage and z = u.
STANDARD_ERRORS = 3.0
ROUNDING = 1e-14


def paired_standard_errors(problem: Solvable, z: FloatArray) -> FloatArray:
    """Standard error of L_k(h_z) − L_k(h_k) for each source: √Σ w²(d − d̄)², Σ w = 1."""
    w, wd, ww, wwd, wwdd = problem.paired_moments(z)
    d = wd / w
    spread = wwdd - 2.0 * d * wwd + d * d * ww
    # Differences that are all alike leave nothing but rounding.
    return np.asarray(np.sqrt(np.where(spread > ROUNDING * wwdd, spread, 0.0)) / w)


def automatic_shrinkage(problem: Solvable, prior: FloatArray, without: Sequence[int] = ()) -> float:
    """ρ = 3 max_k se_k at z = prior, over all sources or all but some."""
    errors = np.delete(paired_standard_errors(problem, prior), list(without))
    return STANDARD_ERRORS * float(errors.max())
