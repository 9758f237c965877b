"""What a record of a model may lack: the density that was chosen, digests of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from anymix.core import restored
from anymix.estimators import DensityChoice
from anymix.exchange import is_text
from anymix.sources import Seen

MOST_CHOICES, LONGEST_NAME = 20, 60
HEX = frozenset("0123456789abcdef")


def read_seen(told: Any) -> Seen:
    """Digests are words of sixteen digits, and the numbers beside them are of so many rows."""
    found = restored(Seen, told)
    for one in filter(None, (found.rows, found.said)):
        sound = 0 < one.n_different <= one.n_rows and 0 <= one.limit < 2**64
        sound &= all(0 <= twins.n_twins <= twins.n_rows for twins in one.twins)
        words = (one.salt, *one.digests)
        if not sound or not all(len(word) == 16 and {*word} <= HEX for word in words):
            raise ValueError("the digests of rows are not sound")
    return found


def read_choice(told: Any) -> DensityChoice:
    """What was tried has short names that differ, and losses; the chosen one is among it."""
    found = restored(DensityChoice, told)
    names, losses = found.names, np.asarray(found.losses)
    sound = 0 < len(names) <= MOST_CHOICES and len({*names}) == len(names)
    if not sound or not all(is_text(name, LONGEST_NAME) for name in names):
        raise ValueError("the densities that were tried have no sound names")
    if losses.shape != (len(names),) or not np.isfinite(losses).all():
        raise ValueError("the densities that were tried do not have a loss each")
    if found.chosen not in names or found.novelty not in (None, *names) or found.n_rows < 1:
        raise ValueError("the density that was chosen is not one of those that were tried")
    return found
