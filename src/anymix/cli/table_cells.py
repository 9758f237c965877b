"""What a table must have, whatever kind of file it is in; faults name file, row and column."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray
from anymix._parameters import did_you_mean
from anymix.cli.streams import caution
from anymix.exceptions import InputError, quoted
from anymix.exchange import Manifest, gaps_of
from anymix.tables import MISSING_WORDS, is_gap, words_of

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
class TableColumns:
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
    def of(cls, manifests: Sequence[Manifest], target: str | None = None) -> TableColumns:
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


class RawRows(NamedTuple):
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


# Whole numbers up to here are float64 without loss.
EXACT = 2**53
WHOLE = re.compile(r"[+-]?[0-9]+")
LABEL = re.compile(r"0|-?[1-9][0-9]{0,14}")
# Codes, such as 007, are not the number that they look like.
CODE = re.compile(r"\+.*|-?0[0-9].*")
NO_LABEL = (
    "which is not a number; write numbers with a point, name the column with the label by "
    "--target, or pack with --task classification if it holds words"
)
INEXACT = (
    "a whole number of more than 53 bits, which would be rounded; divide it or, if it numbers the "
    "rows, name the column by --id where sources are packed"
)


def number_of(value: Any) -> float:
    """Return a value as a number; NaN if it is none, a ValueError if it would be rounded.

    Text must be plain digits: no underscores, no digits of other scripts.

    Examples
    --------
    >>> number_of(" 1.5"), number_of("1_000"), number_of(True), number_of(None)
    (1.5, nan, 1.0, nan)
    >>> number_of(2**53 + 1)
    Traceback (most recent call last):
    ...
    ValueError: is a whole number of more than 53 bits, which would be rounded; ...
    """
    if isinstance(value, str) and (not value.isascii() or "_" in value or "\0" in value):
        return np.nan
    try:
        number = float(value)
    except (TypeError, ValueError):
        return np.nan
    except OverflowError:
        return np.inf
    if abs(number) >= EXACT and np.isfinite(number) and _whole(value) not in (None, int(number)):
        raise ValueError(f"is {INEXACT}")
    return number


def _whole(value: Any) -> int | None:
    """Return the whole number that was meant; None for one that was written as a fraction."""
    if isinstance(value, str):
        return int(value) if WHOLE.fullmatch(value.strip()) else None
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else None
    return int(value) if isinstance(value, int) else None


def numbers_of(path: Path, name: str, values: Sequence[Any], row: int) -> NDArray[np.float64]:
    """Return values as numbers, and name the first that would be rounded."""
    found = np.empty(len(values))
    for i, value in enumerate(values):
        try:
            found[i] = number_of(value)
        except ValueError:
            fail(path, row + i, name, f"holds {quoted(value)}, {INEXACT}")
    return found


def read_target(path: Path, columns: TableColumns, y: Any, row: int) -> NDArray[Any]:
    """Return numbers or words, as the sources' labels are."""
    name, values = str(columns.target), y.tolist() if isinstance(y, np.ndarray) else list(y)
    missing = _is_gap if columns.numeric_target else _is_missing
    _refuse(path, name, values, row, missing, lambda _: f"has no label; {FILL_IN}")
    if not columns.numeric_target:
        words = y.astype(str).tolist() if isinstance(y, np.ndarray) else list(map(str, values))
        _refuse(path, name, words, row, _has_nul, lambda _: "holds a NUL byte; remove it")
        # numpy would give each label the room of the longest.
        _refuse(path, name, words, row, lambda w: len(w) > LONGEST_LABEL, lambda _: TOO_LONG)
        return np.array(words, dtype=str)
    if columns.whole_target:
        _refuse(path, name, values, row, _is_code, _about_code)
    _refuse(path, name, values, row, _is_gap, lambda _: f"has no label; {FILL_IN}")
    numbers = numbers_of(path, name, values, row)
    for i in np.flatnonzero(~np.isfinite(numbers)):
        fail(path, row + int(i), name, f"holds {quoted(values[i])}, {NO_LABEL}")
    return numbers


def _refuse(
    path: Path,
    name: str,
    values: Sequence[Any],
    row: int,
    wrong: Callable[[Any], bool],
    words: Callable[[Any], str],
) -> None:
    for i, value in enumerate(values, row):
        if wrong(value):
            fail(path, i, name, words(value))


def _is_missing(value: Any) -> bool:
    if isinstance(value, str):
        return not value.strip()
    return value is None or value != value  # NaN alone differs from itself


def _is_gap(value: Any) -> bool:
    """Whether a number was left out, in one of the ways in which people write that."""
    return _is_missing(value) or (
        isinstance(value, str) and value.strip().casefold() in MISSING_WORDS
    )


def _has_nul(word: str) -> bool:
    # numpy would drop it at the end of a word, and make two labels one.
    return "\0" in word


def _is_code(value: Any) -> bool:
    return isinstance(value, str) and CODE.fullmatch(value.strip()) is not None


def _about_code(value: str) -> str:
    return f"holds {quoted(value)}; the sources' labels are whole numbers, so write them alike"


def whole_labels(words: NDArray[Any]) -> NDArray[Any]:
    """Return labels as whole numbers if each is written as one, and else as they are.

    "1" and "01" may be two labels, so they stay words; so does all of their column.

    Examples
    --------
    >>> whole_labels(np.array(["1", "-2"])).tolist(), whole_labels(np.array(["1", "01"])).tolist()
    ([1, -2], ['1', '01'])
    """
    stripped = [word.strip() for word in words.tolist()]
    if all(LABEL.fullmatch(word) for word in stripped):
        return np.array([int(word) for word in stripped], dtype=np.int64)
    return words


