"""Scores of held-out rows, each by what has not seen it: what sets and intervals are made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray, IntArray
from anymix.core import Conformal, CrossFittedCombination, ErrorScale, errors_at, learn_yardstick
from anymix.sources import Tables, assign_folds, combined_predictions, held_out_predictions

# h_t(x), (n,) or (n, c), and log r_kt(x), (p, n), of each part.
Said = tuple[list[FloatArray], list[FloatArray]]


class Judged(NamedTuple):
    """Rows with their labels, and what is said at each by what has not seen it."""

    h: FloatArray
    log_r: FloatArray
    y: NDArray[Any]
    domain: IntArray
    fold: IntArray

    @property
    def errors(self) -> FloatArray:
        return errors_at(self.h, self.y)

    def taken(self, rows: NDArray[Any]) -> Judged:
        """Return some of the rows."""
        h, log_r, y, domain, fold = self
        return Judged(h[rows], log_r[:, rows], y[rows], domain[rows], fold[rows])

    def yardstick(self, alpha: float) -> ErrorScale:
        """Learn what errors are measured by from these rows."""
        labels = None if self.h.ndim == 1 else 1.0 - self.h
        return learn_yardstick(self.errors, self.log_r, self.domain, alpha, labels)


@dataclass(frozen=True)
class Judges:
    """Speakers at a new point, the yardstick of each, and the rows that they are compared with."""

    parts: tuple[CrossFittedCombination, ...]
    yardsticks: tuple[ErrorScale, ...]
    rows: Judged

    @property
    def scores(self) -> FloatArray:
        """s of each row for its own source, (m,)."""
        found = np.empty(self.rows.domain.size)
        for t, by in enumerate(self.yardsticks):
            some = self.rows.fold == t
            given = self.rows.taken(some)
            found[some] = by.scores(given.errors, given.log_r, given.domain)
        return found

    def conformal(self, rows: NDArray[Any] | None = None) -> Conformal:
        """Sort the scores, of all rows or of some."""
        some = slice(None) if rows is None else rows
        known = self.rows.fold[some], self.rows.domain[some]
        return Conformal.of(self.yardsticks, self.scores[some], *known)

    def said(self, tables: Tables) -> Said:
        """h_t(x) and log r_kt(x) of each part at new points."""
        logs = [part.log_responsibilities(tables.log_masses) for part in self.parts]
        return [combined_predictions(tables, part) for part in self.parts], logs


def cross_fitted(
    tables: Tables, used: CrossFittedCombination, alpha: float, said: FloatArray | None = None
) -> Judges:
    """Let each part of the model judge the rows that it was learned without.

    Its yardstick is learned from the other rows, those that have taught it.  A sole part has seen
    all rows; `said` is then what it says of each by pools that were learned without it, if known.
    """
    K, m = len(used.parts), tables.n_points
    fold = assign_folds(tables, K) if K > 1 else np.zeros(m, dtype=np.intp)
    y, domain = np.asarray(tables.targets), np.asarray(tables.sample_domain)
    h = said if K == 1 and said is not None else held_out_predictions(tables, used, fold)
    log_r = np.empty_like(tables.log_masses)
    parts, yardsticks = [CrossFittedCombination((part,)) for part in used.parts], []
    for t, part in enumerate(parts):
        log_r[:, fold == t] = part.log_responsibilities(tables.log_masses[:, fold == t])
        taught = tables if K == 1 else tables.taken(np.flatnonzero(fold != t))
        yardsticks.append(_judged(taught, part).yardstick(alpha))
    return Judges(tuple(parts), tuple(yardsticks), Judged(h, log_r, y, domain, fold))


def split(fresh: Tables, used: CrossFittedCombination, yardstick: ErrorScale) -> Judges:
    """Let the deployed average be judged by new rows; the yardstick has not seen them either."""
    return Judges((used,), (yardstick,), _judged(fresh, used))


def plain_judges(h: FloatArray, tables: Tables, fold: IntArray) -> Judges:
    """Take errors as they are, where nobody knows which source a row is like."""
    p, m = tables.log_masses.shape
    y, domain = np.asarray(tables.targets), np.asarray(tables.sample_domain)
    rows = Judged(h, np.full((p, m), -np.log(p)), y, domain, fold)
    return Judges((), (ErrorScale(np.ones(p)),) * (int(fold.max()) + 1), rows)


def _judged(tables: Tables, used: CrossFittedCombination) -> Judged:
    y, domain = np.asarray(tables.targets), np.asarray(tables.sample_domain)
    log_r = used.log_responsibilities(tables.log_masses)
    return Judged(
        combined_predictions(tables, used), log_r, y, domain, np.zeros(y.size, dtype=np.intp)
    )
