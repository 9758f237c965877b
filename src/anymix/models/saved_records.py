"""Saved evidence: the records of `fit`, and records of new rows next to the model."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix.core import (
    FOLD_MODELS,
    Certificate,
    Record,
    canonical_name,
    get_loss,
    loss_name,
    plain,
    restored,
    share_ranges,
    simplex,
    unit_of,
    worst_value,
)
from anymix.estimators import Comparison, Verdict
from anymix.exceptions import AuditError, InputError
from anymix.exchange import facts_of, parse_json
from anymix.monitor import TrafficReport, describe_traffic, with_sentence
from anymix.sources import is_of_labels
from anymix.storage import read_file, replacing

# The records of new rows, each in a file of its own next to model.json.
KINDS: dict[str, type[Record]] = {
    "certificate": Certificate,
    "comparison": Comparison,
    "traffic": TrafficReport,
}
FILES = {part: f"{part}.json" for part in KINDS}
RECORD, RECORD_LIMIT = "model.json", 64 * 2**20
SHORT = 60
# How a certificate begins to say why it claims less, and how long that may be.
REASONS, MOST_OF_REASON = ("Nothing is claimed: ", "No bound on "), 400
# How a search for z may end.
STATUSES = ("converged", "stationary", "stalled", "out of evaluations", "budget")
# What must hold, and the sentence that refuses it else; a rule may rely on those before it.
Rules = Iterator[tuple[Any, str]]


def add_record(folder: str | Path, part: str, record: Any, model: str | None = None) -> None:
    """Write a record next to model.json: "certificate", "comparison" or "traffic".

    `model` is the SHA-256 of the model.json that it is of; a folder whose model has changed since
    is refused.
    """
    folder = Path(folder)
    check_free(folder / FILES[part])
    now = facts_of(read_file(folder / RECORD, RECORD_LIMIT)).sha256
    if model not in (None, now):
        raise InputError(folder, "was overwritten by another model during this run; run again")
    day = datetime.now(UTC).date().isoformat()
    content = {"model": now, "date": day, **plain(record, exact=True)}
    with replacing(folder / FILES[part]) as temporary:
        temporary.write_text(json.dumps(content, indent=1, allow_nan=False), "utf-8")


def check_free(path: Path) -> None:
    """Refuse to overwrite a file of that name that anymix has not written."""
    if os.path.lexists(path) and not is_record(path):
        raise InputError(
            path, "is not a record that anymix wrote; move it, or give it another name"
        )


def is_record(path: Path) -> bool:
    """Whether a file of such a name is one of these records."""
    try:
        _read(path)
    except AuditError:
        return False
    return True


def _read(path: Path) -> tuple[Any, str | None, str | None]:
    """Return a record, the SHA-256 of the model.json that it is of, and the day; None if unsaid."""
    stated = parse_json(read_file(path, RECORD_LIMIT), str(path))
    if not isinstance(stated, dict):
        raise AuditError(path, "is not a JSON object")
    model, day = stated.pop("model", None), stated.pop("date", None)
    try:
        if model is not None and not isinstance(model, str):
            raise ValueError("it does not name its model")
        if day is not None:
            day = date.fromisoformat(day).isoformat()
            # A day ahead: clocks of two places differ.
            if date.fromisoformat(day) > datetime.now(UTC).date() + timedelta(days=1):
                raise ValueError("its date is in the future")
        if stated.get("measure") == "accuracy" and not stated.get("higher_is_better"):
            # Versions before 0.4 called the error rate so.
            stated["measure"] = "error_rate"
        return KINDS[path.stem].from_dict(stated), model, day
    except (ValueError, TypeError) as error:
        raise AuditError(path, f"is not sound: {str(error).rstrip('.')}") from error


def read_records(folder: Path, model: Any, sha256: str) -> dict[str, tuple[Any, str | None]]:
    """Return the saved records, if they are consistent with this model, and their dates."""
    records = {}
    for part, name in FILES.items():
        path = folder / name
        if not os.path.lexists(path):
            continue
        record, stated, day = _read(path)
        if stated not in (None, sha256):
            raise AuditError(path, "is of another model; remove it, or make it again with --save")
        try:
            _check(RULES[part](record, model))
        except (ValueError, TypeError) as error:
            raise AuditError(path, f"is not sound: {str(error).rstrip('.')}") from error
        if part == "certificate":
            # What the theorems rest on was seen in rows that are not here.
            bounds = tuple(replace(bound, checked=False) for bound in record.bounds)
            record = replace(record, bounds=bounds)
        if part == "traffic":
            # Sentences are made anew, never read.
            lost = record.expected_loss and with_sentence(record.expected_loss)
            said = describe_traffic(record.estimate, record.alarm, record.source_names)
            record = replace(record, sentence=said, expected_loss=lost)
        records[part] = record, day
    return records


def check_evidence(model: Any, comparison: Any) -> None:
    """Check the evidence of `fit`: shapes, ranges, and whether it can be of this model."""
    check_certificate(model)
    stored = restored(Comparison, comparison)
    model.comparison_ = replace(stored, confidence=stored.confidence or model.confidence)
    _check(_comparison_rules(model.comparison_, model), "the comparison is not sound: ")
    _check(_fit_rules(model))


def check_certificate(model: Any) -> None:
    """Check that a certificate, if there is one, can be of this model."""
    if model.certificate_ is not None:
        _check(_certificate_rules(model.certificate_, model), "the certificate is not sound: ")


def _check(rules: Rules, what: str = "") -> None:
    """Raise the sentence of the first rule that does not hold."""
    try:
        for holds, sentence in rules:
            if not holds:
                raise ValueError(sentence)
    except ValueError as error:
        raise ValueError(f"{what}{error}") from error


def _fit_rules(model: Any) -> Rules:
    """The evidence goes with the model's sources, its folds and its tables."""
    p, evidence, held_out = len(model.source_names_), model.result_.evidence, model.held_out_
    certificate, losses, gain = evidence.certificate, evidence.cross_loss, evidence.consulting_gain
    parts = model.result_.members or model.combination_.parts
    if certificate is not None:
        known = certificate.covers in ("", FOLD_MODELS)
        yield known, "the certificate is of models that no fit has"
        due = not held_out.crossed or certificate.n_candidates in (1, p + 1)
        yield due, "the certificate is spread over fewer or more choices than fit has"
    sure = 0 < losses.confidence < 1
    yield sure, f"a confidence of {losses.confidence:g} is not between 0 and 1"
    named = losses.names == tuple(map(str, model.source_names_)) and np.isfinite(losses.mean).all()
    square = {losses.mean.shape, losses.lower.shape, losses.upper.shape} == {(p, p)}
    yield named and square, "the table of cross losses is not of the sources"
    if gain is not None:
        shapes = {gain.own_losses.shape, gain.gains.shape, gain.errors.shape}
        due = shapes == {(p,)} and model.combination_.consults
        yield due, "the consulting gain is not of the sources"
    every = np.array_equal(np.unique(held_out.fold), np.arange(len(parts)))
    yield every, "the folds are not those of the combination"
    yield held_out.crossed or len(parts) == 1, "several folds are always crossed"
    if not model.result_.members:
        yield from _solution_rules(model, parts[0])


