"""Source folders whose predictor or density was made to harm; the hashes are right."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from onnx import load_model_from_string

from anymix.exchange.tensors import dump_arrays
from tests.exchange.hostile_folders import FILES, edit_arrays, edit_manifest, rehash
from tests.sandbox import trees
from tests.sandbox.graphs import lies
from tests.sandbox.random_graphs import random_graph

Rng = np.random.Generator
BIG = [0, -1, 1, 2, 7, 2**31 - 1, 2**31, 2**40, 2**62, -(2**62)]
NETWORK = ["Add", "MatMul", "Gemm", "Softmax", "Reshape", "Transpose", "Concat", "Gather", "Expand"]
LAYOUT = ["Pad", "Slice", "Split", "ReduceSum", "TopK", "Squeeze", "Unsqueeze", "Flatten", "Cast"]
CLASSICAL = ["Normalizer", "Scaler", "LinearRegressor", "LinearClassifier", "ArgMax", "Where"]
FORBIDDEN = ["Loop", "If", "Scan", "RandomNormal", "Tokenizer", "TfIdfVectorizer"]
OPERATORS = [*NETWORK, *LAYOUT, *CLASSICAL, *FORBIDDEN]


def hostile_graph(folder: Path, rng: Rng) -> str:
    """Damage a folder, and say how."""
    attack = ATTACKS[rng.integers(len(ATTACKS))]
    attack(folder, rng)
    if attack is not deep_manifest:  # which no one could read to set the hashes right
        rehash(folder)
    return attack.__name__


def lying_graph(folder: Path, rng: Rng) -> None:
    graphs = [*lies().values(), *trees.lies().values()]
    (folder / FILES[1]).write_bytes(graphs[rng.integers(len(graphs))])
    if rng.random() < 0.5:
        _as_regression(folder)


def any_graph(folder: Path, rng: Rng) -> None:
    (folder / FILES[1]).write_bytes(random_graph(rng))


def changed_graph(folder: Path, rng: Rng) -> None:
    """Change some fields of a real graph, each to something plausible or absurd."""
    path = folder / FILES[1]
    model = load_model_from_string(path.read_bytes())
    for _ in range(rng.integers(1, 4)):
        node = model.graph.node[rng.integers(len(model.graph.node))]
        _change_node(model, node, rng)
    path.write_bytes(model.SerializeToString())


def _change_node(model: Any, node: Any, rng: Rng) -> None:
    way = rng.integers(5)
    if way == 0:
        node.op_type = str(rng.choice(OPERATORS))
    elif way == 1 and len(node.input):
        names = [name for other in model.graph.node for name in (*other.input, *other.output)]
        node.input[rng.integers(len(node.input))] = str(rng.choice(names))
    elif way == 2 and len(node.attribute):
        _change_attribute(node.attribute[rng.integers(len(node.attribute))], rng)
    elif way == 3 and len(model.graph.initializer):
        tensor = model.graph.initializer[rng.integers(len(model.graph.initializer))]
        if len(tensor.dims):
            tensor.dims[rng.integers(len(tensor.dims))] = int(rng.choice(BIG))
    elif len(node.attribute):
        del node.attribute[rng.integers(len(node.attribute))]


def _change_attribute(attribute: Any, rng: Rng) -> None:
    size = int(rng.choice(BIG))
    if len(attribute.ints):
        attribute.ints[rng.integers(len(attribute.ints))] = size
    elif len(attribute.floats):
        at = rng.integers(len(attribute.floats))
        attribute.floats[at] = float(rng.choice([np.nan, np.inf, 1e38, -1e38, 0.0]))
        del attribute.floats[int(rng.integers(len(attribute.floats))) :]
    elif len(attribute.strings):
        attribute.strings[0] = bytes(rng.bytes(8))
    elif attribute.s:
        attribute.s = bytes(rng.choice([b"", b"\xff\xfe", b"SOFTMAX", b"NONE", b"x" * 10_000]))
    else:
        attribute.i = size


def huge_answers(folder: Path, rng: Rng) -> None:
    """Numbers that overflow when they are squared."""
    path = folder / FILES[1]
    model = load_model_from_string(path.read_bytes())
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.name in ("coefficients", "intercepts"):
                attribute.floats[:] = [float(rng.choice([1e38, 1e30, -1e25]))] * len(
                    attribute.floats
                )
    path.write_bytes(model.SerializeToString())


def many_kernels(folder: Path, rng: Rng) -> None:
    k = int(rng.choice([10_000, 300_000, 2_000_000]))
    arrays = {
        "centres": rng.normal(size=(k, 2)),
        "weights": np.full(k, 1 / k),
        "variances": np.linspace(1, 2, k),
        "bandwidth": np.ones(1),
    }
    (folder / FILES[2]).write_bytes(dump_arrays(arrays))


def many_components(folder: Path, rng: Rng) -> None:
    k = int(rng.choice([2_000, 20_000, 100_000]))
    covariances = np.broadcast_to(np.eye(2), (k, 2, 2)).copy()
    arrays = {"weights": np.full(k, 1 / k), "means": rng.normal(size=(k, 2))}
    (folder / FILES[2]).write_bytes(dump_arrays(arrays | {"covariances": covariances}))
    edit_manifest(folder, lambda m: m | {"density": "gaussian_mixture"})


def absurd_density(folder: Path, rng: Rng) -> None:
    def change(arrays: dict[str, Any]) -> None:
        name = str(rng.choice(list(arrays)))
        scale = float(rng.choice([1e-300, 1e-20, 1e20, 1e150, 1e300, -1.0, 0.0]))
        arrays[name] = arrays[name] * scale

    edit_arrays(folder, change)


def many_classes(folder: Path, rng: Rng) -> None:
    n = int(rng.choice([500, 5000, 100_000]))
    edit_manifest(folder, lambda m: m | {"classes": [f"c{i}" for i in range(n)]})


def many_features(folder: Path, rng: Rng) -> None:
    n = int(rng.choice([500, 20_000]))
    features = [{"name": f"x{i}", "dtype": "float32"} for i in range(n)]
    edit_manifest(folder, lambda m: m | {"features": features})


def words_that_lie(folder: Path, rng: Rng) -> None:
    """A text source whose vocabulary is a bomb."""
    words = [
        b"[]," * int(rng.choice([1000, 4_000_000])) + b'""',
        b"[" * 10_000,
        b'"' + b"a" * 10_000_000 + b'"',
        b'"a","a"',
        b"1,2",
        b'"\\ud800"',
    ][rng.integers(6)]
    content = np.frombuffer(b'{"unknown":"drop","words":[' + words + b"]}", np.uint8)
    numbers = {name: np.zeros(1) for name in ("log_unigram", "log_backoff")}
    listed = {"keys": np.zeros(0, np.int64), "log_listed": np.zeros(0), "words": content}
    (folder / FILES[2]).write_bytes(dump_arrays(numbers | listed))
    text = [{"name": "text", "dtype": "string"}]
    edit_manifest(folder, lambda m: m | {"density": "bigram", "features": text})


def names_that_lie(folder: Path, rng: Rng) -> None:
    name = str(
        rng.choice(["anymix", "uniform", "all", "\x1b[2J", "=1+1", "../x", "a\nb", "\u202e"])
    )
    key = str(rng.choice(["name", "reveals", "density", "task"]))
    edit_manifest(folder, lambda m: m | {key: name})


def deep_manifest(folder: Path, rng: Rng) -> None:
    text = (folder / FILES[0]).read_text()
    deep = int(rng.choice([40, 900, 100_000]))
    lie = [
        "[" * deep + "]" * deep,
        "1" * 5000,
        "[" + "[]," * 200_000 + "1]",
        '"\\ud800"',
        "true",
        "1.0",
        "1e400",
    ][rng.integers(7)]
    key = str(rng.choice(list(json.loads(text))))
    data = json.loads(text) | {key: "@"}
    (folder / FILES[0]).write_text(json.dumps(data).replace('"@"', lie))


def _as_regression(folder: Path) -> None:
    edit_manifest(folder, lambda m: m | {"task": "regression", "classes": None})


ATTACKS: tuple[Callable[[Path, Rng], None], ...] = (
    lying_graph,
    any_graph,
    changed_graph,
    changed_graph,
    huge_answers,
    many_kernels,
    many_components,
    absurd_density,
    many_classes,
    many_features,
    words_that_lie,
    names_that_lie,
    deep_manifest,
)
