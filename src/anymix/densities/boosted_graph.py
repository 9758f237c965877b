"""Boosted trees as the attributes of an ONNX TreeEnsembleRegressor.

A set of categories is a chain of questions, each for one of them,

    x = a?  yes: child     no: x = b?  yes: the same child     no: ...     no: the other child

over the categories that missing values do not follow: missing and unseen values fall through.
onnxruntime answers questions for 1 .. 63 about one column at once: whole numbers beyond are asked
about in further columns, x - 63, x - 126, ...
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix.densities.density import refuse_unless

# What a node is, as bits of its kind.  A split of missing values from the rest has no threshold.
LEAF, CATEGORY, GAPS_LEFT, GAPS_ALONE = 1, 2, 4, 8
DOUBLE = 11  # the number of float64 in ONNX
MODES = np.array(["LEAF", "BRANCH_LEQ", "BRANCH_EQ"])
MOST_NODES = 2**22  # of a graph
AT_ONCE, BLOCKS = 63, 16
HIGHEST = np.finfo(np.float64).max
Whole = NDArray[np.int64]
Floats = NDArray[np.float64]


def add_trees(trees: Any, graph: Any, rows: str) -> str:
    """Add `BoostedTrees` to an ONNX graph, and return the name of the scores, float64 (n, k).

    The operator sums in float64 but gives float32: the baseline, often the largest part, is added
    afterwards.
    """
    if (trees.kinds & GAPS_ALONE).any():
        # Infinity, too, goes where all numbers go.
        rows = graph.add("Min", rows, graph.constant(np.array([HIGHEST])))
    column, less = shifted_columns(trees)
    if column.size:
        copies = graph.add("Gather", rows, graph.constant(column), axis=1)
        shifted = graph.add("Sub", copies, graph.constant(less))
        rows = graph.add("Concat", rows, shifted, axis=1)
    attributes = ensemble_attributes(trees)
    added = graph.add("TreeEnsembleRegressor", rows, domain="ai.onnx.ml", **attributes)
    wide = graph.add("Cast", added, to=DOUBLE)
    return str(graph.add("Add", wide, graph.constant(trees.baseline)))


def shifted_columns(trees: Any) -> tuple[Whole, Floats]:
    """Return the further columns of the rows: which are copied, and what is taken from each."""
    column = np.repeat(np.arange(trees.n_features), trees.n_categories)
    block = _block(trees.categories)
    pairs = np.unique(np.stack([column, block])[:, block > 0], axis=1)
    return pairs[0], AT_ONCE * pairs[1].astype(np.float64)


def _block(numbers: Floats) -> Whole:
    """How many times 63 is taken from a category, so that 1 .. 63 are left; 0 if it stays."""
    whole = (numbers == np.floor(numbers)) & (numbers > 0) & (numbers <= AT_ONCE * BLOCKS)
    return np.where(whole, (np.where(whole, numbers, 1).astype(np.int64) - 1) // AT_ONCE, 0)


def ensemble_attributes(trees: Any) -> dict[str, Any]:
    """Attributes of the operator; columns from d on are those that `shifted_columns` lists."""
    asked_node, asked_column, asked_number = _questions(trees)
    category = (trees.kinds & CATEGORY) != 0
    long = np.where(category, np.bincount(asked_node, minlength=category.size), 1)
    node = np.repeat(np.arange(long.size), long)
    # Chains stand where their nodes stood; numbers of nodes start again in each tree.
    begin = np.cumsum(long) - long
    root = np.repeat(trees.starts[:-1], trees.sizes)
    tree = np.repeat(np.arange(trees.n_trees), trees.sizes)[node]
    name, own = begin - begin[root], np.arange(node.size) - begin[root[node]]
    kinds, category = trees.kinds[node], category[node]
    leaf, gaps_left = (kinds & LEAF) != 0, (kinds & GAPS_LEFT) != 0
    left, right = (name[(root + child)[node]] for child in (trees.left, trees.right))
    turned, last = category & gaps_left, np.arange(node.size) + 1 == (begin + long)[node]
    yes, otherwise = np.where(turned, right, left), np.where(turned, left, right)
    values = np.where((kinds & GAPS_ALONE) != 0, HIGHEST, trees.values[node])
    columns = trees.features[node]
    values[category], columns[category] = asked_number, asked_column
    return {
        "n_targets": trees.n_scores,
        "nodes_treeids": tree.tolist(),
        "nodes_nodeids": own.tolist(),
        "nodes_featureids": columns.tolist(),
        "nodes_modes": MODES[np.where(leaf, 0, 1 + category)].tolist(),
        "nodes_truenodeids": np.where(leaf, 0, yes).tolist(),
        "nodes_falsenodeids": np.where(leaf, 0, np.where(last, otherwise, own + 1)).tolist(),
        "nodes_missing_value_tracks_true": (gaps_left & ~category).astype(int).tolist(),
        "nodes_values_as_tensor": np.where(leaf, 0.0, values),
        "target_treeids": tree[leaf].tolist(),
        "target_nodeids": own[leaf].tolist(),
        "target_ids": (tree[leaf] % trees.n_scores).tolist(),
        "target_weights_as_tensor": values[leaf],
    }


def _questions(trees: Any) -> tuple[Whole, Whole, Floats]:
    """Node, column and number of a question for every category that missing values do not follow.

    Where all go there one is asked for that is never met.
    """
    nodes = np.flatnonzero(trees.kinds & CATEGORY)
    chosen = trees.asked_sets(nodes)
    total = int(np.bitwise_count(chosen).sum()) + trees.kinds.size
    refuse_unless(total <= MOST_NODES, f"needs {total} nodes as a graph, {MOST_NODES} are allowed")
    place, code = np.nonzero(np.unpackbits(chosen, axis=1, bitorder="little"))
    node = nodes[place]
    first = np.cumsum(trees.n_categories) - trees.n_categories
    column = trees.features[node]
    number = trees.categories[first[column] + code]
    block, (shifted, less) = _block(number), shifted_columns(trees)
    further = np.zeros((trees.n_features, BLOCKS), dtype=np.int64)
    further[:, 0] = np.arange(trees.n_features)
    at = (shifted, (less / AT_ONCE).astype(np.int64))
    further[at] = trees.n_features + np.arange(less.size)
    idle = nodes[~chosen.any(axis=1)]
    node = np.append(node, idle)
    column = np.append(further[column, block], trees.features[idle])
    number = np.append(number - AT_ONCE * block, np.full(idle.size, HIGHEST))
    order = np.argsort(node, kind="stable")
    return node[order], column[order], number[order]