def _solution_rules(model: Any, first: Any) -> Rules:
    """The calibration's report and the solution go with the one combination that fit has found."""
    report, found = model.result_.evidence.calibration_report, model.solution_
    p = len(model.source_names_)
    both = (report is None) == (first.calibration is None)
    yield both, "the calibration and its report do not go together"
    if report is not None:
        shares = np.array([report.error_before, report.error_after])
        numbers = np.array([report.log_loss_before, report.log_loss_after, *shares])
        sound = _are_amounts(numbers) and (shares <= 1).all()
        sound &= 0 < report.n_points <= (model.taught_ or model.tables_.n_points)
        yield sound, "the report on the calibration has a number that is out of bounds"
    simplex.check(found.z, p, "the solution's z")
    losses = found.source_losses, found.own_losses
    yield all(L.shape == (p,) for L in losses), f"the solution is not of {p} sources"
    yield (
        np.isfinite([*losses, [found.gamma] * p]).all(),
        "the losses of the solution are not finite",
    )
    aimed = found.objective == model.objective and len(found.method) <= SHORT
    yield aimed and found.status in STATUSES, "the solution is of no search that the model had"
    passes = [step.n_evaluations for step in found.trace]
    numbers = np.array([found.n_evaluations, found.n_hessians, found.shrinkage, *passes])
    yield _are_amounts(numbers), "the solution has a number that is out of bounds"


def _are_amounts(numbers: NDArray[Any]) -> bool:
    return bool(np.isfinite(numbers).all() and (numbers >= 0).all())


