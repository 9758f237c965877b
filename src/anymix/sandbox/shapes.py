"""Static shapes of the values of a graph, with the axis of rows.

A shape is a tuple of sizes.  One of them may be N, the number of rows; W is the number of words of
the longest document of a batch.  Whatever has no N is the same for all rows.

    (N, 4) + (4,)      (N, 4)           each row by itself
    (N, 4) + (N, 1)    (N, 4)
    (N, 4) @ (4, 3)    (N, 3)
    (N,) + (N, 1)      refused: row i would be combined with row j
    k values (N, 1), one below the other, are (k*n, 1), which may only become (k, N)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

N, W = "n", "words"
# As onnx numbers its types: int32 and int64.
WHOLE = (6, 7)
Size = int | str
Shape = tuple[Size, ...]


class Refused(Exception):
    """One sentence on what is wrong with a graph, without its full stop."""

    def __init__(self, cause: str):
        super().__init__(cause)


class Value(NamedTuple):
    """A shape, and the numbers of a constant, or the sizes that `Shape` read off another value.

    `whole` says that it may hold whole numbers; those of rows are known to be below `below`, if
    that is not 0, and not negative.
    """

    shape: Shape
    array: NDArray[Any] | None = None
    sizes: NDArray[Any] | None = None
    whole: bool = False
    below: int = 0

    @property
    def has_rows(self) -> bool:
        """Whether the value differs from row to row."""
        return N in self.shape


def one_row_axis(shape: Sequence[Size]) -> Shape:
    """Refuse a shape in which rows would be combined with other rows."""
    if list(shape).count(N) > 1:
        raise Refused("an operator brings rows together")
    return tuple(shape)


def broadcast(*shapes: Shape) -> Shape:
    """Return the common shape, aligned at the right, as numpy does."""
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    out: list[Size] = []
    for sizes in zip(*padded, strict=True):
        distinct = set(sizes) - {1}
        if len(distinct) > 1:
            raise Refused(
                f"sizes {sorted(map(str, distinct))} meet, and rows are not of fixed number"
            )
        out.append(distinct.pop() if distinct else 1)
    return one_row_axis(out)


def numbers(shape: Sequence[Size]) -> int:
    """Return how many numbers a row has in a value; words are not counted here."""
    return math.prod(size for size in shape if isinstance(size, int))


def fixed(shape: Sequence[Size]) -> int:
    """Return a product of sizes that are all known."""
    if not all(isinstance(size, int) for size in shape):
        raise Refused("an operator joins rows or words into one axis")
    return math.prod(size for size in shape if isinstance(size, int))


def reshaped(shape: Shape, wanted: Sequence[Size]) -> Shape:
    """Return the shape after `Reshape`, which must keep the axis of rows."""
    target = [shape[i] if size == 0 and i < len(shape) else size for i, size in enumerate(wanted)]
    if is_stacked(shape):
        # (k*n, ...) as (k, -1, ...): the values side by side again.
        k, rest = int(str(shape[0]).split("*")[0]), tuple(target[2:])
        if target[:2] == [k, -1] and fixed(rest) == fixed(shape[1:]):
            return (k, N, *rest)
        raise Refused("an operator joins rows or splits them")
    axis = shape.index(N)
    before, after = fixed(shape[:axis]), fixed(shape[axis + 1 :])
    if N not in target and -1 in target:
        target[target.index(-1)] = N
    if before == 1 and target.count(N) == 1:
        first = target.index(N)
        head, tail = target[:first], target[first + 1 :]
        if tail.count(-1) == 1:
            others = fixed([size for size in tail if size != -1])
            tail = [after // max(others, 1) if size == -1 else size for size in tail]
        if all(size == 1 for size in head) and fixed(tail) == after:
            return (*head, N, *tail)
    raise Refused("an operator joins rows or splits them")


def is_stacked(shape: Shape) -> bool:
    """Whether several values are stacked along the first axis."""
    return bool(shape) and isinstance(shape[0], str) and shape[0].endswith(f"*{N}")


@dataclass(frozen=True)
class Node:
    """An operator, its attributes as Python values, its inputs (None where one is left out)."""

    operator: str
    attributes: Mapping[str, Any]
    inputs: tuple[Value | None, ...]
    n_outputs: int
    opset: int

    @property
    def first(self) -> Value:
        """The first input."""
        return self.given(0)

    def given(self, i: int) -> Value:
        """Return an input that must be there."""
        value = self.inputs[i] if i < len(self.inputs) else None
        if value is None:
            raise Refused(f"{self.operator} lacks an input")
        return value

    def there(self) -> list[Value]:
        """Return all inputs that are there."""
        return [value for value in self.inputs if value is not None]

    def option(self, name: str, i: int | None = None, default: Any = None) -> Any:
        """Return a setting: an attribute, or, since later opsets, an input that is constant."""
        if i is not None and i < len(self.inputs) and self.inputs[i] is not None:
            array = self.given(i).array
            if array is None:
                raise Refused(f"{self.operator} takes its {name} from the rows")
            return array.tolist()
        value = self.attributes.get(name, default)
        return value.tolist() if isinstance(value, np.ndarray) else value

    def axis(self, default: int, rank: int | None = None) -> int:
        """Return the attribute `axis`, counted from the front."""
        rank = len(self.first.shape) if rank is None else rank
        return place(self.attributes.get("axis", default), rank)


Rule = Callable[[Node], list[Shape]]


def place(axis: int, rank: int) -> int:
    """Count an axis from the front."""
    if not -rank <= axis < rank:
        raise Refused("an operator names an axis that is not there")
    return axis % rank


# What they give is never a whole number, whatever they are given.
FRACTIONS = {"Binarizer", "FeatureVectorizer", "LinearRegressor", "Normalizer", "OneHotEncoder"}
FRACTIONS |= {"SVMRegressor", "Scaler", "TfIdfVectorizer", "TreeEnsembleRegressor"}
CLASSIFIERS = frozenset({"LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier"})
# Numbers at other places, but no others.
MOVES = {"Cast", "Concat", "Expand", "Flatten", "Identity", "Reshape", "Slice", "Squeeze"}
MOVES |= {"Transpose", "Unsqueeze"}


def numbers_after(node: Node, i: int) -> tuple[bool, int]:
    """Whether output i of a node may hold whole numbers, and what all of them are below."""
    if node.operator in ("ArgMax", "ArgMin"):
        axis = node.axis(0)
        return True, fixed(node.first.shape[axis : axis + 1])
    if node.operator in FRACTIONS:
        return False, 0
    if node.operator in CLASSIFIERS:
        return i == 0, 0
    if node.operator == "TopK" and i == 1:
        return True, fixed(node.first.shape[node.axis(-1) :][:1])
    if node.operator == "Cast":
        return node.attributes.get("to") in WHOLE, node.first.below
    if node.operator == "LabelEncoder":
        return not {"values_floats", "values_strings"}.intersection(node.attributes), 0
    if node.operator == "ConstantOfShape":
        value = node.attributes.get("value")
        return value is not None and value.dtype.kind in "iu", 0
    source = node.given(1) if node.operator == "Where" else node.first
    kept = node.operator in MOVES and len({value.below for value in _moved(node)}) == 1
    return source.whole, source.below if kept else 0


def _moved(node: Node) -> list[Value]:
    return node.there() if node.operator == "Concat" else [node.first]


def along(shape: Shape, axis: int) -> int:
    """Refuse to work along the rows."""
    if shape[axis] in (N, W):
        raise Refused("an operator works along the rows, so that one would change another")
    return axis


def sizes_of(value: Value) -> tuple[Size, ...]:
    """Return sizes that are known before any row is."""
    sizes = value.array if value.sizes is None else value.sizes
    if sizes is None or sizes.ndim != 1:
        raise Refused("a shape depends on the values of the rows")
    return tuple(sizes.tolist())


Sizes = NDArray[Any]


def sizes_after(node: Node) -> Sizes:
    """Return the sizes that a node computes from sizes, or from the shape of a value."""
    if node.operator == "Shape":
        shape = node.first.shape
        if W in shape:
            raise Refused("Shape of words depends on the rows")
        start, end = node.attributes.get("start", 0), node.attributes.get("end", len(shape))
        return np.array(shape, dtype=object)[start:end]
    sizes_in = [value.array if value.sizes is None else value.sizes for value in node.there()]
    known = [sizes.astype(object) for sizes in sizes_in if sizes is not None]
    if len(known) < len(sizes_in):
        raise Refused("a shape depends on the values of the rows")
    if node.operator == "Concat":
        return np.concatenate(known)
    if node.operator == "Gather" and node.given(1).sizes is None:
        return np.asarray(np.take(known[0], known[1].astype(int)), dtype=object)
    if node.operator == "Identity" or (node.operator == "Cast" and node.attributes["to"] in WHOLE):
        return known[0]
    if node.operator in ("Squeeze", "Unsqueeze", "Reshape") and known[0].size == 1:
        return known[0].reshape(()) if node.operator == "Squeeze" else known[0].reshape(1)
    if node.operator == "Slice":
        (start,), (end,) = node.option("starts", 1), node.option("ends", 2)
        return known[0][start : end : (node.option("steps", 4) or [1])[0]]
    raise Refused(f"{node.operator} computes with the number of rows")
