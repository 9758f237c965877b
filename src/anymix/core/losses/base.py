"""Convex losses ℓ(h, y): value, slope, curvature, and how each is a difference of convex ones.

With h_z = J/K and J, K affine in z, the function ℓ(h_z) − C log K is convex in z exactly when
C ≥ ℓ'(h)²/ℓ''(h) at the values h that h_z can take (Props 5 and 6 are the squared loss and the
cross-entropy).  A loss with flat pieces (slope at most G, no curvature) first borrows some:
with |h − c| ≤ R, the function ℓ + q − C log K, q = (G/2R)(h − c)², is convex for C = 4GR, and
so is q − C log K.  Either way a loss states C, and q where it needs one, for each point.

A new loss is one small class: subclass `Loss`, say what it takes, give `value`, `slope`,
`curvature`, and either `curvature_ratio` (the supremum above) or `lipschitz` (G).
"""

from __future__ import annotations

from typing import ClassVar, Literal, NamedTuple

import numpy as np

from anymix._arrays import FloatArray

Takes = Literal["number", "label", "vector"]


class DCTerms(NamedTuple):
    """ℓ = [ℓ + q − C log K] − [q − C log K] with q = bend·(h − centre)²; arrays over the points."""

    C: FloatArray
    bend: FloatArray
    centre: FloatArray


class Loss:
    """A convex loss: subclass it, give value, slope, curvature and one of the two DC routes.

    takes : "number", "label" or "vector"
        What h is: a number, (m,); the probability of the label that occurred, (m,), and y is not
        looked at; or a vector, (m, c), beside a one-hot y.  `value` has shape (m,).
    of_error : bool
        Whether a loss of numbers depends on h − y alone, which is all that some sites tell.
    positive : bool
        Whether numbers h must be positive, so that they are pooled by their logarithms.
    """

    takes: ClassVar[Takes] = "number"
    of_error: ClassVar[bool] = False
    positive: ClassVar[bool] = False
    lipschitz: float | None = None

    @property
    def logarithmic(self) -> bool:
        """Whether it is −log h itself, for which some theorems say more."""
        return False

    @property
    def of_classes(self) -> bool:
        """Whether it judges probabilities of classes, not numbers."""
        return self.takes != "number"

    def value(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """Return ℓ(h, y) at each point."""
        raise NotImplementedError(f"{type(self).__name__} must define value(h, y).")

    def slope(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """Return ∂ℓ/∂h, of the shape of h; any subgradient at a kink."""
        raise NotImplementedError(f"{type(self).__name__} must define slope(h, y).")

    def curvature(self, h: FloatArray, y: FloatArray) -> FloatArray:
        """Return ∂²ℓ/∂h², of the shape of h (the diagonal, for a vector loss)."""
        raise NotImplementedError(f"{type(self).__name__} must define curvature(h, y).")

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


def lipschitz_terms(G: float, predictions: FloatArray) -> DCTerms:
    """C = 4GR and q = (G/2R)(h − c)², c and R the centre and half-width of the predictions."""
    lower, upper = predictions.min(axis=0), predictions.max(axis=0)
    R = (upper - lower) / 2
    # Where all sources agree h_z does not move, and nothing need be added.
    bend = np.divide(G, 2 * R, out=np.zeros_like(R), where=R > 0)
    return DCTerms(4 * G * R, bend, (lower + upper) / 2)
