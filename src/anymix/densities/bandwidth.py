"""Bandwidths of a Gaussian kernel estimate: rules of thumb, and the grid for cross-validation."""

from collections.abc import Callable

import numpy as np

from anymix._arrays import FloatArray
from anymix.densities._kernel_sums import blocks, log_densities

STEPS_PER_DOUBLING = 5  # of the precision 1/h^2: five chains of squares in place of exponentials
GRID_SIZE = 15
PILOT_ROWS = 256
MAX_EXTENSIONS = 10  # of a grid


def spread(rows: FloatArray, weights: FloatArray) -> float:
    """Root mean square over the features of the weighted standard deviation."""
    w, parts = weights / weights.sum(), blocks(len(rows))
    mean = rows[0] + sum(w[b] @ (rows[b] - rows[0]) for b in parts)  # exact for equal rows
    variance = sum(w[b] @ np.mean((rows[b] - mean) ** 2, axis=1) for b in parts)
    return float(np.sqrt(variance))


def scott(rows: FloatArray, weights: FloatArray) -> float:
    """Scott's rule, spread * n^(-1 / (d + 4)), with n = (sum w)^2 / sum w^2 for weighted rows.

    Examples
    --------
    >>> rows = np.array([[-1.0], [1.0]] * 16)
    >>> print(scott(rows, np.ones(32)))
    0.5
    """
    n = weights.sum() ** 2 / np.sum(weights**2)
    return spread(rows, weights) * float(n ** (-1 / (rows.shape[1] + 4)))


def silverman(rows: FloatArray, weights: FloatArray) -> float:
    """Silverman's rule, (4 / (d + 2))^(1 / (d + 4)) times Scott's.

    Examples
    --------
    >>> rows = np.array([[-1.0, 0.0], [1.0, 0.0]])
    >>> bool(np.isclose(silverman(rows, np.ones(2)), scott(rows, np.ones(2))))
    True
    """
    d = rows.shape[1]
    return float((4 / (d + 2)) ** (1 / (d + 4))) * scott(rows, weights)


def grid_around(bandwidth: float) -> FloatArray:
    """Fifteen bandwidths about one, in steps of 2^(1/10), largest first.

    Examples
    --------
    >>> grid_around(1.0)[[0, 6, 7, 8, 14]].round(2)
    array([1.62, 1.07, 1.  , 0.93, 0.62])
    """
    return bandwidth * 2.0 ** ((GRID_SIZE // 2 - np.arange(GRID_SIZE)) / (2 * STEPS_PER_DOUBLING))


def wide_grid(bandwidth: float) -> FloatArray:
    """Thirty bandwidths from one downwards, in steps of 2^(1/4).

    Examples
    --------
    >>> wide_grid(1.0)[[0, 4, -1]].round(4)
    array([1.    , 0.5   , 0.0066])
    """
    return bandwidth * 2.0 ** (-np.arange(30) / 4)


def climb(
    score: Callable[[FloatArray], FloatArray], grid: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Extend a geometric grid, largest first, to the side of its best score until that is inside.

    Examples
    --------
    >>> tried, scores = climb(lambda h: -np.log(h) ** 2, np.array([16.0, 8.0, 4.0]))
    >>> tried
    array([16. ,  8. ,  4. ,  2. ,  1. ,  0.5])
    """
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


def pilot_bandwidth(rows: FloatArray, weights: FloatArray, rng: np.random.RandomState) -> float:
    """Bandwidth that suits a few rows, scored under all the others, to within a factor sqrt(2).

    At the best bandwidth d h^2 is a mean of squared distances in which near rows count more, so
    h^2 is at most twice the variance: the search begins there and goes down.
    """
    shuffled = rng.permutation(len(rows))
    n = min(PILOT_ROWS, len(rows) // 2)
    queries, others = shuffled[:n], shuffled[n:]

    def score(tried: FloatArray) -> FloatArray:
        logs = log_densities(rows[queries], rows[others], weights[others], tried)
        return np.average(logs, axis=1, weights=weights[queries])

    tried, scores = climb(score, 2 * spread(rows, weights) * 2.0 ** (-np.arange(12) / 2))
    return float(tried[np.argmax(scores)])


def merge_repeats(rows: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Distinct rows in the order of their first occurrence, with the sums of their weights.

    A row and its copy in different folds would make the smallest bandwidth look best.

    Examples
    --------
    >>> rows, weights = merge_repeats(np.array([[2.0], [1.0], [2.0]]), np.ones(3))
    >>> rows.tolist(), weights.tolist()
    ([[2.0], [1.0]], [2.0, 1.0])
    """
    if len(np.unique(rows.sum(axis=1))) == len(rows):  # equal rows have equal sums
        return rows, weights
    plain = np.ascontiguousarray(rows) + 0.0  # makes -0.0 equal to 0.0 in its bytes
    keys = plain.view(np.dtype((np.void, plain.itemsize * plain.shape[1]))).ravel()
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    sums: FloatArray = np.asarray(np.bincount(inverse, weights), dtype=np.float64)
    return rows[first[order]], sums[order]
