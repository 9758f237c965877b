"""How long a search for z may take: no problem, however odd, keeps a solver busy for ever."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import NamedTuple

import numpy as np

from anymix._arrays import FloatArray


class Budget(NamedTuple):
    """The most that `solve` may spend: evaluations, in passes over all points, and seconds.

    Far more than honest problems need: 300 sources take some thousand passes and a minute.

    Examples
    --------
    >>> Budget(seconds=60.0)
    Budget(evaluations=100000.0, seconds=60.0)
    """

    evaluations: float = 1e5
    seconds: float = 1800.0


class SpentError(Exception):
    """The budget is used up; `solve` answers with the best z so far."""


class Meter:
    """Counts what is spent on all parts of a search, and keeps the best z that was asked about.

    `value` says how good z is, from f = L(z) − b and z; what was asked of all points, and not of a
    part of them, comes first.
    """

    def __init__(
        self,
        budget: Budget | None = None,
        value: Callable[[FloatArray, FloatArray], float] | None = None,
    ):
        self.budget = budget or Budget()
        self.value = value
        self.spent = 0.0
        self.end = monotonic() + self.budget.seconds
        self.best: FloatArray | None = None
        self._rank = (np.inf, np.inf)

    def pay(self, share: float = 1.0) -> None:
        """Spend a pass, or a share of one; the first is always granted, so that there is a best."""
        if self.spent and (self.spent >= self.budget.evaluations or monotonic() >= self.end):
            raise SpentError
        self.spent += share

    def note(self, f: FloatArray, z: FloatArray, share: float = 1.0) -> None:
        """Remember z if it is the best so far."""
        if self.value is not None:
            rank = (-share, self.value(f, z))
            if rank < self._rank:
                self._rank, self.best = rank, z
