"""Are rows that are called new those that z was learned from?  The model folder has their tables.

Rows are compared by what the sources say of them: p log-responsibilities and p outcomes.  A row of
numbers that are drawn has no twin; rows of few values have many by chance, so a match counts if
the row is alone on both sides, or if a source's rows are the same as a whole.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from anymix._arrays import FloatArray
from anymix.core import log_responsibilities
from anymix.sources import Tables

# Digits after the point: more than chance can match, fewer than two machines differ in.
DIGITS = 6
# Above this share of matches the rows of a source count as seen.
SHARE = 0.5


def seen_sources(tables: Tables, model: Any) -> list[str]:
    """Return the sources whose rows in the tables are rows that z was learned from."""
    names = [str(name) for name in model.source_names_]
    return [
        name
        for k, name in enumerate(names)
        if _are_seen(_fingerprints(tables, k), _fingerprints(model.tables_, k))
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
        f"\nThe rows of {', '.join(seen)} are those that z was learned from, so this says no more "
        "than fit did; give rows that fit has not seen."
    )


def _fingerprints(tables: Tables, k: int) -> Counter[bytes]:
    rows = np.asarray(tables.sample_domain) == k
    log_r = log_responsibilities(tables.log_masses[:, rows])
    outcomes = _outcomes(tables)[:, rows]
    # Adding 0 turns -0 into 0, which has other bytes.
    found = np.round(np.concatenate([log_r, outcomes]), DIGITS) + 0.0
    return Counter(row.tobytes() for row in np.ascontiguousarray(found.T))


def _outcomes(tables: Tables) -> FloatArray:
    """What each source gives the label that occurred, or by how much its number is wrong: (p, m).

    That is what sites send, and what whole tables hold, too.
    """
    h, y = tables.predictions, np.asarray(tables.targets)
    return np.asarray(h[:, np.arange(y.size), y] if h.ndim == 3 else h - y)


def _are_seen(new: Counter[bytes], old: Counter[bytes]) -> bool:
    if new == old:
        return True
    alone = sum(count == 1 and old[row] == 1 for row, count in new.items())
    return alone > SHARE * new.total()
