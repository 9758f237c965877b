"""Losses with curvature: squared, cross-entropy, Brier, logistic, Poisson."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit, xlogy

from anymix._arrays import FloatArray
from anymix.core.losses.base import DCTerms, Loss, Takes, lipschitz_terms


def _ends(predictions: FloatArray) -> FloatArray:
    """Return the ends of the interval that h_z can reach at each point, stacked: (2, m)."""
    return np.stack([predictions.min(axis=0), predictions.max(axis=0)])


@dataclass(frozen=True)
class Squared(Loss):
    """(h − y)².

    Paper: Prop. 5.
    """

    of_error: ClassVar[bool] = True

    def value(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """(h − y)²."""
        r = h - y
        return r * r

    def slope(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """2(h − y)."""
        return 2.0 * (h - y)

    def curvature(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """2."""
        return np.full_like(h, 2.0)

    def curvature_ratio(self, predictions: FloatArray, targets: FloatArray) -> FloatArray:
        """2 max_k (h_k − y)²; the paper's 2M, point by point."""
        return np.asarray(2.0 * ((_ends(predictions) - targets) ** 2).max(axis=0))


@dataclass(frozen=True)
class CrossEntropy(Loss):
    """−log h, with h the probability given to the label that occurred.

    Paper: Prop. 6.
    """

    takes: ClassVar[Takes] = "label"

    @property
    def logarithmic(self) -> bool:
        """Whether it is −log h itself: a subclass with a value of its own is not."""
        return type(self).value is CrossEntropy.value

    def value(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """−log h."""
        return -np.log(h)

    def slope(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """−1/h."""
        return -1.0 / h

    def curvature(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """1/h²."""
        return 1.0 / (h * h)

    def curvature_ratio(self, predictions: FloatArray, targets: FloatArray) -> FloatArray:
        """Return 1 everywhere: ℓ'² = ℓ''."""
        return np.ones(predictions.shape[1])

    def check(self, predictions: FloatArray, targets: FloatArray) -> None:
        """Predictions must be in (0, 1]."""
        if predictions.min() <= 0.0:
            k, i = np.argwhere(predictions <= 0.0)[0]
            raise ValueError(
                f"cross-entropy is infinite at a probability ≤ 0: source {k} gives "
                f"{predictions[k, i]:g} to the true label of point {i}; clip the probabilities, "
                "for example with np.clip(predictions, 1e-12, 1)."
            )
        if predictions.max() > 1.0 + 1e-9:
            k, i = np.argwhere(predictions > 1.0 + 1e-9)[0]
            raise ValueError(
                f"cross-entropy needs probabilities: source {k} gives {predictions[k, i]:g} > 1 "
                f"at point {i}; pass the probability of the true label, not a score."
            )


@dataclass(frozen=True)
class Brier(Loss):
    """‖h − y‖² for probability vectors h and one-hot (or soft) labels y, shape (m, c)."""

    takes: ClassVar[Takes] = "vector"

    def value(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """Σ_c (h_c − y_c)²."""
        r = h - y
        return np.asarray(np.einsum("ic,ic->i", r, r))

    def slope(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """2(h − y)."""
        return 2.0 * (h - y)

    def curvature(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """2, on the diagonal."""
        return np.full_like(h, 2.0)

    def curvature_ratio(self, predictions: FloatArray, targets: FloatArray) -> FloatArray:
        """2 max_k ‖h_k − y‖²: g' H⁻¹ g, largest at a corner of the hull."""
        distances = [self.value(h, targets) for h in predictions]
        return np.asarray(2.0 * np.max(distances, axis=0))


@dataclass(frozen=True)
class Logistic(Loss):
    """log(1 + exp(−y h)) on margins h, labels y in {−1, 1}."""

    def value(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """log(1 + e^{−yh}), without overflow."""
        return np.logaddexp(0.0, -y * h)

    def slope(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """−y σ(−yh)."""
        return np.asarray(-y * expit(-y * h))

    def curvature(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """σ(yh) σ(−yh)."""
        return np.asarray(expit(y * h) * expit(-y * h))

    def dc_terms(self, predictions: FloatArray, targets: FloatArray) -> DCTerms:
        """C = e^{−yh} at the worst end; the Lipschitz way where that asks for less."""
        flat = lipschitz_terms(1.0, predictions)
        # Far beyond any Lipschitz constant, and short of overflow.
        ratio = np.exp(np.minimum((-targets * _ends(predictions)).max(axis=0), 700.0))
        less = ratio <= flat.C
        return DCTerms(np.where(less, ratio, flat.C), np.where(less, 0.0, flat.bend), flat.centre)

    def check(self, predictions: FloatArray, targets: FloatArray) -> None:
        """Labels must be −1 or 1."""
        if not np.all(np.abs(targets) == 1.0):
            raise ValueError("the logistic loss needs targets of −1 and 1; map the labels first.")


def _check_counts(targets: FloatArray) -> None:
    if targets.min() < 0:
        raise ValueError(f"the Poisson loss needs targets ≥ 0; got {targets.min():g}.")


@dataclass(frozen=True)
class Poisson(Loss):
    """h − y log h − (y − y log y) for means h > 0: half the deviance, zero at h = y."""

    positive: ClassVar[bool] = True

    def value(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """h − y log h, less its least value."""
        return np.asarray(h - y - xlogy(y, h) + xlogy(y, y))

    def slope(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """1 − y/h."""
        return 1.0 - y / h

    def curvature(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """y/h²."""
        return y / (h * h)

    def dc_terms(self, predictions: FloatArray, targets: FloatArray) -> DCTerms:
        """C = max (h − y)²/y; where y = 0 the loss is the line h and goes the Lipschitz way."""
        worst = ((_ends(predictions) - targets) ** 2).max(axis=0)
        flat = lipschitz_terms(1.0, predictions)
        C = np.divide(worst, targets, out=flat.C, where=targets > 0)
        return DCTerms(C, np.where(targets > 0, 0.0, flat.bend), flat.centre)

    def check(self, predictions: FloatArray, targets: FloatArray) -> None:
        """Means must be positive and counts not negative."""
        _check_counts(targets)
        if predictions.min() <= 0:
            raise ValueError(
                "the Poisson loss needs predicted means > 0; use loss='poisson_log' for "
                "predictions on the log scale, or clip them."
            )


@dataclass(frozen=True)
class PoissonLog(Loss):
    """e^h − y h − (y − y log y): the Poisson loss of a prediction on the log scale."""

    def value(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """e^h − y h, less its least value."""
        return np.asarray(np.exp(h) - y * h - y + xlogy(y, y))

    def slope(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """e^h − y."""
        return np.asarray(np.exp(h) - y)

    def curvature(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """e^h."""
        return np.exp(h)

    def curvature_ratio(self, predictions: FloatArray, targets: FloatArray) -> FloatArray:
        """(e^h − y)²/e^h at the worst end; convex in e^h."""
        t = np.exp(_ends(predictions))
        return np.asarray(((t - targets) ** 2 / t).max(axis=0))

    def check(self, predictions: FloatArray, targets: FloatArray) -> None:
        """Counts must not be negative."""
        _check_counts(targets)
