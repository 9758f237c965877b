"""Rules of operators that compute (numbers, sums of a row, layers) or move numbers within rows."""

from __future__ import annotations

from anymix.sandbox.shapes import (
    N,
    Node,
    Refused,
    Rule,
    Shape,
    Size,
    W,
    along,
    broadcast,
    fixed,
    numbers,
    one_row_axis,
    place,
    reshaped,
    sizes_of,
)

# As onnx numbers its types: float, int32, int64, string, bool, double.
CAST_TO = (1, 6, 7, 8, 9, 11)


def same(node: Node) -> list[Shape]:
    """Each number by itself."""
    return [node.first.shape] * node.n_outputs


def together(node: Node) -> list[Shape]:
    """Numbers at the same position, with numpy's broadcasting."""
    return [broadcast(*(value.shape for value in node.there()))]


def matmul(node: Node) -> list[Shape]:
    """(..., i, j) @ (..., j, k), or (..., j) @ (j,)."""
    a, b = node.first.shape, node.given(1).shape
    if not a or not b or fixed(a[-1:]) != fixed(b[-2:-1] or b):
        raise Refused("MatMul joins sizes that differ")
    if len(b) == 1:
        return [a[:-1]]
    if len(a) == 1:
        raise Refused("MatMul of a vector from the left is not allowed")
    return [one_row_axis((*broadcast(a[:-2], b[:-2]), a[-2], b[-1]))]


def gemm(node: Node) -> list[Shape]:
    """A B + C of two matrices, each transposed if requested."""
    a, b = node.first.shape, node.given(1).shape
    a = a[::-1] if node.attributes.get("transA", 0) else a
    b = b[::-1] if node.attributes.get("transB", 0) else b
    if len(a) != 2 or len(b) != 2 or fixed(a[1:]) != fixed(b[:1]):
        raise Refused("Gemm joins sizes that differ")
    out = one_row_axis((a[0], b[1]))
    if len(node.there()) > 2 and broadcast(out, node.given(2).shape) != out:
        raise Refused("Gemm adds what is larger than its product")
    return [out]


def reduce(node: Node) -> list[Shape]:
    """Sums and the like along named axes."""
    shape, axes = node.first.shape, node.option("axes", 1)
    if axes is None or axes == []:
        if node.attributes.get("noop_with_empty_axes", 0):
            return [shape]
        axes = list(range(len(shape)))
    chosen = {along(shape, place(axis, len(shape))) for axis in axes}
    keep = node.attributes.get("keepdims", 1)
    out: list[Size] = [1 if i in chosen else size for i, size in enumerate(shape)]
    return [tuple(size for i, size in enumerate(out) if keep or i not in chosen)]


def arg_reduce(node: Node) -> list[Shape]:
    """The position of the largest or smallest along one axis."""
    shape = node.first.shape
    axis = along(shape, node.axis(0))
    middle: Shape = (1,) if node.attributes.get("keepdims", 1) else ()
    return [(*shape[:axis], *middle, *shape[axis + 1 :])]


def top_k(node: Node) -> list[Shape]:
    """The k largest along one axis, and their positions."""
    shape = node.first.shape
    axis, k = along(shape, node.axis(-1)), node.option("k", 1)
    k = k[0] if isinstance(k, list) else k
    if not 0 < k <= fixed(shape[axis : axis + 1]):
        raise Refused("TopK asks for more than there is")
    return [(*shape[:axis], k, *shape[axis + 1 :])] * 2


def softmax(node: Node) -> list[Shape]:
    """Shares, or a norm of 1, along one axis; shares before opset 13 along all from there on."""
    shape, one = node.first.shape, node.opset >= 13 or node.operator == "LpNormalization"
    axis = node.axis(-1 if one else 1)
    for i in (axis,) if one else range(axis, len(shape)):
        along(shape, i)
    return [shape]


def layer_norm(node: Node) -> list[Shape]:
    """Scale to mean 0 and variance 1 over the axes from `axis` on."""
    shape = node.first.shape
    for i in range(node.axis(-1), len(shape)):
        along(shape, i)
    if any(value.has_rows for value in node.there()[1:]):
        raise Refused("LayerNormalization must have constant weights")
    return [shape] * node.n_outputs


def image(node: Node) -> list[Shape]:
    """Refuse anything but rows of channels and places: (N, C, ...)."""
    shape = node.first.shape
    if len(shape) < 3 or shape[0] != N or any(value.has_rows for value in node.there()[1:]):
        raise Refused(f"{node.operator} must have rows first, and constant weights")
    return [shape]


