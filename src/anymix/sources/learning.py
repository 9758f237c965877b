"""Learn from tables alone: calibrate, find z, certify; no model and no row is asked again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np

from anymix._arrays import FloatArray
from anymix.core import (
    Assumptions,
    Calibration,
    Certificate,
    Combination,
    Loss,
    Objective,
    Solution,
    certify,
    check_number,
    solve,
)
from anymix.densities import CalibrationReport, fit_temperatures
from anymix.sources.novelty import Novelty
from anymix.sources.tables import Tables

# Powers of calibrated responsibilities that are tried.  The temperature that tells domains apart
# best is often too high for predictions: a strange model costs more than a wrong domain does.
SHARPNESS = (1.0, 2.0, 4.0)


@dataclass(frozen=True)
class Goal:
    """What z is to achieve, and how it is learned; the parameters are those of the estimators."""

    loss: str | Loss = "squared"
    eta: float = 1e-3
    rule: str = "marginal"
    objective: str = "regret"
    shrinkage: float | str = "auto"
    calibrate: bool = True
    confidence: float = 0.95

    def value(self, solution: Solution) -> float:
        """Return what a calibration is judged by: the mean loss over sources, or the worst loss.

        For a given z the mean of the regrets is the mean loss up to a constant, and the mean is far
        less noisy than the largest, which picked a worse calibration on held-out real rows.
        """
        if self.objective == "robust":
            return solution.robust_loss
        return float(solution.source_losses.mean())


class Learned(NamedTuple):
    """What tables have taught: how to combine, what that guarantees, and how it was found.

    cross_losses are those of each source's model on each domain, and their standard errors.
    """

    combination: Combination
    certificate: Certificate
    solution: Solution
    calibration_report: CalibrationReport | None
    novelty: Novelty | None
    cross_losses: tuple[FloatArray, FloatArray]


def learn(tables: Tables, goal: Goal) -> Learned:
    """Find z for every calibration, keep what serves the goal best on these rows, certify it.

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
    tried = []
    for calibration, report in _calibrations(tables, goal.calibrate):
        problem = tables.weighed(calibration).problem(goal.loss, goal.eta, goal.rule)
        shrinkage = 0.0 if goal.objective == "gamma" else goal.shrinkage
        solution = solve(problem, cast(Objective, goal.objective), shrinkage=shrinkage)
        tried.append((calibration, report, solution))
    calibration, report, solution = min(tried, key=lambda one: goal.value(one[2]))
    judged = tables.weighed(calibration).judgement(goal.loss, goal.eta, goal.rule)
    choices, confidence = len(tried), goal.confidence
    certificate = certify(
        judged, solution.z, confidence=confidence, held_out=False, choices=choices
    )
    # z was fitted on the rows that judge it; what is certified is z rounded, so that is used.
    used = Combination(certificate.z, goal.eta, calibration, goal.rule)
    novelty = Novelty.from_tables(tables) if tables.has_densities else None
    return Learned(used, certificate, solution, report, novelty, judged.cross_losses())


def _calibrations(
    tables: Tables, calibrate: bool
) -> Iterator[tuple[Calibration | None, CalibrationReport | None]]:
    """Yield what is tried: own and shared temperatures, each at several sharpnesses."""
    if not calibrate:
        yield None, None
        return
    known = tables.log_masses, np.asarray(tables.sample_domain), tables.sample_weight
    for scaling in fit_temperatures(*known):
        parts = scaling.temperature_, scaling.offset_, scaling.floor_
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
    weighed = tables.weighed(combination.calibration)
    return certify(
        weighed.judgement(loss, combination.eta, combination.rule),
        combination.z,
        confidence=confidence,
        held_out=held_out,
        choices=choices,
        assumptions=assumptions,
    )
