"""The paper's theorems as numbers, each with its assumptions in words.

Two inequalities carry them all.  Jensen's, for the mixture D_λ and losses in [0, M]:

    L(D_λ, h_z) ≤ ε + σ + γ(z)      L_k(z) − ε_k ≤ σ + γ_ε(z)      L(D_z, h_z) ≤ Σ_k z_k ε_k + σ
    σ = η [(1/p) Σ_k L(U, h_k) − L(U, h_z)]  ≤  (η/p) Σ_k L(U, h_k)  ≤  ηM

of which the paper takes the last σ; with U the mean density the sum is the mean of the cross-losses
L(D_j, h_k).  And Hölder's, for any two distributions and losses in [0, M]:

    L(D', h) ≤ [d_α(D' ‖ D) L(D, h)]^((α−1)/α) M^(1/α)

The paper uses the second three times: from D_λ to a target, from D_k to its estimate, and from D_k
to the same inputs with the target's labels, D_k,T(x, y) = D_k(x) D_T(y|x), since
d_α(D_k,T ‖ D_k)^(α−1) = E_{D_k(x)} d_α(D_T(·|x) ‖ D_k(·|x))^(α−1).

The normalised rule h_z(x, y)/S(x), S(x) = Σ_y h_z(x, y), pays E log S on top, whatever the sources:

    S ≤ min(p, |Y|), since w_k ≤ 1 and Σ_y h_k = 1          (App. C shows that log p can be due)
    S ≤ 1 + η/(μ + η)                                       with one conditional and D_k ≥ μU

For the second let a_k = z_k D_k/D_z, which no longer depends on y, and t = ηU/(D_z + ηU), at most
η/(μ + η).  Then h_z = (1 − t) Σ a_k h_k + t Σ h_k/p, both sums over k have total 1 over y, and so
S − 1 = Σ_y t (Σ h_k/p − Σ a_k h_k) ≤ η/(μ + η) ≤ η/μ, where the paper has η|Y|/μ.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from anymix._arrays import FloatArray
from anymix.core.guarantees.contradiction import (
    LOSS,
    NORMALISED_LOSS,
    NORMALISED_REGRET,
    NORMALISED_TARGET,
    REGRET,
    TARGET,
    mark_assumptions,
    mark_contradicted,
)
from anymix.core.guarantees.premises import Assumptions as Assumptions
from anymix.core.guarantees.premises import Bound as Bound
from anymix.core.guarantees.premises import Facts as Facts
from anymix.core.guarantees.premises import Measured as Measured

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
AWAY = "The target's divergence is from the mixtures of the sources. "
PAPERS = ("Thm 1, Cor. 2", "Lemma 4, Cor. 2")
DENSITIES = "The masses are the sources' true densities"
THM_3 = "D_k(x, y) ≥ μ U(x, y) everywhere, and one conditional for all sources."


def hoelder(loss: float, ratio: ArrayLike, alpha: float, loss_bound: float) -> float:
    """max_k [d_k L]^((α−1)/α) M^(1/α), at most M: the loss on distributions at ratio d_k from here.

    >>> hoelder(0.1, 2.0, np.inf, 1.0)
    0.2

    Paper: Cor. 10.
    """
    return float(np.max(_carried(loss, ratio, alpha, loss_bound)))


def _carried(loss: ArrayLike, ratio: ArrayLike, alpha: float, M: float) -> FloatArray:
    """[d_k L_k]^((α−1)/α) M^(1/α), at most M, for every k."""
    L, d = np.broadcast_arrays(np.asarray(loss, dtype=float), np.asarray(ratio, dtype=float))
    # An infinite divergence says nothing, even where the loss is zero.
    far = np.isinf(d)
    inside = np.where(far, 1.0, d) * L
    return np.where(far, M, np.minimum(M, inside ** (1 - 1 / alpha) * M ** (1 / alpha)))


def paper_bounds(facts: Facts, given: Assumptions) -> tuple[Bound, ...]:
    """Return every bound whose inputs are known; those that the facts refute are marked.

    Paper: Thm 1, Cor. 2, Thm 3, Cor. 10, Cor. 11, Thm 12, Thm 13, App. C.
    """
    bounds = [
        *_mixture_bounds(facts),
        *_normalised_bounds(facts, given),
        *_target_bounds(facts, given),
        *_conditional_bounds(facts, given),
    ]
    bounds = mark_assumptions(bounds, facts, given)
    if facts.measured is None:
        return tuple(bounds)
    return mark_contradicted(bounds, facts.measured, facts.normalised)


def _mixture_bounds(facts: Facts) -> list[Bound]:
    """ε + σ + γ on the loss and σ + γ_ε on the regret, first with the least σ, then with ηM.

    Both pay log S more if the rule is normalised.
    """
    names = (NORMALISED_LOSS, NORMALISED_REGRET) if facts.normalised else (LOSS, REGRET)
    sums = facts.epsilon + facts.gamma, facts.own_gamma
    papers = ("Cor. 2, App. C", "Lemma 4, App. C") if facts.normalised else PAPERS
    conditional = "" if facts.normalised else f" {ONE_CONDITIONAL}"
    words = f"{MIXTURE}{conditional} {DENSITIES}"
    made = []
    for name, rest, paper in zip(names, sums, papers, strict=True):
        if facts.cross_slack is not None:
            value = rest + facts.least_slack + facts.price
            text = f"{words} and the sources' losses away from home are as measured."
            made.append(Bound(name, value, f"{paper}, proof", text, facts.checked))
        value = rest + facts.slack + facts.price
        text = f"{words} and no loss is above M."
        made.append(Bound(name, value, paper, text, facts.checked))
    return made


def _normalised_bounds(facts: Facts, given: Assumptions) -> list[Bound]:
    """ε + σ + γ + log(1 + η/(μ + η)), and Hölder's steps from there.

    The rule's own loss is then at most M + log(1 + η/(μ + η)), which takes the place of M.
    """
    mu = given.mass_floor
    if mu is None:
        return []
    if not facts.cross_entropy:
        raise ValueError("mass_floor is for the normalised rule, which needs the cross-entropy.")
    price = float(np.log1p(facts.eta / (mu + facts.eta)))
    M = facts.loss_bound if facts.normalised else facts.loss_bound + price
    value = facts.epsilon + facts.least_slack + facts.gamma + price
    words = f"{MIXTURE} {THM_3} {DENSITIES}."
    bounds = [Bound(NORMALISED_LOSS, value, "Thm 3", words, False)]
    alpha, d, estimated = given.alpha, given.target_divergence, given.density_divergence
    if alpha is None or given.conditional_divergence is not None or (d, estimated) == (None, None):
        return bounds
    epsilon, slack, paper, how = facts.epsilon, facts.least_slack, "Thm 3, Cor. 10", AWAY
    if estimated is not None:
        epsilon, slack = hoelder(epsilon, estimated, alpha, M), _slack_there(facts)
        paper, how = "Thm 3, Cor. 11", ESTIMATED
    inside = epsilon + slack + facts.gamma + price
    value = hoelder(inside, 1.0 if d is None else d, alpha, M)
    of_estimates = "Both hold of the densities in use: " if estimated is not None else ""
    words = f"{how}{of_estimates}{THM_3}"
    return [*bounds, Bound(NORMALISED_TARGET, value, paper, words, False)]


def _slack_there(facts: Facts) -> float:
    """σ under the densities in use: cross-losses under the true ones say nothing about it."""
    return facts.least_slack if facts.checked else facts.slack


def _target_bounds(facts: Facts, given: Assumptions) -> list[Bound]:
    """Hölder's step to a target outside the family, with true or with estimated densities."""
    alpha, M, d = given.alpha, facts.loss_bound, given.target_divergence
    estimated = given.density_divergence
    if (
        alpha is None
        or given.conditional_divergence is not None
        or (d is None and estimated is None)
    ):
        return []
    epsilon, worst, slack, paper = facts.epsilon, facts.worst, facts.least_slack, "Cor. 10"
    words = AWAY
    if estimated is not None:
        epsilon, worst = (hoelder(loss, estimated, alpha, M) for loss in (epsilon, worst))
        words, paper, slack = ESTIMATED, "Cor. 11", _slack_there(facts)
    d = 1.0 if d is None else d
    value = hoelder(epsilon + slack + facts.gamma + facts.price, d, alpha, M)
    this_z = hoelder(worst, d, alpha, M)
    name = NORMALISED_TARGET if facts.normalised else TARGET
    conditional = f"{DENSITIES}." if facts.normalised else ONE_CONDITIONAL
    if estimated is not None and facts.normalised:
        conditional = "Its joint densities are the ones in use."
    return [
        Bound(name, value, paper, words + conditional, False),
        Bound(f"{name}, this z", this_z, f"{paper}, proof", words + THIS_Z, False),
    ]


