"""Rows of CSV and TSV files: quick where all is well, and slow where a fault must be found."""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from anymix.cli.table_cells import (
    EXACT,
    FILL_IN,
    NOT_A_NUMBER,
    RawRows,
    TableColumns,
    check_there,
    fail,
    numbers_of,
)
from anymix.cli.table_files import Text, open_text
from anymix.exceptions import InputError, quoted

# A row of 100 000 numbers has 2 MB; a file without line breaks may have any number.
LINE_BYTES = 2**24
CHUNK_BYTES = 2**26
# What .xlsx and .zip begin with, and what .xls does.
UNCLOSED = "has a quote that is not closed"
BINARY = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")


def read_csv(path: Path, columns: TableColumns, size: int) -> Iterator[RawRows]:
    """Yield the rows of a file."""
    csv.field_size_limit(LINE_BYTES)
    with open_text(path) as text:
        header, mark = read_header(path, text)
        check_there(path, columns.wanted, header, columns.target)
        at = {name: i for i, name in enumerate(header)}
        places = [at[name] for name in columns.features]
        row = 1
        # In a table of one column an empty line may be meant as a row.
        blank = b"\r\n\x1a" if len(header) > 1 else b"\x1a"
        while lines := _lines(path, text, size, row, blank, mark):
            table = _Lines(path, lines, header, row, mark)
            y = None
            if columns.target is not None:
                y = table.column(at[columns.target], decimals=columns.numeric_target)
            ids = None if columns.id is None else table.column(at[columns.id])
            yield RawRows(_features(table, columns, places), y, text.share, ids)
            row += len(lines)


def count_csv(path: Path) -> int:
    """Count the lines after the header; blank ones at the end are none to be read."""
    with open_text(path) as text:
        lines, last = 0, b""
        while part := text.lines.read(2**20):
            lines, last = lines + part.count(b"\n"), part
    return max(0, lines - last.endswith(b"\n"))


def _features(table: _Lines, columns: TableColumns, places: list[int]) -> Any:
    """Return documents, numbers or, of a table with words and gaps, raw columns."""
    if columns.text:
        return table.column(places[0])
    return table.columns(places) if columns.mixed else table.numbers(places)


DELIMITERS = (",", "\t", ";", "|")
# A number as it is written where commas stand for points, and semicolons between columns.
DECIMAL_COMMA = re.compile(r"\s*[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?\s*")


def read_header(path: Path, text: Text) -> tuple[list[str], str]:
    """Return the names of the columns, and the delimiter: that of the name, or the one in use."""
    where = f"{path}: the header"
    line = _line(where, text.lines)
    if line.startswith(b"\x1f\x8b"):
        raise InputError(path, "is compressed; name it .csv.gz or .tsv.gz, or unpack it")
    if line.startswith(BINARY):
        raise InputError(path, "is a workbook or an archive, whatever its name; save it as CSV")
    names = text.decode(where, line[3:] if line.startswith(b"\xef\xbb\xbf") else line)
    if "\r" in names:
        raise InputError(path, "has carriage returns alone between its rows; write line feeds")
    header: list[str] = []
    for mark in dict.fromkeys((text.mark or ",", *DELIMITERS)):
        header = next(_cut(lambda _: where, [names], mark), [])
        if len(header) > 1:
            return header, mark
    if not header:
        raise InputError(path, "has no header; its first line must name the columns")
    return header, text.mark or ","


def _lines(path: Path, text: Text, size: int, row: int, blank: bytes, mark: str) -> list[str]:
    """Read up to `size` rows, and fewer if they are long; what is blank up to the end is none."""
    found: list[str] = []
    file = text.lines
    left = CHUNK_BYTES
    while len(found) < size and left > 0:
        where = f"{path}, row {row + len(found)}: the text"
        line = _line(where, file)
        if not line:
            break
        if not line.strip(blank):
            # Among rows it is a fault, so that nobody will ask for those that follow it.
            return found if _rest_is(blank, file) else [*found, text.decode(where, line)]
        if line.count(b'"') % 2 and _ends_in_quotes(line, mark):
            line = _until_closed(where, file, line)
        left -= len(line)
        found.append(text.decode(where, line))
    return found


def _ends_in_quotes(line: bytes, mark: str) -> bool:
    """Whether a field that was opened by a quote goes on in the next line."""
    try:
        next(csv.reader([line.decode("latin-1")], strict=True, delimiter=mark))
    except csv.Error as error:
        return "unexpected end" in str(error)
    return False


def _until_closed(where: str, file: BinaryIO, line: bytes) -> bytes:
    """Add the lines up to the one that closes the quote; at the end of the file none does."""
    parts, size = [line], len(line)
    while part := _line(where, file):
        parts.append(part)
        size += len(part)
        if size > LINE_BYTES:
            raise InputError(where, f"{UNCLOSED} within {LINE_BYTES >> 20} MB; close it")
        if part.count(b'"') % 2:
            break
    return b"".join(parts)


def _rest_is(blank: bytes, file: BinaryIO) -> bool:
    """Whether nothing follows but line ends and the mark that DOS puts at the end of a file."""
    return not any(part.strip(blank) for part in iter(partial(file.read, 2**16), b""))


