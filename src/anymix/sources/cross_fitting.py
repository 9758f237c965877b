"""Cross-fitting: learn parts without a fold, evaluate them on it, and deploy their average."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from anymix._arrays import FloatArray, IntArray, mixed
from anymix.core import (
    Certificate,
    Combination,
    CrossFittedCombination,
    Loss,
    Moments,
    Solution,
    gap,
    losses_at,
    simplex,
)
from anymix.densities import CalibrationReport
from anymix.sources.consultation import ConsultingGain
from anymix.sources.tables import Tables

# Each combination learns from four fifths of the rows: with three folds, from two thirds, sources
# of few rows were taught less well what others know (heart, rows of training alone).
N_FOLDS = 5
# With fewer rows of a source its fold would be too small to train or to evaluate.
FEWEST_ROWS = 15
# Log-responsibilities and errors that rows are put in order by, of so many sources, to so many
# digits; and the quantiles of them that chance is seeded by, to fewer digits.
MOST_KEYS, KEY_DIGITS, SEED_QUANTILES, SEED_DIGITS = 4, 6, 17, 3
LEAST_LOG = -700.0
# From the best to the worst.
STATUSES = ("converged", "stationary", "stalled", "out of evaluations", "budget")


@dataclass(frozen=True)
class HeldOut:
    """Predictions for the rows a combination was learned from, each by a part that never saw it.

    predictions are (m,) or (m, c); fold (m,) is the part of the average that predicts: the one that
    was learned without the row.  Where rows were too few for folds there is one part, which has
    seen them all: `crossed` is False, and nothing can be certified by these rows.
    """

    predictions: FloatArray
    fold: IntArray
    crossed: bool = True

    def losses(self, tables: Tables, loss: str | Loss) -> FloatArray:
        """ℓ(h(x_i), y_i), (m,)."""
        return losses_at(self.predictions, np.asarray(tables.targets), loss)


def assign_folds(tables: Tables, n_folds: int = N_FOLDS) -> IntArray:
    """Assign the rows of each source to folds, at random: (m,) of 0..K−1.

    Folds have equally many rows, and rows of one of the tables' `groups` are in one fold.  The
    folds do not depend on labels, errors, the order of the rows or the last digit of a number.  All
    are in
    fold 0 where a source has too few groups.

    >>> tables = Tables(np.zeros((1, 6)), np.zeros((1, 6))).labelled(np.arange(6), 0)
    >>> np.bincount(assign_folds(tables, 2))
    array([6])
    """
    if n_draws(tables).min() < FEWEST_ROWS:
        return np.zeros(tables.n_points, dtype=np.intp)
    return draw_folds(tables, n_folds)


def n_draws(tables: Tables) -> IntArray:
    """The number of draws of each source: rows, or groups of rows; (p,)."""
    domain, p = tables.domain, tables.n_sources
    if tables.groups is not None:
        domain = np.unique(tables.groups * p + domain) % p
    return np.bincount(domain, minlength=p)


def draw_folds(tables: Tables, n_folds: int = N_FOLDS) -> IntArray:
    """Draw the folds of each source's rows, for any number of rows; see `assign_folds`.

    Rows are sorted by numbers that site files contain, too, so the same folds are drawn from them.
    A random permutation of the sorted rows is assigned; its seed is a hash of these numbers, so
    that no rank, such as that of the largest error, determines a fold.
    """
    fold, groups = np.zeros(tables.n_points, dtype=np.intp), tables.groups
    known = None if groups is None else np.full(int(groups.max(initial=-1)) + 1, -1)
    for k in np.unique(tables.domain).tolist():
        rows = tables.rows_of(k)
        some = tables.taken(rows)
        both = np.maximum(some.log_responsibilities(), LEAST_LOG), some.outcomes()
        keys = np.concatenate([np.roll(one, -k, axis=0)[:MOST_KEYS] for one in both])
        size = np.abs(keys).mean(axis=1, keepdims=True)
        keys = np.round(keys / np.where(size > 0, size, 1.0), KEY_DIGITS)
        # The same number, evaluated with others, may get another last digit: few are near a step.
        coarse = np.quantile(keys, np.linspace(0, 1, SEED_QUANTILES), axis=1).round(SEED_DIGITS)
        seed = mixed(coarse.reshape(1, -1), salt=rows.size)[0]
        drawn = np.random.default_rng([n_folds, k, int(seed)]).permutation(rows.size)
        order = rows[np.lexsort(keys[::-1])]
        if groups is None or known is None:
            fold[order] = drawn % n_folds
        else:
            deal_groups(groups[order[drawn]], n_folds, known)
    return fold if groups is None or known is None else known[groups]


def deal_groups(group: IntArray, n_folds: int, known: IntArray) -> None:
    """Assign groups of shuffled rows to folds, in `known` (groups,), which has −1 elsewhere.

    The largest come first, each to the fold of the fewest rows; those that have a fold keep it.

    >>> known = np.full(3, -1)
    >>> deal_groups(np.array([2, 0, 1, 0]), 2, known)
    >>> known
    array([0, 1, 1])
    """
    own, first, sizes = np.unique(group, return_index=True, return_counts=True)
    there, dealt = known[group], known[known >= 0]
    # Of folds of as many rows that which has the fewest groups.
    few = np.bincount(dealt, minlength=n_folds) / (known.size + 1.0)
    load = np.bincount(there[there >= 0], minlength=n_folds) + few
    for g in np.lexsort((first, -sizes)).tolist():
        if known[own[g]] < 0:
            known[own[g]] = t = int(load.argmin())
            load[t] += sizes[g]


def combined_predictions(tables: Tables, combination: CrossFittedCombination) -> FloatArray:
    """The predictions of an average of combinations at new points, (m,) or (m, c)."""
    predicted = [predictions_after(tables, part) for part in combination.parts]
    return np.asarray(np.mean(predicted, axis=0)) if len(predicted) > 1 else predicted[0]


def predictions_after(
    tables: Tables, part: Combination, pooled: FloatArray | None = None
) -> FloatArray:
    """The predictions of a combination; `pooled` has the pooled predictions, if known."""
    if pooled is None:
        pooled = tables.heard(part.consulting).predictions
    return replace(part, consulting=None).predict(tables.log_masses, pooled)


def held_out_predictions(
    tables: Tables, combination: CrossFittedCombination, fold: IntArray
) -> FloatArray:
    """The predictions of each part for the rows that it was learned without, (m,) or (m, c)."""
    found: FloatArray | None = None
    for t, part in enumerate(combination.parts):
        rows = np.flatnonzero(fold == t)
        predicted = predictions_after(tables.taken(rows), part)
        found = np.empty((tables.n_points, *predicted.shape[1:])) if found is None else found
        found[rows] = predicted
    assert found is not None
    return found


def own_losses(tables: Tables, loss: str | Loss) -> FloatArray:
    """ℓ(h_k(x_i), y_i) of the own model k of each row, before consulting: (m,)."""
    return losses_at(tables.own_predictions(), np.asarray(tables.targets), loss)


def gain_moments(
    tables: Tables, combination: CrossFittedCombination, fold: IntArray, loss: str | Loss
) -> FloatArray:
    """`Moments` by source of the own losses, and of the gains by consulting: (2, p, 7)."""
    own, consulted = own_losses(tables, loss), np.empty(tables.n_points)
    for t, part in enumerate(combination.parts):
        rows = np.flatnonzero(fold == t)
        consulted[rows] = own_losses(tables.taken(rows).heard(part.consulting), loss)
    return moments_by_source(np.stack([own, own - consulted]), tables)


def consulting_gain(
    tables: Tables, combination: CrossFittedCombination, fold: IntArray, loss: str | Loss
) -> ConsultingGain | None:
    """The cross-fitted gain of consulting for each source on its own rows."""
    if not combination.consults:
        return None
    return ConsultingGain.of(gain_moments(tables, combination, fold, loss))


def moments_by_source(values: FloatArray, tables: Tables) -> FloatArray:
    """`Moments` of values (..., m) over the rows of each source: (..., p, 7)."""
    found = np.zeros((*values.shape[:-1], tables.n_sources, len(Moments._fields)))
    weights = tables.weights
    for k in range(tables.n_sources):
        rows = tables.rows_of(k)
        x, w = values[..., rows], weights[rows]
        total = w.sum()
        if total > 0:
            mean, ww = x @ w / total, w * w
            away = x - mean[..., None]
            square = away * away
            spreads = square @ w, (square * away) @ w, square @ ww, away @ ww
            found[..., k, 0], found[..., k, 1] = total, ww.sum()
            found[..., k, 2:] = np.stack([mean, *spreads], axis=-1)
    return found


def joined_solution(
    solutions: Sequence[Solution],
    combination: CrossFittedCombination,
    certificate: Certificate,
    judged: str,
) -> Solution:
    """Merge the solutions of all folds: cross-fitted losses, and the total cost."""
    if judged == "alone":
        return solutions[0]
    losses, own = certificate.source_losses, certificate.own_losses
    z = solutions[0].z if judged == "new" else simplex.clean(combination.z)
    return replace(
        solutions[0],
        z=z,
        gamma=gap(losses, z),
        robust_loss=float(losses.max()),
        regret=float((losses - own).max()),
        source_losses=losses,
        own_losses=own,
        status=max((one.status for one in solutions), key=STATUSES.index),
        optimality=max(one.optimality for one in solutions),
        n_evaluations=float(sum(one.n_evaluations for one in solutions)),
        n_hessians=float(sum(one.n_hessians for one in solutions)),
        shrinkage=float(np.mean([one.shrinkage for one in solutions])),
        seen=None,
    )


def mean_report(found: Sequence[CalibrationReport | None], m: int) -> CalibrationReport | None:
    """Average the reports of the parts, which have m rows together."""
    known = [one for one in found if one is not None]
    if not known:
        return None
    names = ("log_loss_before", "log_loss_after", "error_before", "error_after")
    means = {name: float(np.mean([getattr(one, name) for one in known])) for name in names}
    return replace(known[0], n_points=m, **means)
