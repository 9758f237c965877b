"""Tables at hand, as learning asks them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from anymix._arrays import FloatArray, IntArray
from anymix.core import Certificate, CrossFittedCombination
from anymix.densities import TemperatureScaling, fit_temperatures
from anymix.sources.certifying import certify_learned
from anymix.sources.consulting import Consulted, ConsultingGain, consult
from anymix.sources.lessons import LearningSettings, Part, Together
from anymix.sources.novelty import Novelty
from anymix.sources.parts import HeldOut, advice, crossed_answers, deal
from anymix.sources.tables import Tables


def consulted_for(tables: Tables, goal: LearningSettings) -> Consulted:
    """Let the sources hear each other if the goal says so."""
    if not goal.consult:
        return Consulted(None, tables)
    return consult(tables, goal.loss, goal.set_aside)


class TableLesson(NamedTuple):
    """Tables at hand, as one combination learns from them."""

    tables: Tables

    @property
    def n_sources(self) -> int:
        """p."""
        return len(self.tables.log_masses)

    @property
    def together(self) -> Together:
        """One after the other."""
        return map

    def consulted(self, goal: LearningSettings) -> Consulted:
        """Let the sources hear each other if the goal says so."""
        return consulted_for(self.tables, goal)

    def scalings(self, set_aside: Sequence[int]) -> list[TemperatureScaling]:
        """Fit both kinds of calibration."""
        heard = self.tables.without(set_aside)
        known = heard.log_masses, np.asarray(heard.sample_domain), heard.sample_weight
        return fit_temperatures(*known)


class TableRows:
    """Tables at hand, as `learn_rows` asks them; held_out is known once they have certified."""

    def __init__(self, tables: Tables):
        self.tables = tables
        self.held_out: HeldOut | None = None
        self.check_loss = tables.check_loss
        self.sketched: tuple[str, ...] = ()
        self.n_points, self.n_sources = tables.n_points, len(tables.log_masses)

    @cached_property
    def fold(self) -> IntArray:
        """The part of each row, (m,)."""
        return deal(self.tables)

    def lessons(self) -> list[TableLesson]:
        """All rows but those of each part; all of them where there is one part."""
        fold, tables = self.fold, self.tables
        if not fold.any():
            return [TableLesson(tables)]
        taken = (tables.taken(np.flatnonzero(fold != t)) for t in range(int(fold.max()) + 1))
        return [TableLesson(some) for some in taken]

    @property
    def together(self) -> Together:
        """One after the other."""
        return map

    def certified(
        self, parts: Sequence[Part], used: CrossFittedCombination, goal: LearningSettings
    ) -> Certificate:
        """Certify an average by what each part says at rows that it was learned without."""
        tables = self.tables
        if len(parts) > 1:
            held_out = HeldOut(crossed_answers(tables, used, self.fold), self.fold)
        else:
            # The pools at least were learned without the row.
            alone = replace(used.parts[0], consulting=None)
            said = alone.predict(tables.log_masses, parts[0].said.predictions)
            held_out = HeldOut(said, self.fold, crossed=False)
        self.held_out = held_out
        return certify_learned(tables, used, held_out, goal.loss, goal.grounds)

    def novelty(self) -> Novelty | None:
        """What is usual at home, where there are densities."""
        return Novelty.from_tables(self.tables) if self.tables.has_densities else None

    def cross_losses(self, goal: LearningSettings) -> tuple[FloatArray, FloatArray]:
        """Losses of each source's model on each domain, and their standard errors, (p, p)."""
        return self.tables.judgement(goal.loss, goal.eta).cross_losses()

    def advice(self, used: CrossFittedCombination, goal: LearningSettings) -> ConsultingGain | None:
        """What hearing each other has brought to the sources."""
        return advice(self.tables, used, self.fold, goal.loss)
