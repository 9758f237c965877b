"""What a record says of a model, found again: in its sources, and in the tables beside it.

A model folder may come from a stranger.  Whatever its tables can show is computed from them once
more; that is what is shown, and a record that says otherwise is refused.  Another version of anymix
may have had other bounds and intervals, so of its records only what was measured is compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import norm

from anymix._version import __version__
from anymix.core import (
    Certificate,
    Judgement,
    Solution,
    certify,
    get_loss,
    n_rounded,
    plain,
    restored,
    simplex,
)
from anymix.densities import CalibrationReport
from anymix.estimators import Comparison, CrossLoss
from anymix.exchange import ReceivedSource
from anymix.models.parts import described, nameless
from anymix.sources import Consulted, consult

# Sums in another order, on another machine, differ by less; a lie within it changes nothing.
TOLERANCE = 1e-6
# Calibrations that fit tries beside z, at least: three powers of the responsibilities.
FEWEST_TRIED, MOST_TRIED = 3, 1000
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
    used = model.combination_
    with np.errstate(all="ignore"):
        _restore_consulted(model)
        weighed = model.consulted_.tables.weighed(used.calibration)
        judged = weighed.judgement(model.loss, used.eta, used.rule)
        marginal = used.rule == "marginal"
        learned = judged if marginal else weighed.problem(model.loss, used.eta, used.rule)
        _check_solution(model, learned)
        alone = model.tables_.weighed(used.calibration).judgement(model.loss, used.eta, used.rule)
        _check_cross_loss(model, alone, ours)
        _check_certificate(model, judged, ours)
        told = restored(Comparison, record["comparison"])
        _check_same("the comparison", told, model.comparison_, ours)
    _check_report(model.calibration_report_, model)


def _restore_consulted(model: Any) -> None:
    """The same tables teach the sources the same about each other; so it must be that."""
    names = [str(name) for name in model.source_names_]
    aside = [k for k, name in enumerate(names) if name in model.set_aside_]
    model.consulted_ = Consulted(None, model.tables_)
    if model.consult:
        model.consulted_ = consult(model.tables_, model.loss, aside)
    told, found = model.combination_.consulting, model.consulted_.consulting
    if (told is None) != (found is None):
        raise ValueError("the consulting is not the one that the tables give")
    if told is not None:
        _check_same("the consulting", told, found)


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


def _check_solution(model: Any, problem: Judgement) -> None:
    told: Solution = model.solution_
    simplex.check(told.z, len(model.source_names_), "the solution's z")
    L, own = problem.source_losses(told.z), problem.own_losses
    found = {
        "gamma": problem.gamma(told.z),
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


def _check_cross_loss(model: Any, judged: Judgement, ours: bool) -> None:
    told: CrossLoss = model.cross_loss_
    _check_confidence(told.confidence)
    mean, error = judged.cross_losses()
    width = float(norm.ppf(0.5 + told.confidence / 2)) * error
    names = tuple(map(str, model.source_names_))
    found = CrossLoss(names, mean, mean - width, mean + width, told.confidence)
    _check_same("the table of cross losses", told, found, ours)
    model.cross_loss_ = found


def _check_certificate(model: Any, judged: Judgement, ours: bool) -> None:
    """z is rounded when it is certified on its own rows, and to round it again changes nothing."""
    told: Certificate | None = model.certificate_
    if told is None:
        return
    if told.confidence is not None:
        _check_confidence(told.confidence)
    choices = told.n_candidates / n_rounded(len(model.source_names_))
    fewest = 1 if model.combination_.calibration is None else FEWEST_TRIED
    whole = abs(choices - np.rint(choices)) <= 1e-9 * fewest
    if told.confidence is not None and not (whole and fewest <= np.rint(choices) <= MOST_TRIED):
        raise ValueError("the certificate is spread over fewer or more choices than fit has")
    z = model.combination_.z
    found = certify(judged, z, confidence=told.confidence, held_out=False, choices=choices)
    _check_same("the certificate", told, found, ours)
    model.certificate_ = found
    if not np.allclose(told.z, z, atol=1e-9):
        raise ValueError("the certificate is of another z than the model's")


def _check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence of {confidence:g} is not between 0 and 1")


def _check_report(told: CalibrationReport | None, model: Any) -> None:
    if (told is None) != (model.combination_.calibration is None):
        raise ValueError("the calibration and its report do not go together")
    if told is None:
        return
    losses = told.log_loss_before, told.log_loss_after
    errors = told.error_before, told.error_after
    sound = all(0 <= loss < np.inf for loss in losses) and all(0 <= e <= 1 for e in errors)
    if not sound or not 0 < told.n_points <= model.tables_.n_points:
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
