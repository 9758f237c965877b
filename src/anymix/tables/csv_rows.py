"""Read rows of CSV and TSV files with pyarrow, and with Python's csv to locate errors."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from anymix.exceptions import InputError
from anymix.storage import need
from anymix.tables.table_columns import TableColumns, check_there
from anymix.tables.table_files import TEXTS, kind_of, open_text
from anymix.tables.table_format import TableFormat
from anymix.tables.text_blocks import LINE_BYTES, TextBlocks

UNCLOSED = "has a quote that is not closed"
DELIMITERS = (",", "\t", ";", "|")
# Bytes in which separators and encoding are looked for.
SAMPLE_BYTES = 2**16


def read_csv(
    path: Path, columns: TableColumns, size: int
) -> Iterator[tuple[dict[str, Any], float]]:
    """Yield columns of text by name, for up to `size` rows, and the share of the file read."""
    csv.field_size_limit(LINE_BYTES)
    with open_text(path, columns.form) as (text, share):
        header, mark = read_header(text)
        check_there(path, columns.wanted, header, columns.target)
        places = {name: header.index(name) for name in columns.wanted}
        # In a table of one column an empty line may be meant as a row.
        text.blank = b"\r\n\x1a" if len(header) > 1 else b"\x1a"
        parts = _tables(text, header, list(places.values()), mark)
        for table in _in_batches(parts, size):
            cells = (table.column(str(place)).combine_chunks() for place in places.values())
            yield dict(zip(places, cells, strict=True)), share()


def _tables(text: TextBlocks, header: list[str], places: list[int], mark: str) -> Iterator[Any]:
    """Yield the rows of each block as a table of text, whose columns are named by their places."""
    names = [str(place) for place in dict.fromkeys(places)]
    while block := text.block():
        table = _cut_quickly(block, len(header), names, mark)
        if table is None:
            columns = list(zip(*_cut(text, block, len(header), mark), strict=True))
            pyarrow = need("pyarrow")
            table = pyarrow.table({n: pyarrow.array(columns[int(n)]) for n in names})
        text.row += table.num_rows
        yield table


def _in_batches(tables: Iterable[Any], size: int) -> Iterator[Any]:
    """Cut and join tables so that all but the last have `size` rows."""
    held: list[Any] = []
    n = 0
    for table in tables:
        held.append(table)
        n += table.num_rows
        if n >= size:
            whole = need("pyarrow").concat_tables(held)
            yield from (whole.slice(start, size) for start in range(0, n - n % size, size))
            held, n = [whole.slice(n - n % size)], n % size
    if n:
        yield need("pyarrow").concat_tables(held)


def count_csv(path: Path) -> int:
    """Count the lines after the header; blank lines at the end do not count."""
    with open_text(path, TableFormat()) as (text, _):
        lines, last = 0, b""
        while part := text.lines.read(2**20):
            # No table goes on like that, and a sparse file may for terabytes.
            if not part.strip(b"\0"):
                break
            lines, last = lines + part.count(b"\n"), part
    return max(0, lines - last.endswith(b"\n"))


def format_of(path: Path, form: TableFormat) -> TableFormat:
    """Detect the separator, and decimal commas between semicolons, unless they were given."""
    with open_text(path, form) as (text, _):
        by_name = "" if path.name == "stdin" else TEXTS[kind_of(path)]
        _, mark = read_header(text)
        detected = [] if form.sep or mark == by_name or mark == "," else [f"--sep {mark!r}"]
        if form.report is not None:
            text.block_bytes = SAMPLE_BYTES
            sample = text.block()
            if form.decimal is None and mark == ";" and re.search(rb"[0-9],[0-9]", sample):
                detected.append("--decimal ','")
            if text.encoding not in (None, "utf-8"):
                detected.append(f"--encoding {text.encoding}")
    if detected:
        form.tell(path, " ".join(detected))
    decimal = form.decimal or ("," if mark == ";" else ".")
    return replace(form, sep=mark, decimal=decimal, decimal_known=form.decimal is not None)


def read_header(text: TextBlocks) -> tuple[list[str], str]:
    """Return the names of the columns, and the delimiter: that of the name, or the one in use."""
    names = text.header().rstrip("\r\n")
    if "\r" in names:
        raise InputError(text.path, "has carriage returns alone between its rows; write line feeds")
    header: list[str] = []
    given, fault = text.form.sep, None
    for mark in (given,) if given else dict.fromkeys((text.mark or ",", *DELIMITERS)):
        try:
            header = next(csv.reader([names], strict=True, delimiter=mark), [])
        except csv.Error as error:
            # Between quoted names another mark stands where one was expected.
            fault = fault or _not_cut(f"{text.path}: the header", error)
            continue
        if len(header) > 1:
            if header.count("") > 1:
                cause = "names no columns; remove the lines above the header, and name all columns"
                raise InputError(f"{text.path}: the first line", cause)
            return header, mark
    if fault is not None:
        raise fault
    if not header:
        raise InputError(text.path, "has no header; its first line must name the columns")
    return header, given or text.mark or ","


def _cut_quickly(block: bytes, n_columns: int, names: list[str], mark: str) -> Any:
    """Cut plain rows by pyarrow; None for faults, in which Python's csv is stricter."""
    quoted = b'"' in block
    if b"\r" in block and not quoted:
        block = block.replace(b"\r\n", b"\n")
    returns = block.count(b"\r")
    if returns and (not quoted or returns != block.count(b"\r\n") or b"\n\r\n" in block):
        return None
    if b"\n\n" in block or block.startswith((b"\n", b"\r\n")):
        return None
    if quoted and not _is_quoted_well(block, mark):
        return None
    pyarrow, arrow_csv = need("pyarrow"), need("pyarrow.csv")
    everything = list(map(str, range(n_columns)))
    try:
        return arrow_csv.read_csv(
            pyarrow.BufferReader(block),
            arrow_csv.ReadOptions(
                use_threads=False, block_size=len(block) + 1, column_names=everything
            ),
            arrow_csv.ParseOptions(
                delimiter=mark, quote_char='"' if quoted else False, newlines_in_values=quoted
            ),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(everything, pyarrow.string()),
                strings_can_be_null=False,
                include_columns=names,
            ),
        )
    except pyarrow.ArrowInvalid:
        return None


