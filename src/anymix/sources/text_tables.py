"""Format numbers as text in aligned columns."""

from __future__ import annotations

from collections.abc import Sequence
from unicodedata import combining, east_asian_width

WIDTH = 10
# From here on decimals say nothing, and the digits before the point would break the column.
LARGE = 1e5


def number(value: float, digits: int) -> str:
    """Write a number with this many decimals, a large one with four significant digits or more.

    Examples
    --------
    >>> number(0.25, 4), number(1234.5, 1), number(3456789.0, 4)
    ('0.2500', '1234.5', '3.457e+06')
    """
    if abs(value) < LARGE:
        return f"{value:.{digits}f}"
    return f"{value:.{max(digits, 4)}g}"


def lay_out(names: Sequence[str], columns: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    """Align cells below their column names and next to their row names.

    Examples
    --------
    >>> print(lay_out(["a", "bb"], ["x", "a long name"], [["1", "2"], ["3", "4"]]))
                 x  a long name
    a            1            2
    bb           3            4
    """
    first = max(map(_width, names))
    texts = [*zip(columns, *cells, strict=True)]
    wide = [max(WIDTH, *map(_width, column)) for column in texts]
    lines = [
        name
        + " " * (first - _width(name))
        + "".join(f"  {' ' * (w - _width(c))}{c}" for c, w in zip(row, wide, strict=True))
        for name, row in zip(["", *names], [columns, *cells], strict=True)
    ]
    return "\n".join(lines)


def _width(text: str) -> int:
    r"""Count the places that a text takes: two for a letter of a wide script, none for a mark.

    Examples
    --------
    >>> _width("north"), _width("\u9000\u5f79"), _width("Mu\u0308")
    (5, 4, 2)
    """
    return sum(1 + (east_asian_width(c) in "WF") - bool(combining(c)) for c in text)
