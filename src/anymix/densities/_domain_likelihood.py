"""The convex problem behind calibration: domain likelihood, penalty, and Newton's method."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from scipy.linalg import solve
from scipy.special import log_softmax
from sklearn.exceptions import ConvergenceWarning

from anymix._arrays import FloatArray, IntArray

Objective = Callable[[FloatArray], tuple[float, FloatArray, FloatArray]]

# The log of the smallest normal number: a density of zero counts as at least this unlikely.
LOG_TINY = float(np.log(np.finfo(np.float64).tiny))


def floored_responsibilities(
    table: FloatArray, floor: float | None = None
) -> tuple[FloatArray, float]:
    """Return log r_k = log D_k - logsumexp_j log D_j, never below a floor, and the floor.

    The floor is the lowest finite value of the table, but not above LOG_TINY.  A point that every
    source calls impossible says nothing: its responsibilities are equal.

    Examples
    --------
    >>> floored_responsibilities(np.array([[0.0, -900.0], [-np.inf, 0.0]]))
    (array([[   0., -900.],
           [-900.,    0.]]), -900.0)
    """
    table = np.where(np.isneginf(table).all(axis=0), 0.0, table)
    log_r: FloatArray = log_softmax(table, axis=0)
    if floor is None:
        floor = float(min(log_r[np.isfinite(log_r)].min(), LOG_TINY))
    return np.maximum(log_r, floor), floor


def lowest_responsibility(table: FloatArray) -> float:
    """Return the floor of these points: of several parts it is the least of theirs.

    >>> lowest_responsibility(np.array([[0.0, -900.0], [-np.inf, 0.0]]))
    -900.0
    """
    return floored_responsibilities(table)[1]


def doubted_targets(
    domain: IntArray, p: int, doubt: float, counts: FloatArray | None = None
) -> FloatArray:
    """Return targets (p, m): one-hot, but a share doubt / (n_k + doubt) is spread evenly.

    counts (p,) are the n_k, where the points are but a part of all.

    Examples
    --------
    >>> doubted_targets(np.array([0, 1, 1]), 2, doubt=2.0).round(2)
    array([[0.67, 0.25, 0.25],
           [0.33, 0.75, 0.75]])
    """
    share = doubt / ((np.bincount(domain, minlength=p) if counts is None else counts) + doubt)
    targets: FloatArray = np.eye(p)[:, domain] * (1.0 - share[domain]) + share[domain] / p
    return targets


def likelihood(
    theta: FloatArray, log_r: FloatArray, targets: FloatArray, weight: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """Return value, gradient and Hessian of -Σ_i w_i Σ_k t_ki log q_ki in theta = (a, b).

    log q_ki = a_k log r_ki + b_k - logsumexp_j [a_j log r_ji + b_j]; convex, as theta enters the
    exponents linearly.  theta (2p,); log_r and targets (p, m), columns of targets sum to 1.

    Examples
    --------
    >>> log_r = np.log([[0.5, 0.2], [0.5, 0.8]])
    >>> value, gradient, hessian = likelihood(np.ones(4), log_r, np.eye(2), np.ones(2))
    >>> round(value, 4), gradient.shape, hessian.shape
    (0.9163, (4,), (4, 4))
    """
    a, b = np.split(theta, 2)
    log_q = log_softmax(a[:, None] * log_r + b[:, None], axis=0)
    q = np.exp(log_q)
    residual = weight * (q - targets)
    gradient = np.concatenate([(residual * log_r).sum(axis=1), residual.sum(axis=1)])
    slopes = np.concatenate([q * log_r, q])
    weighted = weight * slopes
    hessian = -weighted @ slopes.T
    scales, offsets = np.arange(len(a)), np.arange(len(a), len(theta))
    hessian[scales, scales] += (weighted[scales] * log_r).sum(axis=1)
    hessian[scales, offsets] += weighted[scales].sum(axis=1)
    hessian[offsets, scales] += weighted[scales].sum(axis=1)
    hessian[offsets, offsets] += weighted[offsets].sum(axis=1)
    return -float(np.sum(weight * targets * log_q)), gradient, hessian


def penalty(
    theta: FloatArray, centre: FloatArray, n_scales: int
) -> tuple[float, FloatArray, FloatArray]:
    """Return value, gradient and Hessian of Σ_k (s_k - 1 - log s_k) + |b - b0|^2 / 2, s = a / a0.

    theta = (a, b) and centre = (a0, b0), the first `n_scales` being scales.  Convex, least at the
    centre, without bound at a = 0 and at infinity.

    Examples
    --------
    >>> penalty(np.array([1.0, 2.0]), np.array([1.0, 0.0]), 1)[0]
    2.0
    """
    s, shift = theta[:n_scales] / centre[:n_scales], theta[n_scales:] - centre[n_scales:]
    value = float(np.sum(s - 1.0 - np.log(s)) + shift @ shift / 2.0)
    gradient = np.concatenate([(1.0 - 1.0 / s) / centre[:n_scales], shift])
    curvature = np.concatenate([theta[:n_scales] ** -2.0, np.ones_like(shift)])
    return value, gradient, np.diag(curvature)


def newton(
    objective: Objective, start: FloatArray, n_scales: int, tol: float, max_iter: int
) -> tuple[FloatArray, int]:
    """Minimise a convex function with the first `n_scales` coordinates kept positive.

    A step goes at most 95 % of the way to the boundary and is halved until the value falls as the
    slope promises; the end is a Newton decrement below tol.

    Examples
    --------
    >>> def objective(theta):
    ...     return penalty(theta, np.array([2.0, 1.0]), 1)
    >>> newton(objective, np.array([9.0, 0.0]), 1, 1e-12, 50)[0].round(4)
    array([2., 1.])
    """
    theta = start
    value, gradient, hessian = objective(theta)
    for n_iter in range(max_iter):
        step = -solve(hessian, gradient, assume_a="pos")
        if -gradient @ step <= tol:
            return theta, n_iter
        limit = np.max(-step[:n_scales] / theta[:n_scales], initial=0.95) / 0.95
        theta, (value, gradient, hessian) = _halved(objective, theta, step / limit, value, gradient)
    warnings.warn(
        f"Calibration did not converge in {max_iter} Newton steps: raise max_iter or tol.",
        ConvergenceWarning,
        stacklevel=3,
    )
    return theta, max_iter


def _halved(
    objective: Objective, theta: FloatArray, step: FloatArray, value: float, gradient: FloatArray
) -> tuple[FloatArray, tuple[float, FloatArray, FloatArray]]:
    """Halve the step until the value falls by a part of what the slope promises."""
    for _ in range(60):
        trial = objective(theta + step)
        if trial[0] <= value + 1e-4 * gradient @ step:
            break
        step = step / 2.0
    return theta + step, trial
