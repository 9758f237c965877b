"""The sentence of a certificate: whether it is guaranteed, for which mixtures, and the bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from anymix.core.losses import unit_of

if TYPE_CHECKING:
    from anymix.core.guarantees.certificate import Certificate

MEASURED = "Measured, not guaranteed"
# Below it an asymptotic bound is rough, and says so.
FEW_ROWS = 200
# Ways that look at no row.
BLIND = ("chance", "a constant")


def sentence_of(claim: Certificate) -> str:
    """Say first whether bounds are guaranteed or measured, then the bounds, then remarks."""
    p = claim.z.size
    own = "each source's own model on its own data" if p > 1 else "its own model"
    where = f"on every mixture of the {p} sources" if p > 1 else "on the source"
    if claim.mixtures:
        where += f" with {' and '.join(map(str, claim.mixtures))}"
    how, how_loss = (_how(claim, ground) for ground in (claim.regret_ground, claim.loss_ground))
    claims = [not one.startswith(MEASURED) for one in (how, how_loss)]
    regret = claim.regret if claim.regret_upper is None or not claims[0] else claim.regret_upper
    loss = claim.robust_loss if claim.loss_upper is None or not claims[1] else claim.loss_upper
    side, than = ("at most", "above") if regret >= 0 else ("at least", "below")
    first = f"{side} {rounded_up(regret).lstrip('-')} {than} that of {own}"
    second = f"at most {rounded_up(loss)} in absolute terms"
    unit, what = unit_of(claim.loss).head, "expected loss" if any(claims) else "loss"
    cut = clipping(claim.clip, claim.share_above)
    # A measured loss counts rows as they are.
    units = [f"{unit}, {cut if one else 'not clipped'}" if cut else unit for one in claims]
    if how == how_loss:
        said = [f"{how}: {where} the {what} is {first}, and {second} ({units[1]})."]
    else:
        said = [f"{how}: {where} the {what} is {first} ({units[0]})."]
        said.append(f"{how_loss}: it is {second} ({units[1]}).")
    return " ".join(said + _remarks(claim))


def _remarks(claim: Certificate) -> list[str]:
    """What a reader must know besides: what was judged, and whether it says anything."""
    said = []
    if claim.seen:
        trained = f"The model was trained on the rows of {', '.join(claim.seen)}"
        said.append(f"{trained}: give rows that it has not seen.")
    if claim.subpopulation_upper is not None:
        said.append(_of_subpopulations(claim))
    if claim.covers:
        said.append(f"This covers {claim.covers}; the deployed models are trained on all rows.")
    if claim.reason and not claim.seen:
        said.append(claim.reason)
    if claim.vacuous:
        blind = next(one.name for one in claim.beside if one.name in BLIND)
        said.append(f"The bound is vacuous: {blind} does as well.")
    return said


def _of_subpopulations(claim: Certificate) -> str:
    """Say what is lost on a large enough part of any mixture, and how much of it may be cut."""
    share, above, clipped = claim.subpopulation or 1.0, claim.share_above, ""
    mixture = "any such mixture" if claim.mixtures else "any mixture"
    most = np.nan if claim.subpopulation_upper is None else claim.subpopulation_upper
    if claim.clip is not None and above is not None:
        more = min(100 * above / share, 100.0)
        clipped = f" (clipped likewise; at most {more:.2g} % of its rows lose more)"
    return (
        f"{_how(claim, claim.subpopulation_ground)}: on every subpopulation of at least "
        f"{100 * share:g} % of {mixture} it is at most {rounded_up(most)}{clipped}."
    )


def _how(claim: Certificate, ground: str) -> str:
    """Say whether a bound is guaranteed, and on what ground."""
    if ground == "tables":
        return "Guaranteed if the tables are the true distributions"
    if ground == "measured" or claim.confidence is None:
        return MEASURED
    # Weights of n equal rows need not multiply out to n in the last digit.
    few = ground == "asymptotic" and 0 < claim.n_rows < FEW_ROWS - 0.5
    rough = f", though a source has {claim.n_rows:.0f} rows" if few else ""
    fitted = claim.n_candidates > 1 and claim.n_parts == 1
    chosen = ", for every z that these points may choose" if fitted else ""
    return f"Guaranteed with {100 * claim.confidence:g} % confidence ({ground}{rough}{chosen})"


def rounded_up(value: float) -> str:
    """Write an upper bound with three significant digits, rounded up.

    >>> rounded_up(0.08211), rounded_up(-0.08219), rounded_up(0.41)
    ('0.0822', '-0.0821', '0.41')
    """
    if not (np.isfinite(value) and value):
        return f"{value:g}"
    if abs(value) < 1e-300:  # the step would be 0
        return "1e-300" if value > 0 else "0"
    step = 10.0 ** (np.floor(np.log10(abs(value))) - 2)
    return f"{np.ceil(value / step - 1e-9) * step:.3g}"


def clipping(clip: float | None, share: float | None, said: str | None = None) -> str:
    """Describe the clipping of losses, and how many rows may lose more.

    >>> clipping(1.2, 0.0312)
    "clipped at 1.2; at most 3.1 % of any source's rows lose more"
    """
    if clip is None:
        return ""
    more = f"; at most {100 * share:.2g} % of any source's rows lose more" if share else ""
    return f"clipped at {said or format(clip, '.3g')}{more}"
