"""Cells as numbers, a column at a time: decimal commas, thousands separators, missing values."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix.exceptions import quoted
from anymix.storage import need
from anymix.tables.cells import (
    BOOLEANS,
    CODE,
    EXACT,
    FILL_IN,
    INEXACT,
    MISSING_WORDS,
    NO_LABEL,
    fail,
    is_missing,
    number_in,
)
from anymix.tables.table_format import TableFormat

NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
DECIMAL_COMMA = r"^[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?$"
# Thousands that cannot be decimals: what follows is a decimal separator, or another group.
COMMA_GROUPS = r"^[+-]?[0-9]{1,3}((,[0-9]{3})+\.[0-9]*|(,[0-9]{3}){2,})$"
POINT_GROUPS = r"^[+-]?[0-9]{1,3}((\.[0-9]{3})+,[0-9]*|(\.[0-9]{3}){2,})$"
# Groups of thousands where the decimal separator is known.
BLANKS = r" '’\x{a0}\x{202f}"
KNOWN_GROUPS = {
    ".": rf"^[+-]?[0-9]{{1,3}}([,{BLANKS}][0-9]{{3}})+(\.[0-9]*)?$",
    ",": rf"^[+-]?[0-9]{{1,3}}([.{BLANKS}][0-9]{{3}})+(,[0-9]*)?$",
}
# Either thousands or decimals.
ONE_GROUP = {",": r"^[+-]?[1-9][0-9]{0,2},[0-9]{3}$", ".": r"^[+-]?[1-9][0-9]{0,2}\.[0-9]{3}$"}
AMBIGUOUS = "which is ambiguous; state the decimal separator with --decimal . or --decimal ,"
PLAIN = TableFormat()


@dataclass(frozen=True)
class ParsedCells:
    """Parsed numbers, NaN where a cell is missing or text; masks of text and boolean cells."""

    numbers: NDArray[np.float64]
    words: NDArray[np.bool_]
    booleans: NDArray[np.bool_]


def parse_cells(text: Any, form: TableFormat = PLAIN) -> ParsedCells:
    """Read a pyarrow column of text as numbers; true and false are 1 and 0.

    Examples
    --------
    >>> import pyarrow
    >>> parsed = parse_cells(pyarrow.array(["1.5", "NA", "68,048.88", "1,234", "true"]))
    >>> parsed.numbers.tolist(), parsed.words.tolist()
    ([1.5, nan, 68048.88, nan, 1.0], [False, False, False, True, False])
    """
    pyarrow, compute = need("pyarrow"), need("pyarrow.compute")
    none = np.zeros(len(text), dtype=bool)
    if form.decimal != ",":
        try:
            return ParsedCells(_floats(compute.cast(text, pyarrow.float64())), none, none)
        except pyarrow.ArrowInvalid:
            pass
    trimmed = compute.utf8_trim_whitespace(text)
    lower = compute.utf8_lower(trimmed)
    booleans = _mask(compute.is_in(lower, pyarrow.array(list(BOOLEANS))))
    missing = _mask(compute.is_in(lower, pyarrow.array(MISSING_WORDS))) | _mask(text.is_null())
    plain, ambiguous = _with_points(trimmed, form)
    is_number = _mask(compute.match_substring_regex(plain, NUMBER)) & ~ambiguous
    kept = compute.if_else(pyarrow.array(is_number), plain, pyarrow.scalar(None, plain.type))
    numbers = _floats(compute.cast(kept, pyarrow.float64()))
    if booleans.any():
        numbers = np.where(booleans, _mask(compute.equal(lower, "true")), numbers)
    return ParsedCells(numbers, ~(is_number | missing | booleans), booleans)


def _floats(column: Any) -> NDArray[np.float64]:
    return np.array(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def _mask(column: Any) -> NDArray[np.bool_]:
    return np.asarray(column.fill_null(False).to_numpy(zero_copy_only=False), dtype=bool)


def _with_points(text: Any, form: TableFormat) -> tuple[Any, NDArray[np.bool_]]:
    """Write numbers with a point and without thousands; say which could be read in two ways."""
    compute = need("pyarrow.compute")

    def like(pattern: str) -> NDArray[np.bool_]:
        return _mask(compute.match_substring_regex(text, pattern))

    comma = form.decimal == ","
    ambiguous = np.zeros(len(text), dtype=bool)
    if form.decimal_known:
        groups = {form.decimal: like(KNOWN_GROUPS[str(form.decimal)])}
        # A point that is not between thousands is a decimal point, which was said not to be there.
        if comma:
            ambiguous = _mask(compute.match_substring(text, ".")) & ~groups[","]
    else:
        groups = {".": like(COMMA_GROUPS), ",": like(POINT_GROUPS) if comma else ambiguous}
    decimals = like(DECIMAL_COMMA) & comma & ~groups.get(".", ambiguous)
    if comma and not form.decimal_known:
        if groups["."].any():
            ambiguous = ambiguous | like(ONE_GROUP[","])
        if groups[","].any() or (decimals & ~like(ONE_GROUP[","])).any():
            ambiguous = ambiguous | like(ONE_GROUP["."])
    for mark, found in groups.items():
        if found.any():
            rest = "" if mark is None else mark
            digits = compute.replace_substring_regex(text, rf"[^0-9+\-{rest}]", "")
            text = compute.if_else(found, digits, text)
    commas = decimals | (groups.get(",", ambiguous) if comma else False)
    if np.any(commas):
        text = compute.if_else(commas, compute.replace_substring(text, ",", "."), text)
    return text, ambiguous


def numbers_in(
    path: Path,
    name: str,
    column: Any,
    row: int,
    booleans: bool = True,
    form: TableFormat = PLAIN,
) -> NDArray[np.float64]:
    """Return a column of pyarrow as numbers, NaN where missing; `row` is that of its first cell.

    The first cell that is no number, infinite, or a whole number that would be rounded, is refused.
    """
    packed = need("pyarrow").types.is_dictionary(column.type)
    numbers, doubtful = _numbers(column.dictionary if packed else column, booleans, form)
    if packed:
        at = positions_in(column)
        numbers, doubtful = np.append(numbers, np.nan)[at], np.append(doubtful, False)[at]
    known = set()
    for i in np.flatnonzero(doubtful).tolist():
        value = column[i].as_py()
        if value not in known:
            known.add(value)
            try:
                number = number_in(_plain(value, form), booleans)
            except ValueError as error:
                fail(path, row + i, name, str(error))
            if np.isnan(numbers[i]) and not np.isnan(number):
                fail(path, row + i, name, f"holds {quoted(value)}, {AMBIGUOUS}")
    return numbers


def holds_text(column: Any) -> bool:
    """Whether a pyarrow column holds text, or its dictionary does."""
    types = need("pyarrow").types
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    names = ("is_string", "is_large_string", "is_string_view")
    return any(getattr(types, name)(kind) for name in names if hasattr(types, name))


def _numbers(column: Any, booleans: bool, form: TableFormat) -> tuple[Any, NDArray[np.bool_]]:
    """Return numbers, and which cells are to be looked at one by one."""
    types = need("pyarrow").types
    kind = column.type
    if holds_text(column):
        parsed = parse_cells(column, form)
        doubtful = parsed.words | (np.abs(parsed.numbers) >= EXACT)
        return parsed.numbers, doubtful if booleans else doubtful | parsed.booleans
    if types.is_floating(kind) or types.is_integer(kind):
        numbers = _floats(column)
        return numbers, np.isinf(numbers) if types.is_floating(kind) else np.abs(numbers) >= EXACT
    values = column.to_pylist()
    if types.is_boolean(kind) and booleans:
        return np.array([np.nan if v is None else v for v in values], float), np.zeros(
            len(values), bool
        )
    numbers = np.full(len(values), np.nan)
    for i, value in enumerate(values):
        with suppress(ValueError):
            numbers[i] = number_in(value, booleans)
    return numbers, np.array([value is not None for value in values], dtype=bool)


def _plain(value: Any, form: TableFormat) -> Any:
    if not isinstance(value, str):
        return value
    text = need("pyarrow").array([value.strip()])
    plain, ambiguous = _with_points(text, form)
    return value if ambiguous[0] else plain[0].as_py()


def positions_in(column: Any) -> NDArray[np.intp]:
    """Return the dictionary index of each cell; nulls get the index after the last."""
    indices = need("pyarrow.compute").fill_null(
        column.indices.cast("int64"), len(column.dictionary)
    )
    return np.asarray(indices.to_numpy(zero_copy_only=False), dtype=np.intp)


def target_numbers(
    path: Path, name: str, y: Any, row: int, whole: bool, form: TableFormat = PLAIN
) -> NDArray[np.float64]:
    """Return labels that are numbers; if they are `whole`, codes such as 007 are refused."""
    types = need("pyarrow").types
    if hasattr(y, "type") and not types.is_dictionary(y.type):
        numbers, doubtful = _numbers(y, False, form)
        if not (doubtful.any() or np.isnan(numbers).any() or (whole and holds_text(y))):
            return np.asarray(numbers)
    values = y.tolist()
    known: dict[Any, float] = {}
    for value in dict.fromkeys(values):
        cause = ""
        try:
            known[value] = number_in(_plain(value, form), booleans=False)
        except ValueError as error:
            inexact = INEXACT in str(error)
            cause = str(error) if inexact else f"holds {quoted(value)}, {NO_LABEL}"
        if is_missing(value, number=True):
            cause = f"has no label; {FILL_IN}"
        elif whole and isinstance(value, str) and CODE.fullmatch(value.strip()):
            cause = f"holds {quoted(value)}; the sources' labels are whole numbers, so write them "
            cause += "alike"
        if cause:
            fail(path, row + values.index(value), name, cause)
    return np.array([known[value] for value in values])
