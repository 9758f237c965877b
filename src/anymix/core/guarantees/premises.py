"""Bounds, the assumptions that users state for them, and the measured facts they start from."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from anymix._arrays import FloatArray
from anymix.core.normalised import NormalisedRule
from anymix.core.problem import EvaluatedPoints, gap
from anymix.core.records import Record

# A sum of losses and the bound on it can differ by a rounding error.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Bound(Record):
    """One theorem as a number.

    Attributes
    ----------
    name : str
        What is bounded.
    value : float
    paper : str
        Where it stands.
    assumptions : str
        What must be true, in words.
    checked : bool
        Whether the tables themselves show that it is true; else it is taken on trust.
    contradicted : str
        Empty, or the sentence that says what was measured against it and which assumption must
        then be false: such a bound must not be relied on.
    """

    name: str
    value: float
    paper: str
    assumptions: str
    checked: bool
    contradicted: str = ""


@dataclass(frozen=True)
class Assumptions(Record):
    """What the user states because the tables cannot show it; each number enables further bounds.

    Attributes
    ----------
    loss_bound : float
        M, a bound on the loss of every source everywhere.  Without it the largest loss seen is
        taken, which is a bound for the tables only.
    alpha : float
        α > 1 of the divergences, infinity allowed.  Hölder's bounds hold for every α at once, so
        take the one at which they are least: `anymix.core.best_hoelder`.
    target_divergence : float
        d_α(D_T ‖ mixtures of the sources) ≥ 1; see `anymix.core.nearest_mixture`.
    density_divergence : float or array (p,)
        d_α(D̂_k ‖ D_k) ≥ 1, how far the densities in use are from the true ones.
    conditional_divergence : float or array (p,)
        d_α(D_k,T ‖ D_k) ≥ 1, how far the target's labels are from those of source k.
    mass_floor : float
        μ with D_k(x, y) ≥ μ U(x, y): for the normalised rule, whose sources share one conditional.
    n_classes : int
        |Y|; the bound no longer needs it.
    """

    loss_bound: float | None = None
    alpha: float | None = None
    target_divergence: float | None = None
    density_divergence: ArrayLike | None = None
    conditional_divergence: ArrayLike | None = None
    mass_floor: float | None = None
    n_classes: int | None = None

    def check(self) -> None:
        """Raise a ValueError, in one sentence, for a number that no distribution can have."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        divergences = {
            k: v for k, v in values.items() if k.endswith("divergence") and v is not None
        }
        if divergences and self.alpha is None:
            raise ValueError(f"{next(iter(divergences))} needs alpha, its order; state both.")
        if self.alpha is not None and not self.alpha > 1:
            raise ValueError(f"alpha must be above 1; got {self.alpha}.")
        for name, value in divergences.items():
            if not np.all(np.asarray(value, dtype=float) >= 1 - 1e-9):
                raise ValueError(f"{name} is the exponential of a divergence, so ≥ 1; got {value}.")
        if self.n_classes is not None and self.mass_floor is None:
            raise ValueError("n_classes says nothing without mass_floor; state that, or neither.")
        for name in ("loss_bound", "mass_floor", "n_classes"):
            if values[name] is not None and not 0 < values[name] < np.inf:
                raise ValueError(f"{name} must be positive and finite; got {values[name]}.")


class Facts(NamedTuple):
    """The numbers that the theorems start from.

    slack is ηM and cross_slack what may stand in its place where it is known,
    η [(1/p) Σ_k L(U, h_k) − L(U, h_z)]; loss_bound bounds the loss of the evaluated rule;
    worst is max_k L_k(z), or its upper confidence bound; checked says that the tables are the
    distributions.  A normalised rule has a price, what log Σ_y h_z(x, y) may be on average.  floor
    is the least D_k/U on the tables, disagreement the largest |h_j − h_k| there where the h_k are
    the conditionals of the densities in use.

    loss and regret are max_k L_k(z) and max_k (L_k(z) − ε_k) as measured, for bounds to be held
    against; loss_low and regret_low what these exceed with the stated confidence, None where the
    tables are the distributions themselves, or where it was not computed.
    """

    epsilon: float
    slack: float
    gamma: float
    own_gamma: float
    loss_bound: float
    worst: float
    eta: float
    checked: bool
    cross_entropy: bool
    cross_slack: float | None = None
    normalised: bool = False
    price: float = 0.0
    floor: float | None = None
    disagreement: float | None = None
    loss: float = -math.inf
    regret: float = -math.inf
    loss_low: float | None = None
    regret_low: float | None = None
    confidence: float | None = None

    @property
    def least_slack(self) -> float:
        """The smaller of the two slacks."""
        return self.slack if self.cross_slack is None else min(self.slack, self.cross_slack)


