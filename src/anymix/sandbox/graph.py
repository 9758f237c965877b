"""A stranger's ONNX file becomes a graph of our own: parsed, checked, folded, written anew.

What runs is what was checked: the file itself is never given to onnxruntime, only the graph that
`rewritten` builds field by field from what it has understood.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from anymix.sandbox.node import Node
from anymix.sandbox.operators import RULES
from anymix.sandbox.reading import (
    FIELDS,
    MAX_NUMBERS,
    Array,
    Known,
    array_of,
    checked_head,
    checked_input,
    domain_of,
    is_sound,
    needed,
    parsed,
    understood,
)
from anymix.sandbox.session import open_session, run
from anymix.sandbox.shapes import N, Refused, Shape, Value, W, is_stacked, numbers
from anymix.sandbox.sizes import sizes_after
from anymix.sandbox.texts import OF_WORDS

BLOCK_ROWS, REQUEST_ROWS = 4096, 2**17
# What a block of rows may take: numbers that are there at once.  What a request may: products.
BLOCK_NUMBERS, REQUEST_PRODUCTS = 2**23, 2**34
# Numbers that one answer may have.
ANSWERS = 2**22


class Graph(NamedTuple):
    """A graph that may be run, as bytes; its output; the shape of each value, the input's first.

    `block` rows are run at once, so that memory suffices; `request` rows may be asked about in one
    message, so that time does.
    """

    content: bytes
    block: int
    request: int
    output: str
    shapes: dict[str, Shape]


def rewritten(contents: list[Any], dtype: str, n_features: int, n_columns: int) -> Graph:
    """Check a file and write its graph anew; `Refused` says what is wrong.

    The one file is taken out of the list: it may be large, and is not needed once it is parsed.
    """
    model = parsed(bytes(contents.pop()))
    opsets = checked_head(model)
    given = checked_input(model.graph, dtype, n_features)
    known = _folded(model, understood(model.graph, given), opsets)
    out = model.graph.output[0].name
    shapes, products = _walk(known, {given: (N, n_features)}, opsets)
    if shapes.get(out) not in ((N, n_columns), (N,) if n_columns == 1 else None):
        found = shapes.get(out, "no shape")
        each = ", a column for each class" * (n_columns > 1)
        raise Refused(f"its output has the shape {found} where (n, {n_columns}) is expected{each}")
    widest = max(numbers(shape) for shape in shapes.values())
    request = min(REQUEST_ROWS, REQUEST_PRODUCTS // max(products, 1), ANSWERS // n_columns)
    block = min(BLOCK_ROWS, BLOCK_NUMBERS // widest, request)
    if block < 1:
        raise Refused("one row alone needs too much memory or time")
    # What was read of the attributes is not needed again, and may be much.
    known = Known([(node, {}) for node, _ in known.nodes], known.constants)
    content = _written(model, known, (given, n_features), opsets)
    return Graph(content, block, request, out, shapes)


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
    first = Known(early, known.constants)
    found = _run_constants(_written(model, first, None, opsets, wanted), wanted) if wanted else {}
    return needed(Known(late, known.constants | found), model.graph.output[0].name)


def _run_constants(content: bytes, wanted: list[str]) -> dict[str, Array]:
    arrays = run(open_session(content), wanted)
    whole = [np.asarray(array) for array in arrays]
    if sum(array.size for array in whole) > MAX_NUMBERS or not all(map(is_sound, whole)):
        raise Refused("its constants are too large or not finite numbers")
    return dict(zip(wanted, whole, strict=True))


def _walk(
    known: Known, given: dict[str, Shape], opsets: dict[str, int]
) -> tuple[dict[str, Shape], int]:
    """Return the shape of each value that has rows, and the multiplications for one row."""
    values = {name: Value(shape) for name, shape in given.items()}
    values |= {name: Value(array.shape, array) for name, array in known.constants.items()}
    shapes, products = dict(given), 0
    filled: set[str] = set()
    for raw, attributes in known.nodes:
        domain = domain_of(raw)
        if domain not in opsets:
            raise Refused(f"it states no version of the operators {domain!r:.60}")
        inputs = tuple(values[name] if name else None for name in raw.input)
        node = Node(raw.op_type, attributes, inputs, len(raw.output), opsets[domain])
        if _is_size(node):
            sizes = sizes_after(node)
            values[raw.output[0]] = Value(sizes.shape, None, sizes)
            continue
        filled |= _check_words(node, filled)
        found = RULES[domain][raw.op_type](node)
        for name, shape in zip(raw.output, found, strict=False):
            if (N not in shape and not is_stacked(shape)) or 0 in shape:
                raise Refused(f"{raw.op_type} loses the rows or what is in them")
            values[name], shapes[name] = Value(shape), shape
        products += _products(node, found[0])
    return shapes, products


def _is_size(node: Node) -> bool:
    """Whether a node computes with shapes; to shape rows by them is no computation."""
    if node.operator == "ConstantOfShape":
        return False
    used = node.inputs[:1] if node.operator in ("Reshape", "Expand") else node.inputs
    return node.operator == "Shape" or any(v is not None and v.sizes is not None for v in used)


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
            _copy(attribute, new.attribute.add())
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


def _copy(attribute: Any, new: Any) -> None:
    """Copy name, kind and value of an attribute, and nothing else."""
    from onnx import numpy_helper

    field = FIELDS[attribute.type]
    new.name, new.type = attribute.name, attribute.type
    if field == "t":
        new.t.CopyFrom(numpy_helper.from_array(array_of(attribute.t, attribute.name)))
    elif field in ("ints", "floats", "strings"):
        getattr(new, field).extend(getattr(attribute, field))
    else:
        setattr(new, field, getattr(attribute, field))


def _kind(values: Any, name: str) -> int:
    """Return the type of the numbers of an input or output."""
    return int(next(v.type.tensor_type.elem_type for v in values if v.name == name))
