"""What a site says, looked at before anything is learned from it.

A site may be broken, or lie.  What can be known without its rows is checked: that an answer has the
names and shapes of those of the other sites, is finite, says nothing of rows of other sources, is
not beyond what the loss allows, and that a site's rows do not change between rounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from anymix._arrays import FloatArray
from anymix.core import Loss, get_loss
from anymix.engines.sites import SiteError
from anymix.sources import PROBABILITY_FLOOR, Arrays, Query

# Sums of many rows may miss a bound by rounding.
SLACK = 1e-9
# What no rows give: of sources without rows at a site, and of theorems that nobody asked for.
MAY_BE_INFINITE = {
    "count": {"lightest"},
    "evidence": {"least", "largest", "own_least", "own_largest"},
    "theorems": {"lowest", "largest", "floor", "disagreement"},
}
LOSSES = {"evaluate": "losses", "baseline": "own_losses"}


def fail(site: str, what: str) -> NoReturn:
    """Name the site."""
    raise SiteError(f"site {site!r}", f"{what}; nothing was learned from this round")


class Checks:
    """Remembers what each site has said of itself; a call looks at all answers to one question.

    `names` are the sites, each with the rows of the source of that name, in order.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)
        self.rows: dict[str, int] = {}

    def __call__(self, question: Query, site: str, answer: Any) -> None:
        """Raise `SiteError` for what cannot be."""
        arrays = self._arrays(question, site, answer)
        if question.name == "count":
            self._check_rows(site, arrays)
        if question.name == "evaluate":
            self._check_sums(question, site, arrays)
        name = LOSSES.get(question.name)
        if name is not None:
            _check_losses(question, site, arrays[name])

    @staticmethod
    def _arrays(question: Query, site: str, answer: Any) -> Arrays:
        """An answer is arrays of finite numbers, by name."""
        told = answer.values() if isinstance(answer, dict) else [None]
        if not all(isinstance(array, np.ndarray) for array in told):
            fail(site, f"sent no arrays when it was asked for {question.name}")
        may = MAY_BE_INFINITE.get(question.name, set())
        for name, array in answer.items():
            if np.isnan(array).any() or (name not in may and not np.isfinite(array).all()):
                fail(site, f"sent {name} that are not finite when it was asked for {question.name}")
        return answer

    def _check_rows(self, site: str, arrays: Mapping[str, Any]) -> None:
        """A site's rows are all of its own source, and as many as they were."""
        rows = arrays["rows"].sum(axis=0) if "rows" in arrays else np.zeros(0)
        if rows.shape != (len(self.names),):
            fail(site, f"counts rows of {rows.size} sources where there are {len(self.names)}")
        n, own = int(rows.sum()), int(rows[self.names.index(site)])
        if n != own or n < 1:
            fail(site, f"says that it has {n} rows, {own} of its own source")
        if self.rows.setdefault(site, n) != n:
            fail(site, f"has {n} rows where it had {self.rows[site]} before")

    @staticmethod
    def _check_sums(question: Query, site: str, arrays: Mapping[str, Any]) -> None:
        s, p = question.arrays["Z"].shape
        expected = {"losses": (s,), "slopes": (s, p)}
        if "multipliers" in question.arrays:
            expected["hessians"] = (s, p, p)
        if set(arrays) != set(expected):
            fail(site, f"sent {', '.join(sorted(arrays))} where {', '.join(expected)} are expected")
        for name, shape in expected.items():
            if arrays[name].shape != shape:
                fail(site, f"sent {name} of shape {arrays[name].shape} where {shape} is expected")


def _check_losses(question: Query, site: str, losses: FloatArray) -> None:
    """0 ≤ L_k ≤ M, where the loss has such bounds."""
    low, high = bounds(get_loss(question.options["loss"]))
    if np.min(losses) < low - SLACK:
        fail(site, f"sent a loss of {np.min(losses):.3g}, below the least one, {low:.3g}")
    if np.max(losses) > high * (1 + SLACK):
        fail(site, f"sent a loss of {np.max(losses):.3g}, above the largest one, {high:.3g}")


def bounds(loss: Loss) -> tuple[float, float]:
    """The least and the largest loss that a mean over rows can have.

    >>> bounds(get_loss("squared")), bounds(get_loss("brier"))
    ((0.0, inf), (0.0, 2.0))
    """
    one, other = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    if loss.takes == "vector":
        return float(loss.value(one, one)[0]), float(loss.value(one, other)[0])
    if loss.takes == "label":
        h = np.array([1.0, PROBABILITY_FLOOR])
        best, worst = loss.value(h, h)
        return float(best), float(worst)
    right = np.array([1.0, 2.0])
    return (0.0 if not loss.value(right, right).any() else -np.inf), np.inf
