"""How far a target is from every mixture of the sources: min_λ d_α(D_T ‖ Σ_k λ_k D_k).

With s = Σ_k λ_k D_k / D_T at the points of the target and weights w (its masses, or 1/m at draws),
D_α = (1/β) log Σ w s^−β, β = α − 1, is convex in λ; so one interior-point method finds the least,
and for α = ∞ a linear program does.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog
from scipy.special import logsumexp

from anymix._arrays import FloatArray
from anymix.core import inputs
from anymix.core.guarantees.divergence import (
    RenyiRatio,
    exponential,
    log_masses,
    log_ratio,
    log_ratios,
    sampled_renyi_ratio,
)
from anymix.core.records import SolverWarning
from anymix.core.simplex import clean, uniform

Value = Callable[[FloatArray], float]
Derivatives = Callable[[FloatArray], tuple[FloatArray, FloatArray]]

# How far D_α may stay above its least value, and how many Newton steps one μ may take.
GAP = 1e-12
MAX_NEWTON = 100


def nearest_mixture(target: ArrayLike, sources: ArrayLike, alpha: float) -> RenyiRatio:
    """min over λ in the simplex of d_α(D_T ‖ Σ_k λ_k D_k), for masses (m,) and (p, m).

    α ≥ 1, infinity allowed.  Infinite if the target has mass where no source has any.

    Examples
    --------
    >>> nearest = nearest_mixture([0.5, 0.25, 0.25], [[1, 0, 0], [0, 1, 1]], 2.0)
    >>> nearest.mixture.round(6), round(nearest.value, 9)
    (array([0.5, 0.5]), 1.0)

    Paper: App. F, Cor. 10.
    """
    log_t = log_masses(target, "target")
    with np.errstate(divide="ignore"):
        D = inputs.mass_table(sources, "sources")
        log_d = np.log(D) - np.log(D.sum(axis=1, keepdims=True))
    if log_t.shape != log_d.shape[1:]:
        raise ValueError(f"target has {log_t.size} points and sources {log_d.shape[1]}.")
    there = np.isfinite(log_t)
    log_t = log_t[there]
    return _nearest(log_t, log_d[:, there] - log_t, alpha)


def sampled_nearest_mixture(
    log_target: ArrayLike, log_sources: ArrayLike, alpha: float
) -> RenyiRatio:
    """The same from log-densities (m,) and (p, m) at draws from the target, with a standard error.

    At the least value a small change of λ changes nothing, so that the error is that of
    `sampled_renyi_ratio` at this λ.  Like that one it is an estimate, too low under heavy tails,
    and a little lower since λ was chosen on the same draws.  For a bound take other draws: the
    distance to *any* one mixture bounds the least, so give its density to
    `sampled_renyi_upper_bound`.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(0.2, 1.0, 4000)
    >>> log_t = -((x - 0.2) ** 2) / 2
    >>> log_d = np.stack([-((x - mean) ** 2) / 2 for mean in (-1.0, 1.0)])
    >>> nearest = sampled_nearest_mixture(log_t, log_d, 2.0)
    >>> round(nearest.value, 2), round(nearest.standard_error, 3), nearest.trusted
    (1.21, 0.006, True)

    Paper: App. F, Cor. 10.
    """
    if alpha == np.inf:
        raise ValueError("the largest ratio cannot be estimated from draws; use a finite alpha.")
    log_d = np.atleast_2d(np.asarray(log_sources, dtype=float))
    ratios = np.stack([-log_ratios(log_target, row) for row in log_d])
    m = ratios.shape[1]
    nearest = _nearest(np.full(m, -np.log(m)), ratios, alpha)
    if nearest.value == np.inf:
        return nearest._replace(standard_error=np.inf, effective=0.0)
    with np.errstate(divide="ignore"):
        log_mixture = logsumexp(ratios + np.log(nearest.mixture)[:, None], axis=0)
    there = sampled_renyi_ratio(np.zeros(m), log_mixture, alpha)
    return nearest._replace(standard_error=there.standard_error, effective=there.effective)


def _nearest(log_w: FloatArray, a: FloatArray, alpha: float) -> RenyiRatio:
    """Minimise D_α given log-weights (m,) and log(D_k / D_T) (p, m) at the target's points."""
    if not alpha >= 1:
        raise ValueError(f"alpha must be 1 or more, infinity allowed; got {alpha}.")
    if np.isneginf(a).all(axis=0).any():
        return RenyiRatio(float("inf"), mixture=uniform(a.shape[0]))
    # The largest ratio at each point is taken out, so that s stays within range.
    top = a.max(axis=0)
    R = np.exp(a - top)
    mixture = _smallest_maximum(R, top) if alpha == np.inf else _interior(log_w, R, top, alpha)
    with np.errstate(divide="ignore"):
        log_s = np.log(mixture @ R) + top
    # Rounding can leave a value a hair below 1, which no divergence has.
    value = max(1.0, exponential(log_ratio(log_w, -log_s, alpha)))
    return RenyiRatio(value, mixture=mixture)


