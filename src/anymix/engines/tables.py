"""Rows in parts, with what the sources say of them: learn and certify by questions to the parts.

Every question goes to all parts at once, and answers are small; `TablePart` lists the verbs.  Where
each source's rows lie in one part (a site, say) all numbers are those of `anymix.sources.learn` on
the rows of all.  Where the rows of a source are spread over parts (chunks of a file) sums are still
sums, and three things differ:

    folds       rows are dealt out within each part, where copies of a row are not known from others
    pools       are learned from a sample of `most_rows` rows of the source, not from all of them
    bounds      are asymptotic: a bet on rows one after the other needs them in one place
"""

from __future__ import annotations

from builtins import map as builtin_map
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from operator import add
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray, IntArray
from anymix.core import Certificate, CrossFittedCombination, Loss, Moments
from anymix.engines.certifying import certify_learned_in_parts
from anymix.engines.lessons import LessonInParts
from anymix.engines.once import once
from anymix.engines.partitioned import Map
from anymix.engines.questions import Arrays, Question, Words, pack_average
from anymix.engines.table_part import TablePart
from anymix.sources import (
    FEWEST_ROWS,
    N_PARTS,
    ConsultingGain,
    LearningSettings,
    Novelty,
    Part,
    Tables,
    Taught,
    advice_of,
    learn_rows,
)

# Of each source, for pools where its rows are spread over parts.
MOST_ROWS = 20_000
# Of the log-densities at home, for novelty.
QUANTILES = 201


