"""Rows of CSV and TSV files: cut by pyarrow, and by Python's csv where quotes or faults are."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

from anymix.exceptions import InputError
from anymix.storage import need
from anymix.tables.table_columns import TableColumns, check_there
from anymix.tables.table_files import LINE_BYTES, TextLines, open_text

CHUNK_BYTES = 2**26
UNCLOSED = "has a quote that is not closed"
DELIMITERS = (",", "\t", ";", "|")
# A number as it is written where commas stand for points, and semicolons between columns.
DECIMAL_COMMA = r"^\s*[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?\s*$"


def read_csv(
    path: Path, columns: TableColumns, size: int
) -> Iterator[tuple[dict[str, Any], float]]:
    """Yield columns of text by name, for up to `size` rows, and the share of the file read.

    Decimal commas are points in features and in a target of numbers.
    """
    csv.field_size_limit(LINE_BYTES)
    with open_text(path) as (text, share):
        header, mark = read_header(text)
        check_there(path, columns.wanted, header, columns.target)
        places = {name: header.index(name) for name in columns.wanted}
        target = () if columns.target is None or not columns.numeric_target else (columns.target,)
        with_commas = {*columns.features, *target} if mark == ";" else set()
        # In a table of one column an empty line may be meant as a row.
        text.blank = b"\r\n\x1a" if len(header) > 1 else b"\x1a"
        lines, row = iter(text), 1
        while True:
            taken: list[str] = []
            left = CHUNK_BYTES
            while len(taken) < size and left > 0 and (line := next(lines, None)) is not None:
                taken.append(line)
                left -= len(line)
            if not taken:
                return
            cells = _cut_quickly("".join(taken), len(header), list(places.values()), mark)
            if cells is None:
                rows = list(islice(_cut(path, chain(taken, lines), header, row, mark), len(taken)))
                cut = list(zip(*rows, strict=True))
                cells = [need("pyarrow").array(cut[place]) for place in places.values()]
            named = dict(zip(places, cells, strict=True))
            for name in with_commas:
                compute, column = need("pyarrow.compute"), named[name]
                found = compute.match_substring_regex(column, DECIMAL_COMMA)
                points = compute.replace_substring(column, ",", ".")
                named[name] = compute.if_else(found, points, column)
            yield named, share()
            row += len(cells[0])
            text.row = row


def count_csv(path: Path) -> int:
    """Count the lines after the header; blank ones at the end are none to be read."""
    with open_text(path) as (text, _):
        lines, last = 0, b""
        while part := text.lines.read(2**20):
            lines, last = lines + part.count(b"\n"), part
    return max(0, lines - last.endswith(b"\n"))


def read_header(text: TextLines) -> tuple[list[str], str]:
    """Return the names of the columns, and the delimiter: that of the name, or the one in use."""
    names = next(iter(text), "").rstrip("\r\n")
    if "\r" in names:
        raise InputError(text.path, "has carriage returns alone between its rows; write line feeds")
    header: list[str] = []
    for mark in dict.fromkeys((text.mark or ",", *DELIMITERS)):
        try:
            header = next(csv.reader([names], strict=True, delimiter=mark), [])
        except csv.Error as error:
            raise _not_cut(f"{text.path}: the header", error) from error
        if len(header) > 1:
            return header, mark
    if not header:
        raise InputError(text.path, "has no header; its first line must name the columns")
    return header, text.mark or ","


def _cut_quickly(text: str, n_columns: int, places: list[int], mark: str) -> list[Any] | None:
    """Cut plain lines by pyarrow; None for quotes and faults, in which Python's csv is stricter."""
    text = text.replace("\r\n", "\n")
    if '"' in text or "\r" in text or "\n\n" in text or text.startswith("\n"):
        return None
    pyarrow, arrow_csv = need("pyarrow"), need("pyarrow.csv")
    names = list(map(str, range(n_columns)))
    content = text.encode()
    try:
        table = arrow_csv.read_csv(
            pyarrow.BufferReader(content),
            arrow_csv.ReadOptions(
                use_threads=False, block_size=len(content) + 1, column_names=names
            ),
            arrow_csv.ParseOptions(delimiter=mark, quote_char=False),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pyarrow.string()),
                strings_can_be_null=False,
                include_columns=[names[place] for place in dict.fromkeys(places)],
            ),
        )
    except pyarrow.ArrowInvalid:
        return None
    return [table.column(names[place]).combine_chunks() for place in places]


def _cut(
    path: Path, lines: Iterator[str], header: list[str], row: int, mark: str
) -> Iterator[list[str]]:
    """Cut lines one by one; each row must have as many fields as the header."""
    reader = csv.reader(lines, strict=True, delimiter=mark)
    try:
        for fields in reader:
            if len(fields) != len(header):
                raise InputError(
                    f"{path}, row {row}:",
                    f"{len(fields)} fields where the header has {len(header)}; "
                    "fill the row up, and quote a field that holds a separator",
                )
            yield fields
            row += 1
    except csv.Error as error:
        raise _not_cut(f"{path}, row {row}: the text", error) from error


def _not_cut(where: str, error: csv.Error) -> InputError:
    if "unexpected end" in str(error):
        return InputError(where, f"{UNCLOSED}; close it, or double it inside quotes")
    if "field larger" in str(error):
        return InputError(where, f"{UNCLOSED} within {LINE_BYTES >> 20} MB; close it")
    return InputError(where, f"cannot be cut into fields ({error}); quote a field as a whole")
