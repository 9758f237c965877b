"""Automatic choices: densities, and sources to set aside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from anymix._arrays import FloatArray
from anymix.core import Record, get_loss, losses_at, mean_and_error, simplex
from anymix.densities import (
    ContrastiveDensity,
    DomainClassifier,
    GaussianKDE,
    TextDensity,
)
from anymix.estimators._generalist import GeneralistTrainer
from anymix.estimators._learners import ANY_LETTERS, is_foreign, kind_of, words_of
from anymix.estimators._rows import Rows
from anymix.estimators._source_training import (
    Indifferent,
    SourceTrainer,
    folds_in_turn,
)
from anymix.exceptions import InputError
from anymix.sources import (
    FEWEST_SITES,
    FoldDensities,
    LearningSettings,
    Source,
    Tables,
    calibrations_of,
    evaluate,
    find_influence,
)
from anymix.tables import Columns


def candidates(
    rows: Rows, columns: Columns | None = None, random_state: Any = None, share_rows: bool = True
) -> dict[str, Any]:
    """Return the candidate densities and classifiers of sources for rows of this kind.

    `columns` are those that the rows were encoded by.  Without `share_rows` classifiers are linear
    ones of numbers: sums over sites give the same; see `anymix.engines.fit_domain_classifier`.
    """
    kind = "mixed" if columns is not None else rows.kind or kind_of(rows.X)
    seed = {"random_state": random_state}
    if kind == "text":
        linear = LogisticRegression(C=10.0, max_iter=1000)
        words = make_pipeline(TfidfVectorizer(**words_of(rows.X)), linear)
        density = TextDensity()
        if is_foreign(rows.X):
            density.set_params(token_pattern=ANY_LETTERS)
        found = {"words": density, "classifier of texts": DomainClassifier(words)}
        return found if share_rows else {"words": density}
    if hasattr(rows.X, "toarray"):
        return {"linear classifier": DomainClassifier()}
    if kind == "vectors":
        return {"kernels": GaussianKDE(**seed), "linear classifier": DomainClassifier()}
    # Half of the draws from marginals, half from centres: on no table worse than one of them alone.
    boosted = DomainClassifier.boosted(random_state)
    found = {"contrast": ContrastiveDensity(reference="both", **seed)}
    found |= {"trees": boosted} if share_rows else {}
    if columns is not None and columns.categorical.any():
        boosted.estimator.set_params(categorical_features=columns.categorical)
    if kind == "numbers":
        found["kernels"] = GaussianKDE(scale="shared", **seed)
        found["linear classifier"] = DomainClassifier()
    return found


# By so many standard errors of paired differences a second round must beat the first.
SURE = 1.0
# Held-out rows that a density is chosen by, and parts that rows are dealt into for it.
ENOUGH_ROWS, N_PARTS = 500, 3


@dataclass(frozen=True)
class DensityChoice(Record):
    """The chosen density or classifier, and the held-out losses that it was chosen by.

    names and losses are those of all candidates, from the best to the worst; `novelty` names the
    density for novelty, where a classifier of sources was chosen.

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


def predict_held_out(
    trainer: SourceTrainer,
    rows: Rows,
    tables: Tables,
    fold: NDArray[np.intp],
    goal: LearningSettings,
    trained: Mapping[int, list[Source]],
    generalist: GeneralistTrainer | None = None,
) -> list[int]:
    """Fill in the predictions of sources for their held-out rows; return who has a second round.

    `trained` are the sources without some of the folds, as far as the learner was chosen by them.
    Predictions of a generalist are left with its trainer.

    A second round is judged at home, on rows that neither round has seen, and stays where it beats
    the first one; after the first fold only those go on with it that it has helped.
    """
    second, p = np.full_like(tables.predictions, np.nan), len(trainer.names)
    # Regressors that are trained here may be trained again, for a loss of errors.
    able = goal.consult and not trainer.sources and tables.classes is None
    tries = list(range(p)) if able and get_loss(goal.loss).of_error else []
    for held, rest in folds_in_turn(rows, fold):
        known = rows.take(held).X, tables.classes, Indifferent(p)
        known_sources = trained.get(int(fold[held[0]])) if held.size else None
        sources = trainer.predictors(rest) if known_sources is None else known_sources
        tables.predictions[:, held] = evaluate(sources, *known).predictions
        if generalist is not None:
            generalist.cross_fit(sources, rows, held, rest, tables)
        if tries:
            again = trainer.second_round(sources, rest, tries)
            second[:, held] = evaluate(again, *known).predictions
            tries = [k for k in tries if _gain(tables, second, k, goal)[0] > 0]
    gains = {k: _gain(tables, second, k, goal) for k in tries}
    kept = [k for k, (gain, error) in gains.items() if gain > SURE * error]
    tables.predictions[kept] = second[kept]
    return kept


