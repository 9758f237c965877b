"""Rows of Excel workbooks: of the first sheet, or the named one; its first row is the header."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from anymix.exceptions import InputError, quoted
from anymix.storage import need
from anymix.tables.table_columns import TableColumns, check_there
from anymix.tables.table_files import MOST_SWELLING, check_swelling, open_table
from anymix.tables.table_format import TableFormat


def read_excel(
    path: Path, columns: TableColumns, size: int
) -> Iterator[tuple[dict[str, Any], float]]:
    """Yield columns by name, for up to `size` rows, and the share of the sheet that is read."""
    header, rows = read_sheet(path, columns.form)
    check_there(path, columns.wanted, header, columns.target)
    places = {name: header.index(name) for name in columns.wanted}
    # What a column holds is decided once, so that chunks do not differ.
    whole = {name: _column([row[place] for row in rows]) for name, place in places.items()}
    for start in range(0, len(rows), size):
        cells = {name: column.slice(start, size) for name, column in whole.items()}
        yield cells, min(1.0, (start + size) / len(rows))


def read_sheet(path: Path, form: TableFormat) -> tuple[list[str], list[list[Any]]]:
    """Return the header and the rows of a sheet; empty rows at the end are ignored."""
    calamine = need("python_calamine", "excel")
    with open_table(path) as file:
        _check_zip(path, file)
        try:
            book = calamine.CalamineWorkbook.from_filelike(file)
            names = [each.name for each in book.sheets_metadata if "Visible" in str(each.visible)]
            name = form.sheet or (names or book.sheet_names)[0]
            if name not in book.sheet_names:
                listed = ", ".join(map(quoted, book.sheet_names[:8]))
                raise InputError(path, f"has no sheet {quoted(name)}; it has {listed}")
            rows = book.get_sheet_by_name(name).to_python(skip_empty_area=True)
        except calamine.CalamineError as error:
            raise InputError(path, "is not a sound Excel workbook; save it anew") from error
    if len(names) > 1 and form.sheet is None:
        form.tell(path, f"--sheet {name!r}, the first of {len(names)} sheets")
    while rows and all(cell == "" for cell in rows[-1]):
        rows.pop()
    if not rows:
        raise InputError(path, f"has an empty sheet {quoted(name)}; name another with --sheet")
    return [str(_plain(cell) or "") for cell in rows[0]], rows[1:]


def _check_zip(path: Path, file: Any) -> None:
    """Refuse a file that is no archive, or a small one that unpacks to far more than it has."""
    try:
        unpacked = sum(part.file_size for part in ZipFile(file).infolist())
    except BadZipFile as error:
        raise InputError(path, "is not an Excel workbook (.xlsx); save it anew") from error
    check_swelling(path, unpacked // 8, os.fstat(file.fileno()).st_size, MOST_SWELLING)
    file.seek(0)


def _column(cells: Sequence[Any]) -> Any:
    """Return cells as a column of pyarrow: numbers, booleans, or else text as a CSV file has it."""
    pyarrow = need("pyarrow")
    values = [_plain(cell) for cell in cells]
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float}:
        whole = all(value is None or float(value).is_integer() for value in values)
        if whole and all(value is None or abs(value) < 2**53 for value in values):
            values = [None if value is None else int(value) for value in values]
        return pyarrow.array(values, pyarrow.float64() if not whole else None)
    if kinds == {bool}:
        return pyarrow.array(values, pyarrow.bool_())
    return pyarrow.array([None if value is None else _text(value) for value in values], "string")


def _plain(cell: Any) -> Any:
    """Return a number, a boolean or text; dates and times as ISO text; None for an empty cell."""
    if isinstance(cell, bool | int | float):
        return cell
    if isinstance(cell, datetime.datetime) and cell.time() == datetime.time():
        cell = cell.date()
    return (cell.isoformat() if hasattr(cell, "isoformat") else str(cell)) or None


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
