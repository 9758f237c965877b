"""The learner: pool, calibrate, find z without each fold, certify; over blocks of tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, cast

import numpy as np

from anymix._arrays import FloatArray
from anymix.core import (
    Assumptions,
    Calibration,
    Combination,
    CrossFittedCombination,
    Loss,
    Objective,
    Problem,
    SetAside,
    ShareRange,
    Solution,
    automatic_shrinkage,
    check_n_sources,
    restated,
    share_bounds,
    simplex,
    solve,
)
from anymix.densities import CalibrationReport, TemperatureScaling
from anymix.sources.blocks import Blocks, BlocksProblem, TrainingFold
from anymix.sources.certification import Grounds, JudgedAverage, certify_average
from anymix.sources.consultation import ConsultingGain
from anymix.sources.cross_fitting import joined_solution, mean_report
from anymix.sources.cross_loss import make_cross_loss
from anymix.sources.fit_result import FitEvidence, FitResult
from anymix.sources.suspicious_rows import Seen
from anymix.sources.tables import Tables

# Powers of calibrated responsibilities that are tried.  The temperature that tells domains apart
# best is often too high for predictions: a strange model costs more than a wrong domain does.
SHARPNESS = (1.0, 2.0, 4.0)
# Calibrations that z is sought for: on 24 problems the loss was that of all six, within .6 %.
FINALISTS = 2
# Far below what rows can tell, and half the steps of the solver's own.
TOL = 1e-7


@dataclass(frozen=True)
class LearningSettings:
    """Settings of the learner; the parameters are those of the estimators.

    set_aside are the sources, by number, whose rows choose neither z nor a calibration; `ways` is
    the number of such choices that the rows themselves chose from, which the certificate allows
    for. `fresh` says that neither sources nor densities were trained on rows of the tables, be it
    on other folds; names are the sources'.  `mixtures` are those that z and the certificate are
    for: all, where no shares are stated.
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
    mixtures: tuple[ShareRange, ...] = ()

    @property
    def grounds(self) -> Grounds:
        """The grounds of a certificate with these settings."""
        known = self.confidence, self.fresh, self.ways, self.names
        return Grounds(*known, mixtures=self.mixtures)

    @property
    def share_bounds(self) -> tuple[FloatArray, FloatArray] | None:
        """The least and the largest share of each source, where some are stated."""
        return share_bounds(self.mixtures, self.names) if self.mixtures else None

    def value(self, losses: FloatArray) -> float:
        """Return the criterion of a calibration: the mean loss over sources, or the worst loss.

        For a given z the mean of the regrets is the mean loss up to a constant, and the mean is far
        less noisy than the largest, which picked a worse calibration on held-out real rows.
        """
        kept = np.delete(losses, list(self.set_aside))
        return float(kept.max() if self.objective == "robust" else kept.mean())


# A combination learned from some of the rows, the solver's result, and the calibration's report.
FoldResult = tuple[Combination, Solution, CalibrationReport | None]


class TrainingRows(Protocol):
    """Training rows without evaluation rows, as an engine has them."""

    @property
    def n_points(self) -> int:
        """The number of rows."""

    def learned(self, settings: LearningSettings) -> FoldResult:
        """Learn one combination from all of them."""

    def seen(self) -> Seen:
        """Return digests of the rows."""


def learn(
    rows: Tables | Blocks, settings: LearningSettings, training: TrainingRows | None = None
) -> FitResult:
    """Learn a combination without each fold of the rows; certify their average by these folds.

    With many rows, `training` are separate training rows and
    `rows` those for evaluation.

    Examples
    --------
    Two sources, each right on its own rows:

    >>> y, domain = np.array([0.0, 0.1, 1.0, 1.1]), np.array([0, 0, 1, 1])
    >>> log_masses = np.array([[0.0, 0.0, -9.0, -9.0], [-9.0, -9.0, 0.0, 0.0]])
    >>> tables = Tables(log_masses, np.array([[0.0] * 4, [1.0] * 4]), y, domain)
    >>> learned = learn(tables, LearningSettings())
    >>> learned.combination.predict(log_masses, tables.predictions).round(1)
    array([0., 0., 1., 1.])
    """
    blocks = Blocks.of(rows)
    check_n_sources(blocks.n_sources)
    blocks.ask("check", {"loss": settings.loss, "rule": settings.rule}, {})
    if training is None:
        learn_one = partial(learn_fold, settings=settings)
        # Counted before folds are learned together, so that not each of them asks.
        K = len(blocks.by_fold["weights"])
        folds = [TrainingFold(blocks, t if K > 1 else -1) for t in range(K)]
        results = list(blocks.together(learn_one, folds))
        judged = "folds" if len(results) > 1 else "alone"
    else:
        results, judged = [training.learned(settings)], "new"
    parts, solutions, reports = zip(*results, strict=True)
    used = CrossFittedCombination(parts)
    average = JudgedAverage(blocks, used, settings.loss, judged, set_aside=settings.set_aside)
    certificate, (means, errors), gain = blocks.at_once(
        lambda: certify_average(average, settings.grounds, Assumptions()),
        lambda: blocks.cross_losses(settings.loss),
        lambda: _consulting_gain(average),
    )
    names = settings.names or tuple(f"source {k + 1}" for k in range(blocks.n_sources))
    n_points = (training or blocks).n_points
    evidence = FitEvidence(
        certificate=certificate,
        solution=joined_solution(solutions, used, certificate, judged),
        cross_loss=make_cross_loss(means, errors, names, settings.confidence, settings.loss),
        calibration_report=mean_report(reports, n_points),
        novelty=blocks.novelty(),
        held_out=average.held_out,
        consulting_gain=gain,
        tables=rows if isinstance(rows, Tables) else None,
        n_training=None if training is None else n_points,
        sketched=tuple(blocks.sketched),
    )
    return FitResult(used, evidence)


