"""Rows in parts: what is learned without a part is judged by it, and the average is deployed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray, IntArray
from anymix.core import (
    Combination,
    CrossFittedCombination,
    Loss,
    Moments,
    Solution,
    losses_at,
    simplex,
)
from anymix.core import gap as gap_of
from anymix.densities import CalibrationReport
from anymix.sources.consulting import ConsultingGain
from anymix.sources.tables import Tables

# Each combination learns from four fifths of the rows: with three parts, from two thirds, sources
# of few rows were taught less well what others know (heart, rows of training alone).
N_PARTS = 5
# With fewer rows of a source its part would teach, or judge, next to nothing.
FEWEST_ROWS = 15
# Numbers that rows are put in order by: so many tell them apart.
MOST_KEYS, SAME = 8, 1e-6
# From the best to the worst.
STATUSES = ("converged", "stationary", "stalled", "out of evaluations", "budget")


@dataclass(frozen=True)
class HeldOut:
    """What the combination says at the rows it was learned from, each row by what never saw it.

    predictions are (m,) or (m, c); fold (m,) says which part of the average spoke: the one that
    was learned without the row.  Where rows were too few to be dealt out there is one part, which
    has seen them all: `crossed` is False, and nothing can be certified by these rows.
    """

    predictions: FloatArray
    fold: IntArray
    crossed: bool = True

    def losses(self, tables: Tables, loss: str | Loss) -> FloatArray:
        """ℓ(h(x_i), y_i), (m,)."""
        return losses_at(self.predictions, np.asarray(tables.targets), loss)


def deal(tables: Tables, n_parts: int = N_PARTS) -> IntArray:
    """Deal the rows of each source out to parts, by chance: (m,) of 0..K−1.

    Rows are first put in an order that is their own, by what the sources say of them, so that
    neither the order in which they come nor the last digit of a number decides; then parts of equal
    size are drawn.  Rows that are the same stay together, unless almost all are.  All are in part 0
    where a source has too few.

    >>> tables = Tables(np.zeros((1, 6)), np.zeros((1, 6))).labelled(np.arange(6), 0)
    >>> np.bincount(deal(tables, 2))
    array([6])
    """
    counts = np.bincount(np.asarray(tables.sample_domain), minlength=len(tables.log_masses))
    if counts.min() < FEWEST_ROWS:
        return np.zeros(tables.n_points, dtype=np.intp)
    return deal_out(tables, n_parts)


def deal_out(tables: Tables, n_parts: int = N_PARTS) -> IntArray:
    """Deal the rows of each source out, however few there are; see `deal`."""
    domain = np.asarray(tables.sample_domain)
    fold = np.zeros(tables.n_points, dtype=np.intp)
    for k in np.unique(domain).tolist():
        rows = np.flatnonzero(domain == k)
        group = _groups(tables.taken(rows), k)
        n = int(group.max()) + 1
        drawn = np.random.default_rng([n_parts, k, n]).permutation(n) % n_parts
        fold[rows] = drawn[group]
    return fold


def _groups(tables: Tables, k: int) -> IntArray:
    """Number the rows of source k in their own order; the same rows have one number."""
    # What sites tell of rows is enough, so that both ways deal them out alike.
    said = tables.outcomes()
    keys = np.concatenate([said[k:], said[:k], tables.log_responsibilities()])[:MOST_KEYS]
    order = np.lexsort(keys[::-1])
    new = np.ones(tables.n_points, dtype=bool)
    # The same row, asked about beside others, may get another last digit.
    least = SAME * (1.0 + np.abs(keys[:, order[1:]]))
    with np.errstate(invalid="ignore"):
        new[1:] = (np.abs(np.diff(keys[:, order], axis=1)) > least).any(axis=0)
    # Rows of few values have twins by chance, and are draws of their own all the same.
    number = np.cumsum(new) - 1 if new.sum() >= FEWEST_ROWS else np.arange(new.size)
    found = np.empty(new.size, dtype=np.intp)
    found[order] = number
    return found


def answers(tables: Tables, combination: CrossFittedCombination) -> FloatArray:
    """What an average of combinations says at new points, (m,) or (m, c)."""
    said = [_answer(tables, part) for part in combination.parts]
    return np.asarray(np.mean(said, axis=0)) if len(said) > 1 else said[0]


def _answer(tables: Tables, part: Combination) -> FloatArray:
    heard = tables.heard(part.consulting).predictions
    return replace(part, consulting=None).predict(tables.log_masses, heard)


def crossed_answers(
    tables: Tables, combination: CrossFittedCombination, fold: IntArray
) -> FloatArray:
    """What each part says at the rows that it was learned without, (m,) or (m, c)."""
    found: FloatArray | None = None
    for t, part in enumerate(combination.parts):
        rows = np.flatnonzero(fold == t)
        said = _answer(tables.taken(rows), part)
        found = np.empty((tables.n_points, *said.shape[1:])) if found is None else found
        found[rows] = said
    assert found is not None
    return found


def own_losses(tables: Tables, loss: str | Loss) -> FloatArray:
    """ℓ(h_k(x_i), y_i) of the own model k of each row, before it hears anybody: (m,)."""
    domain, y = np.asarray(tables.sample_domain), np.asarray(tables.targets)
    own = tables.predictions[domain, np.arange(domain.size)]
    return losses_at(own, y, loss)


def advice(
    tables: Tables, combination: CrossFittedCombination, fold: IntArray, loss: str | Loss
) -> ConsultingGain | None:
    """What consulting has brought to each source at home, by rows that did not teach it."""
    if not combination.consults:
        return None
    own, gains = (by_home(values, tables) for values in brought(tables, combination, fold, loss))
    return advice_of(own, gains)


def brought(
    tables: Tables, combination: CrossFittedCombination, fold: IntArray, loss: str | Loss
) -> tuple[FloatArray, FloatArray]:
    """The own model's loss at each row, and how much less the source loses that hears others."""
    own, heard = own_losses(tables, loss), np.empty(tables.n_points)
    for t, part in enumerate(combination.parts):
        rows = np.flatnonzero(fold == t)
        some = tables.taken(rows)
        heard[rows] = own_losses(some.heard(part.consulting), loss)
    return own, own - heard