class TheoremSums(NamedTuple):
    """Sums and extremes over the points of a problem that the theorems need.

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
        """Measure the sums; floor and disagreement only on request."""
        here = problem.loss.value(problem.ratio(z)[0], problem.targets)
        L = problem.source_losses(z)
        away, spared = _reference_losses(problem, here, L)
        found = cls(
            losses=L,
            own=problem.own_losses,
            largest=problem.loss_bound,
            lowest=float(here.min()),
            eta=problem.eta,
            logarithmic=problem.loss.logarithmic,
            away=away,
            spared=spared,
            pooled=problem.pooled,
            # With the own measure masses are known up to a factor per point, and U is a mean.
            reference_mass=float(problem.reference.sum()) if problem.pooled else 1.0,
        )
        if isinstance(problem, NormalisedRule):
            price = most = problem.largest_log_total
            if problem.pooled:
                price = float(z @ problem.masses @ problem.log_totals(z))
            found = found._replace(spared=0.0, log_total=most, price=price)
            if asked:
                floor, apart = problem.mass_floor(), problem.disagreement()
                found = found._replace(floor=floor, disagreement=apart)
        elif asked:
            there = problem.reference > 0
            floor = float((problem.masses[:, there] / problem.reference[there]).min())
            found = found._replace(floor=floor)
        return found


def _reference_losses(
    problem: EvaluatedPoints, here: FloatArray, L: FloatArray
) -> tuple[float | None, float]:
    """(1/p) Σ_k L(U, h_k) and L(U, h_z), or None where U is no mean of what is measured.

    With U the mean density L(U, h) is the mean of the L(D_j, h), and the first is that of the
    cross-losses.
    """
    U, y, loss = problem.reference, problem.targets, problem.loss
    if problem.pooled:
        away = np.mean([U @ loss.value(h, y) for h in problem.predictions])
        return float(away), float(U @ here)
    if not np.allclose(U, problem.masses.mean(axis=0), rtol=1e-9, atol=0):
        return None, 0.0
    cross = np.zeros((problem.n_sources, problem.n_sources))
    for h, out in zip(problem.predictions, cross, strict=True):
        for block in problem.measure.blocks():
            problem.measure.add_average(block, loss.value(h[block], y[block]), out)
    return float(np.mean(cross)), float(L.mean())


def gather(problem: EvaluatedPoints, z: FloatArray, given: Assumptions, **known: Any) -> Facts:
    """Measure what `paper_bounds` needs; `facts_of` adds what else is known."""
    # Thm 3 alone asks for a floor and one conditional.
    points = TheoremSums.of(problem, z, asked=given.mass_floor is not None)
    return facts_of(points, z, given, **known)


def rule_loss_bound(problem: EvaluatedPoints, assumptions: Assumptions) -> float | None:
    """Return the stated M as a bound on the loss of the rule itself; None where none is stated.

    For a convex combination of the h_k it is the same M; for the normalised rule it grows by the
    logarithm of the largest sum that it divides by: M + log min(p, |Y|).
    """
    if assumptions.loss_bound is None:
        return None
    more = problem.largest_log_total if isinstance(problem, NormalisedRule) else 0.0
    return float(assumptions.loss_bound) + more


def facts_of(
    points: TheoremSums,
    z: FloatArray,
    given: Assumptions,
    *,
    upper: float | None = None,
    lower: tuple[float, float] | None = None,
    confidence: float | None = None,
) -> Facts:
    """Turn measurements into the facts that `paper_bounds` needs.

    upper is an upper confidence bound on max_k L_k, lower what max_k L_k and max_k (L_k − ε_k)
    exceed with the stated confidence, where they are known.
    """
    L, own, eta = points.losses, points.own, points.eta
    M = points.largest if given.loss_bound is None else float(given.loss_bound)
    # Jensen's step needs losses ≥ 0, and shifts those that are not.  A loss that is a difference of
    # logarithms can miss its zero by a rounding error.
    lowest = 0.0 if points.lowest > -ROUNDING else points.lowest
    if lowest < 0 and given.alpha is not None:
        raise ValueError("Hölder's bounds need losses ≥ 0; this loss is negative at some points.")
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
        loss=float(L.max()),
        regret=float((L - own).max()),
        loss_low=loss_low,
        regret_low=regret_low,
        confidence=confidence,
    )


LOSS = "loss on any mixture"
REGRET = "loss on any mixture above Σ_k λ_k ε_k"
NORMALISED_LOSS = "loss of the normalised rule on any mixture"
NORMALISED_REGRET = "loss of the normalised rule on any mixture above Σ_k λ_k ε_k"
TARGET = "loss on the target"
NORMALISED_TARGET = "loss of the normalised rule on the target"

DENSITIES = "the densities in use are not the sources' own"
CULPRITS = {
    LOSS: f"{DENSITIES}, or the sources do not share one conditional",
    REGRET: f"{DENSITIES}, or the sources do not share one conditional",
    NORMALISED_LOSS: f"{DENSITIES}, or a loss is above M",
    NORMALISED_REGRET: f"{DENSITIES}, or a loss is above M",
}
THM_3 = "the sources do not share one conditional, or D_k ≥ μU fails somewhere"


def mark_contradicted(bounds: Iterable[Bound], facts: Facts) -> tuple[Bound, ...]:
    """Mark the bounds that the measurements contradict.

    The measured rule counts, normalised or not: a bound below the lower confidence bound is
    refuted, one between it and the measured value is only in doubt.  A bound on a target that was
    derived from a refuted bound on mixtures is marked as well.
    """
    pairs = (facts.loss, facts.loss_low), (facts.regret, facts.regret_low)
    names = (NORMALISED_LOSS, NORMALISED_REGRET) if facts.normalised else (LOSS, REGRET)
    values = dict(zip(names, pairs, strict=True))
    marked = list(bounds)
    for i, bound in enumerate(marked):
        value, low = values.get(bound.name, (-math.inf, None))
        if not bound.value < value - ROUNDING * (1 + abs(value)):
            continue
        reason = f"{value:.4g} was measured, more than {bound.value:.4g}"
        if bound.contradicted:
            # The tables have refuted an assumption already, which is no matter of chance.
            marked[i] = replace(bound, contradicted=f"{reason}: {bound.contradicted}")
            continue
        culprit = THM_3 if bound.paper.startswith("Thm 3") else CULPRITS[bound.name]
        chance = "" if low is None or bound.value < low else "unless that is chance, "
        if low is not None and low > -math.inf:
            c = facts.confidence
            share = "" if c is None else f" with {100 * c:g} % confidence"
            reason += f", and {low:.4g} or more{share}"
        marked[i] = replace(bound, contradicted=f"{reason}: {chance}{culprit}.")
    return tuple(_derived(bound, marked) for bound in marked)


def _derived(bound: Bound, marked: list[Bound]) -> Bound:
    """Mark a bound on a target whose first step, the bound on mixtures, is refuted."""
    base = {TARGET: LOSS, NORMALISED_TARGET: NORMALISED_LOSS}.get(bound.name)
    # Cor. 11 starts from losses under the estimated densities, which are not measured.
    if bound.contradicted or base is None or "Cor. 11" in bound.paper:
        return bound
    for first in marked:
        same = first.paper.startswith("Thm 3") == bound.paper.startswith("Thm 3")
        if first.name == base and same and first.contradicted:
            reason = f"It rests on “{first.name}” ({first.paper}): {first.contradicted}"
            return replace(bound, contradicted=reason)
    return bound


def refuted_assumption(facts: Facts, assumptions: Assumptions) -> str:
    """Name the assumption (D_k ≥ μU or one conditional) that the tables refute, if any."""
    mu, floor, apart = assumptions.mass_floor, facts.floor, facts.disagreement
    if mu is not None and floor is not None and mu > floor * (1 + ROUNDING):
        return (
            f"D_k ≥ μU is stated with μ = {mu:.4g}, but on these points D_k/U falls to {floor:.4g}."
        )
    if apart is not None and apart > ROUNDING:
        return (
            "The densities in use are D_k(x) h_k(x, y), which share one conditional only if all "
            f"models agree; two of them differ by {apart:.4g} at one point."
        )
    return ""
