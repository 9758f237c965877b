"""The record of a report: one plain dictionary, checked before anything is drawn."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Required, TypedDict

import numpy as np

from anymix.core import CLAIMED, plain, unit_of

OURS = "anymix"
RECORDS = (
    *("certificate", "cross_loss", "comparison", "calibration", "solution", "traffic"),
    *("influence", "consulting", "sets"),
)
ENDS = ("loss", "lower", "upper")
# Control characters, halves of characters, ends of lines, and what turns the direction of the text.
ILLEGIBLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)


class ReportRecord(TypedDict, total=False):
    """The fields of a report; all but `name` and `sources` may be missing or None.

    Most are the `to_dict()` of a record of the library.  With p sources:

    Attributes
    ----------
    name, sources : str, list of str
        Title of the page, and the names in the order of every (p,) and (p, p) below.
    loss, objective, anymix : str
        Name of the loss, the objective, version of the library.
    rows, z : list (p,)
        Held-out rows, and weights, of the sources.
    certificate, solution, traffic : dict
        A `Certificate` and its `sentence`, a `Solution` with its trace, a `TrafficReport`.
    adapted : bool
        Whether z was adapted to today's traffic after it was certified; there is then no
        certificate, and the page says why.
    verdict : list of dict
        A `Verdict` for each measure, the one that the page leads with first.
    cross_loss : dict
        A `CrossLoss`: mean[k][j] of source k's model on domain j, with lower, upper.
    comparison : dict
        A `Comparison`; the method called "anymix" in it is the one that the page is about.
    weights : list (p, p)
        weights[k][j], the mean weight of source k on the rows of domain j.
    calibration : dict
        report: a `CalibrationReport`; before, after: bins with confidence, accuracy and share;
        sharpness: the power that the calibrated weights are raised to.
    influence : dict
        An `Influence`, and its `sentences`: rows[j][k] and sources[j][k], what j does to k's loss.
    consulting : dict
        weights[k][j], how source k takes what the model of source j says, and `sentences`; where
        there is one, generalist[k] is how it takes that.
    sets : dict
        A `Coverage`: the guaranteed and measured coverage of sets or intervals, and their size on
        each source.
    density : str
        The density or classifier that weights the sources, and why, in a sentence.
    learner : str
        Which learner the sources were trained by, and why, in a sentence.
    set_aside : list of str
        Sources whose rows did not choose z.
    stated : bool
        Whether all this is as a model folder states it, and was not recomputed from its tables.
    recorded : dict of str
        Days on which certificate, comparison, verdict or traffic that no table could show anew were
        recorded; the page says so.
    """

    name: Required[str]
    sources: Required[list[str]]
    loss: str | None
    objective: str | None
    anymix: str | None
    rows: list[int] | None
    z: list[float] | None
    certificate: dict[str, Any] | None
    adapted: bool | None
    verdict: list[dict[str, Any]] | None
    cross_loss: dict[str, Any] | None
    comparison: dict[str, Any] | None
    weights: list[list[float]] | None
    calibration: dict[str, Any] | None
    solution: dict[str, Any] | None
    traffic: dict[str, Any] | None
    influence: dict[str, Any] | None
    consulting: dict[str, Any] | None
    sets: dict[str, Any] | None
    density: str | None
    learner: str | None
    set_aside: list[str] | None
    stated: bool | None
    recorded: dict[str, str] | None


def checked(record: ReportRecord | dict[str, Any]) -> dict[str, Any]:
    """Return the record as JSON types; an error says what is invalid."""
    if not isinstance(record, Mapping):
        raise TypeError(
            "a page is made of the record that anymix.estimators.summarise(model) returns; got "
            f"{type(record).__name__}."
        )
    fields = _legible(plain(dict(record))).items()
    content = {name: value for name, value in fields if value is not None}
    for holds, sentence in _rules(content):
        if not holds:
            raise ValueError(sentence)
    for where, shape in _shapes(content):
        # a.b is field b of a; a verdict is one of several.
        field, *inner = where.split(".")
        for value in content.get(field, []) if field == "verdict" else [content.get(field)]:
            if field not in content:
                continue
            for name in inner:
                value = value.get(name) if isinstance(value, dict) else None
            _check_shape(where, value, shape)
    p = len(content["sources"])
    for rival in (rival for verdict in content.get("verdict", []) for rival in verdict["rivals"]):
        for name in ("difference", *ENDS):
            _check_shape(f"verdict.{name}", rival.get(name), (p + 1,))
    return content


def _legible(value: Any) -> Any:
    """Replace characters by which a name could garble the sentences that it stands in."""
    if isinstance(value, str):
        return ILLEGIBLE.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, dict):
        return {name: _legible(item) for name, item in value.items()}
    return [_legible(item) for item in value] if isinstance(value, list) else value


def _is_list(value: Any, kind: type) -> bool:
    return isinstance(value, list) and all(isinstance(item, kind) for item in value)


def _rules(content: dict[str, Any]) -> Iterator[tuple[bool, str]]:
    """Yield what must hold for the fields, in order, and the sentence that refuses them else."""
    unknown = sorted(set(content) - set(ReportRecord.__annotations__))
    yield not unknown, f"the report has no field {(*unknown, '')[0]!r:.60}; see ReportRecord."
    sources, days = content.get("sources"), content.get("recorded", {})
    titled = isinstance(content.get("name"), str)
    yield titled, "a report needs a name, a string: it is the title of the page."
    named = bool(sources) and _is_list(sources, str)
    yield named, "a report needs sources, the list of their names."
    for field in RECORDS:
        is_record = isinstance(content.get(field, {}), dict)
        yield is_record, f"the report's {field} is not a record: give its to_dict()."
    for field in ("adapted", "stated"):
        is_flag = isinstance(content.get(field, False), bool)
        yield is_flag, f"the report's {field} is not True or False."
    alone = not (content.get("adapted") and "certificate" in content)
    yield alone, "the report's z was adapted, so its certificate no longer holds: give None for it."
    has_days = isinstance(days, dict) and _is_list(list(days.values()), str)
    yield has_days, "the report's recorded does not name days."
    comparison = content.get("comparison", {"methods": [], "mixtures": []})
    for field in ("methods", "mixtures"):
        is_list = isinstance(comparison.get(field), list)
        yield is_list, f"the report's comparison.{field} is not a list of names."
    compared = comparison.get("sources", sources)
    of_both = f"of the sources {compared}, its page of {sources}: give both in one order."
    yield compared == sources, f"the report's comparison is {of_both}"
    verdicts = content.get("verdict", [])
    yield _is_list(verdicts, dict), "the report's verdict is not a list of records."
    rivals = all(_is_list(verdict.get("rivals"), dict) for verdict in verdicts)
    yield rivals, "the report's verdict has no list of rivals."


def _shapes(content: dict[str, Any]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield each numeric field and the shape that it must have."""
    p, comparison = len(content["sources"]), content.get("comparison", {})
    table = (len(comparison.get("methods", [])), len(comparison.get("mixtures", [])))
    fields = {
        (p,): "rows z certificate.source_losses certificate.own_losses traffic.estimate.mixture "
        "influence.losses sets.rows sets.coverage sets.size verdict.rows",
        (p, p): "weights cross_loss.mean cross_loss.lower cross_loss.upper influence.rows "
        "influence.sources consulting.weights",
        (p + 1,): "verdict.loss verdict.lower verdict.upper",
    }
    for shape, names in fields.items():
        for name in names.split():
            yield name, shape
    if "generalist" in content.get("consulting", {}):
        yield "consulting.generalist", (p,)
    for end in ENDS:
        yield f"comparison.{end}", table
    yield "comparison.worst", table[:1]
    yield "comparison.mixture_weights", (table[1], p)


