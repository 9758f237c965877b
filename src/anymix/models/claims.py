"""What a record says of a model, found again: in its sources, and in the tables beside it.

A model folder may come from a stranger.  Whatever its tables can show is computed from them once
more; that is what is shown, and a record that says otherwise is refused.  Another version of anymix
may have had other bounds and intervals, so of its records only what was measured is compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from anymix._arrays import IntArray
from anymix._version import __version__
from anymix.core import (
    FOLD_MODELS,
    Certificate,
    gap,
    get_loss,
    plain,
    restored,
    simplex,
)
from anymix.densities import CalibrationReport
from anymix.estimators import Comparison
from anymix.exchange import ReceivedSource
from anymix.models.parts import described, nameless
from anymix.sources import (
    Blocks,
    Consulted,
    CrossLoss,
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
SHORT = 60
# How a search for z may end.
STATUSES = ("converged", "stationary", "stalled", "out of evaluations", "budget")
# What every version finds alike in the same tables.
MEASURED = (
    *("z", "own_losses", "source_losses", "robust_loss", "regret", "gamma", "eta", "epsilon"),
    *("mean", "names", "methods", "sources", "mixtures", "mixture_weights", "loss", "worst"),
)


def check_learned(model: Any, record: dict[str, Any]) -> None:
    """Certificate, solution, cross losses and comparison are those that the tables give."""
    ours = record["anymix"] == __version__
    p = len(model.source_names_)
    if len(model.tables_.log_masses) != p:
        raise ValueError(f"the tables are not of {p} sources")
    model.tables_.check_loss(model.loss, model.combination_.rule)
    with np.errstate(all="ignore"):
        fold = _dealt(model)
        said = _check_consulting(model, fold, ours)
        _restore_held_out(model, fold, said)
        # Pools of another version cannot be learned again, so that other numbers come of them.
        searched_forms = ours or not model.combination_.consults
        _check_certificate(model, ours, searched_forms)
        # What was adapted has the search's answer no longer.
        if searched_forms and model.certificate_ is not None:
            _check_solution(model, said)
        model.tables_.check_loss(model.loss)
        _check_cross_loss(model, ours)
        told = restored(Comparison, record["comparison"])
        told = replace(told, confidence=told.confidence or model.confidence)
        if searched_forms:
            _check_same("the comparison", told, model.comparison_, ours)
    _check_report(model.calibration_report_, model)


def check_untold(record: dict[str, Any]) -> None:
    """A model without tables claims nothing that only tables could show."""
    for name in ("certificate", "comparison", "novelty", "seen"):
        if record.get(name) is not None:
            raise ValueError(f"it has the entry {name!r}, and no tables that show it")
    if record["has_densities"] or record["at_label"]:
        raise ValueError("it says of what kind its tables are, and has none")


def _dealt(model: Any) -> IntArray:
    """The parts that the rows were dealt out to: their content says which."""
    n_parts, tables = len(model.combination_.parts), model.tables_
    if model.taught_ and n_parts > 1:
        raise ValueError("rows that teach apart from those that judge teach one part")
    fold = (
        assign_folds(tables, n_parts) if n_parts > 1 else np.zeros(tables.n_points, dtype=np.intp)
    )
    if int(fold.max()) + 1 != n_parts:
        raise ValueError("the rows of the tables do not teach as many parts")
    return fold


def _check_consulting(model: Any, fold: IntArray, ours: bool) -> Tables:
    """The same tables teach the sources the same about each other; so it must be that.

    Another version may have learned otherwise.  Returns what is said after it, of one part by pools
    that were learned without the row.
    """
    names, tables = [str(name) for name in model.source_names_], model.tables_
    aside = [k for k, name in enumerate(names) if name in model.set_aside_]
    parts, said = model.combination_.parts, tables
    if model.taught_:
        # Rows that are not here have taught them.
        return tables.heard(parts[0].consulting)
    for t, part in enumerate(parts):
        heard = tables if len(parts) == 1 else tables.taken(np.flatnonzero(fold != t))
        found = consult(heard, model.loss, aside) if model.consult else Consulted(None, heard)
        told = part.consulting
        if ours and (told is None) != (found.consulting is None):
            raise ValueError("the consulting is not the one that the tables give")
        if ours and told is not None:
            _check_same("the consulting", told, found.consulting)
        same = ours or (told is None and found.consulting is None)
        said = found.tables if same else tables.heard(told)
    return said


def _restore_held_out(model: Any, fold: IntArray, said: Tables) -> None:
    used, tables = model.combination_, model.tables_
    if model.taught_ or len(used.parts) > 1:
        model.held_out_ = HeldOut(held_out_predictions(tables, used, fold), fold)
    else:
        answers = predictions_after(tables, used.parts[0], said.predictions)
        model.held_out_ = HeldOut(answers, fold, crossed=False)
    model.advice_ = consulting_gain(tables, used, fold, model.loss)


def _check_same(what: str, told: Any, found: Any, whole: bool = True) -> None:
    one, other = plain(told, exact=True), plain(found, exact=True)
    if not whole:
        one, other = ({n: v for n, v in given.items() if n in MEASURED} for given in (one, other))
    if not _alike(one, other):
        raise ValueError(f"{what} is not the one that the tables give")


def _alike(told: Any, found: Any) -> bool:
    """Whether two plain records agree: words as they are, numbers up to rounding."""
    if isinstance(told, dict) and isinstance(found, dict):
        return told.keys() == found.keys() and all(_alike(told[k], found[k]) for k in found)
    if isinstance(told, list) and isinstance(found, list):
        return len(told) == len(found) and all(map(_alike, told, found))
    if isinstance(told, float) and isinstance(found, float):
        return bool(np.isclose(told, found, rtol=TOLERANCE, atol=1e-9))
    return type(told) is type(found) and bool(told == found)


def _check_solution(model: Any, said: Tables) -> None:
    """Of several parts the losses are those that were certified; of one they are its problem's."""
    told, used = model.solution_, model.combination_
    simplex.check(told.z, len(model.source_names_), "the solution's z")
    first = used.parts[0]
    if model.held_out_.crossed:
        tables, loss = model.tables_, model.loss
        L = tables.by_source(model.held_out_.losses(tables, loss))
        own = tables.by_source(own_losses(tables, loss))
        gamma = gap(L, simplex.clean(used.z))
        if not np.allclose(told.z, used.z, atol=1e-9):
            raise ValueError("the solution is of another z than the model's")
    else:
        problem = said.weighed(first.calibration).problem(model.loss, first.eta, first.rule)
        L, own, gamma = problem.source_losses(told.z), problem.own_losses, problem.gamma(told.z)
    found = {
        "gamma": gamma,
        "robust_loss": float(L.max()),
        "regret": float((L - own).max()),
        "source_losses": L,
        "own_losses": own,
    }
    _check_same("the solution", {name: getattr(told, name) for name in found}, found)
    if told.objective != model.objective:
        raise ValueError("the solution is of another objective than the settings")
    if len(told.method) > SHORT or told.status not in STATUSES:
        raise ValueError("the solution tells of an end, or a way, that no search has")
    numbers = [told.n_evaluations, told.n_hessians, told.shrinkage]
    if not (np.isfinite(numbers).all() and min(numbers) >= 0):
        raise ValueError("the solution has a number that is out of bounds")
    passes = np.array([0.0, *(step.n_evaluations for step in told.trace)])
    if not np.isfinite(passes).all() or (np.diff(passes) < 0).any():
        raise ValueError("the trace of the solution goes back in time")


