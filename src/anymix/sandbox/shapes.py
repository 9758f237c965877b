"""What is known of a value of a graph before any row is there: its shape, and which axis is rows.

A shape is a tuple of sizes.  One of them may be N, the number of rows; W is the number of words of
the longest document of a batch.  Whatever has no N is the same for all rows.

    (N, 4) + (4,)      (N, 4)           each row by itself
    (N, 4) + (N, 1)    (N, 4)
    (N, 4) @ (4, 3)    (N, 3)
    (N,) + (N, 1)      refused: row i would meet row j
    k values (N, 1), one below the other, are (k*n, 1), which may only become (k, N)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray

N, W = "n", "words"
Size = int | str
Shape = tuple[Size, ...]


class Refused(Exception):
    """One sentence on what is wrong with a graph, without its full stop."""


class Value(NamedTuple):
    """A shape, and the numbers of a constant, or the sizes that `Shape` read off another value."""

    shape: Shape
    array: NDArray[Any] | None = None
    sizes: NDArray[Any] | None = None

    @property
    def has_rows(self) -> bool:
        """Whether the value differs from row to row."""
        return N in self.shape


def rows_axis(shape: Shape) -> int:
    """Return which axis is rows."""
    return shape.index(N)


def one_row_axis(shape: Sequence[Size]) -> Shape:
    """Refuse a shape in which rows would meet rows."""
    if list(shape).count(N) > 1:
        raise Refused("an operator brings rows together")
    return tuple(shape)


def broadcast(*shapes: Shape) -> Shape:
    """Return the common shape, aligned at the right, as numpy does.

    Examples
    --------
    >>> broadcast((N, 4), (4,), ())
    ('n', 4)
    >>> broadcast((N,), (N, 1))
    Traceback (most recent call last):
    ...
    anymix.sandbox.shapes.Refused: an operator brings rows together
    """
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    out: list[Size] = []
    for sizes in zip(*padded, strict=True):
        found = set(sizes) - {1}
        if len(found) > 1:
            raise Refused(f"sizes {sorted(map(str, found))} meet, and rows are not of fixed number")
        out.append(found.pop() if found else 1)
    return one_row_axis(out)


def numbers(shape: Sequence[Size]) -> int:
    """Return how many numbers a row has in a value; words are not counted here.

    Examples
    --------
    >>> numbers((N, 3, 4))
    12
    """
    return math.prod(size for size in shape if isinstance(size, int))


def fixed(shape: Sequence[Size]) -> int:
    """Return a product of sizes that are all known."""
    if not all(isinstance(size, int) for size in shape):
        raise Refused("an operator joins rows or words into one axis")
    return math.prod(size for size in shape if isinstance(size, int))


def reshaped(shape: Shape, wanted: Sequence[Size]) -> Shape:
    """Return the shape after `Reshape`, in which rows must stay rows.

    Examples
    --------
    >>> reshaped((N, 4), (-1, 1, 4))
    ('n', 1, 4)
    >>> reshaped((N, 4), (-1, 2))
    Traceback (most recent call last):
    ...
    anymix.sandbox.shapes.Refused: an operator joins rows or splits them
    """
    target = [shape[i] if size == 0 and i < len(shape) else size for i, size in enumerate(wanted)]
    if is_stacked(shape):
        return _unstacked(shape, target)
    axis = rows_axis(shape)
    before, after = fixed(shape[:axis]), fixed(shape[axis + 1 :])
    if N not in target and -1 in target:
        target[target.index(-1)] = N
    if before == 1 and target.count(N) == 1:
        place = target.index(N)
        head, tail = target[:place], _filled(target[place + 1 :], after)
        if all(size == 1 for size in head) and fixed(tail) == after:
            return (*head, N, *tail)
    raise Refused("an operator joins rows or splits them")


def stacked(shape: Shape, k: int) -> Shape:
    """Return the shape of k values, each (N, ...), one below the other."""
    return (f"{k}*{N}", *shape[1:])


def is_stacked(shape: Shape) -> bool:
    """Whether several values stand one below the other."""
    return bool(shape) and isinstance(shape[0], str) and shape[0].endswith(f"*{N}")


def _unstacked(shape: Shape, target: list[Size]) -> Shape:
    """(k*n, ...) as (k, -1, ...): the values side by side again."""
    if target[:2] == [int(str(shape[0]).split("*")[0]), -1]:
        rest = tuple(target[2:])
        if fixed(rest) == fixed(shape[1:]):
            return (target[0], N, *rest)
    raise Refused("an operator joins rows or splits them")


def _filled(target: list[Size], total: int) -> Shape:
    """Replace a single -1 by what is left of the total."""
    if target.count(-1) == 1:
        others = fixed([size for size in target if size != -1])
        target = [total // max(others, 1) if size == -1 else size for size in target]
    return tuple(target)
