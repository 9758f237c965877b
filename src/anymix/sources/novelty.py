"""How far is a point from all sources?  A score in [0, 1] that no unit of density can move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from anymix._arrays import FloatArray
from anymix.sources.tables import Tables


def tail_probabilities(scores: FloatArray, own: FloatArray) -> FloatArray:
    """How often would a source's own row score as low?  `own` (n_k,) are scores of held-out rows.

    p(s) = (1 + #{own ≤ s}) / (n_k + 1), and below the lowest own score the exponential tail
    p(s) = exp((s − min own) / b) / (n_k + 1), with b the mean distance of the lower half from the
    median: it orders the points that lie beyond all rows.

    Examples
    --------
    >>> tail_probabilities(np.array([-9.0, 1.0, 9.0]), np.array([0.0, 1.0, 2.0])).round(3)
    array([0.  , 0.75, 1.  ])
    """
    own = np.sort(own)
    n = len(own)
    p = (1.0 + np.searchsorted(own, scores, side="right")) / (n + 1.0)
    lowest, below = own[0], scores < own[0]
    if np.isfinite(lowest):
        spread = float(np.mean(np.median(own) - own[: (n + 1) // 2]))
        with np.errstate(divide="ignore"):
            depth = np.divide(lowest - scores[below], spread)
        p[below] = np.exp(-depth) / (n + 1.0)
    return np.asarray(p)


@dataclass(frozen=True)
class Novelty:
    """What is usual at home: log-densities of each source at its own held-out points, sorted."""

    own: tuple[FloatArray, ...]

    @classmethod
    def from_tables(cls, tables: Tables) -> Self:
        """Remember what is usual at home."""
        domain = tables.sample_domain
        return cls(tuple(np.sort(row[domain == k]) for k, row in enumerate(tables.log_masses)))

    def is_of(self, tables: Tables) -> bool:
        """Whether it is what these tables say is usual, or comes from other densities.

        >>> tables = Tables(np.array([[2.0, 1.0]]), np.zeros((1, 2))).labelled(np.zeros(2), 0)
        >>> Novelty.from_tables(tables).is_of(tables)
        True
        """
        if not tables.has_densities:
            return False
        known = zip(self.own, Novelty.from_tables(tables).own, strict=True)
        return all(np.array_equal(one, other) for one, other in known)

    def score(self, log_masses: FloatArray) -> FloatArray:
        """1 − max_k p_k(x), p_k the share of source k's own rows that are no likelier than x."""
        best = np.zeros(log_masses.shape[1])
        for own, row in zip(self.own, log_masses, strict=True):
            np.maximum(best, tail_probabilities(row, own), out=best)
        return 1.0 - best
