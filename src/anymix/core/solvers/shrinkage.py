"""How much to hold z near a prior when it is learned from few held-out points.

A z that minimises an average over n_k points chases their noise.  ρ KL(u ‖ z) holds it back, with
ρ three times the largest standard error of what is being minimised, measured at z = u.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anymix._arrays import FloatArray
from anymix.core.problem import Problem

# On five held-out sets never much worse than the better of no shrinkage and z = u.
STANDARD_ERRORS = 3.0


def paired_differences(problem: Problem, z: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    """ℓ(h_z, y) − ℓ(h_k, y) at the points of source k, and their weights."""
    points, weights = problem.measure.take(k)
    h = problem.ratio(z)[0][points]
    y, own = problem.targets[points], problem.predictions[k, points]
    return problem.loss.value(h, y) - problem.loss.value(own, y), weights


def paired_standard_errors(problem: Problem, z: FloatArray) -> FloatArray:
    """Standard error of L_k(h_z) − L_k(h_k) for each source: √Σ w²(d − d̄)², Σ w = 1."""
    errors = np.empty(problem.n_sources)
    for k in range(problem.n_sources):
        d, w = paired_differences(problem, z, k)
        w = w / w.sum()
        errors[k] = np.sqrt(np.sum((w * (d - w @ d)) ** 2))
    return errors


def automatic_shrinkage(problem: Problem, prior: FloatArray, without: Sequence[int] = ()) -> float:
    """ρ = 3 max_k se_k at z = prior, over all sources or all but some."""
    errors = np.delete(paired_standard_errors(problem, prior), list(without))
    return STANDARD_ERRORS * float(errors.max())
