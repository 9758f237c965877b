"""Held-out answers in two rounds, and the density that serves them best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray
from anymix.core import Record, get_loss, losses_at, simplex
from anymix.estimators._rows import Rows
from anymix.estimators._source_training import (
    Indifferent,
    SourceTrainer,
    in_turn,
    is_domain_classifier,
)
from anymix.sources import LearningSettings, Novelty, Source, Tables, calibrations, evaluate

# By so many standard errors of paired differences a second round must beat the first.
SURE = 1.0
# Held-out rows that a density is chosen by, and parts that rows are dealt into for it.
ENOUGH_ROWS, N_PARTS = 500, 3


@dataclass(frozen=True)
class DensityChoice(Record):
    """What the sources are weighed by, and the held-out losses that it was chosen by.

    names and losses are those of all that was tried, from the best to the worst; `novelty` names
    the density that says how strange a row is, where a classifier of sources was chosen.

    Examples
    --------
    >>> print(DensityChoice("words", ("words", "kernels"), np.array([0.5, 0.625]), None, 900))
    Weighed by words: held-out loss 0.5 on 900 rows; kernels 0.625.
    """

    chosen: str
    names: tuple[str, ...]
    losses: FloatArray
    novelty: str | None
    n_rows: int

    def __str__(self) -> str:
        tried = dict(zip(self.names, self.losses, strict=True))
        others = ", ".join(f"{n} {v:.4g}" for n, v in tried.items() if n != self.chosen)
        return (
            f"Weighed by {self.chosen}: held-out loss {tried[self.chosen]:.4g} on {self.n_rows} "
            f"rows{'; ' * bool(others)}{others}."
        )


def held_out_answers(
    trainer: SourceTrainer,
    rows: Rows,
    tables: Tables,
    fold: NDArray[np.intp],
    goal: LearningSettings,
) -> list[int]:
    """Fill in what sources say of rows that they have not seen; return who has a second round.

    A second round is judged at home, on rows that neither round has seen, and stays where it beats
    the first one; after the first fold only those go on with it that it has helped.
    """
    second = np.full_like(tables.predictions, np.nan)
    tries = _second_rounds(trainer, tables, goal)
    for held, rest in in_turn(rows, fold):
        asked, sources = rows.take(held).X, trainer.predictors(rest)
        tables.predictions[:, held] = _said(sources, asked, tables)
        if tries:
            again = trainer.second_round(sources, rest, tries)
            second[:, held] = _said(again, asked, tables)
            tries = [k for k in tries if _gain(tables, second, k, goal)[0] > 0]
    kept = [k for k in tries if _better(*_gain(tables, second, k, goal))]
    tables.predictions[kept] = second[kept]
    return kept


def _second_rounds(trainer: SourceTrainer, tables: Tables, goal: LearningSettings) -> list[int]:
    """Sources that may be trained again: regressors that are trained here, for a loss of errors."""
    able = goal.consult and not trainer.sources and tables.classes is None
    return list(range(len(trainer.names))) if able and get_loss(goal.loss).of_error else []


def _said(sources: Sequence[Source], X: Any, tables: Tables) -> FloatArray:
    return evaluate(sources, X, tables.classes, Indifferent(len(sources))).predictions


def _gain(
    tables: Tables, second: FloatArray, k: int, goal: LearningSettings
) -> tuple[float, float]:
    """Mean loss at home of the first round less that of the second, and its standard error."""
    home = (np.asarray(tables.sample_domain) == k) & ~np.isnan(second[k])
    y = np.asarray(tables.targets)[home]
    first, again = tables.predictions[k, home], second[k, home]
    gains = losses_at(first, y, goal.loss) - losses_at(again, y, goal.loss)
    weight = np.ones(y.size) if tables.sample_weight is None else tables.sample_weight[home]
    if not weight.any():
        return 0.0, 0.0
    share = weight / weight.sum()
    gain, n = float(share @ gains), 1.0 / float(share @ share)
    spread = float(np.sum((share * (gains - gain)) ** 2))
    return gain, float(np.sqrt(spread * n / max(n - 1.0, 1.0)))


def _better(gain: float, error: float) -> bool:
    return gain > SURE * error


def choose_density(
    trainer: SourceTrainer,
    rows: Rows,
    tables: Tables,
    fold: NDArray[np.intp],
    goal: LearningSettings,
    candidates: dict[str, Any],
) -> tuple[DensityChoice, FloatArray, FloatArray | None]:
    """Choose by the held-out loss that weights from each candidate lead to; models stay the same.

    A candidate that these rows cannot train is left out, unless it is the last.  Returns the
    choice, the held-out log-masses (p, m) of what was chosen and, beside a classifier of sources,
    those of the best density, NaN at rows that were not asked about.
    """
    numbers = _enough_folds(fold)
    asked = np.flatnonzero(np.isin(fold, numbers))
    few, masses, losses = tables.taken(asked), {}, {}
    refused: ValueError | None = None
    for name, density in candidates.items():
        try:
            masses[name] = replace(trainer, density=density).held_out_masses(rows, fold, numbers)
        except ValueError as error:
            # Rows that are all alike, say, have no bandwidth; others may still weigh them.
            refused = error
            continue
        losses[name] = _loss_of(replace(few, log_masses=masses[name][:, asked]), goal)
    if refused is not None and not losses:
        raise refused
    order = sorted(losses, key=lambda name: losses[name])
    best, density = order[0], None
    if is_domain_classifier(candidates[best]):
        density = next((n for n in order if not is_domain_classifier(candidates[n])), None)
    others = [number for number in range(int(fold.max()) + 1) if number not in numbers]
    chosen = replace(trainer, density=candidates[best])
    log_masses = chosen.held_out_masses(rows, fold, others)
    log_masses[:, asked] = masses[best][:, asked]
    told = np.array([losses[name] for name in order])
    choice = DensityChoice(best, tuple(order), told, density, asked.size)
    return choice, log_masses, None if density is None else masses[density]


def _enough_folds(fold: NDArray[np.intp]) -> list[int]:
    sizes = np.cumsum(np.bincount(fold))
    return list(range(int(np.searchsorted(sizes, min(ENOUGH_ROWS, sizes[-1]))) + 1))


def _loss_of(tables: Tables, goal: LearningSettings) -> float:
    """Return what the goal counts, all sources weighing alike, by the best calibration."""
    equal = simplex.uniform(len(tables.log_masses))
    found = []
    for calibration, _ in calibrations(tables, goal):
        problem = tables.weighed(calibration).problem(goal.loss, goal.eta, goal.rule)
        found.append(goal.value(problem.source_losses(equal)))
    return min(found)


def novelty_of(tables: Tables, log_masses: FloatArray) -> Novelty:
    """Remember what is usual at home, by densities that were asked about some rows alone."""
    asked = np.flatnonzero(~np.isnan(log_masses).any(axis=0))
    return Novelty.from_tables(replace(tables.taken(asked), log_masses=log_masses[:, asked]))
