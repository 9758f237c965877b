"""The facts that the theorems start from, gathered from a problem and its z."""

from __future__ import annotations

import numpy as np

from anymix._arrays import FloatArray
from anymix.core.guarantees.premises import Assumptions, Facts, Measured
from anymix.core.judgement import Judgement, gap
from anymix.core.normalised import NormalisedRule


def gather(
    problem: Judgement,
    z: FloatArray,
    given: Assumptions,
    *,
    upper: float | None = None,
    lower: tuple[float, float] | None = None,
    confidence: float | None = None,
) -> Facts:
    """Measure what `paper_bounds` needs.

    Parameters
    ----------
    problem : Problem, or another Judgement
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
    >>> facts = gather(problem, np.array([0.5, 0.5]), Assumptions())
    >>> facts.slack, round(facts.cross_slack, 4)
    (0.1, 0.0498)
    """
    L, own = problem.source_losses(z), problem.own_losses
    M = problem.loss_bound if given.loss_bound is None else float(given.loss_bound)
    here = problem.loss.value(problem.ratio(z)[0], problem.targets)
    lowest = _lowest(here, given)
    normalised = problem if isinstance(problem, NormalisedRule) else None
    price = 0.0 if normalised is None else _price(normalised, z)
    # Thm 3 alone asks for a floor and one conditional.
    asked = given.mass_floor is not None
    loss_low, regret_low = (None, None) if lower is None else lower
    return Facts(
        epsilon=float(own.max()),
        slack=problem.eta * _reference_mass(problem) * (M - lowest),
        gamma=gap(L, z),
        own_gamma=gap(L - own, z),
        loss_bound=M if normalised is None else M + normalised.largest_log_total,
        worst=float(L.max()) if upper is None else upper,
        eta=problem.eta,
        checked=problem.pooled,
        cross_entropy=problem.loss.logarithmic,
        cross_slack=_cross_slack(problem, here, L),
        normalised=normalised is not None,
        price=price,
        floor=_floor(problem) if asked else None,
        disagreement=normalised.disagreement() if asked and normalised is not None else None,
        measured=Measured(float(L.max()), float((L - own).max()), loss_low, regret_low, confidence),
    )


def rule_loss_bound(problem: Judgement, given: Assumptions) -> float | None:
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


def _cross_slack(problem: Judgement, here: FloatArray, L: FloatArray) -> float | None:
    """η [(1/p) Σ_k L(U, h_k) − L(U, h_z)], or None where U is no mean of what is measured.

    With U the mean density L(U, h) is the mean of the L(D_j, h), and the first term that of the
    cross-losses.  Of the normalised rule only the first term: what is measured is another rule.
    """
    U, y = problem.reference, problem.targets
    if problem.pooled:
        away = np.mean([U @ problem.loss.value(h, y) for h in problem.predictions])
        spared = float(U @ here)
    elif np.allclose(U, problem.masses.mean(axis=0), rtol=1e-9, atol=0):
        away = np.mean([_averages(problem, h) for h in problem.predictions])
        spared = float(L.mean())
    else:
        return None
    if isinstance(problem, NormalisedRule):
        spared = 0.0
    return problem.eta * float(away - spared)


def _averages(problem: Judgement, h: FloatArray) -> FloatArray:
    """L(D_j, h) for every j, (p,), block by block."""
    out = np.zeros(problem.n_sources)
    for block in problem.measure.blocks():
        values = problem.loss.value(h[block], problem.targets[block])
        problem.measure.add_average(block, values, out)
    return out


def _reference_mass(problem: Judgement) -> float:
    """ΣU; with the own measure the masses are known up to a factor per point, and U is a mean."""
    return float(problem.reference.sum()) if problem.pooled else 1.0


def _lowest(losses: FloatArray, given: Assumptions) -> float:
    """min(0, least loss of h_z): Jensen's step needs losses ≥ 0, and shifts those that are not."""
    lowest = float(losses.min())
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


def _floor(problem: Judgement) -> float:
    """Return the least D_k/U at the points; no factor per point changes it."""
    if isinstance(problem, NormalisedRule):
        return problem.mass_floor()
    there = problem.reference > 0
    return float((problem.masses[:, there] / problem.reference[there]).min())
