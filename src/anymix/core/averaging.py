"""The measures P_k that losses are averaged with, and the sums over points that they share.

pooled   P = D, the masses themselves: the paper's sums over x, every point counts for every source
own      P_k(i) = 1/n_k on source k's own points, zero elsewhere: needs no shared conditional

A measure walks over blocks of points, so that no temporary is larger than a block, and adds up

    average    L_k  = Σ_i P_k(i) f(i)
    cross      G_kj = Σ_i P_k(i) w(i) (B_j(i) − h(i) D_j(i))

for one z or, with a stack of s rows in the place of each row of points, for s of them at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray

# A block of a table, and what is made of it, stays in the inner caches; from a quarter of this to
# four times it the time is the same within a fifth.  Of a stack there are more arrays at a time.
BLOCK_NUMBERS, STACK_NUMBERS, LEAST_BLOCK = 120_000, 20_000, 256


def mean_and_error(
    values: FloatArray, share: FloatArray, n_rows: float | None = None
) -> tuple[FloatArray, FloatArray]:
    """Σ w x of values (..., n) by shares w of sum 1, and √(n/(n−1) Σ w² (x − x̄)²), its error.

    n = 1/Σ w² rows of equal weight, unless it is given.
    """
    n = 1.0 / float(share @ share) if n_rows is None else n_rows
    mean = np.asarray(values @ share)
    squares = ((share * (values - mean[..., None])) ** 2).sum(axis=-1)
    return mean, np.asarray(np.sqrt(n / max(n - 1.0, 1.0) * squares))


def _spread(start: int, stop: int, n: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Choose n of the points start..stop−1: one at random from each of n equal stretches."""
    edges = np.linspace(start, stop, n + 1)
    return (edges[:-1] + rng.random(n) * np.diff(edges)).astype(np.intp)


class _Blocked:
    """P of p sources at m points: what its two kinds share."""

    shape: tuple[int, ...]

    def blocks(self, stack: int = 1) -> Iterator[slice]:
        """Yield slices of the points; they are shorter if more z are evaluated at once."""
        p, m = self.shape
        numbers = BLOCK_NUMBERS // p if stack == 1 else STACK_NUMBERS // (p * stack)
        size = max(LEAST_BLOCK, numbers)
        for first in range(0, m, size):
            yield slice(first, min(first + size, m))


class DenseMeasure(_Blocked):
    """P as a full (p, m) table."""

    def __init__(self, weights: FloatArray):
        self.weights, self.shape = weights, weights.shape

    def add_average(self, block: slice, values: FloatArray, out: FloatArray) -> None:
        """out_sk += Σ_{i in block} P_k(i) values_s(i)."""
        out += values @ self.weights[:, block].T

    def add_cross(
        self,
        block: slice,
        scale: FloatArray,
        h: FloatArray,
        tables: tuple[FloatArray, FloatArray],
        out: FloatArray,
    ) -> None:
        """out_skj += Σ_i P_k(i) scale_s(i) (B_j(i) − h_s(i) D_j(i)); B is ([s, ]p, block)."""
        B, D = tables
        a = h[:, None, :] * D
        np.subtract(B, a, out=a)
        a *= scale[:, None, :]
        out += self.weights[:, block] @ a.transpose(0, 2, 1)

    def mix(self, block: slice, multipliers: FloatArray) -> FloatArray:
        """Σ_k λ_sk P_k(i) on a block, (s, block)."""
        return multipliers @ self.weights[:, block]

    def rows(self) -> FloatArray:
        """Return P as a (p, m) table."""
        return self.weights

    def sample(self, n: float, rng: np.random.Generator | int) -> NDArray[np.intp]:
        """Choose n points evenly, and the heaviest of each source so that none is empty."""
        keep = np.zeros(self.weights.shape[1], dtype=bool)
        keep[_spread(0, keep.size, round(n), np.random.default_rng(rng))] = True
        keep[self.weights.argmax(axis=1)] = True
        return np.flatnonzero(keep)

    def restricted(self, points: NDArray[np.intp]) -> DenseMeasure:
        """Return the measure on some of the points, each row with its old sum."""
        part = self.weights.take(points, axis=1)
        return DenseMeasure(part * (self.weights.sum(axis=1) / part.sum(axis=1))[:, None])

    def take(self, k: int) -> tuple[slice, FloatArray]:
        """Return the points that source k can give weight to, and the weights."""
        return slice(None), self.weights[k]


