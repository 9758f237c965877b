"""A bound that is below what was measured refutes one of its own assumptions: say which."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from anymix.core.guarantees.premises import Assumptions, Bound, Facts, Measured

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
