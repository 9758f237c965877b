"""Recompute the evidence of a saved model from its tables, and compare it with the record.

For records of another version, which may have had other bounds, only measured values are compared.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from anymix._arrays import IntArray
from anymix._version import __version__
from anymix.core import gap, plain, restored, simplex
from anymix.estimators import Comparison
from anymix.sources import (
    Blocks,
    Consulted,
    HeldOut,
    Tables,
    assign_folds,
    consult,
    consulting_gain,
    held_out_predictions,
    make_cross_loss,
    own_losses,
    predictions_after,
)

# Sums in another order, on another machine, differ by less; a lie within it changes nothing.
TOLERANCE = 1e-6
# The rule of the folds of formats 1 to 3.
FEWEST_ROWS, FIRST_KEYS, FIRST_SAME = 15, 8, 1e-6
# What every version finds alike in the same tables.
MEASURED = (
    *("z", "own_losses", "source_losses", "robust_loss", "regret", "gamma", "eta", "epsilon"),
    *("mean", "names", "methods", "sources", "mixtures", "mixture_weights", "loss", "worst"),
)


def verify_evidence(model: Any, record: dict[str, Any]) -> None:
    """Raise a ValueError if consulting, predictions or a record do not agree with the tables.

    Pools of another version, and a z that was adapted later, are not compared.
    """
    same_version, used = record["anymix"] == __version__, model.result_.combination
    # Other pools of another version give other predictions.
    comparable = same_version or used is None or not used.consults
    tables, stored, said = model.tables_, model.held_out_, model.certificate_
    # Before 0.4.0 pools were chosen and certificates claimed by other rules; these gave no reason.
    by_our_rules = same_version and (said is None or bool(said.reason or said.rarest))
    with np.errstate(all="ignore"):
        if used is not None:
            pooled = _verify_consulting(model, by_our_rules)
            held_out = held_out_of(model, pooled)
            if (stored.crossed, stored.fold.tolist()) != (held_out.crossed, held_out.fold.tolist()):
                raise ValueError("the folds are not those that the tables give")
            near: Any = {"rtol": TOLERANCE, "atol": 1e-9}
            if not np.allclose(stored.predictions, held_out.predictions, **near):
                raise ValueError("the held-out predictions are not those that the tables give")
        if comparable and said is not None:
            found = model.certify(confidence=model.confidence)
            _compare("the certificate", said, found, by_our_rules)
        cross_losses, table = Blocks.of(tables).cross_losses(model.loss), model.cross_loss_
        again = make_cross_loss(*cross_losses, model.source_names_, table.confidence, model.loss)
        # Older records do not name what they measure.
        table = replace(table, measure=table.measure or again.measure)
        _compare("the table of cross losses", table, again, same_version)
        if comparable:
            compared = restored(Comparison, record["comparison"])
            compared = replace(compared, confidence=compared.confidence or model.confidence)
            _compare("the comparison", compared, model.compared(), same_version)
        if comparable and used is not None:
            if model.certificate_ is not None:
                _verify_solution(model, pooled)
            gain = consulting_gain(tables, used, stored.fold, model.loss)
            if gain is not None:
                _compare("the consulting gain", model.advice_, gain)


def restore_held_out(model: Any) -> None:
    """Compute what folders of formats 1 to 3 do not hold: held-out predictions, consulting gain."""
    with np.errstate(all="ignore"):
        single = not model.taught_ and len(model.combination_.parts) == 1
        pooled = _consulted(model, model.tables_).tables if single else model.tables_
        model.held_out_ = held_out_of(model, pooled)
        fold = model.held_out_.fold
        model.advice_ = consulting_gain(model.tables_, model.combination_, fold, model.loss)


def held_out_of(model: Any, pooled: Tables) -> HeldOut:
    """The held-out predictions: each fold by the combination learned without it."""
    combination, tables = model.combination_, model.tables_
    n_parts, fold = len(combination.parts), np.zeros(tables.n_points, dtype=np.intp)
    if n_parts > 1:
        stored, fold = getattr(model, "held_out_", None), _first_folds(tables, n_parts)
        # Formats 1 to 3 hold no folds; who loads such a model and saves it keeps its folds.
        if stored is not None and not np.array_equal(stored.fold, fold):
            fold = assign_folds(tables, n_parts)
    if int(fold.max()) + 1 != n_parts:
        raise ValueError("the rows of the tables do not give as many parts")
    if model.taught_ or n_parts > 1:
        return HeldOut(held_out_predictions(tables, combination, fold), fold)
    predictions = predictions_after(tables, combination.parts[0], pooled.predictions)
    return HeldOut(predictions, fold, crossed=False)


def _first_folds(tables: Tables, n_folds: int) -> IntArray:
    """Assign folds as versions before 0.4.0 did: of sorted rows, those that are alike together."""
    fold = np.zeros(tables.n_points, dtype=np.intp)
    if np.bincount(tables.domain, minlength=tables.n_sources).min() < FEWEST_ROWS:
        return fold
    for k in np.unique(tables.domain).tolist():
        rows = tables.rows_of(k)
        some = tables.taken(rows)
        said = np.roll(some.outcomes(), -k, axis=0)
        keys = np.concatenate([said, some.log_responsibilities()])[:FIRST_KEYS]
        order = np.lexsort(keys[::-1])
        new = np.ones(rows.size, dtype=bool)
        least = FIRST_SAME * (1.0 + np.abs(keys[:, order[1:]]))
        with np.errstate(invalid="ignore"):
            new[1:] = (np.abs(np.diff(keys[:, order], axis=1)) > least).any(axis=0)
        group = np.cumsum(new) - 1 if new.sum() >= FEWEST_ROWS else np.arange(new.size)
        n = int(group[-1]) + 1
        fold[rows[order]] = (np.random.default_rng([n_folds, k, n]).permutation(n) % n_folds)[group]
    return fold


def _consulted(model: Any, tables: Tables) -> Consulted:
    """Learn from tables how sources consult each other."""
    names = [str(name) for name in model.source_names_]
    aside = [k for k, name in enumerate(names) if name in model.set_aside_]
    return consult(tables, model.loss, aside) if model.consult else Consulted(None, tables)


def _verify_consulting(model: Any, same_version: bool) -> Tables:
    """Compare the pools of each part; return the predictions after consulting of the last one."""
    parts, tables = model.combination_.parts, model.tables_
    heard = tables.heard(parts[-1].consulting)
    if model.taught_ or not same_version:
        return heard  # the pools were learned from rows that are not here, or by another version
    for t, part in enumerate(parts):
        rows = np.flatnonzero(model.held_out_.fold != t)
        found = _consulted(model, tables if len(parts) == 1 else tables.taken(rows))
        _compare("the consulting", part.consulting, found.consulting)
        heard = found.tables
    return heard


def _verify_solution(model: Any, heard: Tables) -> None:
    """Of several folds the losses are those that were certified; of one, those of its problem."""
    stored, first = model.solution_, model.combination_.parts[0]
    if model.held_out_.crossed:
        tables, loss = model.tables_, model.loss
        L = tables.by_source(model.held_out_.losses(tables, loss))
        own = tables.by_source(own_losses(tables, loss))
        z = model.combination_.z
        gamma = gap(L, simplex.clean(z))
    else:
        problem = heard.weighed(first.calibration).problem(model.loss, first.eta, first.rule)
        z = stored.z
        L, own, gamma = problem.source_losses(z), problem.own_losses, problem.gamma(z)
    found = {
        "z": z,
        "gamma": gamma,
        "robust_loss": float(L.max()),
        "regret": float((L - own).max()),
        "source_losses": L,
        "own_losses": own,
    }
    _compare("the solution", {name: getattr(stored, name) for name in found}, found)


def _compare(what: str, stored: Any, found: Any, whole: bool = True) -> None:
    one, other = plain(stored, exact=True), plain(found, exact=True)
    if not whole:
        one, other = ({n: v for n, v in part.items() if n in MEASURED} for part in (one, other))
    if not _agree(one, other):
        raise ValueError(f"{what} does not agree with the tables")


def _agree(stored: Any, found: Any) -> bool:
    """Whether two plain records agree: words as they are, numbers up to rounding."""
    if isinstance(stored, dict) and isinstance(found, dict):
        return stored.keys() == found.keys() and all(_agree(stored[k], found[k]) for k in found)
    if isinstance(stored, list) and isinstance(found, list):
        return len(stored) == len(found) and all(map(_agree, stored, found))
    if isinstance(stored, float) and isinstance(found, float):
        return bool(np.isclose(stored, found, rtol=TOLERANCE, atol=1e-9))
    return type(stored) is type(found) and bool(stored == found)