def _check_cross_loss(model: Any, ours: bool) -> None:
    told: CrossLoss = model.cross_loss_
    _check_confidence(told.confidence)
    mean, error = Blocks.of(model.tables_).cross_losses(model.loss)
    found = make_cross_loss(mean, error, model.source_names_, told.confidence, model.loss)
    # Older records do not name what they measure.
    told = replace(told, measure=told.measure or found.measure)
    _check_same("the table of cross losses", told, found, ours)
    model.cross_loss_ = found


def _check_certificate(model: Any, ours: bool, searched_forms: bool) -> None:
    """The rows judge the parts as they did; of another version's words, what was measured."""
    told: Certificate | None = model.certificate_
    if told is None:
        return
    names = tuple(str(name) for name in model.source_names_)
    ways = told.n_candidates if model.held_out_.crossed else 1.0
    if ways not in (1, len(names) + 1):
        raise ValueError("the certificate is spread over fewer or more choices than fit has")
    _check_confidence(model.confidence)
    grounds = Grounds(model.confidence, not told.covers, int(ways), names)
    judged = model.tables_, model.combination_, model.held_out_, model.loss
    found = certify_learned(*judged, grounds)
    if told.covers not in ("", FOLD_MODELS):
        raise ValueError("the certificate is of models that no fit has")
    if searched_forms:
        _check_same("the certificate", told, found, ours)
    model.certificate_ = found


