"""Source k consults the others: h'_k pools the predictions of all models at a point.

    labels     log h'_k(x, ·) = s(x, ·) − log Σ_y exp s(x, y),   s = Σ_j a_kj log h_j(x, ·) + b_k
    numbers    h'_k(x) = Σ_j a_kj h_j(x) + b_k
    positive   log h'_k(x) = Σ_j a_kj log h_j(x) + b_k

Every theorem holds with the h'_k in place of the h_k.  Each source learns its pool on its own rows:

    min Σ_i w_i ℓ(h'_k(x_i), y_i) / s + ρ/2 ‖a_k − e_k‖²

s is 1 for labels and the own model's mean loss for numbers, so that ρ has no unit.  ρ is chosen by
folds; ρ → ∞ is the source's own model, which is kept unless the folds say that it is beaten.
All strengths and folds are one stack of small Newton systems.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from anymix._arrays import FloatArray, IntArray
from anymix.core.averaging import mean_and_error
from anymix.core.losses import Loss, losses_at
from anymix.core.records import Record

FORMS = ("labels", "numbers", "positive")
# The least probability of a class after pooling: the cross-entropy stays below 13.8.
FLOOR = 1e-6
# Far beyond any pool that was learned, and far below where numbers overflow.
LARGEST = 1e6


@dataclass(frozen=True, eq=False)
class Consulting(Record):
    """How much each model counts in the prediction of each source.

    Attributes
    ----------
    weights : array (p, p)
        a_kj: how source k takes the prediction of source j; the identity is no consulting.
    offset, reach : array (p,), of labels the offset is (p, c)
        b_k; and how far, at most, a number (or its logarithm) is moved: as far as on the rows that
        a_k was learned from.
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

    @property
    def consults(self) -> FloatArray:
        """Which sources consult others at all, (p,) of bool."""
        p = len(self.weights)
        own = (self.weights == np.eye(p)).all(axis=1)
        return np.asarray(~own | self.offset.reshape(p, -1).any(axis=1))

    def check(self, p: int | None = None) -> None:
        """Raise a ValueError, in one sentence, for numbers that nobody can have learned."""
        p = len(self.weights) if p is None else p
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
        out, h = predictions.copy(), predictions if self.form == "numbers" else np.log(predictions)
        for k in some:
            if self.form == "labels":
                out[k] = pooled_labels(np.tensordot(self.weights[k], h, axes=1) + self.offset[k])
                continue
            moved = np.tensordot(self.weights[k], h, axes=1) + self.offset[k] - h[k]
            pooled = h[k] + np.clip(moved, -self.reach[k], self.reach[k])
            out[k] = np.exp(pooled) if self.form == "positive" else pooled
        return out


def pooled_labels(scores: FloatArray) -> FloatArray:
    """Normalise Σ_j a_j log h_j + b over classes, none below the floor: (n, c)."""
    pool = np.maximum(softmax(scores, axis=-1), FLOOR)
    return np.asarray(pool / pool.sum(axis=-1, keepdims=True))


MOST_OFFSETS = 50  # classes that have an offset each
TINY = 1e-300


