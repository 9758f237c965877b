"""Answers as DataFrames; pandas is loaded when the first one is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from anymix._arrays import FloatArray
from anymix.core import unit_of
from anymix.exceptions import not_installed


def load_pandas() -> Any:
    """Return pandas, or say what brings it."""
    try:
        import pandas
    except ImportError as error:
        raise not_installed("pandas", "notebook") from error
    return pandas


def index_of(rows: Any) -> Any:
    """Return the labels of rows that have some, else None; a list's `index` is a method.

    >>> index_of([[1.0]]) is None
    True
    """
    index = getattr(rows, "index", None)
    return None if callable(index) else index


def labelled(weights: FloatArray, X: Any, sources: Iterable[Any]) -> Any:
    """Put weights (n, p) into a DataFrame with the index of X and a column for each source."""
    pandas = load_pandas()
    columns = pandas.Index(list(sources), name="source")
    return pandas.DataFrame(weights, index=index_of(X), columns=columns)


def comparison_frame(comparison: Any, intervals: bool) -> Any:
    """Return the table of a comparison, methods by mixtures; see `Comparison.to_frame`."""
    pandas = load_pandas()
    parts = {"estimate": comparison.loss}
    if intervals:
        parts |= {"lower": comparison.lower, "upper": comparison.upper}
    columns = [(mixture, part) for mixture in comparison.mixtures for part in parts]
    # By mixture, then by part, as the columns are.
    values = np.stack(list(parts.values()), axis=2).reshape(len(comparison.methods), -1)
    columns, values = [*columns, ("worst", "estimate")], np.column_stack([values, comparison.worst])
    levels = ["mixture", "value"]
    frame = pandas.DataFrame(
        values,
        index=pandas.Index(list(comparison.methods), name="method"),
        columns=pandas.MultiIndex.from_tuples(columns, names=levels),
    )
    if not intervals:
        frame = frame.droplevel("value", axis=1)
    frame.attrs.update(about(comparison))
    return frame


def about(comparison: Any) -> dict[str, Any]:
    """What the numbers of a comparison are: their unit, which are better, who is privileged."""
    named = zip(comparison.methods, comparison.privileged, strict=True)
    return {
        "measure": comparison.measure,
        "unit": unit_of(comparison.measure).head,
        "better": "higher" if comparison.higher_is_better else "smaller",
        "privileged": [method for method, starred in named if starred],
        "worst_mixture": dict(zip(comparison.methods, comparison.worst_mixture, strict=True)),
    }


def caption(comparison: Any) -> str:
    """Name the unit, and which numbers are better."""
    unit = unit_of(comparison.measure)
    return f"{unit.head}, {unit.direction}"