def _line(where: str, file: BinaryIO) -> bytes:
    line = file.readline(LINE_BYTES + 1)
    if len(line) > LINE_BYTES:
        raise InputError(where, f"is over {LINE_BYTES >> 20} MB long; write a line for each row")
    return line


def _cut(where: Callable[[int], str], lines: Sequence[str], mark: str) -> Iterator[list[str]]:
    """Cut lines at their marks; each is a row of its own."""
    reader = csv.reader(lines, strict=True, delimiter=mark)
    try:
        for i, fields in enumerate(reader):
            if reader.line_num != i + 1:
                raise InputError(where(i), f"{UNCLOSED}; close it, or double it inside quotes")
            yield fields
    except csv.Error as error:
        cause = f"cannot be cut into fields ({error}); quote a field as a whole"
        if "unexpected end" in str(error):
            cause = f"{UNCLOSED}; close it, or double it inside quotes"
        raise InputError(where(reader.line_num - 1), cause) from error


def _plainly_quoted(line: str, mark: str) -> bool:
    """Whether all quotes enclose whole fields, without the mark between fields in them."""
    parts = line.split('"')
    around, between = (parts[0], parts[-1]), parts[2:-1:2]
    return (
        len(parts) % 2 == 1
        and not any(mark in quote for quote in parts[1::2])
        and all(part[:1] == mark == part[-1:] for part in between)
        and around[0][-1:] in ("", mark)
        and around[1][:1] in ("", mark)
    )


@dataclass
class _Lines:
    """Some lines of a file, the first of which is row `row`."""

    path: Path
    lines: list[str]
    header: list[str]
    row: int
    mark: str
    well_cut: bool = False

    def fields(self) -> Iterator[list[str]]:
        """Cut each row, which must have as many fields as the header."""
        cut = _cut(lambda i: f"{self.path}, row {self.row + i}: the text", self.lines, self.mark)
        for i, fields in enumerate(cut, self.row):
            if len(fields) != len(self.header):
                raise InputError(
                    f"{self.path}, row {i}:",
                    f"{len(fields)} fields where the header has {len(self.header)}; "
                    "fill the row up, and quote a field that holds a separator",
                )
            yield fields
        self.well_cut = True

    def column(self, place: int, decimals: bool = False) -> list[str]:
        """Return a column as it is written; with `decimals` its numbers have points."""
        cells = [fields[place] for fields in self.fields()]
        return self._with_points(cells) if decimals else cells

    def columns(self, places: list[int]) -> list[list[str]]:
        """Return columns as they are written, but for numbers, which have points."""
        rows = list(self.fields())
        return [self._with_points([fields[place] for fields in rows]) for place in places]

    def _with_points(self, cells: list[str]) -> list[str]:
        """Write decimal commas as points, in a table with semicolons between its columns."""
        if self.mark != ";":
            return cells
        return [c.replace(",", ".") if DECIMAL_COMMA.fullmatch(c) else c for c in cells]

    def numbers(self, places: list[int]) -> NDArray[Any]:
        """Return columns of numbers: quickly if all is well."""
        self._check_cuts()
        original = places
        lines, mark = self.lines, self.mark
        if any("\n" in line or (mark == ";" and "," in line) for line in lines):
            # Line breaks in quotes, or decimal commas: the fields are cut one by one.
            lines, mark = list(map(";".join, zip(*self.columns(places), strict=True))), ";"
            places = list(range(len(places)))
        options: Any = {"delimiter": mark, "quotechar": '"', "comments": None}
        try:
            X = np.loadtxt(lines, usecols=places, ndmin=2, **options)
        except ValueError:
            X = np.empty((0, 0))
        if len(X) != len(self.lines):
            # The quick way failed or left out empty lines; the slow way finds the place.
            self._find_fault(original)
        if (np.abs(X) >= EXACT).any():
            self._check_whole(original)
        return X

    def _check_cuts(self) -> None:
        """Refuse rows that are too short or too long, as the last of a file cut in half."""
        marks = len(self.header) - 1
        # Counting is quick; only lines that may be cut in another way are parsed.
        for line in () if self.well_cut else self.lines:
            plain = '"' not in line or _plainly_quoted(line, self.mark)
            if not plain or line.count(self.mark) != marks or "\r" in line or not line:
                deque(self.fields(), maxlen=0)
                return

    def _check_whole(self, places: list[int]) -> None:
        for i, fields in enumerate(self.fields(), self.row):
            for place in places:
                cells = self._with_points([fields[place]])
                numbers_of(self.path, self.header[place], cells, i)

    def _find_fault(self, places: list[int]) -> NoReturn:
        for i, fields in enumerate(self.fields(), self.row):
            for place in places:
                text, name = self._with_points([fields[place]])[0], self.header[place]
                if not text.strip():
                    fail(self.path, i, name, f"has no number; {FILL_IN}")
                if not np.isfinite(numbers_of(self.path, name, [text], i)[0]):
                    fail(self.path, i, name, f"holds {quoted(text)}, {NOT_A_NUMBER}")
        raise InputError(
            f"{self.path}, row {self.row} or later: the text", "cannot be read as numbers"
        )
