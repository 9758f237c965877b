"""Check tables of responsibilities."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from anymix._arrays import FloatArray


def log_table(values: ArrayLike, name: str, n_sources: int | None = None) -> FloatArray:
    """Return a (p, n) table of logarithms: −inf is allowed, NaN and +inf are not."""
    table = np.asarray(values, dtype=float)
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(
            f"{name} has shape {table.shape}; it must be (p, n), one row for each source and one "
            "column for each point, neither empty."
        )
    if n_sources is not None and len(table) != n_sources:
        raise ValueError(
            f"{name} has {len(table)} rows, but the other table has {n_sources}: give one row for "
            "each source in both."
        )
    if np.isnan(table).any() or np.isposinf(table).any():
        raise ValueError(f"{name} must not be NaN or +inf; logarithms of densities are finite.")
    return table


def shares(values: ArrayLike, name: str, n_sources: int | None = None) -> FloatArray:
    """Return responsibilities r (p, n) from their logarithms; each column sums to 1."""
    log_r = log_table(values, name, n_sources)
    with np.errstate(over="ignore"):  # what is so large does not sum to 1
        r = np.exp(log_r)
    off = np.abs(r.sum(axis=0) - 1.0)
    if not off.max() < 1e-6:
        raise ValueError(
            f"{name} must hold log-responsibilities, whose exponentials sum to 1 in each column; "
            f"column {int(off.argmax())} does not: subtract its logsumexp first."
        )
    return np.asarray(r)
