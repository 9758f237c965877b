"""What a table must have, whatever kind of file it is in; faults name file, row and column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from anymix._parameters import did_you_mean
from anymix.exceptions import InputError, quoted
from anymix.exchange import Manifest, gaps_of

NO_ROWS = "has no rows; give a table with rows below its header"
FILL_IN = "fill it in or leave the row out"
NOT_A_NUMBER = (
    "which is not a number; write numbers with a point, or leave the column out by --drop where "
    "sources are packed"
)
LONGEST_LABEL = 200
Words = tuple[str, ...] | None
TOO_LONG = f"holds a label of over {LONGEST_LABEL} characters; rename it"


@dataclass(frozen=True)
class Columns:
    """Which columns hold the features and, if any, the target.

    `text` if the features hold documents; the target holds numbers, or labels that are whole
    numbers, or else words.  A table that is `mixed` has for each feature its categories, None for
    numbers, and whether a cell may be empty.  The column `id` is read as it is written.
    """

    features: tuple[str, ...]
    target: str | None = None
    text: bool = False
    numeric_target: bool = True
    whole_target: bool = False
    categories: tuple[Words, ...] = ()
    gaps: tuple[bool, ...] = ()
    id: str | None = None

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

    @property
    def wanted(self) -> list[str]:
        """All columns to be read."""
        return [*self.features, *(name for name in (self.target, self.id) if name is not None)]


class Rows(NamedTuple):
    """Rows as a reader finds them, targets, the share of the file that is read, and ids."""

    X: Any
    y: Any
    share: float
    ids: Any = None


def fail(path: Path, row: int, name: str, what: str) -> NoReturn:
    """Name the place of a fault."""
    raise InputError(f"{path}, row {row}: column {quoted(name)}", what)


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
            it = f"{meant} It" if (meant := _meant(name, there)) else "; it"
            raise InputError(path, f"has no column {quoted(name)}{it} has {shown[:400]}{remedy}")
        if times[name] > 1:
            check_once(path, there)


def _meant(name: str, there: Sequence[str]) -> str:
    """Name the column that was probably meant; names that nobody types are not looked at."""
    typed = [other for other in there[:1000] if len(other) <= 60 and other.strip() != name]
    return did_you_mean(name[:60], typed)


def check_once(path: Path | str, names: Sequence[str]) -> None:
    """Refuse names of columns that are not different."""
    for name, times in Counter(names).most_common(1):
        if times > 1:
            raise InputError(
                path, f"has {times} columns named {quoted(name)}; rename or drop all but one"
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