def _certificate_rules(found: Certificate, model: Any) -> Rules:
    p, used = len(model.source_names_), model.result_.combination
    own, L = found.own_losses, found.source_losses
    yield own.shape == L.shape == found.z.shape == (p,), f"it is not of {p} sources"
    yield np.isfinite([*own, *L]).all(), "its losses are not finite"
    names = [str(name) for name in model.source_names_]
    stated = share_ranges(model.mixtures, names)
    yield not found.mixtures or found.mixtures == stated, "it is of other shares than the model's"
    measured, again = (
        [found.epsilon, found.robust_loss, found.regret],
        [own.max(), *(worst_value(values, found.mixtures, names) for values in (L, L - own))],
    )
    yield np.allclose(measured, again, rtol=1e-9), "its numbers do not agree with each other"
    yield (
        np.allclose(found.z, model.z_, atol=1e-9)
        and found.eta == (model.eta if used is None else used.eta),
        "it is of another z or eta than the model's",
    )
    yield _judges(found.loss, model), "it is of another loss than the model's, and no measure"
    yield from _bound_rules(found)


def _bound_rules(found: Certificate) -> Rules:
    """What is claimed goes together, and is neither out of bounds nor below what was measured."""
    bounds = found.loss_upper, found.regret_upper
    claimed = [
        ground in ("exact", "asymptotic") for ground in (found.loss_ground, found.regret_ground)
    ]
    yield (
        any(claimed) == (found.confidence is not None)
        and claimed == [bound is not None for bound in bounds],
        "its bounds and its confidence do not go together",
    )
    yield found.clip is None or 0 < found.clip < np.inf, "its clip is out of bounds"
    shares = [share for share in (found.share_above, found.rarest) if share is not None]
    yield all(0 <= share < np.inf for share in shares), "its shares of rows are out of bounds"
    beta, part = found.subpopulation, found.subpopulation_upper
    yield beta is None or 0 < beta <= 1, "its share of a subpopulation is out of bounds"
    yield (
        part is None or (beta is not None and found.confidence is not None and part < np.inf),
        "its bound on subpopulations is out of bounds",
    )
    why = found.reason
    sound = not why or (
        why.startswith(REASONS) and why.isprintable() and len(why) <= MOST_OF_REASON
    )
    yield sound, "its reason is none that a certificate gives"
    sure = found.confidence is None or 0 < found.confidence < 1
    yield sure, "its confidence is not between 0 and 1"
    # A bound on clipped losses can be below what was measured of whole ones; but no model can lose
    # less than nothing, or gain more than the own models lose.
    least_of = found.robust_loss, found.regret
    if found.clip is not None:
        least_of = 0.0, -min(found.clip, abs(found.epsilon))
    for bound, least in zip(bounds, least_of, strict=True):
        yield bound is None or bound >= least - 1e-9, "its bounds are below what was measured"


def _comparison_rules(found: Comparison, model: Any) -> Rules:
    names = tuple(str(name) for name in model.source_names_)
    p, shape = len(names), (len(found.methods), len(found.mixtures))
    yield found.sources == names, "it is of other sources than the model"
    shapes = {table.shape for table in (found.loss, found.lower, found.upper)}
    lengths = {len(found.privileged), len(found.worst_mixture), found.worst.size}
    fits = shapes == {shape} and lengths == {shape[0]} and found.worst.ndim == 1
    fits &= found.mixture_weights.shape == (shape[1], p) and len(set(found.methods)) == shape[0]
    yield fits, "its tables have wrong shapes"
    yield np.isfinite(found.loss).all(), "its losses are not finite"
    yield found.mixtures == (*names, "all"), "it is of other mixtures"
    yield _judges(found.measure, model), "it is of another loss than the model's, and no measure"
    worst = found.loss[:, :p].max(axis=1)
    if found.higher_is_better:
        worst = found.loss.min(axis=1)
        shares = ((found.loss >= 0) & (found.loss <= 1)).all()
        yield shares, "its areas are not between 0 and 1"
    yield np.allclose(found.worst, worst, rtol=1e-9), "its worst losses are not among its losses"
    yield 0 < (found.confidence or 0.5) < 1, "its confidence is not between 0 and 1"
    inside = (found.lower <= found.loss).all() and (found.loss <= found.upper).all()
    yield inside, "its intervals do not hold its losses"
    for weights in found.mixture_weights:
        simplex.check(weights, p, "a mixture")
    for verdict in found.verdicts:
        yield _judges(verdict.measure, model), "a verdict is of another measure than the model's"
        yield from _verdict_rules(verdict, found)


