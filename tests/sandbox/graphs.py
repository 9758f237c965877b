"""Small ONNX graphs: an honest one, and the ways in which a stranger's may lie."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from google.protobuf.message import DecodeError
from onnx import TensorProto, helper, load_model_from_string, numpy_helper

F32, I64 = np.float32, np.int64
ZERO, FIFTY, AXIS = ("zero", F32(0)), ("fifty", F32(50)), ("axis", np.array([1], I64))
node = helper.make_node


def graph(
    nodes: list[Any],
    weights: list[tuple[str, Any]] = (),
    columns: int | None = 1,
    opset: int = 17,
    ml: int = 3,
) -> bytes:
    """Write a graph from X (n, 2) to Y."""
    shape = ["n"] if columns is None else ["n", columns]
    inner = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, ["n", 2])],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in weights],
    )
    domains = {"": opset, "ai.onnx.ml": ml}
    opsets = [helper.make_opsetid(domain, version) for domain, version in domains.items()]
    return helper.make_model(inner, opset_imports=opsets, ir_version=8).SerializeToString()


def linear() -> bytes:
    return graph([node("MatMul", ["X", "w"], ["Y"])], [("w", np.ones((2, 1), F32))])


def _sum_of(name: str) -> list[Any]:
    return [node("ReduceSum", [name, "axis"], ["Y"], keepdims=1)]


def _sized_by_value() -> list[Any]:
    """k = int(relu(max(X) − 50) 1e11) + 1."""
    return [
        node("ReduceMax", ["X"], ["m"], keepdims=0),
        node("Sub", ["m", "fifty"], ["a"]),
        node("Relu", ["a"], ["b"]),
        node("Mul", ["b", "gain"], ["c"]),
        node("Cast", ["c"], ["ci"], to=TensorProto.INT64),
        node("Reshape", ["ci", "flat"], ["k"]),
    ]


def _by_number_of_rows() -> list[Any]:
    return [
        node("Shape", ["X"], ["shape"]),
        node("Gather", ["shape", "first"], ["rows"], axis=0),
        node("Less", ["rows", "thousand"], ["few"]),
        node("MatMul", ["X", "w"], ["good"]),
        node("Mul", ["good", "minus"], ["bad"]),
        node("Where", ["few", "good", "bad"], ["Y"]),
    ]


def _transposed_product() -> list[Any]:
    return [
        node("Transpose", ["X"], ["T"], perm=[1, 0]),
        node("MatMul", ["X", "T"], ["G"]),
        node("ReduceSum", ["G", "axis"], ["Y"], keepdims=1),
    ]


GAIN, FLAT = ("gain", F32(1e11)), ("flat", np.array([1], I64))
COUNT = [
    ("first", np.array([0], I64)),
    ("thousand", np.array([1000], I64)),
    ("w", np.ones((2, 1), F32)),
    ("minus", F32(-50)),
]
SEED = ("seed", np.ones(1, F32))


def lies() -> dict[str, bytes]:
    """Name graphs that must be refused, of operators that are allowed one by one."""
    noise = ("ratio", F32(0.5)), ("train", np.array(True))
    unit = [("s", np.ones(2, F32)), ("b", np.zeros(2, F32))]
    stats = [*unit, ("m", np.zeros(2, F32)), ("v", np.ones(2, F32))]
    tail = [
        node("ReduceMax", ["big"], ["t"], keepdims=0),
        node("Mul", ["t", "zero"], ["z"]),
        node("ReduceSum", ["X", "axis"], ["r"], keepdims=1),
        node("Add", ["r", "z"], ["Y"]),
    ]
    sized, weights = _sized_by_value(), [FIFTY, GAIN, FLAT, ZERO, AXIS, SEED]
    return {
        "expand by value": graph([*sized, node("Expand", ["seed", "k"], ["big"]), *tail], weights),
        "pad by value": graph(
            [
                *sized,
                node("Concat", ["none", "k"], ["pads"], axis=0),
                node("Pad", ["seed", "pads"], ["big"]),
                *tail,
            ],
            [*weights, ("none", np.array([0], I64))],
        ),
        "top k by value": graph(
            [*sized, node("TopK", ["X", "k"], ["big", "i"], axis=1), *tail], weights
        ),
        "behaves in small batches": graph(_by_number_of_rows(), COUNT),
        "dropout in training": graph(
            [node("Dropout", ["X", "ratio", "train"], ["D"]), *_sum_of("D")], [*noise, AXIS]
        ),
        "a coin in a constant": graph(
            [
                node("Dropout", ["w", "ratio", "train"], ["D"]),
                node("MatMul", ["X", "D"], ["Y"]),
            ],
            [*noise, ("w", np.ones((2, 1), F32))],
        ),
        "a cast that depends on the place": graph(
            [
                node("Mul", ["X", "gain"], ["G"]),
                node("Cast", ["G"], ["C"], to=TensorProto.UINT32),
                node("Cast", ["C"], ["D"], to=TensorProto.FLOAT),
                *_sum_of("D"),
            ],
            [GAIN, AXIS],
        ),
        "weights made of rows": graph(
            [
                node("ReduceSum", ["X", "axis"], ["s"], keepdims=0),
                node("LayerNormalization", ["X", "s"], ["L"], axis=1),
                *_sum_of("L"),
            ],
            [AXIS],
        ),
        "batch statistics": graph(
            [
                node(
                    "BatchNormalization",
                    ["X", "s", "b", "m", "v"],
                    ["B", "m2", "v2"],
                    training_mode=1,
                ),
                *_sum_of("B"),
            ],
            [*stats, AXIS],
        ),
        "largest of all rows": graph(
            [
                node("ReduceMax", ["X"], ["M"], axes=[0], keepdims=1),
                node("Sub", ["X", "M"], ["S"]),
                *_sum_of("S"),
            ],
            [AXIS],
        ),
        "the first row in all": graph(
            [
                node("Gather", ["X", "first"], ["r"], axis=0),
                node("Mul", ["X", "zero"], ["Z"]),
                node("Add", ["Z", "r"], ["A"]),
                *_sum_of("A"),
            ],
            [("first", np.array([0], I64)), ZERO, AXIS],
        ),
        "softmax over rows": graph([node("Softmax", ["X"], ["S"], axis=0), *_sum_of("S")], [AXIS]),
        "product of rows": graph(_transposed_product(), [AXIS]),
        "one vector of all rows": graph(
            [node("Reshape", ["X", "shape"], ["R"]), node("Reshape", ["R", "back"], ["Y"])],
            [("shape", np.array([1, -1], I64)), ("back", np.array([-1, 1], I64))],
        ),
        "rows against rows": graph(
            [
                node("ReduceSum", ["X", "axis"], ["r"], keepdims=0),
                node("ReduceSum", ["X", "axis"], ["column"], keepdims=1),
                node("Add", ["r", "column"], ["A"]),
                *_sum_of("A"),
            ],
            [AXIS],
        ),
        "one row loses its axis": graph(
            [node("ReduceSum", ["X", "axis"], ["r"], keepdims=1), node("Squeeze", ["r"], ["Y"])],
            [AXIS],
            columns=None,
        ),
        "place in the batch": graph(
            [
                node("Reshape", ["X", "shape"], ["I"]),
                node("MaxPool", ["I"], ["P", "at"], kernel_shape=[2]),
                node("Cast", ["at"], ["f"], to=TensorProto.FLOAT),
                node("Reshape", ["f", "back"], ["Y"]),
            ],
            [("shape", np.array([-1, 1, 2], I64)), ("back", np.array([-1, 1], I64))],
        ),
        "no answer at all": graph(
            [node("Sub", ["X", "X"], ["z"]), node("Div", ["z", "z"], ["q"]), *_sum_of("q")], [AXIS]
        ),
        "too much for one row": graph(
            [
                node("MatMul", ["X", "w"], ["h"]),
                *(node("MatMul", [f"h{i}" if i else "h", "u"], [f"h{i + 1}"]) for i in range(4000)),
                node("ReduceSum", ["h4000", "axis"], ["Y"], keepdims=1),
            ],
            [("w", np.ones((2, 2100), F32)), ("u", np.zeros((2100, 2100), F32)), AXIS],
        ),
    }


def as_runtime_format(content: bytes, place: Path) -> bytes:
    """Write a graph in onnxruntime's own format."""
    options, path = onnxruntime.SessionOptions(), str(place / "t.ort")
    options.optimized_model_filepath = path
    options.add_session_config_entry("session.save_model_format", "ORT")
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return Path(path).read_bytes()


def two_in_one(shown: bytes, hidden: bytes) -> bytes:
    """One file that is a graph to onnx, and another to onnxruntime: ORTM at byte 4."""
    root = int.from_bytes(hidden[:4], "little")
    for first in range(0x08, 0x80, 8):
        for second in (0x00, 0x01):
            head = bytes([first, 0x08, 0x92, second])
            size = int.from_bytes(head, "little") - root
            if first % 8 or size % 16 or size < 1000:
                continue
            out = head + b"ORTM" + b"\0" * 76 + shown + b"\xc2\x3e"
            need = size - len(out) - 4
            total = need + len(hidden)
            length = [(total >> 7 * i & 0x7F) | 0x80 * (i < 3) for i in range(4)]
            whole = out + bytes(length) + b"\0" * need + hidden
            if _is_graph(whole):
                return whole
    raise AssertionError("no head was found")


def _is_graph(content: bytes) -> bool:
    try:
        return len(load_model_from_string(content).graph.node) > 0
    except DecodeError:
        return False
