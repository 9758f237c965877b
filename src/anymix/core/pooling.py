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

from anymix._arrays import FloatArray, IntArray
from anymix.core.losses import Loss, losses_at
from anymix.core.pool_forms import LabelPools, NumberPools

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
    """What one source learned.

    weights (p,) and offset, of labels (c,); `crossed` (n,) or (n, c) is what it says at its own
    rows, each by a pool that was learned without the row; `gain` is the mean loss of the own model
    less that of the pool by folds, `error` its standard error.
    """

    weights: FloatArray
    offset: FloatArray
    crossed: FloatArray
    gain: float
    error: float


def folds_of(y: NDArray[Any], losses: FloatArray) -> IntArray:
    """Deal rows out to the folds by targets and own losses, in whatever order they come.

    Every fold has its share of all targets, and of rows that are easy or hard.  losses are (n,), or
    (p, n) where those of others tell rows apart that the own ones do not.

    >>> folds_of(np.array([5, 5, 7, 7, 7]), np.array([0.2, 0.1, 0.3, 0.1, 0.2]))
    array([1, 0, 4, 2, 3])
    """
    fold = np.empty(y.size, dtype=np.intp)
    fold[np.lexsort((*np.atleast_2d(losses)[::-1], y))] = np.arange(y.size) % min(N_FOLDS, y.size)
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

    With `errors` the numbers are errors h − y, beside y = 0, and classes stand in no order but for
    the label, which is the first: then they have no offsets.  None says that no pool beats the own
    model on rows that the pool has not seen.
    """
    n, share = predictions.shape[1], weight / weight.sum()
    # As many rows of equal weight would tell as much.
    n_rows = 1.0 / float(share @ share)
    if n_rows < FEWEST or len(predictions) < 2:
        return None
    own = losses_at(predictions[k], y, loss)
    others = (losses_at(h, y, loss) for j, h in enumerate(predictions) if j != k)
    fold = folds_of(y, np.stack([own, *others]))
    given = predictions, y, k, errors
    pools = LabelPools(*given) if predictions.ndim == 3 else NumberPools(*given, loss, share)
    some = _some_rows(predictions)
    masks = np.vstack([*(fold != f for f in range(fold.max() + 1)), np.ones(n, dtype=bool)])
    theta = _newton(pools.taken(some), (masks * weight)[:, some])
    crossed = [pools.said(theta[s, fold]) for s in range(STRENGTHS.size)]
    losses = np.stack([losses_at(said, y, loss) for said in crossed])
    best = int((losses @ share).argmin())
    gain, error = _mean_and_error(own - losses[best], share, n_rows)
    doubted = gain, error
    if loss.logarithmic:
        doubted = _doubted(own - losses[best], share, n_rows, predictions[k], crossed[best])
    if not (gain > SURE * error and doubted[0] > SURE * doubted[1]):
        return None
    return Pool(*pools.weights(theta[best, -1]), crossed[best], gain, error)


def _mean_and_error(gains: FloatArray, share: FloatArray, n: float) -> tuple[float, float]:
    """Mean of gains by shares of sum 1, and its standard error, as of n rows."""
    gain = float(share @ gains)
    return gain, float(np.sqrt(np.sum((share * (gains - gain)) ** 2) * n / (n - 1)))


def _doubted(
    gains: FloatArray, share: FloatArray, n: float, own: FloatArray, pool: FloatArray
) -> tuple[float, float]:
    """The same with half a row more, whose label is the one for which the pool is worst.

    Where few rows have no bad one among them a surer pool looks certainly better: all gains are
    small and alike.  A mistake costs far more, and nobody has seen that there are none.
    """
    worst = float(share @ (np.log(pool) - np.log(own)).min(axis=1))
    share = np.append(share * n, 0.5) / (n + 0.5)
    return _mean_and_error(np.append(gains, worst), share, n + 0.5)


def _some_rows(predictions: FloatArray) -> IntArray:
    """Draw as many rows as the arrays of a Newton step may have."""
    p, n, *c = predictions.shape
    each = max(STRENGTHS.size * (N_FOLDS + 1), (p + 1) ** 2) * int(np.prod(c, dtype=int))
    most = max(FEWEST, MOST_NUMBERS // each)
    return np.sort(np.random.default_rng(0).permutation(n)[:most])


def _newton(pools: NumberPools | LabelPools, masses: FloatArray) -> FloatArray:
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
