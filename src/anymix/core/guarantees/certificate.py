"""certify(problem, z): what is guaranteed for h_z, in numbers, words, and with confidence.

Three kinds of statement stand side by side:

    measured     robust_loss = max_k L_k and regret = max_k (L_k − ε_k), on the tables as they are
    confident    loss_upper and regret_upper, which the true ones exceed with probability ≤ δ
    bounds       the paper's theorems as numbers, each with its assumptions in words

z is fixed before the points are seen, or one of a finite set of candidates that are certified all
at once; for each of them the worst source is a fixed one, so that a bound on the worst loss needs
no correction for the number of sources.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from anymix._arrays import FloatArray
from anymix.core import simplex
from anymix.core.guarantees.bounds import Assumptions, Bound, Facts, paper_bounds
from anymix.core.guarantees.candidates import n_rounded, rounded
from anymix.core.guarantees.confidence import Method, mean_upper_bound
from anymix.core.judgement import Judgement, gap
from anymix.core.losses import loss_name
from anymix.core.measures import OwnMeasure
from anymix.core.records import Record, Solution


@dataclass(frozen=True, eq=False)
class Certificate(Record):
    """What is guaranteed for h_z.

    Attributes
    ----------
    z : array (p,)
        The z that is certified.  It differs from the z handed in only if that was fitted on the
        same points: see `certify`.
    epsilon, own_losses : float, array (p,)
        ε = max_k ε_k and ε_k = L(D_k, h_k).
    source_losses, robust_loss, regret, gamma : array (p,), float, float, float
        L_k(z), max_k L_k, max_k (L_k − ε_k) and γ(z), as measured.
    eta, loss_bound : float
        η and M.
    bounds : tuple of Bound
        The theorems whose inputs are known.
    confidence, method : float or None, str or None
        With what probability the next two hold (both together), and by which bound; None when the
        tables are taken as the distributions themselves.
    loss_upper, regret_upper : float or None
        Upper confidence bounds on max_k L_k and on max_k (L_k − ε_k).  Where no loss is negative
        the second is at most the first.
    n_candidates : float
        How many choices the confidence is spread over: 1, or if z was fitted here all rounded z,
        times `choices`.
    assumptions : Assumptions
        What the user stated.
    loss : str
        Name of the loss.
    sentence : str
        What is guaranteed, in one plain sentence; made from the numbers, never read.
    """

    z: FloatArray
    epsilon: float
    own_losses: FloatArray
    source_losses: FloatArray
    robust_loss: float
    regret: float
    gamma: float
    eta: float
    loss_bound: float
    bounds: tuple[Bound, ...]
    confidence: float | None
    method: str | None
    loss_upper: float | None
    regret_upper: float | None
    n_candidates: float
    assumptions: Assumptions
    loss: str
    sentence: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sentence", self._sentence())

    def __str__(self) -> str:
        return self.sentence

    def _sentence(self) -> str:
        """Say in one plain sentence what is guaranteed."""
        p = self.z.size
        where = "On the source" if p == 1 else f"On any mixture of the {p} sources"
        loss = self.robust_loss if self.loss_upper is None else self.loss_upper
        regret = self.regret if self.regret_upper is None else self.regret_upper
        beside = f"at most {regret:.4g} above" if regret >= 0 else f"at least {-regret:.4g} below"
        return (
            f"{where} the loss is at most {loss:.4g} ({self.loss}), and {beside} each source's own "
            f"model at home, {self._how}."
        )

    @property
    def _how(self) -> str:
        """Name the ground that the sentence stands on."""
        if self.confidence is None:
            return "taking the tables as the truth"
        about = "about " if self.method == "student" else ""
        fitted = ", though z was fitted on the same points" if self.n_candidates > 1 else ""
        return f"with {about}{100 * self.confidence:g} % confidence{fitted}"


def certify(
    problem: Judgement,
    z: ArrayLike | Solution,
    *,
    confidence: float | None = 0.95,
    method: Method | str = "auto",
    held_out: bool | None = None,
    choices: float = 1,
    assumptions: Assumptions | None = None,
) -> Certificate:
    """State what is guaranteed for h_z.

    Parameters
    ----------
    problem : Problem, or another Judgement
        With the own measure and held-out points the losses are estimates, and upper confidence
        bounds are given; with the pooled measure the tables count as the distributions themselves.
    z : array (p,) or Solution
    confidence : float or None
        Probability that `loss_upper` and `regret_upper` both hold; None leaves them out.
    method : "auto", "betting", "bernstein", "hoeffding" or "student"
        See `anymix.core.guarantees.confidence`.  "auto" bets where M is stated and the points
        have equal weights, and is Student's otherwise: the largest loss seen is not a bound on
        the largest there is.
    held_out : bool, optional
        Whether the points are new to z.  By default they are unless z is a Solution of this very
        problem.  A z fitted here is rounded (log z to steps of 0.2), and the confidence is spread
        over all such z, so that it holds whichever of them the points have chosen.
    choices : float
        How many weighings, say, the points have chosen from along with z; the confidence is spread
        over these too where z was fitted here.
    assumptions : Assumptions, optional
        M, α, divergences and the like, for the bounds that need them.

    Returns
    -------
    Certificate

    Examples
    --------
    >>> from anymix.core import Problem
    >>> problem = Problem([[1, 0], [0, 1]], [[0, 0], [1, 1]], [0, 1], eta=1e-3)
    >>> certificate = certify(problem, [0.5, 0.5])
    >>> print(certificate.sentence)
    On any mixture of the 2 sources the loss is at most 2.495e-07 (squared), and at most 2.495e-07
    above each source's own model at home, taking the tables as the truth.
    >>> [(bound.paper, round(bound.value, 4)) for bound in certificate.bounds]
    [('Thm 1, Cor. 2', 0.001), ('Lemma 4, Cor. 2', 0.001)]

    Paper: Thm 1, Cor. 2, Lemma 4.
    """
    given = assumptions or Assumptions()
    given.check()
    weights = simplex.check(z.z if isinstance(z, Solution) else z, problem.n_sources)
    _loss_bound(problem, given)
    means = None if confidence is None else _chosen_method(problem, method, given)
    n_candidates = 1.0
    if means is not None and not _is_held_out(problem, z, held_out):
        weights, n_candidates = rounded(weights), choices * n_rounded(problem.n_sources)
    loss_upper = regret_upper = None
    if means is not None and confidence is not None:
        # Half of the error probability for each of the two statements.
        delta = _error(confidence) / (2 * n_candidates)
        loss_upper, regret_upper = _upper_bounds(problem, weights, means, delta, given)
    L, own = problem.source_losses(weights), problem.own_losses
    facts = _facts(problem, weights, L, loss_upper, given)
    return Certificate(
        z=weights,
        epsilon=facts.epsilon,
        own_losses=own,
        source_losses=L,
        robust_loss=float(L.max()),
        regret=float((L - own).max()),
        gamma=facts.gamma,
        eta=problem.eta,
        loss_bound=facts.loss_bound,
        bounds=paper_bounds(facts, given),
        confidence=confidence if means else None,
        method=means,
        loss_upper=loss_upper,
        regret_upper=regret_upper,
        n_candidates=n_candidates,
        assumptions=given,
        loss=loss_name(problem.loss),
    )


def _facts(
    problem: Judgement, z: FloatArray, L: FloatArray, upper: float | None, given: Assumptions
) -> Facts:
    own, M = problem.own_losses, _loss_bound(problem, given)
    return Facts(
        epsilon=float(own.max()),
        slack=problem.eta * _reference_mass(problem) * (M - _lowest(problem, z, given)),
        gamma=gap(L, z),
        own_gamma=gap(L - own, z),
        loss_bound=M,
        worst=float(L.max()) if upper is None else upper,
        eta=problem.eta,
        checked=problem.pooled,
        cross_entropy=problem.loss.logarithmic,
    )


def _error(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie strictly between 0 and 1; got {confidence}.")
    return 1.0 - confidence


def _chosen_method(problem: Judgement, method: str, given: Assumptions) -> Method | None:
    """Bet with a stated M and equal weights, else take Student's; neither for exact tables."""
    if method != "auto":
        if method != "student" and given.loss_bound is None:
            raise ValueError(
                f"method={method!r} needs a bound on the loss: pass Assumptions(loss_bound=M), or "
                "use method='student'."
            )
        return cast(Method, method)
    if not isinstance(problem.measure, OwnMeasure):
        return None
    sources = range(problem.n_sources)
    equal = all(np.ptp(w[w > 0]) <= 1e-9 * w.max() for _, w in map(problem.measure.take, sources))
    return "betting" if equal and given.loss_bound is not None else "student"


