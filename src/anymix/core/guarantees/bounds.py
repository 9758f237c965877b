"""The paper's theorems as numbers, each with its assumptions in words.

Two inequalities carry them all.  Jensen's, for the mixture D_λ and losses in [0, M]:

    L(D_λ, h_z) ≤ ε + ηM + γ(z)          L_k(z) − ε_k ≤ ηM + γ_ε(z)

and Hölder's, for any two distributions and losses in [0, M]:

    L(D', h) ≤ [d_α(D' ‖ D) L(D, h)]^((α−1)/α) M^(1/α)

The paper uses the second three times: from D_λ to a target, from D_k to its estimate, and from D_k
to the same inputs with the target's labels, D_k,T(x, y) = D_k(x) D_T(y|x), since
d_α(D_k,T ‖ D_k)^(α−1) = E_{D_k(x)} d_α(D_T(·|x) ‖ D_k(·|x))^(α−1).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from anymix.core.records import Record

ONE_CONDITIONAL = "All sources share one conditional D(y|x) (not needed for the joint rule)."
MIXTURE = "The target is a mixture of the sources."
THIS_Z = "Holds for this z, whatever the densities, if its losses on the sources are as stated."
ESTIMATED = (
    "The densities in use are at the stated divergence from the true ones, γ is measured under "
    "them (as the pooled measure does), and the target's divergence, 1 if none is stated, is from "
    "their mixtures. "
)
OTHER_Z = (
    "Some z reaches it, but which one depends on the target's own conditional: a z fitted on the "
    "sources alone is not certified by it."
)


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
    """

    name: str
    value: float
    paper: str
    assumptions: str
    checked: bool


@dataclass(frozen=True)
class Assumptions(Record):
    """What the tables cannot show and the user states; each number opens further bounds.

    Attributes
    ----------
    loss_bound : float
        M, a bound on the loss of every source everywhere.  Without it the largest loss seen is
        taken, which is a bound for the tables only.
    alpha : float
        α > 1 of the divergences, infinity allowed.
    target_divergence : float
        d_α(D_T ‖ mixtures of the sources) ≥ 1; see `anymix.core.nearest_mixture`.
    density_divergence : float or array (p,)
        d_α(D̂_k ‖ D_k) ≥ 1, how far the densities in use are from the true ones.
    conditional_divergence : float or array (p,)
        d_α(D_k,T ‖ D_k) ≥ 1, how far the target's labels are from those of source k.
    mass_floor, n_classes : float, int
        μ with D_k(x, y) ≥ μ U(x, y), and |Y|: for the normalised rule.
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
        if (self.mass_floor is None) != (self.n_classes is None):
            raise ValueError("mass_floor and n_classes go together: state both or neither.")
        for name in ("loss_bound", "mass_floor", "n_classes"):
            if given[name] is not None and not 0 < given[name] < np.inf:
                raise ValueError(f"{name} must be positive and finite; got {given[name]}.")


class Facts(NamedTuple):
    """What certify has measured and the theorems start from.

    slack is ηM; worst is max_k L_k(z), or its upper confidence bound; checked says that the tables
    are the distributions.
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


def hoelder(loss: float, ratio: ArrayLike, alpha: float, loss_bound: float) -> float:
    """max_k [d_k L]^((α−1)/α) M^(1/α), at most M: the loss on distributions at ratio d_k from here.

    >>> hoelder(0.1, 2.0, np.inf, 1.0)
    0.2

    Paper: Cor. 10.
    """
    d = float(np.max(np.asarray(ratio, dtype=float)))
    if d == np.inf:
        return loss_bound
    return min(loss_bound, float((d * loss) ** (1 - 1 / alpha) * loss_bound ** (1 / alpha)))


def paper_bounds(facts: Facts, given: Assumptions) -> tuple[Bound, ...]:
    """Return every bound whose inputs are known.

    Paper: Thm 1, Cor. 2, Thm 3, Cor. 10, Cor. 11, Thm 12, Thm 13.
    """
    return (
        *_mixture_bounds(facts),
        *_normalised_bound(facts, given),
        *_target_bounds(facts, given),
        *_conditional_bounds(facts, given),
    )


