"""Rules of operators that move numbers: rows stay rows, each with what was its own."""

from __future__ import annotations

from anymix.sandbox.node import Node, Rule, along, place, sizes_of
from anymix.sandbox.shapes import (
    N,
    Refused,
    Shape,
    W,
    broadcast,
    fixed,
    numbers,
    one_row_axis,
    reshaped,
    rows_axis,
    stacked,
)


def concat(node: Node) -> list[Shape]:
    """Joined along an axis that is not rows."""
    shapes = [value.shape for value in node.there()]
    axis = node.axis(0)
    if len({(len(s), *s[:axis], N, *s[axis + 1 :]) for s in shapes}) > 1:
        raise Refused("Concat joins values of different sizes")
    if axis == 0 and {s[0] for s in shapes} == {N}:
        return [stacked(shapes[0], len(shapes))]
    return [
        (*shapes[0][:axis], sum(fixed(s[axis : axis + 1]) for s in shapes), *shapes[0][axis + 1 :])
    ]


def split(node: Node) -> list[Shape]:
    """Cut along an axis that is not rows."""
    shape = node.first.shape
    axis = along(shape, node.axis(0))
    size, n = fixed(shape[axis : axis + 1]), node.n_outputs
    each = -(-size // n)
    sizes = node.option("split", 1) or [min(each, size - i * each) for i in range(n)]
    if sum(sizes) != size or len(sizes) != n or min(sizes) < 0:
        raise Refused("Split cuts into sizes that do not add up")
    return [(*shape[:axis], part, *shape[axis + 1 :]) for part in sizes]


def slice_(node: Node) -> list[Shape]:
    """A part along axes that are not rows."""
    shape = list(node.first.shape)
    starts, ends = node.option("starts", 1), node.option("ends", 2)
    axes = node.option("axes", 3) or list(range(len(starts)))
    steps = node.option("steps", 4) or [1] * len(starts)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        i = place(axis, len(shape))
        whole = start == 0 and end >= 2**31 - 1 and step == 1
        if not whole and step != 0:
            size = fixed([shape[along(tuple(shape), i)]])
            shape[i] = len(range(size)[slice(start, end, step)])
    return [tuple(shape)]


def gather(node: Node) -> list[Shape]:
    """Entries along an axis that is not rows, or of a constant by what a row says."""
    data, at = node.first, node.given(1)
    axis = node.axis(0)
    if data.has_rows:
        along(data.shape, axis)
    return [one_row_axis((*data.shape[:axis], *at.shape, *data.shape[axis + 1 :]))]


def gather_elements(node: Node) -> list[Shape]:
    """Entries of a row by what the same row says."""
    data, at = node.first.shape, node.given(1).shape
    axis = along(data, node.axis(0))
    others = [(a, b) for i, (a, b) in enumerate(zip(data, at, strict=False)) if i != axis]
    if len(data) != len(at) or any(a != b for a, b in others):
        raise Refused("GatherElements takes from other rows")
    return [at]


def feature_extractor(node: Node) -> list[Shape]:
    """Columns of rows, or entries of a constant by what a row says."""
    data, at = node.first, node.given(1)
    if data.has_rows:
        along(data.shape, len(data.shape) - 1)
        return [one_row_axis((*data.shape[:-1], numbers(at.shape), *(N,) * at.has_rows))]
    if numbers(at.shape) != 1 and at.has_rows:
        raise Refused("ArrayFeatureExtractor joins rows")
    return [(*(data.shape[:-1] or (1,)), N if at.has_rows else numbers(at.shape))]


def reshape(node: Node) -> list[Shape]:
    """Other axes, in which rows stay rows; allowzero, which PyTorch writes, changes zeros alone."""
    sizes = sizes_of(node.given(1))
    if node.attributes.get("allowzero", 0) and 0 in sizes:
        raise Refused("Reshape with allowzero to an axis of no entries is not allowed")
    return [reshaped(node.first.shape, sizes)]


def flatten(node: Node) -> list[Shape]:
    """All but the rows as one axis."""
    shape = node.first.shape
    if node.axis(1) != 1 or not node.first.has_rows or rows_axis(shape) != 0:
        raise Refused("Flatten joins rows")
    if W in shape:
        return [(N, W)] if numbers(shape) == 1 else _refuse_words()
    return [(N, fixed(shape[1:]))]


def _refuse_words() -> list[Shape]:
    raise Refused("an operator works on words that stand there only to fill up")


def squeeze(node: Node) -> list[Shape]:
    """Without named axes of size 1."""
    shape, axes = node.first.shape, node.option("axes", 1)
    if axes is None:
        raise Refused("Squeeze must name its axes, or one row alone would lose its own")
    gone = {place(axis, len(shape)) for axis in axes}
    if any(shape[i] != 1 for i in gone):
        raise Refused("Squeeze removes an axis that has more than one entry")
    return [tuple(size for i, size in enumerate(shape) if i not in gone)]


def unsqueeze(node: Node) -> list[Shape]:
    """With further axes of size 1."""
    shape, axes = list(node.first.shape), node.option("axes", 1)
    rank = len(shape) + len(axes)
    for axis in sorted(place(axis, rank) for axis in axes):
        shape.insert(axis, 1)
    return [tuple(shape)]


def transpose(node: Node) -> list[Shape]:
    """Axes in another order."""
    shape = node.first.shape
    order = node.attributes.get("perm") or list(range(len(shape)))[::-1]
    if sorted(order) != list(range(len(shape))):
        raise Refused("Transpose does not name each axis once")
    return [tuple(shape[i] for i in order)]


def expand(node: Node) -> list[Shape]:
    """Repeated to sizes that are constants, or the number of rows."""
    return [broadcast(node.first.shape, sizes_of(node.given(1)))]


def constant_of_shape(node: Node) -> list[Shape]:
    """One constant everywhere, in sizes that are constants, or the number of rows."""
    return [one_row_axis(sizes_of(node.first))]


def pad(node: Node) -> list[Shape]:
    """Numbers around, but no further rows."""
    shape, pads = node.first.shape, node.option("pads", 1)
    axes = node.option("axes", 3) or range(len(shape))
    if not isinstance(pads, list) or len(pads) != 2 * len(axes):
        raise Refused("Pad states pads of another number of axes")
    out = list(shape)
    for k, axis in enumerate(axes):
        more = pads[k] + pads[len(pads) // 2 + k]
        i = place(axis, len(shape))
        if pads[k] or more:
            out[i] = fixed([shape[along(shape, i)]]) + more
    return [tuple(out)]


LAYOUT: dict[str, Rule] = {
    "Concat": concat,
    "ConstantOfShape": constant_of_shape,
    "Expand": expand,
    "Flatten": flatten,
    "Gather": gather,
    "GatherElements": gather_elements,
    "Pad": pad,
    "Reshape": reshape,
    "Slice": slice_,
    "Split": split,
    "Squeeze": squeeze,
    "Transpose": transpose,
    "Unsqueeze": unsqueeze,
}
