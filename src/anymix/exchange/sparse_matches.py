"""Do sparse rows stand in arrays?  Found by a projection of all columns, compared in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray

TRIED = 50  # lines with the same projection that are looked at
CELLS = 2**20  # written out at a time

Flags = NDArray[np.bool_]


def standing_in(rows: Any, array: NDArray[Any], near: float) -> Flags:
    """Which sparse rows (n, d) are lines of an array that is read as (m, d), or as (d, m)?

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> rows = csr_array([[0.0, 1.5, 0.0], [2.5, 0.0, 0.0]])
    >>> standing_in(rows, np.array([9, 9, 9, 2.5, 0, 0]), 1e-6).tolist()
    [False, True]
    """
    found = np.zeros(rows.shape[0], dtype=bool)
    factors = _factors(rows.shape[1])
    due, slack = rows @ factors, near * (abs(rows) @ np.abs(factors))
    for lines in _tables(array, rows.shape[1]):
        told = lines @ factors
        order = np.argsort(told)
        first = np.searchsorted(told[order], due - slack)
        last = np.searchsorted(told[order], due + slack, "right")
        for step in range(int(min(TRIED, (last - first).max(initial=0)))):
            asked = np.flatnonzero(~found & (first + step < last))
            found[asked] = _same(rows[asked], lines, order[first[asked] + step], near)
    return found


def made_up_of(rows: Any) -> Any:
    """Sparse rows of which each feature comes from another row, without those that are real."""
    rng = np.random.default_rng(0)
    made_up = rows.tocsc(copy=True)
    for start, stop in zip(made_up.indptr[:-1], made_up.indptr[1:], strict=True):
        made_up.indices[start:stop] = rng.choice(rows.shape[0], stop - start, replace=False)
    made_up.has_sorted_indices = False
    made_up = made_up.tocsr()
    factors = _factors(rows.shape[1])
    told, real = made_up @ factors, np.sort(rows @ factors)
    nearest = real[np.minimum(np.searchsorted(real, told - 1e-9), real.size - 1)]
    return made_up[np.flatnonzero(np.abs(nearest - told) > 1e-9)]


def _factors(d: int) -> FloatArray:
    return np.random.default_rng(2).normal(size=d)


def _tables(array: NDArray[Any], d: int) -> Iterator[FloatArray]:
    if array.size < d or array.size % d:
        return
    numbers = np.asarray(array, dtype=float)
    yield numbers.reshape(-1, d)
    if array.size > d:
        yield numbers.reshape(d, -1).T


def _same(rows: Any, lines: FloatArray, places: NDArray[Any], near: float) -> Flags:
    """Whether each row is the line at its place."""
    found = np.zeros(len(places), dtype=bool)
    size = max(1, CELLS // rows.shape[1])
    for start in range(0, len(places), size):
        some = slice(start, start + size)
        plain = rows[some].toarray()
        apart = np.abs(lines[places[some]] - plain)
        found[some] = (apart <= near * (np.abs(plain) + 1e-3)).all(axis=1)
    return found
