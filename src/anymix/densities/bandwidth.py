"""Bandwidths of a Gaussian kernel estimate: rules of thumb, and the grid for cross-validation."""

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from anymix._arrays import FloatArray
from anymix.densities.kernel_sums import blocks, log_densities

STEPS_PER_DOUBLING = 5  # of the precision 1/h^2: five chains of squares in place of exponentials
GRID_SIZE = 15
PILOT_ROWS = 256
MAX_EXTENSIONS = 10  # of a grid


def spread(rows: FloatArray, weights: FloatArray) -> float:
    """Root mean square over the features of the weighted standard deviation."""
    return float(np.sqrt(np.mean(column_variances(rows, weights, 0.0))))


def scott(rows: FloatArray, weights: FloatArray) -> float:
    """Scott's rule, spread * n^(-1 / (d + 4)), with n = (sum w)^2 / sum w^2 for weighted rows."""
    n = weights.sum() ** 2 / np.sum(weights**2)
    return spread(rows, weights) * float(n ** (-1 / (rows.shape[1] + 4)))


def silverman(rows: FloatArray, weights: FloatArray) -> float:
    """Silverman's rule, (4 / (d + 2))^(1 / (d + 4)) times Scott's."""
    d = rows.shape[1]
    return float((4 / (d + 2)) ** (1 / (d + 4))) * scott(rows, weights)


def climb(
    score: Callable[[FloatArray], FloatArray], grid: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Extend a geometric grid, largest first, until its best score is not at an end."""
    scores, step, reach = score(grid), grid[1] / grid[0], np.arange(1, len(grid) + 1)
    for _ in range(MAX_EXTENSIONS):
        best = int(np.argmax(scores))
        if 0 < best < len(grid) - 1:
            return grid, scores
        if best:
            more = grid[-1] * step**reach
            grid, scores = np.append(grid, more), np.append(scores, score(more))
        else:
            more = grid[0] / step ** reach[::-1]
            grid, scores = np.append(more, grid), np.append(score(more), scores)
    raise ValueError(
        f"The held-out likelihood is still rising at a bandwidth of {grid[best]:.2g}, as it does "
        "when every row has a near copy; pass bandwidth='scott' or a number."
    )


def pilot_grid(rows: FloatArray, weights: FloatArray, rng: np.random.RandomState) -> FloatArray:
    """Fifteen bandwidths, largest first, in steps of 2^(1/10) about one that suits a few rows.

    The search for that one starts at h^2 equal to about twice the variance, and goes down.
    """
    shuffled = rng.permutation(len(rows))
    n = min(PILOT_ROWS, len(rows) // 2)
    queries, others = shuffled[:n], shuffled[n:]

    def score(tried: FloatArray) -> FloatArray:
        logs = log_densities(rows[queries], rows[others], weights[others], tried)
        return np.average(logs, axis=1, weights=weights[queries])

    tried, scores = climb(score, 2 * spread(rows, weights) * 2.0 ** (-np.arange(12) / 2))
    steps = (GRID_SIZE // 2 - np.arange(GRID_SIZE)) / (2 * STEPS_PER_DOUBLING)
    return np.asarray(tried[np.argmax(scores)] * 2.0**steps)


def merge_repeats(rows: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Distinct rows in the order of their first occurrence, with the sums of their weights."""
    if len(np.unique(rows.sum(axis=1))) == len(rows):  # equal rows have equal sums
        return rows, weights
    plain = np.ascontiguousarray(rows) + 0.0  # makes -0.0 equal to 0.0 in its bytes
    keys = plain.view(np.dtype((np.void, plain.itemsize * plain.shape[1]))).ravel()
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    sums: FloatArray = np.asarray(np.bincount(inverse, weights), dtype=np.float64)
    return rows[first[order]], sums[order]


# Half of the columns have a hundredth of the variance or more in word counts, images and features
# of networks; with money next to ages, or areas next to ratios, they have about 1e-5 of it or less.
LEAST_SHARE = 1e-4
CONSTANT = 1e-12  # a spread of less, as a part of the mean or of the widest one, is rounding

LEAST_SCALE = 1e-100  # of a column: its square is not zero
Scale = ArrayLike | str | None


def spreads(rows: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Weighted standard deviation of each column, (d,); 1 for a constant one."""
    weights = np.ones(len(rows)) if weights is None else weights
    deviations = np.sqrt(column_variances(rows, weights))
    return np.where(deviations > LEAST_SCALE, deviations, 1.0)


def checked_scale(scale: Scale, rows: FloatArray, weights: FloatArray) -> FloatArray | None:
    """Return the divisors of the columns, (d,); None without scaling."""
    if scale is None:
        return None
    if isinstance(scale, str):
        if scale != "shared":
            raise ValueError(f"scale={scale!r} is not known; use 'shared', an array or None.")
        return spreads(rows, weights)
    divisors = np.asarray(scale, dtype=np.float64)
    d = rows.shape[1]
    if divisors.shape != (d,):
        raise ValueError(f"scale has the shape {divisors.shape}; {d} columns need ({d},).")
    if not np.all((divisors >= LEAST_SCALE) & (divisors <= 1 / LEAST_SCALE)):
        raise ValueError("scale must hold positive, finite numbers, one for each column.")
    return divisors


def column_variances(
    rows: FloatArray, weights: FloatArray, constant: float = CONSTANT
) -> FloatArray:
    """Weighted variance of each column, (d,); zero where it is rounding alone."""
    w, parts = weights / weights.sum(), blocks(len(rows))
    mean = rows[0] + sum(w[b] @ (rows[b] - rows[0]) for b in parts)  # exact for equal rows
    variances = np.asarray(sum(w[b] @ (rows[b] - mean) ** 2 for b in parts))
    seen = constant**2 * np.maximum(mean**2, np.max(variances)) if constant else 0.0
    return np.where(variances > seen, variances, 0.0)


def narrow_share(variances: FloatArray) -> float:
    """Share of the variance in the narrower half of the columns; constant ones are left out."""
    varying = np.sort(variances[variances > 0])
    if varying.size < 2:
        return 1.0
    return float((varying[: varying.size // 2] / varying.sum()).sum())


class ScaleWarning(UserWarning):
    """One bandwidth does not suit all columns: `column` is the index of the widest."""

    def __init__(self, message: str, column: int):
        super().__init__(message)
        self.column = column


def warn_of_scales(
    rows: FloatArray, weights: FloatArray, names: ArrayLike | None, stacklevel: int
) -> None:
    """Warn if one bandwidth does not suit all columns, with the same message in all folds."""
    variances = column_variances(rows, weights)
    if narrow_share(variances) >= LEAST_SHARE:
        return
    widest = int(variances.argmax())
    column = widest if names is None else repr(str(np.asarray(names)[widest]))
    message = (
        f"One bandwidth cannot serve columns on such different scales: next to column {column}, "
        "the widest, half of the others hardly count; scale the columns first, alike for all "
        "sources, as make_pipeline(StandardScaler(), model) does."
    )
    warnings.warn(ScaleWarning(message, widest), stacklevel=stacklevel + 1)
