"""Very many rows on a cluster: some come home to judge, all others stay there and teach."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from anymix._arrays import IntArray
from anymix.engines.teaching import Deal
from anymix.sources import (
    Block,
    Blocks,
    FoldResult,
    LearningSettings,
    Seeing,
    Seen,
    Tables,
    TrainingFold,
    learn_fold,
)


class TeachingInParts:
    """Rows in parts that teach; `n_points` of them, and `seen` tells which they were."""

    def __init__(self, tables: Blocks):
        self.tables = tables
        self.n_points = tables.n_points

    def learned(self, goal: LearningSettings) -> FoldResult:
        """Learn one combination from all of them, by questions to the parts."""
        return learn_fold(TrainingFold(self.tables), goal)

    def seen(self) -> Seen:
        """Remember which rows have taught: of each part those that the whole would remember."""
        first, *others = self.tables.blocks
        (seeing,) = self.tables.map(partial(_seeing, salt=""), [first])
        for one in self.tables.map(partial(_seeing, salt=seeing.known.salt), others):
            seeing.known.join(one.known)
        return seeing.seen()


def dealt_out(tables: Blocks, most: int, keep: Any) -> tuple[Tables, TeachingInParts]:
    """Bring about `most` rows home to judge; `keep` is a map whose answers stay on the workers."""
    deal = Deal.of(tables.rows.sum(axis=0).tolist(), most)
    before = np.cumsum(tables.rows, axis=0) - tables.rows
    bring: Any = tables.map
    judges = bring(partial(_taken, deal=deal, judge=True), tables.blocks, before)
    others = keep(partial(_taught, deal=deal), tables.blocks, before)
    return Tables.concatenate(list(judges)), TeachingInParts(Blocks(others, tables.map))


def _taken(part: Block, before: IntArray, deal: Deal, judge: bool) -> Tables:
    """Return the rows of a part that judge, or the others; so many of each source came before."""
    tables, judges = part.tables, np.zeros(part.tables.n_points, dtype=bool)
    domain = np.asarray(tables.sample_domain)
    for k, first in enumerate(before.tolist()):
        own = np.flatnonzero(domain == k)
        judges[own] = deal.drawn(k, first, own.size)[0]
    return tables.taken(np.flatnonzero(judges == judge))


def _taught(part: Block, before: IntArray, deal: Deal) -> Block:
    return Block(_taken(part, before, deal, judge=False))


def _seeing(part: Block, salt: str) -> Seeing:
    found = Seeing()
    found.known.salt = salt
    found.add(part.tables)
    return found
