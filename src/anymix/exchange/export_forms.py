"""Forms of an exported graph: by columns, in float32, and as a folder that MLflow opens.

A graph by columns takes and gives columns, as tables have them.  Each output is one column, by the
names that `anymix predict` gives them.  A table with categories has an input for each column;
complete numbers go in as one X.  MLflow hands a DataFrame to ONNX column by column; MLflow itself
is not needed to write its folder.
"""

from __future__ import annotations

import json
import platform
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np

from anymix._arrays import FloatArray
from anymix.exceptions import InputError
from anymix.exchange.conversion import COMPARED_ROWS
from anymix.exchange.manifest import Feature
from anymix.exchange.onnx_graph import Graph
from anymix.exchange.read import ReceivedSource, all_classes
from anymix.sandbox import open_session
from anymix.storage import need, to_yaml

INNER = "anymix/"


def by_columns(content: bytes, received: Sequence[ReceivedSource]) -> bytes:
    """Return the graph of `export_onnx` with columns as its inputs and outputs."""
    onnx = need("onnx")
    model = onnx.compose.add_prefix(onnx.load_model_from_string(content), INNER)
    features, classes = received[0].manifest.features, all_classes(received)
    graph = Graph(prefix=f"{INNER}columns/")
    given = _inputs(graph, model.graph.input[0], features)
    before = len(graph.nodes)
    named = {"weights": [f"weight({one.manifest.name})" for one in received]}
    if classes is not None:
        named["probabilities"] = [f"p({label})" for label in classes.tolist()]
    outputs = []
    for value in model.graph.output:
        output = value.name.removeprefix(INNER)
        for j, name in enumerate(named.get(output, [output])):
            if output in named:
                graph.add("Gather", value.name, graph.constant(np.array(j)), axis=1, out=name)
            else:
                graph.add("Identity", value.name, out=name)
            kind = value.type.tensor_type.elem_type
            outputs.append(onnx.helper.make_tensor_value_info(name, kind, ["n"]))
    taken = {feature.name for feature in features} | {value.name for value in given}
    twice = sorted({value.name for value in outputs} & taken)
    if twice:
        raise InputError(
            f"the feature {twice[0]!r}",
            "has the name of an output column of the model; rename it in the tables",
        )
    nodes = [*graph.nodes[:before], *model.graph.node, *graph.nodes[before:]]
    for field, values in (("node", nodes), ("input", given), ("output", outputs)):
        model.graph.ClearField(field)
        getattr(model.graph, field).extend(values)
    model.graph.initializer.extend(graph.weights)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def _inputs(graph: Graph, value: Any, features: Sequence[Feature]) -> list[Any]:
    """Add one X of complete numbers, or a column for each feature; return the inputs."""
    make, kind, n = graph.onnx.helper, value.type.tensor_type.elem_type, len(features)
    if features[0].gaps is None:
        graph.add("Identity", "X", out=value.name)
        return [make.make_tensor_value_info("X", kind, ["n", n])]
    found, columns = [], []
    # Who has one input is given a table of one column.
    shape: list[Any] = ["n", 1] if n == 1 else ["n"]
    for feature in features:
        words = feature.categories
        own = kind if words is None else graph.onnx.TensorProto.STRING
        found.append(make.make_tensor_value_info(feature.name, own, shape))
        column = graph.add("Reshape", feature.name, graph.constant(np.array([-1, 1])))
        if words is not None:
            # A list without words would be no list of texts; no cell holds this one.
            keys = list(words) or ["\N{REPLACEMENT CHARACTER}"]
            # The place of each word, NaN for a missing or another one.
            codes = graph.add(
                "LabelEncoder",
                column,
                domain="ai.onnx.ml",
                keys_strings=keys,
                values_floats=[float(code) if words else np.nan for code in range(len(keys))],
                default_float=float("nan"),
            )
            column = graph.add("Cast", codes, to=kind)
        columns.append(column)
    graph.add("Concat", *columns, axis=1, out=value.name)
    return found


# The largest difference that is taken: of a probability, or of a prediction over their spread.
FLOAT32_TOLERANCE = 1e-3


class Float32Difference(NamedTuple):
    """The largest difference at `n_rows` rows, and the share of them that get another label.

    Of probabilities it is absolute; of predictions it is relative to their standard deviation.
    """

    largest: float
    other_labels: float
    n_rows: int

    @property
    def holds(self) -> bool:
        """Whether the difference is within the tolerance; unknown without rows."""
        return self.n_rows == 0 or self.largest <= FLOAT32_TOLERANCE

    def __str__(self) -> str:
        if not self.n_rows:
            return "not compared with float64, as no density tells what rows look like"
        moved = f", {100 * self.other_labels:.2g} % with another label" * (self.other_labels > 0)
        return f"at most {self.largest:.1g} from float64 at {self.n_rows} rows{moved}"


