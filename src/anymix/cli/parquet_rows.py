"""Rows of Parquet files; a column of a kind that would be changed on the way is refused."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix._errors import InputError, one_line
from anymix.cli.cells import EXACT, numbers_of
from anymix.cli.columns import (
    Columns,
    check_documents,
    check_swelling,
    check_there,
    open_table,
)
from anymix.exchange import need

# Runs of equal values take next to nothing in a Parquet file, so an honest one may swell a lot.
MOST_SWELLING = 1000


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """Open a Parquet file; what is wrong with it is said in a sentence."""
    pyarrow, parquet = need("pyarrow"), need("pyarrow.parquet")
    with open_table(path) as file:
        try:
            found = parquet.ParquetFile(file)
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            raise InputError(path, "is not a Parquet file") from error
        yield found


def read_parquet(path: Path, columns: Columns, size: int) -> Iterator[tuple[Any, Any, float]]:
    """Yield rows, targets, and the share of the file that is read."""
    with opened(path) as file:
        names = [*columns.features, *([] if columns.target is None else [columns.target])]
        check_there(path, names, file.schema_arrow.names, columns.target)
        total = max(file.metadata.num_rows, 1)
        check_swelling(path, total * len(names), os.stat(path).st_size, MOST_SWELLING)
        done = 0
        for batch in _batches(path, file, size, names):
            yield *_rows(path, columns, batch, done + 1), (done + batch.num_rows) / total
            done += batch.num_rows


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
    parts = [
        _floats(path, _plain(path, batch, name, NUMBERS), name, row) for name in columns.features
    ]
    return np.stack(parts, axis=1), y


NUMBERS = ("numbers", "decimals", "booleans", "nulls")
LABELS = (*NUMBERS, "text")
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
    "text": "; turn it into numbers first",
}


def _plain(path: Path, batch: Any, name: str, allowed: tuple[str, ...]) -> Any:
    """Return a column, which must be of a kind that can be used as it is."""
    column = batch.column(name)
    types = need("pyarrow").types
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    tests = ((kind, test) for kind, names in KINDS.items() for test in names)
    there = ((kind, getattr(types, f"is_{test}", None)) for kind, test in tests)
    kind = next((kind for kind, test in there if test and test(column.type)), "values")
    if kind not in allowed:
        wanted = {("text",): "text", NUMBERS: "numbers"}.get(allowed, "numbers or labels")
        raise InputError(
            f"{path}: column {name!r}", f"does not hold {wanted} but {kind}{REMEDIES.get(kind, '')}"
        )
    return column


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
