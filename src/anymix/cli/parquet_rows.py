"""Rows of Parquet files; a column of a kind that would be changed on the way is refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix.cli.cells import EXACT, numbers_of
from anymix.cli.columns import (
    LONGEST_LABEL,
    TOO_LONG,
    Columns,
    Rows,
    check_documents,
    check_there,
)
from anymix.cli.table_files import check_swelling, open_table, size_of
from anymix.exceptions import InputError, one_line
from anymix.exchange import need

# Runs of equal values take next to nothing in a Parquet file, so an honest one may swell a lot.
MOST_SWELLING = 1000


@contextmanager
def opened(path: Path, texts: Sequence[str] = ()) -> Iterator[Any]:
    """Open a Parquet file; what is wrong with it is said in a sentence.

    The columns `texts` are read as dictionaries: a text that stands in the file once is not
    unpacked for each row that has it.
    """
    pyarrow, parquet = need("pyarrow"), need("pyarrow.parquet")
    with open_table(path) as file:
        try:
            # With buffers all that was read would stay in memory until the end.
            found = parquet.ParquetFile(file, read_dictionary=list(texts), pre_buffer=False)
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            raise InputError(
                path, "is not a Parquet file; write it anew, or name it by what it is"
            ) from error
        yield found


def read_parquet(path: Path, columns: Columns, size: int) -> Iterator[Rows]:
    """Yield the rows of a file."""
    names = columns.wanted
    with opened(path) as file:
        check_there(path, names, file.schema_arrow.names, columns.target)
        texts = _texts(path, columns, file.schema_arrow)
    with opened(path, texts) as file:
        total = max(file.metadata.num_rows, 1)
        budget = _Budget(path, columns, total, total * len(names), size_of(path))
        done = 0
        for batch in _batches(path, file, size, names):
            budget.check(batch)
            X, y = _rows(path, columns, batch, done + 1)
            ids = None if columns.id is None else _plain(path, batch, columns.id, IDS)
            yield Rows(X, y, (done + batch.num_rows) / total, ids)
            done += batch.num_rows


def count_parquet(path: Path) -> int:
    """Return how many rows a file says it has."""
    with opened(path) as file:
        return int(file.metadata.num_rows)


def _texts(path: Path, columns: Columns, schema: Any) -> list[str]:
    """Name the columns that hold text; one of a kind that cannot be used is never unpacked."""
    features: tuple[str, ...] = ("text",) if columns.text else NUMBERS
    wanted = dict.fromkeys(columns.features, features)
    wanted |= dict.fromkeys(_of_words(columns), LABELS)
    if columns.target is not None:
        wanted[columns.target] = LABELS
    if columns.id is not None:
        wanted[columns.id] = IDS
    kinds = {
        name: _check_kind(path, name, schema.field(name).type, allowed)
        for name, allowed in wanted.items()
    }
    return [name for name, kind in kinds.items() if kind == "text"]


def _of_words(columns: Columns) -> list[str]:
    """Name the features that hold words."""
    named = zip(columns.features, columns.categories, strict=columns.mixed)
    return [name for name, words in named if words is not None]


@dataclass
class _Budget:
    """What a file may unpack to: a number takes 8 bytes, a text has any length."""

    path: Path
    columns: Columns
    n_rows: int
    numbers: int
    size: int

    def __post_init__(self) -> None:
        self.spend(0)

    def spend(self, n_bytes: int) -> None:
        """Add to what is unpacked."""
        self.numbers += n_bytes // 8
        check_swelling(self.path, self.numbers, self.size, MOST_SWELLING)

    def check(self, batch: Any) -> None:
        """Weigh the texts of a batch before they are unpacked."""
        compute, target = need("pyarrow.compute"), self.columns.target
        if target is not None and _is_text_dictionary(batch.column(target)):
            longest = compute.max(compute.utf8_length(batch.column(target).dictionary)).as_py() or 0
            if longest > LONGEST_LABEL:
                raise InputError(f"{self.path}: column {target!r}", TOO_LONG)
            # An array of labels gives each the room of the longest, 4 bytes for a character.
            taken = self.numbers + self.n_rows * longest // 2
            check_swelling(self.path, taken, self.size, MOST_SWELLING)
        for name in (self.columns.features[0] if self.columns.text else None, self.columns.id):
            if name is not None and _is_text_dictionary(column := batch.column(name)):
                lengths = compute.binary_length(column.dictionary).take(column.indices)
                self.spend(compute.sum(lengths).as_py() or 0)


def _is_text_dictionary(column: Any) -> bool:
    types = need("pyarrow").types
    return types.is_dictionary(column.type) and _kind(column.type) == "text"


def _batches(path: Path, file: Any, size: int, names: list[str]) -> Iterator[Any]:
    try:
        yield from file.iter_batches(batch_size=size, columns=names)
    except (need("pyarrow").ArrowException, OSError) as error:
        cause = one_line(str(error).strip().split("\n")[0])[:200].rstrip(".")
        raise InputError(path, f"cannot be read as Parquet: {cause}; write it anew") from error


def _rows(path: Path, columns: Columns, batch: Any, row: int) -> tuple[Any, Any]:
    y = None
    if columns.target is not None:
        y = _plain(path, batch, columns.target, LABELS).to_pylist()
    if columns.text:
        name = columns.features[0]
        documents = _plain(path, batch, name, ("text",)).to_pylist()
        check_documents(path, name, documents, row)
        return documents, y
    words = set(_of_words(columns))
    parts = [
        _words(path, batch, name)
        if name in words
        else _floats(path, _plain(path, batch, name, NUMBERS), name, row)
        for name in columns.features
    ]
    return parts if columns.mixed else np.stack(parts, axis=1), y


def _words(path: Path, batch: Any, name: str) -> list[Any]:
    """Return the values of a column; a text that stands there once is one for all its rows."""
    column = batch.column(name)
    if not _is_text_dictionary(column):
        return list(_plain(path, batch, name, LABELS).to_pylist())
    texts = column.dictionary.to_pylist()
    return [None if i is None else texts[i] for i in column.indices.to_pylist()]


NUMBERS = ("numbers", "decimals", "booleans", "nulls")
LABELS = (*NUMBERS, "text")
IDS = (*LABELS, "dates or times")
# Kinds of columns, by pyarrow's own names of the tests.
KINDS = {
    "numbers": ("integer", "floating"),
    "decimals": ("decimal",),
    "booleans": ("boolean",),
    "nulls": ("null",),
    "text": ("string", "large_string", "string_view"),
    "dates or times": ("temporal",),
    "lists or structs": ("nested",),
    "bytes": ("binary", "large_binary", "fixed_size_binary"),
}
REMEDIES = {
    "dates or times": "; turn them into numbers first, such as days since a day of your choice",
    "lists or structs": "; give each of their parts a column of its own",
    "text": "; turn it into numbers first, or leave the column out by --drop",
}


def _plain(path: Path, batch: Any, name: str, allowed: tuple[str, ...]) -> Any:
    """Return a column, which must be of a kind that can be used as it is."""
    column = batch.column(name)
    _check_kind(path, name, column.type, allowed)
    if need("pyarrow").types.is_dictionary(column.type):
        return column.dictionary_decode()
    return column


def _check_kind(path: Path, name: str, found: Any, allowed: tuple[str, ...]) -> str:
    """Return the kind of a column, which must be among those allowed."""
    kind = _kind(found)
    if kind not in allowed:
        wanted = {("text",): "text", NUMBERS: "numbers"}.get(allowed, "numbers or labels")
        raise InputError(
            f"{path}: column {name!r}", f"does not hold {wanted} but {kind}{REMEDIES.get(kind, '')}"
        )
    return kind


def _kind(found: Any) -> str:
    """Say what a type of pyarrow is, or what its dictionary holds."""
    types = need("pyarrow").types
    if types.is_dictionary(found):
        found = found.value_type
    tests = ((kind, test) for kind, names in KINDS.items() for test in names)
    there = ((kind, getattr(types, f"is_{test}", None)) for kind, test in tests)
    return next((kind for kind, test in there if test and test(found)), "values")


def _floats(path: Path, column: Any, name: str, row: int) -> NDArray[Any]:
    """Return numbers; those that could be rounded are looked at one by one."""
    types, compute = need("pyarrow").types, need("pyarrow.compute")
    if types.is_floating(column.type):
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=float)
    if types.is_integer(column.type):
        ends = compute.min_max(column).as_py()
        if max(abs(end or 0) for end in ends.values()) < EXACT:
            return np.asarray(column.to_numpy(zero_copy_only=False), dtype=float)
    return numbers_of(path, name, column.to_pylist(), row)
