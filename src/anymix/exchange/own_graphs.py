"""Convert ONNX files of common exporters into the form that is packed.

    weights in a second file   read, if it is next to the first
    ZipMap                     left out: probabilities go on as the table that they were
    a fixed number of rows     made free; the audit then proves that every row stands alone

Readers accept no more than before: these conversions happen when a file is packed.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from anymix.exceptions import InputError
from anymix.exchange.manifest import LIMITS, PREDICTOR
from anymix.exchange.predictor import OnnxPredictor
from anymix.storage import need, read_file

Classes = tuple[str | int, ...] | None
EXPORT = (
    'torch.onnx.export(model.eval(), (torch.zeros(2, {d}),), "model.onnx", external_data=False, '
    'dynamic_shapes=({{0: torch.export.Dim("n")}},))'
)


def read_own(path: str | Path) -> bytes:
    """Read a predictor of the user's own, with weights in a file next to it."""
    # A device would never end.
    place = Path(os.path.realpath(path))
    content = read_file(place, LIMITS[PREDICTOR])
    model = _parsed(content, path)
    outside = [tensor for tensor in model.graph.initializer if tensor.external_data]
    left = LIMITS[PREDICTOR] - len(content)
    files: dict[str, bytes] = {}
    for tensor in outside:
        told = {entry.key: entry.value for entry in tensor.external_data}
        name = told.get("location", "")
        if name not in files:
            files[name] = _beside(place, name, left)
            left -= len(files[name])
        where, weights = f"the file {name!r:.60}", files[name]
        try:
            start = int(told.get("offset", "0"))
            length = int(told.get("length", str(len(weights) - start)))
        except ValueError as error:
            raise InputError(where, "is not described by whole numbers") from error
        if start < 0 or length < 0 or start + length > len(weights):
            raise InputError(
                where,
                "is shorter than the weights in it; copy it anew, or export with "
                "external_data=False",
            )
        tensor.raw_data = weights[start : start + length]
        tensor.ClearField("external_data")
        tensor.data_location = need("onnx").TensorProto.DEFAULT
    return bytes(model.SerializeToString()) if outside else content


def _beside(place: Path, name: str, limit: int) -> bytes:
    """Read a file of weights, which must lie in the folder of the graph and be no link."""
    if not name or Path(name).name != name or name in (".", ".."):
        raise InputError(
            place,
            f"has weights in {name!r:.60}, which is not next to it; export it with "
            "external_data=False",
        )
    try:
        return read_file(place.parent / name, max(limit, 0))
    except FileNotFoundError as error:
        raise InputError(
            place,
            f"has its weights in {name!r:.60}, which is not there; put that file next to it, or "
            "export it with external_data=False",
        ) from error


def _parsed(content: bytes, where: str | Path = "the predictor") -> Any:
    onnx = need("onnx")
    try:
        return onnx.load_model_from_string(content)
    except Exception as error:
        raise InputError(
            where,
            "is not an ONNX file; export the model to one, by torch.onnx.export or skl2onnx",
        ) from error


def one_output(content: bytes, classes: Classes) -> OnnxPredictor:
    """Keep the one output that counts, drop metadata, and find the dtype of the input."""
    onnx, model = need("onnx"), _parsed(content)
    _without_maps(onnx, model.graph, classes)
    numbers = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE)
    outputs = [v for v in model.graph.output if v.type.tensor_type.elem_type in numbers]
    if not outputs or not model.graph.input:
        raise InputError("the ONNX file", "must have an input and an output of numbers")
    # A classifier gives labels first and probabilities last; a regressor gives numbers alone.
    kept = outputs[-1] if classes is not None else outputs[0]
    del model.graph.output[:]
    for part in (model, model.graph, *model.graph.node, *model.graph.initializer):
        part.ClearField("metadata_props")
    model.graph.output.append(kept)
    model.doc_string = model.graph.doc_string = ""
    # Text is put in lower case by the locale C: a reader need not have the one that was written.
    for node in model.graph.node:
        if node.op_type == "StringNormalizer":
            others = [a for a in node.attribute if a.name != "locale"]
            del node.attribute[:]
            node.attribute.extend([*others, onnx.helper.make_attribute("locale", "C")])
    remedy = _free_rows(model.graph)
    dtypes = {
        onnx.TensorProto.FLOAT: "float32",
        onnx.TensorProto.DOUBLE: "float64",
        onnx.TensorProto.STRING: "string",
    }
    elem = model.graph.input[0].type.tensor_type.elem_type
    found = OnnxPredictor(bytes(model.SerializeToString()), dtypes.get(elem, "float32"))
    found.remedy = remedy
    return found


def _without_maps(onnx: Any, graph: Any, classes: Classes) -> None:
    """Leave out a ZipMap, which makes of each row of probabilities a dictionary."""
    maps = {node.output[0]: node for node in graph.node if node.op_type == "ZipMap"}
    for value in [value for value in graph.output if value.name in maps]:
        node = maps[value.name]
        named = [label.decode(errors="replace") for a in node.attribute for label in a.strings]
        labels = named or [label for a in node.attribute for label in a.ints]
        if classes is not None and labels and list(classes) != labels:
            raise InputError(
                "the ONNX file",
                f"names its classes {', '.join(map(str, labels))}; give --classes (classes=) in "
                "this order",
            )
        table = onnx.helper.make_tensor_value_info(node.input[0], onnx.TensorProto.FLOAT, None)
        graph.output.remove(value)
        graph.output.append(table)
        graph.node.remove(node)


def _free_rows(graph: Any) -> str:
    """Let the input have any number of rows; return what to do if the audit does not follow.

    A graph that works on each row alone answers any number of them as it answers its own number;
    one that does not is refused by the audit.
    """
    weights = {tensor.name for tensor in graph.initializer}
    given = [value for value in graph.input if value.name not in weights]
    sizes = given[0].type.tensor_type.shape.dim if len(given) == 1 else []
    if len(sizes) != 2 or sizes[0].dim_value < 1:
        return ""
    n, d = sizes[0].dim_value, sizes[1].dim_value
    sizes[0].dim_param = "n"
    del graph.value_info[:]
    rows = "1 row" if n == 1 else f"{n} rows"
    return f"it was exported for {rows} at a time; type {EXPORT.format(d=d)}"
