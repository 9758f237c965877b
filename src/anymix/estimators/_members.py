"""refit=False: the models of the folds are deployed, so that what is certified is what is used.

Without each fold of the rows everything is learned: models, densities, their choice, second rounds,
consulting, calibration and z.  Each member is judged by the fold that it has not seen, and the
average of all members predicts: by Jensen its loss is at most the mean of theirs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from anymix._arrays import FloatArray, positions
from anymix.estimators._row_checks import Rows, folds_of
from anymix.sources import (
    PROBABILITY_FLOOR,
    Blocks,
    FitEvidence,
    FitResult,
    Grounds,
    HeldOut,
    Tables,
    certify_predictions,
    make_cross_loss,
)


def fit_members(model: Any, given: tuple[Any, Any, Any, Any], rows: Rows) -> FitResult:
    """Learn a member without each fold, and certify their average by the folds.

    given are X, y, sample_domain and sample_weight as they were handed to `fit`.
    """
    X, y, domain, weight = given
    fold = folds_of(rows, model.cv, model._classification(), model.random_state)
    y, domain = np.asarray(y), np.asarray(domain)
    members, combined, each = [], [], []
    order = [np.flatnonzero(fold == t) for t in range(int(fold.max()) + 1)]
    for t, held in enumerate(order):
        rest = np.flatnonzero(fold != t)
        weights = None if weight is None else np.asarray(weight)[rest]
        member = clone(model).set_params(refit=True)
        member.fit(_safe_indexing(X, rest), y[rest], domain[rest], weights)
        unseen = _safe_indexing(X, held)
        combined.append(aligned(model, member, member._combined(unseen)))
        each.append([aligned(model, member, h) for h in member.evaluate(unseen).predictions])
        members.append(member)
    back = np.argsort(np.concatenate(order), kind="stable")
    predictions = np.concatenate([np.stack(some) for some in each], axis=1)[:, back]
    classes = model._labels
    targets = rows.y if classes is None else positions(rows.y, classes)
    blank = np.zeros(predictions.shape[:2])
    known = targets, rows.domain, rows.weight, classes
    tables = Tables(blank, predictions, *known, has_densities=False)
    held_out = HeldOut(np.concatenate(combined)[back], fold)
    model.sources_ = [source for member in members for source in member.sources_]
    names = tuple(str(name) for name in model.source_names_)
    z = np.mean([member.z_ for member in members], axis=0)
    crossed = Blocks.of(tables).cross_losses(model.loss)
    evidence = FitEvidence(
        certificate=certify_predictions(
            tables, held_out, model.loss, z, model.eta, Grounds(model.confidence, names=names)
        ),
        cross_loss=make_cross_loss(*crossed, names, model.confidence, model.loss),
        held_out=held_out,
        tables=tables,
    )
    return FitResult(None, evidence, tuple(members))


def aligned(model: Any, member: Any, predictions: FloatArray) -> FloatArray:
    """Put the classes of a member, which may lack a rare one, in the order of all."""
    if not model._classification() or len(member.classes_) == len(model.classes_):
        return predictions
    padded = np.full((len(predictions), len(model.classes_)), PROBABILITY_FLOOR)
    padded[:, np.searchsorted(model.classes_, member.classes_)] = predictions
    return np.asarray(padded / padded.sum(axis=1, keepdims=True))