class _Pools:
    """What both kinds of pools share: features of rows and, once some are `taken`, products."""

    by_row: tuple[str, ...]
    features: FloatArray
    products: FloatArray

    def taken(self, some: IntArray) -> Self:
        """Return the pools of some of the rows, with f_q f_r for each row, ready for Newton."""
        part = copy(self)
        for name in self.by_row:
            setattr(part, name, getattr(self, name)[some])
        rows = part.features.reshape(-1, part.features.shape[-1])
        part.products = (rows[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)
        return part


class NumberPools(_Pools):
    """h' = h_k + Σ_j d_j (h_j − c_j) + b, or the same of logarithms; θ = (d, b).

    d = a − e_k, and c_j is the mean of h_j.  Where errors are all that is known, c_j = h_k takes
    its place, so that the weights sum to 1 and errors are pooled as numbers are.
    """

    by_row = ("start", "y", "features")

    def __init__(
        self,
        predictions: FloatArray,
        y: NDArray[Any],
        k: int,
        errors: bool,
        loss: Loss,
        share: FloatArray,
    ):
        self.loss, self.y, self.k, self.errors = loss, np.asarray(y, dtype=float), k, errors
        h = np.log(predictions) if loss.positive else predictions
        self.start, self.means = h[k], h @ share
        away = h - (h[k] if errors else self.means[:, None])
        self.features = np.column_stack([away.T, np.ones(h.shape[1])])
        self.centre = np.zeros(len(h) + 1)
        # The offset is free; a breath of penalty keeps systems of few rows regular.
        self.penalty = np.append(np.ones(len(h)), 1e-6)
        own = float(share @ loss.value(predictions[k], self.y))
        self.scale = own if own > 0 else 1.0

    def _at(self, theta: FloatArray) -> FloatArray:
        s = np.asarray(self.start + theta @ self.features.T)
        return np.exp(np.minimum(s, 300.0)) if self.loss.positive else s

    def values(self, theta: FloatArray, mass: FloatArray) -> FloatArray:
        """Σ_i mass_i ℓ(h'_i, y_i) / s for each θ of a stack, (B,)."""
        losses = self.loss.value(self._at(theta), self.y)
        return np.asarray((mass * losses).sum(axis=1) / self.scale)

    def slopes(self, theta: FloatArray, mass: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient (B, q) and a Hessian (B, q, q) that Newton can use."""
        h = self._at(theta)
        slope, curvature = self.loss.slope(h, self.y), self.loss.curvature(h, self.y)
        if self.loss.lipschitz is not None:
            # The parabola that touches the loss from above: iteratively reweighted squares.
            away = np.abs(h - self.y)
            curvature = np.maximum(curvature, np.abs(slope) / (away + 1e-3 * away.mean() + TINY))
        if self.loss.positive:
            slope, curvature = slope * h, np.maximum(slope * h + curvature * h * h, 0.0)
        weighed = (mass * curvature / self.scale) @ self.products
        shape = len(theta), self.centre.size, self.centre.size
        return (mass * slope / self.scale) @ self.features, weighed.reshape(shape)

    def said(self, theta: FloatArray) -> FloatArray:
        """h' at each row by a θ of its own, (n, q) -> (n,)."""
        s = self.start + np.einsum("nq,nq->n", theta, self.features)
        return np.asarray(np.exp(s) if self.loss.positive else s)

    def weights(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """a_k and b_k, (p,) and ()."""
        moved, own = theta[:-1], np.eye(len(self.means))[self.k]
        if self.errors:
            return own + moved - own * moved.sum(), np.asarray(theta[-1])
        return own + moved, np.asarray(theta[-1] - moved @ self.means)


class LabelPools(_Pools):
    """log h' = Σ_j a_j log h_j + b_y, normalised over classes; θ = (a, b), by likelihood.

    b stays 0 where there are many classes, or they stand in another order in each row.
    """

    by_row = ("features", "hit")

    def __init__(self, predictions: FloatArray, y: NDArray[Any], k: int, errors: bool = False):
        p, n, c = predictions.shape
        logs = np.log(predictions)
        # Only differences between classes count, and centred ones make better systems.
        logs -= logs.mean(axis=2, keepdims=True)
        self.features = np.ascontiguousarray(np.moveaxis(logs, 0, -1))
        self.hit = np.zeros((n, c))
        self.hit[np.arange(n), y] = 1.0
        self.n_offsets = c if c <= MOST_OFFSETS and not errors else 0
        self.centre = np.append(np.eye(p)[k], np.zeros(self.n_offsets))
        self.penalty = np.ones(self.centre.size)

    def taken(self, some: IntArray) -> Self:
        """Return the pools of some of the rows, class by class: sums over classes are then fast."""
        part = copy(self)
        part.hit = np.ascontiguousarray(self.hit[some].T)
        part.features = np.ascontiguousarray(self.features[some].transpose(1, 0, 2))
        rows = part.features.reshape(-1, part.features.shape[-1])
        part.products = (rows[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)
        return part

    def _scores(self, theta: FloatArray) -> FloatArray:
        """Σ_j a_j log h_j + b_y of rows that were `taken`, (B, c, n)."""
        c, n, p = self.features.shape
        scores = (theta[:, :p] @ self.features.reshape(c * n, p).T).reshape(-1, c, n)
        return np.asarray(scores + theta[:, p:, None] if self.n_offsets else scores)

    def values(self, theta: FloatArray, mass: FloatArray) -> FloatArray:
        """−Σ_i mass_i log h'(x_i, y_i) for each θ of a stack, (B,)."""
        scores = self._scores(theta)
        hit, top = np.einsum("bcn,cn->bn", scores, self.hit), scores.max(axis=1)
        scores -= top[:, None]
        losses = np.log(np.exp(scores, out=scores).sum(axis=1)) + top - hit
        return np.asarray((mass * losses).sum(axis=1))

    def slopes(self, theta: FloatArray, mass: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient (B, q) and Hessian Σ_i mass_i [F'PF − (F'p)(F'p)'], F = (log h, I), by parts."""
        (c, n, p), B = self.features.shape, len(theta)
        proba = self._scores(theta)
        proba -= proba.max(axis=1, keepdims=True)
        np.exp(proba, out=proba)
        proba /= proba.sum(axis=1, keepdims=True)
        weighed, missed = mass[:, None] * proba, mass[:, None] * (proba - self.hit)
        mean = np.matmul(proba.transpose(2, 0, 1), self.features.transpose(1, 0, 2))
        mean = np.ascontiguousarray(mean.transpose(1, 0, 2))
        gradient = missed.reshape(B, c * n) @ self.features.reshape(c * n, p)
        spread = np.matmul((mass[:, :, None] * mean).transpose(0, 2, 1), mean)
        hessian = (weighed.reshape(B, c * n) @ self.products).reshape(B, p, p) - spread
        if not self.n_offsets:
            return gradient, hessian
        across = np.matmul(weighed.transpose(1, 0, 2), self.features).transpose(1, 2, 0)
        across = across - np.matmul(weighed, mean).transpose(0, 2, 1)
        offsets = -np.matmul(proba, weighed.transpose(0, 2, 1))
        offsets[:, np.arange(c), np.arange(c)] += weighed.sum(axis=2)
        top = np.concatenate([hessian, across], axis=2)
        bottom = np.concatenate([across.transpose(0, 2, 1), offsets], axis=2)
        whole = np.concatenate([gradient, missed.sum(axis=2)], axis=1)
        return whole, np.concatenate([top, bottom], axis=1)

    def said(self, theta: FloatArray) -> FloatArray:
        """h' at each row by a θ of its own, (n, q) -> (n, c)."""
        p = self.features.shape[-1]
        scores = np.einsum("ncp,np->nc", self.features, theta[:, :p])
        return pooled_labels(scores + theta[:, p:] if self.n_offsets else scores)

    def weights(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """a_k and b_k, (p,) and (c,)."""
        p, offset = self.features.shape[-1], np.zeros(self.hit.shape[1])
        if self.n_offsets:
            offset = theta[p:] - theta[p:].mean()
        return theta[:p], offset


STRENGTHS = np.array([0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0])
N_FOLDS = 5
# Fewer rows cannot tell a better pool from luck.
FEWEST = 10
# By so many standard errors of the paired differences a pool must beat the own model.
SURE = 2.5
# Numbers of the largest array in a Newton step, 16 MB; of more rows some are drawn.
MOST_NUMBERS = 2**21
MAX_STEPS, HALVINGS, TOL = 30, 12, 1e-9


class Pool(NamedTuple):
    """Weights (p,) and offset of one source, and cross-fitted predictions of its own rows.

    `gain` is the mean loss of the own model less theirs, `error` its standard error.
    """

    weights: FloatArray
    offset: FloatArray
    crossed: FloatArray
    gain: float
    error: float


def learn_pool(
    predictions: FloatArray,
    y: NDArray[Any],
    k: int,
    loss: Loss,
    weight: FloatArray,
    errors: bool = False,
    groups: IntArray | None = None,
) -> Pool | None:
    """Learn a_k and b_k from predictions (p, n[, c]) at the rows of source k; None: keep its own.

    With `errors` the numbers are errors h − y, y = 0, and the first class is the label.
    """
    (p, n, *c), share = predictions.shape, weight / weight.sum()
    # As many rows of equal weight would tell as much.
    n_rows = 1.0 / float(share @ share)
    if n_rows < FEWEST or p < 2:
        return None
    losses = np.stack([losses_at(h, y, loss) for h in predictions])
    own, others = losses[k], np.delete(losses, k, axis=0)
    # Every fold has its share of all targets, and of rows that are easy or hard, in any order.
    order, fold = np.lexsort((*others[::-1], own, y)), np.empty(n, dtype=np.intp)
    numbers = np.arange(n)
    if groups is not None:
        # Groups by their first row in this order, each in one fold.
        _, first, unit = np.unique(groups[order], return_index=True, return_inverse=True)
        numbers = np.argsort(np.argsort(first))[unit]
    fold[order] = numbers % min(N_FOLDS, int(numbers.max()) + 1)
    given = predictions, y, k, errors
    pools = LabelPools(*given) if c else NumberPools(*given, loss, share)
    # As many rows as the arrays of a Newton step may have.
    each = max(STRENGTHS.size * (N_FOLDS + 1), (p + 1) ** 2) * int(np.prod(c, dtype=int))
    most = max(FEWEST, MOST_NUMBERS // each)
    some = np.sort(np.random.default_rng(0).permutation(n)[:most])
    masks = np.vstack([*(fold != f for f in range(fold.max() + 1)), np.ones(n, dtype=bool)])
    theta = _newton(pools.taken(some), (masks * weight)[:, some])
    crossed = [pools.said(theta[s, fold]) for s in range(STRENGTHS.size)]
    losses = np.stack([losses_at(said, y, loss) for said in crossed])
    best = int((losses @ share).argmin())
    gains = own - losses[best]
    gain, error = mean_and_error(gains, share, n_rows)
    sure = gain > SURE * error
    if sure and loss.logarithmic:
        # With half a row more, whose label is the one for which the pool is worst.  Where few rows
        # have no bad one among them a surer pool looks certainly better: all gains are small and
        # alike.  A mistake costs far more, and nobody has seen that there are none.
        worst = float(share @ (np.log(crossed[best]) - np.log(predictions[k])).min(axis=1))
        share = np.append(share * n_rows, 0.5) / (n_rows + 0.5)
        doubted = mean_and_error(np.append(gains, worst), share, n_rows + 0.5)
        sure = doubted[0] > SURE * doubted[1]
    if not sure:
        return None
    return Pool(*pools.weights(theta[best, -1]), crossed[best], float(gain), float(error))


def _newton(pools: NumberPools | LabelPools, masses: FloatArray) -> FloatArray:
    """Minimise for every strength and row of masses (F, n) at once, halving steps: θ (S, F, q)."""
    S, F, q = STRENGTHS.size, len(masses), pools.centre.size
    which, ridge = np.tile(np.arange(F), S), np.repeat(STRENGTHS, F)[:, None] * pools.penalty
    theta = np.tile(pools.centre, (S * F, 1))

    def value(at: FloatArray, b: IntArray) -> FloatArray:
        penalty = 0.5 * (ridge[b] * (at - pools.centre) ** 2).sum(axis=1)
        return np.asarray(pools.values(at, masses[which[b]]) + penalty)

    left = np.arange(S * F)
    now = value(theta, left)
    for _ in range(MAX_STEPS):
        gradient, hessian = pools.slopes(theta[left], masses[which[left]])
        gradient = gradient + ridge[left] * (theta[left] - pools.centre)
        hessian = hessian + ridge[left][:, :, None] * np.eye(q)
        step = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        moving = (step * gradient).sum(axis=1) > TOL * (1.0 + np.abs(now[left]))
        left, step = left[moving], step[moving]
        worse = left
        for _ in range(HALVINGS):
            if not worse.size:
                break
            there = value(theta[worse] - step, worse)
            better = there < now[worse]
            theta[worse[better]] -= step[better]
            now[worse[better]] = there[better]
            worse, step = worse[~better], step[~better] / 2.0
        if not left.size:
            break
    return theta.reshape(S, F, q)
