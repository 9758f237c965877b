"""Certify by rows in parts: each half of a certificate asks them for a few numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from anymix._arrays import FloatArray, IntArray
from anymix.core import (
    Assumptions,
    Bound,
    Certificate,
    Combination,
    CrossFittedCombination,
    Loss,
    Method,
    Moments,
    Points,
    ReferenceLoss,
    certify_rows,
    check_stated,
    clip_of,
    facts_of,
    get_loss,
    paper_bounds,
)
from anymix.engines.judging_verbs import judged_words
from anymix.engines.once import once
from anymix.engines.questions import Arrays, pack_average
from anymix.sources import (
    LearningSettings,
    founded,
    mean_of_bounds,
    measure_of,
    price_of,
    terms_of_fit,
    terms_of_rows,
    told_beside,
)

if TYPE_CHECKING:
    from anymix.engines.tables import PartitionedTables

# Thresholds of a round that counts losses below them; how near two of them end, of their size.
THRESHOLDS, NEAR = 256, 1e-13


class TestimonyInParts:
    """What a statement asks of rows, from questions to parts: see `anymix.core.LossSummary`.

    judged says by what each row is judged: "folds" by the part of the average that never saw it,
    "new" by all of it, "alone" by the one part that there is.
    """

    def __init__(
        self,
        tables: PartitionedTables,
        used: CrossFittedCombination,
        loss: str | Loss,
        judged: str,
        measure: str | Loss | None = None,
    ):
        self.tables, self.used, self.judged = tables, used, judged
        self.words = judged_words(used, loss, judged, measure)
        self.n_folds = tables.n_folds if judged == "folds" else 1
        dealt = {"folds": np.array(self.n_folds), "homes": tables.whole, "spread": ~tables.whole}
        self.arrays: Arrays = pack_average(used) | dealt
        self._quantiles: dict[float, FloatArray] = {}

    def _ask(self, verb: str, **arrays: Any) -> list[Arrays]:
        return self.tables.ask(verb, self.words, self.arrays | arrays)

    @once
    def _summed(self) -> Arrays:
        found = self._ask("evidence")
        how: dict[str, Any] = {"least": np.minimum, "largest": np.maximum}
        how |= {"own_least": np.minimum, "own_largest": np.maximum}
        joined = {n: reduce(how.get(n, np.add), [one[n] for one in found]) for n in found[0]}
        empty = np.flatnonzero(joined["weight"] == 0)
        if empty.size:
            raise ValueError(f"there are no rows of source {empty[0]} to judge by.")
        return joined

    @property
    def n_rows(self) -> float:
        """Of the source that has the fewest."""
        return float((self._summed["weight"] ** 2 / self._summed["squares"]).min())

    @property
    def least(self) -> float:
        """The least loss."""
        return float(self._summed["least"].min())

    @property
    def largest(self) -> float:
        """The largest loss."""
        return float(self._summed["largest"].max())

    @property
    def alike(self) -> bool:
        """Whether the rows of each source are in one place, and count alike."""
        return self.tables.alike

    @property
    def source_losses(self) -> FloatArray:
        """L_k, (p,)."""
        return np.asarray(self._summed["losses"] / self._summed["weight"])

    @property
    def own_losses(self) -> FloatArray:
        """ε_k, (p,)."""
        return np.asarray(self._summed["own"] / self._summed["weight"])

    def own_quantile(self, q: float, without: int | None = None) -> float:
        """The q-quantile of the own models' losses at home, over the rows of all folds but one."""
        if q not in self._quantiles:
            # One search for all folds: a round for one of them is a round for all.
            self._quantiles[q] = self._search(q)
        return float(self._quantiles[q][0 if without is None else without + 1])

    def _search(self, q: float) -> FloatArray:
        """Find the quantiles of all rows and of all folds but one, by counts, to 1e-13."""
        folds = np.arange(-1, self.n_folds if self.n_folds > 1 else 0)
        each = np.repeat(folds, 2)
        low = np.full(each.size, np.nextafter(self._summed["own_least"].min(), -np.inf))
        high = np.full(each.size, self._summed["own_largest"].max())
        place, part = np.zeros(each.size), np.zeros(folds.size)
        for turn in range(40):
            steps = np.linspace(low, high, THRESHOLDS + 1, axis=1)
            found = self._counts(each, steps)
            if not turn:
                where = q * (found["totals"][::2] - 1)
                first = np.floor(where)
                part = where - first
                last = np.minimum(first + 1, found["totals"][::2] - 1)
                place = np.column_stack([first, last]).ravel()
            # The first threshold that more than `place` rows do not exceed.
            at = (found["counts"] <= place[:, None]).sum(axis=1).clip(1, THRESHOLDS)
            rows = np.arange(each.size)
            low, high = steps[rows, at - 1], steps[rows, at]
            if (high - low <= NEAR * np.abs(high)).all():
                break
        a, b = high.reshape(-1, 2).T
        return np.asarray(a + (b - a) * part)

    def _counts(self, without: IntArray, thresholds: FloatArray) -> Arrays:
        found = self._ask("below", without=without, thresholds=thresholds)
        return {name: reduce(np.add, [one[name] for one in found]) for name in ("counts", "totals")}

    def exact_upper(self, c: float, paired: bool, delta: float, method: Method) -> float:
        """The largest of the bounds of all homes."""
        words = self.words | {"method": method}
        given: dict[str, Any] = {"c": c, "paired": paired, "delta": delta}
        found = self.tables.ask("exact_upper", words, self.arrays | given)
        return max(float(one["upper"]) for one in found)

    def normal_upper(self, c: float, paired: bool, delta: float) -> float:
        """The largest over sources of the bound that holds as rows become many."""
        found = self._ask("moments", c=c, paired=paired)
        homes = zip(*(one["moments"].tolist() for one in found), strict=True)
        added = [reduce(Moments.plus, [Moments(*one) for one in home]) for home in homes]
        return max(one.upper(delta) for one in added)

    def theorems(self, given: Assumptions) -> tuple[Bound, ...]:
        """The theorems for each part of the average, averaged; see `mean_bounds` of sources."""
        by_fold = self.tables.by_fold["weights"]
        totals = by_fold if self.judged == "folds" else by_fold.sum(axis=0)[None]
        totals = np.broadcast_to(totals, (len(self.used.parts), totals.shape[1]))
        asked = given.mass_floor is not None
        answers = self._ask("theorems", totals=totals, asked=asked)
        found = []
        for t, part in enumerate(self.used.parts):
            points = reduce(Points.plus, [self._points(one, t, asked) for one in answers])
            found.append(paper_bounds(facts_of(points, part.z, given), given))
        return mean_of_bounds(found)

    def _points(self, answer: Arrays, t: int, asked: bool) -> Points:
        normalised = self.used.rule == "normalised"
        classes = self.tables.classes
        n_classes = None if classes is None else len(classes)
        log_total = price_of(self.used, n_classes) if normalised else None
        told: dict[str, Any] = {
            n: float(answer[n][t]) for n in ("largest", "lowest", "away", "spared")
        }
        if asked:
            told["floor"] = float(answer["floor"][t])
        if asked and normalised:
            told["disagreement"] = float(answer["disagreement"][t])
        return Points(
            losses=answer["losses"][t],
            own=answer["own"][t],
            eta=self.used.eta,
            logarithmic=get_loss(self.words["loss"]).logarithmic,
            log_total=log_total,
            price=log_total or 0.0,
            **told,
        )

    def beside(self, clip: float | None, names: Sequence[str] = ()) -> tuple[ReferenceLoss, ...]:
        """What others lose on the rows of the source where they are worst."""
        given = {"clip": np.inf if clip is None else clip}
        given["constant"] = 0.0 if self.tables.classes is not None else self.tables.mean_target
        found = self.tables.total("beside", self.words, given)
        total = self.tables.by_fold["weights"].sum(axis=0)
        return told_beside(self.tables, found["plain"] / total, found["clipped"] / total, names)


