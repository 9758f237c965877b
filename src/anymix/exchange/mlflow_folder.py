"""A folder that MLflow opens as its own: MLmodel, the graph, and what it needs to run.

MLflow itself is not needed to write it.  The graph takes and gives columns (column_form), as
MLflow hands a DataFrame to ONNX column by column and takes one column for each output.
"""

from __future__ import annotations

import json
import platform
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np

from anymix._arrays import FloatArray
from anymix.exchange._optional import need
from anymix.exchange.features import Feature, gaps_of
from anymix.storage import to_yaml

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
    notes = {one.key: one.value for one in model.metadata_props}
    example = _example(features, rows)
    needs = ["mlflow", f"onnx=={version('onnx')}", f"onnxruntime=={version('onnxruntime')}"]
    files = {
        "MLmodel": to_yaml(_described(model, features, notes, len(content))),
        "conda.yaml": to_yaml(_conda(needs)),
        "input_example.json": json.dumps(example),
        "python_env.yaml": to_yaml(_python_env()),
        "requirements.txt": "\n".join(needs) + "\n",
        "serving_input_example.json": json.dumps({"dataframe_split": example}),
    }
    return {GRAPH: content, **{name: text.encode() for name, text in files.items()}}


def _described(
    model: Any, features: Sequence[Feature], notes: dict[str, str], size: int
) -> dict[str, Any]:
    """Return what MLmodel says; its fields are those that MLflow writes."""
    told = {key: value for key, value in notes.items() if key != "columns"}
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
        "metadata": told,
        "model_size_bytes": size,
        "model_uuid": uuid.uuid4().hex,
        "saved_input_example_info": {
            "artifact_path": "input_example.json",
            "pandas_orient": "split",
            "serving_input_path": "serving_input_example.json",
            "type": "dataframe",
        },
        "signature": {
            "inputs": json.dumps(_given(features)),
            "outputs": json.dumps(_gives(model)),
            "params": None,
        },
        "utc_time_created": str(datetime.now(UTC).replace(tzinfo=None)),
    }


def _given(features: Sequence[Feature]) -> list[dict[str, Any]]:
    """Columns that go in; MLflow takes NaN for a number, and a word that is missing if told so."""
    return [
        {
            "type": "double" if getattr(feature, "categories", None) is None else "string",
            "name": feature.name,
            "required": not gaps,
        }
        for feature, gaps in zip(features, gaps_of(features), strict=True)
    ]


def _gives(model: Any) -> list[dict[str, Any]]:
    return [
        {
            "type": SIGNATURE_TYPES[value.type.tensor_type.elem_type],
            "name": value.name,
            "required": True,
        }
        for value in model.graph.output
    ]


def _example(features: Sequence[Feature], rows: FloatArray | None) -> dict[str, Any]:
    """One row as pandas splits it."""
    usual = np.zeros(len(features)) if rows is None else np.nan_to_num(rows).mean(axis=0)
    words = [getattr(feature, "categories", None) for feature in features]
    cells = [
        float(f"{number:.3g}") if listed is None else next(iter(listed), "")
        for listed, number in zip(words, usual, strict=True)
    ]
    return {"columns": [feature.name for feature in features], "data": [cells]}


def _conda(needs: list[str]) -> dict[str, Any]:
    python = f"python={platform.python_version()}"
    return {
        "channels": ["conda-forge"],
        "dependencies": [python, "pip", {"pip": needs}],
        "name": "mlflow-env",
    }


def _python_env() -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "build_dependencies": ["pip", "setuptools", "wheel"],
        "dependencies": ["-r requirements.txt"],
    }
