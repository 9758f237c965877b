"""Very many rows: some judge, all others teach, and no more than a few are in memory."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray
from anymix.engines.chunks import Map, problem_in_chunks
from anymix.engines.store import Store
from anymix.engines.stored import StoredTables
from anymix.exceptions import InputError
from anymix.sources import FoldResult, LearningSettings, Seeing, Seen, Tables, find_z, learn_fold
from anymix.storage import mixed

# A fifth of the rows judges, as where they are dealt out to five parts, or as many as may.
MOST_JUDGING = 0.2
# Of the sample that chooses a calibration and pools; it is tried in six ways at once.
MOST_ANSWERS = 2 * 10**6
# That a source has at least, where it has so many; and that it must have on either side.
FEWEST_DRAWN, FEWEST = 1000, 15


class Deal(NamedTuple):
    """Which rows judge, which teach, and which of these choose a calibration and pools as well.

    Shares (p,) of the rows of each source.  A row is drawn by its source and number, so that
    neither the size of chunks nor their order decides.
    """

    judging: FloatArray
    choosing: FloatArray

    @classmethod
    def of(cls, counts: Sequence[int], most: int) -> Deal:
        """Share out rows, so many of each source; `most` may judge, about.

        >>> Deal.of([1000, 3000], 400).judging
        array([0.2, 0.2])
        """
        n = np.asarray(counts, dtype=float)
        if n.min() < FEWEST / MOST_JUDGING:
            raise InputError(
                f"{int(n.min())} rows of a source",
                "are too few to be dealt out to those that judge and those that teach; hold them "
                "in memory with --engine memory",
            )
        judging, choosing = (
            np.maximum(some / n.sum(), FEWEST_DRAWN / n) for some in (most, MOST_ANSWERS / n.size)
        )
        judging = np.minimum(judging, MOST_JUDGING)
        return cls(judging, np.minimum(choosing, 1.0 - judging))

    def drawn(self, k: int, first: int, n: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Say which of n rows of source k judge, and which choose; the first has number `first`."""
        numbers = np.stack([np.full(n, k), first + np.arange(n)], axis=1).astype(np.uint64)
        share = mixed(numbers) / 2.0**64
        judges = share < self.judging[k]
        return judges, ~judges & (share < self.judging[k] + self.choosing[k])


class TeachingInChunks:
    """Rows on disk that teach z; some of them, in memory, choose how it is used.

    z is found by all rows: sums over points.  How sources hear each other and how densities are
    calibrated is chosen by the sample, where no sum will do, or one would change nothing.
    """

    def __init__(self, store: Store, map: Map = builtins.map):
        self.store = store
        self.map = map
        self.parts: list[StoredTables] = []
        self.sample: list[Tables] = []
        self.seeing = Seeing()

    @property
    def n_points(self) -> int:
        """How many rows teach."""
        return sum(part.n_points for part in self.parts)

    def add(self, tables: Tables, choosing: NDArray[np.bool_]) -> None:
        """Keep rows that teach, and those among them that choose in memory."""
        if tables.n_points:
            self.parts.append(StoredTables.keep(tables, self.store))
            self.seeing.add(tables)
        if choosing.any():
            self.sample.append(tables.taken(np.flatnonzero(choosing)))

    def seen(self) -> Seen:
        """Remember which rows have taught."""
        return self.seeing.seen()

    def learned(self, goal: LearningSettings) -> FoldResult:
        """Choose calibration and pools by the sample, and find z by all rows."""
        chosen = learn_fold(Tables.concatenate(self.sample), goal)
        used = chosen.combination
        said = (
            part.tables().heard(used.consulting).weighed(used.calibration) for part in self.parts
        )
        given = goal.loss, goal.eta, goal.rule
        problem: Any = problem_in_chunks(said, self.store, *given, map=self.map)
        found = find_z(problem, goal)
        return FoldResult(replace(used, z=found.z), found, chosen.report)
