"""Warnings about likely mistakes in the rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray
from anymix.tables import Columns, words_of

# About so many rows are looked at, and so many are needed for a word.
LOOKED_AT, FEWEST = 1000, 20
# Columns that tell the same have few values; many values go with each other by chance.
ROWS_A_VALUE = 4


def warn_of_slips(X: Any, y: NDArray[Any], domain: NDArray[Any]) -> None:
    """Warn of a single source, similar names, leaking columns and row ids."""
    names, said = np.unique(domain).tolist(), []
    if len(names) == 1:
        said.append(
            f"sample_domain names the one source {names[0]!r}, so there is nothing to combine or "
            "certify; give rows of several, and in cross-validation folds that have rows of each, "
            "as StratifiedKFold over sample_domain deals them."
        )
    known: dict[str, Any] = {}
    for name in names:
        twin = known.setdefault(str(name).strip().casefold(), name)
        if twin is not name:
            said.append(
                f"sample_domain names {twin!r} and {name!r}, which differ in case or spaces alone; "
                "give both one name if they are one source."
            )
    if hasattr(X, "columns") and len(X) >= FEWEST:
        said.extend(_columns_told(X, y, domain))
    for message in said:
        warnings.warn(message, UserWarning, stacklevel=3)


def _columns_told(X: Any, y: NDArray[Any], domain: NDArray[Any]) -> Iterator[str]:
    target, source = _words(y), _words(domain)
    for name in X.columns:
        values = X[name]
        told = _words(values)
        if _same(told, target):
            yield (
                f"column {name!r} of X determines y exactly, as the target itself would; leave it "
                "out, unless it is known before the answer is."
            )
        elif _same(told, source):
            yield (
                f"column {name!r} of X determines sample_domain exactly; leave it out, "
                "unless it is known for new rows too: the choice of source would rest on it."
            )
        elif 2 * len(set(told)) > len(told) and _is_categorical(values.iloc[:LOOKED_AT]):
            yield (
                f"column {name!r} of X has {len(set(told))} different words in {len(told)} rows, "
                f"such as {told[0]!r:.40}; leave it out if it names rows, and make it numbers, as "
                "pandas.to_numeric does, if it holds them."
            )


def _is_categorical(values: Any) -> bool:
    column = Columns.of(values.to_frame()).columns[0]
    return column.categories is not None


def _words(values: Any) -> list[str | None]:
    """Return some of the values, evenly spread over all rows."""
    every = max(1, len(values) // LOOKED_AT)
    cells = np.asarray(values, dtype=object)[::every]
    return words_of([v.isoformat() if hasattr(v, "isoformat") else v for v in cells])


def _same(one: list[str | None], other: list[str | None]) -> bool:
    """Whether each value of one goes with one value of the other, and the other way round."""
    if None in one:  # what one source does not measure is no slip
        return False
    if one == other:
        return len(set(one)) > 1
    n = len(set(one))
    few = 1 < n <= len(one) / ROWS_A_VALUE
    return few and n == len(set(other)) == len(set(zip(one, other, strict=True)))


def warn_of_strange_words(columns: Columns, X: Any, encoded: FloatArray) -> None:
    """Warn of a column with only unseen categories, all of which count as missing."""
    if len(encoded) < FEWEST:
        return
    for column, codes in zip(columns, encoded.T, strict=True):
        if column.categories and np.isnan(codes).all():
            found = next((word for word in words_of(X[column.name]) if word is not None), None)
            if found is not None:
                known = ", ".join(map(repr, islice(column.categories, 4)))
                warnings.warn(
                    f"column {column.name!r} has only categories never seen in fit, such as "
                    f"{found!r:.40}, so all count as missing; write categories as in fit: {known}.",
                    UserWarning,
                    stacklevel=4,
                )