def certify_learned_in_parts(
    tables: PartitionedTables, used: CrossFittedCombination, goal: LearningSettings
) -> Certificate:
    """State what the rows that a combination was learned from guarantee for it."""
    crossed, grounds = tables.n_folds > 1, goal.grounds
    testimony = TestimonyInParts(tables, used, goal.loss, "folds" if crossed else "alone")
    n_classes = None if tables.classes is None else len(tables.classes)
    judge = measure_of(None, goal.loss, n_classes)
    terms = terms_of_fit(judge, grounds, crossed, price_of(used, n_classes))
    found = certify_rows(testimony, terms, z=used.z, eta=used.eta, loss=judge.name)
    found = replace(
        found,
        confidence=None if found.confidence is None else grounds.confidence,
        beside=testimony.beside(found.clip, grounds.names),
    )
    return founded(found, grounds, testimony.theorems(Assumptions()))


def certify_in_parts(
    tables: PartitionedTables,
    combination: Combination | CrossFittedCombination,
    loss: str | Loss,
    *,
    confidence: float | None = 0.95,
    measure: str | Loss | None = None,
    clip: float | None = None,
    assumptions: Assumptions | None = None,
) -> Certificate:
    """State what new rows in parts guarantee for a combination; see `certify_tables` of sources."""
    given, used = assumptions or Assumptions(), CrossFittedCombination.of(combination)
    given.check()
    n_classes = None if tables.classes is None else len(tables.classes)
    judge = measure_of(measure, loss, n_classes)
    testimony = TestimonyInParts(tables, used, loss, "new", measure)
    check_stated(given, testimony.largest)
    price = price_of(used, n_classes) if measure is None else 0.0
    terms = terms_of_rows(judge, confidence, given, clip, price)
    found = certify_rows(
        testimony, terms, z=used.z, eta=used.eta, loss=judge.name, assumptions=given
    )
    bounds = testimony.theorems(given) if measure is None else ()
    return replace(found, bounds=bounds, beside=testimony.beside(found.clip))


def usual_clip_in_parts(
    tables: PartitionedTables,
    used: CrossFittedCombination,
    loss: str | Loss,
    measure: str | Loss | None = None,
) -> float:
    """c for new rows, by rows in parts that taught the model; see `usual_clip` of sources."""
    testimony = TestimonyInParts(tables, used, loss, "new", measure)
    binary = measure_of(
        measure, loss, None if tables.classes is None else len(tables.classes)
    ).binary
    return 1.0 if binary else clip_of(testimony)
