"""certify(problem, z): what is guaranteed for h_z, in numbers, words, and with confidence.

Three kinds of statement stand side by side:

    measured     robust_loss = max_k L_k and regret = max_k (L_k − ε_k), on the tables as they are
    confident    regret_upper and loss_upper, each with its ground (`statements`)
    bounds       the paper's theorems as numbers, each with its assumptions in words

z is fixed before the points are seen, or one of a finite set of candidates that are certified all
at once.  What was learned in parts, each without some of the rows, is certified by these rows
themselves: `certify_rows`.

Finitely many z: what the points chose from, when z is certified on the points it was fitted on.

A bound that holds for every candidate at once holds for the one that was chosen, however it was
chosen.  Weights act through their ratios, so log z is rounded; a source's odds against the largest
one move by a tenth at most.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, cast

import numpy as np
from numpy.typing import ArrayLike

from anymix._arrays import FloatArray
from anymix.core import simplex
from anymix.core.averaging import OwnMeasure
from anymix.core.guarantees.bounds import paper_bounds
from anymix.core.guarantees.certificate import Certificate
from anymix.core.guarantees.confidence import Method
from anymix.core.guarantees.facts import gather, rule_loss_bound
from anymix.core.guarantees.premises import Assumptions
from anymix.core.guarantees.statements import (
    BoundOptions,
    LossSummary,
    RowLosses,
    Statement,
    lower_ends,
    state,
)
from anymix.core.losses import loss_name
from anymix.core.problem import EvaluatedPoints, gap
from anymix.core.records import Solution

# Sizes of a step of log z, and how many of them a weight may lie below the largest before it is
# zero: e^−10, where the share η/p that every source has anyway is the larger one.
LOG_STEP = 0.2
N_LEVELS = 51


def rounded(z: FloatArray) -> FloatArray:
    """Round log(z / max z) to multiples of 0.2 and set z to zero from 51 steps below on.

    >>> rounded(np.array([0.6, 0.4, 1e-9])).round(4)
    array([0.5987, 0.4013, 0.    ])
    """
    with np.errstate(divide="ignore"):
        steps = np.rint(-np.log(z / z.max()) / LOG_STEP)
    return simplex.clean(np.where(steps < N_LEVELS, np.exp(-LOG_STEP * steps), 0.0))


# More rounded z than this many sources have are too many to count, and to spread an error over.
MOST_SOURCES = 150


def check_n_sources(p: int) -> None:
    """Refuse more sources than a z can be certified for on the points that it is fitted on.

    >>> check_n_sources(200)
    Traceback (most recent call last):
    ...
    ValueError: 200 sources are too many: z can be certified on the points it is learned from for
    150 at most; leave some out, pool those that are alike, or certify on held-out points.
    """
    if p > MOST_SOURCES:
        raise ValueError(
            f"{p} sources are too many: z can be certified on the points it is learned from for "
            f"{MOST_SOURCES} at most; leave some out, pool those that are alike, or certify on "
            "held-out points."
        )


def n_rounded(p: int) -> float:
    """Return how many rounded z there are at most, p·52^(p−1).

    p choices of the largest entry, and 51 levels or zero for each of the others.
    """
    check_n_sources(p)
    return p * float(N_LEVELS + 1) ** (p - 1)


METHODS = ("auto", "betting", "bernstein", "hoeffding", "student")


def certify(
    problem: EvaluatedPoints,
    z: ArrayLike | Solution,
    *,
    confidence: float | None = 0.95,
    method: Method | str = "auto",
    held_out: bool | None = None,
    clip: float | None = None,
    assumptions: Assumptions | None = None,
) -> Certificate:
    """State what is guaranteed for h_z.

    Parameters
    ----------
    problem : Problem, or another Judgement
        With the own measure and held-out points the losses are estimates, and upper confidence
        bounds are given; with the pooled measure the tables count as the distributions themselves.
        Points of a source must be independent draws from it.
    z : array (p,) or Solution
    confidence : float or None
        Probability that `loss_upper` and `regret_upper` both hold; None leaves them out.
    method : "auto", "betting", "bernstein", "hoeffding" or "student"
        See `anymix.core.guarantees.confidence`.  "auto" bets where M or a clip is stated and the
        points have equal weights, which is exact; otherwise it takes Student's bound where every
        source has 200 points, and claims nothing where one has fewer.
    held_out : bool, optional
        Whether the points are new to z.  By default they are unless z is a Solution that was found
        on some of them.  A z fitted here is rounded (log z to steps of 0.2), and the confidence is
        spread over all such z, so that it holds whichever of them the points have chosen.
    clip : float, optional
        c: both bounds are on means of min(ℓ, c), so that they can be exact where no M is known; it
        must have been chosen without these points.  Without it Student's bound clips at a high
        quantile of the own models' losses here, as it would not hold for rare large losses.
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
    On any mixture of the 2 sources the model loses at most 2.495e-07 more than each source's own
    model at home, and at most 2.495e-07 in all (squared error in squared units of the
    target), taking the tables as the truth.
    >>> certificate.bounds[0].paper, round(certificate.bounds[0].value, 4)
    ('Thm 1, Cor. 2, proof', 0.0005)

    Paper: Thm 1, Cor. 2, Lemma 4.
    """
    given = assumptions or Assumptions()
    given.check()
    weights = simplex.check(z.z if isinstance(z, Solution) else z, problem.n_sources)
    check_stated(given, problem.loss_bound)
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; got {method!r}.")
    estimated = confidence is not None and _is_estimate(problem, method)
    n_candidates = 1.0
    if estimated and not _is_held_out(problem, z, held_out):
        weights, n_candidates = rounded(weights), n_rounded(problem.n_sources)
    evidence, terms, lower = RowLosses.at(problem, weights), None, None
    if estimated and confidence is not None:
        chosen = _chosen(method, given, clip)
        M = None if given.loss_bound is None else rule_loss_bound(problem, given)
        terms = BoundOptions.at(confidence, n_candidates, method=chosen, loss_bound=M, clip=clip)
        lower = lower_ends(evidence, terms.delta)
    name = loss_name(problem.loss)
    found = certify_rows(evidence, terms, z=weights, eta=problem.eta, loss=name, assumptions=given)
    # A bound on clipped losses says nothing of losses as they are.
    upper = found.loss_upper if found.clip is None else None
    facts = gather(problem, weights, given, upper=upper, lower=lower, confidence=confidence)
    M = problem.loss_bound if given.loss_bound is None else given.loss_bound
    earned = confidence if found.loss_upper is not None or found.regret_upper is not None else None
    return replace(
        found,
        bounds=paper_bounds(facts, given),
        confidence=earned,
        n_candidates=n_candidates,
        loss_bound=float(M),
    )


def certify_rows(
    evidence: LossSummary,
    terms: BoundOptions | None,
    *,
    z: FloatArray,
    eta: float,
    loss: str,
    assumptions: Assumptions | None = None,
) -> Certificate:
    """State what rows guarantee for what is judged there, be it one h_z or an average of several.

    Without terms the tables count as the distributions themselves.  `confidence` is that of the
    terms, or None if nothing was earned; the theorems are left to callers who have a problem.

    Paper: Cor. 2, Lemma 4.
    """
    found = Statement() if terms is None else state(evidence, terms)
    L, own = evidence.source_losses, evidence.own_losses
    earned = terms is not None and found.earned
    return Certificate(
        z=z,
        epsilon=float(own.max()),
        own_losses=own,
        source_losses=L,
        robust_loss=float(L.max()),
        regret=float((L - own).max()),
        gamma=gap(L, z),
        eta=eta,
        loss_bound=evidence.largest,
        bounds=(),
        confidence=1.0 - terms.delta if terms is not None and earned else None,
        method=found.method,
        loss_upper=found.loss.upper,
        regret_upper=found.regret.upper,
        n_candidates=1.0,
        assumptions=assumptions or Assumptions(),
        loss=loss,
        loss_ground="tables" if terms is None else found.loss.ground,
        regret_ground="tables" if terms is None else found.regret.ground,
        clip=found.clip,
        n_rows=evidence.n_rows,
        n_parts=evidence.n_folds,
    )


def _chosen(method: str, given: Assumptions, clip: float | None) -> Method | Literal["auto"]:
    """Refuse an exact bound without a bound on the loss."""
    if method not in ("auto", "student") and given.loss_bound is None and clip is None:
        raise ValueError(
            f"method={method!r} needs a bound on the loss: pass Assumptions(loss_bound=M), or "
            "use method='student'."
        )
    return cast("Method | Literal['auto']", method)


def _is_estimate(problem: EvaluatedPoints, method: str) -> bool:
    """Whether the points are draws; with the pooled measure they are the distributions."""
    return method != "auto" or isinstance(problem.measure, OwnMeasure)


def _is_held_out(problem: EvaluatedPoints, z: ArrayLike | Solution, held_out: bool | None) -> bool:
    """Unless told, look whether a Solution was found on some of these points.

    Of points that repeat each other only the losses tell, where all of them are the same.
    """
    if held_out is not None or not isinstance(z, Solution):
        return held_out is not False
    if z.seen is not None and z.seen.have_seen(problem.content()):
        return False
    losses = problem.source_losses(z.z)
    return not np.allclose(losses, z.source_losses, rtol=1e-9, atol=1e-300)


def check_stated(given: Assumptions, largest: float) -> None:
    """Refuse a bound M on the loss that the largest loss of these rows refutes."""
    if given.loss_bound is not None and largest > given.loss_bound * (1 + 1e-9):
        raise ValueError(
            f"loss_bound is {given.loss_bound:g}, but a loss of {largest:g} occurs on these rows; "
            "state at least that, or clip the predictions."
        )