class PartitionedTables:
    """Labelled rows in parts, wherever they are.

    Parameters
    ----------
    parts : iterable of Tables, TablePart, or what stands for a TablePart
        Each has targets and the source of each row; all have the same sources and classes.
    map : callable
        map(question, parts) gives the answers in the order of the parts; see `PartitionedProblem`.
        A question can be pickled, and has a verb, words and arrays, should the map send these.
    together : callable
        Like map, for what can be learned at the same time: one combination for each fold, and z for
        each calibration of it.  Python's own learns one after the other; with `in_threads` their
        questions can share rounds.  It is called from within itself: a pool of so many threads
        would wait for ever.
    most_rows : int
        Rows of a source that its pool is learned from where they are spread over parts.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y, said = rng.normal(size=60), rng.normal(size=(2, 60))
    >>> parts = [
    ...     Tables(rng.normal(size=(2, 30)), said[:, :30]).labelled(y[:30], 0),
    ...     Tables(rng.normal(size=(2, 30)), said[:, 30:]).labelled(y[30:], 1),
    ... ]
    >>> found = learn_in_parts(PartitionedTables(parts), LearningSettings())
    >>> len(found.combination.parts), found.certificate.n_rows
    (5, 30.0)
    """

    def __init__(
        self,
        parts: Iterable[Any],
        map: Map = builtin_map,
        together: Map = builtin_map,
        most_rows: int = MOST_ROWS,
    ):
        self.parts = [TablePart(part) if isinstance(part, Tables) else part for part in parts]
        self.map, self.together, self.most_rows = map, together, most_rows
        self._sketched: dict[str, None] = {}
        if not self.parts:
            raise ValueError("rows in parts need one part at least; got none.")

    def ask(self, verb: str, words: Words, arrays: Mapping[str, Any]) -> list[Arrays]:
        """Ask every part, and return the answers in the order of the parts."""
        given = {name: np.asarray(array) for name, array in arrays.items()}
        return list(self.map(Question(verb, words, given), self.parts))

    def total(self, verb: str, words: Words, arrays: Mapping[str, Any]) -> Arrays:
        """Ask every part, and add the answers up, name by name."""
        found = self.ask(verb, words, arrays)
        return {name: reduce(add, (one[name] for one in found)) for name in found[0]}

    @once
    def _counted(self) -> list[Arrays]:
        found = self.ask("count", {}, {"folds": 1})
        for name in ("classes", "at_label", "has_densities"):
            if len({float(one[name]) for one in found}) > 1:
                raise ValueError(f"parts must agree in {name.replace('_', ' ')}; these do not.")
        if len({one["rows"].shape for one in found}) > 1:
            raise ValueError("parts must have the same sources; these have more or fewer.")
        return found

    @once
    def rows(self) -> IntArray:
        """The rows of each source in each part, (parts, p)."""
        return np.array([one["rows"][0] for one in self._counted], dtype=np.intp)

    @property
    def n_sources(self) -> int:
        """p."""
        return int(self.rows.shape[1])

    @property
    def n_points(self) -> int:
        """m."""
        return int(self.rows.sum())

    @property
    def classes(self) -> NDArray[Any] | None:
        """Positions of the classes, or None for numbers."""
        c = int(self._counted[0]["classes"])
        return np.arange(c) if c else None

    @property
    def at_label(self) -> bool:
        """Whether errors alone are told."""
        return bool(self._counted[0]["at_label"])

    @property
    def mean_target(self) -> float:
        """The mean of all targets, where they are numbers."""
        return float(sum(one["target_sum"] for one in self._counted)) / self.n_points

    @property
    def whole(self) -> NDArray[np.bool_]:
        """Which sources have all their rows in one part, (p,)."""
        return np.asarray((self.rows > 0).sum(axis=0) == 1)

    @property
    def alike(self) -> bool:
        """Whether the rows of each source lie in one part, and have equal weights there."""
        light = np.min([one["lightest"] for one in self._counted], axis=0)
        heavy = np.max([one["heaviest"] for one in self._counted], axis=0)
        return bool(self.whole.all() and (heavy - light <= 1e-9 * heavy).all())

    @once
    def n_folds(self) -> int:
        """How many folds the rows are dealt out to: one where a source has too few."""
        return N_PARTS if self.rows.sum(axis=0).min() >= FEWEST_ROWS else 1

    @property
    def dealt(self) -> Arrays:
        """How rows are dealt out: the number of folds, and the sources that are in many parts."""
        return {"folds": np.array(self.n_folds), "spread": ~self.whole}

    @once
    def by_fold(self) -> Arrays:
        """Rows with weight and weights of each source in each fold, (K, p)."""
        found = self.total("count", {}, self.dealt)
        return {name: found[name] for name in ("weighed", "weights")}

    def sketch(self, sentence: str) -> None:
        """Note that something was learned from a sample or a sketch."""
        self._sketched[sentence] = None

    @property
    def sketched(self) -> tuple[str, ...]:
        """What was learned from a sample or a sketch of the rows, in sentences."""
        return tuple(self._sketched)

    def check_loss(self, loss: str | Loss, rule: str = "marginal") -> None:
        """Refuse a loss that the rows of a part cannot be judged by."""
        self.ask("check", {"loss": loss, "rule": rule}, {})

    def lessons(self) -> list[LessonInParts]:
        """All rows but those of each fold; all of them where there is one."""
        # Counted before lessons are learned together, lest each of them ask.
        K = len(self.by_fold["weights"])
        return [LessonInParts(self, t if K > 1 else -1) for t in range(K)]

    def certified(
        self, parts: Sequence[Part], used: CrossFittedCombination, goal: LearningSettings
    ) -> Certificate:
        """Certify an average by what each part of it says at rows that it was learned without."""
        return certify_learned_in_parts(self, used, goal)

    def novelty(self) -> Novelty | None:
        """Quantiles of what is usual at home, where there are densities."""
        if not self._counted[0]["has_densities"]:
            return None
        found = self.ask("novelty", {}, {"quantiles": QUANTILES})
        self.sketch(f"Novelty knows {QUANTILES} quantiles of each source's log-densities at home.")
        return Novelty(tuple(_joined(found, k) for k in range(self.n_sources)))

    def cross_losses(self, goal: LearningSettings) -> tuple[FloatArray, FloatArray]:
        """Losses of each source's model on each domain, and their standard errors, (p, p)."""
        p = self.n_sources
        each = [_moments(one["moments"]) for one in self.ask("cross", {"loss": goal.loss}, {})]
        added = [reduce(Moments.plus, same) for same in zip(*each, strict=True)]
        told = np.array([(one.mean, one.standard_error) for one in added]).reshape(p, p, 2)
        return told[..., 0], told[..., 1]

    def advice(self, used: CrossFittedCombination, goal: LearningSettings) -> ConsultingGain | None:
        """What hearing each other has brought to the sources."""
        if not used.consults:
            return None
        words = {"rule": used.rule, "loss": goal.loss}
        found = self.ask("advice", words, self.dealt | pack_average(used))
        own, gains = (
            [
                reduce(Moments.plus, same)
                for same in zip(*(_moments(one[name]) for one in found), strict=True)
            ]
            for name in ("own", "gains")
        )
        return advice_of(own, gains)


def _moments(array: FloatArray) -> list[Moments]:
    return [Moments(*row) for row in array.reshape(-1, len(Moments._fields)).tolist()]


def _joined(found: Sequence[Arrays], k: int) -> FloatArray:
    """Join the quantiles of a source over the parts, each as often as its rows ask for."""
    most = max(float(one["rows"][k]) for one in found)
    kept = []
    for one in found:
        n = round(QUANTILES * float(one["rows"][k]) / most)
        kept.append(one["quantiles"][k][np.linspace(0, QUANTILES - 1, n).round().astype(np.intp)])
    return np.sort(np.concatenate(kept))


def in_threads(function: Callable[[Any], Any], given: Iterable[Any], /) -> list[Any]:
    """Apply a function to each in a thread of its own, and return the answers in order.

    >>> in_threads(lambda x: 2 * x, [1, 2, 3])
    [2, 4, 6]
    """
    things = list(given)
    if not things:
        return []
    with ThreadPoolExecutor(len(things)) as pool:
        return list(pool.map(function, things))


def learn_in_parts(tables: PartitionedTables, goal: LearningSettings) -> Taught:
    """Learn a combination from rows in parts, and certify it by them; see `anymix.sources.learn`.

    `sketched` of the answer says what was learned from a sample or a sketch of the rows.
    """
    return learn_rows(cast(Any, tables), goal)
