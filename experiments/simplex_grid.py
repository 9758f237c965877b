"""Mixtures on a grid."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from anymix._arrays import FloatArray


def simplex_grid(p: int, steps: int) -> FloatArray:
    """All mixtures whose entries are multiples of 1/steps: shape (n, p), corners included.

    >>> simplex_grid(2, 2)
    array([[0. , 1. ],
           [0.5, 0.5],
           [1. , 0. ]])
    """
    # A mixture is a way to put p - 1 bars between `steps` stars.
    n_points = comb(steps + p - 1, p - 1)
    bars = np.array(list(combinations(range(steps + p - 1), p - 1)), dtype=int)
    bars = bars.reshape(n_points, p - 1)
    edges = np.hstack([np.full((n_points, 1), -1), bars, np.full((n_points, 1), steps + p - 1)])
    return np.asarray((np.diff(edges, axis=1) - 1) / steps, dtype=float)
