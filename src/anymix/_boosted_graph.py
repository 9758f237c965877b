"""Boosted trees as the attributes of an ONNX TreeEnsembleRegressor.

A set of categories is a chain of questions, each for one of them,

    x = a?  yes: child     no: x = b?  yes: the same child     no: ...     no: the other child

over the categories that go where gaps do not, so that gaps and what was never seen fall through.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix._boosted_checks import CATEGORY, GAPS_ALONE, GAPS_LEFT, LEAF, refuse_unless

MODES = np.array(["LEAF", "BRANCH_LEQ", "BRANCH_EQ"])
MOST_NODES = 2**22  # of a graph
HIGHEST = np.finfo(np.float64).max


def ensemble_attributes(trees: Any) -> dict[str, Any]:
    """Return lists of whole numbers and words, and arrays of float64 for what are tensors."""
    named, asked = _chains(trees)
    long = _lengths(trees, named)
    node = np.repeat(np.arange(long.size), long)
    # Chains stand where their nodes stood; numbers of nodes start again in each tree.
    begin = np.cumsum(long) - long
    root = np.repeat(trees.starts[:-1], trees.sizes)
    tree = np.repeat(np.arange(trees.n_trees), trees.sizes)
    name = begin - begin[root]
    kinds, split = trees.kinds[node], (trees.kinds[node] & LEAF) == 0
    category, gaps_left = (kinds & CATEGORY) != 0, (kinds & GAPS_LEFT) != 0
    left = np.where(split, name[(root + trees.left)[node]], 0)
    right = np.where(split, name[(root + trees.right)[node]], 0)
    turned = category & gaps_left
    last = np.arange(node.size) + 1 == (begin + long)[node]
    own = np.arange(node.size) - begin[root[node]]
    values = np.where((kinds & GAPS_ALONE) != 0, HIGHEST, trees.values[node])
    values[category] = asked
    leaf = ~split
    return {
        "n_targets": trees.n_scores,
        "nodes_treeids": tree[node].tolist(),
        "nodes_nodeids": own.tolist(),
        "nodes_featureids": trees.features[node].tolist(),
        "nodes_modes": MODES[np.where(leaf, 0, 1 + category)].tolist(),
        "nodes_truenodeids": np.where(turned, right, left).tolist(),
        "nodes_falsenodeids": np.where(
            split & ~last, own + 1, np.where(turned, left, right)
        ).tolist(),
        "nodes_missing_value_tracks_true": (gaps_left & ~category).astype(int).tolist(),
        "nodes_values_as_tensor": np.where(leaf, 0.0, values),
        "target_treeids": tree[node][leaf].tolist(),
        "target_nodeids": own[leaf].tolist(),
        "target_ids": (tree[node][leaf] % trees.n_scores).tolist(),
        "target_weights_as_tensor": values[leaf],
    }


def _chains(trees: Any) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return each question of all chains: the node that it is of, the category that it asks for."""
    nodes = np.flatnonzero(trees.kinds & CATEGORY)
    chosen = trees.asked_sets(nodes)
    total = int(np.bitwise_count(chosen).sum()) + trees.kinds.size
    refuse_unless(total <= MOST_NODES, f"needs {total} nodes as a graph, {MOST_NODES} are allowed")
    bits = np.unpackbits(chosen, axis=1, bitorder="little")
    place, code = np.nonzero(bits)
    first = np.cumsum(trees.n_categories) - trees.n_categories
    return nodes[place], trees.categories[first[trees.features[nodes[place]]] + code]


def _lengths(trees: Any, named: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return how many nodes of the graph stand for each node."""
    return np.where(
        (trees.kinds & CATEGORY) != 0, np.bincount(named, minlength=trees.kinds.size), 1
    )
