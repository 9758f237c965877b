"""Convert data frames of other libraries to pandas, at the boundary of the package.

narwhals reads polars, pyarrow and others; estimators inside get pandas DataFrames, as most take.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix.exceptions import InputError, not_installed
from anymix.tables.cells import is_missing

# So many cells of a column are looked at to tell texts from categories.
LOOKED_AT = 1000
# Of texts, the usual cell has so many words or more, and at least half of the cells are different.
WORDS_OF_TEXT, DISTINCT = 3, 0.5


def as_rows(X: Any, left_out: Sequence[Any] = ()) -> Any:
    """Return frames of other libraries as pandas; other rows are returned unchanged.

    Frames of polars and pyarrow, and others that narwhals knows, become pandas DataFrames; lazy
    ones are collected, and columns that are left out are dropped.

    Examples
    --------
    >>> import pyarrow
    >>> as_rows(pyarrow.table({"age": [41, None], "sex": ["f", "m"]}))
        age sex
    0  41.0   f
    1   NaN   m
    >>> as_rows(np.zeros((1, 2)))
    array([[0., 0.]])
    """
    if isinstance(X, np.ndarray | list | tuple) or hasattr(X, "tocsr"):
        return X
    if not _is_pandas(X):
        X = _from_narwhals(X)
    if not hasattr(X, "columns"):
        return X
    dropped = [name for name in left_out if name in X.columns]
    return X.drop(columns=dropped) if dropped else X


def texts_of(X: Any) -> Any:
    """Return a frame with one column of texts as a list of texts; other rows unchanged.

    Examples
    --------
    >>> import pandas
    >>> texts_of(pandas.DataFrame({"review": ["I could not put it down"]})).tolist()
    ['I could not put it down']
    """
    alone = hasattr(X, "columns") and len(X.columns) == 1
    return X.iloc[:, 0] if alone and is_text_column(X.iloc[:, 0]) else X


def like(frame: Any, original: Any) -> Any:
    """Convert a pandas DataFrame to a frame of the library of the original.

    Examples
    --------
    >>> import pandas, pyarrow
    >>> frame = pandas.DataFrame({"a": [1.0]})
    >>> like(frame, pyarrow.table({"b": [2]})).column_names
    ['a']
    >>> like(frame, [2]) is frame
    True
    """
    if isinstance(original, np.ndarray | list | tuple) or hasattr(original, "tocsr"):
        return frame
    if _is_pandas(original):
        return frame
    import narwhals.stable.v2 as nw

    known = nw.from_native(original, pass_through=True, allow_series=True)
    if not isinstance(known, nw.DataFrame | nw.LazyFrame):
        return frame
    columns = {str(name): frame[name].to_numpy() for name in frame.columns}
    return nw.from_dict(columns, backend=known.implementation).to_native()


def named_column(X: Any, name: Any, argument: str) -> tuple[Any, Any]:
    """Split rows into those without the named column, and its values.

    Examples
    --------
    >>> import pandas
    >>> rows, site = named_column(pandas.DataFrame({"age": [41], "site": ["a"]}), "site", "it")
    >>> list(rows.columns), site.tolist()
    (['age'], ['a'])
    """
    rows = X if _is_pandas(X) else as_rows(X)
    names = list(rows.columns) if hasattr(rows, "columns") else []
    if name not in names:
        shown = ", ".join(map(repr, names[:8])) or "none"
        raise InputError(
            f"{argument}={name!r:.60}",
            "is a word, and neither a column of X nor a label for each row; give the name of a "
            f"column (X has {shown}), or an array",
        )
    return rows.drop(columns=name), rows[name]


def is_text_column(values: Any) -> bool:
    """Whether a column holds texts of several words, and not categories.

    Examples
    --------
    >>> is_text_column(np.array(["a good book", "I could not put it down"]))
    True
    >>> is_text_column(np.array(["north", "south"])), is_text_column(np.arange(2))
    (False, False)
    """
    if getattr(values.dtype, "kind", "O") not in "OUT" or hasattr(values.dtype, "categories"):
        return False
    every = max(1, len(values) // LOOKED_AT)
    some = [cell for cell in np.asarray(values[::every], dtype=object) if not is_missing(cell)]
    if not some or not all(isinstance(cell, str) for cell in some):
        return False
    words = np.median([len(cell.split()) for cell in some])
    return bool(words >= WORDS_OF_TEXT and len(set(some)) >= DISTINCT * len(some))


def _is_pandas(X: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(X, pandas.DataFrame | pandas.Series)


def _from_narwhals(X: Any) -> Any:
    """Return a frame or column that narwhals knows in the terms of pandas and numpy."""
    import narwhals.stable.v2 as nw

    known = nw.from_native(X, pass_through=True, allow_series=True)
    if isinstance(known, nw.LazyFrame):
        if known.implementation.is_dask():
            raise InputError(
                "X", "is a Dask DataFrame; give it to anymix.engines.dask.fit, or X.compute()"
            )
        known = known.collect()
    if isinstance(known, nw.Series):
        return _cells(known)
    if not isinstance(known, nw.DataFrame):
        return X
    try:
        import pandas
    except ImportError as error:
        raise not_installed("pandas", "notebook") from error
    columns = {name: _cells(known[name]) for name in known.columns}
    return pandas.DataFrame(columns, index=pandas.RangeIndex(len(known)))


def _cells(series: Any) -> NDArray[Any]:
    """Return a column of narwhals as numpy or, if it has categories, pandas has it."""
    import narwhals.stable.v2 as nw

    kind = series.dtype
    if isinstance(kind, nw.List | nw.Array | nw.Struct):
        raise InputError(f"column {series.name!r}", "holds lists; give a column for each part")
    if isinstance(kind, nw.Categorical | nw.Enum):
        import pandas

        words = series.cat.get_categories().to_list()
        return pandas.Categorical(series.cast(nw.String).to_list(), categories=words)
    if isinstance(kind, nw.Decimal):
        series = series.cast(nw.Float64)
    if isinstance(kind, nw.Datetime) and kind.time_zone is not None:
        series = series.dt.replace_time_zone(None)
    whole = series.dtype.is_integer() and series.null_count() > 0
    cells = (series.cast(nw.Float64) if whole else series).to_numpy()
    return np.asarray(cells, dtype=object) if cells.dtype.kind in "UT" else np.asarray(cells)
