"""Learn from tables alone: calibrate, find z, certify; no model and no row is asked again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np

from anymix._arrays import FloatArray, IntArray
from anymix.core import (
    Averaged,
    Calibration,
    Certificate,
    Combination,
    Loss,
    Objective,
    Problem,
    SetAside,
    Solution,
    automatic_shrinkage,
    check_number,
    simplex,
    solve,
)
from anymix.densities import CalibrationReport, fit_temperatures
from anymix.sources.certifying import Grounds, certify_learned
from anymix.sources.consulting import Advice, Consulted, consult
from anymix.sources.novelty import Novelty
from anymix.sources.parts import (
    HeldOut,
    advice,
    crossed_answers,
    deal,
    joined,
    mean_report,
)
from anymix.sources.tables import Tables

# Powers of calibrated responsibilities that are tried.  The temperature that tells domains apart
# best is often too high for predictions: a strange model costs more than a wrong domain does.
SHARPNESS = (1.0, 2.0, 4.0)
# Calibrations that z is sought for: on 24 problems the loss was that of all six, within .6 %.
FINALISTS = 2
# Far below what rows can tell, and half the steps of the solver's own.
TOL = 1e-7


@dataclass(frozen=True)
class Goal:
    """What z is to achieve, and how it is learned; the parameters are those of the estimators.

    set_aside are the sources, by number, whose rows choose neither z nor a calibration; `ways` is
    from how many such choices the rows themselves have chosen, which the certificate pays for.
    With `consult` the sources hear each other first.  `fresh` says that neither sources nor
    densities were trained on rows of the tables, be it on other folds; names are the sources'.
    """

    loss: str | Loss = "squared"
    eta: float = 1e-3
    rule: str = "marginal"
    objective: str = "regret"
    shrinkage: float | str = "auto"
    calibrate: bool = True
    confidence: float = 0.95
    set_aside: tuple[int, ...] = ()
    ways: int = 1
    consult: bool = False
    fresh: bool = True
    names: tuple[str, ...] = ()

    def value(self, losses: FloatArray) -> float:
        """Return what a calibration is judged by: the mean loss over sources, or the worst loss.

        For a given z the mean of the regrets is the mean loss up to a constant, and the mean is far
        less noisy than the largest, which picked a worse calibration on held-out real rows.
        """
        heard = np.delete(losses, list(self.set_aside))
        return float(heard.max() if self.objective == "robust" else heard.mean())


class Part(NamedTuple):
    """What some of the rows have taught: a combination, and how it was found."""

    combination: Combination
    solution: Solution
    report: CalibrationReport | None
    said: Tables


class Learned(NamedTuple):
    """What tables have taught: how to combine, what that guarantees, and how it was found.

    cross_losses are those of each source's model on each domain, and their standard errors;
    held_out is what is said at the rows of the tables by what was learned without them, and
    advice what hearing each other has brought to the sources.
    """

    combination: Averaged
    certificate: Certificate
    solution: Solution
    calibration_report: CalibrationReport | None
    novelty: Novelty | None
    cross_losses: tuple[FloatArray, FloatArray]
    held_out: HeldOut
    advice: Advice | None


def learn(tables: Tables, goal: Goal) -> Learned:
    """Learn a combination without each part of the rows; certify their average by these parts.

    Examples
    --------
    Two sources, each right at home:

    >>> y, domain = np.array([0.0, 0.1, 1.0, 1.1]), np.array([0, 0, 1, 1])
    >>> log_masses = np.array([[0.0, 0.0, -9.0, -9.0], [-9.0, -9.0, 0.0, 0.0]])
    >>> tables = Tables(log_masses, np.array([[0.0] * 4, [1.0] * 4]), y, domain)
    >>> learned = learn(tables, Goal())
    >>> learned.combination.predict(log_masses, tables.predictions).round(1)
    array([0., 0., 1., 1.])
    """
    check_number(len(tables.log_masses))
    tables.check_loss(goal.loss, goal.rule)
    fold = deal(tables)
    parts = _learn_parts(tables, goal, fold)
    used = Averaged(tuple(part.combination for part in parts))
    held_out = _held_out(tables, used, fold, parts)
    grounds = Grounds(goal.confidence, goal.fresh, goal.ways, goal.names)
    certificate = certify_learned(tables, used, held_out, goal.loss, grounds)
    judged = certificate.source_losses, certificate.own_losses
    return Learned(
        combination=used,
        certificate=certificate,
        solution=joined([part.solution for part in parts], used, *judged),
        calibration_report=mean_report([part.report for part in parts], tables.n_points),
        novelty=Novelty.from_tables(tables) if tables.has_densities else None,
        cross_losses=tables.judgement(goal.loss, goal.eta).cross_losses(),
        held_out=held_out,
        advice=advice(tables, used, fold, goal.loss),
    )


def _learn_parts(tables: Tables, goal: Goal, fold: IntArray) -> list[Part]:
    """Learn from all rows but those of each part; from all of them where there is one part."""
    if not fold.any():
        return [learn_part(tables, goal)]
    numbers = range(int(fold.max()) + 1)
    return [learn_part(tables.taken(np.flatnonzero(fold != t)), goal) for t in numbers]


def _held_out(tables: Tables, used: Averaged, fold: IntArray, parts: Sequence[Part]) -> HeldOut:
    if len(parts) > 1:
        return HeldOut(crossed_answers(tables, used, fold), fold)
    # The pools at least were learned without the row.
    alone = replace(used.parts[0], consulting=None)
    return HeldOut(alone.predict(tables.log_masses, parts[0].said.predictions), fold, crossed=False)


def learn_part(tables: Tables, goal: Goal) -> Part:
    """Consult, find z for every calibration, and keep what serves the goal best on these rows."""
    consulted = consulted_for(tables, goal)
    said, equal = consulted.tables, simplex.uniform(len(tables.log_masses))
    problems, tried = [], list(calibrations(tables, goal))
    for calibration, _ in tried:
        weighed = said.weighed(calibration)
        problems.append(weighed.problem(goal.loss, goal.eta, goal.rule))
    # What is good with equal weights is good with better ones: z is sought for the best of them.
    values = [goal.value(problem.source_losses(equal)) for problem in problems]
    found = {int(i): find_z(problems[i], goal) for i in np.argsort(values)[:FINALISTS]}
    best = min(found, key=lambda i: goal.value(found[i].source_losses))
    (calibration, report), solution = tried[best], found[best]
    used = Combination(solution.z, goal.eta, calibration, goal.rule, consulted.consulting)
    return Part(used, solution, report, said)


def consulted_for(tables: Tables, goal: Goal) -> Consulted:
    """Let the sources hear each other if the goal says so."""
    if not goal.consult:
        return Consulted(None, tables)
    return consult(tables, goal.loss, goal.set_aside)


def find_z(problem: Problem, goal: Goal, **options: Any) -> Solution:
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
    tables: Tables, goal: Goal
) -> Iterator[tuple[Calibration | None, CalibrationReport | None]]:
    """Yield what is tried: own and shared temperatures, each at several sharpnesses."""
    if not goal.calibrate:
        yield None, None
        return
    heard = tables.without(goal.set_aside)
    known = heard.log_masses, np.asarray(heard.sample_domain), heard.sample_weight
    scalings = fit_temperatures(*known)
    # Nobody speaks for a source that is set aside: it has what all share, and no offset.
    places = np.array(goal.set_aside, dtype=np.intp) - np.arange(len(goal.set_aside))
    common = float(scalings[-1].temperature_[0])
    for scaling in scalings:
        temperature = np.insert(scaling.temperature_, places, common)
        offset = np.insert(scaling.offset_, places, 0.0)
        parts = temperature, offset, scaling.floor_
        yield from ((Calibration(*parts, power), scaling.report_) for power in SHARPNESS)
