"""Rows in parts as one combination learns from them: pools, calibrations, the problem of z."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray
from anymix.core import Calibration, Consulting, Loss, Sums, get_loss
from anymix.densities import KINDS, TemperatureScaling
from anymix.engines.once import once
from anymix.engines.partitioned import Map, SummedProblem
from anymix.engines.questions import Arrays, Words, form_of, pack_calibration, pack_consulting
from anymix.sources import Consulted, LearningSettings, Tables, consulting_of, learn_pools

if TYPE_CHECKING:
    from anymix.engines.tables import PartitionedTables

Flags = NDArray[np.bool_]


class LessonInParts(NamedTuple):
    """All rows but those of one fold, or all of them where that is -1."""

    tables: PartitionedTables
    without: int

    @property
    def n_sources(self) -> int:
        """p."""
        return self.tables.n_sources

    @property
    def fold(self) -> Arrays:
        """Which rows a question is about."""
        return self.tables.dealt | {"without": np.array(self.without)}

    @property
    def together(self) -> Map:
        """Like map, for what can be asked at the same time."""
        return self.tables.together

    def taught(self, name: str) -> FloatArray:
        """Rows with weight, or weights, of each source in this lesson, (p,)."""
        by_fold = self.tables.by_fold[name]
        left_out = by_fold[self.without] if self.without >= 0 else 0.0
        return np.asarray(by_fold.sum(axis=0) - left_out)

    def scalings(self, set_aside: Sequence[int]) -> list[TemperatureScaling]:
        """Fit own temperatures, and one that all share, by sums over parts."""
        return [
            TemperatureScaling(kind).fit_sums(sums)
            for sums in [DomainSumsInParts(self, set_aside)]
            for kind in KINDS
        ]

    def consulted(self, goal: LearningSettings) -> Consulted:
        """Let each source learn from the others at home, or by a sample of its rows."""
        consulting = self._consulting(goal) if goal.consult else None
        return Consulted(consulting, cast(Any, SaidInParts(self, consulting)))

    def _consulting(self, goal: LearningSettings) -> Consulting | None:
        homes = self.tables.whole.copy()
        homes[list(goal.set_aside)] = False
        found = self.tables.total("pools", {"loss": goal.loss}, {"homes": homes} | self.fold)
        spread = ~self.tables.whole
        spread[list(goal.set_aside)] = False
        p = self.n_sources
        learned = found["learned"] > 0
        weights = np.where(learned[:, None], found["ears"], np.eye(p))
        consulting = Consulting(weights, found["ear_offset"], found["reach"], form_of(goal.loss))
        if spread.any():
            learned |= self._learn_from_sample(consulting, spread, goal.loss)
        return consulting if learned.any() else None

    def _learn_from_sample(self, consulting: Consulting, spread: Flags, loss: str | Loss) -> Flags:
        """Learn pools of sources whose rows are spread from some of them; say which learned."""
        few = self._sample(spread)
        pools = learn_pools(few, get_loss(loss))
        found = consulting_of(few, pools, get_loss(loss))
        for k in pools:
            consulting.weights[k], consulting.offset[k] = found.weights[k], found.offset[k]
            consulting.reach[k] = found.reach[k]
        return np.isin(np.arange(self.n_sources), list(pools))

    def _sample(self, spread: Flags) -> Tables:
        tables, most = self.tables, self.tables.most_rows
        shares = np.where(spread, np.minimum(1.0, most / self.taught("weighed")), 0.0)
        given = {"shares": shares, "seed": np.array(max(self.without, 0))}
        found = tables.ask("sample", {}, given | self.fold)
        if (shares[spread] < 1).any():
            tables.sketch(
                f"Pools of sources whose rows are spread over parts learned from {most} rows each."
            )
        joined = {name: np.concatenate([one[name] for one in found]) for name in found[0]}
        said = np.ascontiguousarray(np.moveaxis(joined["predictions"], 0, 1))
        y = joined["targets"]
        return Tables(
            np.zeros(said.shape[:2]),
            said,
            y.astype(np.intp) if tables.classes is not None else y,
            joined["domain"].astype(np.intp),
            joined["weight"],
            tables.classes,
            at_label=tables.at_label,
        )


class DomainSumsInParts:
    """What a calibration asks of points, from sums over parts; an answer is asked for once."""

    def __init__(self, lesson: LessonInParts, set_aside: Sequence[int]):
        p = lesson.n_sources
        kept = np.setdiff1d(np.arange(p), list(set_aside))
        self.lesson, self.n_sources = lesson, kept.size
        self.counts, self.totals = lesson.taught("weighed")[kept], lesson.taught("weights")[kept]
        self.n_points = int(self.counts.sum())
        self.aside = ~np.isin(np.arange(p), kept)
        self._known: dict[bytes, tuple[float, FloatArray, FloatArray]] = {}

    @once
    def floor(self) -> float:
        """The lowest log-responsibility of all parts."""
        found = self.lesson.tables.ask("floor", {}, {"aside": self.aside} | self.lesson.fold)
        return min(float(one["floor"]) for one in found)

    def _given(self) -> Arrays:
        known = {"counts": self.counts, "totals": self.totals, "floor": np.array(self.floor)}
        doubt = np.array(TemperatureScaling().doubt)
        return {"aside": self.aside, "doubt": doubt} | known | self.lesson.fold

    def likelihood(self, theta: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Value, gradient and Hessian at theta."""
        key = theta.tobytes()
        if key not in self._known:
            found = self.lesson.tables.total("calibrate", {}, self._given() | {"theta": theta})
            answer = float(found["value"]), found["gradient"], found["hessian"]
            self._known[key] = answer
        return self._known[key]

    def tally(self, temperature: FloatArray, offset: FloatArray) -> FloatArray:
        """What a report is made of."""
        given = self._given() | {"temperature": temperature, "offset": offset}
        found: FloatArray = self.lesson.tables.total("tally", {}, given)["tally"]
        return found


