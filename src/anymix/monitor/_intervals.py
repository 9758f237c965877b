"""How far can θ be from what was found?  Few rows look surer than they are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtr, stdtrit

from anymix._arrays import FloatArray
from anymix.monitor._moments import SINGULAR, Spread

# Part of a row that counts as none: the beta distribution has no parameter zero.
NONE = 1e-6
# Below it the skewness moves no digit that is shown, and would be divided by.
STRAIGHT = 1e-6
# Draws behind the level at which intervals hold together; it is then known to 0.003.
DRAWS = 5_000

Ends = tuple[FloatArray, FloatArray]


def student_interval(found: Spread, confidence: float) -> Ends:
    """θ̃ ± t · standard error, t the quantile of Student's distribution.

    Examples
    --------
    >>> one = Spread(np.zeros(1), np.ones(1), np.array([4.0]), np.zeros(1), np.eye(1))
    >>> student_interval(one, 0.95)[1].round(3)
    array([2.776])
    """
    reach = stdtrit(found.freedom, 0.5 + confidence / 2.0) * found.error
    return found.value - reach, found.value + reach


def skewed_interval(found: Spread, confidence: float) -> Ends:
    """Student's interval, and as far beyond it as skewness asks for.

    With T = (θ̃ − θ)/error and g the skewness of θ̃, Hall's transformation of T

        T + g T²/3 + g² T³/27 + g/6,    its inverse at x  3/g ((1 + g (x − g/6))^⅓ − 1),

    takes the skewness away: T lies between the inverses at ∓t.  Of the two ends at each side the
    outer one counts: rows with few large losses show too small a mean and too small an error
    together, and Hall's inner end trusts a g that so few rows cannot tell.

    Examples
    --------
    >>> one = Spread(np.zeros(1), np.ones(1), np.array([99.0]), np.array([0.3]), np.eye(1))
    >>> lower, upper = skewed_interval(one, 0.95)
    >>> lower.round(2), upper.round(2)
    (array([-1.98]), array([2.7]))
    """
    low, high = student_interval(found, confidence)
    g = np.where(np.abs(found.skewness) < STRAIGHT, STRAIGHT, found.skewness)
    x = stdtrit(found.freedom, 0.5 + confidence / 2.0)
    ends = [
        found.value - found.error * 3.0 / g * (np.cbrt(1.0 + g * (side * x - g / 6.0)) - 1.0)
        for side in (1.0, -1.0)
    ]
    return np.minimum(low, ends[0]), np.maximum(high, ends[1])


def joint_confidence(covariance: FloatArray, confidence: float, rng: np.random.Generator) -> float:
    """Which confidence must each interval have for all of them to hold at once?

    That of the quantile of max_k |Z_k| for Gaussian Z with the correlations of λ̃: less is lost
    than by dividing the risk among p intervals, as the shares sum to 1.

    Examples
    --------
    The shares of two sources are one number; of three even sources two and a bit.

    >>> rng = np.random.default_rng(0)
    >>> for p in (2, 3):
    ...     print(round(joint_confidence(np.eye(p) - 1 / p, 0.95, rng), 2))
    0.95
    0.98
    """
    scale = np.sqrt(np.diag(covariance))
    if not (scale > 0.0).all():
        covariance, scale = np.eye(len(scale)), np.ones(len(scale))
    if len(scale) == 2:  # λ_2 = 1 − λ_1, and so are its ends
        return confidence
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    Z = rng.standard_normal((DRAWS, len(scale))) * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
    return float(2.0 * ndtr(np.quantile(np.abs(Z).max(axis=1), confidence)) - 1.0)


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


def exact_interval(share: FloatArray, n: FloatArray, confidence: float) -> Ends:
    """Clopper and Pearson's interval for a share that was found in n rows, whole or not.

    Examples
    --------
    >>> lower, upper = exact_interval(np.array([1.0, 0.3]), np.array([2.0, 10.0]), 0.95)
    >>> lower.round(3), upper.round(3)
    (array([0.158, 0.067]), array([1.   , 0.652]))
    """
    tail = (1.0 - confidence) / 2.0
    seen, other = n * share, n * (1.0 - share)
    lower = betaincinv(np.maximum(seen, NONE), other + 1.0, tail)
    upper = betaincinv(seen + 1.0, np.maximum(other, NONE), 1.0 - tail)
    return np.where(seen > NONE, lower, 0.0), np.where(other > NONE, upper, 1.0)
