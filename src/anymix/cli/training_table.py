"""A table to train on: what its columns are, and its rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix.cli.binary_rows import npz_shape, opened
from anymix.cli.chosen_columns import FEW, Choice, look_like_ids, said_of_id
from anymix.cli.csv_rows import read_header
from anymix.cli.streams import caution
from anymix.cli.table_cells import (
    BOOLEANS,
    NO_ROWS,
    Encoder,
    TableColumns,
    check_once,
    fail,
    number_or_gap,
    texts_of,
    whole_labels,
)
from anymix.cli.table_files import TEXTS, kind_of, open_text
from anymix.cli.table_reader import CHUNK_ROWS, READERS, check_kind, read_rows
from anymix.exceptions import InputError, quoted
from anymix.exchange import is_label, is_text
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
    wanted = TableColumns(tuple(names), categories=(ANY,) * d, gaps=(True,) * d)
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


ALL = Choice()


def column_names(path: str, target: str, choice: Choice = ALL) -> list[str]:
    """Return the names of the features: all columns but the target, unless others are chosen."""
    names = _names(Path(path))
    if kind_of(path) == ".npz":
        if choice.named:
            raise InputError(
                path,
                "has no names of columns, so --features, --drop and --id can name none; write it "
                "as CSV or Parquet",
            )
        return [name for name in names if name != target]
    features = choice.among(Path(path), names, target)
    _check_names(path, names, features)
    if not features:
        raise InputError(path, f"has no column but {target!r}; a source needs features")
    return features


def _names(path: Path) -> list[str]:
    kind = check_kind(path)
    if kind in TEXTS:
        with open_text(path) as text:
            return read_header(path, text)[0]
    if kind == ".parquet":
        with opened(path) as file:
            return list(file.schema_arrow.names)
    shape = npz_shape(path)
    if len(shape) != 2:
        raise InputError(path, "must hold a plain array X of shape (rows, features)")
    return [f"x{i}" for i in range(shape[1])]


def _check_names(path: str, names: list[str], features: list[str]) -> None:
    """Names of features must be such as a manifest may hold."""
    chosen = set(features)
    for i, name in enumerate(names, 1):
        if name not in chosen:
            continue
        if not name.strip() or name.startswith("__index_level_"):
            raise InputError(
                f"{path}: column {i}",
                "has no name; name it, or leave it out (pandas writes no index with index=False)",
            )
        if not is_text(name):
            raise InputError(
                f"{path}: the name of column {i}",
                "is longer than 200 characters or cannot be printed; rename the column",
            )
    check_once(path, [name for name in names if name in chosen])


@dataclass(frozen=True)
class TrainingTable:
    """Rows X, targets y, the names of the columns, their coding or None, notes for the user.

    A table of complete numbers has no coding; `ids` have another word in every row.
    """

    X: Any
    y: Any
    names: list[str]
    coding: Coding | None = None
    notes: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()

    @property
    def columns(self) -> Coding:
        """The coding, of complete numbers too."""
        return self.coding or Coding(tuple(map(Column, self.names)))

    @property
    def filled(self) -> Any:
        """X with a constant for each column without any value, which not all estimators take."""
        return np.where(np.isnan(self.X).all(axis=0), 0.0, self.X)

    @property
    def first_of_words(self) -> str | None:
        """The first column that holds words, if one does."""
        return next((c.name for c in self.coding or () if c.categories is not None), None)

    @property
    def first_with_gaps(self) -> str | None:
        """The first column that has gaps, if one has."""
        return next((self.names[j] for j in np.flatnonzero(np.isnan(self.X).any(axis=0))), None)


def read_training_table(
    path: str,
    target: str,
    task: str | None,
    reference: Coding | None = None,
    least: int = LEAST_ROWS,
    choice: Choice = ALL,
) -> TrainingTable:
    """Read a table as it is, with words and gaps; with the columns of the reference, if any.

    Without a task, targets are not read; of words those are categories that `least` rows have.
    A column that seems to name the rows is warned of, unless the features were chosen by name.
    """
    names = column_names(path, target, choice)
    table = _read(path, names, target, task, reference, least)
    if choice.features is None:
        for name in (*look_like_ids(table.names, table.X), *table.ids):
            caution(said_of_id(path, name))
    return table


def _read(
    path: str,
    names: list[str],
    target: str,
    task: str | None,
    reference: Coding | None,
    least: int,
) -> TrainingTable:
    if reference is not None:
        check_names(path, names, reference)
        names = list(reference.names)
    if reference is None or not reference.categorical.any():
        # Complete numbers are read as ever; what is wrong with others is found by a second look.
        with suppress(InputError):
            X, y = read_training_rows(path, names, target, task)
            return TrainingTable(X, y, names, None, tuple(notes_on(names, X)))
    if reference is not None:
        return _in_columns_of(path, target, task, reference)
    kinds = look_at(path, names, least)
    # The notes tell of words that are not listed.
    silent = Encoder(Path(path), _wanted(names, None, None, kinds.coding))
    X, y = read_training_rows(path, names, target, task, kinds.coding, silent)
    plain = not (kinds.coding.categorical.any() or kinds.booleans or np.isnan(X).any())
    return TrainingTable(X, y, names, None if plain else kinds.coding, kinds.notes, kinds.ids)


def _in_columns_of(path: str, target: str, task: str | None, reference: Coding) -> TrainingTable:
    names = list(reference.names)
    encoder = Encoder(Path(path), _wanted(names, None, None, reference))
    X, y = read_training_rows(path, names, target, task, reference, encoder)
    for column, values in zip(reference, X.T, strict=True):
        if column.categories and column.name in encoder.unseen and np.isnan(values).all():
            known = ", ".join(map(quoted, column.categories[:5]))
            raise InputError(
                f"{path}: column {quoted(column.name)}",
                f"holds {quoted(encoder.example[column.name])}, and no category of the reference "
                f"({known}); write it as the other sites do, or make the reference anew",
            )
    encoder.warn()
    empty = tuple(
        f"column {quoted(name)} is empty in all rows."
        for name, values in zip(names, X.T, strict=True)
        if np.isnan(values).all()
    )
    return TrainingTable(X, y, names, reference, empty)


def check_names(path: str, names: Sequence[str], reference: Coding) -> None:
    """Refuse a table that has not the columns of the reference."""
    for name in reference.names:
        if name not in names:
            raise InputError(
                path, f"has no column {quoted(name)}, which the reference has; all sites must agree"
            )
    for name in names:
        if name not in reference.names:
            raise InputError(
                f"{path}: column {quoted(name)}",
                "is not in the reference; leave it out by --drop, name it by --id if it names the "
                "rows, or make the reference anew",
            )


def _wanted(
    names: Sequence[str], target: str | None, task: str | None, coding: Coding | None
) -> TableColumns:
    plain = TableColumns(tuple(names), target, numeric_target=task == "regression")
    if coding is None:
        return plain
    return replace(plain, categories=tuple(c.categories for c in coding), gaps=(True,) * len(names))


def read_training_rows(
    path: str,
    names: list[str],
    target: str,
    task: str | None,
    coding: Coding | None = None,
    encoder: Encoder | None = None,
) -> tuple[Any, Any]:
    """Return rows and labels; labels that all are written as whole numbers become such.

    With a coding there may be words and gaps.
    """
    columns = _wanted(names, None if task is None else target, task, coding)
    X, y = read_rows(path, columns, encoder)
    if task != "classification":
        return X, y
    _check_labels(path, target, y)
    return X, whole_labels(y)


def _check_labels(path: str, target: str, y: NDArray[Any]) -> None:
    """Labels must be such as a manifest may hold."""
    invalid = [label for label in np.unique(y).tolist() if not is_label(label)]
    if invalid:
        row = int(np.flatnonzero(y == invalid[0])[0]) + 1
        raise InputError(
            f"{path}, row {row}: column {target!r}",
            "holds a label of over 200 characters, or one that cannot be printed or that a "
            "spreadsheet would run as a formula; rename it",
        )
