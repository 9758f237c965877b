"""The roles of a table's columns (features, target, ids), and their encoding."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from anymix._arrays import FloatArray
from anymix._parameters import did_you_mean
from anymix.exceptions import InputError, quoted
from anymix.storage import need
from anymix.tables.cells import (
    FILL_IN,
    check_once,
    fail,
    is_missing,
    without_point,
    words_in,
)
from anymix.tables.number_cells import PLAIN, numbers_in, positions_in
from anymix.tables.table_format import TableFormat

Words = tuple[str, ...] | None


@dataclass(frozen=True)
class TableColumns:
    """Which columns hold the features and, if any, the target.

    `text` if the features hold documents; the target holds numbers, or labels that are whole
    numbers, or else words.  Where categories or missing values are allowed, each feature has its
    `categories`, None for numbers, and `gaps` says whether its cells may be empty.  The column `id`
    is read as it is written, and so is `domain`, which names the source of each row; `form` says
    how the table is written.
    """

    features: tuple[str, ...]
    target: str | None = None
    text: bool = False
    numeric_target: bool = True
    whole_target: bool = False
    categories: tuple[Words, ...] = ()
    gaps: tuple[bool, ...] = ()
    id: str | None = None
    domain: str | None = None
    form: TableFormat = PLAIN

    @property
    def categorical(self) -> list[str]:
        """The categorical features."""
        named = zip(self.features, self.categories, strict=bool(self.gaps))
        return [name for name, words in named if words is not None]

    @property
    def wanted(self) -> list[str]:
        """All columns to be read."""
        others = (name for name in (self.target, self.id, self.domain) if name is not None)
        return [*self.features, *dict.fromkeys(others)]


def check_there(
    path: Path, wanted: Sequence[str], there: Sequence[str], target: str | None = None
) -> None:
    """Refuse a table that lacks a column, or has it twice."""
    times = Counter(there)
    for name in wanted:
        if name not in times:
            shown = ", ".join(map(quoted, there[:8])) + (", ..." if len(there) > 8 else "")
            remedy = "; name the label column with --target" if name == target else ""
            if name in (other.strip() for other in there):
                remedy = "; write its name in the header without blanks around it"
            # Unlikely names are not looked at.
            typed = [other for other in there[:1000] if len(other) <= 60 and other.strip() != name]
            it = f"{meant} It" if (meant := did_you_mean(name[:60], typed)) else "; it"
            raise InputError(path, f"has no column {quoted(name)}{it} has {shown[:400]}{remedy}")
        if times[name] > 1:
            check_once(path, there)


class CategoryWarning(UserWarning):
    """A table holds values that are no category of their column."""


class Encoder:
    """Encodes the features of a table, and counts unseen categories.

    `unseen` has a count for each column, `example` one such value.
    """

    def __init__(self, path: Path, columns: TableColumns):
        self.path, self.columns = path, columns
        self._file = path  # that is read now; `path` may be a folder of several
        self.unseen: Counter[str] = Counter()
        self.example: dict[str, str] = {}

    def encode(
        self,
        cells: Mapping[str, Any],
        row: int,
        form: TableFormat = PLAIN,
        path: Path | None = None,
    ) -> FloatArray:
        """Encode columns by name as (n, d); their first cells are in row `row`."""
        encoded, self._file = [], path or self.path
        for j, name in enumerate(self.columns.features):
            words = self.columns.categories[j] if self.columns.gaps else None
            column = cells[name]
            if words is not None:
                numbers = self._codes(name, column, words, row)
            else:
                booleans = bool(self.columns.gaps)
                numbers = numbers_in(self._file, name, column, row, booleans, form)
            complete = not self.columns.gaps or not self.columns.gaps[j]
            for i in np.flatnonzero(np.isnan(numbers)).tolist() if complete else ():
                # Among words, one that was never seen is not missing.
                if words is None or is_missing(column[i : i + 1].tolist()[0]):
                    what = "number" if words is None else "word"
                    fail(self._file, row + i, name, f"has no {what}; {FILL_IN}")
            encoded.append(numbers)
        return np.stack(encoded, axis=1)

    def _codes(self, name: str, column: Any, words: tuple[str, ...], row: int) -> FloatArray:
        if isinstance(column, np.ndarray):  # of numbers, which must be the codes themselves
            n = len(words)
            sound = np.isnan(column) | ((column >= 0) & (column < n) & (column % 1 == 0))
            for i in np.flatnonzero(~sound).tolist():
                what = f"holds {column[i]:g}, which is not the code of one of its {n} categories"
                what += f"; give 0 to {n - 1}, or a table with names"
                fail(self._file, row + i, name, what)
            return np.asarray(column, dtype=np.float64)
        coded = as_dictionary(column)
        code: dict[str | None, float] = {word: float(i) for i, word in enumerate(words)}
        distinct = words_in(coded.dictionary.to_pylist())
        codes = [code.get(word, code.get(without_point(word), np.nan)) for word in distinct]
        at = positions_in(coded)
        counts = np.bincount(at, minlength=len(distinct))
        for word, number, n in zip(distinct, codes, counts, strict=False):
            if word is not None and n and np.isnan(number):
                self.unseen[name] += int(n)
                self.example.setdefault(name, word)
        return np.array([*codes, np.nan])[at]

    def warn(self) -> None:
        """Warn of unseen categories, once for each column."""
        for name, n in self.unseen.items():
            if not self.columns.categories[self.columns.features.index(name)]:
                continue
            warnings.warn(
                f"{self.path}: column {quoted(name)} has {n} cell{'s' * (n > 1)} with a word that "
                f"is no category of it, such as {quoted(self.example[name])}; read as empty.",
                CategoryWarning,
                stacklevel=2,
            )


def as_dictionary(column: Any) -> Any:
    """Return a column of strings with a dictionary."""
    pyarrow = need("pyarrow")
    if pyarrow.types.is_dictionary(column.type):
        return column
    if not pyarrow.types.is_string(column.type):
        column = pyarrow.array(words_in(column.to_pylist()), pyarrow.string())
    return column.dictionary_encode()