def _is_held_out(problem: Judgement, z: ArrayLike | Solution, held_out: bool | None) -> bool:
    """Unless told, take a Solution whose losses are those of this problem as fitted on it."""
    if held_out is not None or not isinstance(z, Solution):
        return held_out is not False
    losses = problem.source_losses(z.z)
    return not np.allclose(losses, z.source_losses, rtol=1e-9, atol=1e-300)


def _loss_bound(problem: Judgement, given: Assumptions) -> float:
    if given.loss_bound is None:
        return problem.loss_bound
    if problem.loss_bound > given.loss_bound * (1 + 1e-9):
        raise ValueError(
            f"loss_bound is {given.loss_bound:g}, but a loss of {problem.loss_bound:g} occurs on "
            "these rows; state at least that, or clip the predictions."
        )
    return float(given.loss_bound)


def _reference_mass(problem: Judgement) -> float:
    """ΣU; with the own measure the masses are known up to a factor per point, and U is a mean."""
    return float(problem.reference.sum()) if problem.pooled else 1.0


def _lowest(problem: Judgement, z: FloatArray, given: Assumptions) -> float:
    """min(0, least loss of h_z): Jensen's step needs losses ≥ 0, and shifts those that are not."""
    lowest = float(problem.loss.value(problem.ratio(z)[0], problem.targets).min())
    # A loss that is a difference of logarithms can miss its zero by a rounding error.
    if lowest > -1e-9:
        return 0.0
    if given.alpha is not None:
        raise ValueError("Hölder's bounds need losses ≥ 0; this loss is negative at some points.")
    return lowest


