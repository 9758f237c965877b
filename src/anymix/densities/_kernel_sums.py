"""Gaussian kernel sums in log space, for many bandwidths at once.

    log f_h(x) = log sum_j w_j exp(-|x - c_j|^2 / 2h^2) - log sum_j w_j - d log(h sqrt(2 pi))

One matrix product gives the distances of a tile of pairs, and every bandwidth uses it while the
tile is in cache. A tile is reduced to logarithms about its own nearest pairs, so nothing
underflows, and the memory in use does not grow with the number of pairs.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

Array = NDArray[np.float64]
Tile = tuple[slice, slice]
T = TypeVar("T")
R = TypeVar("R")

TILE = 512  # rows and columns: three float32 tiles stay in a core's second-level cache
CHAIN = 3  # exp(2t) = exp(t)^2: each square doubles the rounding of float32
FLOOR = np.float32(-87 / 2 ** (CHAIN - 1))  # the last square stays above the slow subnormal numbers
NARROW = 32  # up to this many features a float64 product costs less than the exponentials
ATOL, RTOL = 1e-4, 1e-6  # accuracy promised for a log-density, in nats


def log_densities(queries: Array, centres: Array, weights: Array, bandwidths: ArrayLike) -> Array:
    """Log-density of each query under each bandwidth, (n_bandwidths, n_queries).

    Products are in float32; the rows whose rounding could exceed 1e-4 nats + 1e-6 relative are
    done again in float64.
    """
    bandwidths = np.atleast_1d(np.asarray(bandwidths, dtype=float))
    shift = weights @ centres / weights.sum()

    def evaluate(points: Array, dtype: type) -> Array:
        sums = _log_kernel_sums(points, centres, weights, bandwidths, shift, dtype)
        sums += _log_constant(bandwidths, centres.shape[1]) - np.log(weights.sum())
        return sums

    if queries.shape[1] <= NARROW:
        return evaluate(queries, np.float64)
    result = evaluate(queries, np.float32)
    reach = _squared_norms(queries, shift) + _squared_norms(centres, shift).max()
    doubtful = _doubtful(result, reach, bandwidths).any(axis=0)
    if doubtful.any():
        result[:, doubtful] = evaluate(queries[doubtful], np.float64)
    return result


def held_out_log_densities(
    rows: Array, weights: Array, bandwidths: ArrayLike, folds: NDArray[np.integer] | None = None
) -> Array:
    """Log-density of each row under the rows of the other folds, (n_bandwidths, n_rows).

    Without folds each row is left out alone. The distance of a pair is computed once and serves
    both of its rows.
    """
    bandwidths = np.atleast_1d(np.asarray(bandwidths, dtype=float))
    shift = weights @ rows / weights.sum()
    outside = weights.sum() - (weights if folds is None else np.bincount(folds, weights)[folds])

    def evaluate(dtype: type) -> Array:
        sums = _log_pair_sums(rows, weights, bandwidths, folds, shift, dtype)
        sums += _log_constant(bandwidths, rows.shape[1]) - np.log(outside)
        return sums

    if rows.shape[1] <= NARROW:
        return evaluate(np.float64)
    result = evaluate(np.float32)
    norms = _squared_norms(rows, shift)
    if _doubtful(result, norms + norms.max(), bandwidths).any():
        return evaluate(np.float64)
    return result


def _log_constant(bandwidths: Array, n_features: int) -> Array:
    """Logarithm of the kernel's height, -d log(h sqrt(2 pi)), as a column."""
    return np.asarray(-n_features * np.log(bandwidths * np.sqrt(2 * np.pi))[:, None])


def _squared_norms(points: Array, shift: Array) -> Array:
    return np.concatenate(
        [np.sum((points[s] - shift) ** 2, axis=1) for s in _slices(0, len(points))]
    )


def _doubtful(logs: Array, reach: Array, bandwidths: Array) -> NDArray[np.bool_]:
    """Where float32 products may break the promise; they err by 2^-24 (|x|^2 + |c|^2) / h^2.

    Twice that is taken, with the largest |c|; what overflows float32 is doubtful too.
    """
    error = 2.0**-23 * reach / bandwidths[:, None] ** 2
    return ~(error <= ATOL + RTOL * np.abs(logs))


def _slices(start: int, stop: int) -> list[slice]:
    return [slice(a, min(a + TILE, stop)) for a in range(start, stop, TILE)]


def _factor(
    points: Array, shift: Array, scale: float, dtype: type, side: str = "left"
) -> NDArray[np.floating]:
    """One of the factors L, R with (L R')_ij = -|x_i - x_j|^2 / 2 scale^2.

    L has the columns (x, -|x|^2 / 2, 1) and R (x, 1, -|x|^2 / 2): the norms ride along in the
    product, which saves two passes over every tile.
    """
    n, d = points.shape
    factor = np.ones((n, d + 2), dtype=dtype)
    for block in _slices(0, n):
        z = (points[block] - shift) / scale
        factor[block, :d] = z
        factor[block, d if side == "left" else d + 1] = np.einsum("ij,ij->i", z, z) / -2
    return factor


