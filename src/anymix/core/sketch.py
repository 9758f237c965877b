"""Digests of more rows than memory holds: the smallest numbers of all rows, chunk by chunk."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix._hashing import digest, mixed
from anymix.core.records import MOST_DIGESTS, Fingerprints


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

    def add(self, rows: NDArray[Any]) -> None:
        """Remember rows (n, q) of numbers; the salt comes from the first ones."""
        if not len(rows):
            return
        self.n_rows += len(rows)
        self.salt = self.salt or f"{int(np.bitwise_xor.reduce(np.unique(mixed(rows)))):016x}"
        numbers = mixed(rows, int(self.salt, 16))
        if self._numbers is not None:
            # Most rows of later chunks are far above what is kept, and need not be sorted.
            few = numbers <= self._numbers[-1] if self._full else slice(None)
            numbers = np.concatenate([self._numbers, numbers[few]])
            rows = np.concatenate([self._rows, rows[few]])
        kept, places = np.unique(numbers, return_index=True)
        self._numbers, self._rows = kept[:MOST_DIGESTS], rows[places[:MOST_DIGESTS]]

    def join(self, other: FingerprintSketch) -> None:
        """Remember what another remembers, which has the same salt."""
        if other._rows is not None:
            self.add(other._rows)
            self.n_rows += other.n_rows - len(other._rows)

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
        return Fingerprints(self.salt, self.n_rows, int(different), limit, digests)
