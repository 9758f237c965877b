"""Are rows that are called new those that z was learned from?  The model folder has their tables.

Rows are compared by what the sources say of them: p log-responsibilities and p outcomes.  A row of
numbers that are drawn has no twin; of rows of few values many have one by chance, as large a share
as of the rows that z was learned from among themselves.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from anymix._arrays import FloatArray
from anymix.core import log_responsibilities
from anymix.exchange import is_rounded, round_outcomes, round_responsibilities
from anymix.sources import Tables
from anymix.storage import Twins, more_than_chance

# Digits after the point: more than chance can match, fewer than two machines differ in.
DIGITS = 6


def seen_sources(tables: Tables, model: Any) -> list[str]:
    """Return the sources whose rows in the tables are rows that z was learned from."""
    names = [str(name) for name in model.source_names_]
    return [
        name
        for k, name in enumerate(names)
        if _are_seen(*_alike(_said_of(tables, k), _said_of(model.tables_, k)))
    ]


def note_on(seen: list[str]) -> str:
    """Say which rows are not new, and what to do; nothing if all are.

    Examples
    --------
    >>> note_on([])
    ''
    """
    if not seen:
        return ""
    return (
        f"\nThe rows of {', '.join(seen)} are those that z was learned from, or some of them, so "
        "this flatters; give rows that fit has not seen."
    )


class _Said(NamedTuple):
    """What the sources say of some rows: log-responsibilities and outcomes, (p, m) each."""

    log_r: FloatArray
    outcomes: FloatArray
    loss: str

    def rounded(self, known: bool) -> _Said:
        """Round both, or, where they are known to be rounded, the outcomes again, as may be."""
        log_r = self.log_r if known else round_responsibilities(self.log_r)
        return self._replace(log_r=log_r, outcomes=round_outcomes(*self[1:]))

    def fingerprints(self) -> Counter[bytes]:
        # Adding 0 turns -0 into 0, which has other bytes.
        found = np.round(np.concatenate(self[:2]), DIGITS) + 0.0
        return Counter(row.tobytes() for row in np.ascontiguousarray(found.T))


def _said_of(tables: Tables, k: int) -> _Said:
    rows = np.asarray(tables.sample_domain) == k
    log_r = log_responsibilities(tables.log_masses[:, rows])
    loss = "cross_entropy" if tables.predictions.ndim == 3 else "squared"
    return _Said(log_r, tables.outcomes()[:, rows], loss)


def _alike(new: _Said, old: _Said) -> tuple[Counter[bytes], Counter[bytes]]:
    """Fingerprints of both, the exact one rounded if the other comes from a site's file."""
    rounded = [is_rounded(*one[1:]) for one in (new, old)]
    if any(rounded):
        new, old = (one.rounded(known) for one, known in zip((new, old), rounded, strict=True))
    return new.fingerprints(), old.fingerprints()


def _are_seen(new: Counter[bytes], old: Counter[bytes]) -> bool:
    if new == old:
        return True
    n = max(new.total(), 1)
    known = sum(count for row, count in new.items() if row in old) / n
    twins = sum(count for count in old.values() if count > 1)
    return more_than_chance(known, n, Twins(old.total(), twins))