def _log_kernel_sums(
    queries: Array, centres: Array, weights: Array, bandwidths: Array, shift: Array, dtype: type
) -> Array:
    """log sum_j w_j exp(-|x_i - c_j|^2 / 2h^2), (n_bandwidths, n_queries)."""
    scale = float(bandwidths.max())
    grid = _Grid((scale / bandwidths) ** 2)
    right = _factor(centres, shift, scale, dtype, "right")
    result = np.full((len(bandwidths), len(queries)), -np.inf)

    def work(blocks: Sequence[slice]) -> None:
        for block in blocks:
            left = _factor(queries[block], shift, scale, dtype)
            for other in _slices(0, len(centres)):
                logs = grid.log_sums(left @ right[other].T, weights[other], axis=1)
                np.logaddexp(result[:, block], logs, out=result[:, block])

    _in_threads(work, _slices(0, len(queries)))
    return result


def _log_pair_sums(
    rows: Array,
    weights: Array,
    bandwidths: Array,
    folds: NDArray[np.integer] | None,
    shift: Array,
    dtype: type,
) -> Array:
    """The same sums for each row over the rows of the other folds, or over all rows but itself."""
    scale = float(bandwidths.max())
    grid = _Grid((scale / bandwidths) ** 2)
    order = np.arange(len(rows)) if folds is None else np.argsort(folds, kind="stable")
    left, right = (_factor(rows[order], shift, scale, dtype, side) for side in ("left", "right"))
    w = weights[order]

    def work(tiles: Sequence[Tile]) -> Array:
        table = np.full((len(bandwidths), len(rows)), -np.inf)
        for a, b in tiles:
            products = left[a] @ right[b].T
            if a == b:
                np.fill_diagonal(products, -1e30)
            else:
                np.logaddexp(table[:, b], grid.log_sums(products, w[a], axis=0), out=table[:, b])
            np.logaddexp(table[:, a], grid.log_sums(products, w[b], axis=1), out=table[:, a])
        return table

    result = np.empty((len(bandwidths), len(rows)))
    result[:, order] = np.logaddexp.reduce(_in_threads(work, _pair_tiles(folds, len(rows))))
    return result


def _pair_tiles(folds: NDArray[np.integer] | None, n_rows: int) -> list[Tile]:
    """Tiles that cover each pair of rows of different folds once; without folds, each pair."""
    if folds is None:
        blocks = _slices(0, n_rows)
        return [(a, b) for i, a in enumerate(blocks) for b in blocks[i:]]
    ends = np.concatenate([[0], np.cumsum(np.bincount(folds))])
    blocks_of = [_slices(a, b) for a, b in pairwise(ends)]
    return [
        (a, b)
        for i, first in enumerate(blocks_of)
        for second in blocks_of[i + 1 :]
        for a in first
        for b in second
    ]


def _in_threads(work: Callable[[Sequence[T]], R], tasks: Sequence[T]) -> list[R]:
    """Share the tasks among the cores, each thread with its own single-threaded products."""
    n_threads = min(effective_n_jobs(-1), len(tasks))
    if n_threads < 2:
        return [work(tasks)]
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(work, [tasks[k::n_threads] for k in range(n_threads)]))


class _Grid:
    """The precisions (scale / h)^2 of the bandwidths, in chains where each doubles the one before.

    In a chain only the first costs an exponential; the others are squares, exp(2t) = exp(t)^2.
    """

    def __init__(self, precisions: Array) -> None:
        self.precisions = precisions[:, None]
        self.chains: list[list[int]] = []
        open_chains: list[list[int]] = []
        for i in np.argsort(precisions):
            for chain in open_chains:
                if np.isclose(precisions[i], 2 * precisions[chain[-1]], rtol=1e-9, atol=0):
                    chain.append(int(i))
                    break
            else:
                self.chains.append([int(i)])
                open_chains.append(self.chains[-1])
            open_chains = [chain for chain in open_chains if len(chain) < CHAIN]

    def log_sums(self, products: NDArray[np.floating], weights: Array, axis: int) -> Array:
        """log sum_j w_j exp(precision * product_ij) over one axis of a tile, about its maximum."""
        peak = products.max(axis=axis, keepdims=True)
        w = weights.astype(np.float32)
        sums = np.empty((len(self.precisions), peak.size))
        with np.errstate(over="ignore"):
            t = np.subtract(products, peak, dtype=products.dtype).astype(np.float32, copy=False)
            for chain in self.chains:
                e = t * np.float32(self.precisions[chain[0], 0])
                np.exp(np.clip(e, FLOOR, 0, out=e), out=e)
                sums[chain[0]] = e @ w if axis else w @ e
                for i in chain[1:]:
                    np.multiply(e, e, out=e)
                    sums[i] = e @ w if axis else w @ e
        return np.asarray(np.log(sums) + self.precisions * peak.ravel())
