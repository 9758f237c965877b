"""Kernel densities on k-means centres in place of rows, each with a spherical Gaussian.

f(x) = Σ_j w_j N(x; c_j, (h^2 + s_j^2) I),    s_j^2 the variance within the cluster
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.special import logsumexp, ndtr
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances_argmin

from anymix._arrays import FloatArray
from anymix.densities.bandwidth import merge_repeats
from anymix.densities.density import (
    LARGEST,
    Arrays,
    GraphBuilder,
    check_arrays,
    check_cost,
    check_shapes,
    check_weights,
    refuse_unless,
)
from anymix.densities.kernel_sums import Frame, blocks, log_densities

MIN_ROWS = 5  # distinct ones: a centre that stood for one row, met ten times, would be that row
CHUNK = 2**20  # pairs held at a time
LEAST_WEIGHT = 1e-30  # of the largest; float32 sums cannot tell it from zero
# Operations per row and kernel besides the distance: kernels of one width share their tables.
ONE_WIDTH, OWN_WIDTH = 100, 1000


class Kernels(NamedTuple):
    """Centres c_j (k, d), weights w_j (k,) that sum to 1, and variances s_j^2 per feature (k,)."""

    centres: FloatArray
    weights: FloatArray
    variances: FloatArray

    def log_densities(self, queries: FloatArray, bandwidths: ArrayLike) -> FloatArray:
        """Log-density of each query under each bandwidth, (n_bandwidths, n_queries)."""
        if not self.variances.any():
            return log_densities(queries, self.centres, self.weights, bandwidths)
        frame = Frame(self.centres, bandwidths)
        size = max(1, CHUNK // len(self.weights))
        right = frame.factor(self.centres, "float64", "right")
        logs = np.empty((len(frame.bandwidths), len(queries)))
        for block in blocks(len(queries), size=size):
            left = frame.factor(queries[block], "float64", "left")
            halves = frame.products(left, right) * frame.scale**2
            for i, h in enumerate(frame.bandwidths):
                variances = h**2 + self.variances
                peaks = np.log(self.weights) - queries.shape[1] / 2 * np.log(2 * np.pi * variances)
                logs[i, block] = logsumexp(peaks + halves / variances, axis=1)
        return logs

    def reveals(self, least: int | None) -> str:
        """Describe what centres reveal; each stands for at least `least` distinct rows."""
        n = len(self.weights)
        if not self.variances.any():
            return f"{n} training rows, exactly as they are."
        means = "1 centre, the mean" if n == 1 else f"{n} centres, each the mean"
        if least is None:
            return f"{means} of rows; of how many is not known."
        return f"{means} of {least} distinct rows or more."

    def log_density_graph(
        self, graph: GraphBuilder, bandwidth: float, rows: str | None = None
    ) -> str:
        """log Σ_j exp(a_j + x'c_j/v_j − |x|²/2v_j), x and c about the centres' mean, (n, 1)."""
        centre = self.weights @ self.centres
        c, v = self.centres - centre, bandwidth**2 + self.variances
        x = graph.add("Sub", rows or graph.rows, graph.constant(centre))
        left = graph.add("Concat", x, graph.over("ReduceSumSquare", x, 1), axis=1)
        factor = np.concatenate([c / v[:, None], -0.5 / v[:, None]], axis=1).T
        peak = np.log(self.weights) - c.shape[1] / 2 * np.log(2 * np.pi * v)
        height = peak - (c**2).sum(axis=1) / (2 * v)
        product = graph.add("Gemm", left, graph.constant(factor), graph.constant(height))
        return graph.log_sum_exp(product)


def cluster(
    rows: FloatArray, weights: FloatArray, n_centres: int, rng: np.random.RandomState
) -> Kernels:
    """Cluster the rows with k-means; clusters of fewer than five distinct rows join others."""
    if n_centres < 1:
        raise ValueError(f"centres must be at least 1; got {n_centres}.")
    distinct = merge_repeats(rows, weights)[0]
    n_centres = min(n_centres, len(distinct))
    means = KMeans(n_centres, random_state=rng).fit(rows, sample_weight=weights)
    # Equal rows are in one cluster.
    counted = means.labels_ if len(distinct) == len(rows) else means.predict(distinct)
    counts = np.bincount(counted, minlength=n_centres)
    large, labels = np.flatnonzero(counts >= MIN_ROWS), means.labels_.copy()
    small = ~np.isin(labels, large)
    if not len(large):
        labels[:] = 0
    elif small.any():
        nearest = pairwise_distances_argmin(rows[small], means.cluster_centers_[large])
        labels[small] = large[nearest]
    labels = np.unique(labels, return_inverse=True)[1]
    mass = np.bincount(labels, weights)
    member = csr_array((weights / mass[labels], (labels, np.arange(len(rows)))))
    centres = member @ rows
    variances = member @ np.mean((rows - centres[labels]) ** 2, axis=1)
    return Kernels(centres, mass / mass.sum(), variances)


def sound_kernels(arrays: Arrays, n_features: int) -> tuple[Kernels, float]:
    """Return kernels and bandwidth from untrusted arrays, after checking them."""
    check_arrays(arrays, {"centres", "weights", "variances", "bandwidth"})
    n, variances = len(weights := check_weights(arrays["weights"])), arrays["variances"]
    check_shapes(arrays, centres=(n, n_features), variances=(n,), bandwidth=(1,))
    per_kernel = 2 * n_features + (OWN_WIDTH if variances.any() else ONE_WIDTH)
    check_cost(n * per_kernel, f"{n} kernels in {n_features} dimensions")
    bandwidth = float(arrays["bandwidth"][0])
    refuse_unless(variances.min() >= 0 and bandwidth > 1e-50, "has a bandwidth of zero or less")
    weighty = weights.min() > LEAST_WEIGHT / 2 * weights.max()
    refuse_unless(weighty, "has kernels with hardly any weight; leave them out")
    centres = Frame(arrays["centres"], bandwidth).settled(arrays["centres"])
    return Kernels(centres, weights, variances), bandwidth


MOST_KERNELS = 50_000  # of an untrusted file
KERNEL_FIELDS = {"means": "centres", "variances": "variances", "weights": "weights"}  # in JSON
LOG_TINY = -700.0  # log of a normal mass that is zero in floating point


def kernels_to_dict(kernels: Kernels) -> dict[str, Any]:
    """Return plain values that JSON can hold."""
    return {field: getattr(kernels, name).tolist() for field, name in KERNEL_FIELDS.items()}


def kernels_from_dict(data: Any, d: int) -> Kernels:
    """Read the output of `kernels_to_dict` for d columns; a ValueError says what is invalid."""
    sound = isinstance(data, Mapping) and set(data) == set(KERNEL_FIELDS)
    refuse_unless(sound, f"must have centres with {sorted(KERNEL_FIELDS)}")
    k = len(data["weights"]) if isinstance(data["weights"], list) else 0
    refuse_unless(0 < k <= MOST_KERNELS, f"must have 1 to {MOST_KERNELS} centres")
    try:
        means, variances, weights = (np.array(data[f], dtype=np.float64) for f in KERNEL_FIELDS)
    except (TypeError, ValueError) as error:
        raise ValueError("has centres with non-numeric values") from error
    for array in (means, variances, weights):
        refuse_unless(np.all(np.abs(array) < LARGEST), "has centres with non-numeric values")
    shaped = means.shape == (k, d) and variances.shape == weights.shape == (k,)
    refuse_unless(shaped, "has centres of other columns or numbers than it lists")
    refuse_unless(variances.min() > 1e-12, "has centres with a variance of zero")
    return Kernels(means, check_weights(weights), variances)


class PooledKernels:
    """The kernels of all sites; grids[c] are the values of a column with few values, or None."""

    def __init__(
        self,
        means: FloatArray,
        deviations: FloatArray,
        weights: FloatArray,
        grids: Sequence[FloatArray | None],
    ):
        self.means, self.deviations, self.weights, self.grids = means, deviations, weights, grids

    def sample(self, n: int, rng: np.random.RandomState) -> FloatArray:
        """Draw rows without missing values, (n, d)."""
        j = rng.choice(len(self.weights), n, p=self.weights)
        drawn = self.means[j] + self.deviations[j] * rng.standard_normal((n, self.means.shape[1]))
        for c, grid in enumerate(self.grids):
            if grid is not None:
                drawn[:, c] = grid[np.searchsorted(_edges(grid), drawn[:, c])]
        return np.asarray(drawn)

    def log_density(self, rows: FloatArray) -> FloatArray:
        """log K(x) over the columns that each row has, (n,)."""
        free = np.array([grid is None for grid in self.grids], dtype=bool)
        tables = [None if g is None else self._log_masses(c, g) for c, g in enumerate(self.grids)]
        result = np.empty(len(rows))
        for block in blocks(len(rows), size=max(1, CHUNK // len(self.weights))):
            logs = np.log(self.weights) + self._log_normals(rows[block][:, free], free)
            for c, (grid, table) in enumerate(zip(self.grids, tables, strict=True)):
                if grid is not None and table is not None:
                    x = rows[block, c]
                    place = np.minimum(np.searchsorted(grid, x), len(grid) - 1)
                    # The last two rows of the table: a number off the grid, and a missing value.
                    place = np.where(grid[place] == x, place, len(grid))
                    place[np.isnan(x)] = len(grid) + 1
                    logs += table[place]
            result[block] = logsumexp(logs, axis=1)
        return result

    def _log_normals(self, x: FloatArray, free: NDArray[np.bool_]) -> FloatArray:
        """Σ_c log N(x_c; m_jc, s_jc^2) over the columns that are there, as products, (n, k)."""
        middle = self.weights @ self.means[:, free]
        m, s = self.means[:, free] - middle, self.deviations[:, free]
        there = (~np.isnan(x)).astype(np.float64)
        offset = np.where(there > 0, x - middle, 0.0)
        constant = m**2 / s**2 + np.log(2 * np.pi * s**2)
        squares = offset**2 @ (s**-2).T - 2 * offset @ (m / s**2).T + there @ constant.T
        return np.asarray(-squares / 2)

    def _log_masses(self, c: int, grid: FloatArray) -> FloatArray:
        """Log-share of each grid value, of others and of missing, by kernel, (a + 2, k)."""
        edges = np.concatenate([[-np.inf], _edges(grid), [np.inf]])[:, None]
        z = (edges - self.means[:, c]) / self.deviations[:, c]
        # Of the upper tail, where it is the smaller one: differences near 1 lose their digits.
        upper = z[:-1] > 0
        a, b = np.where(upper, -z[1:], z[:-1]), np.where(upper, -z[:-1], z[1:])
        with np.errstate(divide="ignore"):
            logs = np.maximum(np.log(ndtr(b) - ndtr(a)), LOG_TINY)
        k = len(self.weights)
        return np.concatenate([logs, np.full((1, k), np.log(1e-9)), np.zeros((1, k))])


def _edges(grid: FloatArray) -> FloatArray:
    """Return the middles between neighbours of a grid."""
    return np.asarray(grid[:-1] + np.diff(grid) / 2)
