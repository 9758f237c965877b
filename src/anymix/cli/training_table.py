"""A table to train on: its own header says what the features are."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix._errors import InputError
from anymix.cli.table_reader import (
    NPZ_FAULTS,
    NPZ_ROWS,
    Columns,
    check_there,
    open_parquet,
    read_header,
    read_rows,
)
from anymix.exchange import is_text


def column_names(path: str, target: str) -> list[str]:
    """Return the names of all columns but the target."""
    if not Path(path).is_file():
        raise InputError(path, "does not exist")
    names = _names(Path(path))
    if Path(path).suffix != ".npz":
        check_there(Path(path), [target], names, target)
    _check_names(path, names)
    features = [name for name in names if name != target]
    if not features:
        raise InputError(path, f"has no column but {target!r}; a source needs features")
    return features


def _names(path: Path) -> list[str]:
    if path.suffix == ".csv":
        with open(path, "rb") as file:
            return read_header(path, file)
    if path.suffix == ".parquet":
        return list(open_parquet(path).schema_arrow.names)
    if path.suffix == ".npz":
        return _npz_names(path)
    raise InputError(path, "is not a table that can be read; give .csv, .parquet or .npz")


def _npz_names(path: Path) -> list[str]:
    # A file that numpy cannot read has no such array either.
    with suppress(*NPZ_FAULTS), open(path, "rb") as file:
        rows = np.load(file, allow_pickle=False)[NPZ_ROWS]
        if rows.ndim == 2:
            return [f"x{i}" for i in range(rows.shape[1])]
    raise InputError(path, "must hold a plain array X of shape (rows, features)")


def _check_names(path: str, names: list[str]) -> None:
    """Names must be such as a manifest may hold."""
    for i, name in enumerate(names, 1):
        if not name.strip():
            raise InputError(
                f"{path}: column {i}",
                "has no name; name it, or leave it out (pandas writes no index with index=False)",
            )
        if not is_text(name):
            raise InputError(
                f"{path}: the name of column {i}",
                "is longer than 200 characters or cannot be printed; rename the column",
            )
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise InputError(path, f"has {times} columns named {name!r}; rename or drop all but one")


def read_training_rows(path: str, names: list[str], target: str, task: str) -> tuple[Any, Any]:
    """Return rows and labels; labels that all are whole numbers become such."""
    numeric = task == "regression"
    X, y = read_rows(path, Columns(tuple(names), target, numeric_target=numeric))
    if not numeric:
        with suppress(ValueError):
            return X, y.astype(np.int64)
        _check_labels(path, target, y)
    return X, y


def _check_labels(path: str, target: str, y: NDArray[Any]) -> None:
    """Labels must be such as a manifest may hold."""
    invalid = [label for label in np.unique(y).tolist() if not is_text(label)]
    if invalid:
        row = int(np.flatnonzero(y == invalid[0])[0]) + 1
        raise InputError(
            f"{path}, row {row}: column {target!r}",
            "holds a label of over 200 characters or one that cannot be printed; rename it",
        )
