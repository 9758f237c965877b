"""Read the boosted trees of a source's graph, whose leaves all sites can compute."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix.densities import BoostedTrees
from anymix.exchange.read import ReceivedSource
from anymix.storage import need

OPERATOR = "TreeEnsembleRegressor"
# Steps between the rows and the trees that leave the columns as they are.
SAME_ROWS = {"Cast", "Identity"}
# What a node is, as `BoostedTrees` has it.
LEAF, GAPS_LEFT = 1, 4
BYTES = 32


def received_trees(one: ReceivedSource) -> BoostedTrees | None:
    """Return the trees of a source, or None where it has none, several sets, or categories.

    The graph is untrusted: an invalid set of trees counts as none.
    """
    content = getattr(one.source.predictor, "content", None)
    if content is None:
        return None
    onnx = need("onnx")
    graph = onnx.load_model_from_string(content).graph
    nodes = [node for node in graph.node if node.op_type == OPERATOR]
    if len(nodes) != 1 or not _takes_rows(graph, nodes[0]):
        return None
    attributes = {each.name: onnx.helper.get_attribute_value(each) for each in nodes[0].attribute}
    try:
        arrays = _arrays(attributes, len(one.manifest.features), onnx.numpy_helper.to_array)
        return BoostedTrees.from_arrays(arrays, len(one.manifest.features))
    except (KeyError, IndexError, ValueError):
        return None


def _takes_rows(graph: Any, node: Any) -> bool:
    """Whether an operator takes the rows as they come into the graph."""
    made, name = {out: each for each in graph.node for out in each.output}, node.input[0]
    while name in made and made[name].op_type in SAME_ROWS:
        name = made[name].input[0]
    return name in {one.name for one in graph.input}


def _arrays(given: dict[str, Any], n_features: int, to_array: Any) -> dict[str, NDArray[Any]]:
    """The arrays of `BoostedTrees`; the baseline is left at 0, as their leaves are all we need."""
    modes = np.array(given["nodes_modes"])
    leaf = modes == b"LEAF"
    if not (leaf | (modes == b"BRANCH_LEQ")).all():
        raise ValueError("it asks for categories")
    tree = np.asarray(given["nodes_treeids"], dtype=np.int64)
    sizes = np.bincount(tree)
    own = np.concatenate([np.arange(size) for size in sizes])
    # Nodes in the order of trees and of their numbers, as anymix writes them.
    if (np.diff(tree) < 0).any() or (np.asarray(given["nodes_nodeids"]) != own).any():
        raise ValueError("its nodes are in another order")
    values = np.array(to_array(given["nodes_values_as_tensor"]), dtype=np.float64)
    starts = np.cumsum(sizes) - sizes
    target = starts[np.asarray(given["target_treeids"])] + np.asarray(given["target_nodeids"])
    values[target] = to_array(given["target_weights_as_tensor"])
    gaps = np.asarray(given["nodes_missing_value_tracks_true"]) != 0
    none = np.zeros(leaf.size, dtype=np.int64)
    return {
        "baseline": np.zeros(int(given["n_targets"])),
        "sizes": sizes.astype(np.int64),
        "kinds": (LEAF * leaf + GAPS_LEFT * (~leaf & gaps)).astype(np.uint8),
        "values": values,
        "features": np.asarray(given["nodes_featureids"], dtype=np.int64),
        "left": np.asarray(given["nodes_truenodeids"], dtype=np.int64),
        "right": np.asarray(given["nodes_falsenodeids"], dtype=np.int64),
        "sets": np.zeros((0, BYTES), dtype=np.uint8),
        "set_of": none,
        "categories": np.zeros(0),
        "n_categories": np.zeros(n_features, dtype=np.int64),
    }
