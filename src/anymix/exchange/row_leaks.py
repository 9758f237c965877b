"""Which rows of numbers do arrays contain?  Row matching by one random projection, then in full."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray

NEAR = 1e-6  # relative; float32 keeps seven digits
NEAR_HALF = 2e-3  # of arrays in float16, which keeps three
BLOCK = 32  # columns of the projection
PATTERNS = 30  # of gaps that are looked at one by one
MADE_UP = 3000  # rows to tell chance by, of tables that have fewer
TRIED = 200  # windows with the same projection that are looked at
SHARED = 5  # rows with the same target: it is nobody's own
MANY_DIGITS = 3  # numbers with more of them than this do not coincide by chance
SPARSE_TRIED = 50  # lines with the same projection that are looked at
CELLS = 2**20  # of sparse rows that are written out at a time

Flags = NDArray[np.bool_]
Rows = Any  # an array (n, d), or a sparse matrix of this shape


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
        for step in range(int(min(SPARSE_TRIED, (last - first).max(initial=0)))):
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


def contained_rows(rows: Rows, arrays: Sequence[NDArray[Any]]) -> Flags:
    """Which rows (n, d) stand in some array, all features side by side in their order?

    Arrays are read line by line, column by column, and as d lines; for sparse rows at multiples
    of d only, by a projection of all columns: most of a few neighbours would be zeros.  A gap, NaN,
    stands for any number: nobody knows what a file would hold in its place.

    Examples
    --------
    >>> rows = np.array([[1.25, 7.5], [2.5, 3.75], [9.0, 9.5]])
    >>> contained_rows(rows, [np.array([0, 2.5, 3.75]), np.array([[9.0, 1], [9.5, 2]])]).tolist()
    [False, True, True]
    """
    if hasattr(rows, "tocsr"):
        found = np.zeros(rows.shape[0], dtype=bool)
        for array in arrays:
            found |= standing_in(rows.tocsr(), array, _near(array))
        return found
    distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
    found = np.zeros(len(distinct), dtype=bool)
    for members, known in _alike_in_gaps(distinct):
        part = np.where(known, distinct[members], 0.0)
        for array in arrays:
            for numbers in _layouts(array, rows.shape[1]):
                left = ~found[members]
                if left.any():
                    found[members[left]] = _in_line(part[left], numbers, _near(array), known)
    return np.asarray(found[inverse.ravel()])


def _alike_in_gaps(rows: FloatArray) -> Iterator[tuple[NDArray[np.intp], Flags]]:
    """Yield groups of rows, and the columns (d,) that are known in all rows of the group.

    Those with the same gaps are together; the rest, once there are many such groups, is one.
    """
    known, group = np.unique(~np.isnan(rows), axis=0, return_inverse=True)
    group = group.ravel()
    order = np.argsort(-np.bincount(group), kind="stable")
    for g in order[:PATTERNS]:
        if known[g].any():
            yield np.flatnonzero(group == g), known[g]
    rest = np.flatnonzero(np.isin(group, order[PATTERNS:]))
    shared = np.asarray(known[order[PATTERNS:]].all(axis=0))
    if rest.size and shared.any():
        yield rest, shared


def _near(array: NDArray[Any]) -> float:
    return NEAR_HALF if array.dtype == np.float16 else NEAR


def rows_beyond_chance(rows: Rows, arrays: Sequence[NDArray[Any]]) -> int:
    """How many rows stand in the arrays, zero if as many do of rows that were made up?

    Made-up rows take each feature from another row.  Where that gives no new ones, as with one
    feature, only rows with a number of four digits or more count: 3 stands in every second file.
    Rows of one such number, as of zeros alone, do not count: they stand in every constant.  Nor do
    rows with gaps whose numbers of few digits five rows or more share: they are nobody's own.
    """
    found = contained_rows(rows, arrays) & ~_constant(rows)
    if not hasattr(rows, "tocsr"):
        found &= ~_shared(rows, found)
    if not found.any():
        return 0
    made_up = made_up_of(rows.tocsr()) if hasattr(rows, "tocsr") else _shuffled(rows)
    if made_up.shape[0]:
        by_chance = float(contained_rows(made_up, arrays).mean())
        # Of few rows, one or two more than are due are no sign.
        due = by_chance * len(found)
        most = max(2 * due, due + 3 * np.sqrt(due))
        return int(found.sum()) if found.sum() > most else 0
    if hasattr(rows, "tocsr"):
        return 0
    return int((found & has_many_digits(rows).any(axis=1)).sum())


def _constant(rows: Rows) -> Flags:
    """Which rows are one number of few digits, again and again?"""
    if hasattr(rows, "tocsr"):
        return np.asarray(np.diff(rows.tocsr().indptr) == 0)
    if rows.shape[1] == 1:
        return np.zeros(len(rows), dtype=bool)
    gaps = np.isnan(rows)
    least = np.where(gaps, np.inf, rows).min(axis=1)
    same = (gaps | (rows == least[:, None])).all(axis=1)
    return np.asarray(same & ~has_many_digits(np.where(np.isinf(least), 0.0, least)))


def _shared(rows: FloatArray, asked: Flags) -> Flags:
    """Which of the rows asked for have gaps, and beside them only what many rows have?"""
    shared = np.zeros(len(rows), dtype=bool)
    gaps = np.isnan(rows)
    plain = np.flatnonzero(asked & gaps.any(axis=1) & ~has_many_digits(rows).any(axis=1))
    distinct, place = np.unique(rows[plain], axis=0, return_inverse=True, equal_nan=True)
    # Of many different ones the rest counts, which errs on the safe side.
    for i, row in enumerate(distinct[:TRIED]):
        known = ~np.isnan(row)
        alike = (rows[:, known] == row[known]).all(axis=1)
        shared[plain[place.ravel() == i]] = alike.sum() >= SHARED
    return shared


def numbers_beyond_chance(values: FloatArray, arrays: Sequence[NDArray[Any]]) -> int:
    """How many numbers of four digits or more stand in the arrays, zero if it may be chance?

    Examples
    --------
    >>> values = np.array([1.2345, 2.3456, 3.4567, 4.5678, 5.6789, 6.0])
    >>> numbers_beyond_chance(values, [np.array([6.0, 2.3456, 1.2345], dtype=np.float32)])
    2
    """
    long = values[has_many_digits(values)]
    distinct = np.unique(long)
    if len(distinct) < 5:  # a constant, or a handful of prices, is nobody's own
        return 0
    between = (distinct[1:] + distinct[:-1]) / 2
    by_chance = _among(between, arrays).mean()
    found = _among(long, arrays)
    return int(found.sum()) if found.mean() > 2 * by_chance else 0


def answers_beyond_chance(values: FloatArray, answers: FloatArray) -> int:
    """How many values of few rows are answered exactly, zero if it may be chance?

    Examples
    --------
    >>> values = np.linspace(1.2345, 7.6543, 20)
    >>> answers_beyond_chance(values, values), answers_beyond_chance(values, values + 0.01)
    (20, 0)
    """
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    asked = has_many_digits(values) & (counts[inverse.ravel()] < SHARED)
    room = NEAR * (np.abs(values) + values.std())
    found, beside = (asked & (np.abs(values - answers + a * room) <= room) for a in (0, 4))
    return int(found.sum()) if found.sum() > 3 + 2 * beside.sum() else 0


def has_many_digits(values: FloatArray) -> Flags:
    """Which numbers have more than three significant digits?

    Examples
    --------
    >>> has_many_digits(np.array([0.0, 120.0, 0.5, 3.25, 0.12345])).tolist()
    [False, False, False, False, True]
    """
    sizes = np.abs(values)
    unit = 10.0 ** (np.floor(np.log10(np.where(sizes > 0, sizes, 1.0))) - MANY_DIGITS + 1)
    return np.asarray(np.abs(sizes / unit - np.round(sizes / unit)) > 1e-6)


def _among(values: FloatArray, arrays: Sequence[NDArray[Any]]) -> Flags:
    """Which values stand in some array, up to two units of the last place of float32?"""
    found = np.zeros(len(values), dtype=bool)
    for array in arrays:
        numbers = np.sort(np.asarray(array, dtype=float).ravel())
        if len(numbers):
            room = 2.4e-7 * np.abs(values)
            first = np.searchsorted(numbers, values - room)
            found |= numbers[np.minimum(first, len(numbers) - 1)] <= values + room
    return found


def _layouts(array: NDArray[Any], d: int) -> Iterator[FloatArray]:
    numbers = np.asarray(array, dtype=float)
    if numbers.size < d:
        return
    yield numbers.ravel()
    if d > 1 and numbers.ndim == 2 and min(numbers.shape) > 1:
        yield numbers.T.ravel()
    if d > 1 and numbers.ndim != 2 and numbers.size % d == 0 and numbers.size > d:
        yield numbers.reshape(d, -1).T.ravel()


def _in_line(rows: FloatArray, numbers: FloatArray, near: float, known: Flags) -> Flags:
    """Which rows, 0 where they are not known, stand in one line of numbers, at any place?"""
    d = rows.shape[1]
    scale = rows.std(axis=0)
    room = near * (np.abs(rows) + scale)
    start, stop = _telling_block(rows, known)
    factors = np.random.default_rng(0).normal(size=stop - start) * known[start:stop]
    factors /= np.where(scale > 0, scale, 1.0)[start:stop]
    windows = np.correlate(numbers[start : len(numbers) - d + stop], factors, "valid")
    order = np.argsort(windows)
    windows, due = windows[order], rows[:, start:stop] @ factors
    slack = room[:, start:stop] @ np.abs(factors)
    first, last = np.searchsorted(windows, due - slack), np.searchsorted(windows, due + slack)
    found = np.zeros(len(rows), dtype=bool)
    for step in range(int(min(TRIED, (last - first).max(initial=0)))):
        asked = np.flatnonzero(~found & (first + step < last))
        places = order[first[asked] + step][:, None] + np.arange(d)
        near_to = np.abs(numbers[places] - rows[asked]) <= room[asked]
        found[asked] = (near_to | ~known).all(axis=1)
    return found


def _telling_block(rows: FloatArray, known: Flags) -> tuple[int, int]:
    """Return the neighbouring columns, of some that are tried, that differ most between rows."""
    d = rows.shape[1]
    width = min(BLOCK, d)
    starts = np.unique(np.linspace(0, d - width, 16).astype(int)).tolist()
    mix = np.random.default_rng(1).normal(size=width)
    different = [len(np.unique(rows[:, a : a + width] @ mix)) for a in starts]
    telling = [(n, int(known[a : a + width].sum())) for n, a in zip(different, starts, strict=True)]
    start = starts[telling.index(max(telling))]
    return start, start + width


def _shuffled(rows: FloatArray) -> FloatArray:
    """Rows of which each feature comes from another row, without those that are real.

    Gaps stay where they are.
    """
    rng = np.random.default_rng(0)
    times = int(np.clip(MADE_UP // max(len(rows), 1), 1, 10))
    made_up = np.tile(rows, (times, 1))
    for column in made_up.T:
        there = ~np.isnan(column)
        column[there] = rng.permutation(column[there])
    real = {row.tobytes() for row in rows}
    kept = [row.tobytes() not in real for row in made_up]
    return np.asarray(made_up[kept])
