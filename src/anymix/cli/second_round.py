"""The second round of `source pack --others`: train on what the models of the other sites leave.

    numbers    h'(x) = Σ_j a_j h_j(x) + b + g(x)
    labels     h'(x) ∝ g(x) exp(A · mean_j log h_j(x)), for logistic regressions g

h_j are the models of the other sites of their first round, and g is the site's own.  For labels
mean_j log h_j joins the columns of the logistic regression, so that g and A are learned together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import softmax
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from anymix._arrays import FloatArray, positions
from anymix.cli.training_table import TrainingTable
from anymix.core import losses_at
from anymix.exceptions import InputError
from anymix.exchange import (
    LEAST_LOGGED,
    ReceivedSource,
    read_sources,
    second_round_graph,
    second_round_of_labels,
)
from anymix.sources import PROBABILITY_FLOOR, Source, pool_of_others

FOLDS = 5
# Of the inverse penalty of the first round: less is left to learn.
SHARES = (1.0, 1 / 3, 1 / 10)


def read_others(
    folders: Sequence[str], table: TrainingTable, labels: Sequence[Any] | None
) -> list[ReceivedSource]:
    """Read the other sources; their inputs and outputs must be those of this table's source."""
    received = read_sources(folders)
    columns = [(column.name, column.categories) for column in table.columns]
    for one in received:
        given, task = one.manifest, "regression" if labels is None else "classification"
        if given.task != task:
            raise InputError(one.folder, f"is for {given.task}; give folders of sources for {task}")
        theirs = [(f.name, getattr(f, "categories", None)) for f in given.features]
        if given.is_text != table.text or theirs != columns:
            raise InputError(
                one.folder,
                "has other columns or categories than the table; pack all sources with one "
                "reference",
            )
        if labels is not None and sorted(given.classes or ()) != list(labels):
            raise InputError(
                one.folder,
                f"has other labels than the table ({', '.join(map(str, labels))}); leave it out of "
                "--others",
            )
    return received


class SecondRoundClassifier:
    """The classifier of a site after its second round.

    `mixing` is A (c, c): the weights of the others' mean log-probabilities in each label's score.
    """

    def __init__(self, others: Sequence[Source], mixing: FloatArray, rest: Any) -> None:
        self.others, self.mixing, self.rest = tuple(others), mixing, rest
        self.classes_ = rest.classes_

    def predict_proba(self, X: Any, pool: FloatArray | None = None) -> FloatArray:
        """h'(x), (n, c); `pool` is the mean of the others if that is known."""
        own = np.log(np.maximum(self.rest.predict_proba(X), LEAST_LOGGED))
        if pool is None:
            pool = mean_logarithm(self.others, X, self.classes_)
        return np.asarray(softmax(own + pool @ self.mixing, axis=1))


def mean_logarithm(others: Sequence[Source], X: Any, labels: Any) -> FloatArray:
    """mean_j log h_j(x), (n, c)."""
    return np.mean([np.log(one.predict_proba(X, np.asarray(labels))) for one in others], axis=0)


def can_follow(estimator: Any) -> bool:
    """Whether a classifier can have a second round: a logistic regression, or a pipeline to one."""
    return isinstance(_last(estimator), LogisticRegression)


def _last(estimator: Any) -> Any:
    return estimator[-1] if isinstance(estimator, Pipeline) else estimator


def fit_labels(
    estimator: Any,
    others: Sequence[Source],
    rows: tuple[Any, Any, FloatArray],
    share: float,
) -> SecondRoundClassifier:
    """Train the second round for labels; the inverse penalty is a share of the estimator's.

    `rows` are X, y and the mean of the others.
    """
    X, y, pool = rows
    last, rest = clone(_last(estimator)), clone(estimator)
    last.set_params(C=share * last.C)
    before = rest[:-1] if isinstance(rest, Pipeline) else None
    own = X if before is None else before.fit_transform(X)
    stack = sparse.hstack if sparse.issparse(own) else np.hstack
    last.fit(stack([own, pool]), y)
    # Of two labels the regression has one row, which is that of the second label.
    of_pool = last.coef_[:, own.shape[1] :]
    if len(of_pool) == 1:
        of_pool = np.stack([np.zeros_like(of_pool[0]), of_pool[0]])
    last.coef_, last.n_features_in_ = last.coef_[:, : own.shape[1]].copy(), own.shape[1]
    model = last if before is None else Pipeline([*before.steps, (rest.steps[-1][0], last)])
    return SecondRoundClassifier(others, of_pool.T, model)


