"""A stranger's ONNX file, read: constants and nodes that are understood, or a refusal."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anymix.sandbox.operators import RULES
from anymix.sandbox.shapes import Refused

MAX_NODES = 10_000
MAX_NUMBERS = 2**26
OPSETS = {"": range(9, 28), "ai.onnx.ml": range(1, 6), "com.microsoft": range(1, 2)}
IR_VERSIONS = range(3, 14)
# Bytes beyond which a file may be refused for want of memory.
LARGE = 2**25
# Lists up to this length are Python's, which rules read; longer ones are weights.
SHORT = 64
Array = NDArray[Any]


class Known(NamedTuple):
    """Nodes in their order, with their attributes; constants by name."""

    nodes: list[tuple[Any, dict[str, Any]]]
    constants: dict[str, Array]


def parsed(content: bytes) -> Any:
    """Parse a file, all of which must be ONNX."""
    import onnx

    try:
        model = onnx.load_model_from_string(content)
    except Exception as error:
        large = ", or too large a one" * (len(content) > LARGE)
        raise Refused(f"it is not an ONNX file{large}") from error
    whole = model.ByteSize()
    model.DiscardUnknownFields()
    if model.ByteSize() != whole:
        raise Refused("it carries more than a graph, which may be another one")
    return model


def checked_head(model: Any) -> dict[str, int]:
    """Return the versions of the operators of each domain."""
    graph = model.graph
    if model.functions or model.training_info or graph.sparse_initializer:
        raise Refused("it has functions, training parts or sparse weights")
    if model.metadata_props or graph.metadata_props:
        raise Refused("it carries metadata, which may hold settings")
    if len(graph.node) > MAX_NODES:
        raise Refused(f"it has {len(graph.node)} nodes; {MAX_NODES} are allowed")
    if model.ir_version not in IR_VERSIONS:
        raise Refused(f"it is of the ONNX version {model.ir_version}")
    opsets: dict[str, int] = {}
    for opset in model.opset_import:
        domain = domain_of(opset)
        twice = opsets.get(domain, opset.version) != opset.version
        if opset.version not in OPSETS.get(domain, ()) or twice:
            raise Refused(f"it uses version {opset.version} of the operators {domain!r:.60}")
        opsets[domain] = opset.version
    return opsets


def domain_of(part: Any) -> str:
    """Return the domain of an operator; the usual one has two names."""
    return "" if part.domain == "ai.onnx" else str(part.domain)


def checked_input(graph: Any, dtype: str, n_features: int) -> str:
    """Return the name of the one input; there must be one output."""
    from onnx import TensorProto

    weights = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in weights]
    if len(inputs) != 1 or len(graph.output) != 1:
        raise Refused("it must have one input and one output")
    given = inputs[0].type.tensor_type
    kinds = {
        "float32": TensorProto.FLOAT,
        "float64": TensorProto.DOUBLE,
        "string": TensorProto.STRING,
    }
    if given.elem_type != kinds[dtype]:
        raise Refused(f"its input is not {dtype}, as the manifest says")
    sizes = [dim.dim_value for dim in given.shape.dim]
    if len(sizes) == 2 and sizes[0] > 0:
        raise Refused(
            f"its input is for {sizes[0]} rows at a time; export it with a dynamic first axis"
        )
    if len(sizes) != 2 or sizes[1] not in (0, n_features):
        raise Refused(f"its input must have the shape (any number, {n_features}), not {sizes}")
    return str(inputs[0].name)


def understood(graph: Any, given: str) -> Known:
    """Read the constants and the nodes that the output needs; each name is given once, before."""
    if len({tensor.name for tensor in graph.initializer}) < len(graph.initializer):
        raise Refused("two of its weights have one name")
    constants = {tensor.name: array_of(tensor, tensor.name) for tensor in graph.initializer}
    there, nodes = {"", given, *constants}, []
    for node in graph.node:
        if node.op_type not in {*RULES.get(domain_of(node), ()), "Constant", "Shape"}:
            raise Refused(f"the operator {node.op_type!r:.60} is not allowed")
        if not there.issuperset(node.input):
            raise Refused(f"the node {node.name!r:.60} uses a value that no earlier node gives")
        if node.op_type == "Dropout" and len(node.input) > 2:
            # Before constants are computed: of a constant it would make another one each time.
            raise Refused("Dropout that can be switched to training is random")
        new = [name for name in node.output if name]
        if there.intersection(new) or len(set(new)) < len(new):
            raise Refused(f"the node {node.name!r:.60} gives a value that is there already")
        there.update(new)
        nodes.append((node, {a.name: _attribute(a, node.name) for a in node.attribute}))
    if graph.output[0].name not in there or not nodes:
        raise Refused("no node gives its output")
    return needed(Known(nodes, constants), graph.output[0].name)


def needed(known: Known, out: str) -> Known:
    """Drop what the output does not need."""
    wanted, kept = {out}, []
    for node, attributes in reversed(known.nodes):
        if wanted.intersection(node.output):
            kept.append((node, attributes))
            wanted.update(node.input)
    constants = {name: array for name, array in known.constants.items() if name in wanted}
    return Known(kept[::-1], constants)


def array_of(tensor: Any, name: str) -> Array:
    """Return constants, which are in the file and finite."""
    from onnx import TensorProto, numpy_helper

    if tensor.external_data or tensor.data_location != TensorProto.DEFAULT:
        raise Refused(
            f"the weights {name!r:.60} lie outside the file; export it with external_data=False"
        )
    try:
        # Dimensions first: an array is made only of bytes that are there.
        size = math.prod(tensor.dims)
        array = numpy_helper.to_array(tensor) if 0 <= size <= MAX_NUMBERS else None
    except Exception as error:
        raise Refused(f"the weights {name!r:.60} cannot be read") from error
    if array is None or not is_sound(array):
        raise Refused(f"the weights {name!r:.60} are not finite numbers")
    return array


def is_sound(array: Array) -> bool:
    """Whether these are texts, whole numbers or finite ones."""
    return array.dtype.kind in "iubOUS" or (
        array.dtype.kind == "f" and bool(np.isfinite(array).all())
    )


FIELDS = {1: "f", 2: "i", 3: "s", 4: "t", 6: "floats", 7: "ints", 8: "strings"}


def _attribute(attribute: Any, name: str) -> Any:
    """Return the value of a plain attribute; a long list of numbers as an array."""
    if attribute.type not in FIELDS or attribute.ref_attr_name:
        raise Refused(f"the node {name!r:.60} holds a graph or another invalid attribute")
    field = FIELDS[attribute.type]
    value = getattr(attribute, field)
    if field == "t":
        return array_of(value, name)
    if field in ("ints", "floats"):
        value = np.fromiter(value, np.int64 if field == "ints" else np.float32, len(value))
        short = value.size <= SHORT
    gap = attribute.name == "replaced_value_float"  # an Imputer may fill what is not a number
    if field in ("f", "floats") and not (gap or np.isfinite(value).all()):
        raise Refused(f"the node {name!r:.60} holds numbers that are not finite")
    if field in ("s", "strings"):
        return _text(value, name)
    return value.tolist() if field in ("ints", "floats") and short else value


def _text(value: Any, name: str) -> Any:
    """Return a text or a list of them; equal ones are kept once, as a forest has few words."""
    known: dict[bytes, str] = {}
    try:
        if isinstance(value, bytes):
            return value.decode()
        for text in value:
            if text not in known:
                known[text] = text.decode()
    except UnicodeDecodeError as error:
        raise Refused(f"the node {name!r:.60} holds text that is not UTF-8") from error
    return [known[text] for text in value]
