"""Encode tables for exported graphs: codes of categories, NaN where missing."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from anymix._arrays import FloatArray
from anymix.exceptions import InputError, quoted
from anymix.tables.cells import is_missing
from anymix.tables.columns import Column, Columns
from anymix.tables.frames import as_rows
from anymix.tables.table_columns import CategoryWarning


def encode(
    X: Any, features: str | Sequence[Mapping[str, Any]], unknown: str = "warn"
) -> FloatArray:
    """Return a table as the input of an exported graph.

    Columns are found by name.  A category is its place among the listed ones; whole numbers match
    categories with and without a point, so that 1.0 is the category "1".

    Parameters
    ----------
    X : DataFrame of pandas, polars or pyarrow
    features : list of dict, or their JSON
        As the graph's metadata "anymix.features" states them: `name`, and maybe `gaps` and
        `categories`.
    unknown : "warn", "error" or "missing"
        What to do with a category that is not listed, which counts as a missing value.

    Returns
    -------
    ndarray of shape (n_rows, n_features)

    Examples
    --------
    >>> import pandas as pd
    >>> features = [{"name": "age", "categories": None, "gaps": True},
    ...             {"name": "site", "categories": ["1", "2"], "gaps": True}]
    >>> encode(pd.DataFrame({"site": [1.0, 2.0], "age": [41, None]}), features)
    array([[41.,  0.],
           [nan,  1.]])
    """
    if unknown not in ("warn", "error", "missing"):
        raise ValueError(f"unknown={unknown!r} is not known; choose 'warn', 'error' or 'missing'.")
    listed = json.loads(features) if isinstance(features, str) else features
    named = [(each["name"], each.get("categories")) for each in listed]
    columns = Columns(tuple(Column(n, None if c is None else tuple(c)) for n, c in named))
    rows = as_rows(X)
    if not hasattr(rows, "columns"):
        raise InputError("the table", "must be a frame, whose columns have names")
    encoded = columns.encode(rows)
    for j, (column, each) in enumerate(zip(columns, listed, strict=True)):
        empty = np.flatnonzero(np.isnan(encoded[:, j]))
        cells = np.asarray(rows[column.name], dtype=object)[empty]
        absent = np.array([is_missing(c, number=column.categories is None) for c in cells], bool)
        if absent.any() and not each.get("gaps", True):
            where = f"row {empty[absent][0]}: column {quoted(column.name)}"
            raise InputError(where, "has no value, and the model was trained on complete ones")
        if not absent.all() and unknown != "missing":
            _tell_unknown(column.name, cells[~absent], unknown == "error")
    return encoded


def _tell_unknown(name: str, cells: Any, refuse: bool) -> None:
    several = "s" * (len(cells) != 1)
    what = f"has {len(cells)} cell{several} with a category that is not listed, such as "
    cause = f"{what}{quoted(cells[0])}"
    if refuse:
        raise InputError(
            f"column {quoted(name)}", f"{cause}; correct it, or pass unknown='missing'"
        )
    text = f"column {quoted(name)} {cause}; read as missing."
    warnings.warn(text, CategoryWarning, stacklevel=3)
