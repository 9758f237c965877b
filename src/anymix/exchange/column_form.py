"""An exported graph that takes and gives columns, as tables have them.

Each output is one column, by the names that `anymix predict` gives them.  A table with words has an
input for each column, so that words go in as they are; complete numbers go in as one X.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anymix.exceptions import InputError
from anymix.exchange._optional import need
from anymix.exchange.features import Feature, MixedFeature
from anymix.exchange.labels import all_classes
from anymix.exchange.read import ReceivedSource

INNER = "anymix/"


def by_columns(content: bytes, received: Sequence[ReceivedSource]) -> bytes:
    """Return the graph of `export_onnx` with columns as its inputs and outputs."""
    onnx = need("onnx")
    model = onnx.compose.add_prefix(onnx.load_model_from_string(content), INNER)
    features = received[0].manifest.features
    parts = _Parts(onnx, model.graph)
    given = parts.inputs(features)
    names = [feature.name for feature in features]
    outputs = parts.outputs(_named_outputs(received))
    twice = sorted({value.name for value in outputs} & {*names, *(v.name for v in given)})
    if twice:
        raise InputError(
            f"the feature {twice[0]!r}",
            "has the name of a column that the model gives; rename it in the tables",
        )
    nodes = [*parts.before, *model.graph.node, *parts.after]
    for field, values in (("node", nodes), ("input", given), ("output", outputs)):
        model.graph.ClearField(field)
        getattr(model.graph, field).extend(values)
    model.graph.initializer.extend(parts.weights)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def _named_outputs(received: Sequence[ReceivedSource]) -> dict[str, list[str] | None]:
    """Name the columns of each output of the graph; one that is a column keeps its name."""
    classes = all_classes(received)
    weights = [f"weight({one.manifest.name})" for one in received]
    if classes is None:
        return {"prediction": None, "weights": weights}
    shares = [f"p({label})" for label in classes.tolist()]
    return {"label": None, "probabilities": shares, "weights": weights}


class _Parts:
    """Nodes before and after a graph, with the constants that they need."""

    def __init__(self, onnx: Any, graph: Any):
        self.make, self.onnx, self.graph = onnx.helper, onnx, graph
        self.before: list[Any] = []
        self.after: list[Any] = []
        self.weights: list[Any] = []
        self.kinds = {
            value.name: value.type.tensor_type.elem_type for value in (*graph.input, *graph.output)
        }

    def constant(self, value: Any) -> str:
        name = f"{INNER}column{len(self.weights)}"
        self.weights.append(self.onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def inputs(self, features: Sequence[Feature]) -> list[Any]:
        """Return one X of complete numbers, or a column for each feature."""
        value, n = self.graph.input[0], len(features)
        kind = self.kinds[value.name]
        if not any(isinstance(feature, MixedFeature) for feature in features):
            self.before.append(self.make.make_node("Identity", ["X"], [value.name]))
            return [self.make.make_tensor_value_info("X", kind, ["n", n])]
        found, columns = [], []
        # Who has one input is given a table of one column.
        shape: list[Any] = ["n", 1] if n == 1 else ["n"]
        for j, feature in enumerate(features):
            words = getattr(feature, "categories", None)
            own = kind if words is None else self.onnx.TensorProto.STRING
            found.append(self.make.make_tensor_value_info(feature.name, own, shape))
            columns.append(self._numbers(j, feature.name, words, kind))
        self.before.append(self.make.make_node("Concat", columns, [value.name], axis=1))
        return found

    def _numbers(self, j: int, name: str, words: Sequence[str] | None, kind: int) -> str:
        """A column as numbers (n, 1): the place of each word, NaN for a gap or another word."""
        flat, out = f"{INNER}flat{j}", f"{INNER}given{j}"
        shape = self.constant(np.array([-1, 1]))
        self.before.append(self.make.make_node("Reshape", [name, shape], [flat]))
        if words is None:
            return flat
        codes = f"{INNER}codes{j}"
        # A list without words would be no list of texts; no cell holds this one.
        keys = list(words) or ["\N{REPLACEMENT CHARACTER}"]
        node = self.make.make_node(
            "LabelEncoder",
            [flat],
            [codes],
            domain="ai.onnx.ml",
            keys_strings=keys,
            values_floats=[float(code) if words else np.nan for code in range(len(keys))],
            default_float=float("nan"),
        )
        self.before += [node, self.make.make_node("Cast", [codes], [out], to=kind)]
        return out

    def outputs(self, named: dict[str, list[str] | None]) -> list[Any]:
        """Return one output for each column."""
        found = []
        for output, columns in named.items():
            inner = INNER + output
            for j, name in enumerate(columns or [output]):
                at = [self.constant(np.array(j))] if columns else []
                node = ("Gather", {"axis": 1}) if columns else ("Identity", {})
                self.after.append(self.make.make_node(node[0], [inner, *at], [name], **node[1]))
                found.append(self.make.make_tensor_value_info(name, self.kinds[inner], ["n"]))
        return found
