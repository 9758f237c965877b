"""Rows of NPZ files: two plain arrays, whose sizes are checked before they are unpacked."""

from __future__ import annotations

import lzma
import math
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from anymix.cli.cells import EXACT, numbers_of
from anymix.cli.columns import Columns, Rows
from anymix.cli.table_files import MOST_SWELLING, check_swelling, open_table
from anymix.exceptions import InputError

# An NPZ file has no names of columns: these arrays stand for rows and target.
NPZ_ROWS, NPZ_TARGET = "X", "y"
# What a file that is cut, empty, locked, pickled, one array, or without the array gives.
FAULTS = (
    *(LookupError, ValueError, OSError, EOFError, TypeError, RuntimeError, SyntaxError),
    *(BadZipFile, zlib.error, lzma.LZMAError, struct.error, MemoryError),
)
KINDS = {
    **dict.fromkeys("biuf", "numbers"),
    "U": "text",
    "S": "bytes",
    "c": "complex numbers",
    **dict.fromkeys("mM", "dates or times"),
}


def read_npz(path: Path, columns: Columns, size: int) -> Iterator[Rows]:
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
            rows = _floats(path, columns, rows, start + 1)
        if columns.mixed:
            # Text is given as lists, so that it is read as that of other tables is.
            rows = [c.tolist() if c.dtype.kind == "U" else c for c in rows.T]
        yield Rows(rows, None if y is None else y[part], min(1.0, (start + size) / n))


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
    kind = KINDS.get(dtype.kind, "values of another kind")
    if dtype.kind == "f" and dtype.itemsize > 8:
        kind = "numbers of more than 64 bits"
    return shape, kind, dtype.itemsize


def _no_arrays(path: Path, name: str) -> InputError:
    return InputError(
        path, f"must hold a plain array {name}, as numpy.savez(file, X=rows, y=labels) writes it"
    )


def _floats(path: Path, columns: Columns, X: NDArray[Any], row: int) -> NDArray[Any]:
    if X.dtype.kind in "iu" and X.size and max(abs(int(X.min())), abs(int(X.max()))) >= EXACT:
        parts = [
            numbers_of(path, name, column.tolist(), row)
            for name, column in zip(columns.features, X.T, strict=True)
        ]
        return np.stack(parts, axis=1)
    return np.asarray(X, dtype=float)