def by_home(values: FloatArray, tables: Tables) -> list[Moments]:
    """Moments of values (m,) over the rows of each source, p of them."""
    domain, w = np.asarray(tables.sample_domain), tables.sample_weight
    w = np.ones(domain.size) if w is None else w
    homes = [domain == k for k in range(len(tables.log_masses))]
    return [Moments.of(values[home], w[home]) for home in homes]


def advice_of(own: Sequence[Moments], gains: Sequence[Moments]) -> ConsultingGain:
    """Say what the own models lose at home, and what hearing others has brought there."""
    told = [(a.mean, b.mean, b.standard_error) for a, b in zip(own, gains, strict=True)]
    return ConsultingGain(*np.array(told).T)


def joined(
    found: Sequence[Solution],
    combination: CrossFittedCombination,
    losses: FloatArray,
    own: FloatArray,
) -> Solution:
    """One answer for all parts: losses (p,) as judged without the rows, and what was spent."""
    first = found[0]
    if len(found) == 1:
        return first
    z = simplex.clean(combination.z)
    return replace(
        first,
        z=z,
        gamma=gap_of(losses, z),
        robust_loss=float(losses.max()),
        regret=float((losses - own).max()),
        source_losses=losses,
        own_losses=own,
        status=max((one.status for one in found), key=STATUSES.index),
        optimality=max(one.optimality for one in found),
        n_evaluations=float(sum(one.n_evaluations for one in found)),
        n_hessians=float(sum(one.n_hessians for one in found)),
        shrinkage=float(np.mean([one.shrinkage for one in found])),
        seen=None,
    )


def mean_report(found: Sequence[CalibrationReport | None], m: int) -> CalibrationReport | None:
    """Average the reports of the parts, which are of m rows together."""
    known = [one for one in found if one is not None]
    if not known:
        return None
    names = ("log_loss_before", "log_loss_after", "error_before", "error_after")
    means = {name: float(np.mean([getattr(one, name) for one in known])) for name in names}
    return replace(known[0], n_points=m, **means)


def by_source(values: FloatArray, tables: Tables) -> FloatArray:
    """Average values (m,) over the rows of each source, (p,)."""
    domain: NDArray[np.intp] = np.asarray(tables.sample_domain)
    weight = np.ones(domain.size) if tables.sample_weight is None else tables.sample_weight
    p = len(tables.log_masses)
    return np.bincount(domain, weight * values, p) / np.bincount(domain, weight, p)
