"""Check tables of responsibilities and the sources of the reference rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

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
    off = np.abs(logsumexp(log_r, axis=0))
    if not off.max() < 1e-6:
        raise ValueError(
            f"{name} must hold log-responsibilities, whose exponentials sum to 1 in each column; "
            f"column {int(off.argmax())} does not: subtract its logsumexp first."
        )
    return np.asarray(np.exp(log_r))


def domains(sample_domain: ArrayLike, p: int, m: int) -> NDArray[np.intp]:
    """Return the source, 0..p−1, of each of m reference rows; every source needs two rows."""
    domain = np.asarray(sample_domain)
    if domain.shape != (m,) or domain.dtype.kind not in "iu":
        raise ValueError(
            f"sample_domain must hold {m} whole numbers, the source of each reference row; got "
            f"{domain.dtype} of shape {domain.shape}."
        )
    if domain.min() < 0 or domain.max() >= p:
        raise ValueError(f"sample_domain must lie in 0..{p - 1}, one number for each source.")
    counts = np.bincount(domain, minlength=p)
    if counts.min() < 2:
        raise ValueError(
            f"source {int(counts.argmin())} has {counts.min()} reference row(s); give two or more "
            "held-out rows of every source."
        )
    return domain.astype(np.intp)
