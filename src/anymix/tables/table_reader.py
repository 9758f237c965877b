"""Tables of rows in CSV, TSV, Parquet or NPZ, read chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix.exceptions import InputError
from anymix.tables.cells import FILL_IN, NO_ROWS, fail, target_words
from anymix.tables.csv_rows import count_csv, format_of, read_csv, read_header
from anymix.tables.excel_rows import read_excel, read_sheet
from anymix.tables.npz_rows import npz_shape, read_npz
from anymix.tables.number_cells import target_numbers
from anymix.tables.parquet_rows import open_parquet, parts_of, read_parquet
from anymix.tables.table_columns import Encoder, TableColumns
from anymix.tables.table_files import TEXTS, kind_of, open_text
from anymix.tables.table_format import TableFormat

CHUNK_ROWS = 20_000
# Each yields columns by name, for up to so many rows, and the share of the file that is read.
READERS: dict[str, Callable[[Path, TableColumns, int], Iterator[tuple[dict[str, Any], float]]]] = {
    **dict.fromkeys(TEXTS, read_csv),
    ".parquet": read_parquet,
    ".npz": read_npz,
    ".xlsx": read_excel,
}


@dataclass(frozen=True)
class Chunk:
    """Rows X, targets y or None, which share of the file is read, ids and sources or None."""

    X: Any
    y: NDArray[Any] | None
    share: float
    ids: Any = None
    domain: Any = None


def count_rows(path: str | Path) -> int:
    """Return the number of rows without reading them; for a CSV file its lines are counted."""
    path = Path(path)
    if path.is_dir():
        return sum(map(count_rows, files_in(path)))
    kind = kind_of(path)
    if kind in TEXTS:
        return count_csv(path)
    if kind == ".parquet":
        with open_parquet(path) as file:
            return int(file.metadata.num_rows)
    if kind == ".xlsx":
        return len(read_sheet(path, TableFormat())[1])
    return next(iter(npz_shape(path)), 0)


def names_in(path: Path, form: TableFormat | None = None) -> list[str]:
    """Return the names of the columns; those of an NPZ file are x0, x1, ..."""
    path = files_in(path)[0]
    kind, form = kind_of(path), form or TableFormat()
    if kind in TEXTS:
        with open_text(path, form) as (text, _):
            return read_header(text)[0]
    if kind == ".parquet":
        with open_parquet(path) as file:
            return [*file.schema_arrow.names, *parts_of(path)]
    if kind == ".xlsx":
        return read_sheet(path, form)[0]
    shape = npz_shape(path)
    if len(shape) != 2:
        raise InputError(path, "must hold a plain array X of shape (rows, features)")
    return [f"x{i}" for i in range(shape[1])]


def read_cells(
    path: Path, columns: TableColumns, size: int
) -> Iterator[tuple[dict[str, Any], float, TableFormat]]:
    """Yield raw columns, with null for additional markers of missing values.

    Also yields the share of the file that has been read, and its format.
    """
    kind, form = kind_of(path), columns.form
    if kind in TEXTS:
        form = format_of(path, form)
    for cells, share in READERS[kind](path, replace(columns, form=form), size):
        if form.missing:
            marked = {*columns.features, columns.target}
            cells |= {n: form.without_markers(c) for n, c in cells.items() if n in marked}
        yield cells, share, form


def read_chunks(
    path: str | Path, columns: TableColumns, size: int = CHUNK_ROWS, encoder: Encoder | None = None
) -> Iterator[Chunk]:
    """Yield the rows of a table; an error names the file, the row (from 1) and the column.

    Values are read exactly or refused: dates, complex numbers, integers that float64 cannot hold
    and duplicate columns are refused.  Unseen categories are missing values; a warning for each
    column follows at the end, unless the caller passes the encoder.
    """
    path = Path(path)
    if path.is_dir():
        files = files_in(path)
        shared = encoder or Encoder(path, columns)
        for i, file in enumerate(files):
            for chunk in read_chunks(file, columns, size, shared):
                yield replace(chunk, share=(i + chunk.share) / len(files))
        if encoder is None:
            shared.warn()
        return
    row, mine = 1, encoder or Encoder(path, columns)
    for cells, share, form in read_cells(path, columns, size):
        X: Any = (
            cells[columns.features[0]].tolist()
            if columns.text
            else mine.encode(cells, row, form, path)
        )
        for i, document in enumerate(X, row) if columns.text else ():
            if not isinstance(document, str):
                fail(path, i, columns.features[0], f"has no text; {FILL_IN}")
        y, target = None, columns.target
        if target is not None and columns.numeric_target:
            y = target_numbers(path, target, cells[target], row, columns.whole_target, form)
        elif target is not None:
            y = target_words(path, target, cells[target], row)
        ids, domain = (
            None if name is None else cells[name] for name in (columns.id, columns.domain)
        )
        yield Chunk(X, y, share, ids, domain)
        row += len(X)
    if encoder is None:
        mine.warn()


def files_in(path: Path) -> list[Path]:
    """Return the Parquet files of a folder, one table in the order of their names, or the file.

    Files in folders below, such as day=1/part.parquet, belong to it; hidden ones do not.
    """
    if not path.is_dir():
        return [path]
    below = (file for file in path.rglob("*.parquet") if file.is_file())
    hidden = ("_", ".")
    files = sorted(
        file
        for file in below
        if not any(part.startswith(hidden) for part in file.relative_to(path).parts)
    )
    if not files:
        raise InputError(path, "is a folder without .parquet files; give a table")
    return files


def read_rows(
    path: str | Path, columns: TableColumns, encoder: Encoder | None = None
) -> tuple[Any, Any]:
    """Return all rows of a table, and their targets."""
    chunks = list(read_chunks(path, columns, encoder=encoder))
    if not chunks:
        raise InputError(path, NO_ROWS)
    parts = [chunk.X for chunk in chunks]
    X = list(chain.from_iterable(parts)) if columns.text else np.concatenate(parts)
    return X, None if columns.target is None else np.concatenate([c.y for c in chunks])
