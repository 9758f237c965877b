"""Source k hears the others before it speaks: h'_k from what all models say at a point.

    labels     log h'_k(x, ·) = s(x, ·) − log Σ_y exp s(x, y),   s = Σ_j a_kj log h_j(x, ·) + b_k
    numbers    h'_k(x) = Σ_j a_kj h_j(x) + b_k
    positive   log h'_k(x) = Σ_j a_kj log h_j(x) + b_k

Every theorem holds with the h'_k in place of the h_k.  Where Σ_j a_kj = 1, errors h_j − y of
numbers are pooled just as the numbers are, so that errors are all that need be known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import softmax

from anymix._arrays import FloatArray
from anymix.core.records import Record

FORMS = ("labels", "numbers", "positive")
# The least probability of a class after pooling: the cross-entropy stays below 13.8.
FLOOR = 1e-6
# Far beyond any pool that was learned, and far below where numbers overflow.
LARGEST = 1e6


@dataclass(frozen=True, eq=False)
class Consulting(Record):
    """How much each model counts in what each source says.

    Attributes
    ----------
    weights : array (p, p)
        a_kj: how source k takes what the model of source j says; the identity is no consulting.
    offset, reach : array (p,), of labels the offset is (p, c)
        b_k; and how far, at most, a number (or its logarithm) is moved: as far as on the rows that
        a_k was learned from.  Where another model goes astray, it takes nobody along.
    form : "labels", "numbers" or "positive"

    Examples
    --------
    >>> pair = Consulting(np.array([[0.5, 0.5], [0.0, 1.0]]), np.zeros(2), np.ones(2), "numbers")
    >>> pair.heard(np.array([[0.0, 0.0], [1.0, 9.0]]))
    array([[0.5, 1. ],
           [1. , 9. ]])
    """

    weights: FloatArray
    offset: FloatArray
    reach: FloatArray
    form: str

    @classmethod
    def none(cls, p: int, form: str, n_classes: int = 0) -> Self:
        """Each source by itself; labels have as many classes as are said."""
        offset = np.zeros((p, n_classes) if form == "labels" else p)
        return cls(np.eye(p), offset, np.zeros(p), form)

    @property
    def consults(self) -> FloatArray:
        """Which sources hear others at all, (p,) of bool."""
        p = len(self.weights)
        own = (self.weights == np.eye(p)).all(axis=1)
        return np.asarray(~own | self.offset.reshape(p, -1).any(axis=1))

    def check(self, p: int) -> None:
        """Raise a ValueError, in one sentence, for numbers that nobody can have learned."""
        parts = self.weights, self.offset, self.reach
        if self.form not in FORMS:
            raise ValueError(f"the form of consulting must be one of {', '.join(FORMS)}.")
        offset = (p, self.offset.size // p) if self.form == "labels" else (p,)
        if [part.shape for part in parts] != [(p, p), offset, (p,)]:
            raise ValueError(f"the consulting of {p} sources has other shapes than {p} x {p}.")
        if not all(np.isfinite(part).all() for part in parts) or (self.reach < 0).any():
            raise ValueError("the consulting has a number that is not finite, or a reach below 0.")
        if max(np.abs(part).max(initial=0.0) for part in parts[:2]) > LARGEST:
            raise ValueError("the consulting has a weight that is out of bounds.")

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the consulting that `to_dict` wrote, or say what is wrong with it."""
        found = super().from_dict(data)
        found.check(len(found.weights))
        return found

    @property
    def takes_errors(self) -> bool:
        """Whether errors are pooled as numbers are, and classes in whatever order they stand."""
        if self.form == "labels":
            return not self.offset.any()
        return bool(np.abs(self.weights.sum(axis=1) - 1).max() < 1e-9)

    def heard(self, predictions: FloatArray) -> FloatArray:
        """h'_k from h_j: (p, n) numbers, or (p, n, c) probabilities of labels."""
        some = np.flatnonzero(self.consults)
        if not some.size:
            return predictions
        out = predictions.copy()
        for k in some:
            out[k] = self.heard_by(int(k), predictions)
        return out

    def heard_by(self, k: int, predictions: FloatArray) -> FloatArray:
        """h'_k alone, (n,) or (n, c)."""
        if self.form == "labels":
            return pooled_labels(np.log(predictions), self.weights[k], self.offset[k])
        h = np.log(predictions) if self.form == "positive" else predictions
        moved = np.tensordot(self.weights[k], h, axes=1) + self.offset[k] - h[k]
        said = h[k] + np.clip(moved, -self.reach[k], self.reach[k])
        return np.asarray(np.exp(said) if self.form == "positive" else said)


def pooled_labels(
    logs: FloatArray, weights: FloatArray, offset: FloatArray | float = 0.0
) -> FloatArray:
    """Σ_j a_j log h_j + b normalised over classes, none below the floor: (p, n, c) -> (n, c).

    >>> pooled_labels(np.log([[[0.8, 0.2]], [[0.8, 0.2]]]), np.array([1.0, 1.0])).round(3)
    array([[0.941, 0.059]])
    """
    pool = softmax(np.tensordot(weights, logs, axes=1) + offset, axis=-1)
    pool = np.maximum(pool, FLOOR)
    return np.asarray(pool / pool.sum(axis=-1, keepdims=True))
