"""Learn how one source pools what all models say, on its own rows, cautiously.

    min Σ_i w_i ℓ(h'_k(x_i), y_i) / s + ρ/2 ‖a_k − e_k‖²

s is 1 for labels and the own model's mean loss for numbers, so that ρ has no unit.  ρ is chosen by
folds; ρ → ∞ is the source's own model, which is kept unless the folds say that it is beaten.
All strengths and folds are one stack of small Newton systems.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from anymix._arrays import FloatArray, IntArray
from anymix.core.consulting import pooled_labels
from anymix.core.losses import Loss, losses_at

STRENGTHS = np.array([0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0])
N_FOLDS = 5
# Fewer rows cannot tell a better pool from luck.
FEWEST = 10
# By so many standard errors of the paired differences a pool must beat the own model.
SURE = 2.0
# Numbers of the largest array in a Newton step, 16 MB; of more rows some are drawn.
MOST_NUMBERS = 2**21
MAX_STEPS, HALVINGS, TOL, TINY = 30, 12, 1e-9, 1e-300


class Pool(NamedTuple):
    """What one source learned.

    weights (p,) and offset; `crossed` (n,) or (n, c) is what it says at its own rows, each by a
    pool that was learned without the row; `gain` is the mean loss of the own model less that of
    the pool by folds, `error` its standard error.
    """

    weights: FloatArray
    offset: float
    crossed: FloatArray
    gain: float
    error: float


def folds_of(n: int) -> IntArray:
    """Deal n rows out to the folds, in an order that depends on nothing but n.

    >>> np.bincount(folds_of(12)).tolist()
    [3, 3, 2, 2, 2]
    """
    fold = np.empty(n, dtype=np.intp)
    fold[np.random.default_rng(0).permutation(n)] = np.arange(n) % min(N_FOLDS, n)
    return fold


def learn_pool(
    predictions: FloatArray,
    y: NDArray[Any],
    k: int,
    loss: Loss,
    weight: FloatArray,
    errors: bool = False,
) -> Pool | None:
    """Learn a_k and b_k from predictions (p, n[, c]) at the rows of source k, or keep its own.

    With `errors` the numbers are errors h − y, beside y = 0.  None says that no pool beats the own model on rows that the pool has not seen.
    """
    n = predictions.shape[1]
    if n < FEWEST or len(predictions) < 2:
        return None
    fold = folds_of(n)
    own = losses_at(predictions[k], y, loss)
    kind = _Labels if predictions.ndim == 3 else _Numbers
    pools = kind(predictions, y, k, loss, errors)
    some = _some_rows(predictions)
    masks = np.vstack([*(fold != f for f in range(fold.max() + 1)), np.ones(n, dtype=bool)])
    few = pools if some.size == n else kind(predictions[:, some], y[some], k, loss, errors)
    theta = _newton(few, (masks * weight)[:, some])
    crossed = [pools.said(theta[s, fold]) for s in range(STRENGTHS.size)]
    losses = np.stack([losses_at(said, y, loss) for said in crossed])
    share = weight / weight.sum()
    best = int((losses @ share).argmin())
    gains = own - losses[best]
    gain = float(share @ gains)
    error = float(np.sqrt(np.sum((share * (gains - gain)) ** 2) * n / (n - 1)))
    if not gain > SURE * error:
        return None
    return Pool(*pools.weights(theta[best, -1]), crossed[best], gain, error)


def _some_rows(predictions: FloatArray) -> IntArray:
    """Draw as many rows as the arrays of a Newton step may have."""
    p, n, *c = predictions.shape
    each = max(STRENGTHS.size * (N_FOLDS + 1), (p + 1) ** 2) * int(np.prod(c, dtype=int))
    most = max(FEWEST, MOST_NUMBERS // each)
    return np.sort(np.random.default_rng(0).permutation(n)[:most])


class _Numbers:
    """h' = h_k + Σ_j d_j (h_j − c_j) + b, or the same of logarithms; θ = (d, b).

    d = a − e_k, and c_j is the mean of h_j.  Where errors are all that is known, c_j = h_k takes
    its place, so that the weights sum to 1 and errors are pooled as numbers are.
    """

    def __init__(self, predictions: FloatArray, y: NDArray[Any], k: int, loss: Loss, errors: bool):
        self.loss, self.y, self.k, self.errors = loss, np.asarray(y, dtype=float), k, errors
        h = np.log(predictions) if loss.positive else predictions
        self.start, self.means = h[k], h.mean(axis=1)
        away = h - (h[k] if errors else self.means[:, None])
        self.features = np.column_stack([away.T, np.ones(h.shape[1])])
        self.products = _products(self.features)
        self.centre = np.zeros(len(h) + 1)
        # The offset is free; a breath of penalty keeps systems of few rows regular.
        self.penalty = np.append(np.ones(len(h)), 1e-6)
        own = float(loss.value(predictions[k], self.y).mean())
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

    def weights(self, theta: FloatArray) -> tuple[FloatArray, float]:
        """a_k and b_k."""
        moved, own = theta[:-1], np.eye(len(self.means))[self.k]
        if self.errors:
            return own + moved - own * moved.sum(), float(theta[-1])
        return own + moved, float(theta[-1] - moved @ self.means)


class _Labels:
    """log h' = Σ_j a_j log h_j, normalised over classes; θ = a, learned by likelihood."""

    def __init__(self, predictions: FloatArray, y: NDArray[Any], k: int, *_: Any):
        p, n, c = predictions.shape
        logs = np.log(predictions)
        # Only differences between classes count, and centred ones make better systems.
        self.logs = logs - logs.mean(axis=2, keepdims=True)
        self.features = np.moveaxis(self.logs, 0, -1).reshape(n * c, p)
        self.products = _products(self.features)
        self.hit = np.zeros((n, c))
        self.hit[np.arange(n), y] = 1.0
        self.centre, self.penalty = np.eye(p)[k], np.ones(p)

    def _scores(self, theta: FloatArray) -> FloatArray:
        return np.asarray(theta @ self.features.T).reshape(-1, *self.hit.shape)

    def values(self, theta: FloatArray, mass: FloatArray) -> FloatArray:
        """−Σ_i mass_i log h'(x_i, y_i) for each a of a stack, (B,)."""
        scores = self._scores(theta)
        told = logsumexp(scores, axis=2) - np.einsum("bnc,nc->bn", scores, self.hit)
        return np.asarray((mass * told).sum(axis=1))

    def slopes(self, theta: FloatArray, mass: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient (B, p) and Hessian (B, p, p)."""
        (n, c), p = self.hit.shape, self.centre.size
        proba = softmax(self._scores(theta), axis=2)
        weighed = (mass[:, :, None] * proba).reshape(-1, n * c)
        missed = (mass[:, :, None] * (proba - self.hit)).reshape(-1, n * c)
        mean = np.matmul(proba.transpose(1, 0, 2), self.features.reshape(n, c, p))
        mean = mean.transpose(1, 0, 2)
        spread = np.matmul((mass[:, :, None] * mean).transpose(0, 2, 1), mean)
        return missed @ self.features, (weighed @ self.products).reshape(-1, p, p) - spread

    def said(self, theta: FloatArray) -> FloatArray:
        """h' at each row by an a of its own, (n, p) -> (n, c)."""
        return pooled_labels(self.logs * theta.T[:, :, None], np.ones(len(self.logs)))

    def weights(self, theta: FloatArray) -> tuple[FloatArray, float]:
        """a_k; labels have no offset."""
        return theta, 0.0


def _products(features: FloatArray) -> FloatArray:
    """f_q f_r for each row: a Hessian is then one matrix product for all θ of a stack."""
    rows, q = features.shape
    return (features[:, :, None] * features[:, None, :]).reshape(rows, q * q)


def _newton(pools: _Numbers | _Labels, masses: FloatArray) -> FloatArray:
    """Minimise for every strength and every row of masses (F, n) at once: θ (S, F, q).

    Steps are halved, each for itself, until they lead down; who has arrived is left out.
    """
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
        for _ in range(HALVINGS):
            if not left.size:
                break
            there = value(theta[left] - step, left)
            better = there < now[left]
            theta[left[better]] -= step[better]
            now[left[better]] = there[better]
            if better.all():
                break
            step = np.where(better[:, None], 0.0, step / 2.0)
        if not left.size:
            break
    return theta.reshape(S, F, q)
