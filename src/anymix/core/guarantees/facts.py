"""The facts that the theorems start from, gathered from a problem and its z."""

from __future__ import annotations

from collections.abc import Callable
from operator import add
from typing import Any, NamedTuple, Self

import numpy as np

from anymix._arrays import FloatArray
from anymix.core.guarantees.premises import Assumptions, Facts, Measured
from anymix.core.normalised import NormalisedRule
from anymix.core.problem import EvaluatedPoints, gap


class TheoremSums(NamedTuple):
    """What the points of a problem show of h_z; those of several parts of the points add up.

    losses and own (p,) are L_k and ε_k; largest is the largest loss of a source, lowest the least
    of h_z, both over all points.  away is (1/p) Σ_k L(U, h_k) and spared L(U, h_z), None where U is
    no mean of what is measured.  log_total and price are of the normalised rule alone; floor and
    disagreement are measured where a floor is stated.
    """

    losses: FloatArray
    own: FloatArray
    largest: float
    lowest: float
    eta: float
    logarithmic: bool
    away: float | None = None
    spared: float = 0.0
    pooled: bool = False
    reference_mass: float = 1.0
    log_total: float | None = None
    price: float = 0.0
    floor: float | None = None
    disagreement: float | None = None

    @classmethod
    def of(cls, problem: EvaluatedPoints, z: FloatArray, asked: bool = False) -> Self:
        """Measure them; floor and disagreement only where they are asked for."""
        here = problem.loss.value(problem.ratio(z)[0], problem.targets)
        L = problem.source_losses(z)
        away, spared = _means(problem, here, L)
        normalised = problem if isinstance(problem, NormalisedRule) else None
        return cls(
            losses=L,
            own=problem.own_losses,
            largest=problem.loss_bound,
            lowest=float(here.min()),
            eta=problem.eta,
            logarithmic=problem.loss.logarithmic,
            away=away,
            spared=0.0 if normalised is not None else spared,
            pooled=problem.pooled,
            reference_mass=_reference_mass(problem),
            log_total=None if normalised is None else normalised.largest_log_total,
            price=0.0 if normalised is None else _price(normalised, z),
            floor=_floor(problem) if asked else None,
            disagreement=normalised.disagreement() if asked and normalised is not None else None,
        )

    def plus(self, other: TheoremSums) -> TheoremSums:
        """Return what both parts of the points show together."""
        return self._replace(
            losses=self.losses + other.losses,
            own=self.own + other.own,
            largest=max(self.largest, other.largest),
            lowest=min(self.lowest, other.lowest),
            away=_of_both(add, self.away, other.away),
            spared=self.spared + other.spared,
            floor=_of_both(min, self.floor, other.floor),
            disagreement=_of_both(max, self.disagreement, other.disagreement),
        )


def _of_both(
    how: Callable[[float, float], float], one: float | None, other: float | None
) -> float | None:
    return None if one is None or other is None else how(one, other)


def gather(problem: EvaluatedPoints, z: FloatArray, given: Assumptions, **known: Any) -> Facts:
    """Measure what `paper_bounds` needs; see `facts_of` for what else may be known."""
    # Thm 3 alone asks for a floor and one conditional.
    points = TheoremSums.of(problem, z, asked=given.mass_floor is not None)
    return facts_of(points, z, given, **known)


