"""What the columns of a table are, and the table as plain numbers: one coding for all who use it.

Numbers and booleans stay numbers, words become codes 0, 1, ... of their categories, and a missing
value, like a category that was never seen, is NaN.  Trees, densities and ONNX graphs take it from
there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray, n_rows
from anymix._parameters import nearest
from anymix.exceptions import InputError
from anymix.tables.cells import check_once, is_missing, words_in

# Boosted trees tell so many categories of a column apart; rarer ones are missing values.
MOST_CATEGORIES = 200
# Dates and times, by the letter of their numpy type.
DATES = "mM"


@dataclass(frozen=True)
class Column:
    """A column of numbers, or, if it has categories, of words."""

    name: str
    categories: tuple[str, ...] | None = None

    @property
    def kind(self) -> str:
        """In one word: "number" or "category"."""
        return "number" if self.categories is None else "category"


@dataclass(frozen=True)
class Columns:
    """The columns of a table, in order; `encode` makes numbers of any table that has them.

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
        """Look at a DataFrame, or at an array, whose columns are called x0, x1, ...

        Of the words of a column those are categories that stand in `least` rows or more, and at
        most the `most` frequent of them.
        """
        return cls(tuple(_column(name, values, most, least) for name, values in _parts(X)))

    def __iter__(self) -> Any:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Names, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def categorical(self) -> NDArray[np.bool_]:
        """Which columns hold categories, (d,)."""
        return np.array([column.categories is not None for column in self.columns])

    def encode(self, X: Any) -> FloatArray:
        """Return the table as numbers (n, d): codes of categories, NaN for what is not known.

        An array of numbers is taken as encoded.  Columns of a frame are found by name; further
        ones are not looked at.
        """
        if not hasattr(X, "columns"):
            return self._checked(X)
        given = {str(name): name for name in X.columns}
        missing = [name for name in self.names if name not in given]
        if missing:
            near = nearest(missing[0], given)
            remedy = "" if near is None else f"; rename {near!r} if that is it"
            cause = f"has no column {missing[0]!r}, which is needed{remedy}"
            raise InputError("the table", cause)
        check_once("the table", [name for name in map(str, X.columns) if name in self.names])
        out = np.empty((n_rows(X), len(self.columns)))
        for j, column in enumerate(self.columns):
            out[:, j] = _encoded(column, X[given[column.name]])
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


def _column(name: str, values: Any, most: int, least: int) -> Column:
    dtype = values.dtype
    if getattr(dtype, "kind", "O") in DATES or "period" in str(dtype):
        raise _dates(name)
    if numbers_of(values) is not None:
        return Column(name)
    words = [word for word in words_of(values, name) if word is not None]
    often = [(word, n) for word, n in Counter(words).most_common(most) if n >= least]
    return Column(name, tuple(sorted(word for word, _ in often)))


def _dates(name: str) -> InputError:
    return InputError(
        f"column {name!r}",
        "holds dates or times; turn them into numbers, such as days since a day, or leave it out",
    )


def numbers_of(values: Any) -> FloatArray | None:
    """Return a column as numbers with NaN for missing values; None if it is categorical.

    Among numbers, words such as "NA" are missing values.

    Examples
    --------
    >>> numbers_of(np.array([2, "NA"], dtype=object))
    array([ 2., nan])
    >>> numbers_of(np.array([True, None, 2], dtype=object))
    array([ 1., nan,  2.])
    >>> numbers_of(np.array(["f", "m"]))
    """
    kind = getattr(values.dtype, "kind", "O")
    if kind == "c":
        raise InputError("Complex data", "not supported; give the parts as two columns")
    if kind in "biuf" and not hasattr(values.dtype, "categories"):
        if hasattr(values, "to_numpy"):
            return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
        return np.asarray(values, dtype=np.float64)
    held = np.asarray(values, dtype=object)
    if hasattr(values.dtype, "categories"):
        return None
    words = [value for value in held if isinstance(value, str | bytes)]
    if words and (len(words) == len(held) or not all(is_missing(w, number=True) for w in words)):
        return None
    try:
        missing = [isinstance(value, str) or is_missing(value) for value in held]
        numbers = zip(held, missing, strict=True)
        return np.array([np.nan if skip else float(value) for value, skip in numbers])
    except (TypeError, ValueError):
        return None


def words_of(values: Any, name: str | None = None) -> list[str | None]:
    """Return a column as words, None for missing values; whole numbers have no point."""
    where = "a column" if name is None else f"column {name!r}"
    return words_in(np.asarray(values, dtype=object), where)


def _encoded(column: Column, values: Any) -> FloatArray:
    if getattr(values.dtype, "kind", "O") in DATES or "period" in str(values.dtype):
        raise _dates(column.name)
    if column.categories is None:
        if hasattr(values.dtype, "categories"):
            values = np.asarray(values, dtype=object)
        numbers = numbers_of(values)
        if numbers is None:
            word = next((word for word in values if not is_missing(word)), "")
            raise InputError(
                f"column {column.name!r}", f"holds {word!r:.60}, where numbers were learned from"
            )
        return numbers
    code: dict[str | None, float] = {word: i for i, word in enumerate(column.categories)}
    return np.array([code.get(word, np.nan) for word in words_of(values, column.name)])
