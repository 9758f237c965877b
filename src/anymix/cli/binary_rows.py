"""Rows of Parquet and NPZ files; what would be changed on the way is refused."""

from __future__ import annotations

import lzma
import math
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from anymix.cli.table_cells import (
    EXACT,
    LONGEST_LABEL,
    TOO_LONG,
    RawRows,
    TableColumns,
    check_documents,
    check_there,
    numbers_of,
)
from anymix.cli.table_files import MOST_SWELLING, check_swelling, open_table, size_of
from anymix.exceptions import InputError, one_line
from anymix.storage import need

# Runs of equal values take next to nothing in a Parquet file, so an honest one may swell a lot.
PARQUET_SWELLING = 1000


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


def read_parquet(path: Path, columns: TableColumns, size: int) -> Iterator[RawRows]:
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
            yield RawRows(X, y, (done + batch.num_rows) / total, ids)
            done += batch.num_rows


def count_parquet(path: Path) -> int:
    """Return how many rows a file says it has."""
    with opened(path) as file:
        return int(file.metadata.num_rows)


def _texts(path: Path, columns: TableColumns, schema: Any) -> list[str]:
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


def _of_words(columns: TableColumns) -> list[str]:
    """Name the features that hold words."""
    named = zip(columns.features, columns.categories, strict=columns.mixed)
    return [name for name, words in named if words is not None]


@dataclass
class _Budget:
    """What a file may unpack to: a number takes 8 bytes, a text has any length."""

    path: Path
    columns: TableColumns
    n_rows: int
    numbers: int
    size: int

    def __post_init__(self) -> None:
        self.spend(0)

    def spend(self, n_bytes: int) -> None:
        """Add to what is unpacked."""
        self.numbers += n_bytes // 8
        check_swelling(self.path, self.numbers, self.size, PARQUET_SWELLING)

    def check(self, batch: Any) -> None:
        """Weigh the texts of a batch before they are unpacked."""
        compute, target = need("pyarrow.compute"), self.columns.target
        if target is not None and _is_text_dictionary(batch.column(target)):
            longest = compute.max(compute.utf8_length(batch.column(target).dictionary)).as_py() or 0
            if longest > LONGEST_LABEL:
                raise InputError(f"{self.path}: column {target!r}", TOO_LONG)
            # An array of labels gives each the room of the longest, 4 bytes for a character.
            taken = self.numbers + self.n_rows * longest // 2
            check_swelling(self.path, taken, self.size, PARQUET_SWELLING)
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


def _rows(path: Path, columns: TableColumns, batch: Any, row: int) -> tuple[Any, Any]:
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
COLUMN_KINDS = {
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
    tests = ((kind, test) for kind, names in COLUMN_KINDS.items() for test in names)
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


# An NPZ file has no names of columns: these arrays stand for rows and target.
NPZ_ROWS, NPZ_TARGET = "X", "y"
# What a file that is cut, empty, locked, pickled, one array, or without the array gives.
FAULTS = (
    *(LookupError, ValueError, OSError, EOFError, TypeError, RuntimeError, SyntaxError),
    *(BadZipFile, zlib.error, lzma.LZMAError, struct.error, MemoryError),
)
ARRAY_KINDS = {
    **dict.fromkeys("biuf", "numbers"),
    "U": "text",
    "S": "bytes",
    "c": "complex numbers",
    **dict.fromkeys("mM", "dates or times"),
}


def read_npz(path: Path, columns: TableColumns, size: int) -> Iterator[RawRows]:
    """Yield the rows of a file."""
    if columns.id is not None:
        raise InputError(path, "has no names of columns, so --id can name none; leave it out")
    allowed: tuple[str, ...] = ("text",) if columns.text else ("numbers",)
    X = _array(path, NPZ_ROWS, ("numbers", "text") if columns.mixed else allowed)
    y = None if columns.target is None else _array(path, NPZ_TARGET, ("numbers", "text"))
    n = len(X) if X.ndim else 0
    expected = (n,) if columns.text else (n, len(columns.features))
    if X.shape != expected or (y is not None and y.shape != (n,)):
        there = "" if y is None else f"; y has {y.shape}, and ({n},) is expected"
        raise InputError(f"{path}: X", f"has shape {X.shape}; {expected} is expected{there}")
    for start in range(0, n, size):
        part = slice(start, start + size)
        rows: Any = X[part]
        if columns.text:
            rows = rows.tolist()
        elif rows.dtype.kind != "U":
            rows = _array_floats(path, columns, rows, start + 1)
        if columns.mixed:
            # Text is given as lists, so that it is read as that of other tables is.
            rows = [c.tolist() if c.dtype.kind == "U" else c for c in rows.T]
        yield RawRows(rows, None if y is None else y[part], min(1.0, (start + size) / n))


def npz_shape(path: Path) -> tuple[int, ...]:
    """Return the shape of the rows, without reading them."""
    with open_table(path) as file:
        try:
            with ZipFile(file) as archive:
                return array_header(archive, NPZ_ROWS)[0]
        except FAULTS as error:
            raise _no_arrays(path, NPZ_ROWS) from error


def _array(path: Path, name: str, allowed: tuple[str, ...]) -> NDArray[Any]:
    """Read an array of one of the kinds that can be used as they are."""
    with open_table(path) as file:
        try:
            archive = ZipFile(file)
            shape, kind, itemsize = array_header(archive, name)
        except FAULTS as error:
            raise _no_arrays(path, name) from error
        if kind not in allowed:
            raise InputError(f"{path}: {name}", f"does not hold {' or '.join(allowed)} but {kind}")
        numbers = math.prod(shape) * max(1, itemsize // 8)
        check_swelling(path, numbers, os.fstat(file.fileno()).st_size, MOST_SWELLING)
        try:
            with archive, archive.open(f"{name}.npy") as member:
                found: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
        except FAULTS as error:
            raise _no_arrays(path, name) from error
        return found


def array_header(archive: ZipFile, name: str) -> tuple[tuple[int, ...], str, int]:
    """Return shape, kind and size of the entries; a ValueError if the file has other bytes."""
    info = archive.getinfo(f"{name}.npy")
    if archive.namelist().count(info.filename) > 1:
        raise ValueError("the array is there twice")
    with archive.open(info) as member:
        version = np.lib.format.read_magic(member)
        read = np.lib.format.read_array_header_1_0
        if version != (1, 0):
            read = np.lib.format.read_array_header_2_0
        shape, _, dtype = read(member)
        size = member.tell()
    # numpy makes room for what the header claims before it reads.
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != info.file_size - size:
        raise ValueError("the array is not plain, or not as long as it claims")
    kind = ARRAY_KINDS.get(dtype.kind, "values of another kind")
    if dtype.kind == "f" and dtype.itemsize > 8:
        kind = "numbers of more than 64 bits"
    return shape, kind, dtype.itemsize


def _no_arrays(path: Path, name: str) -> InputError:
    return InputError(
        path, f"must hold a plain array {name}, as numpy.savez(file, X=rows, y=labels) writes it"
    )


def _array_floats(path: Path, columns: TableColumns, X: NDArray[Any], row: int) -> NDArray[Any]:
    if X.dtype.kind in "iu" and X.size and max(abs(int(X.min())), abs(int(X.max()))) >= EXACT:
        parts = [
            numbers_of(path, name, column.tolist(), row)
            for name, column in zip(columns.features, X.T, strict=True)
        ]
        return np.stack(parts, axis=1)
    return np.asarray(X, dtype=float)