def _upper_bounds(
    problem: Judgement, z: FloatArray, method: Method, delta: float, given: Assumptions
) -> tuple[float, float]:
    """Bound max_k L_k and max_k (L_k − ε_k) from the points of each source, paired."""
    M, h, rng = given.loss_bound, problem.ratio(z)[0], np.random.default_rng(0)
    losses, regrets = [], []
    limits = (None, None) if M is None else ((0.0, M), (-M, M))
    for k in range(problem.n_sources):
        points, w = problem.measure.take(k)
        y = problem.targets[points]
        loss = problem.loss.value(h[points], y)
        difference = loss - problem.loss.value(problem.predictions[k, points], y)
        there = w > 0
        x, d, w = loss[there], difference[there], w[there]
        losses.append(mean_upper_bound(x, delta, method, limits[0], w, rng))
        regrets.append(mean_upper_bound(d, delta, method, limits[1], w, rng))
    worst, regret = max(losses), max(regrets)
    # ε_k ≥ 0 then, so that L_k − ε_k ≤ L_k.
    return worst, min(worst, regret) if _never_negative(problem) else regret


def _never_negative(problem: Judgement) -> bool:
    """Whether no source has a negative loss at any point."""
    h, y = problem.predictions, problem.targets
    return all(problem.loss.value(own, y).min() > -1e-9 for own in h)
