"""Least squares on the simplex, exactly and quickly: hundreds of small problems in a bootstrap."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from anymix._arrays import FloatArray
from anymix.core import simplex

# Of x'g − min g with entries of M up to 1: rounding leaves 1e-15, broken answers left 1e-2.
TOLERANCE = 1e-12


def simplex_least_squares(A: FloatArray, b: FloatArray) -> FloatArray:
    """argmin ‖Aλ − b‖² over the simplex, exactly, by one problem of non-negative least squares.

    On the simplex Aλ − b = (A − b1')λ =: Mλ.  For x = tλ the function ‖Mx‖² + (1'x − 1)² is
    t²f + (t − 1)² with f = ‖Mλ‖²; its least value over t is f/(1 + f), increasing in f.  So its
    minimiser over x ≥ 0, divided by its sum, is the answer.

    Examples
    --------
    >>> simplex_least_squares(np.eye(3), np.array([0.9, 0.5, -0.4])).round(3)
    array([0.7, 0.3, 0. ])
    """
    M = A - b[:, None]
    scale = np.abs(M).max()
    M = M / scale if scale > 0 else M
    p = A.shape[1]
    x = simplex.clean(nnls(np.vstack([M, np.ones(p)]), np.append(np.zeros(len(b)), 1.0))[0])
    # scipy's factorisation can break when a dependent column enters whose slope is zero but for
    # rounding; the answer then still lies on the simplex, somewhere.
    return x if _excess(M, x) <= TOLERANCE else nearest_to_origin(M)


def _excess(M: FloatArray, x: FloatArray) -> float:
    """x'g − min_k g_k with g = M'Mx: zero at the minimum and nowhere else."""
    g = (M @ x) @ M
    return float(x @ g - g.min())


def nearest_to_origin(M: FloatArray, max_iter: int = 1000) -> FloatArray:
    """argmin ‖Mx‖² over the simplex by Wolfe's method: one column joins, others may leave.

    The column of least slope joins those in use; then x goes to the point of their flat that is
    nearest to the origin, and drops every column whose share reaches zero on the way.

    Examples
    --------
    >>> nearest_to_origin(np.array([[-1.0, 3.0, 3.0]])).round(3)
    array([0.75, 0.25, 0.  ])
    """
    first = int(np.sum(M * M, axis=0).argmin())
    x, used = np.eye(M.shape[1])[first], [first]
    for _ in range(max_iter):
        if _excess(M, x) <= TOLERANCE:
            break
        used.append(int(((M @ x) @ M).argmin()))
        while (aim := _nearest_of_flat(M[:, used])).min() < 0.0:
            here = x[used]
            steps = np.where(aim < 0.0, here / np.maximum(here - aim, 1e-300), np.inf)
            x[used] = here + steps.min() * (aim - here)
            x[used[int(steps.argmin())]] = 0.0  # exactly, so that the loop ends
            used = [k for k in used if x[k] > 0.0]
        x[used] = aim
    return simplex.clean(x)


def _nearest_of_flat(M: FloatArray) -> FloatArray:
    """argmin ‖Mx‖² over Σx = 1 alone."""
    rest = np.linalg.lstsq(M[:, 1:] - M[:, :1], -M[:, 0])[0]
    return np.append(1.0 - rest.sum(), rest)
