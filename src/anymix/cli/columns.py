"""What a table must have, whatever kind of file it is in; faults name file, row and column."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from anymix._errors import AuditError, InputError, MissingError
from anymix.exchange import Manifest, gaps_of

FILL_IN = "fill it in or leave the row out"
# Below this a table is read whatever its file says; above it the file must have bytes to show.
MODEST_BYTES = 2**28
NOT_A_NUMBER = (
    "which is not a number; leave the column out of the table, or write numbers with a point"
)
LONGEST_LABEL = 200
Words = tuple[str, ...] | None
TOO_LONG = f"holds a label of over {LONGEST_LABEL} characters; rename it"


@dataclass(frozen=True)
class Columns:
    """Which columns hold the features and, if any, the target.

    `text` if the features hold documents; the target holds numbers, or labels that are whole
    numbers, or else words.  A table that is `mixed` has for each feature its categories, None for
    numbers, and whether a cell may be empty.
    """

    features: tuple[str, ...]
    target: str | None = None
    text: bool = False
    numeric_target: bool = True
    whole_target: bool = False
    categories: tuple[Words, ...] = ()
    gaps: tuple[bool, ...] = ()

    @classmethod
    def of(cls, manifests: Sequence[Manifest], target: str | None = None) -> Columns:
        """Take the columns from the manifests of sources that are alike.

        A cell may be empty where all of them allow it.
        """
        first = manifests[0]
        whole = first.classes is not None and isinstance(first.classes[0], int)
        names = tuple(feature.name for feature in first.features)
        found = cls(names, target, first.is_text, first.classes is None or whole, whole)
        coded = next((m.columns for m in manifests if m.columns is not None), None)
        if coded is None:
            return found
        allowed = zip(*(gaps_of(manifest.features) for manifest in manifests), strict=True)
        return replace(
            found, categories=tuple(c.categories for c in coded), gaps=tuple(map(all, allowed))
        )

    @property
    def mixed(self) -> bool:
        """Whether words or gaps are to be met."""
        return bool(self.gaps)


def fail(path: Path, row: int, name: str, what: str) -> NoReturn:
    """Name the place of a fault."""
    raise InputError(f"{path}, row {row}: column {quoted(name)}", what)


def quoted(value: Any) -> str:
    """Quote a foreign value, but not all of it.

    Examples
    --------
    >>> quoted("age"), len(quoted("a" * 1000))
    ("'age'", 60)
    """
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def open_table(path: Path) -> BinaryIO:
    """Open a plain file; a folder, a pipe or a device, which may never end, is refused."""
    # A pipe that nobody writes to would block here for ever.
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
    raise InputError(path, "is a pipe or a device; write the rows to a file, and give that")


def check_there(
    path: Path, wanted: Sequence[str], there: Sequence[str], target: str | None = None
) -> None:
    """Refuse a table that lacks a column, or has it twice."""
    times = Counter(there)
    for name in wanted:
        if name not in times:
            shown = ", ".join(map(quoted, there[:8])) + (", ..." if len(there) > 8 else "")
            remedy = "; name the column with the label by --target" if name == target else ""
            if name in (other.strip() for other in there):
                remedy = "; write its name in the header without blanks around it"
            raise InputError(path, f"has no column {quoted(name)}; it has {shown[:400]}{remedy}")
        if times[name] > 1:
            check_once(path, there)


def check_once(path: Path | str, names: Sequence[str]) -> None:
    """Refuse names of columns that are not different."""
    for name, times in Counter(names).most_common(1):
        if times > 1:
            raise InputError(
                path, f"has {times} columns named {quoted(name)}; rename or drop all but one"
            )


def check_swelling(path: Path, n_numbers: int, size: int, most: int) -> None:
    """Refuse a small file that unpacks to far more than it has bytes."""
    if 8 * n_numbers > max(MODEST_BYTES, most * size):
        raise AuditError(
            path,
            f"would unpack its {size} bytes to {8 * n_numbers / 2**30:.3g} GB; if it is sound, "
            "write it as CSV or in parts",
        )


def check_finite(path: Path, names: Sequence[str], X: NDArray[Any], row: int) -> None:
    """Refuse a gap or an infinity."""
    bad = np.argwhere(~np.isfinite(X))
    if bad.size:
        i, j = bad[0]
        what = "has no number" if np.isnan(X[i, j]) else "holds a number that is infinite"
        fail(path, row + int(i), names[j], f"{what}; {FILL_IN}")


def check_documents(path: Path, name: str, documents: Sequence[Any], row: int) -> None:
    """Refuse what is not text."""
    for i, document in enumerate(documents, row):
        if not isinstance(document, str):
            fail(path, i, name, f"has no text; {FILL_IN}")
