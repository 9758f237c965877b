"""Losses with flat pieces: pinball, absolute, Huber, hinge; `lipschitz` bounds their slope."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from anymix._arrays import FloatArray
from anymix.core.losses.base import Loss


@dataclass(frozen=True)
class Pinball(Loss):
    """max(q(y − h), (q − 1)(y − h)): the loss of the q-th quantile."""

    of_error: ClassVar[bool] = True
    kink: ClassVar[float] = 1.0
    quantile: float = 0.5
    lipschitz: float | None = field(init=False, default=None, repr=False)

    def __post_init__(self) -> None:
        if not 0.0 < self.quantile < 1.0:
            raise ValueError(f"quantile must lie in (0, 1); got {self.quantile}.")
        object.__setattr__(self, "lipschitz", max(self.quantile, 1.0 - self.quantile))

    def value(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """Tilted absolute error."""
        return np.maximum(self.quantile * (y - h), (self.quantile - 1.0) * (y - h))

    def slope(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """−q below the target, 1 − q above it, 0 upon it."""
        return np.where(h < y, -self.quantile, np.where(h > y, 1.0 - self.quantile, 0.0))

    def curvature(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """0."""
        return np.zeros_like(h)


@dataclass(frozen=True)
class Absolute(Loss):
    """|h − y|."""

    of_error: ClassVar[bool] = True
    kink: ClassVar[float] = 2.0
    lipschitz: float | None = field(init=False, default=1.0, repr=False)

    def value(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """|h − y|."""
        return np.abs(h - y)

    def slope(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """sign(h − y)."""
        return np.sign(h - y)

    def curvature(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """0."""
        return np.zeros_like(h)


@dataclass(frozen=True)
class Huber(Loss):
    """(h − y)²/2 up to |h − y| = δ, then δ(|h − y| − δ/2)."""

    of_error: ClassVar[bool] = True
    delta: float = 1.0
    lipschitz: float | None = field(init=False, default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.delta > 0:
            raise ValueError(f"delta must be positive; got {self.delta}.")
        object.__setattr__(self, "lipschitz", self.delta)

    def value(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """Squared near the target, linear far from it."""
        r = np.abs(h - y)
        return np.where(r <= self.delta, 0.5 * r * r, self.delta * (r - 0.5 * self.delta))

    def slope(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """h − y, cut at ±δ."""
        return np.clip(h - y, -self.delta, self.delta)

    def curvature(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """1 within δ, 0 beyond."""
        return (np.abs(h - y) < self.delta).astype(float)


@dataclass(frozen=True)
class Hinge(Loss):
    """max(0, 1 − y h) on margins h, labels y in {−1, 1}."""

    kink: ClassVar[float] = 1.0
    lipschitz: float | None = field(init=False, default=1.0, repr=False)

    def value(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """max(0, 1 − yh)."""
        return np.maximum(0.0, 1.0 - y * h)

    def slope(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """−y inside the margin, 0 outside."""
        return np.where(y * h < 1.0, -y, 0.0)

    def curvature(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """0."""
        return np.zeros_like(h)

    def check(self, predictions: FloatArray, targets: FloatArray) -> None:
        """Labels must be −1 or 1."""
        if not np.all(np.abs(targets) == 1.0):
            raise ValueError("the hinge loss needs targets of −1 and 1; map the labels first.")
