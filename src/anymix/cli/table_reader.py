"""Tables of rows in CSV, Parquet or NPZ, read chunk by chunk."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NoReturn
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from anymix._errors import InputError
from anymix.exchange import Manifest, need

CHUNK_ROWS = 20_000
# An NPZ file has no names of columns: these arrays stand for rows and target.
NPZ_ROWS, NPZ_TARGET = "X", "y"
# What numpy raises for a file that is cut, empty, pickled, one array, or without the array.
NPZ_FAULTS = (LookupError, ValueError, OSError, EOFError, TypeError, BadZipFile)
FILL_IN = "fill it in or leave the row out"


@dataclass(frozen=True)
class Columns:
    """Which columns hold the features and, if any, the target; `text` if they hold documents."""

    features: tuple[str, ...]
    target: str | None = None
    text: bool = False
    numeric_target: bool = True

    @classmethod
    def of(cls, manifest: Manifest, target: str | None = None) -> Columns:
        """Take the columns from a source's manifest."""
        classes = manifest.classes
        numeric = classes is None or isinstance(classes[0], int)
        names = tuple(feature.name for feature in manifest.features)
        text = manifest.features[0].dtype == "string"
        return cls(names, target, text, numeric)


@dataclass(frozen=True)
class Chunk:
    """Rows X, their targets y or None, and which share of the file is read."""

    X: Any
    y: NDArray[Any] | None
    share: float


def read_chunks(path: str | Path, columns: Columns, size: int = CHUNK_ROWS) -> Iterator[Chunk]:
    """Yield the rows of a table; an error names the file, the row (from 1) and the column."""
    path = Path(path)
    readers = {".csv": _read_csv, ".parquet": _read_parquet, ".npz": _read_npz}
    if path.suffix not in readers:
        raise InputError(path, "is not a table that can be read; give .csv, .parquet or .npz")
    if not path.is_file():
        raise InputError(path, "does not exist")
    row = 1
    for X, y, share in readers[path.suffix](path, columns, size):
        if not columns.text:
            _check_finite(path, columns.features, np.asarray(X), row)
        yield Chunk(X, None if y is None else _target(path, columns, y, row), share)
        row += len(X)


def read_rows(path: str | Path, columns: Columns) -> tuple[Any, Any]:
    """Return all rows of a table, and their targets."""
    chunks = list(read_chunks(path, columns))
    if not chunks:
        raise InputError(path, "has no rows")
    X = (
        [row for c in chunks for row in c.X]
        if columns.text
        else np.concatenate([c.X for c in chunks])
    )
    return X, None if columns.target is None else np.concatenate([c.y for c in chunks])


def _check_finite(path: Path, names: Sequence[str], X: NDArray[Any], row: int) -> None:
    bad = np.argwhere(~np.isfinite(X))
    if bad.size:
        i, j = bad[0]
        _fail(path, row + int(i), names[j], f"has no number; {FILL_IN}")


def _fail(path: Path, row: int, name: str, what: str) -> NoReturn:
    raise InputError(f"{path}, row {row}: column {name!r}", what)


def _target(path: Path, columns: Columns, y: Any, row: int) -> NDArray[Any]:
    """Return numbers, whole numbers or strings, as the sources' labels are."""
    values = np.asarray(y)
    for i, value in enumerate(values.tolist()):
        if value is None or (isinstance(value, str) and not value.strip()):
            _fail(path, row + i, str(columns.target), f"has no label; {FILL_IN}")
    if not columns.numeric_target:
        return values.astype(str)
    try:
        numbers = values.astype(float)
    except ValueError:
        numbers = np.array([_number(value) for value in values.tolist()])
    bad = np.flatnonzero(~np.isfinite(numbers))
    if bad.size:
        shown = repr(values[bad[0]].item())
        _fail(path, row + int(bad[0]), str(columns.target), f"holds {shown}, which is not a number")
    return numbers


def _number(value: Any) -> float:
    try:
        return float(value)
    except ValueError:
        return np.nan


def check_there(
    path: Path, wanted: Sequence[str], there: Sequence[str], target: str | None = None
) -> None:
    """Refuse a table that lacks a column."""
    for name in wanted:
        if name not in there:
            shown = ", ".join(list(there)[:8]) + (", ..." if len(there) > 8 else "")
            remedy = "; name the column with the label by --target" if name == target else ""
            raise InputError(path, f"has no column {name!r}; it has {shown}{remedy}")


def check_commas(path: Path, header: Sequence[str]) -> None:
    """Refuse a header of one name that other marks than commas cut into several."""
    for mark, name in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
        if len(header) == 1 and mark in header[0]:
            raise InputError(path, f"has {name} between its columns; write it with commas")


def _read_csv(path: Path, columns: Columns, size: int) -> Iterator[tuple[Any, Any, float]]:
    total = max(path.stat().st_size, 1)
    with open(path, "rb") as file:
        header = read_header(path, file)
        target = [] if columns.target is None else [columns.target]
        check_there(path, [*columns.features, *target], header, columns.target)
        places = [header.index(name) for name in columns.features]
        row = 1
        while lines := _lines(path, file, size, row):
            y = None
            if columns.target is not None:
                y = _column(path, lines, header, columns.target, row)
            if columns.text:
                X: Any = _column(path, lines, header, columns.features[0], row)
            else:
                X = _numbers(path, lines, header, places, row)
            yield X, y, file.tell() / total
            row += len(lines)


