"""source pack --others: train a second time, on what the pool of the other sources leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold

from anymix._arrays import FloatArray
from anymix.cli.packing import few_threads
from anymix.cli.training_table import TrainingTable
from anymix.exceptions import InputError
from anymix.exchange import ReceivedSource, read_sources, second_round_graph
from anymix.sources import pool_of_others

FOLDS = 5


def read_others(folders: Sequence[str], table: TrainingTable) -> list[ReceivedSource]:
    """Read the other sources, which must be regressions on the columns of the table."""
    received = read_sources(folders)
    for one in received:
        if one.manifest.task != "regression":
            raise InputError(
                one.folder,
                "is for labels, and --others trains on numbers alone; leave --others out, as fit "
                "pools what the sources say of labels",
            )
        theirs = [(f.name, getattr(f, "categories", None)) for f in one.manifest.features]
        if theirs != [(column.name, column.categories) for column in table.columns]:
            raise InputError(
                one.folder,
                "has other columns or categories than the table; pack all with one reference",
            )
    return received


def better_of(
    estimator: Any, table: TrainingTable, others: Sequence[ReceivedSource], seed: int
) -> tuple[Any, str]:
    """Train alone and on what the others leave, and return the better one with what was found.

    Both are judged by their squared loss at rows of five folds that they were not trained on.
    """
    said = np.stack([one.source.predict(table.X) for one in others])
    X, y = table.filled, np.asarray(table.y, dtype=float)
    with few_threads(X):
        own, second = _cross_fitted(estimator, X, y, said, seed)
        choice = f"own model {own:.4g}, second round {second:.4g} (squared loss, {FOLDS} folds)"
        if own <= second:
            return clone(estimator).fit(X, y), f"{choice}; the own model was packed"
        weights, offset = pool_of_others(said, y)
        rest = clone(estimator).fit(X, y - weights @ said - offset)
    graphs = [one.source.predictor for one in others]
    graph = second_round_graph(graphs, weights, offset, rest, X)
    return graph, f"{choice}; the second round was packed"


def _cross_fitted(
    estimator: Any, X: FloatArray, y: FloatArray, said: FloatArray, seed: int
) -> tuple[float, float]:
    """Mean squared loss of the own model and of the second round, each row left out once."""
    own, second = np.empty(len(y)), np.empty(len(y))
    for train, test in KFold(min(FOLDS, len(y)), shuffle=True, random_state=seed).split(X):
        own[test] = clone(estimator).fit(X[train], y[train]).predict(X[test])
        weights, offset = pool_of_others(said[:, train], y[train])
        left = y[train] - weights @ said[:, train] - offset
        rest = clone(estimator).fit(X[train], left).predict(X[test])
        second[test] = weights @ said[:, test] + offset + rest
    return float(np.mean((own - y) ** 2)), float(np.mean((second - y) ** 2))
