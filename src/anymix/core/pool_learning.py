"""Learn the pools of a source from its own rows: candidates, their gains, and a choice for all.

    min Σ_i w_i ℓ(h'_k(x_i), y_i) / s + ρ/2 ‖a_k − e‖²

e is the centre: e_k, the source's own model, or e_0, the generalist.  s is 1 for labels and the
centre's mean loss for numbers, so that ρ has no unit.  All strengths ρ and folds are one stack of
small Newton systems.  Both models alone are candidates, too: they are ρ → ∞.

Few rows cannot choose among so many.  For candidate c let g_k be its gain over the own model of
source k by folds, and s_k the standard error.  Gains of sources are alike: with the mean μ and the
variance τ² of the true gains over sources (DerSimonian and Laird 1986) the gain to expect is

    μ + τ²/(τ² + s_k²) (g_k − μ)

and each source takes the candidate for which it is largest; that of the own model is 0.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray, IntArray
from anymix.core.averaging import mean_and_error
from anymix.core.losses import Loss, losses_at
from anymix.core.pooling import GENERALIST, N_CANDIDATES, OWN, STRENGTHS, pooled_labels

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


N_FOLDS = 5
# Fewer rows cannot learn a pool; both models alone are candidates all the same.
FEWEST = 10
# Numbers of the largest array in a Newton step, 16 MB; of more rows some are drawn.
MOST_NUMBERS = 2**21
MAX_STEPS, HALVINGS, TOL = 30, 12, 1e-9
# A variance counts as that of so many rows of each source, and the mean variance as this many.
FEW_ROWS = 5.0
# The standard error of a candidate that there is not.
ABSENT = -1.0


class Pool(NamedTuple):
    """Weights (p,) or (p + 1,) and offset of one source, and cross-fitted predictions of its rows.

    `gain` is the mean loss of the own model less theirs, `error` its standard error.
    """

    weights: FloatArray
    offset: FloatArray
    crossed: FloatArray
    gain: float
    error: float
    choice: int


@dataclass(frozen=True)
class PoolCandidates:
    """The candidates of one source: θ of its pools, and the cross-fitted gain of each.

    Attributes
    ----------
    thetas : tuple of array (S, F + 1, q)
        Of each centre, the own model first, by strength and fold that is left out; the last is
        learned from all rows.  Empty where there are too few rows.
    fold : array (n,)
    gains, errors, doubted : array (C,)
        Mean loss of the own model less that of each candidate (see `Consulting`), its standard
        error, and the gain to choose by; the error is −1 of a candidate that there is not.
    n_rows : float
        Rows of equal weight.
    """

    thetas: tuple[FloatArray, ...]
    fold: IntArray
    gains: FloatArray
    errors: FloatArray
    doubted: FloatArray
    n_rows: float


@dataclass(frozen=True)
class PoolRows:
    """The rows that source k learns its pools from.

    Attributes
    ----------
    predictions : array (p, n[, c]), or (p + 1, n[, c]) with the `generalist` in the last place
    y : array (n,)
    k : int
    loss : Loss
    weight : array (n,)
    errors : bool
        Numbers are errors h − y, y = 0, and of labels the first class is the one that occurred.
    groups : array (n,), optional
        Rows of one group are in one fold.
    generalist : bool
    """

    predictions: FloatArray
    y: NDArray[Any]
    k: int
    loss: Loss
    weight: FloatArray
    errors: bool = False
    groups: IntArray | None = None
    generalist: bool = False

    @property
    def share(self) -> FloatArray:
        """Row weights that sum to 1, (n,)."""
        return np.asarray(self.weight / self.weight.sum())

    def fold(self) -> IntArray:
        """Folds (n,) that are stratified by target and by the size of the error."""
        losses = np.stack([losses_at(h, self.y, self.loss) for h in self.predictions])
        keys = *np.delete(losses, self.k, axis=0)[::-1], losses[self.k], self.y
        order, numbers = np.lexsort(keys), np.arange(len(self.y))
        if self.groups is not None:
            # Groups by their first row in this order, each in one fold.
            _, first, unit = np.unique(self.groups[order], return_index=True, return_inverse=True)
            numbers = np.argsort(np.argsort(first))[unit]
        fold = np.empty(len(self.y), dtype=np.intp)
        fold[order] = numbers % min(N_FOLDS, int(numbers.max()) + 1)
        return fold

    def pools(self, centre: int) -> NumberPools | LabelPools:
        """The pools that are centred at a model."""
        known = self.predictions, self.y, centre, self.errors
        if self.predictions.ndim == 3:
            return LabelPools(*known)
        return NumberPools(*known, self.loss, self.share)

    @property
    def centres(self) -> list[int]:
        """The own model and, if there is one, the generalist."""
        return [self.k, len(self.predictions) - 1][: 1 + self.generalist]

    def candidates(self) -> PoolCandidates | None:
        """Learn the pools of all strengths at all centres; None if there is no other model."""
        (n_models, n, *c), fold = self.predictions.shape, self.fold()
        if n_models < 2:
            return None
        n_rows = 1.0 / float(self.share @ self.share)
        thetas, known = [], {OWN: self.predictions[self.k]}
        if self.generalist:
            known[GENERALIST] = self.predictions[-1]
        # As many rows as the arrays of a Newton step may have.
        each = max(STRENGTHS.size * (N_FOLDS + 1), (n_models + 1) ** 2) * int(np.prod(c, dtype=int))
        most = max(FEWEST, MOST_NUMBERS // each)
        some = np.sort(np.random.default_rng(0).permutation(n)[:most])
        masks = np.vstack([*(fold != f for f in range(fold.max() + 1)), np.ones(n, dtype=bool)])
        for number, centre in enumerate(self.centres if n_rows >= FEWEST else []):
            pools = self.pools(centre)
            theta = _newton(pools.taken(some), (masks * self.weight)[:, some])
            first = 1 + number * GENERALIST
            known |= {first + s: pools.said(theta[s, fold]) for s in range(STRENGTHS.size)}
            thetas.append(theta)
        table = np.zeros((3, N_CANDIDATES if self.generalist else GENERALIST))
        table[1] = ABSENT
        for choice, crossed in known.items():
            table[:, choice] = self._gain(crossed, n_rows)
        gains, errors, doubted = table
        return PoolCandidates(tuple(thetas), fold, gains, errors, doubted, n_rows)

    def _gain(self, crossed: FloatArray, n_rows: float) -> tuple[float, float, float]:
        """The gain over the own model, its standard error, and the gain to choose by."""
        own, share = self.predictions[self.k], self.share
        gains = losses_at(own, self.y, self.loss) - losses_at(crossed, self.y, self.loss)
        gain, error = mean_and_error(gains, share, n_rows)
        doubted = gain
        if self.loss.logarithmic:
            # With half a row more, whose label is the one for which the pool is worst.  Where few
            # rows have no bad one among them a surer pool looks certainly better: all gains are
            # small and alike.  A mistake costs far more, and nobody has seen that there are none.
            worst = float(share @ (np.log(crossed) - np.log(own)).min(axis=1))
            share = np.append(share * n_rows, 0.5) / (n_rows + 0.5)
            doubted, error = mean_and_error(np.append(gains, worst), share, n_rows + 0.5)
        return float(gain), float(error), float(doubted)

    def pool(self, found: PoolCandidates, choice: int) -> Pool:
        """Return one of the candidates that is not the own model."""
        gain, error = float(found.gains[choice]), float(found.errors[choice])
        number, strength = divmod(choice - 1, GENERALIST)
        if choice == GENERALIST:
            alone = np.eye(len(self.predictions))[-1]
            c = self.predictions.shape[2:]
            return Pool(alone, np.zeros(c), self.predictions[-1], gain, error, choice)
        pools, theta = self.pools(self.centres[number]), found.thetas[number][strength]
        weights, offset = pools.weights(theta[-1])
        return Pool(weights, offset, pools.said(theta[found.fold]), gain, error, choice)


def choose_candidates(gains: FloatArray, errors: FloatArray, n_rows: FloatArray) -> IntArray:
    """Choose a candidate for each source, from its own rows and those of all; see above.

    Parameters
    ----------
    gains, errors : array (p, C)
        To choose by, and their standard errors; the error of a missing candidate is −1.
    n_rows : array (p,)
        0 of sources that keep their own model and choose for nobody.

    Returns
    -------
    array (p,) of int

    Examples
    --------
    Three sources of few rows; what is good for two of them is good for the third:

    >>> gains = np.array([[0.0, 0.3], [0.0, 0.2], [0.0, -0.02]])
    >>> choose_candidates(gains, np.array([[0.0, 0.1]] * 3), np.full(3, 10.0))
    array([1, 1, 1])
    """
    expected = np.zeros(gains.shape)
    for c in range(1, gains.shape[1]):
        known = np.flatnonzero((n_rows > 0) & (errors[:, c] != ABSENT))
        expected[:, c] = -np.inf
        if n_rows[known].max(initial=0.0) < 2:
            continue
        g, n = gains[known, c], n_rows[known]
        variance = errors[known, c] ** 2 * n
        mean = variance[n >= 2].mean()
        own = np.where(n >= 2, (n * variance + FEW_ROWS * mean) / (n + FEW_ROWS), mean) / n
        expected[known, c] = shrunk(g, np.maximum(own, TINY))
    expected[n_rows == 0, 1:] = -np.inf
    return np.asarray(expected.argmax(axis=1))


def shrunk(g: FloatArray, variance: FloatArray) -> FloatArray:
    """μ + τ²/(τ² + s_k²) (g_k − μ) for estimates g_k of variance s_k².

    >>> shrunk(np.array([0.0, 1.0]), np.array([1.0, 1.0])), shrunk(np.array([0.0, 9.0]), np.ones(2))
    (array([0.5, 0.5]), array([0.11..., 8.88...]))
    """
    share = 1.0 / variance / (1.0 / variance).sum()
    mean = share @ g
    # As weights relative to the largest, so that variances of any magnitude are safe.
    scale = variance.min()
    w = scale / variance
    left = w @ (g - mean) ** 2 - (g.size - 1) * scale
    spread = max(0.0, float(left)) / max(float(w.sum() - w @ w / w.sum()), TINY)
    share = 1.0 / (variance + spread)
    mean = share @ g / share.sum()
    return np.asarray(mean + spread / (spread + variance) * (g - mean))


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
