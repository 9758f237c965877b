"""The convex problem behind calibration: domain likelihood, penalty, and Newton's method."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve
from sklearn.exceptions import ConvergenceWarning

from anymix._arrays import FloatArray, IntArray, shares

Objective = Callable[[FloatArray], tuple[float, FloatArray, FloatArray]]

# The log of the smallest normal number: a density of zero counts as at least this unlikely.
LOG_TINY = float(np.log(np.finfo(np.float64).tiny))


def floored_responsibilities(
    table: FloatArray, floor: float | None = None
) -> tuple[FloatArray, float]:
    """Return log r_k = log D_k - logsumexp_j log D_j, never below a floor, and the floor.

    It is the lowest finite value, but not above LOG_TINY.  A point with density 0 under every
    source has equal responsibilities.
    """
    table = np.where(np.isneginf(table).all(axis=0), 0.0, table)
    log_r = shares(table)[0]
    if floor is None:
        floor = float(min(log_r[np.isfinite(log_r)].min(), LOG_TINY))
    return np.maximum(log_r, floor), floor


def penalty(
    theta: FloatArray, centre: FloatArray, n_scales: int
) -> tuple[float, FloatArray, FloatArray]:
    """Return value, gradient and Hessian of Σ_k (s_k - 1 - log s_k) + |b - b0|^2 / 2, s = a / a0.

    theta = (a, b) and centre = (a0, b0), the first `n_scales` being scales.
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
    """
    theta = start
    value, gradient, hessian = objective(theta)
    for n_iter in range(max_iter):
        step = -solve(hessian, gradient, assume_a="pos")
        if -gradient @ step <= tol:
            return theta, n_iter
        limit = np.max(-step[:n_scales] / theta[:n_scales], initial=0.95) / 0.95
        step = step / limit
        for _ in range(60):
            trial = objective(theta + step)
            if trial[0] <= value + 1e-4 * gradient @ step:
                break
            step = step / 2.0
        theta, (value, gradient, hessian) = theta + step, trial
    warnings.warn(
        f"Calibration did not converge in {max_iter} Newton steps: raise max_iter or tol.",
        ConvergenceWarning,
        stacklevel=3,
    )
    return theta, max_iter


# A block of a table, and what is made of it, stays in the inner caches.
BLOCK_NUMBERS, LEAST_BLOCK = 20_000, 256
N_BINS = 15  # of equal width, by the responsibility of the likeliest source


@dataclass(frozen=True)
class CalibrationReport:
    """Domain log-loss (nats) and calibration error, before and after; all sources count equally."""

    n_points: int
    log_loss_before: float
    log_loss_after: float
    error_before: float
    error_after: float


def balanced_weights(
    sample_domain: IntArray,
    weight: FloatArray,
    n_sources: int,
    totals: FloatArray | None = None,
    n_points: float | None = None,
) -> FloatArray:
    """Rescale positive weights so that each source has the same total and their mean is 1.

    If these are a part of all points, totals (p,) are the weights of all, n_points their number.
    """
    here = np.bincount(sample_domain, weights=weight, minlength=n_sources)
    total = np.asarray(here if totals is None else totals, dtype=float)
    n = len(weight) if n_points is None else n_points
    if not total.all():
        missing = np.flatnonzero(total == 0).tolist()
        raise ValueError(
            f"No held-out point of source(s) {missing} has a positive weight: calibration needs "
            "at least one of every source; give held-out points or leave the source out."
        )
    balanced: FloatArray = weight * n / (n_sources * total[sample_domain])
    return balanced


def likelihood(
    theta: FloatArray, log_r: FloatArray, targets: FloatArray, weight: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """Value, gradient and Hessian of -Σ_i w_i Σ_k t_ki log q_ki in theta = (a, b), convex.

    log q_ki = a_k log r_ki + b_k - logsumexp_j [a_j log r_ji + b_j].
    """
    a, b = np.split(theta, 2)
    log_q, q = shares(a[:, None] * log_r + b[:, None])
    value = -float(np.einsum("ki,ki,i->", targets, log_q, weight))
    weighted = weight * q
    residual = weighted - weight * targets
    gradient = np.concatenate([(residual * log_r).sum(axis=1), residual.sum(axis=1)])
    # A A' of one array A is half the work of a product of two.
    root = np.concatenate([q * log_r, q]) * np.sqrt(weight)
    hessian = -(root @ root.T)
    scales, offsets = np.arange(len(a)), np.arange(len(a), len(theta))
    across = np.einsum("ki,ki->k", weighted, log_r)
    hessian[scales, scales] += np.einsum("ki,ki,ki->k", weighted, log_r, log_r)
    hessian[scales, offsets] += across
    hessian[offsets, scales] += across
    hessian[offsets, offsets] += weighted.sum(axis=1)
    return value, gradient, hessian


class DomainRows:
    """Log-densities (p, m) of points, the source of each (m,), and its positive weight (m,).

    A part of all points is given `counts` and `totals` (p,), the points and weights of each source
    in all parts, and the lowest `floor` of theirs.
    """

    def __init__(
        self,
        table: FloatArray,
        domain: IntArray,
        weight: FloatArray,
        doubt: float,
        all_points: Mapping[str, Any] | None = None,
    ):
        p, whole = len(table), all_points or {}
        counts = whole.get("counts")
        n = None if counts is None else float(counts.sum())
        floor = float(whole["floor"]) if whole else None
        self.domain, self.n_sources, self.n_points = domain, p, len(domain)
        self.weight = balanced_weights(domain, weight, p, whole.get("totals"), n)
        self.log_r, self.floor = floored_responsibilities(table, floor)
        # One-hot, but a share doubt / (n_k + doubt) is spread evenly over the sources: (p, m).
        share = doubt / ((np.bincount(domain, minlength=p) if counts is None else counts) + doubt)
        self.targets = np.eye(p)[:, domain] * (1.0 - share[domain]) + share[domain] / p
        # The common temperature is sought on the way to each source's own, too.
        self._known: dict[bytes, tuple[float, FloatArray, FloatArray]] = {}

    def likelihood(self, theta: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Value, gradient and Hessian of `likelihood` at all points; cached by theta."""
        key = theta.tobytes()
        if key not in self._known:
            size = max(LEAST_BLOCK, BLOCK_NUMBERS // self.n_sources)
            blocks = (slice(i, i + size) for i in range(0, self.n_points, size))
            tables = self.log_r, self.targets, self.weight
            parts = [likelihood(theta, *(table[..., i] for table in tables)) for i in blocks]
            value, gradient, hessian = (sum(same) for same in zip(*parts, strict=True))
            self._known[key] = float(value), np.asarray(gradient), np.asarray(hessian)
        return self._known[key]

    def tally(self, temperature: FloatArray, offset: FloatArray) -> FloatArray:
        """Σ w, then -Σ w log r and Σ w (1[right] - confidence) in 15 bins, before and after."""
        after = shares(self.log_r / temperature[:, None] + offset[:, None])[0]
        sums = [self.weight.sum()]
        for log_r in (self.log_r, after):
            own = log_r[self.domain, np.arange(self.n_points)]
            confidence = np.exp(log_r.max(axis=0))
            excess = self.weight * ((log_r.argmax(axis=0) == self.domain) - confidence)
            bins = np.minimum((confidence * N_BINS).astype(np.intp), N_BINS - 1)
            sums += [-(self.weight @ own), *np.bincount(bins, excess, N_BINS)]
        return np.array(sums)
