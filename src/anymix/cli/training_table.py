"""A table to train on: its own header says what the features are."""

from __future__ import annotations

import csv
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from anymix.cli.rows import NPZ_ROWS, Columns, read_rows
from anymix.sources.exchange._optional import need


def column_names(path: str, target: str) -> list[str]:
    """Return the names of all columns but the target."""
    if not Path(path).is_file():
        raise ValueError(f"{path} does not exist.")
    names = _names(Path(path))
    return [name for name in names if name != target]


def _names(path: Path) -> list[str]:
    if path.suffix == ".csv":
        with open(path, newline="", encoding="utf-8-sig") as file:
            return next(csv.reader(file), [])
    if path.suffix == ".parquet":
        return list(need("pyarrow.parquet").read_schema(path).names)
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            if NPZ_ROWS in arrays and arrays[NPZ_ROWS].ndim == 2:
                return [f"x{i}" for i in range(arrays[NPZ_ROWS].shape[1])]
        raise ValueError(f"{path} must hold a plain array X of shape (rows, features).")
    raise ValueError(f"{path} is no table that can be read; give .csv, .parquet or .npz.")


def read_training_rows(path: str, names: list[str], target: str, task: str) -> tuple[Any, Any]:
    """Return rows and labels; labels that all are whole numbers become such."""
    numeric = task == "regression"
    X, y = read_rows(path, Columns(tuple(names), target, numeric_target=numeric))
    if not numeric:
        with suppress(ValueError):
            y = y.astype(np.int64)
    return X, y