def _conditional_bounds(facts: Facts, given: Assumptions) -> list[Bound]:
    """ε_T = max_k [d_α(D_k,T ‖ D_k) ε]^((α−1)/α) M^(1/α), and the same step for h_z itself.

    With estimated densities one step more, from D_k,T to the estimated inputs with the same labels,
    whose divergence is that of the inputs: d_α(D̂_k,T ‖ D_k,T) = d_α(D̂_k ‖ D_k).
    """
    alpha, M, d = given.alpha, facts.loss_bound, given.target_divergence
    if alpha is None or given.conditional_divergence is None:
        return []
    steps = [given.conditional_divergence]
    paper = ("Thm 13" if facts.cross_entropy else "Thm 12") if d is not None else "Thm 1"
    words = "The target's labels are at the stated divergence from each source's. "
    if given.density_divergence is not None:
        steps.append(given.density_divergence)
        paper, words = f"{paper}, Cor. 11", words + ESTIMATED
    epsilon_t, this_z = (_through(loss, steps, alpha, M) for loss in (facts.epsilon, facts.worst))
    value = epsilon_t + facts.slack + facts.gamma
    if d is not None:
        value, this_z = hoelder(value, d, alpha, M), hoelder(this_z, d, alpha, M)
    name = "loss on a target with its own conditional"
    some_z = [Bound(name, value, paper, words + OTHER_Z, False)]
    own_z = Bound(f"{name}, this z", this_z, f"{paper}, proof", words + THIS_Z, False)
    # The theorems are for rules that weigh by D_k(x); Hölder's step carries any h.
    return [own_z] if facts.normalised else [*some_z, own_z]


def _through(loss: float, steps: list[ArrayLike], alpha: float, M: float) -> float:
    """max_k of Hölder's steps one after the other, each with the k-th divergence."""
    carried: ArrayLike = loss
    for ratio in steps:
        carried = _carried(carried, ratio, alpha, M)
    return float(np.max(carried))
