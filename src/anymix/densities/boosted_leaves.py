"""Encode rows by the leaves that they fall into, in all trees of several models.

    x_j(row) = 1/√T where the row falls into leaf j of one of the T trees, else 0

A linear model on these columns is boosted trees with other values in the leaves.  Where a part of
the rows has fewer than a minimum count of them on one side of a split, that split is not made
there: the node is a cell of all its rows, which share its leaves alike,

    x_j(row) = 1/(L √T),    L leaves below the node.

So the sums of a part over a column are over no rows, or over at least that many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

from anymix._arrays import FloatArray
from anymix.densities.boosted_graph import CATEGORY, GAPS_LEFT, LEAF
from anymix.densities.boosted_trees import BYTES, BoostedTrees

Whole = NDArray[np.int64]


def leaf_columns(models: Sequence[BoostedTrees], X: Any, min_rows: int = 1) -> Any:
    """Return the leaf indicators of rows as a matrix, or a product of two; (n, D).

    Parameters
    ----------
    models : sequence of BoostedTrees
    X : array (n, d)
    min_rows : int
        Rows on either side of a split, if there are any; of fewer it is not made.
    """
    n, n_trees = len(X), sum(trees.n_trees for trees in models)
    nodes = [trees.leaves(X) for trees in models]
    cells = [
        _cells(trees, reached, min_rows) if min_rows > 1 else np.arange(trees.kinds.size)
        for trees, reached in zip(models, nodes, strict=True)
    ]
    starts = np.cumsum([0, *(trees.kinds.size for trees in models)])
    places = np.hstack([c[f] + s for c, f, s in zip(cells, nodes, starts[:-1], strict=True)])
    leaf = np.concatenate([(trees.kinds & LEAF) != 0 for trees in models])
    cell = np.concatenate([c + s for c, s in zip(cells, starts[:-1], strict=True)])
    column = np.cumsum(leaf) - 1
    # How a cell is shared by its leaves: (nodes, D).
    of = cell[leaf]
    shares = 1.0 / np.bincount(of, minlength=leaf.size)[of]
    shape = (leaf.size, int(leaf.sum()))
    spread = sparse.csr_matrix((shares, (of, np.arange(shape[1]))), shape)
    ones = np.full(places.size, 1.0 / np.sqrt(n_trees))
    ends = np.arange(n + 1) * n_trees
    if (cell == np.arange(leaf.size))[leaf].all():
        return sparse.csr_matrix((ones, column[places].ravel(), ends), (n, shape[1]))
    rows = sparse.csr_matrix((ones, places.ravel(), ends), (n, leaf.size))
    return aslinearoperator(rows) @ aslinearoperator(spread)


def _cells(trees: BoostedTrees, leaves: Whole, min_rows: int) -> Whole:
    """The node that stands for each node: itself, or the one above whose split is not made."""
    size = trees.kinds.size
    split = np.flatnonzero((trees.kinds & LEAF) == 0)
    root = np.repeat(trees.starts[:-1], trees.sizes)
    left, right = (root[split] + child[split] for child in (trees.left, trees.right))
    parent = np.arange(size)
    parent[left], parent[right] = split, split
    levels, level = [], trees.starts[:-1]
    below = np.full((2, size), -1)
    below[0, split], below[1, split] = left, right
    while level.size:
        levels.append(level)
        inner = level[below[0, level] >= 0]
        level = below[:, inner].ravel()
    count = np.bincount(leaves.ravel(), minlength=size)
    for level in levels[:0:-1]:
        np.add.at(count, parent[level], count[level])
    few = (count > 0) & (count < min_rows)
    closed = np.zeros(size, dtype=bool)
    closed[split] = few[left] | few[right]
    cell = np.arange(size)
    for level in levels[1:]:
        above = parent[level]
        inside = closed[above] | (cell[above] != above)
        cell[level] = np.where(inside, cell[above], level)
    return cell


def joined_trees(
    models: Sequence[BoostedTrees], values: FloatArray, baseline: FloatArray
) -> BoostedTrees:
    """Return all trees of the models, with other values in the leaves.

    Parameters
    ----------
    models : sequence of BoostedTrees
        Of the same columns; their categories may differ.
    values : array (k, D)
        Of each score in each leaf, in the order of `leaf_columns` but without its 1/√T.
    baseline : array (k,)
    """
    listed = [
        np.unique(np.concatenate([_categories(trees)[j] for trees in models]))
        for j in range(models[0].n_features)
    ]
    same = [_recoded(trees, listed) for trees in models]
    k, starts = len(baseline), np.cumsum([0, *(len(trees.sets) for trees in same)])
    parts: dict[str, Any] = {
        name: np.concatenate([getattr(trees, name) for trees in same])
        for name in ("sizes", "kinds", "features", "left", "right", "sets")
    }
    parts["set_of"] = np.concatenate(
        [
            np.where(trees.kinds & CATEGORY, trees.set_of + start, 0)
            for trees, start in zip(same, starts[:-1], strict=True)
        ]
    )
    thresholds = np.concatenate([trees.values for trees in same])
    leaf = (parts["kinds"] & LEAF) != 0
    if k > 1:
        # Tree t adds to the score t mod k: each tree stands there once for each score.
        nodes = np.arange(leaf.size)
        each = np.split(nodes, np.cumsum(parts["sizes"])[:-1])
        order = np.concatenate([np.tile(tree, k) for tree in each])
        score = np.concatenate([np.repeat(np.arange(k), tree.size) for tree in each])
        parts |= {n: parts[n][order] for n in ("kinds", "features", "left", "right", "set_of")}
        parts["sizes"] = np.repeat(parts["sizes"], k)
        thresholds, leaf, column = thresholds[order], leaf[order], (np.cumsum(leaf) - 1)[order]
    else:
        score, column = np.zeros(leaf.size, dtype=np.intp), np.cumsum(leaf) - 1
    numbers = np.where(leaf, values[score, column], thresholds)
    categories = np.concatenate(listed) if listed else np.empty(0)
    counts = np.array([len(coded) for coded in listed], dtype=np.int64)
    return BoostedTrees(
        **parts,
        baseline=np.asarray(baseline, dtype=np.float64),
        values=numbers,
        categories=categories,
        n_categories=counts,
    )


def _categories(trees: BoostedTrees) -> list[FloatArray]:
    return np.split(trees.categories, np.cumsum(trees.n_categories)[:-1])


def _recoded(trees: BoostedTrees, listed: Sequence[FloatArray]) -> BoostedTrees:
    """The same trees; categories that are new to them go where missing values go."""
    own = _categories(trees)
    if all(np.array_equal(a, b) for a, b in zip(own, listed, strict=True)):
        return trees
    nodes = np.flatnonzero(trees.kinds & CATEGORY)
    sets = np.zeros((nodes.size, BYTES), dtype=np.uint8)
    before = np.unpackbits(trees.sets[trees.set_of[nodes]], axis=1, bitorder="little") != 0
    for i, node in enumerate(nodes.tolist()):
        j = int(trees.features[node])
        there = np.isin(listed[j], own[j])
        left = np.full(len(listed[j]), bool(trees.kinds[node] & GAPS_LEFT))
        left[there] = before[i, : len(own[j])]
        packed = np.packbits(left, bitorder="little")
        sets[i, : packed.size] = packed
    set_of = np.zeros_like(trees.set_of)
    set_of[nodes] = np.arange(nodes.size)
    return replace(
        trees,
        sets=sets,
        set_of=set_of,
        categories=np.concatenate(listed),
        n_categories=np.array([len(values) for values in listed], dtype=np.int64),
    )
