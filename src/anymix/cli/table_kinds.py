"""What the columns of a table to train on are: numbers, booleans or words, with or without gaps."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from anymix.cli.chosen_columns import FEW
from anymix.cli.columns import NO_ROWS, Columns, fail
from anymix.cli.mixed_cells import BOOLEANS, number_or_gap, texts_of
from anymix.cli.table_files import kind_of
from anymix.cli.table_reader import CHUNK_ROWS, READERS
from anymix.exceptions import InputError, quoted
from anymix.exchange import is_text
from anymix.tables import MOST_CATEGORIES, Column
from anymix.tables import Columns as Coding

LEAST_ROWS = 5  # that have a word, so that it tells of none of them
DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}( .*)?|"
    r"\d{1,2}:\d{2}(:\d{2}.*)?"
)
# As other languages write numbers, and as thousands are set apart.
COMMAS = re.compile(r"[+-]?\d+(,\d+)+")
# What a column of words is asked for where its categories are not known yet: its raw cells.
ANY: tuple[str, ...] = ()


@dataclass(frozen=True)
class TableKinds:
    """The coding of a table, whether it holds booleans, notes for the user, and likely ids."""

    coding: Coding
    booleans: bool
    notes: tuple[str, ...]
    ids: tuple[str, ...] = ()


def look_at(path: str | Path, names: Sequence[str], least: int = LEAST_ROWS) -> TableKinds:
    """Find out what the columns are; dates, and words among numbers, are refused in a sentence.

    Words that fewer than `least` rows have are not listed: they would tell of these rows.
    """
    path = Path(path)
    seen = [_Seen(path, name) for name in names]
    for row, parts in _raw(path, names):
        for one, values in zip(seen, parts, strict=True):
            one.look(values, row)
    of_words = [one.name for one in seen if one.holds_words(least)]
    counts = _counted(path, of_words)
    listed = {name: _often(words, least) for name, words in counts.items()}
    notes = [note for one in seen for note in one.notes()]
    notes += [
        f"column {quoted(name)} has {rare} word{'s' * (rare > 1)} of fewer than {least} rows, "
        "which are not listed and read as empty."
        for name, words in counts.items()
        if (rare := len(words) - len(listed[name]))
    ]
    coding = Coding(tuple(Column(name, listed.get(name)) for name in names))
    return TableKinds(coding, any(one.booleans for one in seen), tuple(notes), _ids(seen))


def _ids(seen: Sequence[_Seen]) -> tuple[str, ...]:
    """Name the columns that have another word in every row."""
    return tuple(
        one.name for one in seen if not one.numbers and len(one.words) == one.words.total() >= FEW
    )


def notes_on(names: Sequence[str], X: Any) -> list[str]:
    """Note the columns of a table of numbers that say nothing: they are the same in all rows.

    Examples
    --------
    >>> notes_on(["a", "b"], np.array([[1.0, 2.0], [1.0, 3.0]]))
    ["column 'a' is the same in all rows."]
    """
    same = zip(names, np.ptp(X, axis=0) == 0, strict=True)
    return [f"column {quoted(name)} is the same in all rows." for name, each in same if each]


def _raw(path: Path, names: Sequence[str]) -> Iterator[tuple[int, list[Any]]]:
    """Yield the columns as they are written, and the row of their first cells."""
    d, row = len(names), 1
    wanted = Columns(tuple(names), categories=(ANY,) * d, gaps=(True,) * d)
    for rows in READERS[kind_of(path)](path, wanted, CHUNK_ROWS):
        yield row, rows.X
        row += len(rows.X[0])
    if row == 1:
        raise InputError(path, NO_ROWS)


def _counted(path: Path, names: Sequence[str]) -> dict[str, Counter[str]]:
    """Count the rows of each word."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in names}
    for _, parts in _raw(path, names) if names else ():
        for name, values in zip(names, parts, strict=True):
            counts[name].update(word for word in texts_of(values) if word is not None)
    return counts


def _often(words: Counter[str], least: int) -> tuple[str, ...]:
    # By name where equal, so that the order of the rows does not matter.
    often = sorted((-n, word) for word, n in words.items() if n >= least and is_text(word))
    return tuple(sorted(word for _, word in often[:MOST_CATEGORIES]))


@dataclass
class _Seen:
    """What was met in one column: numbers, gaps, and words that are neither."""

    path: Path
    name: str
    numbers: int = 0
    booleans: int = 0
    words: Counter[str] = field(default_factory=Counter)
    some: set[float | str] = field(default_factory=set)
    fault: tuple[int, str] | None = None

    def look(self, values: Any, row: int) -> None:
        """Look at some cells, the first of which stands in row `row`."""
        cells = values.tolist() if isinstance(values, np.ndarray) else values
        counts = Counter(cells)
        for value in counts:
            found = self._meaning(value, lambda value=value: row + cells.index(value))
            if isinstance(found, str):
                self.words[found] += counts[value]
            elif not np.isnan(found):
                self.numbers += counts[value]
                flag = isinstance(value, str) and value.strip().lower() in BOOLEANS
                self.booleans += counts[value] * flag
            # Two different values are enough to know that it is no constant.
            if len(self.some) < 2 and found == found:
                self.some.add(found)

    def _meaning(self, value: Any, row: Any) -> float | str:
        try:
            return number_or_gap(value)
        except ValueError as error:
            if not isinstance(value, str) or "not a number" not in str(error):
                fail(self.path, row(), self.name, str(error))
            self.fault = self.fault or (row(), str(error))
            return value

    def holds_words(self, least: int) -> bool:
        """Whether the column holds words; a slip of the pen among numbers is refused."""
        total = self.words.total()
        if not total:
            if 0 < self.booleans < self.numbers:
                raise InputError(
                    f"{self.path}: column {quoted(self.name)}",
                    "holds true and false among numbers; write all of it in one way",
                )
            return False
        dates = [word for word in self.words if DATE.fullmatch(word.strip())]
        if 2 * sum(self.words[word] for word in dates) > total + self.numbers:
            raise InputError(
                f"{self.path}: column {quoted(self.name)}",
                f"holds dates or times, such as {quoted(dates[0])}; turn them into numbers, such "
                "as days since a day, or leave the column out by --drop",
            )
        commas = [word for word in self.words if COMMAS.fullmatch(word.strip())]
        if sum(self.words[word] for word in commas) == total:
            raise InputError(
                f"{self.path}: column {quoted(self.name)}",
                f"holds numbers with commas, such as {quoted(commas[0])}; write them with a point, "
                "and nothing between thousands",
            )
        if self.numbers >= total and max(self.words.values()) < least and self.fault:
            fail(self.path, self.fault[0], self.name, self.fault[1])
        return True

    def notes(self) -> Iterator[str]:
        """Say if the column says nothing."""
        if not self.some:
            yield f"column {quoted(self.name)} is empty in all rows."
        elif len(self.some) == 1:
            yield f"column {quoted(self.name)} is the same in all rows that have it."
