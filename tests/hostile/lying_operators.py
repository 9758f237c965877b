"""Operators whose lists are too short, or name what is not there: on rows, and on constants.

Versions of onnxruntime before 1.26 read memory that is not theirs for some of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

F32, I64 = np.float32, np.int64
LEAST, FAR = -(2**63), 10**6
ML = "ai.onnx.ml"
TREE = {
    "nodes_treeids": [0, 0, 0],
    "nodes_nodeids": [0, 1, 2],
    "nodes_featureids": [0, 0, 0],
    "nodes_values": [0.0, 0.0, 0.0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
}
NUMBERS = {"target_treeids": [0, 0], "target_nodeids": [1, 2], "target_ids": [0, 0]}
NUMBERS |= {"target_weights": [1.0, 2.0], "n_targets": 1}
KERNEL = {"kernel_type": "RBF", "kernel_params": [0.5, 0.0, 3.0]}
LABELS = {"classlabels_ints": [0, 1]}
WORDS = {"mode": "TF", "min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0}
WORDS |= {"ngram_counts": [0], "ngram_indexes": [0, 1], "pool_int64s": [0, 1]}
# Name -> operator of ai.onnx.ml, and its attributes.
LIES: dict[str, tuple[str, dict[str, Any]]] = {
    **{f"feature {f}": ("Tree", {"nodes_featureids": [f, 0, 0]}) for f in (2, FAR, -1, -FAR)},
    **{f"target {t}": ("Tree", {"target_ids": [0, t]}) for t in (5, FAR, -5, 2**31)},
    **{f"{n} targets": ("Tree", {"n_targets": n}) for n in (0, -3, 2**40)},
    "cycle": ("Tree", {"nodes_modes": ["BRANCH_LEQ"] * 3, "nodes_truenodeids": [1, 0, 0]}),
    "child that is not there": ("Tree", {"nodes_truenodeids": [77, 0, 0]}),
    "leaf that is not there": ("Tree", {"target_nodeids": [1, 9]}),
    "no values": ("Tree", {"nodes_values": []}),
    "few values": ("Tree", {"nodes_values": [0.0]}),
    "few weights": ("Tree", {"target_weights": [1.0]}),
    "many base values": ("Tree", {"base_values": [0.0] * 9}),
    "few coefficients": ("LinearRegressor", {"coefficients": [1.0], "targets": 1}),
    "many targets": ("LinearRegressor", {"coefficients": [1.0, 1.0], "targets": 1000}),
    "few intercepts": (
        "LinearRegressor",
        {"coefficients": [1.0] * 8, "intercepts": [1.0], "targets": 4},
    ),
    "few scores": (
        "LinearClassifier",
        {"coefficients": [1.0], "intercepts": [0.0, 0.0], **LABELS},
    ),
    "many labels": (
        "LinearClassifier",
        {"coefficients": [1.0] * 4, "intercepts": [0.0] * 2, "classlabels_ints": [*range(1000)]},
    ),
    "one label": (
        "LinearClassifier",
        {"coefficients": [1.0] * 2000, "intercepts": [0.0] * 1000, "classlabels_ints": [0]},
    ),
    "many supports": (
        "SVMRegressor",
        {**KERNEL, "support_vectors": [1.0, 1.0], "n_supports": FAR, "rho": [0.0]},
    ),
    "few weights of supports": (
        "SVMRegressor",
        {
            **KERNEL,
            "support_vectors": [1.0] * 200,
            "n_supports": 100,
            "coefficients": [1.0],
            "rho": [0.0],
        },
    ),
    "no rho": (
        "SVMRegressor",
        {**KERNEL, "support_vectors": [1.0, 1.0], "n_supports": 1, "coefficients": [1.0]},
    ),
    "few linear weights": ("SVMRegressor", {"coefficients": [1.0], "rho": [0.0]}),
    "many vectors": (
        "SVMClassifier",
        {
            **KERNEL,
            **LABELS,
            "support_vectors": [1.0] * 4,
            "vectors_per_class": [FAR, FAR],
            "coefficients": [1.0, 1.0],
            "rho": [0.0],
        },
    ),
    "negative vectors": (
        "SVMClassifier",
        {
            **KERNEL,
            **LABELS,
            "support_vectors": [1.0] * 4,
            "vectors_per_class": [-5, 7],
            "coefficients": [1.0] * 2,
            "rho": [0.0],
        },
    ),
    "short rho": (
        "SVMClassifier",
        {
            **KERNEL,
            "classlabels_ints": [0, 1, 2],
            "support_vectors": [1.0] * 6,
            "vectors_per_class": [1, 1, 1],
            "coefficients": [1.0] * 6,
            "rho": [0.0],
        },
    ),
    "short scaler": ("Scaler", {"offset": [0.0], "scale": [1.0, 2.0, 3.0]}),
    "long imputer": ("Imputer", {"imputed_value_floats": [0.0] * 3, "replaced_value_float": 0.0}),
    "sizes of others": ("FeatureVectorizer", {"inputdimensions": [1000]}),
    "lists that differ": (
        "LabelEncoder",
        {"keys_floats": [1.0, 2.0], "values_floats": [5.0], "default_float": 0.0},
    ),
}
# Name -> operator, its further inputs, and its attributes; the first input is rows or a constant.
MOVES: dict[str, tuple[str, list[Any], dict[str, Any]]] = {
    "entry far away": ("Gather", [np.array([FAR], I64)], {"axis": 1}),
    "pads below 0": ("Pad", [np.array([0, -100, 0, 101], I64)], {}),
    "parts below 0": ("Split", [np.array([-5, 7], I64)], {"axis": 1}),
    "more than there is": ("TopK", [np.array([10**9], I64)], {"axis": 1}),
    "axis that is not there": ("CumSum", [np.array(99, I64)], {}),
    "short scale": ("LayerNormalization", [np.ones(1, F32)], {"axis": 1}),
    "column far away": (f"{ML}.ArrayFeatureExtractor", [np.array([FAR], I64)], {}),
    "column below 0": (f"{ML}.ArrayFeatureExtractor", [np.array([-FAR], I64)], {}),
}
# Of images (n, 1, 4, 4).
WINDOWS: dict[str, tuple[str, list[Any], dict[str, Any]]] = {
    "kernel of 0": ("AveragePool", [], {"kernel_shape": [0, 0]}),
    "stride of 0": ("MaxPool", [], {"kernel_shape": [2, 2], "strides": [0, 0]}),
    "pads of -9": ("MaxPool", [], {"kernel_shape": [2, 2], "pads": [-9, -9, 11, 11]}),
    "far apart": ("MaxPool", [], {"kernel_shape": [2, 2], "dilations": [2**40, 2**40]}),
    "groups": ("Conv", [np.ones((1, 1, 2, 2), F32)], {"group": 3}),
    "another kernel": ("Conv", [np.ones((1, 1, 2, 2), F32)], {"kernel_shape": [4, 4]}),
    "scales of others": ("InstanceNormalization", [np.ones(3, F32)] * 2, {}),
    "statistics of others": ("BatchNormalization", [np.ones(3, F32)] * 4, {}),
}


def lying_operators() -> Iterator[tuple[str, bytes]]:
    """Yield a name and a graph of two columns, on rows and on constants."""
    for place in ("rows", "constants"):
        for name, (operator, attributes) in LIES.items():
            tree = operator == "Tree"
            known = TREE | NUMBERS | attributes if tree else attributes
            one = "TreeEnsembleRegressor" if tree else operator
            yield f"{one}, {name}, of {place}", _graph(f"{ML}.{one}", place, [], known)
        for name, (operator, further, attributes) in MOVES.items():
            yield f"{operator}, {name}, of {place}", _graph(operator, place, further, attributes)
        for name, (operator, further, attributes) in WINDOWS.items():
            content = _graph(operator, place, further, attributes, image=True)
            yield f"{operator}, {name}, of {place}", content
    yield "a tree that is too deep", _graph(f"{ML}.TreeEnsembleRegressor", "rows", [], _deep())
    yield "words, few counts", _words({"ngram_counts": [0, 100], "max_gram_length": 2})
    yield "words, few weights", _words({"mode": "TFIDF", "weights": [1.0]})
    yield "words at places below 0", _words({"ngram_indexes": [-FAR, 2]})


def magic_row(divisor: str) -> bytes:
    """A predictor that divides the least whole number by -1, or by 0, where a number is 42.4242.

    Such a division ends the process that runs it.
    """
    given = {"magic": np.array(42.4242, F32), "least": np.array(LEAST, I64)}
    given |= {"first": np.array([0], I64), "one": np.array(1, I64), "zero": np.array(0, F32)}
    given |= {"step": np.array(2 if divisor == "-1" else 1, I64), "W": np.ones((2, 1), F32)}
    nodes = [
        helper.make_node("Gather", ["X", "first"], ["c"], axis=1),
        helper.make_node("Equal", ["c", "magic"], ["hit"]),
        helper.make_node("Cast", ["hit"], ["h"], to=TensorProto.INT64),
        helper.make_node("Mul", ["h", "step"], ["m"]),
        helper.make_node("Sub", ["one", "m"], ["d"]),
        helper.make_node("Div", ["least", "d"], ["q"]),
        helper.make_node("Cast", ["q"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["f", "zero"], ["z"]),
        helper.make_node("MatMul", ["X", "W"], ["r"]),
        helper.make_node("Add", ["r", "z"], ["Y"]),
    ]
    return _model(nodes, given)


def _graph(
    operator: str, place: str, further: list[Any], attributes: dict[str, Any], image: bool = False
) -> bytes:
    domain, _, name = operator.rpartition(".")
    given = {f"further{i}": array for i, array in enumerate(further)}
    first = {"rows": "X", "constants": "C"}[place]
    given |= {"C": np.ones((1, 2), F32), "W": np.ones((2, 1), F32)}
    nodes = []
    if image:
        given |= {"I": np.ones((1, 1, 4, 4), F32), "shape": np.array([-1, 1, 1, 2], I64)}
        given |= {"eight": np.array([1, 1, 4, 2], I64)}
        if place == "rows":
            nodes.append(helper.make_node("Reshape", ["X", "shape"], ["J"]))
            nodes.append(helper.make_node("Expand", ["J", "eight"], ["X4"]))
        first = {"rows": "X4", "constants": "I"}[place]
    outputs = ["L", "K"] if "Classifier" in name else ["K", "K2"] if name == "Split" else ["K"]
    nodes.append(
        helper.make_node(name, [first, *given][: 1 + len(further)], outputs, domain=domain)
    )
    for key, value in attributes.items():
        known = {"attr_type": 6} if value == [] else {}
        nodes[-1].attribute.append(helper.make_attribute(key, value, **known))
    axes = [1, 2, 3] if image else [1]
    nodes += [
        helper.make_node("Cast", ["K"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMax", ["f"], ["m"], axes=axes, keepdims=0),
        helper.make_node("MatMul", ["X", "W"], ["y"]),
        helper.make_node("Reshape", ["m", "column"], ["n"]),
        helper.make_node("Add", ["y", "n"], ["Y"]),
    ]
    return _model(nodes, given | {"column": np.array([-1, 1], I64)})


def _words(change: dict[str, Any]) -> bytes:
    node = helper.make_node("TfIdfVectorizer", ["c"], ["K"], **(WORDS | change))
    cast = helper.make_node("Cast", ["X"], ["c"], to=TensorProto.INT64)
    total = helper.make_node("ReduceMax", ["K"], ["Y"], axes=[1], keepdims=1)
    return _model([cast, node, total], {})


def _deep(depth: int = 100_000) -> dict[str, Any]:
    n = 2 * depth + 1
    yes = np.zeros(n, int)
    no = np.zeros(n, int)
    yes[:-1:2], no[:-1:2] = np.arange(1, n, 2), np.arange(2, n, 2)
    change = {"nodes_treeids": [0] * n, "nodes_nodeids": [*range(n)], "nodes_values": [0.0] * n}
    change |= {"nodes_modes": ["BRANCH_LEQ", "LEAF"] * depth + ["LEAF"]}
    change |= {"nodes_truenodeids": yes.tolist(), "nodes_falsenodeids": no.tolist()}
    change |= {"nodes_featureids": [0] * n, "target_treeids": [0], "target_nodeids": [n - 1]}
    return TREE | NUMBERS | change | {"target_ids": [0], "target_weights": [1.0]}


def _model(nodes: list[Any], constants: dict[str, Any]) -> bytes:
    used = {name for node in nodes for name in node.input}
    weights = [numpy_helper.from_array(a, name) for name, a in constants.items() if name in used]
    given = helper.make_tensor_value_info("X", TensorProto.FLOAT, ["n", 2])
    out = helper.make_tensor_value_info("Y", TensorProto.FLOAT, ["n", 1])
    body = helper.make_graph(nodes, "g", [given], [out], weights)
    versions = [helper.make_opsetid("", 17), helper.make_opsetid(ML, 3)]
    return bytes(helper.make_model(body, opset_imports=versions, ir_version=8).SerializeToString())