class SaidInParts(NamedTuple):
    """The rows of a lesson after the sources heard each other, weighed by a calibration."""

    lesson: LessonInParts
    consulting: Consulting | None
    calibration: Calibration | None = None

    def weighed(self, calibration: Calibration | None) -> SaidInParts:
        """Weigh by calibrated responsibilities."""
        return self._replace(calibration=calibration)

    def problem(self, loss: str | Loss, eta: float, rule: str = "marginal") -> TablesProblem:
        """The problem of z."""
        given = {"eta": np.array(eta), "totals": self.lesson.taught("weights")}
        given |= pack_calibration(self.calibration) | pack_consulting(self.consulting)
        given |= {"homes": self.lesson.tables.whole} | self.lesson.fold
        return TablesProblem(self.lesson.tables, {"loss": loss, "rule": rule}, given)


class TablesProblem(SummedProblem):
    """The problem of z on rows in parts, by questions with names."""

    def __init__(self, tables: PartitionedTables, words: Words, arrays: Arrays):
        self.tables, self.words, self.arrays = tables, words, arrays

    def answers(self, question: str, *given: Any) -> Iterator[Any]:
        """Ask every part; see `SummedProblem`."""
        if question == "loss":
            return iter([get_loss(self.words["loss"])])
        if question == "counted":
            found = self.tables.ask("baseline", self.words, self.arrays)
            return iter([(int(one["n_points"]), one["own_losses"]) for one in found])
        if question == "paired_moments":
            found = self.tables.ask("paired", self.words, self.arrays | {"z": given[0]})
            return iter([one["moments"] for one in found])
        Z, multipliers = given
        asked = {"Z": Z} if multipliers is None else {"Z": Z, "multipliers": multipliers}
        found = self.tables.ask("evaluate", self.words, self.arrays | asked)
        return iter([Sums(one["losses"], one["jacobians"], one.get("hessians")) for one in found])

    def viewed(self, step: str, *given: Any) -> Self:
        """Return the same rows seen through one step more."""
        seen = dict(self.arrays)
        if step == "smoothed":
            seen["width"] = np.array(given[0])
        else:
            share, seed = given
            seen["share"] = share * self.arrays.get("share", np.array(1.0))
            seen["seed"] = np.array(seed)
        return type(self)(self.tables, self.words, seen)
