"""The paper's theorems as numbers, each with its assumptions in words.

All of them follow from two inequalities.  Jensen's, for the mixture D_λ and losses in [0, M]:

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

Hölder's bound holds for every α > 1 at once, so take the least.  With t = 1/α its logarithm is
(1 − t)(log L + D_α) + t log M, and (1 − t) D_{1/t}(P ‖ Q) = t log Σ P (P/Q)^((1−t)/t) is the
perspective of the cumulant function of log P/Q at (1 − t, t): convex in t, so that there is one
valley between t = 0 (α = ∞, the largest ratio) and t = 1 (α = 1, where the bound is M).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar

from anymix._arrays import FloatArray
from anymix.core import inputs
from anymix.core.guarantees.premises import (
    LOSS,
    NORMALISED_LOSS,
    NORMALISED_REGRET,
    NORMALISED_TARGET,
    REGRET,
    TARGET,
    Assumptions,
    Bound,
    Facts,
    mark_contradicted,
    refuted_assumption,
)
from anymix.core.normalised import NormalisedRule

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


def paper_bounds(facts: Facts, assumptions: Assumptions) -> tuple[Bound, ...]:
    """Return every bound whose inputs are known; those that the facts refute are marked.

    Paper: Thm 1, Cor. 2, Thm 3, Cor. 10, Cor. 11, Thm 12, Thm 13, App. C.
    """
    bounds = _mixture_bounds(facts)
    if assumptions.mass_floor is not None:
        bounds += _normalised_bounds(facts, assumptions, assumptions.mass_floor)
    if assumptions.alpha is not None and assumptions.conditional_divergence is not None:
        bounds += _conditional_bounds(
            facts, assumptions, assumptions.alpha, assumptions.conditional_divergence
        )
    elif assumptions.alpha is not None:
        bounds += _target_bounds(facts, assumptions, assumptions.alpha)
    refuted = refuted_assumption(facts, assumptions)
    if refuted:
        bounds = [
            replace(bound, contradicted=refuted) if bound.paper.startswith("Thm 3") else bound
            for bound in bounds
        ]
    return mark_contradicted(bounds, facts)


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


def _normalised_bounds(facts: Facts, assumptions: Assumptions, mu: float) -> list[Bound]:
    """ε + σ + γ + log(1 + η/(μ + η)), and Hölder's steps from there.

    The rule's own loss is then at most M + log(1 + η/(μ + η)), which takes the place of M.
    """
    if not facts.cross_entropy:
        raise ValueError("mass_floor is for the normalised rule, which needs the cross-entropy.")
    price = float(np.log1p(facts.eta / (mu + facts.eta)))
    M = facts.loss_bound if facts.normalised else facts.loss_bound + price
    value = facts.epsilon + facts.least_slack + facts.gamma + price
    words = f"{MIXTURE} {THM_3} {DENSITIES}."
    bounds = [Bound(NORMALISED_LOSS, value, "Thm 3", words, False)]
    alpha, d, estimated = (
        assumptions.alpha,
        assumptions.target_divergence,
        assumptions.density_divergence,
    )
    if (
        alpha is None
        or assumptions.conditional_divergence is not None
        or (d, estimated) == (None, None)
    ):
        return bounds
    epsilon, slack, paper, words = facts.epsilon, facts.least_slack, "Thm 3, Cor. 10", AWAY
    if estimated is not None:
        epsilon, slack = hoelder(epsilon, estimated, alpha, M), _slack_there(facts)
        paper, words = "Thm 3, Cor. 11", f"{ESTIMATED}Both hold of the densities in use: "
    inside = epsilon + slack + facts.gamma + price
    value = hoelder(inside, 1.0 if d is None else d, alpha, M)
    return [*bounds, Bound(NORMALISED_TARGET, value, paper, words + THM_3, False)]


def _slack_there(facts: Facts) -> float:
    """σ under the densities in use: cross-losses under the true ones say nothing about it."""
    return facts.least_slack if facts.checked else facts.slack


def _target_bounds(facts: Facts, assumptions: Assumptions, alpha: float) -> list[Bound]:
    """Hölder's step to a target outside the family, with true or with estimated densities."""
    M, d, estimated = (
        facts.loss_bound,
        assumptions.target_divergence,
        assumptions.density_divergence,
    )
    if d is None and estimated is None:
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


def _conditional_bounds(
    facts: Facts, assumptions: Assumptions, alpha: float, conditional: ArrayLike
) -> list[Bound]:
    """ε_T = max_k [d_α(D_k,T ‖ D_k) ε]^((α−1)/α) M^(1/α), and the same step for h_z itself.

    With estimated densities one step more, from D_k,T to the estimated inputs with the same labels,
    whose divergence is that of the inputs: d_α(D̂_k,T ‖ D_k,T) = d_α(D̂_k ‖ D_k).
    """
    M, d, steps = facts.loss_bound, assumptions.target_divergence, [conditional]
    paper = ("Thm 13" if facts.cross_entropy else "Thm 12") if d is not None else "Thm 1"
    words = "The target's labels are at the stated divergence from each source's. "
    if assumptions.density_divergence is not None:
        steps.append(assumptions.density_divergence)
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


