"""How narrow may an interval for a share be?  A few rows, resampled, look surer than they are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from anymix._arrays import FloatArray

# Sources whose means are so nearly dependent cannot be told apart, whatever the inverse says.
SINGULAR = 1e8
# Part of a row that counts as none: the beta distribution has no parameter zero.
NONE = 1e-6


def worth(r: FloatArray, C: FloatArray, domain: NDArray[np.intp]) -> FloatArray:
    """How much of a row that names its source a row of traffic is worth for each share, in [0, 1].

    With C[:, k] the mean of r over rows of source k, λ̂ = C⁻¹ mean r has at the even mixture the
    variance [C⁻¹ Cov(r) C⁻ᵀ]_kk per row; it would be (1/p)(1 − 1/p) if rows named their sources.

    Examples
    --------
    Rows that name their source, rows that err in one of four, and rows that say nothing:

    >>> domain = np.repeat([0, 1], 4)
    >>> for wrong in ([], [0, 4], [0, 1, 4, 5]):
    ...     r = np.eye(2)[:, domain]
    ...     r[:, wrong] = r[::-1, wrong]
    ...     C = np.stack([r[:, :4].mean(axis=1), r[:, 4:].mean(axis=1)], axis=1)
    ...     print(worth(r, C, domain))
    [1. 1.]
    [0.25 0.25]
    [0. 0.]
    """
    p = len(r)
    if p == 1:
        return np.ones(1)
    if np.linalg.cond(C) > SINGULAR:
        return np.zeros(p)
    chance = 1.0 / (p * np.bincount(domain, minlength=p))[domain]
    centred = np.linalg.solve(C, r - (r @ chance)[:, None])
    variance = centred**2 @ chance
    even = (p - 1) / p**2
    return np.asarray(even / np.maximum(variance, even))


def exact_interval(
    share: FloatArray, n: FloatArray, confidence: float
) -> tuple[FloatArray, FloatArray]:
    """Clopper and Pearson's interval for a share that was found in n rows, whole or not.

    Examples
    --------
    >>> lower, upper = exact_interval(np.array([1.0, 0.3]), np.array([2.0, 10.0]), 0.95)
    >>> lower.round(3), upper.round(3)
    (array([0.158, 0.067]), array([1.   , 0.652]))
    """
    tail = (1.0 - confidence) / 2.0
    seen, other = n * share, n * (1.0 - share)
    lower = beta.ppf(tail, np.maximum(seen, NONE), other + 1.0)
    upper = beta.ppf(1.0 - tail, seen + 1.0, np.maximum(other, NONE))
    return np.where(seen > NONE, lower, 0.0), np.where(other > NONE, upper, 1.0)
