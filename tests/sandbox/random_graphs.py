"""Random graphs of allowed operators with random settings; most of them mix rows or do not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

Rng = np.random.Generator
node = helper.make_node
REDUCE = ["ReduceMax", "ReduceMean", "ReduceL2", "ReduceLogSumExp"]
N_FEATURES = 3


class Draft:
    """Nodes that are added one after the other, each on values that are there."""

    def __init__(self, rng: Rng):
        self.rng, self.nodes, self.weights, self.values = rng, [], [], ["X"]

    def some(self) -> str:
        """Return the last value, mostly."""
        return self.values[-1 if self.rng.random() < 0.7 else self.rng.integers(len(self.values))]

    def constant(self, array: Any) -> str:
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weight(self, least: int = 0, most: int = 4) -> str:
        shape = self.rng.choice([1, 2, 3, 4], size=self.rng.integers(least, most))
        return self.constant(self.rng.normal(size=shape).astype(np.float32))

    def axis(self) -> int:
        return int(self.rng.integers(-3, 4))

    def axes(self) -> str:
        return self.constant(np.array([self.axis()]))

    def flag(self) -> int:
        return int(self.rng.integers(2))

    def add(self, operator: str, *inputs: str, last: bool = True, **settings: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(node(operator, list(inputs), [name], **settings))
        if last:
            self.values.append(name)
        return name


def _pair(d: Draft) -> None:
    other = d.some() if d.flag() else d.weight()
    d.add(str(d.rng.choice(["Add", "Mul", "Sub", "Max", "Div"])), d.some(), other)


def _product(d: Draft) -> None:
    d.add("MatMul", d.some(), d.some() if d.flag() else d.weight())


def _gemm(d: Draft) -> None:
    d.add("Gemm", d.some(), d.weight(2, 3), transA=d.flag(), transB=d.flag())


def _reduce(d: Draft) -> None:
    if d.flag():
        d.add("ReduceSum", d.some(), d.axes(), keepdims=d.flag())
    else:
        d.add(str(d.rng.choice(REDUCE)), d.some(), axes=[d.axis()], keepdims=d.flag())


def _turn(d: Draft) -> None:
    order = d.rng.permutation(d.rng.integers(1, 4)).tolist()
    d.add("Transpose", d.some(), perm=order)


def _reshape(d: Draft) -> None:
    target = d.rng.choice([-1, 0, 1, 2, 3, 4], size=d.rng.integers(1, 4))
    d.add("Reshape", d.some(), d.constant(target))


def _by_shape(d: Draft) -> None:
    shape = d.add("Shape", d.some(), last=False)
    d.add("Expand" if d.flag() else "Reshape", d.some(), shape)


def _compare_shape(d: Draft) -> None:
    shape = d.add("Shape", d.some(), last=False)
    d.add("Cast", d.add("Gather", shape, d.constant([0]), last=False), to=TensorProto.FLOAT)


def _along(d: Draft) -> None:
    operator = str(d.rng.choice(["Softmax", "Flatten"]))
    d.add(operator, d.some(), axis=d.axis())


def _axes(d: Draft) -> None:
    d.add("Unsqueeze" if d.flag() else "Squeeze", d.some(), d.axes())


def _join(d: Draft) -> None:
    d.add("Concat", d.some(), d.some(), axis=d.axis())


def _pick(d: Draft) -> None:
    at = d.rng.integers(0, 2, size=d.rng.integers(1, 3, size=d.rng.integers(0, 3)))
    d.add("Gather", d.some(), d.constant(at), axis=d.axis())


def _cut(d: Draft) -> None:
    start, end = (d.constant([int(d.rng.integers(low, low + 3))]) for low in (0, 1))
    d.add("Slice", d.some(), start, end, d.axes())


def _largest(d: Draft) -> None:
    at = d.add("ArgMax", d.some(), last=False, axis=d.axis(), keepdims=d.flag())
    if d.flag():
        d.add("GatherElements", d.some(), at, axis=d.axis())
    else:
        d.add("Gather", d.constant(d.rng.normal(size=5).astype(np.float32)), at)


def _pad(d: Draft) -> None:
    d.add("Pad", d.some(), d.constant(d.rng.integers(0, 2, size=2 * d.rng.integers(1, 4))))


STEPS: list[Callable[[Draft], None]] = [
    _pair,
    _product,
    _gemm,
    _reduce,
    _turn,
    _reshape,
    _by_shape,
    _compare_shape,
    _along,
    _axes,
    _join,
    _pick,
    _cut,
    _largest,
    _pad,
]


def random_graph(rng: Rng) -> bytes:
    """Write a graph from X (n, 3) to Y."""
    draft = Draft(rng)
    for _ in range(rng.integers(1, 6)):
        STEPS[rng.integers(len(STEPS))](draft)
    draft.nodes.append(node("Identity", [draft.values[-1]], ["Y"]))
    given = helper.make_tensor_value_info("X", TensorProto.FLOAT, ["n", N_FEATURES])
    out = helper.make_tensor_value_info("Y", TensorProto.FLOAT, None)
    whole = helper.make_graph(draft.nodes, "g", [given], [out], draft.weights)
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(whole, opset_imports=opset, ir_version=8).SerializeToString()
