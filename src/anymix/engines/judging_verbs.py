"""What each verb does at a part when it judges; `TablePart` lists them all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from anymix._arrays import FloatArray, IntArray
from anymix.core import CrossFittedCombination, Evidence, Moments, Points, SourceSample
from anymix.engines.questions import Arrays, Words, read_average
from anymix.engines.table_part import TablePart, key_of, weights_of
from anymix.sources import (
    Measure,
    Tables,
    answers,
    brought,
    by_home,
    crossed_answers,
    measure_of,
    own_values,
    targets_of,
    ways_beside,
)

# What no rows add to what the theorems start from.
NOTHING: dict[str, Any] = {
    "largest": -np.inf,
    "lowest": np.inf,
    "away": 0.0,
    "spared": 0.0,
    "floor": np.inf,
    "disagreement": -np.inf,
}
# What may differ between two questions about the same rows and the same average.
ASKED = ("c", "paired", "delta", "without", "thresholds", "totals", "asked", "constant", "clip")


class Judged(NamedTuple):
    """The rows with weight: losses of what is judged, of the own model, weights, source, fold."""

    losses: FloatArray
    own: FloatArray
    weights: FloatArray
    domain: IntArray
    fold: IntArray

    def homes(self, p: int) -> Iterator[tuple[int, SourceSample]]:
        """Yield the sources that have rows here, each with its home."""
        for k in range(p):
            rows = np.flatnonzero(self.domain == k)
            if rows.size:
                w = self.weights[rows]
                yield k, SourceSample(self.losses[rows], self.own[rows], w, self.fold[rows])


def _judge(tables: Tables, words: Words) -> Measure:
    n_classes = None if tables.classes is None else len(tables.classes)
    return measure_of(words.get("measure"), words["loss"], n_classes)


def _answers(part: TablePart, words: Words, arrays: Arrays) -> FloatArray:
    """What is judged: each row by the fold that never saw it, by pools alone, or by all of it."""
    used, tables, how = read_average(words, arrays), part.tables, words["judged"]
    if how == "folds":
        return crossed_answers(tables, used, part.fold(arrays))
    if how == "new":
        return answers(tables, used)
    alone = {"without": np.array(-1), "homes": arrays["homes"], "folds": np.array(1)}
    ears = {n.removesuffix(".0"): a for n, a in arrays.items() if n.endswith(".0")}
    said = part.said(words, ears | alone)
    return replace(used.parts[0], consulting=None).predict(tables.log_masses, said.predictions)


def _judged(part: TablePart, words: Words, arrays: Arrays) -> Judged:
    def made() -> Judged:
        tables = part.tables
        judge, weight = _judge(tables, words), weights_of(tables)
        losses = judge.value(_answers(part, words, arrays), targets_of(tables))
        fold = part.fold(arrays)
        there, domain = np.flatnonzero(weight > 0), np.asarray(tables.sample_domain)
        own = own_values(tables, judge)[there]
        return Judged(losses[there], own, weight[there], domain[there], fold[there])

    told = {name: word for name, word in words.items() if name != "method"}
    found: Judged = part.keep(("judged", key_of(told, arrays, ASKED)), made)
    return found


def evidence(part: TablePart, words: Words, arrays: Arrays) -> dict[str, Any]:
    """Weights, losses and extremes of each source: sums, but for the extremes."""
    judged, p = _judged(part, words, arrays), len(part.tables.log_masses)
    found = {name: np.zeros(p) for name in ("weight", "squares", "losses", "own")}
    ends = {"least": np.full(p, np.inf), "largest": np.full(p, -np.inf)}
    ends |= {"own_least": np.full(p, np.inf), "own_largest": np.full(p, -np.inf)}
    for k, home in judged.homes(p):
        w = home.weights
        sums = w.sum(), w @ w, w @ home.losses, w @ home.own
        for name, value in zip(found, sums, strict=True):
            found[name][k] = value
        both = np.concatenate([home.losses, home.own])
        extremes = both.min(), both.max(), home.own.min(), home.own.max()
        for name, value in zip(ends, extremes, strict=True):
            ends[name][k] = value
    return found | ends


def below(part: TablePart, words: Words, arrays: Arrays) -> dict[str, Any]:
    """How many own losses of all folds but one are at most each threshold, and how many there are.

    without (F,) is the fold that is left out, -1 for none; thresholds are (F, g).
    """
    judged = _judged(part, words, arrays)
    counts, totals = np.zeros(arrays["thresholds"].shape), np.zeros(arrays["without"].size)
    for f, (t, at) in enumerate(zip(arrays["without"], arrays["thresholds"], strict=True)):
        own = np.sort(judged.own[judged.fold != t])
        counts[f], totals[f] = np.searchsorted(own, at, side="right"), own.size
    return {"counts": counts, "totals": totals}


def exact_upper(part: TablePart, words: Words, arrays: Arrays) -> dict[str, Any]:
    """The largest over the sources here of the mean over folds of bounds."""
    judged, p = _judged(part, words, arrays), len(part.tables.log_masses)
    homes = tuple(home for _, home in judged.homes(p))
    if not homes:
        return {"upper": -np.inf}
    given = float(arrays["c"]), bool(arrays["paired"]), float(arrays["delta"]), words["method"]
    return {"upper": Evidence(homes, int(arrays["folds"])).exact_upper(*given)}


def moments(part: TablePart, words: Words, arrays: Arrays) -> dict[str, Any]:
    """Moments of clipped losses, or of their differences, at each home: (p, 7)."""
    p = len(part.tables.log_masses)
    found = np.zeros((p, len(Moments._fields)))
    for k, home in _judged(part, words, arrays).homes(p):
        found[k] = home.moments(float(arrays["c"]), bool(arrays["paired"]))
    return {"moments": found}


def theorems(part: TablePart, words: Words, arrays: Arrays) -> dict[str, Any]:
    """What the theorems start from, for each part of the average: see `Points`."""
    used, tables, p = read_average(words, arrays), part.tables, len(part.tables.log_masses)
    fold = part.fold(arrays) if words["judged"] != "new" else None
    told = [{"losses": np.zeros(p), "own": np.zeros(p)} | NOTHING for _ in used.parts]
    for t, one in enumerate(used.parts):
        some = tables if fold is None else tables.taken(np.flatnonzero(fold == t))
        if not some.n_points:
            continue
        heard = some.heard(one.consulting).weighed(one.calibration)
        totals = arrays["totals"][t]
        judged = heard.judgement(words["loss"], one.eta, one.rule, totals=totals)
        points = Points.of(judged, one.z, asked=bool(arrays["asked"]))
        known = {name: getattr(points, name) for name in told[t]}
        told[t] |= {name: value for name, value in known.items() if value is not None}
    return {name: np.array([one[name] for one in told]) for name in told[0]}


def beside(part: TablePart, words: Words, arrays: Arrays) -> dict[str, Any]:
    """Σ w ℓ by source of what others say, as it is and clipped: (ways, p) each."""
    tables, cap = part.tables, float(arrays["clip"])
    losses = np.array(ways_beside(tables, _judge(tables, words), float(arrays["constant"])))
    weight = weights_of(tables)
    members = (np.arange(len(tables.log_masses))[:, None] == tables.sample_domain) * weight
    return {"plain": losses @ members.T, "clipped": np.minimum(losses, cap) @ members.T}


def cross(part: TablePart, words: Words, arrays: Arrays) -> dict[str, Any]:
    """Moments of the loss of each model k on the rows of each source j: (p, p, 7)."""
    losses = part.tables.point_losses(words["loss"])
    return {"moments": np.array([by_home(one, part.tables) for one in losses])}


def advice(part: TablePart, words: Words, arrays: Arrays) -> dict[str, Any]:
    """Moments of the own models' losses at home, and of what hearing others has brought there."""
    used, tables = read_average(words, arrays), part.tables
    fold = part.fold(arrays)
    found = brought(tables, used, fold, words["loss"])
    own, gains = (np.array(by_home(values, tables)) for values in found)
    return {"own": own, "gains": gains}


def novelty(part: TablePart, words: Words, arrays: Arrays) -> dict[str, Any]:
    """Quantiles of each source's log-densities at home, evenly from the least to the largest."""
    tables, q = part.tables, int(arrays["quantiles"])
    p = len(tables.log_masses)
    found, rows = np.zeros((p, q)), np.zeros(p)
    for k, row in enumerate(tables.log_masses):
        own = np.sort(row[np.asarray(tables.sample_domain) == k])
        rows[k] = own.size
        if own.size:
            # Of those at hand, so that -inf is not averaged with a number.
            found[k] = own[np.linspace(0, own.size - 1, q).round().astype(np.intp)]
    return {"quantiles": found, "rows": rows}


JUDGING: tuple[Callable[[TablePart, Words, Arrays], dict[str, Any]], ...] = (
    evidence,
    below,
    exact_upper,
    moments,
    theorems,
    beside,
    cross,
    advice,
    novelty,
)


def judged_words(
    used: CrossFittedCombination, loss: Any, judged: str, measure: Any = None
) -> Words:
    """The words of a question about an average."""
    found = {"rule": used.rule, "loss": loss, "judged": judged}
    return found if measure is None else found | {"measure": measure}