def facts_of(
    points: TheoremSums,
    z: FloatArray,
    given: Assumptions,
    *,
    upper: float | None = None,
    lower: tuple[float, float] | None = None,
    confidence: float | None = None,
) -> Facts:
    """Turn what was measured into what `paper_bounds` needs.

    Parameters
    ----------
    points : TheoremSums
    z : array (p,)
    given : Assumptions
        M if it is stated; else the largest loss seen.
    upper : float, optional
        Upper confidence bound on max_k L_k.
    lower : (float, float), optional
        What max_k L_k and max_k (L_k − ε_k) exceed with the stated confidence.
    confidence : float, optional

    Examples
    --------
    >>> from anymix.core import Problem
    >>> problem = Problem([[1, 0], [0, 1]], [[0, 0], [1, 1]], [0, 1], eta=0.1)
    >>> z = np.array([0.5, 0.5])
    >>> facts = facts_of(TheoremSums.of(problem, z), z, Assumptions())
    >>> facts.slack, round(facts.cross_slack, 4)
    (0.1, 0.0498)
    """
    L, own, eta = points.losses, points.own, points.eta
    M = points.largest if given.loss_bound is None else float(given.loss_bound)
    lowest = _lowest(points.lowest, given)
    loss_low, regret_low = (None, None) if lower is None else lower
    return Facts(
        epsilon=float(own.max()),
        slack=eta * points.reference_mass * (M - lowest),
        gamma=gap(L, z),
        own_gamma=gap(L - own, z),
        loss_bound=M + (points.log_total or 0.0),
        worst=float(L.max()) if upper is None else upper,
        eta=eta,
        checked=points.pooled,
        cross_entropy=points.logarithmic,
        cross_slack=None if points.away is None else eta * (points.away - points.spared),
        normalised=points.log_total is not None,
        price=points.price,
        floor=points.floor,
        disagreement=points.disagreement,
        measured=Measured(float(L.max()), float((L - own).max()), loss_low, regret_low, confidence),
    )


def rule_loss_bound(problem: EvaluatedPoints, given: Assumptions) -> float | None:
    """Return the stated M as a bound on the loss of the rule itself; None where none is stated.

    Of a convex combination of the h_k it is the same M; the normalised rule may lose as much more
    as the sum that it divides by can be: M + log min(p, |Y|).

    Examples
    --------
    >>> from anymix.core import one_input_example
    >>> round(rule_loss_bound(one_input_example(3), Assumptions(loss_bound=7.0)), 4)
    8.0986
    """
    if given.loss_bound is None:
        return None
    more = problem.largest_log_total if isinstance(problem, NormalisedRule) else 0.0
    return float(given.loss_bound) + more


def _means(problem: EvaluatedPoints, here: FloatArray, L: FloatArray) -> tuple[float | None, float]:
    """(1/p) Σ_k L(U, h_k) and L(U, h_z), or None where U is no mean of what is measured.

    With U the mean density L(U, h) is the mean of the L(D_j, h), and the first is that of the
    cross-losses.
    """
    U, y = problem.reference, problem.targets
    if problem.pooled:
        away = np.mean([U @ problem.loss.value(h, y) for h in problem.predictions])
        return float(away), float(U @ here)
    if np.allclose(U, problem.masses.mean(axis=0), rtol=1e-9, atol=0):
        away = np.mean([_averages(problem, h) for h in problem.predictions])
        return float(away), float(L.mean())
    return None, 0.0


def _averages(problem: EvaluatedPoints, h: FloatArray) -> FloatArray:
    """L(D_j, h) for every j, (p,), block by block."""
    out = np.zeros(problem.n_sources)
    for block in problem.measure.blocks():
        values = problem.loss.value(h[block], problem.targets[block])
        problem.measure.add_average(block, values, out)
    return out


def _reference_mass(problem: EvaluatedPoints) -> float:
    """ΣU; with the own measure the masses are known up to a factor per point, and U is a mean."""
    return float(problem.reference.sum()) if problem.pooled else 1.0


def _lowest(lowest: float, given: Assumptions) -> float:
    """min(0, least loss of h_z): Jensen's step needs losses ≥ 0, and shifts those that are not."""
    # A loss that is a difference of logarithms can miss its zero by a rounding error.
    if lowest > -1e-9:
        return 0.0
    if given.alpha is not None:
        raise ValueError("Hölder's bounds need losses ≥ 0; this loss is negative at some points.")
    return lowest


def _price(problem: NormalisedRule, z: FloatArray) -> float:
    """Σ D_z log Σ_y h_z on tables that are the distributions, else the most that it can be."""
    if not problem.pooled:
        return problem.largest_log_total
    return float(z @ problem.masses @ problem.log_totals(z))


def _floor(problem: EvaluatedPoints) -> float:
    """Return the least D_k/U at the points; no factor per point changes it."""
    if isinstance(problem, NormalisedRule):
        return problem.mass_floor()
    there = problem.reference > 0
    return float((problem.masses[:, there] / problem.reference[there]).min())
