"""Find training rows in arrays, by hashes of their rounded numbers.

d neighbours x_0, x_1, ... have the hash Σ_j code(x_j) r^j modulo 2⁶⁴, of which there is one for
each place of an array.  It is computed from sums up to each place, whatever d is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray

NEAR = 1e-6  # relative; float32 keeps seven digits
PATTERNS = 30  # of missing values that are searched for one by one
MADE_UP = 3000  # rows to estimate chance by, of tables that have fewer
TRIED = 200  # different rows that are counted
SHARED = 5  # rows with the same target: it reveals no single row
MANY_DIGITS = 3  # numbers with more of them than this do not coincide by chance
MIX, BASE = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93  # odd, so that BASE has an inverse
INVERSE = pow(BASE, -1, 2**64)

Flags = NDArray[np.bool_]
Hashes = NDArray[np.uint64]
Rows = Any  # an array (n, d), or a sparse matrix of this shape


def contained_rows(rows: Rows, arrays: Sequence[NDArray[Any]]) -> Flags:
    """Return which rows (n, d) an array contains, all features next to each other in order.

    Arrays are read line by line, column by column, and as d lines.  A missing value of a dense row
    stands for any number: what a file would hold in its place is unknown.
    """
    found = np.zeros(rows.shape[0], dtype=bool)
    for members, known in _by_missing_values(rows):
        some = rows if len(members) == len(found) else rows[members]
        for kind in {_precision(array) for array in arrays}:
            due = _row_hashes(some, known, kind)
            ordered = np.unique(due)
            for array in arrays:
                for numbers in _layouts(array, known.size) if _precision(array) == kind else ():
                    hashes = _window_hashes(numbers, known, kind)
                    # There are more places than rows, so those are looked up among the rows.
                    hashes = hashes[hashes <= ordered[-1]]
                    due_here = ordered[np.searchsorted(ordered, hashes)]
                    # By sorting: the table that older numpy makes overflows with uint64.
                    found[members] |= np.isin(due, due_here[due_here == hashes], kind="sort")
    return found


def _by_missing_values(rows: Rows) -> Iterator[tuple[NDArray[np.intp], Flags]]:
    """Yield groups of rows, and the columns (d,) that are known in all rows of the group.

    Those with the same missing values are together; the rest, once there are many such groups, is
    one.
    """
    if hasattr(rows, "tocsr"):
        yield np.arange(rows.shape[0]), np.ones(rows.shape[1], dtype=bool)
        return
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


def _precision(array: NDArray[Any]) -> str:
    return "float16" if array.dtype == np.float16 else "float32"


def _layouts(array: NDArray[Any], d: int) -> Iterator[FloatArray]:
    numbers = np.asarray(array, dtype=float)
    if numbers.size < d:
        return
    yield numbers.ravel()
    if d > 1 and numbers.ndim == 2 and min(numbers.shape) > 1:
        yield numbers.T.ravel()
    if d > 1 and numbers.ndim != 2 and numbers.size % d == 0 and numbers.size > d:
        yield numbers.reshape(d, -1).T.ravel()


def _codes(values: Any, kind: str) -> Hashes:
    """Return a code of 64 bits for each number, rounded to six digits, or three of float16."""
    with np.errstate(over="ignore"):
        rounded = np.asarray(values, dtype=float).astype(kind).astype(np.float32) + np.float32(0)
    bits = (rounded.view(np.uint32) + np.uint32(8)) & np.uint32(0xFFFFFFF0)
    codes = bits.astype(np.uint64) * np.uint64(MIX)
    return np.asarray(codes ^ (codes >> np.uint64(32)))


def _powers(base: int, n: int) -> Hashes:
    factors = np.full(n, base, dtype=np.uint64)
    factors[:1] = 1
    return np.cumprod(factors)


def _sums_to(values: Hashes) -> Hashes:
    """0, x_0, x_0 + x_1, ..."""
    return np.append(np.zeros(1, dtype=np.uint64), np.cumsum(values))


def _row_hashes(rows: Rows, known: Flags, kind: str) -> Hashes:
    powers = _powers(BASE, known.size)
    if not hasattr(rows, "tocsr"):
        return np.asarray((_codes(rows, kind) * powers)[:, known].sum(axis=1, dtype=np.uint64))
    table, zero = rows.tocsr(), _codes(np.zeros(1), kind)
    sums = _sums_to((_codes(table.data, kind) - zero) * powers[table.indices])
    return np.asarray(sums[table.indptr[1:]] - sums[table.indptr[:-1]] + zero * powers.sum())


def _window_hashes(numbers: FloatArray, known: Flags, kind: str) -> Hashes:
    """Return the hash of the known columns at each place of a line of numbers."""
    codes, d = _codes(numbers, kind), known.size
    powers, n = _powers(BASE, codes.size), codes.size - d + 1
    sums = _sums_to(codes * powers)
    hashes = (sums[d:] - sums[:n]) * _powers(INVERSE, n)
    for j in np.flatnonzero(~known):
        hashes -= codes[j : j + n] * powers[j]
    return np.asarray(hashes)


def rows_beyond_chance(rows: Rows, arrays: Sequence[NDArray[Any]]) -> int:
    """Count the rows in the arrays; zero if as many made-up rows occur in them.

    Made-up rows take each feature from another row.  Where that gives no new ones, as with one
    feature, only rows with a number of four digits or more count: 3 is in every second file.
    Rows of one such number, as of zeros alone, do not count: every constant contains them.  Nor do
    rows with missing values whose numbers of few digits five rows or more share.
    """
    found = contained_rows(rows, arrays) & ~_constant(rows)
    sparse = hasattr(rows, "tocsr")
    if not sparse:
        found &= ~_shared(rows, found)
    if not found.any():
        return 0
    made_up = _made_up_of(rows)
    if made_up.shape[0]:
        by_chance = float(contained_rows(made_up, arrays).mean())
        # Of few rows, one or two more than are due are no sign.
        due = by_chance * len(found)
        most = max(2 * due, due + 3 * np.sqrt(due))
        return int(found.sum()) if found.sum() > most else 0
    return 0 if sparse else int((found & has_many_digits(rows).any(axis=1)).sum())


def _made_up_of(rows: Rows) -> Rows:
    """Rows of which each feature comes from another row, without those that are real.

    Missing values stay where they are.
    """
    rng = np.random.default_rng(0)
    if hasattr(rows, "tocsr"):
        made_up = rows.tocsc(copy=True)
        for start, stop in zip(made_up.indptr[:-1], made_up.indptr[1:], strict=True):
            made_up.indices[start:stop] = rng.choice(rows.shape[0], stop - start, replace=False)
        made_up.has_sorted_indices = False
        made_up = made_up.tocsr()
    else:
        times = int(np.clip(MADE_UP // max(len(rows), 1), 1, 10))
        made_up = np.tile(rows, (times, 1))
        for column in made_up.T:
            there = ~np.isnan(column)
            column[there] = rng.permutation(column[there])
    every = np.ones(rows.shape[1], dtype=bool)
    real = _row_hashes(rows, every, "float32")
    return made_up[
        np.flatnonzero(~np.isin(_row_hashes(made_up, every, "float32"), real, kind="sort"))
    ]


def _constant(rows: Rows) -> Flags:
    """Which rows are one number of few digits, again and again?"""
    if hasattr(rows, "tocsr"):
        return np.asarray(np.diff(rows.tocsr().indptr) == 0)
    if rows.shape[1] == 1:
        return np.zeros(len(rows), dtype=bool)
    missing = np.isnan(rows)
    least = np.where(missing, np.inf, rows).min(axis=1)
    same = (missing | (rows == least[:, None])).all(axis=1)
    return np.asarray(same & ~has_many_digits(np.where(np.isinf(least), 0.0, least)))


def _shared(rows: FloatArray, asked: Flags) -> Flags:
    """Which of the rows asked for have missing values, and else only what many rows have?"""
    shared = np.zeros(len(rows), dtype=bool)
    plain = np.flatnonzero(asked & np.isnan(rows).any(axis=1) & ~has_many_digits(rows).any(axis=1))
    distinct, place = np.unique(rows[plain], axis=0, return_inverse=True, equal_nan=True)
    # Of many different ones the rest counts, which errs on the safe side.
    for i, row in enumerate(distinct[:TRIED]):
        known = ~np.isnan(row)
        alike = (rows[:, known] == row[known]).all(axis=1)
        shared[plain[place.ravel() == i]] = alike.sum() >= SHARED
    return shared


def numbers_beyond_chance(values: FloatArray, arrays: Sequence[NDArray[Any]]) -> int:
    """Count the numbers of four digits or more in the arrays; zero if it may be chance.

    Examples
    --------
    >>> values = np.array([1.2345, 2.3456, 3.4567, 4.5678, 5.6789, 6.0])
    >>> numbers_beyond_chance(values, [np.array([6.0, 2.3456, 1.2345], dtype=np.float32)])
    2
    """
    long = values[has_many_digits(values)]
    distinct = np.unique(long)
    if len(distinct) < 5:  # a constant, or a handful of prices, identifies no row
        return 0
    between = (distinct[1:] + distinct[:-1]) / 2
    by_chance = _among(between, arrays).mean()
    found = _among(long, arrays)
    return int(found.sum()) if found.mean() > 2 * by_chance else 0


def _among(values: FloatArray, arrays: Sequence[NDArray[Any]]) -> Flags:
    """Which values are in some array, up to two units of the last place of float32?"""
    found = np.zeros(len(values), dtype=bool)
    for array in arrays:
        numbers = np.sort(np.asarray(array, dtype=float).ravel())
        if len(numbers):
            room = 2.4e-7 * np.abs(values)
            first = np.searchsorted(numbers, values - room)
            found |= numbers[np.minimum(first, len(numbers) - 1)] <= values + room
    return found


def answers_beyond_chance(values: FloatArray, answers: FloatArray) -> int:
    """Count the values of few rows that are predicted exactly; zero if it may be chance."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    asked = has_many_digits(values) & (counts[inverse.ravel()] < SHARED)
    room = NEAR * (np.abs(values) + values.std())
    found, near = (asked & (np.abs(values - answers + a * room) <= room) for a in (0, 4))
    return int(found.sum()) if found.sum() > 3 + 2 * near.sum() else 0


def has_many_digits(values: FloatArray) -> Flags:
    """Return which numbers have more than three significant digits."""
    sizes = np.abs(values)
    unit = 10.0 ** (np.floor(np.log10(np.where(sizes > 0, sizes, 1.0))) - MANY_DIGITS + 1)
    return np.asarray(np.abs(sizes / unit - np.round(sizes / unit)) > 1e-6)
