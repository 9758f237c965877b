"""What a single value of a table is: a number without loss, a label as it was written."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix.cli.columns import FILL_IN, LONGEST_LABEL, TOO_LONG, Columns, fail
from anymix.exceptions import quoted
from anymix.tables import MISSING_WORDS

# Whole numbers up to here are float64 without loss.
EXACT = 2**53
WHOLE = re.compile(r"[+-]?[0-9]+")
LABEL = re.compile(r"0|-?[1-9][0-9]{0,14}")
# Codes, such as 007, are not the number that they look like.
CODE = re.compile(r"\+.*|-?0[0-9].*")
NO_LABEL = (
    "which is not a number; write numbers with a point, name the column with the label by "
    "--target, or pack with --task classification if it holds words"
)
INEXACT = (
    "a whole number of more than 53 bits, which would be rounded; divide it or, if it numbers the "
    "rows, name the column by --id where sources are packed"
)


def number_of(value: Any) -> float:
    """Return a value as a number; NaN if it is none, a ValueError if it would be rounded.

    Text must be plain digits: no underscores, no digits of other scripts.

    Examples
    --------
    >>> number_of(" 1.5"), number_of("1_000"), number_of(True), number_of(None)
    (1.5, nan, 1.0, nan)
    >>> number_of(2**53 + 1)
    Traceback (most recent call last):
    ...
    ValueError: is a whole number of more than 53 bits, which would be rounded; ...
    """
    if isinstance(value, str) and (not value.isascii() or "_" in value or "\0" in value):
        return np.nan
    try:
        number = float(value)
    except (TypeError, ValueError):
        return np.nan
    except OverflowError:
        return np.inf
    if abs(number) >= EXACT and np.isfinite(number) and _whole(value) not in (None, int(number)):
        raise ValueError(f"is {INEXACT}")
    return number


def _whole(value: Any) -> int | None:
    """Return the whole number that was meant; None for one that was written as a fraction."""
    if isinstance(value, str):
        return int(value) if WHOLE.fullmatch(value.strip()) else None
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else None
    return int(value) if isinstance(value, int) else None


def numbers_of(path: Path, name: str, values: Sequence[Any], row: int) -> NDArray[np.float64]:
    """Return values as numbers, and name the first that would be rounded."""
    found = np.empty(len(values))
    for i, value in enumerate(values):
        try:
            found[i] = number_of(value)
        except ValueError:
            fail(path, row + i, name, f"holds {quoted(value)}, {INEXACT}")
    return found


def read_target(path: Path, columns: Columns, y: Any, row: int) -> NDArray[Any]:
    """Return numbers or words, as the sources' labels are."""
    name, values = str(columns.target), y.tolist() if isinstance(y, np.ndarray) else list(y)
    missing = _is_gap if columns.numeric_target else _is_missing
    _refuse(path, name, values, row, missing, lambda _: f"has no label; {FILL_IN}")
    if not columns.numeric_target:
        words = y.astype(str).tolist() if isinstance(y, np.ndarray) else list(map(str, values))
        _refuse(path, name, words, row, _has_nul, lambda _: "holds a NUL byte; remove it")
        # numpy would give each label the room of the longest.
        _refuse(path, name, words, row, lambda w: len(w) > LONGEST_LABEL, lambda _: TOO_LONG)
        return np.array(words, dtype=str)
    if columns.whole_target:
        _refuse(path, name, values, row, _is_code, _about_code)
    _refuse(path, name, values, row, _is_gap, lambda _: f"has no label; {FILL_IN}")
    numbers = numbers_of(path, name, values, row)
    for i in np.flatnonzero(~np.isfinite(numbers)):
        fail(path, row + int(i), name, f"holds {quoted(values[i])}, {NO_LABEL}")
    return numbers


def _refuse(
    path: Path,
    name: str,
    values: Sequence[Any],
    row: int,
    wrong: Callable[[Any], bool],
    words: Callable[[Any], str],
) -> None:
    for i, value in enumerate(values, row):
        if wrong(value):
            fail(path, i, name, words(value))


def _is_missing(value: Any) -> bool:
    if isinstance(value, str):
        return not value.strip()
    return value is None or value != value  # NaN alone differs from itself


def _is_gap(value: Any) -> bool:
    """Whether a number was left out, in one of the ways in which people write that."""
    return _is_missing(value) or (
        isinstance(value, str) and value.strip().casefold() in MISSING_WORDS
    )


def _has_nul(word: str) -> bool:
    # numpy would drop it at the end of a word, and make two labels one.
    return "\0" in word


def _is_code(value: Any) -> bool:
    return isinstance(value, str) and CODE.fullmatch(value.strip()) is not None


def _about_code(value: str) -> str:
    return f"holds {quoted(value)}; the sources' labels are whole numbers, so write them alike"


def whole_labels(words: NDArray[Any]) -> NDArray[Any]:
    """Return labels as whole numbers if each is written as one, and else as they are.

    "1" and "01" may be two labels, so they stay words; so does all of their column.

    Examples
    --------
    >>> whole_labels(np.array(["1", "-2"])).tolist(), whole_labels(np.array(["1", "01"])).tolist()
    ([1, -2], ['1', '01'])
    """
    stripped = [word.strip() for word in words.tolist()]
    if all(LABEL.fullmatch(word) for word in stripped):
        return np.array([int(word) for word in stripped], dtype=np.int64)
    return words
