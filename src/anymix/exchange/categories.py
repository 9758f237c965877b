"""What the categories that a manifest lists tell about the training rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from anymix.exceptions import AuditError
from anymix.exchange.contents import FEW
from anymix.sources import Source
from anymix.tables import Columns


def said_of_categories(source: Source, rows: Any, reveals_rows: bool) -> str:
    """Say how many words are listed, and refuse those that tell of single rows.

    Words of a reference are public, whoever has them.

    Examples
    --------
    >>> from anymix.tables import Column
    >>> source = Source("north", None, columns=Columns((Column("sex", ("f", "m")),)))
    >>> said_of_categories(source, np.array([[0.0], [1.0]] * 5), False)
    ' It lists 2 words as categories of 1 column, each met by 5 training rows or more.'
    """
    if source.columns is None:
        return ""
    listed = [len(column.categories or ()) for column in source.columns]
    if not sum(listed):
        return ""
    columns = sum(column.categories is not None for column in source.columns)
    said = f" It lists {sum(listed)} words as categories of {columns} column{'s' * (columns > 1)}"
    if getattr(source.density, "reference_", None) is not None:
        return f"{said}, those of the reference."
    if rows is None:
        return f"{said}."
    rare = rare_categories(source.columns, np.asarray(rows, dtype=float))
    if rare and not reveals_rows:
        raise AuditError(
            f"the manifest of {source.name!r}",
            f"lists {rare} categories that fewer than {FEW} training rows have; list those of "
            f"{FEW} rows or more with Columns.of(X, least={FEW}), or allow it with "
            "reveals_rows=True (--reveals-rows)",
        )
    met = f"{rare} met by fewer" if rare else f"each met by {FEW} training rows or more"
    return f"{said}, {met}{f' than {FEW} training rows' if rare else ''}."


def rare_categories(columns: Columns, rows: Any) -> int:
    """How many categories are listed that fewer than five rows (n, d) have?"""
    found = 0
    for column, codes in zip(columns, rows.T, strict=True):
        if column.categories is not None:
            codes = codes[~np.isnan(codes)].astype(int)
            counts = np.bincount(codes, minlength=len(column.categories))
            found += int((counts[: len(column.categories)] < FEW).sum())
    return found