BOOLEANS = {"false": 0.0, "true": 1.0}


def number_or_gap(value: Any) -> float:
    """Return a cell as a number: NaN for a gap, 1 and 0 for true and false.

    A ValueError says what is wrong, in words that can follow the name of the column.

    Examples
    --------
    >>> number_or_gap(" 1.5"), number_or_gap("NA"), number_or_gap("True"), number_or_gap(None)
    (1.5, nan, 1.0, nan)
    >>> number_or_gap("old")
    Traceback (most recent call last):
    ...
    ValueError: holds 'old', which is not a number; ...
    """
    if isinstance(value, str):
        word = value.strip().lower()
        if word in MISSING_WORDS:
            return np.nan
        if word in BOOLEANS:
            return BOOLEANS[word]
    elif is_gap(value):
        return np.nan
    try:
        number = number_of(value)
    except ValueError:
        raise ValueError(f"holds {quoted(value)}, {INEXACT}") from None
    if np.isnan(number):
        raise ValueError(f"holds {quoted(value)}, {NOT_A_NUMBER}")
    if np.isinf(number):
        raise ValueError(f"holds a number that is infinite; {FILL_IN}")
    return number


@dataclass
class Encoder:
    """Makes numbers of raw columns, and counts the words that were never seen.

    `unseen` has a count for each column, `example` one such word.
    """

    path: Path
    columns: TableColumns
    unseen: Counter[str] = field(default_factory=Counter)
    example: dict[str, str] = field(default_factory=dict)

    def encode(self, parts: Sequence[Any], row: int) -> FloatArray:
        """Return (n, d); `parts` are the d columns, the first cell of which stands in row `row`."""
        named = zip(self.columns.features, parts, self.columns.categories, strict=True)
        found = [
            self._numbers(name, values, row)
            if words is None
            else self._codes(name, values, words, row)
            for name, values, words in named
        ]
        for name, column, values, gaps in zip(
            self.columns.features, found, parts, self.columns.gaps, strict=True
        ):
            if not gaps:
                self._refuse_gaps(name, column, values, row)
        return np.stack(found, axis=1)

    def _numbers(self, name: str, values: Any, row: int) -> FloatArray:
        if isinstance(values, np.ndarray) and values.dtype.kind == "f":
            infinite = np.flatnonzero(np.isinf(values))
            if infinite.size:
                what = f"holds a number that is infinite; {FILL_IN}"
                fail(self.path, row + int(infinite[0]), name, what)
            return np.asarray(values, dtype=np.float64)
        known: dict[Any, float] = {}
        for i, value in enumerate(values):
            if value not in known:
                try:
                    known[value] = number_or_gap(value)
                except ValueError as error:
                    fail(self.path, row + i, name, str(error))
        return np.array([known[value] for value in values], dtype=np.float64)

    def _codes(self, name: str, values: Any, words: tuple[str, ...], row: int) -> FloatArray:
        if isinstance(values, np.ndarray) and values.dtype.kind == "f":
            return self._stated_codes(name, values, len(words), row)
        code: dict[str | None, float] = {word: float(i) for i, word in enumerate(words)}
        code[None] = np.nan
        found = np.empty(len(values))
        for i, word in enumerate(texts_of(values)):
            if word not in code:
                code[word] = code.get(_without_point(word), np.nan)
            found[i] = code[word]
            # Of a column without categories every word is new, and says nothing.
            if words and word is not None and np.isnan(found[i]):
                self.unseen[name] += 1
                self.example.setdefault(name, word)
        return found

    def _stated_codes(self, name: str, values: Any, n: int, row: int) -> FloatArray:
        """Check an array of numbers, which holds the codes themselves."""
        sound = np.isnan(values) | ((values >= 0) & (values < n) & (values % 1 == 0))
        for i in np.flatnonzero(~sound):
            what = f"holds {values[i]:g}, which is not the code of one of its {n} categories"
            fail(self.path, row + int(i), name, f"{what}; give 0 to {n - 1}, or a table with names")
        return np.asarray(values, dtype=np.float64)

    def _refuse_gaps(self, name: str, column: FloatArray, values: Any, row: int) -> None:
        words = self.columns.categories[self.columns.features.index(name)]
        for i in np.flatnonzero(np.isnan(column)):
            # Among words, one that was never seen is no gap in the table.
            if words is None or texts_of(values[i : i + 1]) == [None]:
                what = "word" if words is not None else "number"
                fail(self.path, row + int(i), name, f"has no {what}; {FILL_IN}")

    def warn(self) -> None:
        """Say so on standard error."""
        for sentence in self.sentences():
            caution(sentence)

    def sentences(self) -> list[str]:
        """Say of each column how many of its words are new."""
        return [
            f"{self.path}: column {quoted(name)} has {n} cell{'s' * (n > 1)} with a word that is "
            f"no category of it, such as {quoted(self.example[name])}; read as empty."
            for name, n in self.unseen.items()
        ]


def texts_of(values: Any) -> list[str | None]:
    """Return cells as words, None for gaps; a cell of blanks is one."""
    if isinstance(values, list) and all(type(value) is str for value in values):
        return [value if value.strip() else None for value in values]
    held: NDArray[Any] = np.empty(len(values), dtype=object)
    held[:] = list(values)
    return words_of(held)


def _without_point(word: str | None) -> str | None:
    """Write a whole number without its point: tables with gaps have 1.0 for 1."""
    if word is None:
        return None
    whole, point, rest = word.partition(".")
    return whole if point and whole.isdigit() and not rest.strip("0") else word
