"""The columns of a table and its encoding as numbers, shared by all who use it.

Numbers and booleans stay numbers, strings become the codes 0, 1, ... of their categories, and
missing values and unseen categories become NaN.  Trees, densities and ONNX graphs use this
encoding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray, n_rows
from anymix._parameters import nearest
from anymix.exceptions import InputError
from anymix.tables.cells import (
    BOOLEANS,
    CODE,
    check_once,
    is_missing,
    number_in,
    without_point,
    words_in,
)
from anymix.tables.derived import (
    DATE_PARTS,
    SPANS,
    dates_of,
    parts_of,
    parts_of_dates,
    parts_of_texts,
    split_name,
)
from anymix.tables.frames import as_rows, is_text_column

# Boosted trees tell so many categories of a column apart; rarer ones are missing values.
MOST_CATEGORIES = 200


@dataclass(frozen=True)
class Column:
    """A column of numbers or, if it has `categories`, a categorical column.

    A date or a text becomes several columns of numbers, which are named after it: "day [year]", or
    "note [word good]".
    """

    name: str
    categories: tuple[str, ...] | None = None

    @property
    def of(self) -> str:
        """The column of dates or texts that this column was derived from, else nothing.

        >>> Column("day [year]").of, Column("day [year]").part, Column("day").of
        ('day', 'year', '')
        """
        return split_name(self.name)[0]

    @property
    def part(self) -> str:
        """The derived quantity, such as "year", else nothing."""
        return split_name(self.name)[1]

    @property
    def kind(self) -> str:
        """In one word: "number" or "category"."""
        return "number" if self.categories is None else "category"


@dataclass(frozen=True)
class Columns:
    """The columns of a table, in order; `encode` encodes any table that has them.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"age": [41.0, None], "sex": ["f", "m"], "smokes": [True, False]})
    >>> columns = Columns.of(table)
    >>> [column.kind for column in columns]
    ['number', 'category', 'number']
    >>> columns.encode(pd.DataFrame({"age": [7], "sex": ["x"], "smokes": [True]}))
    array([[ 7., nan,  1.]])
    """

    columns: tuple[Column, ...]

    @classmethod
    def of(cls, X: Any, most: int = MOST_CATEGORIES, least: int = 1) -> Columns:
        """Detect the columns of a DataFrame, or of an array, whose columns are x0, x1, ...

        Categories are the values of at least `least` rows, and at most the `most` frequent of
        them.
        """
        found: list[Column] = []
        for name, values in _parts(as_rows(X)):
            found.extend(_columns(name, values, most, least))
        check_once("the table", [column.name for column in found])
        return cls(tuple(found))

    def __iter__(self) -> Any:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Names, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def table_names(self) -> tuple[str, ...]:
        """Column names of the table, where a date or a text is one column."""
        return tuple(dict.fromkeys(column.of or column.name for column in self.columns))

    @property
    def categorical(self) -> NDArray[np.bool_]:
        """Which columns hold categories, (d,)."""
        return np.array([column.categories is not None for column in self.columns])

    def are_plain(self, X: Any) -> bool:
        """Whether the table holds only numbers.

        Examples
        --------
        >>> import pandas as pd
        >>> tables = pd.DataFrame({"age": [41.0]}), pd.DataFrame({"age": ["41"]})
        >>> [Columns.of(table).are_plain(table) for table in tables]
        [True, False]
        """
        if self.categorical.any() or any(column.of for column in self.columns):
            return False
        return not any(_is_written(values) for _, values in _parts(X))

    def encode(self, X: Any) -> FloatArray:
        """Return the table as numbers (n, d): codes of categories, NaN for missing or unseen ones.

        An array of numbers counts as encoded.  Columns of a frame are found by name; other
        columns are ignored.
        """
        X = as_rows(X)
        if not hasattr(X, "columns"):
            return self._checked(X)
        given = {str(name): name for name in X.columns}
        origin = [c.name if c.name in given or not c.of else c.of for c in self.columns]
        wanted = dict.fromkeys(origin)
        missing = [name for name in wanted if name not in given]
        if missing:
            near = nearest(missing[0], given)
            remedy = "" if near is None else f"; rename {near!r} if that is it"
            cause = f"has no column {missing[0]!r}, which is needed{remedy}"
            raise InputError("the table", cause)
        check_once("the table", [name for name in map(str, X.columns) if name in wanted])
        out = np.empty((n_rows(X), len(self.columns)))
        for name in wanted:
            own = [j for j, of in enumerate(origin) if of == name]
            parts = [self.columns[j].part for j in own if self.columns[j].name != name]
            values = X[given[name]]
            if parts:
                out[:, own] = parts_of(values, parts, name)
            else:
                out[:, own[0]] = _encoded(self.columns[own[0]], values)
        return out

    def _checked(self, X: Any) -> FloatArray:
        table = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
        if table.ndim != 2 or table.shape[1] != len(self.columns):
            raise InputError(
                "the table",
                f"has the shape {table.shape}, where {len(self.columns)} columns are needed",
            )
        if table.dtype.kind not in "biuf":
            return np.column_stack([_encoded(c, v) for c, v in zip(self, table.T, strict=True)])
        return np.asarray(table, dtype=np.float64)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        listed = [None if c.categories is None else list(c.categories) for c in self.columns]
        return {"names": list(self.names), "categories": listed}

    def notes(self) -> list[str]:
        """Describe columns that are read as several: dates and texts.

        Examples
        --------
        >>> import pandas as pd
        >>> columns = Columns.of(pd.DataFrame({"day": ["2024-01-31", "2024-02-01"], "n": [1, 2]}))
        >>> columns.names
        ('day [days]', 'day [year]', 'day [month]', 'day [weekday]', 'n')
        >>> columns.notes()
        ["column 'day' holds dates, read as days since 1970, year, month, weekday."]
        """
        said = []
        for name, some in groupby(self.columns, lambda column: column.of):
            parts = [column.part for column in some]
            if name and parts[0] in DATE_PARTS:
                told = ", ".join(parts).replace("days", "days since 1970", 1)
                said.append(f"column {name!r} holds dates, read as {told}.")
            elif name:
                said.append(
                    f"column {name!r} holds texts, read as their length and which of "
                    f"{len(parts) - 1} frequent words they have."
                )
        return said

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Columns:
        """Return the columns that `to_dict` wrote, or say in a ValueError what is wrong."""
        names, listed = data["names"], data["categories"]
        if len(names) != len(listed) or len(set(names)) < len(names):
            raise ValueError("the columns do not have different names, or not one kind each")
        found = []
        for name, words in zip(names, listed, strict=True):
            for word in (name, *(words or ())):
                if not isinstance(word, str):
                    raise ValueError("a column or a category has a name that is not text")
            if words is not None and len(set(words)) < len(words):
                raise ValueError(f"the column {name!r:.60} has a category twice")
            found.append(Column(name, None if words is None else tuple(words)))
        return cls(tuple(found))


def _parts(X: Any) -> Iterable[tuple[str, Any]]:
    if hasattr(X, "columns"):
        check_once("the table", list(map(str, X.columns)))
        return [(str(name), X[name]) for name in X.columns]
    table = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    if table.ndim != 2:
        raise InputError("the table", f"has the shape {table.shape}; rows and columns are needed")
    return [(f"x{j}", values) for j, values in enumerate(table.T)]


def _is_written(values: Any) -> bool:
    """Whether numbers are written as words, or are spans of time."""
    kind = getattr(values.dtype, "kind", "O")
    if kind in "biufc":
        return False
    return kind == SPANS or any(isinstance(v, str) for v in np.asarray(values, dtype=object))


def _columns(name: str, values: Any, most: int, least: int) -> list[Column]:
    """Return the columns of numbers and categories that a column of a table becomes."""
    dates = dates_of(values)
    parts: tuple[str, ...] = ()
    if dates is not None and not hasattr(values, "index"):
        raise InputError(
            f"column {name!r}",
            "holds dates; give a DataFrame, where they are read as year, month, weekday and days, "
            "or turn them into numbers",
        )
    if dates is not None:
        parts = parts_of_dates(dates)
    elif hasattr(values, "index") and is_text_column(values):
        parts = parts_of_texts(values, least)
    if parts:
        return [Column(f"{name} [{part}]") for part in parts]
    if numbers_of(values) is not None:
        return [Column(name)]
    words = [word for word in words_of(values, name) if word is not None]
    often = [(word, n) for word, n in Counter(words).most_common(most) if n >= least]
    return [Column(name, tuple(sorted(word for word, _ in often)))]


def numbers_of(values: Any) -> FloatArray | None:
    """Return a column as numbers with NaN for missing values; None if it is categorical.

    Among numbers, strings such as "NA" are missing values; numbers may be written as text.

    Examples
    --------
    >>> numbers_of(np.array([2, "NA"], dtype=object)), numbers_of(np.array(["1.5", "2"]))
    (array([ 2., nan]), array([1.5, 2. ]))
    >>> numbers_of(np.array([True, None, 2], dtype=object))
    array([ 1., nan,  2.])
    >>> numbers_of(np.array(["f", "m"]))
    """
    kind = getattr(values.dtype, "kind", "O")
    if kind == SPANS:
        spans = np.asarray(values).astype("timedelta64[s]")
        return np.where(np.isnat(spans), np.nan, spans.astype("int64") / 86_400.0)
    if kind == "c":
        raise InputError("Complex data", "not supported; give the parts as two columns")
    if kind in "biuf" and not hasattr(values.dtype, "categories"):
        if hasattr(values, "to_numpy"):
            return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
        return np.asarray(values, dtype=np.float64)
    held = np.asarray(values, dtype=object)
    if hasattr(values.dtype, "categories"):
        return None
    meaning = _numbers_written({value for value in held if isinstance(value, str | bytes)})
    if meaning is None:
        return None
    try:
        each = (meaning[value] if isinstance(value, str) else _number(value) for value in held)
        numbers = np.array(list(each), dtype=np.float64)
    except (TypeError, ValueError):
        return None
    # Words that all say that there is no number are words.
    return None if meaning and np.isnan(numbers).all() else numbers


def _number(value: Any) -> float:
    return np.nan if is_missing(value) else float(value)


def _numbers_written(words: set[Any]) -> dict[str, float] | None:
    """Return what words mean as numbers; None unless all do, or if they are codes such as 007."""
    found: dict[str, float] = {}
    for word in words:
        if isinstance(word, bytes) or CODE.fullmatch(word.strip()):
            return None
        try:
            found[word] = number_in(word)
        except ValueError:
            return None
    booleans = [word for word in found if word.strip().lower() in BOOLEANS]
    others = any(not np.isnan(found[word]) for word in found if word not in booleans)
    return None if booleans and others else found


def words_of(values: Any, name: str | None = None) -> list[str | None]:
    """Return a column as strings, None for missing values; integers have no decimal point."""
    where = "a column" if name is None else f"column {name!r}"
    return words_in(np.asarray(values, dtype=object), where)


def _encoded(column: Column, values: Any) -> FloatArray:
    if column.categories is None:
        if hasattr(values.dtype, "categories"):
            values = np.asarray(values, dtype=object)
        numbers = numbers_of(values)
        if numbers is None:
            word = next((word for word in values if not is_missing(word)), "")
            what = f"{word!r:.60}" if dates_of(values) is None else "dates"
            raise InputError(f"column {column.name!r}", f"holds {what}, but held numbers in fit")
        return numbers
    code: dict[str | None, float] = {word: i for i, word in enumerate(column.categories)}
    words = words_of(values, column.name)
    # As in CSV files, 1.0 is the category "1".
    known = {w: code.get(w, code.get(without_point(w), np.nan)) for w in set(words)}
    return np.array([known[word] for word in words])
