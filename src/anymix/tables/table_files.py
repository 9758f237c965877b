"""Files of tables: their type, compression, and standard input, written as `-`."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from anymix.exceptions import AuditError, InputError, MissingError
from anymix.storage import is_stream
from anymix.tables.table_format import TableFormat
from anymix.tables.text_blocks import TextBlocks

# Lines cut at commas or at tabs, the same compressed, two kinds that hold columns, and workbooks.
TEXTS = {".csv": ",", ".tsv": "\t", ".csv.gz": ",", ".tsv.gz": "\t"}
KINDS = (*TEXTS, ".parquet", ".npz", ".xlsx")
WRITTEN = (*TEXTS, ".parquet", ".npz")
GIVE = "give .csv, .tsv, .csv.gz, .tsv.gz, .parquet, .npz or, to read, .xlsx"
STANDARD_INPUT = Path("/dev/stdin")
# How files of these kinds begin; standard input has no name to tell.
BEGINNINGS = {b"PAR1": ".parquet", b"PK\x03\x04": ".npz", b"\x1f\x8b": ".csv.gz"}
# What .xlsx and .zip begin with, and what .xls does.
BINARY = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
# How text of two or four bytes a character begins; the longer marks first.
WIDE = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Below this a table is read whatever its file says; above it the file must have bytes to show.
MODEST_BYTES = 2**28
MOST_SWELLING = 100  # of what gzip and zip pack


def kind_of(path: str | Path, to_write: bool = False) -> str:
    """Return the type of a table by its file name, or that of standard input by its content.

    Output to pipes and devices is CSV.

    Examples
    --------
    >>> kind_of("rows.CSV.gz"), kind_of("rows.parquet")
    ('.csv.gz', '.parquet')
    """
    if Path(path) == STANDARD_INPUT and not to_write:
        with open_table(STANDARD_INPUT) as file:
            head = file.read(4)
        return next((kind for start, kind in BEGINNINGS.items() if head.startswith(start)), ".csv")
    name = Path(path).name.lower()
    kind = next((kind for kind in (WRITTEN if to_write else KINDS) if name.endswith(kind)), "")
    if not kind and to_write and is_stream(path):
        return ".csv"
    if not kind:
        what = "is a folder" if Path(path).is_dir() else "is not a table that can be read"
        what = "is not a table that can be written" if to_write else what
        raise InputError(path, f"{what}; {GIVE}")
    return kind


def open_table(path: Path) -> BinaryIO:
    """Open a plain file; folders, pipes and devices, which may never end, are refused."""
    if path == STANDARD_INPUT:
        return open(_spooled(), "rb")
    # A pipe without a writer would block here for ever.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        number = os.open(path, flags)
    except FileNotFoundError as error:
        raise MissingError(path, "does not exist; give a table that is there") from error
    mode = os.fstat(number).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(number, "rb")
    os.close(number)
    if stat.S_ISDIR(mode):
        raise InputError(path, "is a folder; give a table, which is a file")
    raise InputError(
        path, "is a pipe or a device; write the rows to a file, or pipe them in and give -"
    )


_spools: list[tempfile.TemporaryDirectory[str]] = []


@contextmanager
def holding_input() -> Iterator[None]:
    """Keep the content of standard input until the block ends."""
    before = len(_spools)
    try:
        yield
    finally:
        while len(_spools) > before:
            _spools.pop().cleanup()


def _spooled() -> Path:
    """Write standard input to a file, once: tables are read more than once."""
    if not _spools:
        if sys.stdin is not None and sys.stdin.isatty():
            raise InputError(STANDARD_INPUT, "is a terminal; pipe a table in, or give a file")
        _spools.append(tempfile.TemporaryDirectory(prefix="anymix-"))
        with open(os.dup(0), "rb") as stream, open(Path(_spools[-1].name, "rows"), "wb") as file:
            shutil.copyfileobj(stream, file)
    return Path(_spools[-1].name, "rows")


@contextmanager
def open_text(path: Path, form: TableFormat) -> Iterator[tuple[TextBlocks, Callable[[], float]]]:
    """Open a table of lines, unpacked if it is compressed, and say what share of it is read."""
    kind = kind_of(path)
    with open_table(path) as file:
        size = os.fstat(file.fileno()).st_size
        packed = kind.endswith(".gz")
        lines: Any = io.BufferedReader(_Unpacked(path, file, size)) if packed else file
        start = lines.peek(4)[:4]
        if start.startswith(b"\x1f\x8b"):
            raise InputError(path, "is compressed; name it .csv.gz or .tsv.gz, or unpack it")
        if start.startswith(BINARY):
            raise InputError(
                path,
                "is a workbook or an archive, whatever its name; name it .xlsx, or save it as CSV",
            )
        lines.read(3 if start.startswith(codecs.BOM_UTF8) else 0)
        wide = next((name for bom, name in WIDE if start.startswith(bom)), None)
        encoding = wide or form.encoding
        if encoding is not None:
            lines = io.BufferedReader(_Recoded(path, lines, encoding))
        mark = "" if path == STANDARD_INPUT else TEXTS[kind]
        text = TextBlocks(path, lines, mark, form)
        text.encoding = None if encoding is None else "utf-8"
        yield text, lambda: file.tell() / max(size, 1)


class _Recoded(io.RawIOBase):
    """Text of another encoding as UTF-8."""

    def __init__(self, path: Path, lines: BinaryIO, encoding: str):
        self.path, self.lines, self.encoding, self.left = path, lines, encoding, b""
        self.decoder = codecs.getincrementaldecoder(encoding)()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = b"-"
        try:
            while part and not self.left:
                part = self.lines.read(len(buffer))
                self.left = self.decoder.decode(part, final=not part).encode()
        except UnicodeError as error:
            remedy = "name another --encoding, or save it as UTF-8"
            cause = f"is not {self.encoding.upper()} as a whole; {remedy}"
            raise InputError(self.path, cause) from error
        found, self.left = self.left[: len(buffer)], self.left[len(buffer) :]
        buffer[: len(found)] = found
        return len(found)


class _Unpacked(io.RawIOBase):
    """What is in a gzip file, as long as that is not far more than the file has bytes."""

    def __init__(self, path: Path, file: BinaryIO, size: int):
        self.path, self.size, self.unpacked = path, size, 0
        self.content = gzip.GzipFile(fileobj=file, mode="rb")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            found = self.content.read1(len(buffer))
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise InputError(
                self.path, "is not a sound gzip file, or was cut; write it anew"
            ) from error
        self.unpacked += len(found)
        check_swelling(self.path, self.unpacked // 8, self.size, MOST_SWELLING)
        buffer[: len(found)] = found
        return len(found)


def check_swelling(path: Path, n_numbers: int, size: int, most: int) -> None:
    """Refuse decompression bombs: small files that unpack to a far larger size."""
    if 8 * n_numbers > max(MODEST_BYTES, most * size):
        raise AuditError(
            path,
            f"would unpack its {size} bytes to {8 * n_numbers / 2**30:.3g} GB or more; if it is "
            "sound, write it as CSV or in parts",
        )