def _interior(log_w: FloatArray, R: FloatArray, top: FloatArray, alpha: float) -> FloatArray:
    """Follow min g(λ) − μ Σ_k log λ_k as μ falls; g is within pμ of its least value.

    g = (1/β) log Σ w s^−β,  ∇g = −Σ q r,  ∇²g = (1+β) Σ q rr' − β (Σ q r)(Σ q r)'
    with s = λ·D/D_T, r_k = D_k/(D_T s) and q ∝ w s^−β; the same formulas hold for β = 0.
    """
    p, beta = R.shape[0], alpha - 1.0

    def value(x: FloatArray) -> float:
        return log_ratio(log_w, -np.log(x @ R) - top, alpha)

    def derivatives(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        s = x @ R
        exponent = log_w - beta * (np.log(s) + top)
        q = np.exp(exponent - logsumexp(exponent))
        r = R / s
        mean = r @ q
        return -mean, (1 + beta) * (r * q) @ r.T - beta * np.outer(mean, mean)

    x, mu, least = uniform(p), 1.0, -np.inf
    while p * mu > GAP:
        mu /= 10
        x = _centre(value, derivatives, x, mu)
        # By convexity no λ has less than g(x) − x·∇g + min_k ∇_k g, and x·∇g = −1.
        least = max(least, value(x) + 1.0 + float(derivatives(x)[0].min()))
    if value(x) - least > 1e-6 * (1 + abs(least)):
        message = f"the nearest mixture was not found: D_α is {value(x):g}, perhaps {least:g}."
        warnings.warn(message, SolverWarning, stacklevel=4)
    return clean(x)


def _centre(value: Value, derivatives: Derivatives, x: FloatArray, mu: float) -> FloatArray:
    """Newton's method with backtracking for g(x) − μ Σ log x on the simplex, in steps dx = x∘u."""

    def barrier(x: FloatArray) -> float:
        return value(x) - mu * float(np.log(x).sum())

    now = barrier(x)
    for _ in range(MAX_NEWTON):
        gradient, H = derivatives(x)
        slope = x * gradient - mu
        a, b = np.linalg.solve(
            x[:, None] * H * x + mu * np.eye(x.size), np.stack([-slope, x], axis=1)
        ).T
        u = a - (x @ a) / (x @ b) * b
        decrease = -float(slope @ u)
        if decrease < max(1e-3 * mu, 1e-15 * (1 + abs(now))):
            break
        step = min(1.0, 0.99 / max(-float(u.min()), 1e-300))
        while (ahead := barrier(x * (1 + step * u))) > now - 0.1 * step * decrease:
            step /= 2
            if step < 1e-12:
                return x
        x, now = x * (1 + step * u), ahead
    return x


def _smallest_maximum(R: FloatArray, top: FloatArray) -> FloatArray:
    """max_{λ, t} t subject to Σ_k λ_k D_k/D_T ≥ t at every point: a linear program."""
    p, m = R.shape
    # A row is scaled by its largest ratio; the smallest of them keeps t of order one.
    scale = np.exp(top.min() - top)
    A = np.hstack([-R.T, scale[:, None]])
    result = linprog(
        np.r_[np.zeros(p), -1.0],
        A_ub=A,
        b_ub=np.zeros(m),
        A_eq=np.r_[np.ones(p), 0.0][None],
        b_eq=[1.0],
        bounds=[(0, None)] * (p + 1),
        method="highs",
    )
    if not result.success:
        raise ValueError(f"the linear program for alpha = inf failed: {result.message}")
    return clean(result.x[:p])
