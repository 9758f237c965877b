"""Arithmetic of shapes: what a graph may do with the number of rows before it reshapes by it.

Nothing else may be done with it: a graph that knows how many rows it is asked about could behave
while it is judged, and not after.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix.sandbox.node import Node
from anymix.sandbox.shapes import Refused, Value, W

Sizes = NDArray[Any]
# As onnx numbers its types: int32 and int64.
WHOLE = (6, 7)


def sizes_after(node: Node) -> Sizes:
    """Return the sizes that a node makes of sizes, or of the shape of a value.

    Examples
    --------
    >>> whole = sizes_after(Node("Shape", {}, (Value(("n", 4)),), 1, 17))
    >>> whole.tolist()
    ['n', 4]
    >>> one = Value((1,), np.array([0]))
    >>> sizes_after(Node("Gather", {}, (Value((2,), None, whole), one), 1, 17)).tolist()
    ['n']
    """
    if node.operator == "Shape":
        return _shape(node)
    known = [_known(value) for value in node.there()]
    if node.operator == "Concat":
        return np.concatenate(known)
    if node.operator == "Gather" and node.given(1).sizes is None:
        return np.asarray(np.take(known[0], known[1].astype(int)), dtype=object)
    if node.operator == "Identity" or (node.operator == "Cast" and node.attributes["to"] in WHOLE):
        return known[0]
    if node.operator in ("Squeeze", "Unsqueeze", "Reshape") and known[0].size == 1:
        return known[0].reshape(()) if node.operator == "Squeeze" else known[0].reshape(1)
    if node.operator == "Slice":
        return _slice(node, known[0])
    raise Refused(f"{node.operator} computes with the number of rows")


def _shape(node: Node) -> Sizes:
    shape = node.first.shape
    if W in shape:
        raise Refused("Shape of words depends on the rows")
    found = np.array(shape, dtype=object)
    return found[node.attributes.get("start", 0) : node.attributes.get("end", len(shape))]


def _known(value: Value) -> Sizes:
    found = value.array if value.sizes is None else value.sizes
    if found is None:
        raise Refused("a shape depends on the values of the rows")
    return found.astype(object)


def _slice(node: Node, sizes: Sizes) -> Sizes:
    (start,), (end,) = node.option("starts", 1), node.option("ends", 2)
    return sizes[start : end : (node.option("steps", 4) or [1])[0]]
