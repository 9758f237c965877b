"""Columns written chunk by chunk to CSV, TSV, Parquet or NPZ."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix.exceptions import InputError
from anymix.storage import is_stream, need
from anymix.tables.table_files import GIVE, STANDARD_INPUT, TEXTS, kind_of


def kind_to_write(out: str | Path) -> str:
    """Return the kind of table that a name asks for; to pipes and devices CSV is written."""
    kind = "" if Path(out) == STANDARD_INPUT else kind_of(out)
    if not kind and not is_stream(out):
        raise InputError(out, f"is not a table that can be written; {GIVE}")
    return kind or ".csv"


class TableWriter:
    """Takes columns of equal length, chunk by chunk.

    Text has a header, then lines, with all the digits that numbers need; a Parquet file has a row
    group for each chunk; the columns of an NPZ file are kept until the end.
    """

    def __init__(self, path: str | Path, kind: str):
        self.path, self.kind = Path(path), kind
        self.chunks: list[Mapping[str, Any]] = []
        self.file: Any = None
        self.writer: Any = None
        if kind in TEXTS:
            opener: Any = gzip.open if kind.endswith(".gz") else open
            self.file = opener(path, "wt", newline="", encoding="utf-8")

    def write(self, columns: Mapping[str, Any]) -> None:
        """Add rows: arrays, and columns of pyarrow that are carried over as they are."""
        if self.kind == ".npz":
            self.chunks.append(columns)
        elif self.kind == ".parquet":
            batch = need("pyarrow").table(dict(columns))
            if self.writer is None:
                # pyarrow knows no names of files that are not UTF-8; an open file has none.
                self.file = open(self.path, "wb")  # noqa: SIM115
                self.writer = need("pyarrow.parquet").ParquetWriter(self.file, batch.schema)
            self.writer.write_table(batch)
        else:
            if self.writer is None:
                mark = TEXTS[self.kind]
                self.writer = csv.writer(self.file, lineterminator="\n", delimiter=mark)
                self.writer.writerow(columns)
            rows = zip(*(column.tolist() for column in columns.values()), strict=True)
            self.writer.writerows(rows)

    def close(self) -> None:
        """Finish the file."""
        if self.kind == ".parquet" and self.writer is not None:
            self.writer.close()
        if self.file is not None:
            self.file.close()
        if self.kind == ".npz":
            names = list(self.chunks[0]) if self.chunks else []
            whole = {name: _joined([chunk[name] for chunk in self.chunks]) for name in names}
            # To a name, numpy would add .npz if it ends in .NPZ.
            with open(self.path, "wb") as file:
                np.savez_compressed(file, **whole)  # type: ignore[arg-type]


@contextmanager
def writing(path: str | Path, kind: str | None = None) -> Iterator[TableWriter]:
    """Open a table for writing under a temporary name, as `replacing` gives it."""
    writer = TableWriter(path, kind or kind_to_write(path))
    try:
        yield writer
    finally:
        writer.close()


def _joined(parts: list[Any]) -> NDArray[Any]:
    """Join the parts of a column; of words an array is made that needs no pickle."""
    column = np.concatenate([np.asarray(part) for part in parts])
    if column.dtype != object:
        return column
    return np.array(["" if value is None else str(value) for value in column], dtype=str)
