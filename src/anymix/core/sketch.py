"""Digests of more rows than memory holds: the smallest numbers of all rows, chunk by chunk."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix.core.records import MOST_DIGESTS, Fingerprints, count_twins, counts_by_group
from anymix.storage import digest, mixed


class FingerprintSketch:
    """Find the `Fingerprints` of rows that come in chunks.

    Of so many rows that not all have a digest, how many are different is estimated: k random
    numbers of which the largest is u come from about (k − 1)/u, u being a share of all numbers.

    Examples
    --------
    >>> rows, sketch = np.random.default_rng(0).normal(size=(10_000, 2)), FingerprintSketch()
    >>> sketch.add(rows[:3000]), sketch.add(rows[3000:])
    (None, None)
    >>> found = sketch.fingerprints()
    >>> found.have_seen(rows[5000:]), found.have_seen(rows + 1.0), len(found.digests)
    (True, False, 4096)
    """

    def __init__(self) -> None:
        self.salt = ""
        self.n_rows = 0
        self._numbers: Any = None
        self._rows: Any = None
        # How often each row that is kept occurs in each group, (kept, groups): all of its kind are
        # counted, as what is kept only ever loses its largest numbers.
        self._counts: Any = None
        self._grouped = False

    def add(self, rows: NDArray[Any], group: NDArray[np.intp] | None = None) -> None:
        """Remember rows (n, q) of numbers; the salt comes from the first ones.

        group (n,) numbers what each row belongs to, such as its source.
        """
        if not len(rows):
            return
        self.n_rows += len(rows)
        self.salt = self.salt or f"{int(np.bitwise_xor.reduce(np.unique(mixed(rows)))):016x}"
        self._grouped = group is not None
        numbers = mixed(rows, int(self.salt, 16))
        if self._numbers is not None and self._full:
            # Most rows of later chunks are far above what is kept, and need not be sorted.
            few = numbers <= self._numbers[-1]
            numbers, rows, group = numbers[few], rows[few], None if group is None else group[few]
        kept, first, where = np.unique(numbers, return_index=True, return_inverse=True)
        self._keep(kept, rows[first], counts_by_group(where, group, kept.size))

    def _keep(self, numbers: NDArray[Any], rows: NDArray[Any], counts: NDArray[np.intp]) -> None:
        """Add different rows, so many of each in each group, to what is kept."""
        if self._numbers is not None:
            wide = max(counts.shape[1], self._counts.shape[1])
            both = [np.pad(c, ((0, 0), (0, wide - c.shape[1]))) for c in (self._counts, counts)]
            numbers = np.concatenate([self._numbers, numbers])
            rows, counts = np.concatenate([self._rows, rows]), np.concatenate(both)
        kept, first, where = np.unique(numbers, return_index=True, return_inverse=True)
        total = np.zeros((kept.size, counts.shape[1]), dtype=np.intp)
        np.add.at(total, where, counts)
        self._numbers, self._rows = kept[:MOST_DIGESTS], rows[first[:MOST_DIGESTS]]
        self._counts = total[:MOST_DIGESTS]

    def join(self, other: FingerprintSketch) -> None:
        """Remember what another remembers, which has the same salt."""
        if other._rows is not None:
            self._keep(other._numbers, other._rows, other._counts)
            self.n_rows += other.n_rows
            self._grouped |= other._grouped

    @property
    def _full(self) -> bool:
        return bool(self._numbers.size == MOST_DIGESTS)

    def fingerprints(self) -> Fingerprints:
        """Return what is known of all rows so far."""
        if self._numbers is None:
            raise ValueError("there are no rows to remember.")
        limit, different = int(self._numbers[-1]), self._numbers.size
        if self._full:
            different = min(self.n_rows, round((different - 1) * 2.0**64 / max(limit, 1)))
        digests = tuple(sorted(digest(row, self.salt) for row in self._rows))
        twins = count_twins(self._counts, self._grouped)
        return Fingerprints(self.salt, self.n_rows, int(different), limit, digests, twins)
