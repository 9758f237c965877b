"""Gaussian kernel sums in log space, for many bandwidths at once.

    log f_h(x) = log Σ_j w_j exp(-|x - c_j|^2 / 2h^2) - log Σ_j w_j - d log(h sqrt(2 pi))

One matrix product gives the distances of a tile of pairs, and every bandwidth uses it while the
tile is in cache; a tile is reduced to logarithms about its own nearest pairs: nothing underflows.

Products round: |x|^2 + |c|^2 - 2 x.c loses what the norms and the distance share. So they start in
float32 and go on to float64 and to plain differences only where the promised accuracy needs it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations, pairwise, product
from threading import Event
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist
from threadpoolctl import ThreadpoolController

from anymix._arrays import FloatArray

Factor = NDArray[np.floating]
Folds = NDArray[np.integer] | None
Tile = tuple[slice, slice]
T = TypeVar("T")
R = TypeVar("R")

ATOL, RTOL = 1e-4, 1e-6  # accuracy promised for a log-density, in nats and relative
# Eight units of rounding: long products of correlated features (images) were seen to lose four.
ROUNDING = {"float32": 2.0**-21, "float64": 2.0**-50, "differences": 0.0}
NEARLY = 20.0  # nats: a kernel that much lower than the highest adds nothing
NARROW = 32  # up to this many features a float64 product costs less than the exponentials
# Bandwidths: no digit of a kernel tells it from 0.  Products of less are denormal in float32, and
# cost ten times as much.
NOT_APART = 1e-18
TILE = 512  # rows and columns: three float32 tiles stay in a core's second-level cache


class Frame:
    """Bandwidths, the largest as the scale, and the shift, the median of about a hundred points.

    `log_heights` is the logarithm of the kernel's height, -d log(h sqrt(2 pi)), as a column.
    """

    def __init__(self, points: FloatArray, bandwidths: ArrayLike):
        self.bandwidths = np.atleast_1d(np.asarray(bandwidths, dtype=np.float64))
        self.scale = self.bandwidths.max()
        self.shift = np.median(points[:: 1 + len(points) // 100], axis=0)
        heights = -len(self.shift) * np.log(self.bandwidths * np.sqrt(2 * np.pi))
        self.log_heights: FloatArray = heights[:, None]

    def norms(self, points: FloatArray) -> FloatArray:
        """Distance of each point from the shift."""
        parts = [np.linalg.norm(points[b] - self.shift, axis=1) for b in blocks(len(points))]
        return np.concatenate(parts)

    def settled(self, points: FloatArray) -> FloatArray:
        """Return the points with coordinates that differ too little from the shift set to it."""
        least = NOT_APART * self.scale
        apart = (points[block] - self.shift for block in blocks(len(points)))
        near = np.concatenate([(np.abs(part) < least) & (part != 0) for part in apart])
        return np.where(near, self.shift, points) if near.any() else points

    def factor(self, points: FloatArray, precision: str, side: str) -> Factor:
        """L = (x, -|x|^2/2, 1) or R = (x, 1, -|x|^2/2), (L R')_ij = -|x_i - x_j|^2 / 2 scale^2."""
        if precision == "differences":
            return points
        n, d = points.shape
        factor = np.ones((n, d + 2), dtype=precision)
        for block in blocks(n):
            z = (points[block] - self.shift) / self.scale
            factor[block, :d] = z
            factor[block, d if side == "left" else d + 1] = np.einsum("ij,ij->i", z, z) / -2
        return factor

    def products(self, left: Factor, right: Factor) -> Factor:
        """-|x_i - c_j|^2 / 2 scale^2 for a tile of pairs; from plain points by differences."""
        if left.shape[1] > len(self.shift):
            return left @ right.T
        return np.asarray(cdist(left, right, "sqeuclidean") / (-2 * self.scale**2))


def log_densities(
    queries: FloatArray, centres: FloatArray, weights: FloatArray, bandwidths: ArrayLike
) -> FloatArray:
    """Log-density of each query under each bandwidth, (n_bandwidths, n_queries)."""
    frame = Frame(centres, bandwidths)
    offset = frame.log_heights - np.log(weights.sum())
    result = np.empty((len(frame.bandwidths), len(queries)))
    norms, largest = frame.norms(queries), frame.norms(centres).max()
    todo = np.arange(len(queries))
    for precision in list(ROUNDING)[queries.shape[1] <= NARROW :]:
        logs = _query_sums(queries[todo], centres, weights, frame, precision) + offset
        result[:, todo] = logs
        error = _rounding(logs, norms[todo], largest, frame, precision)
        todo = todo[~_kept(error, logs).all(axis=0)]
        if not len(todo):
            break
    return result


def held_out_log_densities(
    rows: FloatArray,
    weights: FloatArray,
    bandwidths: ArrayLike,
    folds: Folds = None,
    for_means: bool = False,
) -> FloatArray:
    """Log-density of each row under the rows of the other folds, (n_bandwidths, n_rows).

    Without folds each row is left out alone. With `for_means` the accuracy holds for the weighted
    means only, in which the rounding of single rows averages out.
    """
    frame = Frame(rows, bandwidths)
    w = weights / weights.sum()
    if folds is None:
        others = _sums_of_others(w)
    else:
        others = _sums_of_others(np.asarray(np.bincount(folds, w), dtype=np.float64))[folds]
    norms = frame.norms(rows)
    for precision in list(ROUNDING)[rows.shape[1] <= NARROW :]:
        logs: FloatArray = _pair_sums(rows, w, frame, folds, precision)
        logs += frame.log_heights - np.log(others)
        error = _rounding(logs, norms, norms.max(), frame, precision)
        if for_means and _kept(np.sqrt(error**2 @ w**2), logs @ w).all():
            break
        if _kept(error, logs).all():
            break
    return logs


def _sums_of_others(weights: FloatArray) -> FloatArray:
    """Sum of all weights but each: from both ends, since 1 - w would lose a small rest."""
    before = np.cumsum(np.append(0.0, weights[:-1]))
    after = np.cumsum(np.append(0.0, weights[:0:-1]))[::-1]
    return np.asarray(before + after)


def _rounding(
    logs: FloatArray, norms: FloatArray, largest: float, frame: Frame, precision: str
) -> FloatArray:
    """Rounding of products, at most about eps (|x|^2 + |c|^2) / h^2, (n_bandwidths, n_points).

    Only centres c about as near as the nearest count, and f itself says how near that can be:
    f(x) <= height exp(-distance^2 / 2h^2).
    """
    squares = frame.bandwidths[:, None] ** 2
    near = np.sqrt(2 * squares * np.maximum(frame.log_heights - logs + NEARLY, 0))
    reach = norms**2 + np.minimum(largest, norms + near) ** 2
    return np.asarray(ROUNDING[precision] * reach / squares)


def _kept(error: FloatArray, logs: FloatArray) -> NDArray[np.bool_]:
    """Whether errors are within the promise; not so for what overflowed into NaN."""
    return np.asarray(error <= ATOL + RTOL * np.abs(logs))


def blocks(stop: int, start: int = 0, size: int = TILE) -> list[slice]:
    """Cut a range of rows into blocks: blocks(5, size=3) is [slice(0, 3), slice(3, 5)]."""
    return [slice(a, min(a + size, stop)) for a in range(start, stop, size)]


def _query_sums(
    queries: FloatArray, centres: FloatArray, weights: FloatArray, frame: Frame, precision: str
) -> FloatArray:
    """log Σ_j w_j exp(-|x_i - c_j|^2 / 2h^2), (n_bandwidths, n_queries)."""
    chains = Chains(frame.bandwidths, weights)
    right = frame.factor(centres, precision, "right")
    result = np.full((len(frame.bandwidths), len(queries)), -np.inf)

    def work(parts: Iterable[slice]) -> None:
        for block in parts:
            left = frame.factor(queries[block], precision, "left")
            for other in blocks(len(centres)):
                products = frame.products(left, right[other])
                _add(result, block, chains.log_sums(products, weights[other], axis=1))

    size = min(TILE, max(64, len(queries) // 4))  # a few queries, too, go to all cores
    _in_threads(work, blocks(len(queries), size=size))
    return result


def _pair_sums(
    rows: FloatArray, weights: FloatArray, frame: Frame, folds: Folds, precision: str
) -> FloatArray:
    """The same sums for each row over the rows of the other folds, or over all rows but itself."""
    chains = Chains(frame.bandwidths, weights)
    order = np.arange(len(rows)) if folds is None else np.argsort(folds, kind="stable")
    left, right = (frame.factor(rows, precision, side)[order] for side in ("left", "right"))
    w = weights[order]

    def work(tiles: Iterable[Tile]) -> FloatArray:
        sums = np.full((len(frame.bandwidths), len(rows)), -np.inf)
        for a, b in tiles:
            products = frame.products(left[a], right[b])
            if a == b:
                np.fill_diagonal(products, -1e30)
            else:
                _add(sums, b, chains.log_sums(products, w[a], axis=0))
            _add(sums, a, chains.log_sums(products, w[b], axis=1))
        return sums

    # Tiles that cover each pair of rows of different folds once; without folds, each pair.
    if folds is None:
        cut = blocks(len(rows))
        tiles = [(a, b) for i, a in enumerate(cut) for b in cut[i:]]
    else:
        parts = [blocks(b, start=a) for a, b in pairwise(np.cumsum([0, *np.bincount(folds)]))]
        tiles = [pair for one, other in combinations(parts, 2) for pair in product(one, other)]
    result = np.empty((len(frame.bandwidths), len(rows)))
    result[:, order] = np.logaddexp.reduce(_in_threads(work, tiles))
    return result


def _add(sums: FloatArray, block: slice, logs: FloatArray) -> None:
    np.logaddexp(sums[:, block], logs, out=sums[:, block])


def _in_threads(work: Callable[[Iterable[T]], R], tasks: Sequence[T]) -> list[R]:
    """Share the tasks among as many threads as BLAS may use; after Ctrl-C they stop, too."""
    if len(tasks) < 2:
        return [work(tasks)]
    blas = ThreadpoolController().select(user_api="blas")
    allowed = max((library.num_threads for library in blas.lib_controllers), default=1)
    n_threads = min(allowed, len(tasks))
    stopped = Event()
    with blas.limit(limits=1), ThreadPoolExecutor(n_threads) as pool:
        try:
            shares = [_until(stopped, tasks[k::n_threads]) for k in range(n_threads)]
            return list(pool.map(work, shares))
        finally:
            stopped.set()


def _until(stopped: Event, tasks: Sequence[T]) -> Iterator[T]:
    for task in tasks:
        if stopped.is_set():
            return
        yield task


LOG_TINY = -87.0  # about the logarithm of the least float32 that is not subnormal, and so slow
SHARE = 2e-5  # of a sum that terms below the floor may make up


class Chains:
    """Precisions (h_max / h)^2 of the bandwidths, in chains where each doubles the one before.

    In a chain only the first costs an exponential; the others are squares, exp(2t) = exp(t)^2.
    Exponents stop at a floor, above which no square is subnormal; chains are as long, up to three,
    as no weight lifts the floor into sight.
    """

    def __init__(self, bandwidths: FloatArray, weights: FloatArray):
        seen = np.log(TILE * weights.max() / weights.min() / SHARE)
        length = next((n for n in (3, 2) if LOG_TINY / 2 ** (n - 1) + seen <= 0), 1)
        self.floor = LOG_TINY / 2 ** (length - 1)
        self.precisions = (bandwidths.max() / bandwidths) ** 2
        self.chains: list[list[int]] = []
        for i in np.argsort(self.precisions, kind="stable"):
            for chain in self.chains:
                double = 2 * self.precisions[chain[-1]]
                doubled = np.isclose(self.precisions[i], double, rtol=1e-9, atol=0)
                if doubled and len(chain) < length:
                    chain.append(int(i))
                    break
            else:
                self.chains.append([int(i)])

    def log_sums(
        self, products: NDArray[np.floating], weights: FloatArray, axis: int
    ) -> FloatArray:
        """log Σ_j w_j exp(precision * product_ij) over one axis of a tile, (n_bandwidths, n)."""
        peak = products.max(axis=axis, keepdims=True)
        w = weights.astype(np.float32)
        sums = np.empty((len(self.precisions), peak.size))
        # "invalid": all terms lie in (0, 1], but some BLAS raise the flag on lanes they discard.
        with np.errstate(over="ignore", invalid="ignore"):
            t = np.subtract(products, peak).astype(np.float32, copy=False)
            e = np.empty_like(t)
            for chain in self.chains:
                np.multiply(t, np.float32(self.precisions[chain[0]]), out=e)
                np.exp(np.clip(e, np.float32(self.floor), 0, out=e), out=e)
                for i in chain:
                    if i != chain[0]:
                        np.multiply(e, e, out=e)
                    sums[i] = e @ w if axis else w @ e
        return np.asarray(np.log(sums) + self.precisions[:, None] * peak.ravel())
