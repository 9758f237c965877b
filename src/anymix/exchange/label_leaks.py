"""Measure what a site file reveals of labels, and replace rows by means, which reveal none.

A source that predicts one class for nearly everybody reveals the label by the probability that it
gave it.  `labels_named` measures that: from the level of one number of the file, by whichever
source does best, the label is guessed as the commonest at that level among other rows.

`mean_of_rows` replaces rows by groups of rows.  Each group has of every label its share, so that no
number of a group tells which rows have which.  For group g and source k

    r_gk = mean_i r_k(x_i)        log h_gk = mean_i log h_k(x_i, y_i)

Since log Σ_k w_k exp(a_k) is convex in a, −log Σ_k w_k h_gk is at least the mean loss of the rows
in g for the same weights w: losses of groups do not flatter.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray, IntArray
from anymix.exceptions import InputError
from anymix.exchange.site_table import FEWEST_ROWS, SiteTable

PARTS = 5
# Fewer than rows from which a fit claims a confidence: groups are no independent draws.
MOST_GROUPS = 150
# The share of labels named beyond the commonest from which on a file is worth a warning.
TELLS = 0.05


def labels_named(outcomes: FloatArray, labels: NDArray[np.integer]) -> float:
    """The share of rows whose label one number identifies: outcomes (p, m), labels (m,) from 0.

    Each fifth of the rows is predicted from the others, so that chance identifies none.

    Examples
    --------
    >>> labels = np.array([0, 1] * 20)
    >>> labels_named(np.where(labels, 0.9, 0.1)[None], labels)
    1.0
    >>> labels_named(np.full((1, 40), 0.5), labels)
    0.5
    """
    part = np.arange(labels.size) % PARTS
    shares = []
    for numbers in outcomes:
        level = np.unique(numbers.round(12), return_inverse=True)[1]
        right = 0
        for t in range(PARTS):
            known, asked = part != t, part == t
            counts = np.zeros((level.max() + 1, labels.max() + 1))
            np.add.at(counts, (level[known], labels[known]), 1)
            # Where a level was not met, and where two labels are as common: the commonest of all.
            guess = (counts + 1e-6 * np.bincount(labels, minlength=counts.shape[1])).argmax(axis=1)
            right += int((guess[level[asked]] == labels[asked]).sum())
        shares.append(right / labels.size)
    return max(shares)


def commonest(labels: NDArray[np.integer]) -> float:
    """The share of the commonest label."""
    return float(np.bincount(labels).max() / labels.size)


def groups_of_rows(table: SiteTable, size: int, rng: np.random.Generator) -> IntArray:
    """Return the group of each row (m,): groups of `size` rows or more with equal shares of labels.

    Rows of one label are dealt out in the order of the responsibility of the site's own source, so
    that rows of a group are similar.
    """
    labels, m = _labels_of(table), table.n_rows
    n_groups = min(m // size, MOST_GROUPS)
    if n_groups < FEWEST_ROWS:
        raise InputError(
            f"{m} held-out rows of {table.site!r}",
            f"are too few for means of {size}: give at least {FEWEST_ROWS * size}",
        )
    own = table.log_responsibilities[table.sources.index(table.site)]
    group = np.empty(m, dtype=np.intp)
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))
        rows = rows[np.argsort(own[rows], kind="stable")]
        # Where the first begins is drawn, as else the last groups would have the fewest rows.
        group[rows] = (np.arange(rows.size) + rng.random()) * n_groups // rows.size % n_groups
    return np.unique(group, return_inverse=True)[1].astype(np.intp)


def mean_of_rows(table: SiteTable, group: IntArray) -> SiteTable:
    """Return a table of groups in place of rows; `group` (m,) is that of each row."""
    n = int(group.max()) + 1
    mean = (group == np.arange(n)[:, None]) / np.bincount(group)[:, None]
    with np.errstate(divide="ignore"):
        log_r = np.log(np.exp(table.log_responsibilities) @ mean.T)
    log_h = np.log(table.at_label().outcomes) @ mean.T
    return replace(
        table,
        log_responsibilities=np.maximum(log_r, -1e4),
        outcomes=np.exp(log_h),
        log_total=None,
        whole=None,
        content=None,
        groups=None,
        means=True,
    )


def _labels_of(table: SiteTable) -> NDArray[np.intp]:
    if table.loss != "cross_entropy" or table.whole is None or table.whole.targets is None:
        raise InputError(
            f"the site {table.site!r}",
            "has no labels to hide: means over rows are for sources that predict labels",
        )
    return np.asarray(table.whole.targets, dtype=np.intp)
