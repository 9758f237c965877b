"""The trees of a contrastive density, and rows as they may see them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from anymix._arrays import FloatArray

# Boosted trees tell 255 values of a column apart, and then split halfway between two of them.
MOST_VALUES = 255


def boosted_trees(n: int, words: NDArray[np.bool_]) -> HistGradientBoostingClassifier:
    """Return trees for n rows against draws; `words` says which columns hold categories, (d,).

    Few rows have small trees, so that these do not learn them by heart.

    Examples
    --------
    >>> boosted_trees(120, np.array([False])).max_leaf_nodes
    10
    """
    return HistGradientBoostingClassifier(
        max_iter=50,
        max_leaf_nodes=int(np.clip(n // 12, 8, 63)),
        learning_rate=0.15,
        l2_regularization=2.0,
        min_samples_leaf=int(np.clip(n // 20, 5, 20)),
        categorical_features=words if words.any() else None,
        early_stopping=False,
        random_state=0,
    )


def on_public_grid(table: FloatArray, draws: FloatArray, words: NDArray[np.bool_]) -> FloatArray:
    """Move every number to the nearest of at most 255 drawn values of its column, (n, d).

    Trees split halfway between two of them, so that no threshold is the value of a row, or tells
    one; and a row that was not moved falls on the same side.  A column of gaps becomes one of
    zeros, as trees must see some value.

    Examples
    --------
    >>> table, draws = np.array([[0.4], [7.0], [np.nan]]), np.array([[0.0], [1.0]])
    >>> on_public_grid(table, draws, np.array([False])).ravel().tolist()
    [0.0, 1.0, nan]
    """
    moved = table.copy()
    for j, word in enumerate(words):
        if not word:
            moved[:, j] = _nearest(table[:, j], _grid(draws[:, j]))
        if np.isnan(moved[:, j]).all():
            moved[:, j] = 0.0
    return moved


def _grid(drawn: FloatArray) -> FloatArray:
    """Return values of a column of draws, sorted; equally many draws lie between neighbours."""
    known = np.sort(drawn[~np.isnan(drawn)])
    distinct = np.unique(known)
    if len(distinct) <= MOST_VALUES:
        return np.asarray(distinct)
    places = np.linspace(0, len(known) - 1, MOST_VALUES).astype(np.intp)
    return np.unique(known[places])


def _nearest(values: FloatArray, grid: FloatArray) -> FloatArray:
    if not grid.size:
        return np.where(np.isnan(values), np.nan, 0.0)
    edges = grid[:-1] + np.diff(grid) / 2
    return np.where(np.isnan(values), np.nan, grid[np.searchsorted(edges, values)])