def one_input_example(p: int, eta: float = 1e-3, floor: float = 1e-12) -> NormalisedRule:
    """Return p sources on one input x, each certain of a different label.

    D_k sits on (x, y_k) and h_k(x, y) = 1 for y = y_k, so that every ε_k = 0 and the joint rule,
    not normalised, pays nothing either.  But Σ_k h̄(x, y_k) = 1 for whatever is normalised, so some
    h̄(x, y_k) ≤ 1/p and

        max_k L(D_k, h̄) ≥ log p   for every z and η,   with equality as η → 0,

    which is what an average pays in Lemma 8.  It is also the most that normalising costs: see
    `NormalisedRule.largest_log_total`.

    Parameters
    ----------
    p : int
        Number of sources, and of labels.
    eta : float
        η.
    floor : float
        The replacement of zero probabilities, which the cross-entropy forbids.

    Examples
    --------
    >>> example = one_input_example(3)
    >>> example.own_losses.round(9), bool(example.robust_loss([0.2, 0.3, 0.5]) > np.log(3))
    (array([0., 0., 0.]), True)

    Paper: App. C.
    """
    floor = inputs.positive(floor, "floor")
    if p < 2 or floor > 1 / p:
        raise ValueError(f"p must be 2 or more and floor at most 1/p; got {p} and {floor:g}.")
    sure = np.full((p, p), floor) + (1 - p * floor) * np.eye(p)
    proba = np.repeat(sure[:, None, :], p, axis=1)
    labels = np.arange(p)
    return NormalisedRule.of(np.zeros((p, p)), proba, labels, eta=eta, sample_domain=labels)


# Of 1/α.  The least over mixtures of a convex function need not be convex, so that a coarse
# search comes first.
GRID = np.linspace(0.0, 0.96, 17)
# Beyond α = 200 divergences differ from the largest ratio by less than they can be computed to.
LEAST = 0.005

Divergence = Callable[[float], ArrayLike] | Mapping[float, ArrayLike]


class BestOrder(NamedTuple):
    """α, the divergence d_α there, and the bound."""

    alpha: float
    divergence: float
    value: float


def best_hoelder(loss: float, divergence: Divergence, loss_bound: float) -> BestOrder:
    """min over α from 1.04 to 200, and infinity, of [d_α L]^((α−1)/α) M^(1/α).

    Parameters
    ----------
    loss : float
        L ≥ 0, the loss on the distribution that is started from: max_k L_k(z), or ε + ηM + γ.
    divergence : function of α, or dict {α: d_α}
        d_α, or the d_α of each source; of a dict the best entry is taken.  With upper confidence
        bounds on d_α use a dict, and share their error probability among its entries.
    loss_bound : float
        M, a bound on the loss.

    Returns
    -------
    BestOrder
        Pass `alpha` and `divergence` on as
        ``Assumptions(alpha=best.alpha, target_divergence=best.divergence)``.

    Examples
    --------
    A target with a tenth of its mass where the sources have next to none:

    >>> from anymix.core import nearest_mixture
    >>> target, sources = [0.6, 0.3, 0.1], [[0.7, 0.3, 0.0001], [0.5, 0.4, 0.01]]
    >>> def divergence(alpha):
    ...     return nearest_mixture(target, sources, alpha).value
    >>> best = best_hoelder(0.1, divergence, loss_bound=2.0)
    >>> from anymix.core.guarantees import hoelder
    >>> [round(hoelder(0.1, divergence(a), a, 2.0), 3) for a in (2.0, best.alpha, np.inf)]
    [0.595, 0.553, 0.91]

    Paper: Cor. 10.
    """
    if not (loss >= 0 and np.isfinite(loss) and 0 < loss_bound < np.inf):
        raise ValueError(f"loss must be ≥ 0 and loss_bound > 0; got {loss} and {loss_bound}.")
    of = divergence.__getitem__ if isinstance(divergence, Mapping) else divergence

    def at(alpha: float) -> BestOrder:
        d = float(np.max(np.asarray(of(alpha), dtype=float)))
        return BestOrder(float(alpha), d, hoelder(loss, d, alpha, loss_bound))

    if isinstance(divergence, Mapping):
        if not divergence or min(divergence) <= 1:
            raise ValueError(f"divergence needs orders above 1; got {sorted(divergence)}.")
        return min(map(at, divergence), key=lambda best: best.value)

    def at_inverse(t: float) -> BestOrder:
        return at(np.inf if t <= 0 else 1.0 / float(t))

    values = [at_inverse(t).value for t in GRID]
    i = int(np.argmin(values))
    around = max(GRID[max(i - 1, 0)], LEAST), GRID[min(i + 1, GRID.size - 1)]
    minimum = minimize_scalar(lambda t: at_inverse(t).value, bounds=around, method="bounded")
    return min(at_inverse(float(minimum.x)), at_inverse(GRID[i]), key=lambda best: best.value)
