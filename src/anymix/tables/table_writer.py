"""Columns written chunk by chunk to CSV, TSV, Parquet or NPZ."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from anymix.storage import need
from anymix.tables.table_files import TEXTS, kind_of


class TableWriter:
    """Writes columns of equal length, chunk by chunk.

    Text has a header, then lines, with all the digits that numbers need; a Parquet file has a row
    group for each chunk; the columns of an NPZ file are kept until the end.
    """

    def __init__(self, path: str | Path, kind: str = ""):
        self.path, self.kind = Path(path), kind or kind_of(path, to_write=True)
        self.chunks: list[Mapping[str, Any]] = []
        self.file: Any = None
        self.writer: Any = None
        if self.kind in TEXTS:
            opener: Any = gzip.open if self.kind.endswith(".gz") else open
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
            whole = {}
            for name in self.chunks[0] if self.chunks else ():
                column = np.concatenate([np.asarray(chunk[name]) for chunk in self.chunks])
                if column.dtype == object:  # an array of objects would need pickle
                    column = np.array(["" if v is None else str(v) for v in column], dtype=str)
                whole[name] = column
            # To a name, numpy would add .npz if it ends in .NPZ.
            with open(self.path, "wb") as file:
                np.savez_compressed(file, **whole)  # type: ignore[arg-type]