def _judges(measure: str, model: Any) -> bool:
    """Whether a model can be judged by what is called so: its loss, or a measure of its kind."""
    name = canonical_name(measure)
    if name == canonical_name(loss_name(get_loss(model.loss))):
        return True
    try:
        return is_of_labels(name) == hasattr(model, "classes_")
    except ValueError:
        return False


def _verdict_rules(verdict: Verdict, found: Comparison) -> Rules:
    p = len(found.sources)
    sure = 0 < verdict.confidence < 1
    yield sure, "a verdict has a confidence that is not between 0 and 1"
    counted = verdict.rows.shape == (p,) and (verdict.rows > 0).all()
    yield counted, "a verdict does not count rows of each source"
    intervals = [(verdict.loss, verdict.lower, verdict.upper)]
    intervals += [(rival.difference, rival.lower, rival.upper) for rival in verdict.rivals]
    for mean, lower, upper in intervals:
        sound = mean.shape == lower.shape == upper.shape == (p + 1,) and np.isfinite(mean).all()
        yield sound, "a verdict is not of the sources and all of them"
        # Rounding may put an end of an interval without width on the other side.
        slack = 1e-9 * (1.0 + np.abs(mean))
        inside = (lower <= mean + slack).all() and (mean <= upper + slack).all()
        yield inside, "a verdict has intervals that do not hold its numbers"
    if unit_of(verdict.measure) == unit_of(found.measure) and "anymix" in found.methods:
        ours = found.loss[found.methods.index("anymix")]
        same = np.allclose(verdict.loss, ours, rtol=1e-6)
        yield same, "a verdict is not that of its table"
    names = {rival.name for rival in verdict.rivals}
    known = names <= {"average", "own", "constant", "chance"} and len(names) == len(verdict.rivals)
    yield known, "a verdict names ways that are not known"
    for rival in verdict.rivals:
        same = rival.loss.shape == (p + 1,) and np.allclose(
            verdict.loss - rival.loss, rival.difference, atol=1e-9
        )
        yield same, "a verdict has differences that are not those of its losses"


def _traffic_rules(found: TrafficReport, model: Any) -> Rules:
    p, estimate, alarm = len(model.source_names_), found.estimate, found.alarm
    named = found.source_names == tuple(str(name) for name in model.source_names_)
    yield named, "it is of other sources than the model"
    simplex.check(estimate.mixture, p, "the mixture")
    joint = estimate.joint_lower, estimate.joint_upper
    yield (joint[0] is None) == (joint[1] is None), "its joint intervals have one end"
    for bound in (estimate.lower, estimate.upper, *joint):
        inside = bound is None or (bound.shape == (p,) and ((bound >= 0) & (bound <= 1)).all())
        yield inside, "its intervals are not shares of the sources"
    shares = alarm.p_value, alarm.level, estimate.confidence
    yield all(0 <= share <= 1 for share in shares), "it has a share that is not between 0 and 1"
    sound = alarm.look is None or alarm.look >= 1
    yield sound, "it is of a look before the first"
    rings = alarm.tested and alarm.p_value <= alarm.threshold
    yield alarm.rings == rings, "its alarm is not that of its p-value"
    lost = found.expected_loss
    if lost is None:
        return
    L, numbers = lost.source_losses, [lost.value, lost.lowest, lost.highest]
    yield L.shape == (p,), "its expected loss is of other sources"
    yield np.isfinite([*L, *numbers, lost.lower, lost.upper]).all(), "its losses are not finite"
    again = [estimate.mixture @ L, L.min(), L.max()]
    same = np.allclose(numbers, again, rtol=1e-9)
    yield same, "its expected loss is not that of its mixture"
    inside = lost.lower <= lost.value <= lost.upper
    yield inside, "its interval does not hold its expected loss"
    loss = loss_name(get_loss(model.loss))
    yield lost.loss in ("", loss), "its expected loss is of another loss than the model's"
    stated = lost.confidence, lost.n, lost.trusted
    same = stated == (estimate.confidence, estimate.n, not alarm.rings)
    yield same, "its expected loss is not of its traffic"


RULES: dict[str, Callable[[Any, Any], Rules]] = {
    "certificate": _certificate_rules,
    "comparison": _comparison_rules,
    "traffic": _traffic_rules,
}
