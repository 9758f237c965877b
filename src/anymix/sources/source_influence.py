"""The influence of a site's rows, and of a source as a whole, on the losses of others.

    rows[j, k]      L_k(z) − L_k(z without the rows of site j)       k ≠ j
    sources[j, k]   L_k(z) − L_k(z without source j and its rows)

Positive numbers are harm to k by j.  Calibration is learned again with each z, since rows influence
both.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from anymix._arrays import FloatArray
from anymix.core import (
    Budget,
    Calibration,
    Problem,
    Record,
    SolverWarning,
    mean_and_error,
    simplex,
)
from anymix.exceptions import InputError
from anymix.sources.consultation import consult
from anymix.sources.learning import LearningSettings, calibrations_of, find_z
from anymix.sources.tables import Tables

# z is found 2p + 1 times; beyond so many sources that takes minutes.
MOST_SOURCES = 20
# Of all sites together, and of one at least; what is named is no matter of single rows.
POINTS, FEWEST = 4000, 100
NUMBERS = 2**22  # of a table of classes
# The time is for all searches together, and far more than honest tables need.
TOL, EVALUATIONS, SECONDS = 1e-6, 200.0, 60.0
# Harm is named from so many standard errors on, if it is that share of the loss without it, and
# leaves a source worse off than with its own model by that share of the usual loss at home.
STANDARD_ERRORS, SHARE, FLOOR = 2.0, 2.0, 0.5
# Sources that must be left to choose z: one alone has none to be compared with.
FEWEST_SITES = 2


@dataclass(frozen=True, eq=False)
class Influence(Record):
    """The influence of each site and source on the losses of the others.

    Attributes
    ----------
    names : tuple of str
        The p sources.
    losses, own_losses : array (p,)
        L_k(z), and ε_k of each source's own model on its own points.
    recognised : array (p,)
        How likely each source's own rows are its own by the densities, on average.
    rows, rows_error : array (p, p)
        Harm to k by the rows of j, at [j, k], and its standard error, paired over the rows of k.
    sources, sources_error : array (p, p)
        Harm to k by source j: its predictor, its density and its rows.

    Examples
    --------
    >>> harm, none = np.array([[0.0, 0.1], [4.0, 0.0]]), np.zeros((2, 2))
    >>> losses, own = np.array([4.1, 0.3]), np.array([0.1, 0.2])
    >>> found = Influence(
    ...     ("north", "west"), losses, own, np.array([0.9, 0.1]), harm, none + 0.5, none, none
    ... )
    >>> print(*found.sentences())
    The rows of west raise the held-out loss of north from 0.1 to 4.1.
    """

    names: tuple[str, ...]
    losses: FloatArray
    own_losses: FloatArray
    recognised: FloatArray
    rows: FloatArray
    rows_error: FloatArray
    sources: FloatArray
    sources_error: FloatArray

    def moved(self) -> list[tuple[int, int, bool]]:
        """Return large and significant harm: (j, k, whether by j's rows).

        Two sites that contradict each other are both named, as no table shows which is right; the
        one whose rows its own density recognises least comes first.  Of a source as
        a whole it is said only where its rows alone do no such harm.
        """
        found: dict[tuple[int, int], bool] = {}
        # A single site, be it the liar, cannot move the median of three or more.
        usual = float(np.median(self.own_losses))
        for by_rows in (True, False):
            harm, error = self._harm(by_rows)
            without = self.losses - harm
            # Who is no worse off than with its own model has nothing to complain of.
            excess = self.losses - np.maximum(without, self.own_losses)
            much = (harm > SHARE * without) & (excess > max(FLOOR * usual, 0.0))
            for j, k in np.argwhere(much & (harm > STANDARD_ERRORS * error)).tolist():
                found.setdefault((j, k), by_rows)
        named = [(j, k, by_rows) for (j, k), by_rows in found.items()]
        return sorted(named, key=lambda one: self.recognised[one[0]])

    def _harm(self, by_rows: bool) -> tuple[FloatArray, FloatArray]:
        return (self.rows, self.rows_error) if by_rows else (self.sources, self.sources_error)

    def worst(self) -> int | None:
        """The harmful site whose rows its own density recognises least, if any."""
        return next((j for j, _, by_rows in self.moved() if by_rows), None)

    def least_known(self) -> int | None:
        """The named site whose rows its own density recognises least."""
        named = [k for one in self.moved() for k in one[:2]]
        return min(named, key=lambda k: float(self.recognised[k])) if named else None

    def sentences(self) -> list[str]:
        """Describe which site harms which."""
        found = []
        for j, k, by_rows in self.moved():
            loss, name = float(self.losses[k]), self.names[j]
            without = loss - float(self._harm(by_rows)[0][j, k])
            who = f"The rows of {name} raise" if by_rows else f"The source {name} raises"
            found.append(
                f"{who} the held-out loss of {self.names[k]} from {without:.3g} to {loss:.4g}."
            )
        return found


def find_influence(tables: Tables, goal: LearningSettings, names: Sequence[str]) -> Influence:
    """Learn z again without the rows of each site, and without each source; compare the losses."""
    p = tables.n_sources
    if p > MOST_SOURCES:
        raise InputError(
            f"the influence of {p} sources on each other",
            f"would take too long to compute; it is computed for {MOST_SOURCES} at most",
        )
    few = _thinned(tables)
    # Pools are learned by each source from its own rows: those of another site do not move them.
    goal = replace(goal, mixtures=())
    said, settled = _pooled(few, goal), replace(goal, consult=False)
    base, domain = _losses(said, settled), few.domain
    rows, sources = np.zeros((2, 2, p, p))
    for j in range(p):
        aside = tuple(sorted({*goal.set_aside, j}))
        if p - len(aside) >= FEWEST_SITES:
            rows[:, j] = _harm(few, base - _losses(said, replace(settled, set_aside=aside)), j)
        left = tuple(k - (k > j) for k in goal.set_aside if k != j)
        harm = np.zeros(base.size)
        without = _losses(few.without([j]), replace(goal, set_aside=left))
        harm[domain != j] = base[domain != j] - without
        sources[:, j] = _harm(few, harm, j)
    own = domain, np.arange(domain.size)
    values = base, few.point_losses(goal.loss)[own], np.exp(few.log_responsibilities()[own])
    at_home = [np.array([_mean(few, v, k)[0] for k in range(p)]) for v in values]
    return Influence(tuple(map(str, names)), *at_home, *rows, *sources)


def _pooled(tables: Tables, goal: LearningSettings) -> Tables:
    return consult(tables, goal.loss, goal.set_aside).tables if goal.consult else tables


def _thinned(tables: Tables) -> Tables:
    """Keep some thousand points, of each site alike, and sort them by site."""
    domain, rng = tables.domain, np.random.default_rng(0)
    p = tables.n_sources
    most = max(FEWEST, POINTS // p)
    most = max(1, min(most, NUMBERS * domain.size // (p * tables.predictions.size)))
    kept = [rng.permutation(np.flatnonzero(domain == k))[:most] for k in range(p)]
    return tables.taken(np.concatenate(kept))


def _losses(tables: Tables, goal: LearningSettings) -> FloatArray:
    """ℓ(h_z, y) at points sorted by site, for a z that is found quickly: (m,).

    The calibration is the one that serves best where all sources weigh alike.
    """
    if tables.n_sources == 1:
        return tables.point_losses(goal.loss)[0]
    tables = _pooled(tables, goal)
    equal = simplex.uniform(tables.n_sources)

    def problem(calibration: Calibration | None) -> Problem:
        return tables.weighed(calibration).problem(goal.loss, goal.eta, goal.rule)

    tried = calibrations_of(tables, goal)
    chosen = min(tried, key=lambda one: goal.value(problem(one).source_losses(equal)))
    budget = Budget(EVALUATIONS, SECONDS / (2 * equal.size + 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SolverWarning)
        z = find_z(problem(chosen), goal, n_starts=2, tol=TOL, budget=budget).z
    judged = tables.weighed(chosen).judgement(goal.loss, goal.eta, goal.rule)
    return np.asarray(judged.loss.value(judged.ratio(z)[0], judged.targets))


def _harm(tables: Tables, differences: FloatArray, j: int) -> FloatArray:
    """Mean and error of paired differences (m,) over the rows of each site but j: (2, p)."""
    harm = np.zeros((2, tables.n_sources))
    for k in range(harm.shape[1]):
        if k != j:
            harm[:, k] = _mean(tables, differences, k)
    return harm


def _mean(tables: Tables, values: FloatArray, k: int) -> tuple[float, float]:
    """Mean over the rows of site k, and its standard error."""
    rows = tables.rows_of(k)
    w = tables.weights[rows]
    mean, error = mean_and_error(values[rows], w / w.sum())
    return float(mean), float(error)