def _consulting_gain(average: JudgedAverage) -> ConsultingGain | None:
    """What consulting gains at home, where any source consults."""
    if not average.used.consults:
        return None
    moments = average.blocks.moments("advice", average.options, average.arrays)
    return ConsultingGain.of(moments)


def learn_fold(rows: Tables | TrainingFold, settings: LearningSettings) -> FoldResult:
    """Consult, find z for every calibration, and keep the best on these rows."""
    fold = TrainingFold(Blocks.of(rows)) if isinstance(rows, Tables) else rows
    loss, aside, together = settings.loss, settings.set_aside, fold.blocks.together
    blocks, points = fold.blocks, fold.domain_sums(aside)
    consulting, scalings = blocks.at_once(
        lambda: fold.consult(loss, aside) if settings.consult else None,
        lambda: temperature_scalings(points) if settings.calibrate else [],
    )
    # What is good with equal weights is good with better ones: z is sought for the best of them.
    equal = simplex.uniform(blocks.n_sources)
    tried = [
        Combination(equal, settings.eta, calibration, settings.rule, consulting)
        for calibration in calibrations(scalings, aside)
    ]
    problems = [fold.problem(part, loss, aside) for part in tried]
    even, reports = blocks.at_once(
        lambda: list(together(partial(_first_losses, z=equal), problems)),
        lambda: list(together(lambda one: one.report_sums(points).report_, scalings)),
    )
    finalists = np.argsort([settings.value(losses) for losses in even])[:FINALISTS].tolist()
    solved = together(lambda i: find_z(problems[i], settings), finalists)
    solutions = dict(zip(finalists, solved, strict=True))
    best = min(solutions, key=lambda i: settings.value(solutions[i].source_losses))
    report = reports[best // len(SHARPNESS)] if reports else None
    return replace(tried[best], z=solutions[best].z), solutions[best], report


def _first_losses(problem: Any, z: FloatArray) -> FloatArray:
    losses: FloatArray = (
        problem.first_losses(z) if isinstance(problem, BlocksProblem) else problem.source_losses(z)
    )
    return losses


def find_z(problem: Problem, settings: LearningSettings, **options: Any) -> Solution:
    """Solve for z, by the rows of all sources but those that are set aside."""
    objective = cast(Objective, settings.objective)
    shrinkage = 0.0 if objective == "gamma" else settings.shrinkage
    if shrinkage == "auto":
        # Held that near to the prior, z has one valley: on 432 problems a dozen starts found none
        # lower, by 1e-9 of the losses.
        options = {"n_starts": 1, "tol": TOL, **options}
    options = {"remember": False, "mixtures": settings.share_bounds, **options}
    if not settings.set_aside:
        return solve(problem, objective, shrinkage=shrinkage, **options)
    if shrinkage == "auto":
        uniform = simplex.uniform(problem.n_sources)
        shrinkage = automatic_shrinkage(problem, uniform, settings.set_aside)
    kept = SetAside(problem, settings.set_aside)
    return restated(solve(kept, objective, shrinkage=shrinkage, **options), problem)


def temperature_scalings(points: Any) -> list[TemperatureScaling]:
    """Fit one temperature per source, and a common one, by rows or sums over them."""
    return [TemperatureScaling(kind).solve_sums(points) for kind in TemperatureScaling.KINDS]


def calibrations(
    scalings: Sequence[TemperatureScaling], set_aside: Sequence[int] = ()
) -> list[Calibration | None]:
    """The candidate calibrations: each scaling at several sharpnesses, or none."""
    if not scalings:
        return [None]
    # A source that is set aside has no rows here: it has what all share, and no offset.
    places = np.array(set_aside, dtype=np.intp) - np.arange(len(set_aside))
    common, found = float(scalings[-1].temperature_[0]), list[Calibration | None]()
    for scaling in scalings:
        temperature = np.insert(scaling.temperature_, places, common)
        offset = np.insert(scaling.offset_, places, 0.0)
        parts = temperature, offset, scaling.floor_
        found += [Calibration(*parts, power) for power in SHARPNESS]
    return found


def calibrations_of(tables: Tables, settings: LearningSettings) -> list[Calibration | None]:
    """The candidate calibrations on all of these rows."""
    if not settings.calibrate:
        return [None]
    points = TrainingFold(Blocks.of(tables)).domain_sums(settings.set_aside)
    return calibrations(temperature_scalings(points), settings.set_aside)
