"""Columns written chunk by chunk to CSV, TSV, Parquet or NPZ."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from anymix.exceptions import InputError
from anymix.storage import is_stream, need
from anymix.tables.table_files import GIVE, STANDARD_INPUT, TEXTS, kind_of

# Arrays, and columns of pyarrow that are carried over as they are.
Columns = Mapping[str, Any]


class Writer(Protocol):
    """Takes columns of equal length, chunk by chunk."""

    def write(self, columns: Columns) -> None:
        """Add rows."""

    def close(self) -> None:
        """Finish the file."""


def kind_to_write(out: str | Path) -> str:
    """Return the kind of table that a name asks for; to pipes and devices CSV is written."""
    kind = "" if Path(out) == STANDARD_INPUT else kind_of(out)
    if not kind and not is_stream(out):
        raise InputError(out, f"is not a table that can be written; {GIVE}")
    return kind or ".csv"


@contextmanager
def writing(path: str | Path, kind: str | None = None) -> Iterator[Writer]:
    """Open a table for writing under a temporary name, as `replacing` gives it."""
    writer = WRITERS[kind or kind_to_write(path)](Path(path))
    try:
        yield writer
    finally:
        writer.close()


class TextWriter:
    """A header, then lines; numbers with all the digits that they need."""

    def __init__(self, path: Path, mark: str = ",", packed: bool = False):
        options: Any = {"newline": "", "encoding": "utf-8"}
        opened = gzip.open if packed else open
        self.file: Any = opened(path, "wt", **options)
        self.writer = csv.writer(self.file, lineterminator="\n", delimiter=mark)
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
        whole = {name: _joined([part[name] for part in self.parts]) for name in names}
        # To a name, numpy would add .npz if it ends in .NPZ.
        with open(self.path, "wb") as file:
            np.savez_compressed(file, **whole)  # type: ignore[arg-type]


def _joined(parts: list[Any]) -> NDArray[Any]:
    """Join the parts of a column; of words an array is made that needs no pickle."""
    found = np.concatenate([np.asarray(part) for part in parts])
    if found.dtype != object:
        return found
    return np.array(["" if value is None else str(value) for value in found], dtype=str)


WRITERS: dict[str, Any] = {
    **{
        kind: partial(TextWriter, mark=mark, packed=kind.endswith(".gz"))
        for kind, mark in TEXTS.items()
    },
    ".parquet": ParquetWriter,
    ".npz": NpzWriter,
}
