"""The format of a table: separators, encoding, markers of missing values."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anymix.exceptions import InputError
from anymix.storage import need


@dataclass(frozen=True)
class TableFormat:
    """What separates columns and decimals, the encoding, and further markers of missing values.

    What is None is detected; of a workbook the first `sheet` is read.  `decimal_known` says that
    `decimal` was given: then the other of comma and point separates thousands.  `report` takes one
    line about each file in which something was detected.

    Examples
    --------
    >>> TableFormat(sep=";", missing=("-", "unknown")).marks_missing(" Unknown ")
    True
    """

    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    missing: tuple[str, ...] = ()
    sheet: str | None = None
    decimal_known: bool = False
    report: Callable[[str], None] | None = field(default=None, compare=False)

    def check(self) -> None:
        """Check that the options are possible and consistent."""
        if self.sep is not None and (len(self.sep) != 1 or self.sep in '"\r\n\0'):
            raise InputError(f"--sep {self.sep!r:.20}", "must be one character, such as ';'")
        if self.decimal not in (None, ".", ","):
            raise InputError(f"--decimal {self.decimal!r:.20}", "must be '.' or ','")
        if self.sep is not None and self.sep == self.decimal:
            raise InputError(f"--sep and --decimal {self.sep!r}", "must be two characters")
        try:
            codecs.lookup(self.encoding or "utf-8")
        except LookupError as error:
            cause = "is no encoding that Python knows; give such as utf-8, latin-1 or utf-16"
            raise InputError(f"--encoding {self.encoding!r:.40}", cause) from error

    def tell(self, path: Path, detected: str) -> None:
        """Report what was detected in a file."""
        if self.report is not None:
            self.report(f"{path}: detected {detected}")

    def marks_missing(self, word: str) -> bool:
        """Whether a string is an additional marker of missing values, ignoring case."""
        return word.strip().casefold() in {marker.strip().casefold() for marker in self.missing}

    def without_markers(self, column: Any) -> Any:
        """Return a pyarrow column with null for each cell of text that marks a missing value."""
        pyarrow, compute = need("pyarrow"), need("pyarrow.compute")
        if not self.missing or not hasattr(column, "type"):
            return column
        if pyarrow.types.is_dictionary(column.type):
            words = self.without_markers(column.dictionary)
            return pyarrow.DictionaryArray.from_arrays(column.indices, words)
        if pyarrow.types.is_string(column.type) or pyarrow.types.is_large_string(column.type):
            markers = pyarrow.array([m.strip().casefold() for m in self.missing], column.type)
            lower = compute.utf8_lower(compute.utf8_trim_whitespace(column))
            return compute.if_else(
                compute.is_in(lower, markers), pyarrow.scalar(None, column.type), column
            )
        numbers = [float(m) for m in self.missing if re.fullmatch(r"[+-]?\d+(\.\d*)?", m.strip())]
        if numbers and (
            pyarrow.types.is_integer(column.type) or pyarrow.types.is_floating(column.type)
        ):
            found = compute.is_in(column.cast("float64", safe=False), pyarrow.array(numbers))
            return compute.if_else(found, pyarrow.scalar(None, column.type), column)
        return column
