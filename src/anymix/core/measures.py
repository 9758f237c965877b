"""The measures P_k that losses are averaged with, and the sums over points that they share.

pooled   P = D, the masses themselves: the paper's sums over x, every point counts for every source
own      P_k(i) = 1/n_k on source k's own points, zero elsewhere: needs no shared conditional

A measure walks over blocks of points, so that no temporary is larger than a block, and adds up

    average    L_k  = Σ_i P_k(i) f(i)
    cross      G_kj = Σ_i P_k(i) w(i) T_j(i)
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from anymix.core.simplex import FloatArray

# A block of every table together stays in the outer cache; measured flat from 2 to 16 MB.
BLOCK_NUMBERS = 500_000


def _steps(start: int, stop: int, p: int) -> Iterator[slice]:
    size = max(256, BLOCK_NUMBERS // p)
    for first in range(start, stop, size):
        yield slice(first, min(first + size, stop))


class DenseMeasure:
    """P as a full (p, m) table; every block speaks to all sources."""

    def __init__(self, weights: FloatArray):
        self.weights = weights

    def blocks(self) -> Iterator[slice]:
        """Yield slices of the points."""
        p, m = self.weights.shape
        yield from _steps(0, m, p)

    def add_average(self, block: slice, values: FloatArray, out: FloatArray) -> None:
        """out_k += Σ_{i in block} P_k(i) values(i)."""
        out += self.weights[:, block] @ values

    def add_cross(
        self, block: slice, scale: FloatArray, table: FloatArray, out: FloatArray
    ) -> None:
        """out_kj += Σ_{i in block} P_k(i) scale(i) table_j(i)."""
        out += (self.weights[:, block] * scale) @ table.T

    def mix(self, block: slice, multipliers: FloatArray) -> FloatArray:
        """Σ_k λ_k P_k(i) on a block."""
        return multipliers @ self.weights[:, block]

    def rows(self) -> FloatArray:
        """Return P as a (p, m) table."""
        return self.weights

    def sample(self, n: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """Choose n points at random, and the heaviest of each source lest one have none."""
        chosen = rng.choice(self.weights.shape[1], size=n, replace=False)
        return np.union1d(chosen, self.weights.argmax(axis=1))

    def restricted(self, points: NDArray[np.intp]) -> DenseMeasure:
        """Return the measure on some of the points, each row with its old sum."""
        part = self.weights[:, points]
        return DenseMeasure(part * (self.weights.sum(axis=1) / part.sum(axis=1))[:, None])

    def take(self, k: int) -> tuple[NDArray[np.intp], FloatArray]:
        """Return the points that source k gives weight to, and the weights."""
        points = np.flatnonzero(self.weights[k])
        return points, self.weights[k, points]


class OwnMeasure:
    """Points sorted by source: source k owns the points bounds[k]:bounds[k+1]."""

    def __init__(self, weights: FloatArray, bounds: NDArray[np.intp]):
        self.weights = weights
        self.bounds = bounds

    def blocks(self) -> Iterator[slice]:
        """Yield slices of the points, none across two sources."""
        p = self.bounds.size - 1
        for start, stop in zip(self.bounds[:-1], self.bounds[1:], strict=True):
            yield from _steps(int(start), int(stop), p)

    def _owner(self, block: slice) -> int:
        return int(np.searchsorted(self.bounds, block.start, side="right")) - 1

    def add_average(self, block: slice, values: FloatArray, out: FloatArray) -> None:
        """out_k += Σ_{i in block} P_k(i) values(i), k the owner of the block."""
        out[self._owner(block)] += self.weights[block] @ values

    def add_cross(
        self, block: slice, scale: FloatArray, table: FloatArray, out: FloatArray
    ) -> None:
        """out_kj += Σ_{i in block} P_k(i) scale(i) table_j(i), k the owner of the block."""
        out[self._owner(block)] += table @ (self.weights[block] * scale)

    def mix(self, block: slice, multipliers: FloatArray) -> FloatArray:
        """λ_k P_k(i) on a block, k its owner."""
        return np.asarray(multipliers[self._owner(block)] * self.weights[block])

    def rows(self) -> FloatArray:
        """Return P as a (p, m) table."""
        P = np.zeros((self.bounds.size - 1, self.weights.size))
        P[np.repeat(np.arange(P.shape[0]), np.diff(self.bounds)), np.arange(P.shape[1])] = (
            self.weights
        )
        return P

    def sample(self, n: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """Choose about n points, from each source its share and at least one with weight."""
        share = n / self.weights.size
        chosen = [
            start
            + rng.choice(stop - start, size=max(1, int(share * (stop - start))), replace=False)
            for start, stop in zip(self.bounds[:-1], self.bounds[1:], strict=True)
        ]
        heaviest = [
            start + int(self.weights[start:stop].argmax())
            for start, stop in zip(self.bounds[:-1], self.bounds[1:], strict=True)
        ]
        return np.union1d(np.concatenate(chosen), heaviest)

    def restricted(self, points: NDArray[np.intp]) -> OwnMeasure:
        """Return the measure on some of the points (sorted), each source with weights of sum 1."""
        bounds = np.searchsorted(points, self.bounds)
        weights = self.weights[points]
        total = np.add.reduceat(weights, bounds[:-1])
        return OwnMeasure(weights / np.repeat(total, np.diff(bounds)), bounds)

    def take(self, k: int) -> tuple[NDArray[np.intp], FloatArray]:
        """Return the points that source k owns, and their weights."""
        points = np.arange(self.bounds[k], self.bounds[k + 1])
        return points, self.weights[points]


Measure = DenseMeasure | OwnMeasure