def window(node: Node) -> list[Shape]:
    """Sliding windows, convolution and pooling; global pooling gives one number a channel."""
    shape = image(node)[0]
    if node.operator.startswith("Global"):
        return [(*shape[:2], *(1,) * (len(shape) - 2))]
    if node.n_outputs > 1:
        raise Refused(f"{node.operator} tells at which row of the batch it stands")
    channels = shape[1]
    kernel = node.attributes.get("kernel_shape")
    if node.operator == "Conv":
        weights = node.given(1).shape
        channels, kernel = weights[0], list(weights[2:])
    n, get = len(shape) - 2, node.attributes.get
    strides, dilations = get("strides") or [1] * n, get("dilations") or [1] * n
    pads, auto = get("pads") or [0] * (2 * n), get("auto_pad", "NOTSET")
    if kernel is None or not len(kernel) == len(strides) == len(dilations) == n == len(pads) // 2:
        raise Refused(f"{node.operator} has settings of another number of axes")
    out: list[Size] = []
    for i, size in enumerate(shape[2:]):
        step, wide = strides[i], dilations[i] * (kernel[i] - 1) + 1
        if auto in ("SAME_UPPER", "SAME_LOWER"):
            out.append(-(-fixed([size]) // step))
            continue
        room = fixed([size]) + pads[i] + pads[n + i] - wide
        out.append((-(-room // step) if get("ceil_mode", 0) else room // step) + 1)
    return [(N, channels, *out)]


def batch_norm(node: Node) -> list[Shape]:
    """Scaled by constants, never by statistics of the batch."""
    if node.attributes.get("training_mode", 0) or node.n_outputs > 1:
        raise Refused("BatchNormalization in training mode mixes rows")
    if any(value.has_rows for value in node.there()[1:]) or node.first.shape[:1] != (N,):
        raise Refused("BatchNormalization must have rows first, and constant weights")
    return [node.first.shape]


def cast(node: Node) -> list[Shape]:
    """Converts each number by itself; refused where the result could depend on the batch."""
    if node.attributes.get("to") not in CAST_TO:
        raise Refused("Cast to this type depends on where a row stands in its batch")
    return same(node)


def running_sum(node: Node) -> list[Shape]:
    """Summed up along one axis."""
    axis = node.option("axis", 1)
    axis = axis[0] if isinstance(axis, list) else axis
    along(node.first.shape, place(axis, len(node.first.shape)))
    return [node.first.shape]


def dropout(node: Node) -> list[Shape]:
    """Nothing: it only acts in training."""
    if node.option("training_mode", 2):
        raise Refused("Dropout in training mode is random")
    return [node.first.shape] * node.n_outputs


_EACH = """
    Abs Ceil Cos Elu Erf Exp Floor Gelu HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu Log Neg
    Not Reciprocal Relu Round Selu Sigmoid Sign Sin Softplus Sqrt Tanh"""
_TOGETHER = """
    Add And Clip Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min Mod Mul Or Pow PRelu
    Sub Sum Where Xor"""
_REDUCE = "L1 L2 LogSumExp Max Mean Min Prod Sum SumSquare"

ARITHMETIC: dict[str, Rule] = {
    **dict.fromkeys(_EACH.split(), same),
    **dict.fromkeys(_TOGETHER.split(), together),
    **dict.fromkeys((f"Reduce{name}" for name in _REDUCE.split()), reduce),
    **dict.fromkeys(("ArgMax", "ArgMin"), arg_reduce),
    **dict.fromkeys(("Softmax", "LogSoftmax"), softmax),
    **dict.fromkeys(("Conv", "MaxPool", "AveragePool"), window),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool"), window),
    "BatchNormalization": batch_norm,
    "Cast": cast,
    "CumSum": running_sum,
    "Dropout": dropout,
    "Gemm": gemm,
    "InstanceNormalization": image,
    "LayerNormalization": layer_norm,
    "LpNormalization": softmax,
    "MatMul": matmul,
    "TopK": top_k,
}


def concat(node: Node) -> list[Shape]:
    """Join along an axis that is not rows."""
    shapes = [value.shape for value in node.there()]
    axis = node.axis(0)
    if len({(len(s), *s[:axis], N, *s[axis + 1 :]) for s in shapes}) > 1:
        raise Refused("Concat joins values of different sizes")
    if axis == 0 and {s[0] for s in shapes} == {N}:
        # Values one below the other, which may only be put side by side again.
        return [(f"{len(shapes)}*{N}", *shapes[0][1:])]
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
    """Entries along an axis that is not rows, or of a constant, indexed by a row."""
    data, at = node.first, node.given(1)
    axis = node.axis(0)
    if data.has_rows:
        along(data.shape, axis)
    return [one_row_axis((*data.shape[:axis], *at.shape, *data.shape[axis + 1 :]))]


def gather_elements(node: Node) -> list[Shape]:
    """Entries of a row, indexed by the same row."""
    data, at = node.first.shape, node.given(1).shape
    axis = along(data, node.axis(0))
    others = [(a, b) for i, (a, b) in enumerate(zip(data, at, strict=False)) if i != axis]
    if len(data) != len(at) or any(a != b for a, b in others):
        raise Refused("GatherElements takes from other rows")
    return [at]


def feature_extractor(node: Node) -> list[Shape]:
    """Columns of rows, or entries of a constant, indexed by a row."""
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
    """Flatten all axes except that of rows."""
    shape = node.first.shape
    if node.axis(1) != 1 or shape[:1] != (N,):
        raise Refused("Flatten joins rows")
    if W not in shape:
        return [(N, fixed(shape[1:]))]
    if numbers(shape) != 1:
        raise Refused("an operator works on words that stand there only to fill up")
    return [(N, W)]


def squeeze(node: Node) -> list[Shape]:
    """Remove the named axes of size 1."""
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
    """Repeated to sizes that are constants or the number of rows."""
    if node.operator == "ConstantOfShape":
        return [one_row_axis(sizes_of(node.first))]
    return [broadcast(node.first.shape, sizes_of(node.given(1)))]


def pad(node: Node) -> list[Shape]:
    """Pad with numbers along axes that are not rows."""
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
    "ConstantOfShape": expand,
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
