"""Cross-fitting: what is learned without a fold is judged by it, and the average is deployed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from anymix._arrays import FloatArray, IntArray
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
# With fewer rows of a source its fold would teach, or judge, next to nothing.
FEWEST_ROWS = 15
# Numbers that rows are put in order by: so many tell them apart.
MOST_KEYS, SAME = 8, 1e-6
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
    """Assign the rows of each source to folds, by chance: (m,) of 0..K−1.

    Rows are sorted by what the sources say of them, so that neither their order nor the last digit
    of a number decides; then folds of equal size are drawn.  Rows that are the same stay together,
    unless almost all are.  All are in fold 0 where a source has too few.

    >>> tables = Tables(np.zeros((1, 6)), np.zeros((1, 6))).labelled(np.arange(6), 0)
    >>> np.bincount(assign_folds(tables, 2))
    array([6])
    """
    counts = np.bincount(tables.domain, minlength=tables.n_sources)
    if counts.min() < FEWEST_ROWS:
        return np.zeros(tables.n_points, dtype=np.intp)
    return draw_folds(tables, n_folds)


def draw_folds(tables: Tables, n_folds: int = N_FOLDS) -> IntArray:
    """Draw the folds of each source's rows, however few there are; see `assign_folds`."""
    fold = np.zeros(tables.n_points, dtype=np.intp)
    for k in np.unique(tables.domain).tolist():
        rows = tables.rows_of(k)
        some = tables.taken(rows)
        # What sites tell of rows is enough, so that both ways draw the same folds.
        said = some.outcomes()
        keys = np.concatenate([said[k:], said[:k], some.log_responsibilities()])[:MOST_KEYS]
        order = np.lexsort(keys[::-1])
        new = np.ones(rows.size, dtype=bool)
        # The same row, evaluated with others, may get another last digit.
        least = SAME * (1.0 + np.abs(keys[:, order[1:]]))
        with np.errstate(invalid="ignore"):
            new[1:] = (np.abs(np.diff(keys[:, order], axis=1)) > least).any(axis=0)
        # The same rows have one number; but rows of few values are alike by chance, and are draws
        # of their own.
        group = np.cumsum(new) - 1 if new.sum() >= FEWEST_ROWS else np.arange(new.size)
        n = int(group[-1]) + 1
        drawn = np.random.default_rng([n_folds, k, n]).permutation(n) % n_folds
        fold[rows[order]] = drawn[group]
    return fold


def combined_predictions(tables: Tables, combination: CrossFittedCombination) -> FloatArray:
    """What an average of combinations predicts at new points, (m,) or (m, c)."""
    predicted = [predictions_after(tables, part) for part in combination.parts]
    return np.asarray(np.mean(predicted, axis=0)) if len(predicted) > 1 else predicted[0]


def predictions_after(
    tables: Tables, part: Combination, pooled: FloatArray | None = None
) -> FloatArray:
    """What a combination predicts after consulting; `pooled` has what it consulted, if known."""
    if pooled is None:
        pooled = tables.heard(part.consulting).predictions
    return replace(part, consulting=None).predict(tables.log_masses, pooled)


def held_out_predictions(
    tables: Tables, combination: CrossFittedCombination, fold: IntArray
) -> FloatArray:
    """What each part predicts for the rows that it was learned without, (m,) or (m, c)."""
    found: FloatArray | None = None
    for t, part in enumerate(combination.parts):
        rows = np.flatnonzero(fold == t)
        predicted = predictions_after(tables.taken(rows), part)
        found = np.empty((tables.n_points, *predicted.shape[1:])) if found is None else found
        found[rows] = predicted
    assert found is not None
    return found


def own_losses(tables: Tables, loss: str | Loss) -> FloatArray:
    """ℓ(h_k(x_i), y_i) of the own model k of each row, before it consults anybody: (m,)."""
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
    """What consulting has brought to each source at home, by rows that did not teach it."""
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
    """One solution for all folds: losses as judged without the rows, and what was spent."""
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
    """Average the reports of the parts, which are of m rows together."""
    known = [one for one in found if one is not None]
    if not known:
        return None
    names = ("log_loss_before", "log_loss_after", "error_before", "error_after")
    means = {name: float(np.mean([getattr(one, name) for one in known])) for name in names}
    return replace(known[0], n_points=m, **means)
