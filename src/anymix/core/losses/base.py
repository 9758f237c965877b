"""Convex losses ℓ(h, y): value, slope, curvature, and how each is a difference of convex ones.

With h_z = J/K and J, K affine in z, the function ℓ(h_z) − C log K is convex in z exactly when
C ≥ ℓ'(h)²/ℓ''(h) at the values h that h_z can take (Props 5 and 6).  A loss with flat pieces (slope
at most G, no curvature) first borrows some: with |h − c| ≤ R and q = (G/2R)(h − c)², both
ℓ + q − C log K and q − C log K are convex for C = 4GR.

A new loss is one small class: subclass `Loss`, say what it takes, give `value`, `slope`,
`curvature`, and either `curvature_ratio` (the supremum above) or `lipschitz` (G).
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from anymix._arrays import FloatArray

Takes = Literal["number", "label", "vector"]


class DCTerms(NamedTuple):
    """ℓ = [ℓ + q − C log K] − [q − C log K] with q = bend·(h − centre)²; arrays over the points."""

    C: FloatArray
    bend: FloatArray
    centre: FloatArray


class MetricUnit(NamedTuple):
    """A loss or metric in words, and its unit: `short` in sentences, `unit` in heads of tables.

    The values of a `share` lie in [0, 1].  What is no `mean` over rows does not follow, on a
    mixture, from its values on the sources.
    """

    name: str
    unit: str = ""
    short: str = ""
    share: bool = False
    higher: bool = False
    mean: bool = True

    @property
    def head(self) -> str:
        """Return the name with the unit."""
        return f"{self.name} in {self.unit}" if self.unit else self.name

    @property
    def direction(self) -> str:
        """Return which values are better, as text."""
        return "higher is better" if self.higher else "smaller is better"


class Loss:
    """A convex loss: subclass it, give value, slope, curvature and one of the two DC routes.

    takes : "number", "label" or "vector"
        What h is: a number, (m,); the probability of the label that occurred, (m,), and y is not
        looked at; or a vector, (m, c), with a one-hot y.  `value` has shape (m,).
    of_error : bool
        Whether a loss of numbers depends on h − y alone, which is all that some sites send.
    positive : bool
        Whether numbers h must be positive, so that they are pooled by their logarithms.
    kink : float
        By how much the slope jumps at h = y; 0 where the loss is smooth.
    unit : MetricUnit or None
        The loss in words, and its unit; None: the name of the class, without a unit.
    logarithmic : bool
        Whether it is −log h itself, for which some theorems say more.

    A subclass with a `value` of its own inherits neither `unit`, `logarithmic` nor `bound`.
    """

    takes: ClassVar[Takes] = "number"
    of_error: ClassVar[bool] = False
    positive: ClassVar[bool] = False
    kink: ClassVar[float] = 0.0
    unit: ClassVar[MetricUnit | None] = None
    logarithmic: ClassVar[bool] = False
    # By the names of classes: records hold the name of a loss, and not its class.
    stated_units: ClassVar[dict[str, MetricUnit]] = {}
    lipschitz: float | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in ("unit", "logarithmic", "bound"):
            owner = next(kind for kind in cls.__mro__ if name in vars(kind))
            if getattr(owner, "value", cls.value) is not cls.value and owner is not cls:
                setattr(cls, name, vars(Loss)[name])
        if cls.unit is not None:
            Loss.stated_units[cls.__name__] = cls.unit

    def bound(self, n_classes: int | None = None, floor: float = 0.0) -> float | None:
        """Return M, if no loss is above it; probabilities of labels are at least about `floor`."""
        return None

    def value(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """Return ℓ(h, y) at each point."""
        raise NotImplementedError(f"{type(self).__name__} must define value(h, y).")

    def slope(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """Return ∂ℓ/∂h, of the shape of h; any subgradient at a kink."""
        raise NotImplementedError(f"{type(self).__name__} must define slope(h, y).")

    def curvature(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """Return ∂²ℓ/∂h², of the shape of h (the diagonal, for a vector loss).

        A loss that states `lipschitz` has none unless it defines it.
        """
        if self.lipschitz is not None:
            return np.zeros_like(h)
        raise NotImplementedError(f"{type(self).__name__} must define curvature(h, y).")

    def smoothed(self, width: float) -> Loss:
        """Return the loss with its kink rounded within `width`, where it has one."""
        return Rounded(self, width) if self.kink else self

    def check(self, predictions: FloatArray, targets: FloatArray) -> None:
        """Raise a ValueError, in one sentence, where ℓ is not defined or not finite."""

    def curvature_ratio(self, predictions: FloatArray, targets: FloatArray) -> FloatArray:
        """Return sup ℓ'²/ℓ'' over the hull of the p predictions (p, m[, c]) at each point."""
        raise NotImplementedError(
            f"{type(self).__name__} has no DC decomposition: define curvature_ratio or lipschitz."
        )

    def dc_terms(self, predictions: FloatArray, targets: FloatArray) -> DCTerms:
        """Return C and q for each point; predictions are (p, m[, c]).

        Paper: Prop. 5, Prop. 6.
        """
        if self.lipschitz is not None:
            return lipschitz_terms(self.lipschitz, predictions)
        C = self.curvature_ratio(predictions, targets)
        return DCTerms(C, np.zeros_like(C), np.zeros_like(C))


class Rounded(Loss):
    """ℓ + (κ/2)(√(e² + w²) − |e|), e = h − y: a loss whose slope jumps by κ at h = y, rounded.

    It is at most κw/2 above ℓ, and as near as that can be to it away from the kink.
    """

    def __init__(self, loss: Loss, width: float):
        self.loss, self.width, self.half = loss, width, loss.kink / 2.0

    def value(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """A hyperbola in the place of the kink."""
        e = h - y
        return np.asarray(self.loss.value(h, y) + self.half * (np.hypot(e, self.width) - np.abs(e)))

    def slope(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """Its slope, without a jump."""
        e = h - y
        bent = e / np.hypot(e, self.width) - np.sign(e)
        return np.asarray(self.loss.slope(h, y) + self.half * bent)

    def curvature(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """(κ/2) w²/(e² + w²)^(3/2), and what the loss has."""
        r = np.hypot(h - y, self.width)
        return np.asarray(self.loss.curvature(h, y) + self.half * (self.width / r) ** 2 / r)


def lipschitz_terms(G: float, predictions: FloatArray) -> DCTerms:
    """C = 4GR and q = (G/2R)(h − c)², c and R the centre and half-width of the predictions."""
    lower, upper = predictions.min(axis=0), predictions.max(axis=0)
    R = (upper - lower) / 2
    # Where all sources agree h_z does not move, and nothing need be added.
    bend = np.divide(G, 2 * R, out=np.zeros_like(R), where=R > 0)
    return DCTerms(4 * G * R, bend, (lower + upper) / 2)
