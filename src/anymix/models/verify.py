"""Recompute the evidence of a saved model from its tables, and compare it with the record.

Another version of anymix may have had other bounds and intervals, so of its records only what was
measured is compared.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from anymix._version import __version__
from anymix.core import Combination, gap, plain, restored, simplex
from anymix.estimators import Comparison
from anymix.sources import (
    Blocks,
    Consulted,
    Grounds,
    HeldOut,
    Tables,
    assign_folds,
    certify_learned,
    consult,
    consulting_gain,
    held_out_predictions,
    make_cross_loss,
    own_losses,
    predictions_after,
)

# Sums in another order, on another machine, differ by less; a lie within it changes nothing.
TOLERANCE = 1e-6
# What every version finds alike in the same tables.
MEASURED = (
    *("z", "own_losses", "source_losses", "robust_loss", "regret", "gamma", "eta", "epsilon"),
    *("mean", "names", "methods", "sources", "mixtures", "mixture_weights", "loss", "worst"),
)


def verify_evidence(model: Any, record: dict[str, Any]) -> None:
    """Compare consulting, held-out predictions and all records with what the tables give.

    Raises a ValueError that names what differs.  A pool of another version cannot be learned again,
    and the search's answer for z is gone once z was adapted: these are then not compared.
    """
    same_version = record["anymix"] == __version__
    if model.result_.members:
        _verify_records(model, record, same_version)
        return
    comparable = same_version or not model.combination_.consults
    with np.errstate(all="ignore"):
        heard = _verify_consulting(model, same_version)
        held_out = held_out_of(model, heard)
        stored = model.held_out_
        if (stored.crossed, stored.fold.tolist()) != (held_out.crossed, held_out.fold.tolist()):
            raise ValueError("the folds are not those that the tables give")
        # Other pools of another version give other predictions.
        if not np.allclose(stored.predictions, held_out.predictions, rtol=TOLERANCE, atol=1e-9):
            raise ValueError("the held-out predictions are not those that the tables give")
        _verify_records(model, record, same_version, comparable)
        if comparable and model.certificate_ is not None:
            _verify_solution(model, heard)
        gain = consulting_gain(model.tables_, model.combination_, held_out.fold, model.loss)
        if comparable and gain is not None:
            _compare("the consulting gain", model.advice_, gain)


def _verify_records(
    model: Any, record: dict[str, Any], same_version: bool, comparable: bool = True
) -> None:
    """Compare certificate, cross losses and comparison with those of the held-out predictions."""
    with np.errstate(all="ignore"):
        if comparable and model.certificate_ is not None:
            found = certificate_of(model)
            _compare("the certificate", model.certificate_, found, same_version)
        cross_losses = Blocks.of(model.tables_).cross_losses(model.loss)
        names, confidence = model.source_names_, model.cross_loss_.confidence
        found = make_cross_loss(*cross_losses, names, confidence, model.loss)
        # Older records do not name what they measure.
        stored = replace(model.cross_loss_, measure=model.cross_loss_.measure or found.measure)
        _compare("the table of cross losses", stored, found, same_version)
        if comparable:
            stored = restored(Comparison, record["comparison"])
            stored = replace(stored, confidence=stored.confidence or model.confidence)
            _compare("the comparison", stored, model.compared(), same_version)


def restore_held_out(model: Any) -> None:
    """Compute what folders of formats 1 to 3 do not hold: held-out predictions, consulting gain."""
    with np.errstate(all="ignore"):
        pooled = None if model.taught_ or len(model.combination_.parts) > 1 else _consulted(model)
        model.held_out_ = held_out_of(model, model.tables_ if pooled is None else pooled.tables)
        fold = model.held_out_.fold
        model.advice_ = consulting_gain(model.tables_, model.combination_, fold, model.loss)


def held_out_of(model: Any, heard: Tables) -> HeldOut:
    """What the model predicts at its rows: each fold by the combination learned without it.

    Of a single combination `heard` are the predictions after consulting, learned without the row.
    """
    combination, tables = model.combination_, model.tables_
    n_parts = len(combination.parts)
    fold = (
        assign_folds(tables, n_parts) if n_parts > 1 else np.zeros(tables.n_points, dtype=np.intp)
    )
    if int(fold.max()) + 1 != n_parts:
        raise ValueError("the rows of the tables do not teach as many parts")
    if model.taught_ or n_parts > 1:
        return HeldOut(held_out_predictions(tables, combination, fold), fold)
    predictions = predictions_after(tables, combination.parts[0], heard.predictions)
    return HeldOut(predictions, fold, crossed=False)


def certificate_of(model: Any) -> Any:
    """Certify the model by its held-out predictions, as `fit` does."""
    stored, names = model.certificate_, tuple(str(name) for name in model.source_names_)
    n_ways = stored.n_candidates if model.held_out_.crossed else 1.0
    grounds = Grounds(model.confidence, not stored.covers, int(n_ways), names)
    members, judged = bool(model.result_.members), (model.held_out_, model.loss, grounds)
    used = Combination(model.z_, model.eta) if members else model.combination_
    return certify_learned(model.tables_, used, *judged, theorems=not members)


def _consulted(model: Any, tables: Tables | None = None) -> Consulted:
    """Learn from tables how sources consult each other."""
    tables = model.tables_ if tables is None else tables
    names = [str(name) for name in model.source_names_]
    aside = [k for k, name in enumerate(names) if name in model.set_aside_]
    return consult(tables, model.loss, aside) if model.consult else Consulted(None, tables)


def _verify_consulting(model: Any, same_version: bool) -> Tables:
    """Compare the pools of each part; return the predictions after consulting of the last one."""
    parts, tables = model.combination_.parts, model.tables_
    heard = tables.heard(parts[-1].consulting)
    if model.taught_ or (not same_version and model.combination_.consults):
        return heard  # rows that are not here, or another version, have taught the pools
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
        gamma = gap(L, simplex.clean(model.combination_.z))
    else:
        problem = heard.weighed(first.calibration).problem(model.loss, first.eta, first.rule)
        L, own, gamma = problem.source_losses(stored.z), problem.own_losses, problem.gamma(stored.z)
    found = {
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
        raise ValueError(f"{what} is not the one that the tables give")


def _agree(stored: Any, found: Any) -> bool:
    """Whether two plain records agree: words as they are, numbers up to rounding."""
    if isinstance(stored, dict) and isinstance(found, dict):
        return stored.keys() == found.keys() and all(_agree(stored[k], found[k]) for k in found)
    if isinstance(stored, list) and isinstance(found, list):
        return len(stored) == len(found) and all(map(_agree, stored, found))
    if isinstance(stored, float) and isinstance(found, float):
        return bool(np.isclose(stored, found, rtol=TOLERANCE, atol=1e-9))
    return type(stored) is type(found) and bool(stored == found)