def _mixture_bounds(facts: Facts) -> tuple[Bound, ...]:
    """ε + ηM + γ on the loss, ηM + γ_ε on the regret."""
    densities = "The masses are the sources' true densities and no loss is above M."
    words = f"{MIXTURE} {ONE_CONDITIONAL} {densities}"
    loss = facts.epsilon + facts.slack + facts.gamma
    regret = facts.slack + facts.own_gamma
    return (
        Bound("loss on any mixture", loss, "Thm 1, Cor. 2", words, facts.checked),
        Bound(
            "loss on any mixture above Σ_k λ_k ε_k",
            regret,
            "Lemma 4, Cor. 2",
            words,
            facts.checked,
        ),
    )


def _normalised_bound(facts: Facts, given: Assumptions) -> tuple[Bound, ...]:
    """ε + ηM + γ + log(1 + η|Y|/μ), which is at most the paper's ε + η(M + |Y|/μ) + γ."""
    if given.mass_floor is None or given.n_classes is None:
        return ()
    if not facts.cross_entropy:
        raise ValueError("mass_floor is for the normalised rule, which needs the cross-entropy.")
    price = float(np.log1p(facts.eta * given.n_classes / given.mass_floor))
    value = facts.epsilon + facts.slack + facts.gamma + price
    words = f"{MIXTURE} D_k(x, y) ≥ μ U(x, y) everywhere, and one conditional for all sources."
    return (Bound("loss of the normalised rule on any mixture", value, "Thm 3", words, False),)


def _target_bounds(facts: Facts, given: Assumptions) -> tuple[Bound, ...]:
    """Hölder's step to a target outside the family, with true or with estimated densities."""
    alpha, M, d = given.alpha, facts.loss_bound, given.target_divergence
    estimated = given.density_divergence
    if (
        alpha is None
        or given.conditional_divergence is not None
        or (d is None and estimated is None)
    ):
        return ()
    epsilon, worst, paper = facts.epsilon, facts.worst, "Cor. 10"
    words = "The target's divergence is from the mixtures of the sources. "
    if estimated is not None:
        epsilon, worst = (hoelder(loss, estimated, alpha, M) for loss in (epsilon, worst))
        words, paper = ESTIMATED, "Cor. 11"
    d = 1.0 if d is None else d
    value = hoelder(epsilon + facts.slack + facts.gamma, d, alpha, M)
    this_z = hoelder(worst, d, alpha, M)
    name = "loss on the target"
    return (
        Bound(name, value, paper, words + ONE_CONDITIONAL, False),
        Bound(f"{name}, this z", this_z, f"{paper}, proof", words + THIS_Z, False),
    )


def _conditional_bounds(facts: Facts, given: Assumptions) -> tuple[Bound, ...]:
    """ε_T = max_k [d_α(D_k,T ‖ D_k) ε]^((α−1)/α) M^(1/α), and the same step for h_z itself."""
    alpha, M, d = given.alpha, facts.loss_bound, given.target_divergence
    if alpha is None or given.conditional_divergence is None:
        return ()
    conditional = given.conditional_divergence
    value = hoelder(facts.epsilon, conditional, alpha, M) + facts.slack + facts.gamma
    this_z = hoelder(facts.worst, conditional, alpha, M)
    paper = "Thm 1"
    if d is not None:
        paper = "Thm 13" if facts.cross_entropy else "Thm 12"
        value, this_z = hoelder(value, d, alpha, M), hoelder(this_z, d, alpha, M)
    words = "The target's labels are at the stated divergence from each source's. "
    name = "loss on a target with its own conditional"
    return (
        Bound(name, value, paper, words + OTHER_Z, False),
        Bound(f"{name}, this z", this_z, f"{paper}, proof", words + THIS_Z, False),
    )
