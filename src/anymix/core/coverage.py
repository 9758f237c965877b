"""How much sets cover, and how large they are: each row judged by what never saw it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from anymix._arrays import FloatArray, IntArray
from anymix.core.error_scale import least_count, nth_largest
from anymix.core.records import Record


def limits_without(scores: FloatArray, domain: IntArray, p: int, alpha: float) -> FloatArray:
    """The largest score that source k accepts at row i, if row i itself is left out: (p, m).

    >>> limits_without(np.array([1.0, 2.0, 3.0, 9.0]), np.array([0, 0, 0, 1]), 2, 0.4)
    array([[ 3.,  3.,  2.,  3.],
           [inf, inf, inf, inf]])
    """
    found = np.empty((p, scores.size))
    for k in range(p):
        own = np.flatnonzero(domain == k)
        known = scores[own]
        least = least_count(known.size, alpha)
        found[k] = nth_largest(known, least) if least else np.inf
        least = least_count(known.size - 1, alpha)
        if not least:
            found[k, own] = np.inf
            continue
        first, second = nth_largest(known, least), nth_largest(known, least + 1)
        found[k, own] = np.where(known >= first, second, first)
    return found


@dataclass(frozen=True, eq=False)
class Coverage(Record):
    """What sets or intervals promise on each source, what that rests on, and what they measure.

    Attributes
    ----------
    alpha : float
        The share of rows that may be missed.
    rows : array (p,)
        Rows that the scores come from.
    coverage, size : array (p,)
        On these rows, each judged by the others and by the part that never saw it: the share that
        is covered, and the mean number of labels or width; NaN where nobody can know it.
    ground : "exact", "asymptotic" or "measured"
        What "at most α is missed" stands on.  Exact holds at every number of rows; asymptotic as
        rows become many; of what is only measured nothing is claimed.
    most : float
        The most that can be missed at this number of rows; 1 if nothing is proven.
    reason : str
        Why nothing more is claimed.
    of : "labels" or "numbers"
    sentence : str
        All of this in words; made from the numbers, never read.

    Examples
    --------
    >>> print(Coverage(0.1, np.array([50.0, 80.0]), np.ones(2), np.ones(2), "exact", 0.1))
    Sets miss at most 10 % of the rows of each of the 2 sources, and so of every mixture of them.
    """

    alpha: float
    rows: FloatArray
    coverage: FloatArray
    size: FloatArray
    ground: str
    most: float
    reason: str = ""
    of: str = "labels"
    sentence: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sentence", self._sentence())

    def __str__(self) -> str:
        return self.sentence

    def _sentence(self) -> str:
        what = "Sets" if self.of == "labels" else "Intervals"
        share, p = f"{100 * self.alpha:.3g} %", self.rows.size
        where = f"the rows of each of the {p} sources, and so of every mixture of them"
        if self.ground == "exact":
            return f"{what} miss at most {share} of {where}."
        if self.ground == "asymptotic":
            few = f", and at most {100 * self.most:.3g} % at any number of rows"
            said = few if self.most < 1 else ""
            return (
                f"{what} miss at most {share} of {where} as rows become many{said}: {self.reason}."
            )
        return (
            f"{what} are made to miss at most {share} of {where}; that is measured and not proven: "
            f"{self.reason}."
        )
