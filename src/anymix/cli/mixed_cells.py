"""Cells of a table with words and gaps: numbers, codes of known words, NaN for what is not there.

What is refused in a table of numbers is refused here too, but for cells that may be empty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray
from anymix.cli.cells import INEXACT, number_of
from anymix.cli.columns import FILL_IN, NOT_A_NUMBER, Columns, fail
from anymix.cli.streams import caution
from anymix.exceptions import quoted
from anymix.tables import MISSING_WORDS, is_gap, words_of

BOOLEANS = {"false": 0.0, "true": 1.0}


def number_or_gap(value: Any) -> float:
    """Return a cell as a number: NaN for a gap, 1 and 0 for true and false.

    A ValueError says what is wrong, in words that can follow the name of the column.

    Examples
    --------
    >>> number_or_gap(" 1.5"), number_or_gap("NA"), number_or_gap("True"), number_or_gap(None)
    (1.5, nan, 1.0, nan)
    >>> number_or_gap("old")
    Traceback (most recent call last):
    ...
    ValueError: holds 'old', which is not a number; ...
    """
    if isinstance(value, str):
        word = value.strip().lower()
        if word in MISSING_WORDS:
            return np.nan
        if word in BOOLEANS:
            return BOOLEANS[word]
    elif is_gap(value):
        return np.nan
    try:
        number = number_of(value)
    except ValueError:
        raise ValueError(f"holds {quoted(value)}, {INEXACT}") from None
    if np.isnan(number):
        raise ValueError(f"holds {quoted(value)}, {NOT_A_NUMBER}")
    if np.isinf(number):
        raise ValueError(f"holds a number that is infinite; {FILL_IN}")
    return number


@dataclass
class Encoder:
    """Makes numbers of raw columns, and counts the words that were never seen.

    `unseen` has a count for each column, `example` one such word.
    """

    path: Path
    columns: Columns
    unseen: Counter[str] = field(default_factory=Counter)
    example: dict[str, str] = field(default_factory=dict)

    def encode(self, parts: Sequence[Any], row: int) -> FloatArray:
        """Return (n, d); `parts` are the d columns, the first cell of which stands in row `row`."""
        named = zip(self.columns.features, parts, self.columns.categories, strict=True)
        found = [
            self._numbers(name, values, row)
            if words is None
            else self._codes(name, values, words, row)
            for name, values, words in named
        ]
        for name, column, values, gaps in zip(
            self.columns.features, found, parts, self.columns.gaps, strict=True
        ):
            if not gaps:
                self._refuse_gaps(name, column, values, row)
        return np.stack(found, axis=1)

    def _numbers(self, name: str, values: Any, row: int) -> FloatArray:
        if isinstance(values, np.ndarray) and values.dtype.kind == "f":
            infinite = np.flatnonzero(np.isinf(values))
            if infinite.size:
                what = f"holds a number that is infinite; {FILL_IN}"
                fail(self.path, row + int(infinite[0]), name, what)
            return np.asarray(values, dtype=np.float64)
        known: dict[Any, float] = {}
        for i, value in enumerate(values):
            if value not in known:
                try:
                    known[value] = number_or_gap(value)
                except ValueError as error:
                    fail(self.path, row + i, name, str(error))
        return np.array([known[value] for value in values], dtype=np.float64)

    def _codes(self, name: str, values: Any, words: tuple[str, ...], row: int) -> FloatArray:
        if isinstance(values, np.ndarray) and values.dtype.kind == "f":
            return self._stated_codes(name, values, len(words), row)
        code: dict[str | None, float] = {word: float(i) for i, word in enumerate(words)}
        code[None] = np.nan
        found = np.empty(len(values))
        for i, word in enumerate(texts_of(values)):
            if word not in code:
                code[word] = code.get(_without_point(word), np.nan)
            found[i] = code[word]
            # Of a column without categories every word is new, and says nothing.
            if words and word is not None and np.isnan(found[i]):
                self.unseen[name] += 1
                self.example.setdefault(name, word)
        return found

    def _stated_codes(self, name: str, values: Any, n: int, row: int) -> FloatArray:
        """Check an array of numbers, which holds the codes themselves."""
        sound = np.isnan(values) | ((values >= 0) & (values < n) & (values % 1 == 0))
        for i in np.flatnonzero(~sound):
            what = f"holds {values[i]:g}, which is not the code of one of its {n} categories"
            fail(self.path, row + int(i), name, f"{what}; give 0 to {n - 1}, or a table with names")
        return np.asarray(values, dtype=np.float64)

    def _refuse_gaps(self, name: str, column: FloatArray, values: Any, row: int) -> None:
        words = self.columns.categories[self.columns.features.index(name)]
        for i in np.flatnonzero(np.isnan(column)):
            # Among words, one that was never seen is no gap in the table.
            if words is None or texts_of(values[i : i + 1]) == [None]:
                what = "word" if words is not None else "number"
                fail(self.path, row + int(i), name, f"has no {what}; {FILL_IN}")

    def warn(self) -> None:
        """Say so on standard error."""
        for sentence in self.sentences():
            caution(sentence)

    def sentences(self) -> list[str]:
        """Say of each column how many of its words are new."""
        return [
            f"{self.path}: column {quoted(name)} has {n} cell{'s' * (n > 1)} with a word that is "
            f"no category of it, such as {quoted(self.example[name])}; read as empty."
            for name, n in self.unseen.items()
        ]


def texts_of(values: Any) -> list[str | None]:
    """Return cells as words, None for gaps; a cell of blanks is one."""
    if isinstance(values, list) and all(type(value) is str for value in values):
        return [value if value.strip() else None for value in values]
    held: NDArray[Any] = np.empty(len(values), dtype=object)
    held[:] = list(values)
    return words_of(held)


def _without_point(word: str | None) -> str | None:
    """Write a whole number without its point: tables with gaps have 1.0 for 1."""
    if word is None:
        return None
    whole, point, rest = word.partition(".")
    return whole if point and whole.isdigit() and not rest.strip("0") else word