def _gain(
    tables: Tables, second: FloatArray, k: int, goal: LearningSettings
) -> tuple[float, float]:
    """Mean loss at home of the first round less that of the second, and its standard error."""
    home = (tables.domain == k) & ~np.isnan(second[k])
    y = np.asarray(tables.targets)[home]
    first, again = tables.predictions[k, home], second[k, home]
    gains = losses_at(first, y, goal.loss) - losses_at(again, y, goal.loss)
    weight = tables.weights[home]
    if not weight.any():
        return 0.0, 0.0
    gain, error = mean_and_error(gains, weight / weight.sum())
    return float(gain), float(error)


def choose_density(
    trainer: SourceTrainer,
    rows: Rows,
    tables: Tables,
    fold: NDArray[np.intp],
    goal: LearningSettings,
    candidates: dict[str, Any],
) -> tuple[DensityChoice, FloatArray, FloatArray | None, dict[int, FoldDensities]]:
    """Choose the candidate with the smallest held-out loss at equal z.

    A candidate that these rows cannot train is left out, unless it is the last.  Returns the
    choice, the held-out log-masses (p, m) of what was chosen and, with a classifier of sources,
    those of the best density, NaN at rows that were not asked about; last, what was learned without
    each fold.
    """
    sizes = np.cumsum(np.bincount(fold))
    numbers = range(int(np.searchsorted(sizes, min(ENOUGH_ROWS, sizes[-1]))) + 1)
    asked = np.flatnonzero(np.isin(fold, numbers))
    few, masses, losses = tables.taken(asked), {}, {}
    learned: dict[str, dict[int, FoldDensities]] = {name: {} for name in candidates}
    equal = simplex.uniform(tables.n_sources)
    refused: ValueError | None = None
    for name, density in candidates.items():
        try:
            masses[name] = replace(trainer, density=density).held_out_masses(
                rows, fold, numbers, learned[name]
            )
        except ValueError as error:
            # Rows that are all alike, say, have no bandwidth; others may still weigh them.
            refused = error
            continue
        given, tried = replace(few, log_masses=masses[name][:, asked]), []
        for calibration in calibrations_of(given, goal):
            problem = given.weighed(calibration).problem(goal.loss, goal.eta, goal.rule)
            tried.append(goal.value(problem.source_losses(equal)))
        losses[name] = min(tried)
    if refused is not None and not losses:
        raise refused
    order = sorted(losses, key=lambda name: losses[name])
    best, density = order[0], None
    if isinstance(candidates[best], DomainClassifier):
        alone = (n for n in order if not isinstance(candidates[n], DomainClassifier))
        density = next(alone, None)
    others = range(len(numbers), len(sizes))
    chosen = replace(trainer, density=candidates[best])
    log_masses = chosen.held_out_masses(rows, fold, others, learned[best])
    log_masses[:, asked] = masses[best][:, asked]
    told = np.array([losses[name] for name in order])
    choice = DensityChoice(best, tuple(order), told, density, asked.size)
    if density is None:
        return choice, log_masses, None, learned[best]
    pairs = {
        t: FoldDensities(own.densities, learned[best][t].router)
        for t, own in learned[density].items()
    }
    return choice, log_masses, masses[density], pairs


def with_set_aside(
    asked: str | Sequence[str],
    tables: Tables,
    goal: LearningSettings,
    names: Sequence[str],
) -> LearningSettings:
    """Return the settings with the numbers of the sources that are set aside.

    If the rows themselves have chosen these, the certificate covers all possible choices.
    """
    chosen = check_set_aside(asked, names)
    if asked == "worst":
        worst = find_influence(tables, goal, list(names)).worst()
        return replace(goal, set_aside=() if worst is None else (worst,), ways=len(names) + 1)
    return replace(goal, set_aside=tuple(k for k, name in enumerate(names) if name in chosen))


def check_set_aside(asked: str | Sequence[str], names: Sequence[str]) -> set[str]:
    """Return the named sources; refuse unknown names, and too many."""
    if isinstance(asked, str) and asked != "worst":
        raise InputError("set_aside", f"takes a list of names, or 'worst'; got {asked!r}")
    chosen = set() if asked == "worst" else {str(name) for name in asked}
    for name in sorted(chosen - {*names}):
        raise InputError("set_aside", f"names {name!r}; the sources are {', '.join(names)}")
    if len(names) - (1 if asked == "worst" else len(chosen)) < FEWEST_SITES:
        raise InputError(
            "set_aside",
            f"would leave the rows of fewer than {FEWEST_SITES} sources to choose z; give the rows "
            "of more sources, or set fewer aside",
        )
    return chosen