def float32_difference(wide: bytes, narrow: bytes, rows: FloatArray | None) -> Float32Difference:
    """Compare two graphs of one model, which take float64 and float32, at rows (n, d)."""
    if rows is None or not len(rows):
        return Float32Difference(0.0, 0.0, 0)
    due: dict[str, Any] = {}
    found: dict[str, Any] = {}
    for content, given, answers in ((wide, rows, due), (narrow, rows.astype(np.float32), found)):
        session = open_session(content)
        names = [output.name for output in session.get_outputs()]
        answers.update(zip(names, session.run(names, {"X": given}), strict=True))
    numbers = "probabilities" if "probabilities" in due else "prediction"
    scale = 1.0 if numbers == "probabilities" else float(due[numbers].std()) or 1.0
    # What is not finite compares as false, and so counts as far.
    apart = np.abs(found[numbers] - due[numbers]) / scale
    largest = float(apart.max()) if np.isfinite(apart).all() else np.inf
    other = float(np.mean(due["label"] != found["label"])) if "label" in due else 0.0
    return Float32Difference(largest, other, len(rows))


def draws_of(received: Sequence[ReceivedSource]) -> FloatArray | None:
    """Return rows drawn from the density of each source; None if one has none."""
    densities = [one.source.density for one in received]
    if any(density is None or not hasattr(density, "sample") for density in densities):
        return None
    drawn = [density.sample(COMPARED_ROWS, random_state=0) for density in densities]
    return np.concatenate([np.asarray(rows, dtype=float) for rows in drawn])


GRAPH = "model.onnx"
MLFLOW_FILES = (
    "MLmodel",
    GRAPH,
    "conda.yaml",
    "input_example.json",
    "python_env.yaml",
    "requirements.txt",
    "serving_input_example.json",
)
SIGNATURE_TYPES = {1: "float", 11: "double", 7: "long", 8: "string"}


def mlflow_files(
    content: bytes, features: Sequence[Feature], rows: FloatArray | None
) -> dict[str, bytes]:
    """Return the files of the folder, of a graph by columns.

    The example is the mean of `rows` (n, d), and of words the first; no row is handed on.
    """
    model = need("onnx").load_model_from_string(content)
    usual = np.zeros(len(features)) if rows is None else np.nan_to_num(rows).mean(axis=0)
    cells = [
        float(f"{number:.3g}") if feature.categories is None else next(iter(feature.categories), "")
        for feature, number in zip(features, usual, strict=True)
    ]
    # One row as pandas splits it.
    example = {"columns": [feature.name for feature in features], "data": [cells]}
    needs = ["mlflow", f"onnx=={version('onnx')}", f"onnxruntime=={version('onnxruntime')}"]
    conda = {
        "channels": ["conda-forge"],
        "dependencies": [f"python={platform.python_version()}", "pip", {"pip": needs}],
        "name": "mlflow-env",
    }
    python_env = {
        "python": platform.python_version(),
        "build_dependencies": ["pip", "setuptools", "wheel"],
        "dependencies": ["-r requirements.txt"],
    }
    files = {
        "MLmodel": to_yaml(_mlmodel(model, features, len(content))),
        "conda.yaml": to_yaml(conda),
        "input_example.json": json.dumps(example),
        "python_env.yaml": to_yaml(python_env),
        "requirements.txt": "\n".join(needs) + "\n",
        "serving_input_example.json": json.dumps({"dataframe_split": example}),
    }
    return {GRAPH: content, **{name: text.encode() for name, text in files.items()}}


def _mlmodel(model: Any, features: Sequence[Feature], size: int) -> dict[str, Any]:
    """Return what MLmodel says; its fields are those that MLflow writes."""
    notes = {one.key: one.value for one in model.metadata_props if one.key != "columns"}
    return {
        "flavors": {
            "onnx": {
                "code": None,
                "data": GRAPH,
                "onnx_session_options": None,
                "onnx_version": version("onnx"),
                "providers": ["CPUExecutionProvider"],
            },
            "python_function": {
                "data": GRAPH,
                "env": {"conda": "conda.yaml", "virtualenv": "python_env.yaml"},
                "loader_module": "mlflow.onnx",
                "python_version": platform.python_version(),
            },
        },
        "metadata": notes,
        "model_size_bytes": size,
        "model_uuid": uuid.uuid4().hex,
        "saved_input_example_info": {
            "artifact_path": "input_example.json",
            "pandas_orient": "split",
            "serving_input_path": "serving_input_example.json",
            "type": "dataframe",
        },
        "signature": _signature(model, features),
        "utc_time_created": str(datetime.now(UTC).replace(tzinfo=None)),
    }


def _signature(model: Any, features: Sequence[Feature]) -> dict[str, Any]:
    """Return the columns that go in and come out."""
    # MLflow takes NaN for a number; that a category may be missing has to be stated.
    inputs = [
        {
            "type": "double" if feature.categories is None else "string",
            "name": feature.name,
            "required": not feature.gaps,
        }
        for feature in features
    ]
    kinds = {value.name: value.type.tensor_type.elem_type for value in model.graph.output}
    outputs = [
        {"type": SIGNATURE_TYPES[kind], "name": name, "required": True}
        for name, kind in kinds.items()
    ]
    return {"inputs": json.dumps(inputs), "outputs": json.dumps(outputs), "params": None}
