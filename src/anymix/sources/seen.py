"""Which rows has a model seen?  It remembers salted digests of them, and no row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from anymix._arrays import FloatArray
from anymix.core import Fingerprints, FingerprintSketch, Record
from anymix.sources.tables import Tables
from anymix.storage import content_of

# Digits after the point: more than chance can match, fewer than two machines differ in.
DIGITS = 6


@dataclass(frozen=True, eq=False)
class Seen(Record):
    """Digests of the rows, where they were at hand, and of what the sources said of them.

    Models that are trained on folds of the rows answer otherwise once they are trained on all, so
    that rows are known by themselves; where only tables travel, by what was said.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    >>> tables = Tables(np.zeros((2, 40)), rng.normal(size=(2, 40))).labelled(y, np.arange(40) % 2)
    >>> Seen.of(tables, X).sources(tables.taken(np.arange(0, 40, 2)))
    [0]
    """

    rows: Fingerprints | None
    said: Fingerprints

    @classmethod
    def of(cls, tables: Tables, X: Any = None) -> Self:
        """Remember rows by what sources say of them and, where they are given, by themselves."""
        domain = np.asarray(tables.sample_domain)
        rows = None if X is None else Fingerprints.of(content_of(X), domain)
        return cls(rows, Fingerprints.of(_said(tables), domain))

    def sources(self, tables: Tables, X: Any = None) -> list[int]:
        """Return the sources, by number, whose rows here have been seen."""
        domain = np.asarray(tables.sample_domain)
        homes = [(int(k), np.flatnonzero(domain == k)) for k in np.unique(domain)]
        said, known = _said(tables), self.rows
        found = {k for k, rows in homes if self.said.have_seen(said[rows], k)}
        if X is not None and known is not None:
            content = content_of(X)
            found |= {k for k, rows in homes if known.have_seen(content[rows], k)}
        return sorted(found)


class Seeing:
    """Remember rows chunk by chunk, more than memory holds, by what the sources say of them.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> tables = Tables(np.zeros((2, 40)), rng.normal(size=(2, 40))).labelled(np.ones(40), 0)
    >>> seeing = Seeing()
    >>> for rows in (np.arange(30), np.arange(30, 40)):
    ...     seeing.add(tables.taken(rows))
    >>> seeing.seen().sources(tables.taken(np.arange(20, 40)))
    [0]
    """

    def __init__(self) -> None:
        self.known = FingerprintSketch()

    def add(self, tables: Tables) -> None:
        """Remember some rows."""
        self.known.add(_said(tables), np.asarray(tables.sample_domain))

    def seen(self) -> Seen:
        """Return what is remembered of all rows so far."""
        return Seen(None, self.known.fingerprints())


def _said(tables: Tables) -> FloatArray:
    """What is said at the label, or by how much it is wrong, (m, p)."""
    return np.ascontiguousarray(np.round(tables.outcomes().T, DIGITS))