def _check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence of {confidence:g} is not between 0 and 1")


def _check_report(told: CalibrationReport | None, model: Any) -> None:
    if (told is None) != (not model.combination_.calibrated):
        raise ValueError("the calibration and its report do not go together")
    if told is None:
        return
    losses = told.log_loss_before, told.log_loss_after
    errors = told.error_before, told.error_after
    sound = all(0 <= loss < np.inf for loss in losses) and all(0 <= e <= 1 for e in errors)
    if not sound or not 0 < told.n_points <= (model.taught_ or model.tables_.n_points):
        raise ValueError("the report on the calibration has a number that is out of bounds")


def check_sources(
    model: Any, received: Sequence[ReceivedSource], entries: Sequence[dict[str, Any]]
) -> None:
    """Names, labels and features of the record are those that the manifests state."""
    for one, entry in zip(received, entries, strict=True):
        if plain(described(one, entry["folder"])) != entry:
            raise ValueError(f"the entry of {one.folder.name} is not what its manifest states")
    manifests = [one.manifest for one in received]
    if [m.name for m in manifests] != [str(name) for name in model.source_names_]:
        raise ValueError("it does not name the sources as their manifests do")
    labels = getattr(model, "classes_", None)
    known = {label for m in manifests for label in m.classes or ()}
    if {m.task for m in manifests} != {"regression" if labels is None else "classification"}:
        raise ValueError("the task is not that of the sources")
    if labels is not None and labels.tolist() != sorted(known):
        raise ValueError("the classes are not those of the sources")
    _check_columns(model, received)


def _check_columns(model: Any, received: Sequence[ReceivedSource]) -> None:
    n, names = (getattr(model, name, None) for name in ("n_features_in_", "feature_names_in_"))
    for one in received:
        features = one.manifest.features
        if n is not None and not one.manifest.is_text and len(features) != n:
            raise ValueError(f"there are {n} features; the sources take {len(features)}")
        stated = nameless(one.source).feature_names
        if names is not None and stated is not None and stated != list(names):
            raise ValueError("the names of the features are not those of the sources")
    codes = [
        [(f.name, getattr(f, "categories", None)) for f in one.manifest.features]
        for one in received
    ]
    # A table is coded once for all sources.
    coded = any(one.manifest.columns is not None for one in received)
    if coded and any(each != codes[0] for each in codes):
        raise ValueError("the sources do not list the same columns and categories")


def check_alone(record: dict[str, Any]) -> None:
    """A model of one source has nothing that is learned from several."""
    parts = ("comparison", "tables", "router")
    told = [record[part] for part in parts] + [record["combination"].get("calibration")]
    told += [record.get("novelty"), record["combination"].get("consulting")]
    if any(part is not None for part in told) or record["at_label"] or record["has_densities"]:
        raise ValueError("a model of one source has parts that only several sources need")


def check_loss(model: Any) -> None:
    """A classification has a loss of labels, a regression one of numbers."""
    if (get_loss(model.loss).takes != "number") != hasattr(model, "classes_"):
        raise ValueError("the loss is not one of this task")
