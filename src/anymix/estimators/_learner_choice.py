"""Choose the learner of the sources by held-out losses, and that of the generalist.

Learners are compared by the losses of each source's own model h_k on the rows of source k.  Often
several are as good as the best, as far as these rows can show.  A source also predicts by what all
sources share: where rows look like several sources, and where it consults.  So of these learners
the one is chosen of the smallest

    (ℓ(h_k(x), y) + ℓ(h_0(x), y)) / 2

h_0 is the generalist of the same learner: of all rows in one place, by sums over sites or, where
models have no columns in common, the average of all h_j.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anymix._arrays import FloatArray, positions
from anymix.core import Loss, Record, losses_at, mean_and_error
from anymix.estimators._generalist import GeneralistTrainer
from anymix.estimators._learners import candidate_estimators, kind_of, named_estimators
from anymix.estimators._row_checks import check_domains, check_weight, groups_of
from anymix.estimators._rows import Rows, few_rows, folds_of
from anymix.estimators._running import one_thread
from anymix.estimators._source_training import SourceTrainer, folds_in_turn
from anymix.sources import Source, predictions_of, shared_columns
from anymix.tables import Columns, as_rows

# A candidate is dropped once it is worse than the best by so many standard errors of the paired
# differences, and all are compared once this many held-out rows have been.
CLEARLY, ENOUGH_ROWS = 1.5, 500


@dataclass(frozen=True)
class LearnerChoice(Record):
    """The learner of the sources, and the held-out losses that it was chosen by.

    A loss is the mean over sources of the loss of each source's own model on its own held-out rows.
    Among those that are not clearly worse than the best, the generalist decides, too.
    `names` are all that were compared, the chosen one first; `losses`, their `differences` to the
    chosen one with standard `errors`, and `n_rows` are of the rows that both were compared on.
    `generalist` is the learner of a generalist of pooled rows, chosen by its own losses.

    Examples
    --------
    >>> two, rows = np.array([0.5, 0.625]), np.array([900.0, 300.0])
    >>> differences, errors = np.array([0.0, 0.125]), np.array([0.0, 0.02])
    >>> print(LearnerChoice("linear", ("linear", "trees"), two, differences, errors, rows))
    Learner: linear, own held-out loss 0.5 on 900 rows; trees +0.125 ± 0.02 (300 rows).
    """

    chosen: str
    names: tuple[str, ...]
    losses: FloatArray
    differences: FloatArray
    errors: FloatArray
    n_rows: FloatArray
    generalist: str | None = None

    def __str__(self) -> str:
        others = "".join(
            f"; {name} {difference:+.3g} ± {error:.2g} ({n:.0f} rows)"
            for name, difference, error, n in zip(
                self.names[1:], self.differences[1:], self.errors[1:], self.n_rows[1:], strict=True
            )
        )
        n = f"{self.n_rows[0]:.0f}"
        general = "" if self.generalist is None else f" Generalist: {self.generalist}."
        loss = f"own held-out loss {self.losses[0]:.4g} on {n} rows{others}."
        return f"Learner: {self.chosen}, {loss}{general}"


@dataclass
class _Race:
    """Losses of each candidate (m,), NaN where it was not tried, and its models of folds.

    `common` and `shared` are those of the generalist alone.
    """

    rows: Rows
    n_sources: int
    labels: bool
    losses: dict[str, FloatArray] = field(default_factory=dict)
    trained: dict[str, dict[int, list[Source]]] = field(default_factory=dict)
    common: dict[str, FloatArray] = field(default_factory=dict)
    shared: dict[str, dict[int, list[Source]]] = field(default_factory=dict)

    @cached_property
    def judges(self) -> list[int]:
        """Return the sources whose rows compare candidates: those with two classes or more."""
        every = list(range(self.n_sources))
        y, domain = self.rows.y, self.rows.domain
        few = few_rows(np.bincount(domain, minlength=self.n_sources).tolist())
        able = [k for k in every if np.sum(domain == k) >= few]
        able = [k for k in able if not self.labels or np.unique(y[domain == k]).size > 1]
        return able or every

    def mean(self, values: FloatArray) -> tuple[float, float, int]:
        """Mean over sources of the means of known values, its standard error, number of rows."""
        means, squares, n = [], [], 0
        weight = np.ones(values.size) if self.rows.weight is None else self.rows.weight
        for k in self.judges:
            own = np.flatnonzero((self.rows.domain == k) & ~np.isnan(values) & (weight > 0))
            n += own.size
            if own.size:
                mean, error = mean_and_error(values[own], weight[own] / weight[own].sum())
                means.append(float(mean))
                squares.append(float(error) ** 2)
        if not means:
            return 0.0, np.inf, 0
        p = len(means)
        within = float(np.sqrt(np.sum(squares)) / p)
        # One or two rows of each of many sources say nothing of the error, but their means do.
        between = float(np.std(means, ddof=1) / np.sqrt(p)) if p > 1 else 0.0
        return float(np.mean(means)), max(within, between), n

    def difference(self, name: str, other: str) -> tuple[float, float, int]:
        """The mean excess loss of a candidate over another, on rows that both were evaluated on."""
        return self.mean(self.losses[name] - self.losses[other])

    def best(self, names: Sequence[str]) -> str:
        """Return the candidate with the smallest loss on the same rows."""
        return min(names, key=lambda name: self.mean(self.losses[name])[0])

    def generalist(self, chosen: str) -> str:
        """Return the candidate whose generalist has the smallest loss."""
        ahead = {
            name: self.mean(self.common[name] - self.common[chosen])[0] for name in self.common
        }
        return min(ahead, key=lambda name: ahead[name])

    def choice(self, chosen: str) -> LearnerChoice:
        """Compare all with the chosen one."""
        compared = {name: self.difference(name, chosen) for name in self.losses}
        order = sorted(compared, key=lambda name: (name != chosen, compared[name][0]))
        known = [np.isnan(self.losses[name]) for name in order]
        losses = [
            self.mean(np.where(missing, np.nan, self.losses[name]))[0]
            for name, missing in zip(order, known, strict=True)
        ]
        differences, errors, n_rows = np.array([compared[name] for name in order]).T
        errors = np.where(np.isfinite(errors), errors, 0.0)
        return LearnerChoice(chosen, tuple(order), np.array(losses), differences, errors, n_rows)


class ChosenLearner(NamedTuple):
    """The choice, and the models of sources and generalist that were trained without some folds."""

    choice: LearnerChoice
    trained: dict[int, list[Source]]
    shared: dict[int, list[Source]]


def choose_learner(
    trainer: SourceTrainer,
    candidates: Mapping[str, Any],
    rows: Rows,
    fold: NDArray[np.intp],
    loss: str | Loss,
    classes: NDArray[Any] | None,
    general: bool = True,
) -> ChosenLearner:
    """Choose the learner with the smallest mean loss of the sources' own models.

    All candidates are trained without the first fold; those that are worse by more than `CLEARLY`
    standard errors are dropped, and the others go on until `ENOUGH_ROWS` rows have evaluated them.
    Without `general` there will be no generalist, and none is trained here.
    """
    race = _Race(rows, len(trainer.names), classes is not None)
    general = general and len(trainer.names) > 1
    for name in candidates:
        race.losses[name], race.trained[name] = np.full(rows.y.size, np.nan), {}
        race.common[name], race.shared[name] = np.full(rows.y.size, np.nan), {}
    alive, compared = list(candidates), 0
    for t in range(int(fold.max()) + 1):
        for held, rest in folds_in_turn(rows, fold, [t]):
            compared, home = compared + held.size, rows.take(held)
            for name in alive:
                learner = replace(trainer, estimator=candidates[name])
                sources = race.trained[name][t] = learner.predictors(rest)
                race.losses[name][held] = _home_losses(sources, home, loss, classes)
                if general:
                    race.shared[name][t] = _shared_models(learner, sources, rest)
                    common = _common_losses(race.shared[name][t], sources, home, loss, classes)
                    race.common[name][held] = common
        best = race.best(alive)
        for name in [name for name in alive if name != best]:
            more, error, _ = race.difference(name, best)
            if more > CLEARLY * error:
                alive.remove(name)
                # Only the models of the chosen learner are used again.
                race.trained[name].clear()
        if len(alive) == 1 or compared >= ENOUGH_ROWS:
            break
    if not general:
        chosen = race.best(alive)
        return ChosenLearner(race.choice(chosen), race.trained[chosen], {})
    chosen = min(alive, key=lambda name: race.mean(race.losses[name] + race.common[name])[0])
    choice, best = race.choice(chosen), race.generalist(chosen)
    if trainer.share_rows:
        choice = replace(choice, generalist=best)
    return ChosenLearner(choice, race.trained[chosen], race.shared[best])


def _shared_models(learner: SourceTrainer, sources: Sequence[Source], rest: Rows) -> list[Source]:
    """Train what all sources share: a generalist, by strength; empty where there can be none."""
    if not learner.share_rows and shared_columns([one.predictor for one in sources]) is None:
        return []
    estimator = learner.estimator if learner.share_rows else None
    return GeneralistTrainer(estimator, learner.columns).versions(sources, rest)


def _common_losses(
    shared: Sequence[Source],
    sources: Sequence[Source],
    rows: Rows,
    loss: str | Loss,
    classes: NDArray[Any] | None,
) -> FloatArray:
    """The losses of the best generalist or, without one, of the average of the sources, (m,)."""
    y = rows.y if classes is None else positions(rows.y, classes)
    predicted = [predictions_of(model, rows.X, classes) for model in shared or sources]
    if not shared:
        predicted = [np.mean(predicted, axis=0)]
    return min((losses_at(h, y, loss) for h in predicted), key=np.mean)


def _home_losses(
    sources: Sequence[Source], rows: Rows, loss: str | Loss, classes: NDArray[Any] | None
) -> FloatArray:
    """ℓ(h_k(x_i), y_i) of the own model k of each row, (m,)."""
    found = np.empty(rows.y.size)
    for k, source in enumerate(sources):
        own = np.flatnonzero(rows.domain == k)
        if not own.size:
            continue
        some = rows.take(own)
        if classes is None:
            found[own] = losses_at(source.predict(some.X), some.y, loss)
        else:
            predicted = source.predict_proba(some.X, classes)
            found[own] = losses_at(predicted, positions(some.y, classes), loss)
    return found


def choose_estimator(
    X: Any,
    y: ArrayLike,
    sample_domain: ArrayLike | None = None,
    *,
    classification: bool,
    candidates: str | Sequence[Any] | Mapping[str, Any] = "auto",
    columns: Columns | None = None,
    loss: str | Loss | None = None,
    cv: int = 5,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    random_state: Any = None,
) -> tuple[Any, LearnerChoice | None]:
    """Choose the learner for rows of one or several sources, as the estimators do by default.

    Parameters
    ----------
    X : array, sparse matrix, DataFrame (n, d), or a list of documents
    y : array (n,)
    sample_domain : array (n,), optional
        Which source each row belongs to; None: all are of one.
    classification : bool
        Whether y holds labels.
    candidates : "auto", list of estimators, or dict of them by name
        What is compared; "auto" stands for linear models and boosted trees.
    columns : Columns, optional
        How a table became numbers, if X is encoded; a DataFrame that needs it is encoded here.
    loss : str or Loss, optional
        By default the squared loss of numbers and the cross-entropy of labels.
    cv : int
        Folds.
    sample_weight, groups : array (n,), optional
    random_state : int or None

    Returns
    -------
    estimator
        Not trained.  Of a mixed table it takes what `columns.encode` returns.
    LearnerChoice or None
        None where rows are too few to hold any out, or there is one candidate.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> estimator, choice = choose_estimator(X, X[:, 0], classification=False, random_state=0)
    >>> choice.chosen
    'linear'
    """
    X = as_rows(X)
    kind = kind_of(X) if columns is None else "mixed"
    if columns is None and kind == "mixed" and isinstance(candidates, str):
        columns = Columns.of(X)
    rows_X = X if columns is None or not isinstance(candidates, str) else columns.encode(X)
    weight = None if sample_weight is None else check_weight(sample_weight, len(np.asarray(y)))
    names, domain = check_domains(sample_domain, len(np.asarray(y)), None)
    rows = Rows(rows_X, np.asarray(y), domain, weight, kind)
    rows = replace(rows, groups=groups_of(rows, groups, stacklevel=3))
    if isinstance(candidates, str):
        learners = candidate_estimators(kind, X, columns, classification, random_state, weight)
    elif isinstance(candidates, Mapping):
        learners = dict(candidates)
    else:
        learners = named_estimators(candidates)
    first = learners.get("trees" if columns is not None else "", next(iter(learners.values())))
    if len(learners) == 1 or not can_choose(rows, classification):
        return first, None
    fold = folds_of(rows, cv, classification, random_state)
    classes = np.unique(rows.y) if classification else None
    trainer = SourceTrainer(names, weighs=False, columns=columns)
    usual = "cross_entropy" if classification else "squared"
    with one_thread(rows):
        choice = choose_learner(trainer, learners, rows, fold, loss or usual, classes).choice
    return learners[choice.chosen], choice


def can_choose(rows: Rows, classification: bool) -> bool:
    """Whether any source has rows, of each of two classes, to train on and to hold out."""
    for k in np.unique(rows.domain):
        y = rows.y[rows.domain == k]
        if y.size > 1 and not (
            classification and np.sum(np.unique(y, return_counts=True)[1] > 1) < 2
        ):
            return True
    return False