def read_header(path: Path, file: BinaryIO) -> list[str]:
    """Return the names of the columns, cut at commas."""
    try:
        line = file.readline().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: the header", "is not UTF-8; save the table as UTF-8") from error
    header = _fields(line)
    if not header:
        raise InputError(path, "has no header; its first line must name the columns")
    check_commas(path, header)
    return header


def _lines(path: Path, file: BinaryIO, size: int, row: int) -> list[str]:
    try:
        return [line.decode("utf-8") for line in islice(file, size)]
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}, row {row} or later: the text", "is not UTF-8; save it as UTF-8"
        ) from error


def _numbers(
    path: Path, lines: list[str], header: list[str], places: list[int], row: int
) -> NDArray[Any]:
    _check_cuts(path, lines, header, row)
    try:
        X = np.loadtxt(lines, delimiter=",", usecols=places, ndmin=2, quotechar='"', comments=None)
    except ValueError:
        X = np.empty((0, 0))
    if len(X) != len(lines):
        # The quick way failed or left out empty lines; the slow way finds the place.
        _find_fault(path, lines, header, places, row)
    return X


def _check_cuts(path: Path, lines: list[str], header: list[str], row: int) -> None:
    """Refuse a row that is too short or too long, as the last of a file that was cut in half."""
    for i, line in enumerate(lines, row):
        # Counting is quick; only a line with another number of commas is parsed.
        if line.count(",") != len(header) - 1 and len(fields := _fields(line)) != len(header):
            _fields_differ(path, i, fields, header)


def _find_fault(
    path: Path, lines: list[str], header: list[str], places: list[int], row: int
) -> NoReturn:
    for i, fields in enumerate(map(_fields, lines), row):
        for place in places:
            if not fields[place].strip():
                _fail(path, i, header[place], f"has no number; {FILL_IN}")
            if not np.isfinite(_number(fields[place])):
                _fail(path, i, header[place], f"holds {fields[place]!r}, which is not a number")
    raise InputError(f"{path}, row {row} or later: the rows", "cannot be read as numbers")


def _fields(line: str) -> list[str]:
    return next(csv.reader([line.rstrip("\r\n")]), [])


def _fields_differ(path: Path, row: int, fields: list[str], header: list[str]) -> NoReturn:
    raise InputError(
        f"{path}, row {row}:", f"{len(fields)} fields where the header has {len(header)}"
    )


def _column(path: Path, lines: list[str], header: list[str], name: str, row: int) -> list[str]:
    place, values = header.index(name), []
    for i, fields in enumerate(map(_fields, lines), row):
        if len(fields) != len(header):
            _fields_differ(path, i, fields, header)
        values.append(fields[place])
    return values


def open_parquet(path: Path) -> Any:
    """Return an open Parquet file."""
    try:
        return need("pyarrow.parquet").ParquetFile(path)
    except need("pyarrow").ArrowInvalid as error:
        raise InputError(path, "is not a Parquet file") from error


def _read_parquet(path: Path, columns: Columns, size: int) -> Iterator[tuple[Any, Any, float]]:
    file = open_parquet(path)
    names = [*columns.features, *([] if columns.target is None else [columns.target])]
    check_there(path, names, file.schema_arrow.names, columns.target)
    done, total = 0, max(file.metadata.num_rows, 1)
    for batch in file.iter_batches(batch_size=size, columns=names):
        done += batch.num_rows
        y = None if columns.target is None else batch.column(columns.target).to_pylist()
        if columns.text:
            yield batch.column(columns.features[0]).to_pylist(), y, done / total
            continue
        parts = [_floats(path, batch.column(name), name) for name in columns.features]
        yield np.stack(parts, axis=1), y, done / total


def _floats(path: Path, column: Any, name: str) -> NDArray[Any]:
    try:
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(f"{path}: column {name!r}", "does not hold numbers") from error


def _read_npz(path: Path, columns: Columns, size: int) -> Iterator[tuple[Any, Any, float]]:
    try:
        # numpy leaves a file open that it has opened itself and cannot read.
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
            X = arrays[NPZ_ROWS]
            y = None if columns.target is None else arrays[NPZ_TARGET]
    except NPZ_FAULTS as error:
        needed = NPZ_ROWS if columns.target is None else f"{NPZ_ROWS} and {NPZ_TARGET}"
        raise InputError(path, f"must hold plain arrays named {needed}") from error
    expected = (len(X),) if columns.text else (len(X), len(columns.features))
    if X.shape != expected or (y is not None and y.shape != (len(X),)):
        raise InputError(
            f"{path}: X", f"has shape {X.shape}; {expected} is expected, with y to match"
        )
    for start in range(0, len(X), size):
        part = slice(start, start + size)
        rows = X[part].tolist() if columns.text else X[part]
        yield rows, None if y is None else y[part], min(1.0, (start + size) / len(X))
