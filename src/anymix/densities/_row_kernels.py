"""Gaussian kernels over rows of mixed columns: centres of rows, for a reference that all share.

    K(x) = Σ_j w_j Π_c N(x_c; m_jc, v_j s_c^2),    c the columns of numbers that x has

A column that holds a few numbers alone, such as codes or pixels, is drawn as one of them: the one
that is nearest.  Its share under a kernel is the normal mass that is nearer to it than to another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp, ndtr

from anymix._arrays import FloatArray
from anymix.densities._base import LARGEST, check_weights, refuse_unless
from anymix.densities.centres import share

LEAST_VARIANCE = 1e-3  # in units of the columns' own
MOST_ROWS = 4000  # of a domain that are clustered: more of them move a centre but little
MOST_CENTRES = 100  # of a domain
MOST_KERNELS = 50_000  # that a stranger may write
CHUNK = 2**21  # pairs of rows and kernels held at a time
LOG_TINY = -700.0  # log of a normal mass that is zero in floating point


@dataclass(frozen=True, eq=False)
class RowKernels:
    """Kernels in columns that are divided by `scales`: means (k, d), variances (k,), weights (k,).

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(100, 1))
    >>> found = RowKernels.of(rows, np.zeros(1), np.ones(1), np.random.RandomState(0))
    >>> found.means.shape, round(float(found.weights.sum()), 9)
    ((9, 1), 1.0)
    """

    means: FloatArray
    variances: FloatArray
    weights: FloatArray

    @classmethod
    def of(
        cls, rows: FloatArray, medians: FloatArray, scales: FloatArray, rng: np.random.RandomState
    ) -> RowKernels:
        """Cluster rows (n, d) of numbers, gaps filled by medians; the means are in their units."""
        if len(rows) > MOST_ROWS:
            rows = rows[rng.choice(len(rows), MOST_ROWS, replace=False)]
        z = np.where(np.isnan(rows), 0.0, (rows - medians) / scales)
        n_centres = min(MOST_CENTRES, max(1, len(np.unique(z, axis=0)) // 10))
        found = share(z, np.ones(len(z)), n_centres, rng)
        variances = np.maximum(found.variances, LEAST_VARIANCE)
        return cls(found.centres * scales + medians, variances, found.weights)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        names = ("means", "variances", "weights")
        return {name: getattr(self, name).tolist() for name in names}

    @classmethod
    def from_dict(cls, data: Any, d: int) -> RowKernels:
        """Return what `to_dict` wrote for d columns, or say in a ValueError what is wrong."""
        names = {"means", "variances", "weights"}
        sound = isinstance(data, Mapping) and set(data) == names
        refuse_unless(sound, f"must have centres with {sorted(names)}")
        k = len(data["weights"]) if isinstance(data["weights"], list) else 0
        refuse_unless(0 < k <= MOST_KERNELS, f"must have 1 to {MOST_KERNELS} centres")
        means, variances, weights = (
            _array(data[name]) for name in ("means", "variances", "weights")
        )
        shaped = means.shape == (k, d) and variances.shape == weights.shape == (k,)
        refuse_unless(shaped, "has centres of other columns or numbers than it lists")
        refuse_unless(variances.min() > 1e-12, "has centres with a variance of zero")
        return cls(means, variances, check_weights(weights))


def _array(given: Any) -> FloatArray:
    try:
        found = np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError("has centres with what is not a number") from error
    refuse_unless(np.all(np.abs(found) < LARGEST), "has centres with what is not a number")
    return found


@dataclass(frozen=True, eq=False)
class PooledKernels:
    """The kernels of all sites in the columns of numbers, with `grids` of those that have few.

    means, deviations (k, d), weights (k,); grids[c] are the values of column c, or None.
    """

    means: FloatArray
    deviations: FloatArray
    weights: FloatArray
    grids: tuple[FloatArray | None, ...]

    @property
    def free(self) -> Any:
        """Columns without a grid, (d,) bool."""
        return np.array([grid is None for grid in self.grids], dtype=bool)

    def sample(self, n: int, rng: np.random.RandomState) -> FloatArray:
        """Draw rows without gaps, (n, d)."""
        j = rng.choice(len(self.weights), n, p=self.weights)
        drawn = self.means[j] + self.deviations[j] * rng.standard_normal((n, self.means.shape[1]))
        for c, grid in enumerate(self.grids):
            if grid is not None:
                drawn[:, c] = grid[np.searchsorted(_edges(grid), drawn[:, c])]
        return np.asarray(drawn)

    def log_density(self, rows: FloatArray) -> FloatArray:
        """log K(x) over the columns that each row has, (n,)."""
        size = max(1, CHUNK // len(self.weights))
        tables = [None if g is None else self._log_masses(c, g) for c, g in enumerate(self.grids)]
        parts = [self._log_density(rows[a : a + size], tables) for a in range(0, len(rows), size)]
        return np.concatenate([*parts, np.empty(0)])

    def _log_density(self, rows: FloatArray, tables: list[FloatArray | None]) -> FloatArray:
        logs = np.log(self.weights) + self._log_normals(rows[:, self.free])
        for c, (grid, table) in enumerate(zip(self.grids, tables, strict=True)):
            if grid is not None and table is not None:
                x = rows[:, c]
                place = np.minimum(np.searchsorted(grid, x), len(grid) - 1)
                # The last two rows of the table: a number off the grid, and a gap.
                place = np.where(grid[place] == x, place, len(grid))
                logs += table[np.where(np.isnan(x), len(grid) + 1, place)]
        return np.asarray(logsumexp(logs, axis=1))

    def _log_normals(self, x: FloatArray) -> FloatArray:
        """Σ_c log N(x_c; m_jc, s_jc^2) over the columns that are there, as products, (n, k)."""
        middle = self.weights @ self.means[:, self.free]
        m, s = self.means[:, self.free] - middle, self.deviations[:, self.free]
        there = (~np.isnan(x)).astype(np.float64)
        known = np.where(there > 0, x - middle, 0.0)
        constant = m**2 / s**2 + np.log(2 * np.pi * s**2)
        squares = known**2 @ (s**-2).T - 2 * known @ (m / s**2).T + there @ constant.T
        return np.asarray(-squares / 2)

    def _log_masses(self, c: int, grid: FloatArray) -> FloatArray:
        """Log-share of each value of a grid under each kernel, of others, of gaps, (a + 2, k)."""
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