def _check_shape(where: str, value: Any, shape: tuple[int, ...]) -> None:
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"the report's {where} is not an array of numbers.") from error
    if array.shape != shape:
        remedy = "give one entry for each source" if len(shape) == 1 else "see ReportRecord"
        raise ValueError(f"the report's {where} has shape {array.shape} and not {shape}: {remedy}.")


def recorded(record: dict[str, Any], part: str) -> str:
    """Mark a part that was not recomputed, because its rows are not in the folder."""
    day = record.get("recorded", {}).get(part)
    if not day:
        return ""
    return f" As recorded in the folder on {day}, of rows that are not in it: {CLAIMED}."


def claimed(record: dict[str, Any], part: str) -> str:
    """Mark a part that was not recomputed, next to its main number."""
    known = not record.get("stated") and part not in record.get("recorded", {})
    return "" if known else f" {CLAIMED.capitalize()}."


def corner_losses(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the methods whose loss on a mixture λ is Σ_k λ_k L_k, each with its L (p,).

    A privileged method may change with λ, so its corners do not determine the rest.
    """
    columns, losses = _corners(record), []
    if columns:
        compared = record["comparison"]
        rows = zip(compared["methods"], compared["privileged"], compared["loss"], strict=True)
        losses = [(name, [row[t] for t in columns]) for name, cheats, row in rows if not cheats]
    else:
        if "certificate" in record:
            losses.append((OURS, record["certificate"]["source_losses"]))
        if "cross_loss" in record:
            losses += list(zip(record["sources"], record["cross_loss"]["mean"], strict=True))
    methods = [{"name": n, "losses": L, "ours": n == OURS} for n, L in losses if None not in L]
    return sorted(methods, key=lambda method: not method["ours"])


def corner_measure(record: dict[str, Any]) -> str | None:
    """Return the measure of `corner_losses`."""
    measured = record["comparison"].get("measure") if _corners(record) else record.get("loss")
    return str(measured) if measured is not None else None


def _corners(record: dict[str, Any]) -> list[int]:
    """Find each domain alone among the mixtures of a comparison; empty if one is missing."""
    comparison, p = record.get("comparison"), len(record["sources"])
    if comparison is None:
        return []
    unit = unit_of(comparison.get("measure"))
    if unit.higher or not unit.mean:
        return []
    weights = np.asarray(comparison["mixture_weights"], dtype=float).reshape(-1, p)
    distance = np.abs(np.eye(p)[:, None, :] - weights[None]).sum(axis=2)
    if not len(weights) or (distance.min(axis=1) > 1e-9).any():
        return []
    return [int(t) for t in distance.argmin(axis=1)]