def _is_quoted_well(block: bytes, mark: str) -> bool:
    """Whether quotes open and close whole fields, and are doubled within them."""
    symbols = np.frombuffer(b"\n" + block + b"\n", dtype=np.uint8)
    quotes = np.flatnonzero(symbols == ord('"'))
    if quotes.size % 2:
        return False
    edges = [ord(mark), ord("\n"), ord('"')] if mark.isascii() else []
    opens, closes = quotes[::2], quotes[1::2]
    return bool(
        np.isin(symbols[opens - 1], edges).all()
        and np.isin(symbols[closes + 1], [*edges, ord("\r")]).all()
    )


class _Lines:
    """The lines of a block and, where a row goes on, of those that follow."""

    def __init__(self, text: TextBlocks, block: bytes):
        self.text, self.part = text, io.StringIO(block.decode(), newline="\n")

    def __iter__(self) -> Iterator[str]:
        yield from self.part
        while block := self.text.block():
            self.part = io.StringIO(block.decode(), newline="\n")
            yield from self.part


def _cut(text: TextBlocks, block: bytes, n_columns: int, mark: str) -> Iterator[list[str]]:
    """Cut lines one by one; each row must have as many fields as the header."""
    lines = _Lines(text, block)
    n_lines = block.count(b"\n") + (not block.endswith(b"\n"))
    reader = csv.reader(lines, strict=True, delimiter=mark)
    row = text.row + 1
    try:
        for fields in reader:
            if len(fields) != n_columns:
                remedy = "fill the row up, and quote a field that holds a separator"
                if n_columns == 1:
                    remedy = "remove the lines above the header, or name the separator with --sep"
                raise InputError(
                    f"{text.path}, row {row}:",
                    f"{len(fields)} fields where the header has {n_columns}; {remedy}",
                )
            yield fields
            row += 1
            if reader.line_num >= n_lines:
                break
    except csv.Error as error:
        raise _not_cut(f"{text.path}, row {row}: the text", error) from error
    text.give_back(lines.part.read())


def _not_cut(where: str, error: csv.Error) -> InputError:
    if "unexpected end" in str(error):
        return InputError(where, f"{UNCLOSED}; close it, or double it inside quotes")
    if "field larger" in str(error):
        return InputError(where, f"{UNCLOSED} within {LINE_BYTES >> 20} MB; close it")
    return InputError(where, f"cannot be cut into fields ({error}); quote a field as a whole")
