"""Columns written chunk by chunk to CSV, Parquet or NPZ."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from anymix._errors import InputError
from anymix.exchange import need

Columns = Mapping[str, NDArray[Any]]


class Writer(Protocol):
    """Takes columns of equal length, chunk by chunk."""

    def write(self, columns: Columns) -> None:
        """Add rows."""

    def close(self) -> None:
        """Finish the file."""


@contextmanager
def writing(path: str | Path) -> Iterator[Writer]:
    """Open a table for writing under a temporary name, as `replacing` gives it."""
    path = Path(path)
    if path.suffix.lower() not in WRITERS:
        raise InputError(path, "is not a table that can be written; give .csv, .parquet or .npz")
    writer = WRITERS[path.suffix.lower()](path)
    try:
        yield writer
    finally:
        writer.close()


class CsvWriter:
    """A header, then lines; numbers with all the digits that they need."""

    def __init__(self, path: Path):
        self.file = open(path, "w", newline="", encoding="utf-8")  # noqa: SIM115
        self.writer = csv.writer(self.file, lineterminator="\n")
        self.started = False

    def write(self, columns: Columns) -> None:
        """Add rows."""
        if not self.started:
            self.writer.writerow(columns)
            self.started = True
        self.writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))

    def close(self) -> None:
        """Finish the file."""
        self.file.close()


class ParquetWriter:
    """A row group for each chunk."""

    def __init__(self, path: Path):
        self.path = path
        self.writer: Any = None

    def write(self, columns: Columns) -> None:
        """Add rows."""
        batch = need("pyarrow").table(dict(columns))
        if self.writer is None:
            # pyarrow knows no names of files that are not UTF-8; an open file has none.
            self.file = open(self.path, "wb")  # noqa: SIM115
            self.writer = need("pyarrow.parquet").ParquetWriter(self.file, batch.schema)
        self.writer.write_table(batch)

    def close(self) -> None:
        """Finish the file."""
        if self.writer is not None:
            with self.file:
                self.writer.close()


class NpzWriter:
    """One array for each column; they are kept until the end."""

    def __init__(self, path: Path):
        self.path = path
        self.parts: list[Columns] = []

    def write(self, columns: Columns) -> None:
        """Add rows."""
        self.parts.append(columns)

    def close(self) -> None:
        """Finish the file."""
        names = list(self.parts[0]) if self.parts else []
        whole = {name: np.concatenate([part[name] for part in self.parts]) for name in names}
        # To a name, numpy would add .npz if it ends in .NPZ.
        with open(self.path, "wb") as file:
            np.savez_compressed(file, **whole)  # type: ignore[arg-type]


WRITERS: dict[str, Any] = {".csv": CsvWriter, ".parquet": ParquetWriter, ".npz": NpzWriter}
