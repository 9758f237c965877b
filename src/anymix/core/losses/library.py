"""The losses of the library: those with curvature, then those with flat pieces."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit, xlogy

from anymix._arrays import FloatArray
from anymix.core.losses.base import DCTerms, Loss, MetricUnit, lipschitz_terms

UNITS, SQUARED_UNITS = ("units of the target", "units"), ("squared units of the target", "units²")
NATS = ("nats", "nats")


def _ends(predictions: FloatArray) -> FloatArray:
    """Return the ends of the interval that h_z can reach at each point, stacked: (2, m)."""
    return np.stack([predictions.min(axis=0), predictions.max(axis=0)])


class _Plain(Loss):
    """A loss without parameters: any two of a class are equal."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Squared(_Plain):
    """(h − y)².

    Paper: Prop. 5.
    """

    unit = MetricUnit("squared error", *SQUARED_UNITS)
    of_error = True

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


class CrossEntropy(_Plain):
    """−log h, with h the probability given to the label that occurred.

    Paper: Prop. 6.
    """

    unit = MetricUnit("cross-entropy", *NATS)
    takes = "label"
    logarithmic = True

    def bound(self, n_classes: int | None = None, floor: float = 0.0) -> float | None:
        """log((1 + cf)/f): no probability of c classes is below f before they are normalised.

        >>> round(CrossEntropy().bound(2, 1e-6), 3)
        13.816
        """
        if n_classes is None or not floor > 0:
            return None
        return float(np.log1p(n_classes * floor) - np.log(floor))

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


class Brier(_Plain):
    """‖h − y‖² for probability vectors h and one-hot (or soft) labels y, shape (m, c)."""

    unit = MetricUnit("Brier score, 0 to 2")
    takes = "vector"

    def bound(self, n_classes: int | None = None, floor: float = 0.0) -> float | None:
        """2, where all of h is given to one wrong class."""
        return 2.0

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


class _OfMargins(_Plain):
    """A loss of margins h and labels y in {−1, 1}."""

    def check(self, predictions: FloatArray, targets: FloatArray) -> None:
        if not np.all(np.abs(targets) == 1.0):
            name = type(self).__name__.lower()
            raise ValueError(f"the {name} loss needs targets of −1 and 1; map the labels first.")


class Logistic(_OfMargins):
    """log(1 + exp(−y h)) on margins h, labels y in {−1, 1}."""

    unit = MetricUnit("logistic loss", *NATS)

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
        """C = e^{−yh} at the worst end; by `lipschitz` where that is smaller."""
        flat = lipschitz_terms(1.0, predictions)
        # Far beyond any Lipschitz constant, and short of overflow.
        ratio = np.exp(np.minimum((-targets * _ends(predictions)).max(axis=0), 700.0))
        less = ratio <= flat.C
        return DCTerms(np.where(less, ratio, flat.C), np.where(less, 0.0, flat.bend), flat.centre)


class Poisson(_Plain):
    """h − y log h − (y − y log y) for means h > 0: half the deviance, zero at h = y."""

    unit = MetricUnit("half the Poisson deviance", *NATS)
    positive = True

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
        PoissonLog().check(predictions, targets)
        if predictions.min() <= 0:
            raise ValueError(
                "the Poisson loss needs predicted means > 0; use loss='poisson_log' for "
                "predictions on the log scale, or clip them."
            )


class PoissonLog(_Plain):
    """e^h − y h − (y − y log y): the Poisson loss of a prediction on the log scale."""

    unit = MetricUnit("half the Poisson deviance", *NATS)

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
        if targets.min() < 0:
            raise ValueError(f"the Poisson loss needs targets ≥ 0; got {targets.min():g}.")


@dataclass(frozen=True)
class Pinball(Loss):
    """max(q(y − h), (q − 1)(y − h)): the loss of the q-th quantile."""

    unit = MetricUnit("pinball loss", *UNITS)
    of_error = True
    kink = 1.0
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


class Absolute(_Plain):
    """|h − y|."""

    unit = MetricUnit("absolute error", *UNITS)
    of_error = True
    kink = 2.0
    lipschitz = 1.0

    def value(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """|h − y|."""
        return np.abs(h - y)

    def slope(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """sign(h − y)."""
        return np.sign(h - y)


@dataclass(frozen=True)
class Huber(Loss):
    """(h − y)²/2 up to |h − y| = δ, then δ(|h − y| − δ/2)."""

    unit = MetricUnit("Huber loss", *SQUARED_UNITS)
    of_error = True
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


class Hinge(_OfMargins):
    """max(0, 1 − y h) on margins h, labels y in {−1, 1}."""

    unit = MetricUnit("hinge loss")
    kink = 1.0
    lipschitz = 1.0

    def value(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """max(0, 1 − yh)."""
        return np.maximum(0.0, 1.0 - y * h)

    def slope(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """−y inside the margin, 0 outside."""
        return np.where(y * h < 1.0, -y, 0.0)


LOSSES: dict[str, type[Loss]] = {
    "squared": Squared,
    "cross_entropy": CrossEntropy,
    "brier": Brier,
    "logistic": Logistic,
    "poisson": Poisson,
    "poisson_log": PoissonLog,
    "absolute": Absolute,
    "pinball": Pinball,
    "huber": Huber,
    "hinge": Hinge,
}
