"""Score new rows as held-out rows were scored: by densities learned without one of the folds.

Held-out row i has the score s_t(x_i), where t is its fold and s_t was learned without it.  A new
row gets a random fold t, with the folds' shares of the held-out rows, and the score s_t(x).  If it
comes from source k, both scores have the same distribution, mean_t of that of s_t at source k.
The densities in use were learned from all rows and score new rows otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils import _safe_indexing

from anymix._arrays import FloatArray, IntArray, n_rows
from anymix.sources.evaluation import log_reference, masses_of
from anymix.sources.model_source import Source
from anymix.sources.tables import Novelty

# Folds are kept until they hold so many rows in all, and so many of each source: a comparison with
# further rows has hardly more power, and each fold is as large as the densities of a model.
ENOUGH_ROWS, ENOUGH_OF_SOURCE = 500, 200


class FoldDensities(NamedTuple):
    """The densities of the sources and the classifier, if any, learned without one fold."""

    densities: tuple[Any, ...]
    router: Any = None

    def of(self, sources: Sequence[Source]) -> list[Source]:
        """Return the sources with these densities in place of their own."""
        pairs = zip(sources, self.densities, strict=True)
        return [replace(source, density=density) for source, density in pairs]


@dataclass(frozen=True, eq=False)
class FoldScores:
    """Some held-out rows and the densities of the folds that scored them.

    Attributes
    ----------
    learned : tuple of FoldDensities
        One for each fold that was kept.
    rows : array (m,)
        Positions of the held-out rows in the tables of the fit.
    fold : array (m,)
        Which entry of `learned` scored each row.
    novelty : array (m,)
        How strange each row is, ranked among the other rows; zero where no density says.
    """

    learned: tuple[FoldDensities, ...]
    rows: IntArray
    fold: IntArray
    novelty: FloatArray

    @classmethod
    def of(
        cls,
        learned: Mapping[int, FoldDensities],
        fold: IntArray,
        domain: IntArray,
        novel_masses: FloatArray | None,
    ) -> Self | None:
        """Keep as many folds as are needed; None if none was learned.

        fold and domain (m,) are those of all rows; `novel_masses` (p, m) are their held-out
        log-densities, NaN where they are not known.
        """
        lacking = np.zeros((1, fold.size)) if novel_masses is None else novel_masses
        unknown = np.asarray(np.isnan(lacking).any(axis=0))
        whole = [t for t in sorted(learned) if not unknown[fold == t].any()]
        if not whole:
            return None
        for n in range(1, len(whole) + 1):
            rows = np.flatnonzero(np.isin(fold, whole[:n]))
            sizes = np.bincount(domain[rows], minlength=int(domain.max()) + 1)
            if rows.size >= ENOUGH_ROWS and sizes.min() >= ENOUGH_OF_SOURCE:
                break
        if sizes.min() < 2:
            return None
        novelty = np.zeros(rows.size)
        if novel_masses is not None:
            known = np.flatnonzero(~unknown)
            novelty = Novelty.of_each(novel_masses[:, known], domain[known])
            novelty = novelty[np.searchsorted(known, rows)]
        kept = tuple(learned[t] for t in whole[:n])
        if novel_masses is None:  # a classifier of sources alone
            nothing = (None,) * sizes.size
            kept = tuple(FoldDensities(nothing, each.router) for each in kept)
        return cls(kept, rows, np.searchsorted(whole, fold[rows]), novelty)

    def masses(
        self, sources: Sequence[Source], X: Any, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray | None]:
        """Return log-responsibilities at new rows, and log-densities, if any: (p, n) each."""
        n, p = n_rows(X), len(sources)
        shares = np.bincount(self.fold, minlength=len(self.learned)) / self.fold.size
        fold = rng.choice(len(self.learned), n, p=shares)
        found, novel = np.empty((p, n)), np.empty((p, n))
        bare = None in self.learned[0].densities
        for t, learned in enumerate(self.learned):
            some = np.flatnonzero(fold == t)
            if not some.size:
                continue
            rows, own = _safe_indexing(X, some), learned.of(sources)
            if not bare:
                novel[:, some] = masses_of(own, rows)
            routed = learned.router is not None
            found[:, some] = masses_of(own, rows, learned.router) if routed else novel[:, some]
            novel[:, some] += log_reference(own, rows)
        return found, None if bare else novel
