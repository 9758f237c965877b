"""Learn from tables alone: calibrate, find z, certify; no model and no row is asked again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from anymix._arrays import FloatArray
from anymix.core import (
    Calibration,
    Certificate,
    Combination,
    CrossFittedCombination,
    Objective,
    Problem,
    SetAside,
    Solution,
    automatic_shrinkage,
    check_n_sources,
    simplex,
    solve,
)
from anymix.densities import CalibrationReport
from anymix.sources.consulting import ConsultingGain
from anymix.sources.lessons import LearningSettings as LearningSettings
from anymix.sources.lessons import Lesson, Part, Rows
from anymix.sources.novelty import Novelty
from anymix.sources.parts import HeldOut, joined, mean_report
from anymix.sources.table_rows import TableLesson, TableRows
from anymix.sources.table_rows import consulted_for as consulted_for
from anymix.sources.tables import Tables

# Powers of calibrated responsibilities that are tried.  The temperature that tells domains apart
# best is often too high for predictions: a strange model costs more than a wrong domain does.
SHARPNESS = (1.0, 2.0, 4.0)
# Calibrations that z is sought for: on 24 problems the loss was that of all six, within .6 %.
FINALISTS = 2
# Far below what rows can tell, and half the steps of the solver's own.
TOL = 1e-7


class Learned(NamedTuple):
    """What tables have taught: how to combine, what that guarantees, and how it was found.

    cross_losses are those of each source's model on each domain, and their standard errors;
    held_out is what is said at the rows of the tables by what was learned without them, and
    advice what hearing each other has brought to the sources.
    """

    combination: CrossFittedCombination
    certificate: Certificate
    solution: Solution
    calibration_report: CalibrationReport | None
    novelty: Novelty | None
    cross_losses: tuple[FloatArray, FloatArray]
    held_out: HeldOut
    advice: ConsultingGain | None


def learn(tables: Tables, goal: LearningSettings) -> Learned:
    """Learn a combination without each part of the rows; certify their average by these parts.

    Examples
    --------
    Two sources, each right at home:

    >>> y, domain = np.array([0.0, 0.1, 1.0, 1.1]), np.array([0, 0, 1, 1])
    >>> log_masses = np.array([[0.0, 0.0, -9.0, -9.0], [-9.0, -9.0, 0.0, 0.0]])
    >>> tables = Tables(log_masses, np.array([[0.0] * 4, [1.0] * 4]), y, domain)
    >>> learned = learn(tables, LearningSettings())
    >>> learned.combination.predict(log_masses, tables.predictions).round(1)
    array([0., 0., 1., 1.])
    """
    rows = TableRows(tables)
    found = learn_rows(rows, goal)
    assert rows.held_out is not None
    return Learned(*found[:6], rows.held_out, found.advice)


class Taught(NamedTuple):
    """What rows have taught, wherever they are; see `Learned`.

    sketched says, in sentences, what was learned from a sample or a sketch of the rows.
    """

    combination: CrossFittedCombination
    certificate: Certificate
    solution: Solution
    calibration_report: CalibrationReport | None
    novelty: Novelty | None
    cross_losses: tuple[FloatArray, FloatArray]
    advice: ConsultingGain | None
    sketched: tuple[str, ...] = ()


def learn_rows(rows: Rows, goal: LearningSettings) -> Taught:
    """Learn from rows that are at hand, or from rows that only answer questions."""
    check_n_sources(rows.n_sources)
    rows.check_loss(goal.loss, goal.rule)
    parts = list(rows.together(partial(learn_part, goal=goal), rows.lessons()))
    used = CrossFittedCombination(tuple(part.combination for part in parts))
    certificate = rows.certified(parts, used, goal)
    judged = certificate.source_losses, certificate.own_losses
    return Taught(
        combination=used,
        certificate=certificate,
        solution=joined([part.solution for part in parts], used, *judged),
        calibration_report=mean_report([part.report for part in parts], rows.n_points),
        novelty=rows.novelty(),
        cross_losses=rows.cross_losses(goal),
        advice=rows.advice(used, goal),
        sketched=rows.sketched,
    )


def learn_part(rows: Tables | Lesson, goal: LearningSettings) -> Part:
    """Consult, find z for every calibration, and keep what serves the goal best on these rows."""
    lesson: Lesson = TableLesson(rows) if isinstance(rows, Tables) else rows
    consulted = lesson.consulted(goal)
    said, equal = consulted.tables, simplex.uniform(lesson.n_sources)
    problems, tried = [], list(_calibrations(lesson, goal))
    for calibration, _ in tried:
        weighed = said.weighed(calibration)
        problems.append(weighed.problem(goal.loss, goal.eta, goal.rule))
    # What is good with equal weights is good with better ones: z is sought for the best of them.
    even = lesson.together(lambda problem: problem.source_losses(equal), problems)
    finalists = np.argsort([goal.value(losses) for losses in even])[:FINALISTS].tolist()
    solved = lesson.together(lambda i: find_z(problems[i], goal), finalists)
    found = dict(zip(finalists, solved, strict=True))
    best = min(found, key=lambda i: goal.value(found[i].source_losses))
    (calibration, report), solution = tried[best], found[best]
    used = Combination(solution.z, goal.eta, calibration, goal.rule, consulted.consulting)
    return Part(used, solution, report, said)


def find_z(problem: Problem, goal: LearningSettings, **options: Any) -> Solution:
    """Solve for z, by the rows of all sources but those that are set aside."""
    objective = cast(Objective, goal.objective)
    shrinkage = 0.0 if objective == "gamma" else goal.shrinkage
    if shrinkage == "auto":
        # Held that near to the prior, z has one valley: on 432 problems a dozen starts found none
        # lower, by 1e-9 of the losses.
        options = {"n_starts": 1, "tol": TOL, **options}
    options = {"remember": False, **options}
    if not goal.set_aside:
        return solve(problem, objective, shrinkage=shrinkage, **options)
    if shrinkage == "auto":
        uniform = simplex.uniform(problem.n_sources)
        shrinkage = automatic_shrinkage(problem, uniform, goal.set_aside)
    heard = SetAside(problem, goal.set_aside)
    z = (found := solve(heard, objective, shrinkage=shrinkage, **options)).z
    return replace(
        found,
        gamma=problem.gamma(z),
        robust_loss=problem.robust_loss(z),
        regret=problem.regret(z),
        source_losses=problem.source_losses(z),
        own_losses=problem.own_losses,
    )


def calibrations(
    tables: Tables, goal: LearningSettings
) -> Iterator[tuple[Calibration | None, CalibrationReport | None]]:
    """Yield what is tried: own and shared temperatures, each at several sharpnesses."""
    yield from _calibrations(TableLesson(tables), goal)


def _calibrations(
    lesson: Lesson, goal: LearningSettings
) -> Iterator[tuple[Calibration | None, CalibrationReport | None]]:
    if not goal.calibrate:
        yield None, None
        return
    scalings = lesson.scalings(goal.set_aside)
    # Nobody speaks for a source that is set aside: it has what all share, and no offset.
    places = np.array(goal.set_aside, dtype=np.intp) - np.arange(len(goal.set_aside))
    common = float(scalings[-1].temperature_[0])
    for scaling in scalings:
        temperature = np.insert(scaling.temperature_, places, common)
        offset = np.insert(scaling.offset_, places, 0.0)
        parts = temperature, offset, scaling.floor_
        yield from ((Calibration(*parts, power), scaling.report_) for power in SHARPNESS)
