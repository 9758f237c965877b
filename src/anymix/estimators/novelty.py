"""How far is a point from all sources?  Judged by each source's own held-out points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from anymix.core.simplex import FloatArray
from anymix.sources import Tables


@dataclass(frozen=True)
class Novelty:
    """Sorted log-densities of each source at its own held-out points."""

    own: tuple[FloatArray, ...]

    @classmethod
    def from_tables(cls, tables: Tables) -> Self:
        """Remember what is usual at home."""
        domain = tables.sample_domain
        return cls(tuple(np.sort(row[domain == k]) for k, row in enumerate(tables.log_masses)))

    def score(self, log_masses: FloatArray) -> FloatArray:
        """1 − max_k P(log D_k(x') ≤ log D_k(x)) for x' drawn at home: free of units of density."""
        usual = [
            (np.searchsorted(own, row, side="right") + 1) / (own.size + 1)
            for own, row in zip(self.own, log_masses, strict=True)
        ]
        return np.asarray(1.0 - np.minimum(np.max(usual, axis=0), 1.0))
