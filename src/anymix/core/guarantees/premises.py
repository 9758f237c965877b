"""What a bound is, what the user states for it, and what was measured that it starts from."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from anymix.core.records import Record


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
    """What the tables cannot show and the user states; each number opens further bounds.

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
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        divergences = {k: v for k, v in given.items() if k.endswith("divergence") and v is not None}
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
            if given[name] is not None and not 0 < given[name] < np.inf:
                raise ValueError(f"{name} must be positive and finite; got {given[name]}.")


class Measured(NamedTuple):
    """What the points show, for bounds to be held against.

    loss and regret are max_k L_k(z) and max_k (L_k(z) − ε_k); loss_low and regret_low what these
    exceed with the stated confidence, None where the tables are the distributions themselves, or
    where nobody has computed it.
    """

    loss: float
    regret: float
    loss_low: float | None = None
    regret_low: float | None = None
    confidence: float | None = None


class Facts(NamedTuple):
    """What certify has measured and the theorems start from.

    slack is ηM and cross_slack what may stand in its place where it is known,
    η [(1/p) Σ_k L(U, h_k) − L(U, h_z)]; loss_bound bounds the loss of the rule that is judged;
    worst is max_k L_k(z), or its upper confidence bound; checked says that the tables are the
    distributions.  A normalised rule has a price, what log Σ_y h_z(x, y) may be on average.  floor
    is the least D_k/U on the tables, disagreement the largest |h_j − h_k| there where the h_k are
    the conditionals of the densities in use.
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
    measured: Measured | None = None

    @property
    def least_slack(self) -> float:
        """The smaller of the two slacks."""
        return self.slack if self.cross_slack is None else min(self.slack, self.cross_slack)


LOSS = "loss on any mixture"
REGRET = "loss on any mixture above Σ_k λ_k ε_k"
NORMALISED_LOSS = "loss of the normalised rule on any mixture"
NORMALISED_REGRET = "loss of the normalised rule on any mixture above Σ_k λ_k ε_k"
TARGET = "loss on the target"
NORMALISED_TARGET = "loss of the normalised rule on the target"

# A sum of losses and the bound on it can differ by a rounding error.
ROUNDING = 1e-9
DENSITIES = "the densities in use are not the sources' own"
CULPRITS = {
    LOSS: f"{DENSITIES}, or the sources do not share one conditional",
    REGRET: f"{DENSITIES}, or the sources do not share one conditional",
    NORMALISED_LOSS: f"{DENSITIES}, or a loss is above M",
    NORMALISED_REGRET: f"{DENSITIES}, or a loss is above M",
}
THM_3 = "the sources do not share one conditional, or D_k ≥ μU fails somewhere"


def mark_contradicted(
    bounds: Iterable[Bound], measured: Measured, normalised: bool = False
) -> tuple[Bound, ...]:
    """Return the bounds, those that what was measured refutes with a sentence that says so.

    Parameters
    ----------
    bounds : tuple of Bound
    measured : Measured
        max_k L_k(z) and max_k (L_k(z) − ε_k), and what they exceed with confidence if that is
        known: a bound below the latter is refuted, one between the two only in doubt.
    normalised : bool
        Whether it was the normalised rule that was measured.

    Returns
    -------
    tuple of Bound
        A bound on a target that was derived from a refuted bound on mixtures is marked as well.

    Examples
    --------
    >>> bound = Bound("loss on any mixture", 0.2, "Cor. 2", "The densities are true.", False)
    >>> print(mark_contradicted([bound], Measured(loss=1.1, regret=1.0))[0].contradicted)
    1.1 was measured, more than 0.2: the densities in use are not the sources' own, or the sources
    do not share one conditional.
    """
    known = _what_was_measured(measured, normalised)
    found = [_marked(bound, known, measured.confidence) for bound in bounds]
    return tuple(_derived(bound, found) for bound in found)


def mark_assumptions(bounds: Iterable[Bound], facts: Facts, given: Assumptions) -> list[Bound]:
    """Mark the bounds of Thm 3 if the tables show that D_k ≥ μU or one conditional is false."""
    refuted = _refuted(facts, given)
    return [
        replace(bound, contradicted=refuted) if refuted and _is_thm_3(bound) else bound
        for bound in bounds
    ]


def _refuted(facts: Facts, given: Assumptions) -> str:
    mu, floor, apart = given.mass_floor, facts.floor, facts.disagreement
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


def _what_was_measured(
    measured: Measured, normalised: bool
) -> dict[str, tuple[float, float | None]]:
    """Return for each claim the number measured and its lower bound; the rule must be the same."""
    names = (NORMALISED_LOSS, NORMALISED_REGRET) if normalised else (LOSS, REGRET)
    pairs = (measured.loss, measured.loss_low), (measured.regret, measured.regret_low)
    return dict(zip(names, pairs, strict=True))


def _marked(
    bound: Bound, known: dict[str, tuple[float, float | None]], confidence: float | None
) -> Bound:
    if bound.name not in known:
        return bound
    value, low = known[bound.name]
    if not bound.value < value - ROUNDING * (1 + abs(value)):
        return bound
    said = f"{value:.4g} was measured, more than {bound.value:.4g}"
    if bound.contradicted:
        # The tables have refuted an assumption already, which is no matter of chance.
        return replace(bound, contradicted=f"{said}: {bound.contradicted}")
    culprit = THM_3 if _is_thm_3(bound) else CULPRITS[bound.name]
    chance = "" if low is None or bound.value < low else "unless that is chance, "
    if low is not None and low > -math.inf:
        share = "" if confidence is None else f" with {100 * confidence:g} % confidence"
        said += f", and {low:.4g} or more{share}"
    return replace(bound, contradicted=f"{said}: {chance}{culprit}.")


def _derived(bound: Bound, found: list[Bound]) -> Bound:
    """Mark a bound on a target whose first step, the bound on mixtures, is refuted."""
    base = {TARGET: LOSS, NORMALISED_TARGET: NORMALISED_LOSS}.get(bound.name)
    # Cor. 11 starts from losses under the estimated densities, which nobody measures.
    if bound.contradicted or base is None or "Cor. 11" in bound.paper:
        return bound
    for first in found:
        same = _is_thm_3(first) == _is_thm_3(bound)
        if first.name == base and same and first.contradicted:
            said = f"It rests on “{first.name}” ({first.paper}): {first.contradicted}"
            return replace(bound, contradicted=said)
    return bound


def _is_thm_3(bound: Bound) -> bool:
    return bound.paper.startswith("Thm 3")
