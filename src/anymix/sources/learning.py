"""Learn from tables alone: calibrate, find z, certify; no model and no row is asked again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np

from anymix._arrays import FloatArray
from anymix.core import (
    Assumptions,
    Calibration,
    Certificate,
    Combination,
    Loss,
    Objective,
    Problem,
    SetAside,
    Solution,
    automatic_shrinkage,
    certify,
    check_number,
    simplex,
    solve,
)
from anymix.densities import CalibrationReport, fit_temperatures
from anymix.sources.consulting import Consulted, consult
from anymix.sources.novelty import Novelty
from anymix.sources.tables import Tables

# Powers of calibrated responsibilities that are tried.  The temperature that tells domains apart
# best is often too high for predictions: a strange model costs more than a wrong domain does.
SHARPNESS = (1.0, 2.0, 4.0)


@dataclass(frozen=True)
class Goal:
    """What z is to achieve, and how it is learned; the parameters are those of the estimators.

    set_aside are the sources, by number, whose rows choose neither z nor a calibration; `ways` is
    from how many such choices the rows themselves have chosen, which the certificate pays for.
    With `consult` the sources hear each other first.
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

    def value(self, losses: FloatArray) -> float:
        """Return what a calibration is judged by: the mean loss over sources, or the worst loss.

        For a given z the mean of the regrets is the mean loss up to a constant, and the mean is far
        less noisy than the largest, which picked a worse calibration on held-out real rows.
        """
        heard = np.delete(losses, list(self.set_aside))
        return float(heard.max() if self.objective == "robust" else heard.mean())


class Learned(NamedTuple):
    """What tables have taught: how to combine, what that guarantees, and how it was found.

    cross_losses are those of each source's model on each domain, and their standard errors;
    `consulted` is what the sources say after they have heard each other.
    """

    combination: Combination
    certificate: Certificate
    solution: Solution
    calibration_report: CalibrationReport | None
    novelty: Novelty | None
    cross_losses: tuple[FloatArray, FloatArray]
    consulted: Consulted


def learn(tables: Tables, goal: Goal) -> Learned:
    """Consult, find z for every calibration, keep what serves the goal best here, certify it.

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
    consulted = consulted_for(tables, goal)
    said, tried = consulted.tables, []
    for calibration, report in calibrations(tables, goal):
        problem = said.weighed(calibration).problem(goal.loss, goal.eta, goal.rule)
        tried.append((calibration, report, find_z(problem, goal)))
    calibration, report, solution = min(tried, key=lambda one: goal.value(one[2].source_losses))
    judged = said.weighed(calibration).judgement(goal.loss, goal.eta, goal.rule)
    choices, confidence = goal.ways * len(tried), goal.confidence
    certificate = certify(
        judged, solution.z, confidence=confidence, held_out=False, choices=choices
    )
    # z was fitted on the rows that judge it; what is certified is z rounded, so that is used.
    used = Combination(certificate.z, goal.eta, calibration, goal.rule, consulted.consulting)
    novelty = Novelty.from_tables(tables) if tables.has_densities else None
    alone = judged
    if consulted.consulting is not None:
        alone = tables.weighed(calibration).judgement(goal.loss, goal.eta, goal.rule)
    crossed = alone.cross_losses()
    return Learned(used, certificate, solution, report, novelty, crossed, consulted)


def consulted_for(tables: Tables, goal: Goal) -> Consulted:
    """Let the sources hear each other if the goal says so."""
    if not goal.consult:
        return Consulted(None, tables)
    return consult(tables, goal.loss, goal.set_aside)


def find_z(problem: Problem, goal: Goal, **options: Any) -> Solution:
    """Solve for z, by the rows of all sources but those that are set aside."""
    objective = cast(Objective, goal.objective)
    shrinkage = 0.0 if objective == "gamma" else goal.shrinkage
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


def certify_tables(
    tables: Tables,
    combination: Combination,
    loss: str | Loss,
    *,
    confidence: float | None = 0.95,
    held_out: bool = True,
    choices: float = 1,
    assumptions: Assumptions | None = None,
) -> Certificate:
    """State what is guaranteed for a combination, from what the sources say at labelled points.

    Parameters are those of `anymix.core.certify`; with held_out=False the points are those that
    the combination was learned from, and `choices` says from how many it was chosen beside z.
    """
    weighed = tables.heard(combination.consulting).weighed(combination.calibration)
    return certify(
        weighed.judgement(loss, combination.eta, combination.rule),
        combination.z,
        confidence=confidence,
        held_out=held_out,
        choices=choices,
        assumptions=assumptions,
    )
