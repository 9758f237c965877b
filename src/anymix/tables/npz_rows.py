"""Rows of NPZ files, which have no names of columns: arrays X and y stand for rows and target."""

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

from anymix.exceptions import InputError
from anymix.storage import need
from anymix.tables.table_columns import TableColumns
from anymix.tables.table_files import MOST_SWELLING, check_swelling, open_table

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


def read_npz(
    path: Path, columns: TableColumns, size: int
) -> Iterator[tuple[dict[str, Any], float]]:
    """Yield columns by name, for up to `size` rows, and the share of the file that is read.

    Numbers of a feature that has categories are their codes, and stay an array of numpy.
    """
    if columns.id is not None:
        raise InputError(path, "has no names of columns, so --id can name none; leave it out")
    if columns.domain is not None:
        raise InputError(path, "has no names of columns, so --domain can name none; leave it out")
    allowed: tuple[str, ...] = ("text",) if columns.text else ("numbers",)
    X = _array(path, NPZ_ROWS, ("numbers", "text") if columns.gaps else allowed)
    y = None if columns.target is None else _array(path, NPZ_TARGET, ("numbers", "text"))
    n = len(X) if X.ndim else 0
    expected = (n,) if columns.text else (n, len(columns.features))
    if X.shape != expected or (y is not None and y.shape != (n,)):
        there = "" if y is None else f"; y has {y.shape}, and ({n},) is expected"
        raise InputError(f"{path}: X", f"has shape {X.shape}; {expected} is expected{there}")
    X = X[:, None] if columns.text else X
    X = X if X.dtype.kind == "U" else X.astype(X.dtype.newbyteorder("="), copy=False)
    coded = set() if X.dtype.kind == "U" else set(columns.categorical)
    for start in range(0, n, size):
        part = slice(start, start + size)
        cells: dict[str, Any] = {} if y is None else {str(columns.target): y[part]}
        for name, column in zip(columns.features, X[part].T, strict=True):
            if name in coded:
                cells[name] = column.astype(float)
            else:
                plain = (
                    column.tolist() if column.dtype.kind == "U" else np.ascontiguousarray(column)
                )
                cells[name] = need("pyarrow").array(plain)
        yield cells, min(1.0, (start + size) / n)


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
                array: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
        except FAULTS as error:
            raise _no_arrays(path, name) from error
        return array


def array_header(archive: ZipFile, name: str) -> tuple[tuple[int, ...], str, int]:
    """Return shape, type and size of an array; a ValueError if its bytes do not match."""
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