class OwnMeasure(_Blocked):
    """Points sorted by source: source k owns the points bounds[k]:bounds[k+1].

    With `part` they are a part of all points, in which a source may have none.
    """

    def __init__(self, weights: FloatArray, bounds: NDArray[np.intp], part: bool = False):
        self.weights, self.bounds, self.part = weights, bounds, part
        self.shape = bounds.size - 1, weights.size
        self.owner = np.repeat(np.arange(bounds.size - 1), np.diff(bounds))

    def _parts(self, block: slice) -> Iterator[tuple[int, slice]]:
        """Yield each source with points in a block, and which of the block's points they are."""
        first = int(np.searchsorted(self.bounds, block.start, side="right")) - 1
        last = int(np.searchsorted(self.bounds, block.stop))
        edges = np.clip(self.bounds[first : last + 1] - block.start, 0, None)
        for k, (start, stop) in enumerate(pairwise(edges.tolist()), first):
            yield k, slice(start, stop)

    def add_average(self, block: slice, values: FloatArray, out: FloatArray) -> None:
        """See `DenseMeasure`, as for all that follows."""
        weights = self.weights[block]
        for k, part in self._parts(block):
            out[..., k] += values[..., part] @ weights[part]

    def add_cross(
        self,
        block: slice,
        scale: FloatArray,
        h: FloatArray,
        tables: tuple[FloatArray, FloatArray],
        out: FloatArray,
    ) -> None:
        """See `DenseMeasure`."""
        B, D = tables
        w = self.weights[block] * scale
        wh = w * h
        for k, part in self._parts(block):
            if B.ndim == 2:
                first = w[:, part] @ B[:, part].T
            else:
                first = (B[:, :, part] @ w[:, part, None])[:, :, 0]
            out[:, k] += first - wh[:, part] @ D[:, part].T

    def mix(self, block: slice, multipliers: FloatArray) -> FloatArray:
        """λ_sk P_k(i) on a block, k the owner of the point, (s, block)."""
        return np.asarray(multipliers[..., self.owner[block]] * self.weights[block])

    def rows(self) -> FloatArray:
        """Return P as a (p, m) table."""
        P = np.zeros(self.shape)
        P[self.owner, np.arange(self.weights.size)] = self.weights
        return P

    def sample(self, n: float, rng: np.random.Generator | int) -> NDArray[np.intp]:
        """Choose about n points, from each source its share; only points and seed decide."""
        seed = rng if isinstance(rng, int) else int(rng.integers(2**31))
        share, keep = n / self.weights.size, np.zeros(self.weights.size, dtype=bool)
        for k, (start, stop) in enumerate(pairwise(self.bounds.tolist())):
            if stop == start:
                continue
            # A share of the whole and of a part may differ in the last digit.
            n_k, chance = int(share * (stop - start) + 1e-9), np.random.default_rng([seed, k])
            keep[_spread(start, stop, max(1, n_k), chance)] = True
            keep[start + int(self.weights[start:stop].argmax())] = True
        return np.flatnonzero(keep)

    def restricted(self, points: NDArray[np.intp]) -> OwnMeasure:
        """Return the measure on some of the points (sorted), each source with its old sum."""
        p, owner, weights = self.shape[0], self.owner[points], self.weights[points]
        before = np.bincount(self.owner, self.weights, p)
        after = np.bincount(owner, weights, p)
        scaled = weights * (before / np.where(after > 0, after, 1.0))[owner]
        return OwnMeasure(scaled, np.searchsorted(points, self.bounds))

    def take(self, k: int) -> tuple[slice, FloatArray]:
        """Return the points that source k owns, and their weights."""
        points = slice(int(self.bounds[k]), int(self.bounds[k + 1]))
        return points, self.weights[points]


Measure = DenseMeasure | OwnMeasure
