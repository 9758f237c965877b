"""Tables of rows in CSV, TSV, Parquet or NPZ, read chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix.cli.binary_rows import count_parquet, npz_shape, read_npz, read_parquet
from anymix.cli.csv_rows import count_csv, read_csv
from anymix.cli.table_cells import NO_ROWS, Encoder, RawRows, check_finite, read_target
from anymix.cli.table_cells import TableColumns as TableColumns
from anymix.cli.table_files import TEXTS
from anymix.cli.table_files import check_kind as check_kind
from anymix.exceptions import InputError

CHUNK_ROWS = 20_000
READERS: dict[str, Callable[[Path, TableColumns, int], Iterator[RawRows]]] = {
    **dict.fromkeys(TEXTS, read_csv),
    ".parquet": read_parquet,
    ".npz": read_npz,
}
COUNTERS: dict[str, Callable[[Path], int]] = {
    **dict.fromkeys(TEXTS, count_csv),
    ".parquet": count_parquet,
    ".npz": lambda path: next(iter(npz_shape(path)), 0),
}


@dataclass(frozen=True)
class Chunk:
    """Rows X, their targets y or None, which share of the file is read, and ids or None."""

    X: Any
    y: NDArray[Any] | None
    share: float
    ids: Any = None


def count_rows(path: str | Path) -> int:
    """Say how many rows a table has, without reading them; of a CSV file its lines are counted."""
    path = Path(path)
    if path.is_dir():
        return sum(map(count_rows, _files_in(path)))
    return COUNTERS[check_kind(path)](path)


def read_chunks(
    path: str | Path, columns: TableColumns, size: int = CHUNK_ROWS, encoder: Encoder | None = None
) -> Iterator[Chunk]:
    """Yield the rows of a table; an error names the file, the row (from 1) and the column.

    What is read is what is written: a date, a complex number, a whole number that float64 cannot
    hold, a column that is there twice are refused.  Words that are no category of their column are
    gaps, of which a warning speaks for each column, at the end, unless the caller has the encoder.
    """
    path = Path(path)
    if path.is_dir():
        yield from _read_folder(path, columns, size, encoder)
        return
    reader, row, mine = READERS[check_kind(path)], 1, encoder or Encoder(path, columns)
    for X, y, share, ids in reader(path, columns, size):
        if columns.mixed:
            X = mine.encode(X, row)
        elif not columns.text:
            check_finite(path, columns.features, np.asarray(X), row)
        y = None if y is None else read_target(path, columns, y, row)
        yield Chunk(X, y, share, _as_objects(ids) if isinstance(ids, list) else ids)
        row += len(X)
    if encoder is None:
        mine.warn()


def _as_objects(words: list[str]) -> NDArray[Any]:
    """Keep each word as it is; an array of text would give each the room of the longest."""
    found = np.empty(len(words), dtype=object)
    found[:] = words
    return found


def _files_in(folder: Path) -> list[Path]:
    """Return the Parquet files of a folder, which are one table in the order of their names."""
    files = sorted(folder.glob("*.parquet"))
    if not files:
        raise InputError(folder, "is a folder without .parquet files; give a table")
    return files


def _read_folder(
    folder: Path, columns: TableColumns, size: int, encoder: Encoder | None
) -> Iterator[Chunk]:
    """Yield the rows of all files of a folder."""
    files = _files_in(folder)
    for i, path in enumerate(files):
        for chunk in read_chunks(path, columns, size, encoder):
            yield replace(chunk, share=(i + chunk.share) / len(files))


def read_rows(
    path: str | Path, columns: TableColumns, encoder: Encoder | None = None
) -> tuple[Any, Any]:
    """Return all rows of a table, and their targets."""
    chunks = list(read_chunks(path, columns, encoder=encoder))
    if not chunks:
        raise InputError(path, NO_ROWS)
    X = (
        [row for c in chunks for row in c.X]
        if columns.text
        else np.concatenate([c.X for c in chunks])
    )
    return X, None if columns.target is None else np.concatenate([c.y for c in chunks])
