"""Cells: missing values, numbers, labels and strings, with one definition for all tables.

Errors name file, row and column.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from anymix.exceptions import InputError, quoted

# How people write in a column of numbers that there is none, in small letters.
MISSING_WORDS = frozenset(("", "na", "n/a", "nan", "null", "none", "?"))
BOOLEANS = {"false": 0.0, "true": 1.0}
NO_ROWS = "has no rows; give a table with rows below its header"
FILL_IN = "fill it in or leave the row out"
INFINITE = f"holds a number that is infinite; {FILL_IN}"
NO_NUMBER = "which is not a number"
NOT_A_NUMBER = (
    f"{NO_NUMBER}; name markers of missing values with --missing, the decimal comma with "
    "--decimal, or "
    "leave the column out with --drop where sources are packed"
)
NO_LABEL = (
    "which is not a number; write numbers with a point, name the column with the label by "
    "--target, or pack with --task classification if it holds words"
)
INEXACT = (
    "a whole number of more than 53 bits, which would be rounded; divide it or, if it numbers the "
    "rows, name the column with --id where sources are packed"
)
LONGEST_LABEL = 200
TOO_LONG = f"holds a label of over {LONGEST_LABEL} characters; rename it"
# Whole numbers up to here are float64 without loss.
EXACT = 2**53
WHOLE = re.compile(r"[+-]?[0-9]+")
LABEL = re.compile(r"0|-?[1-9][0-9]{0,14}")
# Codes, such as 007, are not the number that they look like.
CODE = re.compile(r"\+.*|-?0[0-9].*")


def fail(path: Path, row: int, name: str, cause: str) -> NoReturn:
    """Raise an error that names file, row and column."""
    raise InputError(f"{path}, row {row}: column {quoted(name)}", cause)


def check_once(path: Path | str, names: Sequence[str]) -> None:
    """Refuse duplicate column names."""
    for name, times in Counter(names).most_common(1):
        if times > 1:
            raise InputError(
                path, f"has {times} columns named {quoted(name)}; rename or drop all but one"
            )


def is_missing(value: Any, number: bool = False) -> bool:
    """Whether a value is missing: None, NaN, NaT, NA and blank text; "NA" too among numbers.

    Examples
    --------
    >>> [is_missing(value) for value in (None, float("nan"), 0, " ", "NA")]
    [True, True, False, True, False]
    >>> is_missing("NA", number=True)
    True
    """
    if isinstance(value, str):
        word = value.strip()
        return not word or (number and word.casefold() in MISSING_WORDS)
    return value is None or str(value) in ("nan", "NaT", "<NA>")


def number_in(value: Any, booleans: bool = True) -> float:
    """Return a cell as a number: NaN for a missing value, 1 and 0 for true and false.

    Text must be plain digits: no underscores, no digits of other scripts.  A ValueError says what
    is wrong, in words that can follow the name of the column; one that names INEXACT reports a
    number that would be rounded.

    Examples
    --------
    >>> number_in(" 1.5"), number_in("NA"), number_in("True"), number_in(None)
    (1.5, nan, 1.0, nan)
    >>> number_in("1_000")
    Traceback (most recent call last):
    ...
    ValueError: holds '1_000', which is not a number; ...
    """
    if is_missing(value, number=True):
        return np.nan
    number, is_word = np.nan, isinstance(value, str)
    if is_word and booleans and value.strip().lower() in BOOLEANS:
        return BOOLEANS[value.strip().lower()]
    if not is_word or (value.isascii() and "_" not in value and "\0" not in value):
        try:
            number = float(value)
        except (TypeError, ValueError):
            pass
        except OverflowError:
            number = np.inf
    if np.isnan(number):
        raise ValueError(f"holds {quoted(value)}, {NOT_A_NUMBER}")
    if np.isinf(number):
        raise ValueError(INFINITE)
    # What was written as a fraction may be rounded, a whole number may not.
    whole = isinstance(value, int) or (isinstance(value, str) and WHOLE.fullmatch(value.strip()))
    whole = whole or (isinstance(value, Decimal) and value == value.to_integral_value())
    if abs(number) >= EXACT and whole and int(value) != int(number):
        raise ValueError(f"holds {quoted(value)}, {INEXACT}")
    return number


def words_in(values: Any, where: str = "a column") -> list[str | None]:
    """Return cells as strings, None for missing ones; integers have no decimal point."""
    return [None if is_missing(value) else _word(value, where) for value in values]


def _word(value: Any, where: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if hasattr(value, "isoformat"):
        raise InputError(where, "holds dates; turn them into numbers, or leave it out")
    if isinstance(value, dict | list | tuple | set):
        kind = type(value).__name__
        raise TypeError(
            f"in a table each argument must be a string or a number; {where} holds a {kind}."
        )
    return str(value)


def without_point(word: str | None) -> str | None:
    """Write an integer without its decimal point: tables with missing values have 1.0 for 1."""
    if word is None:
        return None
    whole, point, rest = word.partition(".")
    return whole if point and whole.isdigit() and not rest.strip("0") else word


def target_words(path: Path, name: str, y: Any, row: int) -> NDArray[Any]:
    """Return labels that are strings."""
    values = y.tolist()
    words = y.astype(str).tolist() if isinstance(y, np.ndarray) else list(map(str, values))
    for value, word in dict(zip(values, words, strict=True)).items():
        # numpy would drop a NUL at the end of a word, and give each label the room of the longest.
        cause = TOO_LONG if len(word) > LONGEST_LABEL else ""
        cause = "holds a NUL byte; remove it" if "\0" in word else cause
        cause = f"has no label; {FILL_IN}" if is_missing(value) else cause
        if cause:
            fail(path, row + values.index(value), name, cause)
    return np.array(words, dtype=str)


def whole_labels(words: NDArray[Any]) -> NDArray[Any]:
    """Return labels as whole numbers if each is written as one, and else as they are.

    "1" and "01" may be two labels, so they stay strings, as does their whole column.

    Examples
    --------
    >>> whole_labels(np.array(["1", "-2"])).tolist(), whole_labels(np.array(["1", "01"])).tolist()
    ([1, -2], ['1', '01'])
    """
    stripped = [word.strip() for word in words.tolist()]
    if all(LABEL.fullmatch(word) for word in stripped):
        return np.array([int(word) for word in stripped], dtype=np.int64)
    return words


def is_text(value: Any, longest: int = LONGEST_LABEL) -> bool:
    """Whether a value may name a column, a category or a label: printable, not empty, not long.

    Examples
    --------
    >>> is_text("age"), is_text(""), is_text("a" * 201)
    (True, False, False)
    """
    return isinstance(value, str) and 0 < len(value) <= longest and value.isprintable()
