"""The simplex Δ = {z ≥ 0, Σ_k z_k = 1} of z and every mixture λ."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from anymix._arrays import FloatArray


def uniform(p: int) -> FloatArray:
    """z = (1/p, ..., 1/p)."""
    return np.full(p, 1.0 / p)


def random(p: int, rng: np.random.Generator) -> FloatArray:
    """Draw z from Δ uniformly, kept off its boundary."""
    z = rng.dirichlet(np.ones(p)) + 1e-6
    return np.asarray(z / z.sum())


def check(z: ArrayLike, p: int, name: str = "z") -> FloatArray:
    """Return z as a float vector of length p, or say why it is not on the simplex."""
    z = np.asarray(z, dtype=float)
    if z.shape != (p,):
        raise ValueError(f"{name} has shape {z.shape}; with {p} sources it must be ({p},).")
    if not np.all(np.isfinite(z)) or z.min() < -1e-9 or abs(z.sum() - 1.0) > 1e-6:
        raise ValueError(f"{name} must be on the simplex: entries ≥ 0 that sum to 1; got {z}.")
    return np.asarray(clean(z))


def clean(z: FloatArray) -> FloatArray:
    """Set rounding errors below zero to zero and make the sum exactly one."""
    z = np.maximum(z, 0.0)
    return np.asarray(z / z.sum())


def apart(points: Sequence[FloatArray], distance: float, most: int) -> FloatArray:
    """Return the first few of some z that are at least a given distance apart, (s, p)."""
    kept: list[FloatArray] = []
    for z in points:
        if len(kept) < most and all(np.abs(z - other).sum() > distance for other in kept):
            kept.append(z)
    return np.stack(kept)
