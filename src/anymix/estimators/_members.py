"""Deploy fold models: a member without each fold, evaluated on that fold (refit=False)."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from anymix._arrays import FloatArray, positions
from anymix.core import Combination, share_ranges
from anymix.estimators._rows import Rows, folds_of
from anymix.sources import (
    PROBABILITY_FLOOR,
    Blocks,
    FitEvidence,
    FitResult,
    Grounds,
    HeldOut,
    Seen,
    Tables,
    certify_learned,
    make_cross_loss,
)


def fit_members(model: Any, given: tuple[Any, ...], rows: Rows) -> FitResult:
    """Learn a member without each fold, and certify their average by the folds (refit=False).

    Everything is learned without the fold: models, densities, their choice, second rounds,
    consulting, calibration and z.  Each member is evaluated on the fold that it has not seen, and
    the average of all members predicts: by Jensen its loss is at most the mean of theirs.

    given are X, y, sample_domain and sample_weight as they were handed to `fit`.
    """
    X, y, domain, weight = given
    fold = folds_of(rows, model.cv, model._classification, model.random_state)
    y, domain = np.asarray(y), np.asarray(domain)
    members, combined, each = [], [], []
    order = [np.flatnonzero(fold == t) for t in range(int(fold.max()) + 1)]
    for t, held in enumerate(order):
        rest = np.flatnonzero(fold != t)
        weights = None if weight is None else np.asarray(weight)[rest]
        member = clone(model).set_params(refit=True)
        own = None if rows.groups is None else rows.groups[rest]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".* are copies of another row", UserWarning)
            member.fit(_safe_indexing(X, rest), y[rest], domain[rest], weights, own)
        unseen = _safe_indexing(X, held)
        combined.append(aligned(model, member, member._combined(unseen)))
        each.append([aligned(model, member, h) for h in member.evaluate(unseen).predictions])
        # Novelty of the average is asked of the members, and no fold of theirs.
        evidence = member.result_.evidence
        if evidence is not None:
            member.result_ = replace(member.result_, evidence=replace(evidence, fold_scores=None))
        member.left_out_ = model.left_out_
        members.append(member)
    back = np.argsort(np.concatenate(order), kind="stable")
    predictions = np.concatenate([np.stack(some) for some in each], axis=1)[:, back]
    tables = _tables_of(model, rows, predictions)
    held_out = HeldOut(np.concatenate(combined)[back], fold)
    model.sources_ = [source for member in members for source in member.sources_]
    names = tuple(str(name) for name in model.source_names_)
    z = np.mean([member.z_ for member in members], axis=0)
    crossed = Blocks.of(tables).cross_losses(model.loss)
    grounds = Grounds(model.confidence, names=names, mixtures=share_ranges(model.mixtures, names))
    evidence = FitEvidence(
        certificate=certify_learned(
            tables, Combination(z, model.eta), held_out, model.loss, grounds, theorems=False
        ),
        cross_loss=make_cross_loss(*crossed, names, model.confidence, model.loss),
        held_out=held_out,
        tables=tables,
        seen=Seen.of(tables, rows.X),
    )
    return FitResult(None, evidence, tuple(members))


def _tables_of(model: Any, rows: Rows, predictions: FloatArray) -> Tables:
    """Tables of what the members' sources predict for the rows that they have not seen."""
    classes = model._labels
    targets = rows.y if classes is None else positions(rows.y, classes)
    # Members have densities of their own, so that in common all sources are equally likely.
    blank = np.full(predictions.shape[:2], -np.log(len(predictions)))
    known = targets, rows.domain, rows.weight, classes
    return Tables(blank, predictions, *known, has_densities=False, groups=rows.groups)


def aligned(model: Any, member: Any, predictions: FloatArray) -> FloatArray:
    """Align the classes of a member, which may lack a rare one, with all classes."""
    if not model._classification or len(member.classes_) == len(model.classes_):
        return predictions
    padded = np.full((len(predictions), len(model.classes_)), PROBABILITY_FLOOR)
    padded[:, np.searchsorted(model.classes_, member.classes_)] = predictions
    return np.asarray(padded / padded.sum(axis=1, keepdims=True))
