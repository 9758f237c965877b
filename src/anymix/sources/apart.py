"""Rows that teach, and others that judge: where there are very many, none needs to do both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Protocol

import numpy as np

from anymix._arrays import IntArray
from anymix.core import Certificate, CrossFittedCombination, Solution, gap
from anymix.sources.certifying import certify_learned
from anymix.sources.learning import Learned, learn_rows
from anymix.sources.lessons import LearningSettings, Part, Together
from anymix.sources.parts import HeldOut, answers
from anymix.sources.seen import Seen
from anymix.sources.table_rows import TableLesson, TableRows
from anymix.sources.tables import Tables


class Teaching(Protocol):
    """Rows that teach, wherever they are."""

    @property
    def n_points(self) -> int:
        """How many there are."""

    def learned(self, goal: LearningSettings) -> Part:
        """Learn one combination from all of them."""

    def seen(self) -> Seen:
        """Remember which rows they are."""


class JudgedApart(TableRows):
    """Tables of rows that judge what others have taught; see `learn_rows`."""

    def __init__(self, tables: Tables, taught: Part):
        super().__init__(tables)
        self.taught = taught

    @cached_property
    def fold(self) -> IntArray:
        """There is one part, and all rows are new to it."""
        return np.zeros(self.tables.n_points, dtype=np.intp)

    def lessons(self) -> list[TableLesson]:
        """They teach nothing."""
        return []

    @property
    def together(self) -> Together:
        """Return what others have taught, whatever is to be learned."""
        return lambda learn, lessons: [self.taught]

    def certified(
        self, parts: Sequence[Part], used: CrossFittedCombination, goal: LearningSettings
    ) -> Certificate:
        """Certify what was learned without any of these rows."""
        self.held_out = HeldOut(answers(self.tables, used), self.fold)
        return certify_learned(self.tables, used, self.held_out, goal.loss, goal.grounds)


def learn_apart(tables: Tables, teaching: Teaching, goal: LearningSettings) -> Learned:
    """Learn from rows elsewhere, which may be more than memory holds; these tables judge it.

    Examples
    --------
    >>> class AtHand:
    ...     n_points, seen = 4, None
    ...     def learned(self, goal):
    ...         return learn_part(known, goal)
    >>> from anymix.sources.learning import learn_part
    >>> y, domain = np.array([0.0, 0.1, 1.0, 1.1]), np.array([0, 0, 1, 1])
    >>> log_masses = np.array([[0.0, 0.0, -9.0, -9.0], [-9.0, -9.0, 0.0, 0.0]])
    >>> known = Tables(log_masses, np.array([[0.0] * 4, [1.0] * 4]), y, domain)
    >>> learn_apart(known, AtHand(), LearningSettings()).held_out.crossed
    True
    """
    rows = JudgedApart(tables, teaching.learned(goal))
    found = learn_rows(rows, goal)
    assert rows.held_out is not None
    report = found.calibration_report
    if report is not None:
        report = replace(report, n_points=teaching.n_points)
    solution = rejudged(found.solution, found.certificate)
    found = found._replace(solution=solution, calibration_report=report)
    return Learned(*found[:6], rows.held_out, found.advice)


def rejudged(solution: Solution, certificate: Certificate) -> Solution:
    """Tell of a solution what rows that are new to it say."""
    L, own = certificate.source_losses, certificate.own_losses
    return replace(
        solution,
        gamma=gap(L, solution.z),
        robust_loss=float(L.max()),
        regret=float((L - own).max()),
        source_losses=L,
        own_losses=own,
        seen=None,
    )