class Better(NamedTuple):
    """The better model of two rounds, and why.

    `share` of the inverse penalty of labels is 0 where the own model was better; `known_words`
    in the graph reveal nothing.
    """

    predictor: Any
    choice: str
    share: float = 0.0
    known_words: frozenset[str] = frozenset()


def better_of(
    estimator: Any, table: TrainingTable, others: Sequence[ReceivedSource], seed: int
) -> Better:
    """Train with and without the predictions of the others; compare by cross-validated losses."""
    if table.y.dtype.kind != "f":
        return _better_of_labels(estimator, table, others, seed)
    predictions = np.stack([one.source.predict(table.X) for one in others])
    X, y = table.filled, np.asarray(table.y, dtype=float)
    own, second = _cross_fitted(estimator, X, y, predictions, seed)
    choice = f"own model {own:.4g}, second round {second:.4g} (squared loss, {FOLDS} folds)"
    if own <= second:
        return Better(clone(estimator).fit(X, y), f"{choice}; the own model was packed")
    weights, offset = pool_of_others(predictions, y)
    rest = clone(estimator).fit(X, y - weights @ predictions - offset)
    graph = second_round_graph(others, weights, offset, rest, X)
    return Better(graph, f"{choice}; the second round was packed", 1.0)


def _better_of_labels(
    estimator: Any, table: TrainingTable, others: Sequence[ReceivedSource], seed: int
) -> Better:
    X, y, models = table.filled, table.y, [one.source for one in others]
    alone = clone(estimator).fit(X, y)
    if not can_follow(estimator):
        kind = type(_last(estimator)).__name__
        return Better(alone, f"No second round for labels of {kind}; the own model was packed")
    labels = np.unique(y)
    tried = dict.fromkeys((0.0, *SHARES), 0.0)
    n_folds = min(FOLDS, int(np.unique(y, return_counts=True)[1].min()))
    if n_folds < 2:
        return Better(
            alone, "A label has too few rows for a second round; the own model was packed"
        )
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    pool, every = mean_logarithm(models, X, labels), np.zeros(len(y))
    for train, test in folds.split(every, y):
        some, held = (_safe_indexing(X, part) for part in (train, test))
        for share in tried:
            if share:
                known = some, y[train], pool[train]
                model = fit_labels(estimator, models, known, share)
                proba = model.predict_proba(held, pool[test])
            else:
                proba = clone(estimator).fit(some, y[train]).predict_proba(held)
            proba = np.maximum(proba, PROBABILITY_FLOOR)
            tried[share] += losses_at(proba, positions(y[test], labels), "cross_entropy").sum()
    share = min(SHARES, key=lambda share: tried[share])
    own, second = tried[0.0] / len(y), tried[share] / len(y)
    choice = f"own model {own:.4g}, second round {second:.4g} (cross-entropy, {n_folds} folds)"
    if own <= second:
        return Better(alone, f"{choice}; the own model was packed")
    found = fit_labels(estimator, models, (X, y, pool), share)
    graph, words = second_round_of_labels(others, found.mixing, found.rest, X)
    return Better(graph, f"{choice}; the second round was packed", share, frozenset(words))


def _cross_fitted(
    estimator: Any, X: FloatArray, y: FloatArray, predictions: FloatArray, seed: int
) -> tuple[float, float]:
    """Return the cross-validated mean squared loss of the own model and of the second round."""
    own, second = np.empty(len(y)), np.empty(len(y))
    for train, test in KFold(min(FOLDS, len(y)), shuffle=True, random_state=seed).split(X):
        own[test] = clone(estimator).fit(X[train], y[train]).predict(X[test])
        weights, offset = pool_of_others(predictions[:, train], y[train])
        left = y[train] - weights @ predictions[:, train] - offset
        rest = clone(estimator).fit(X[train], left).predict(X[test])
        second[test] = weights @ predictions[:, test] + offset + rest
    return float(np.mean((own - y) ** 2)), float(np.mean((second - y) ** 2))
