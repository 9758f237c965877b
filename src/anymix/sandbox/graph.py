"""Rewrite an untrusted ONNX file as a graph of our own: parsed, checked, folded, written anew.

What runs is what was checked: the file itself is never given to onnxruntime, only the graph that
`rewritten` builds field by field from what it has understood.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anymix.sandbox.attribute_rules import check_attributes
from anymix.sandbox.operators import OF_WORDS, ON_CONSTANTS, RULES
from anymix.sandbox.shapes import (
    N,
    Node,
    Refused,
    Shape,
    Value,
    W,
    is_stacked,
    numbers,
    numbers_after,
    sizes_after,
)

BLOCK_ROWS, REQUEST_ROWS = 4096, 2**17
# What a block of rows may take: numbers that are there at once.  What a request may: products.
BLOCK_NUMBERS, REQUEST_PRODUCTS = 2**23, 2**34
# Numbers that one answer may have.
ANSWERS = 2**22


class RewrittenGraph(NamedTuple):
    """A graph that may be run, as bytes; its output; the shape of each value, the input's first.

    `block` rows are run at once, so that memory suffices; `request` rows may be asked about in one
    message, so that time does.
    """

    content: bytes
    block: int
    request: int
    output: str
    shapes: dict[str, Shape]


def rewritten(contents: list[Any], dtype: str, n_features: int, n_columns: int) -> RewrittenGraph:
    """Check a file and write its graph anew; `Refused` says what is wrong.

    The one file is taken out of the list: it may be large, and is not needed once it is parsed.
    """
    model = parsed(bytes(contents.pop()))
    opsets = checked_head(model)
    input_name = checked_input(model.graph, dtype, n_features)
    known = _folded(model, understood(model.graph, input_name), opsets)
    out = model.graph.output[0].name
    shapes, products = _walk(known, {input_name: (N, n_features)}, opsets)
    if shapes.get(out) not in ((N, n_columns), (N,) if n_columns == 1 else None):
        sizes = shapes.get(out, "no shape")
        each = ", a column for each class" * (n_columns > 1)
        raise Refused(f"its output has the shape {sizes} where (n, {n_columns}) is expected{each}")
    widest = max(numbers(shape) for shape in shapes.values())
    request = min(REQUEST_ROWS, REQUEST_PRODUCTS // max(products, 1), ANSWERS // n_columns)
    block = min(BLOCK_ROWS, BLOCK_NUMBERS // widest, request)
    if block < 1:
        raise Refused("one row alone needs too much memory or time")
    # What was read of the attributes is not needed again, and may be much.
    known = Known([(node, {}) for node, _ in known.nodes], known.constants)
    content = _written(model, known, (input_name, n_features), opsets)
    return RewrittenGraph(content, block, request, out, shapes)


def _folded(model: Any, known: Known, opsets: dict[str, int]) -> Known:
    """Compute once what depends on no row, so that only constants and rows are left."""
    fixed: set[str] = {"", *known.constants}
    early = []
    for node, attributes in known.nodes:
        if fixed.issuperset(node.input):
            fixed.update(node.output)
            early.append((node, attributes))
    if not early:
        return known
    late = [(node, a) for node, a in known.nodes if not fixed.issuperset(node.output)]
    made = {name for node, _ in early for name in node.output if name}
    wanted = sorted(made.intersection(name for node, _ in late for name in node.input))
    for node, _ in early:
        if domain_of(node) or node.op_type not in CONSTANT:
            raise Refused(f"the operator {node.op_type!r:.60} is not allowed on constants")
    whole = _computed(_written(model, Known(early, known.constants), None, opsets, wanted), wanted)
    if sum(array.size for array in whole) > MAX_NUMBERS or not all(map(is_sound, whole)):
        raise Refused("its constants are too large or not finite numbers")
    constants = known.constants | dict(zip(wanted, whole, strict=True))
    return needed(Known(late, constants), model.graph.output[0].name)


# What may be done with constants.
CONSTANT = {*ON_CONSTANTS, "Constant", "Shape"}


def _computed(content: bytes, wanted: list[str]) -> list[Array]:
    """Compute constants by numpy, which looks at every length; onnxruntime runs rows alone."""
    if not wanted:
        return []
    from onnx.reference import ReferenceEvaluator

    try:
        with np.errstate(all="ignore"):
            values = ReferenceEvaluator(content).run(wanted, {})
    except MemoryError:
        raise
    except Exception as error:
        raise Refused("its constants cannot be computed") from error
    return [np.asarray(array) for array in values]


def _constant(array: Array) -> Value:
    return Value(array.shape, array, whole=array.dtype.kind in "iu")


def _walk(
    known: Known, given: dict[str, Shape], opsets: dict[str, int]
) -> tuple[dict[str, Shape], int]:
    """Return the shape of each value that has rows, and the multiplications for one row."""
    values = {name: Value(shape) for name, shape in given.items()}
    values |= {name: _constant(array) for name, array in known.constants.items()}
    shapes, products = dict(given), 0
    filled: set[str] = set()
    for raw, attributes in known.nodes:
        domain = domain_of(raw)
        if domain not in opsets:
            raise Refused(f"it states no version of the operators {domain!r:.60}")
        inputs = tuple(values[name] if name else None for name in raw.input)
        node = Node(raw.op_type, attributes, inputs, len(raw.output), opsets[domain])
        # To shape rows by sizes is no computation with them.
        shaping = node.operator in ("Reshape", "Expand")
        used = node.inputs[:1] if shaping else node.inputs
        of_sizes = any(value is not None and value.sizes is not None for value in used)
        if node.operator == "Shape" or (of_sizes and node.operator != "ConstantOfShape"):
            sizes = sizes_after(node)
            values[raw.output[0]] = Value(sizes.shape, None, sizes, whole=True)
            continue
        filled |= _check_words(node, filled)
        check_attributes(node)
        shapes_out = RULES[domain][raw.op_type](node)
        for i, (name, shape) in enumerate(zip(raw.output, shapes_out, strict=False)):
            if (N not in shape and not is_stacked(shape)) or 0 in shape:
                raise Refused(f"{raw.op_type} loses the rows or what is in them")
            values[name], shapes[name] = Value(shape, None, None, *numbers_after(node, i)), shape
        products += _products(node, shapes_out[0])
    return shapes, products


def _check_words(node: Node, filled: set[str]) -> set[str]:
    """Words that only fill up must not be counted; return what this node fills up with."""
    if node.operator == "Tokenizer":
        return {node.attributes.get("pad_value", "")}
    if node.operator != "Reshape" and any(is_stacked(value.shape) for value in node.there()):
        raise Refused(f"{node.operator} works on rows that stand one below the other")
    if any(W in value.shape for value in node.there()):
        if node.operator not in OF_WORDS:
            raise Refused(f"{node.operator} works on words that stand there only to fill up")
        if filled.intersection(node.attributes.get("pool_strings", ())):
            raise Refused("TfIdfVectorizer counts the words that stand there only to fill up")
    return set()


def _products(node: Node, out: Shape) -> int:
    """Multiplications for one row: every number of the result, times what it is a sum of."""
    weights = [value.shape for value in node.there() if not value.has_rows]
    if node.operator in ("MatMul", "Gemm"):
        return numbers(out) * numbers(node.first.shape[-1:])
    if node.operator == "Conv":
        return numbers(out) * numbers(weights[0][1:])
    lists = sum(len(v) for v in node.attributes.values() if isinstance(v, list | np.ndarray))
    # A row passes one path of a tree; of other models every number counts.
    return numbers(out) + (lists // 64 if "Tree" in node.operator else lists)


def _written(
    model: Any,
    known: Known,
    given: tuple[str, int] | None,
    opsets: dict[str, int],
    outputs: list[str] | None = None,
) -> bytes:
    """Build the graph from what was understood, and from nothing else of the file.

    It is built in place: what helpers make is copied from one message into the next, and a forest
    has millions of numbers.
    """
    from onnx import ModelProto, helper, numpy_helper

    whole = ModelProto(ir_version=model.ir_version)
    for domain, version in opsets.items():
        whole.opset_import.add(domain=domain, version=version)
    graph = whole.graph
    graph.name = "graph"
    for node, _ in known.nodes:
        new = graph.node.add(op_type=node.op_type, domain=domain_of(node))
        new.input.extend(node.input)
        new.output.extend(node.output)
        for attribute in node.attribute:
            # Name, kind and value are copied, and nothing else.
            field, copy = FIELDS[attribute.type], new.attribute.add()
            copy.name, copy.type = attribute.name, attribute.type
            if field == "t":
                value = array_of(attribute.t, attribute.name)
                copy.t.CopyFrom(numpy_helper.from_array(value))
            elif field in ("ints", "floats", "strings"):
                getattr(copy, field).extend(getattr(attribute, field))
            else:
                setattr(copy, field, getattr(attribute, field))
    for name, array in known.constants.items():
        graph.initializer.append(numpy_helper.from_array(array, name))
    if given is not None:
        kind = _kind(model.graph.input, given[0])
        graph.input.append(helper.make_tensor_value_info(given[0], kind, ["n", given[1]]))
    if outputs is None:
        out = model.graph.output[0].name
        kind = _kind(model.graph.output, out)
        graph.output.append(helper.make_tensor_value_info(out, kind, None))
    for name in outputs or ():
        graph.output.add(name=name)
    return bytes(whole.SerializeToString())


def _kind(values: Any, name: str) -> int:
    """Return the type of the numbers of an input or output."""
    return int(next(v.type.tensor_type.elem_type for v in values if v.name == name))


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
    tensor_type = inputs[0].type.tensor_type
    kinds = {
        "float32": TensorProto.FLOAT,
        "float64": TensorProto.DOUBLE,
        "string": TensorProto.STRING,
    }
    if tensor_type.elem_type != kinds[dtype]:
        raise Refused(f"its input is not {dtype}, as the manifest says")
    sizes = [dim.dim_value for dim in tensor_type.shape.dim]
    if len(sizes) == 2 and sizes[0] > 0:
        raise Refused(
            f"its input is for {sizes[0]} rows at a time; export it with a dynamic first axis"
        )
    if len(sizes) != 2 or sizes[1] not in (0, n_features):
        raise Refused(f"its input must have the shape (any number, {n_features}), not {sizes}")
    return str(inputs[0].name)


def understood(graph: Any, input_name: str) -> Known:
    """Read the constants and the nodes that the output needs; each name is given once, before."""
    if len({tensor.name for tensor in graph.initializer}) < len(graph.initializer):
        raise Refused("two of its weights have one name")
    constants = {tensor.name: array_of(tensor, tensor.name) for tensor in graph.initializer}
    there, nodes = {"", input_name, *constants}, []
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
