"""Source k consults: h'_k pools the predictions of all models at a point.

    labels     log h'_k(x, ·) = s(x, ·) − log Σ_y exp s(x, y),   s = Σ_j a_kj log h_j(x, ·) + b_k
    numbers    h'_k(x) = Σ_j a_kj h_j(x) + b_k
    positive   log h'_k(x) = Σ_j a_kj log h_j(x) + b_k

The models are those of the p sources and, where there is one, the generalist h_0: a predictor that
was learned from the rows of all sources, which has neither a density nor a z.  It stands last.
Every theorem holds with the h'_k in place of the h_k.  `pool_learning` learns a_k and b_k.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from anymix._arrays import FloatArray, IntArray
from anymix.core.records import Record

FORMS = ("labels", "numbers", "positive")
# The least probability of a class after pooling: the cross-entropy stays below 13.8.
FLOOR = 1e-6
# Far beyond any pool that was learned, and far below where numbers overflow.
LARGEST = 1e6
# ρ, how strongly a pool is held to its centre.
STRENGTHS = np.array([0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0])
# Candidates: the own model, pools centred at it, the generalist, pools centred at that.
OWN, GENERALIST, N_CANDIDATES = 0, STRENGTHS.size + 1, 2 * STRENGTHS.size + 2


@dataclass(frozen=True, eq=False)
class Consulting(Record):
    """How much each model counts in the prediction of each source.

    Attributes
    ----------
    weights : array (p, p), or (p, p + 1) where the last column is that of the generalist
        a_kj: how source k takes the prediction of model j; the identity is no consulting.
    offset, reach : array (p,), of labels the offset is (p, c)
        b_k; and how far, at most, a number (or its logarithm) is moved from the prediction of the
        model that the pool is centred at: as far as on the rows that a_k was learned from.
    form : "labels", "numbers" or "positive"
    choice : tuple of int (p,), optional
        Which of the candidates each source has: 0 is its own model, 1 to 8 are pools centred at
        it, from weak to strong ridges, 9 is the generalist, 10 to 17 are pools centred at that.
        None: no pool is centred at the generalist.

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
    choice: tuple[int, ...] | None = None

    @property
    def consults(self) -> FloatArray:
        """Which sources consult other models, (p,) of bool."""
        p, n_models = self.weights.shape
        own = (self.weights == np.eye(p, n_models)).all(axis=1)
        return np.asarray(~own | self.offset.reshape(p, -1).any(axis=1))

    @property
    def has_generalist(self) -> bool:
        """Whether the last model is the generalist."""
        return bool(self.weights.shape[1] > len(self.weights))

    @property
    def centres(self) -> IntArray:
        """The model that each pool is centred at, (p,): the own model or the generalist."""
        p = len(self.weights)
        return np.where(self.choices >= GENERALIST, p, np.arange(p))

    @property
    def choices(self) -> IntArray:
        """`choice` as an array, (p,); zeros where it is not known."""
        p = len(self.weights)
        return np.zeros(p, dtype=np.intp) if self.choice is None else np.array(self.choice)

    def check(self, p: int | None = None) -> None:
        """Raise a ValueError for impossible numbers."""
        p = len(self.weights) if p is None else p
        parts = self.weights, self.offset, self.reach
        if self.form not in FORMS:
            raise ValueError(f"the form of consulting must be one of {', '.join(FORMS)}.")
        offset = (p, self.offset.size // p) if self.form == "labels" else (p,)
        n_models = p + (self.weights.shape == (p, p + 1))
        if [part.shape for part in parts] != [(p, n_models), offset, (p,)]:
            raise ValueError(f"the consulting of {p} sources has other shapes than {p} x {p}.")
        if not all(np.isfinite(part).all() for part in parts) or (self.reach < 0).any():
            raise ValueError("the consulting has a number that is not finite, or a reach below 0.")
        if max(np.abs(part).max(initial=0.0) for part in parts[:2]) > LARGEST:
            raise ValueError("the consulting has a weight that is out of bounds.")
        known = range(N_CANDIDATES if n_models > p else GENERALIST)
        if self.choice is not None and (
            len(self.choice) != p or any(one not in known for one in self.choice)
        ):
            raise ValueError("the consulting does not say for each source which candidate it has.")

    @property
    def takes_errors(self) -> bool:
        """Whether pools apply to errors h − y as to numbers, and to classes in any order."""
        if self.form == "labels":
            return not self.offset.any()
        return bool(np.abs(self.weights.sum(axis=1) - 1).max() < 1e-9)

    def needed(self) -> NDArray[np.bool_]:
        """Which models the pools need: (p,), or (p + 1,) with the generalist."""
        needed = (self.weights != 0).any(axis=0)
        needed[self.centres] = True
        return np.asarray(needed)

    def heard(self, predictions: FloatArray) -> FloatArray:
        """h'_k from h_j: (p, n) numbers, or (p, n, c) probabilities of labels, from those of all.

        Predictions of models that are not `needed` may be anything.
        """
        (p, n_models), some = self.weights.shape, np.flatnonzero(self.consults)
        if len(predictions) != n_models:
            raise ValueError(
                f"consulting needs the predictions of {n_models} models; got {len(predictions)}."
            )
        if not some.size:
            return predictions[:p]
        used, out = np.flatnonzero(self.needed()), predictions[:p].copy()
        h = predictions[used] if self.form == "numbers" else np.log(predictions[used])
        centres = np.searchsorted(used, self.centres)
        for k in some:
            pool = np.tensordot(self.weights[k, used], h, axes=1) + self.offset[k]
            if self.form == "labels":
                out[k] = pooled_labels(pool)
                continue
            base = h[centres[k]]
            pool = base + np.clip(pool - base, -self.reach[k], self.reach[k])
            out[k] = np.exp(pool) if self.form == "positive" else pool
        return out


def pooled_labels(scores: FloatArray) -> FloatArray:
    """Normalise Σ_j a_j log h_j + b over classes, none below the floor: (n, c)."""
    pool = np.maximum(softmax(scores, axis=-1), FLOOR)
    return np.asarray(pool / pool.sum(axis=-1, keepdims=True))
