"""Evidence as a folder states it: records of `fit`, and records of new rows beside the model.

They are checked against the model and against each other, and shown as what the folder says.  Those
of `fit` can be recomputed from the tables in the folder; of new rows no table is there.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from anymix._arrays import FloatArray
from anymix.core import (
    FOLD_MODELS,
    Certificate,
    Record,
    Solution,
    canonical_name,
    get_loss,
    loss_name,
    plain,
    restored,
    simplex,
    unit_of,
)
from anymix.estimators import Comparison, Verdict
from anymix.exceptions import AuditError, InputError
from anymix.exchange import facts_of, parse_json
from anymix.monitor import (
    Alarm,
    ExpectedLoss,
    MixtureEstimate,
    TrafficReport,
    describe_traffic,
    with_sentence,
)
from anymix.sources import is_of_labels
from anymix.storage import read_file, replacing

# Parts of the report that a record of new rows replaces, and the file that keeps each.
FILES = {
    "certificate": "certificate.json",
    "comparison": "comparison.json",
    "traffic": "traffic.json",
}
KINDS: dict[str, type[Record]] = {
    "certificate": Certificate,
    "comparison": Comparison,
    "traffic": TrafficReport,
}
RECORD, RECORD_LIMIT = "model.json", 64 * 2**20
LIMIT = 64 * 2**20
SHORT = 60
# How a search for z may end.
STATUSES = ("converged", "stationary", "stalled", "out of evaluations", "budget")


def add_record(folder: str | Path, part: str, record: Any, model: str | None = None) -> None:
    """Write a record beside model.json: "certificate", "comparison" or "traffic".

    `model` is the SHA-256 of the model.json that it is of; a folder that has another one by now is
    refused.
    """
    folder = Path(folder)
    check_free(folder / FILES[part])
    now = facts_of(read_file(folder / RECORD, RECORD_LIMIT)).sha256
    if model not in (None, now):
        raise InputError(folder, "was given another model meanwhile; run again")
    day = datetime.now(UTC).date().isoformat()
    found = {"model": now, "date": day, **plain(record, exact=True)}
    with replacing(folder / FILES[part]) as temporary:
        temporary.write_text(json.dumps(found, indent=1, allow_nan=False), "utf-8")


def check_free(path: Path) -> None:
    """Refuse to write over a file of that name that is no record of ours."""
    if os.path.lexists(path) and not is_record(path):
        raise InputError(
            path, "is not a record that anymix wrote; move it, or give it another name"
        )


def is_record(path: Path) -> bool:
    """Whether a file of such a name is one of these records."""
    part = next(part for part, name in FILES.items() if name == path.name)
    try:
        _read(part, path)
    except AuditError:
        return False
    return True


def _read(part: str, path: Path) -> tuple[Any, str | None, str | None]:
    """Return a record, the SHA-256 of the model.json that it is of, and the day; None if unsaid."""
    found = parse_json(read_file(path, LIMIT), str(path))
    if not isinstance(found, dict):
        raise AuditError(path, "is not a JSON object")
    model, day = found.pop("model", None), found.pop("date", None)
    try:
        if model is not None and not isinstance(model, str):
            raise ValueError("it does not name its model")
        if day is not None:
            day = date.fromisoformat(day).isoformat()
            # A day ahead: clocks of two places differ.
            if date.fromisoformat(day) > datetime.now(UTC).date() + timedelta(days=1):
                raise ValueError("its date has not come yet")
        return KINDS[part].from_dict(found), model, day
    except (ValueError, TypeError) as error:
        raise AuditError(path, f"is not sound: {str(error).rstrip('.')}") from error


def read_records(folder: Path, model: Any, sha256: str) -> dict[str, tuple[Any, str | None]]:
    """Return the records that are there, if they can be of this model, and their days."""
    there = {part: folder / name for part, name in FILES.items()}
    return {
        part: _checked(part, path, model, sha256)
        for part, path in there.items()
        if os.path.lexists(path)
    }


def _checked(part: str, path: Path, model: Any, sha256: str) -> tuple[Any, str | None]:
    record, stated, day = _read(part, path)
    if stated not in (None, sha256):
        raise AuditError(path, "is of another model; remove it, or make it again with --save")
    try:
        return CHECKS[part](record, model), day
    except (ValueError, TypeError) as error:
        raise AuditError(path, f"is not sound: {str(error).rstrip('.')}") from error


def check_evidence(model: Any, comparison: Any) -> None:
    """Check the records of `fit`: shapes, ranges, and whether they can be of this model."""
    if model.certificate_ is not None:
        _check_own_certificate(model.certificate_, model)
    stored = restored(Comparison, comparison)
    stored = replace(stored, confidence=stored.confidence or model.confidence)
    model.comparison_ = _named("the comparison", _check_comparison, stored, model)
    _check_source_tables(model)
    held_out, members = model.held_out_, model.result_.members
    n_parts = len(members or model.combination_.parts)
    every = np.array_equal(np.unique(held_out.fold), np.arange(n_parts))
    _check(every, "the folds are not those of the combination")
    _check(held_out.crossed or n_parts == 1, "several folds are always crossed")
    if not members:
        _check_solution(model.solution_, model)
        _check_calibration_report(model)


def _check_own_certificate(certificate: Certificate, model: Any) -> None:
    """Check the certificate of `fit`, which is of fewer kinds than one of new rows."""
    _named("the certificate", _check_certificate, certificate, model)
    _check(certificate.covers in ("", FOLD_MODELS), "the certificate is of models that no fit has")
    _check(
        not model.held_out_.crossed
        or certificate.n_candidates in (1, len(model.source_names_) + 1),
        "the certificate is spread over fewer or more choices than fit has",
    )


def _check_source_tables(model: Any) -> None:
    """Check the cross losses and the consulting gain: one entry for each source."""
    p, table = len(model.source_names_), model.cross_loss_
    gain = model.result_.evidence.consulting_gain
    _check(0 < table.confidence < 1, f"a confidence of {table.confidence:g} is not between 0 and 1")
    _check(
        table.names == tuple(map(str, model.source_names_))
        and table.mean.shape == table.lower.shape == table.upper.shape == (p, p)
        and np.isfinite(table.mean).all(),
        "the table of cross losses is not of the sources",
    )
    if gain is not None:
        shapes = gain.own_losses.shape, gain.gains.shape, gain.errors.shape
        _check({*shapes} == {(p,)}, "the consulting gain is not of the sources")
        _check(model.combination_.consults, "there is a gain, and no consulting")


def _check_calibration_report(model: Any) -> None:
    report = model.calibration_report_
    _check(
        (report is None) == (model.combination_.parts[0].calibration is None),
        "the calibration and its report do not go together",
    )
    if report is not None:
        losses = report.log_loss_before, report.log_loss_after
        errors = report.error_before, report.error_after
        sound = all(0 <= loss < np.inf for loss in losses) and all(0 <= e <= 1 for e in errors)
        sound &= 0 < report.n_points <= (model.taught_ or model.tables_.n_points)
        _check(sound, "the report on the calibration has a number that is out of bounds")


def _named(what: str, check: Any, record: Any, model: Any) -> Any:
    try:
        return check(record, model)
    except ValueError as error:
        raise ValueError(f"{what} is not sound: {error}") from error


def _check_solution(found: Solution, model: Any) -> None:
    p = len(model.source_names_)
    simplex.check(found.z, p, "the solution's z")
    L, own = found.source_losses, found.own_losses
    _check(L.shape == own.shape == (p,), f"the solution is not of {p} sources")
    _check(np.isfinite([*L, *own, found.gamma]).all(), "the losses of the solution are not finite")
    again = [L.max(), (L - own).max()]
    _check(
        np.allclose([found.robust_loss, found.regret], again, rtol=1e-6),
        "the numbers of the solution do not agree with each other",
    )
    # The search's answer is the model's, unless z was adapted since.
    adapted = model.certificate_ is None or not model.held_out_.crossed
    _check(
        adapted or np.allclose(found.z, model.combination_.z, atol=1e-9),
        "the solution is of another z than the model's",
    )
    _check(
        found.objective == model.objective,
        "the solution is of another objective than the settings",
    )
    _check(
        len(found.method) <= SHORT and found.status in STATUSES,
        "the solution tells of an end, or a way, that no search has",
    )
    numbers = [found.n_evaluations, found.n_hessians, found.shrinkage]
    _check(
        np.isfinite(numbers).all() and min(numbers) >= 0,
        "the solution has a number that is out of bounds",
    )
    passes = np.array([0.0, *(step.n_evaluations for step in found.trace)])
    _check(
        np.isfinite(passes).all() and (np.diff(passes) >= 0).all(),
        "the trace of the solution goes back in time",
    )


def _check(sound: Any, what: str) -> None:
    if not sound:
        raise ValueError(what)


def _check_certificate(found: Certificate, model: Any) -> Certificate:
    p, used = len(model.source_names_), model.result_.combination
    own, L = found.own_losses, found.source_losses
    _check(own.shape == L.shape == found.z.shape == (p,), f"it is not of {p} sources")
    measured = [found.epsilon, found.robust_loss, found.regret]
    again = [own.max(), L.max(), (L - own).max()]
    _check(np.isfinite([*own, *L]).all(), "its losses are not finite")
    _check(np.allclose(measured, again, rtol=1e-9), "its numbers do not agree with each other")
    _check(
        np.allclose(found.z, model.z_, atol=1e-9)
        and found.eta == (model.eta if used is None else used.eta),
        "it is of another z or eta than the model's",
    )
    _check(_judges(found.loss, model), "it is of another loss than the model's, and no measure")
    bounds = found.loss_upper, found.regret_upper
    sure = found.confidence is not None
    grounds = found.loss_ground, found.regret_ground
    claimed = [ground in ("exact", "asymptotic") for ground in grounds]
    _check(
        any(bound is not None for bound in bounds) == sure
        and claimed == [bound is not None for bound in bounds],
        "its bounds and its confidence do not go together",
    )
    _check(found.clip is None or 0 < found.clip < np.inf, "its clip is out of bounds")
    _check(not sure or 0 < (found.confidence or 0) < 1, "its confidence is not between 0 and 1")
    # A bound on clipped losses can be below what was measured of whole ones; but no model can lose
    # less than nothing, or gain more than the own models lose.
    least_of = found.robust_loss, found.regret
    if found.clip is not None:
        least_of = 0.0, -min(found.clip, abs(found.epsilon))
    for bound, least in zip(bounds, least_of, strict=True):
        _check(bound is None or bound >= least - 1e-9, "its bounds are below what was measured")
    # What the theorems rest on was seen in rows that are not here.
    return replace(found, bounds=tuple(replace(bound, checked=False) for bound in found.bounds))


def _check_comparison(found: Comparison, model: Any) -> Comparison:
    names = tuple(str(name) for name in model.source_names_)
    shape = len(found.methods), len(found.mixtures)
    tables = found.loss, found.lower, found.upper
    _check(found.sources == names, "it is of other sources than the model")
    _check(all(table.shape == shape for table in tables), "its tables have wrong shapes")
    _check(len(found.privileged) == len(found.worst_mixture) == shape[0], "it lacks methods")
    _check(found.worst.shape == shape[:1], "it lacks methods")
    _check(found.mixture_weights.shape == (shape[1], len(names)), "it lacks mixtures")
    _check(np.isfinite(found.loss).all(), "its losses are not finite")
    _check(found.mixtures == (*names, "all"), "it is of other mixtures")
    _check(len(set(found.methods)) == shape[0], "it names a method twice")
    _check(_judges(found.measure, model), "it is of another loss than the model's, and no measure")
    worst = found.loss[:, : len(names)].max(axis=1)
    if found.higher_is_better:
        worst = found.loss.min(axis=1)
        _check(((found.loss >= 0) & (found.loss <= 1)).all(), "its areas are not between 0 and 1")
    _check(np.allclose(found.worst, worst, rtol=1e-9), "its worst losses are not among its losses")
    _check(0 < (found.confidence or 0.5) < 1, "its confidence is not between 0 and 1")
    _check(
        (found.lower <= found.loss).all() and (found.loss <= found.upper).all(),
        "its intervals do not hold its losses",
    )
    for weights in found.mixture_weights:
        simplex.check(weights, len(names), "a mixture")
    for verdict in found.verdicts:
        _check(_judges(verdict.measure, model), "a verdict is of another measure than the model's")
        _check_verdict(verdict, found)
    return found


def _judges(measure: str, model: Any) -> bool:
    """Whether a model can be judged by what is called so: its loss, or a measure of its kind."""
    name = canonical_name(measure)
    if name == canonical_name(loss_name(get_loss(model.loss))):
        return True
    try:
        return is_of_labels(name) == hasattr(model, "classes_")
    except ValueError:
        return False


def _check_verdict(told: Verdict, found: Comparison) -> None:
    p = len(found.sources)
    _check(0 < told.confidence < 1, "a verdict has a confidence that is not between 0 and 1")
    counted = told.rows.shape == (p,) and (told.rows > 0).all()
    _check(counted, "a verdict does not count rows of each source")
    _check_ends(told.loss, told.lower, told.upper, p)
    if unit_of(told.measure) == unit_of(found.measure) and "anymix" in found.methods:
        ours = found.loss[found.methods.index("anymix")]
        _check(np.allclose(told.loss, ours, rtol=1e-6), "a verdict is not that of its table")
    names = [rival.name for rival in told.rivals]
    known = set(names) <= {"average", "own", "constant", "chance"} and len(set(names)) == len(names)
    _check(known, "a verdict names ways that are not known")
    for rival in told.rivals:
        _check_ends(rival.difference, rival.lower, rival.upper, p)
        gap = told.loss - rival.loss
        same = gap.shape == rival.difference.shape and np.allclose(gap, rival.difference, atol=1e-9)
        _check(same, "a verdict has differences that are not those of its losses")


def _check_ends(mean: FloatArray, lower: FloatArray, upper: FloatArray, p: int) -> None:
    sound = mean.shape == lower.shape == upper.shape == (p + 1,) and np.isfinite(mean).all()
    _check(sound, "a verdict is not of the sources and all of them")
    # Rounding may put an end of an interval without width on the other side.
    slack = 1e-9 * (1.0 + np.abs(mean))
    inside = (lower <= mean + slack).all() and (mean <= upper + slack).all()
    _check(inside, "a verdict has intervals that do not hold its numbers")


def _check_traffic(found: TrafficReport, model: Any) -> TrafficReport:
    names = tuple(str(name) for name in model.source_names_)
    estimate, alarm = found.estimate, found.alarm
    _check(found.source_names == names, "it is of other sources than the model")
    simplex.check(estimate.mixture, len(names), "the mixture")
    joint = estimate.joint_lower, estimate.joint_upper
    _check((joint[0] is None) == (joint[1] is None), "its joint intervals have one end")
    for bound in (estimate.lower, estimate.upper, *joint):
        inside = bound is None or (
            bound.shape == (len(names),) and ((bound >= 0) & (bound <= 1)).all()
        )
        _check(inside, "its intervals are not shares of the sources")
    shares = alarm.p_value, alarm.level, estimate.confidence
    _check(all(0 <= share <= 1 for share in shares), "it has a share that is not between 0 and 1")
    _check(alarm.rings == (alarm.p_value <= alarm.level), "its alarm is not that of its p-value")
    lost = found.expected_loss
    if lost is not None:
        _check_expected_loss(lost, estimate, alarm, loss_name(get_loss(model.loss)))
        lost = with_sentence(lost)
    # Sentences are made anew, never read.
    return TrafficReport(estimate, alarm, names, describe_traffic(estimate, alarm, names), lost)


def _check_expected_loss(
    found: ExpectedLoss, estimate: MixtureEstimate, alarm: Alarm, loss: str
) -> None:
    L, numbers = found.source_losses, [found.value, found.lowest, found.highest]
    _check(L.shape == estimate.mixture.shape, "its expected loss is of other sources")
    _check(np.isfinite([*L, *numbers, found.lower, found.upper]).all(), "its losses are not finite")
    again = [estimate.mixture @ L, L.min(), L.max()]
    _check(np.allclose(numbers, again, rtol=1e-9), "its expected loss is not that of its mixture")
    _check(
        found.lower <= found.value <= found.upper, "its interval does not hold its expected loss"
    )
    _check(found.loss in ("", loss), "its expected loss is of another loss than the model's")
    said = found.confidence, found.n, found.trusted
    _check(
        said == (estimate.confidence, estimate.n, not alarm.rings),
        "its expected loss is not of its traffic",
    )


CHECKS: dict[str, Any] = {
    "certificate": _check_certificate,
    "comparison": _check_comparison,
    "traffic": _check_traffic,
}


def drop_records(folder: Path) -> None:
    """Remove the records of a model that is about to be replaced."""
    for name in FILES.values():
        (folder / name).unlink(missing_ok=True)
