"""Finitely many z: what the points chose from, when z is certified on the points it was fitted on.

A bound that holds for every candidate at once holds for the one that was chosen, however it was
chosen.  Weights act through their ratios, so log z is rounded; a source's odds against the largest
one move by a tenth at most.
"""

from __future__ import annotations

import numpy as np

from anymix._arrays import FloatArray
from anymix.core import simplex

# Sizes of a step of log z, and how many of them a weight may lie below the largest before it is
# zero: e^−10, where the share η/p that every source has anyway is the larger one.
LOG_STEP = 0.2
N_LEVELS = 51


def rounded(z: FloatArray) -> FloatArray:
    """Round log(z / max z) to multiples of 0.2 and set z to zero from 51 steps below on.

    >>> rounded(np.array([0.6, 0.4, 1e-9])).round(4)
    array([0.5987, 0.4013, 0.    ])
    """
    with np.errstate(divide="ignore"):
        steps = np.rint(-np.log(z / z.max()) / LOG_STEP)
    return simplex.clean(np.where(steps < N_LEVELS, np.exp(-LOG_STEP * steps), 0.0))


# More rounded z than this many sources have are too many to count, and to spread an error over.
MOST_SOURCES = 150


def check_n_sources(p: int) -> None:
    """Refuse more sources than a z can be certified for on the points that it is fitted on.

    >>> check_n_sources(200)
    Traceback (most recent call last):
    ...
    ValueError: 200 sources are too many: z can be certified on the points it is learned from for
    150 at most; leave some out, pool those that are alike, or certify on held-out points.
    """
    if p > MOST_SOURCES:
        raise ValueError(
            f"{p} sources are too many: z can be certified on the points it is learned from for "
            f"{MOST_SOURCES} at most; leave some out, pool those that are alike, or certify on "
            "held-out points."
        )


def n_rounded(p: int) -> float:
    """Return how many rounded z there are at most, p·52^(p−1).

    p choices of the largest entry, and 51 levels or zero for each of the others.
    """
    check_n_sources(p)
    return p * float(N_LEVELS + 1) ** (p - 1)
