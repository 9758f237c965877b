"""A table to train on: its own header says what the features are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix._errors import InputError
from anymix.cli.cells import whole_labels
from anymix.cli.columns import check_once, check_there, open_table
from anymix.cli.csv_rows import read_header
from anymix.cli.npz_rows import npz_shape
from anymix.cli.parquet_rows import opened
from anymix.cli.table_reader import Columns, check_kind, read_rows
from anymix.exchange import is_label, is_text


def column_names(path: str, target: str) -> list[str]:
    """Return the names of all columns but the target."""
    check_kind(Path(path))
    names = _names(Path(path))
    if Path(path).suffix.lower() != ".npz":
        check_there(Path(path), [target], names, target)
    _check_names(path, names)
    features = [name for name in names if name != target]
    if not features:
        raise InputError(path, f"has no column but {target!r}; a source needs features")
    return features


def _names(path: Path) -> list[str]:
    if path.suffix.lower() == ".csv":
        with open_table(path) as file:
            return read_header(path, file)
    if path.suffix.lower() == ".parquet":
        with opened(path) as file:
            return list(file.schema_arrow.names)
    shape = npz_shape(path)
    if len(shape) != 2:
        raise InputError(path, "must hold a plain array X of shape (rows, features)")
    return [f"x{i}" for i in range(shape[1])]


def _check_names(path: str, names: list[str]) -> None:
    """Names must be such as a manifest may hold."""
    for i, name in enumerate(names, 1):
        if not name.strip() or name.startswith("__index_level_"):
            raise InputError(
                f"{path}: column {i}",
                "has no name; name it, or leave it out (pandas writes no index with index=False)",
            )
        if not is_text(name):
            raise InputError(
                f"{path}: the name of column {i}",
                "is longer than 200 characters or cannot be printed; rename the column",
            )
    check_once(path, names)


def read_training_rows(path: str, names: list[str], target: str, task: str) -> tuple[Any, Any]:
    """Return rows and labels; labels that all are written as whole numbers become such."""
    numeric = task == "regression"
    X, y = read_rows(path, Columns(tuple(names), target, numeric_target=numeric))
    if numeric:
        return X, y
    _check_labels(path, target, y)
    return X, whole_labels(y)


def _check_labels(path: str, target: str, y: NDArray[Any]) -> None:
    """Labels must be such as a manifest may hold."""
    invalid = [label for label in np.unique(y).tolist() if not is_label(label)]
    if invalid:
        row = int(np.flatnonzero(y == invalid[0])[0]) + 1
        raise InputError(
            f"{path}, row {row}: column {target!r}",
            "holds a label of over 200 characters, or one that cannot be printed or that a "
            "spreadsheet would run as a formula; rename it",
        )
