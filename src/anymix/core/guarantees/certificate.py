"""certify(problem, z): what is guaranteed for h_z, in numbers, words, and with confidence.

There are three kinds of statement:

    measured     robust_loss = max_k L_k and regret = max_k (L_k − ε_k), on the tables as they are
    confident    regret_upper and loss_upper, each with its ground (`upper_bounds`)
    bounds       the paper's theorems as numbers, each with its assumptions in words

z is fixed before the points are seen, or one of a finite set of candidates that are certified all
at once.  What was learned in parts, each without some of the rows, is certified by these rows
themselves: `certify_rows`.

A bound that holds for every candidate at once holds for the one that was chosen, however it was
chosen.  Weights act through their ratios, so that log z is rounded when z is certified on the
points it was fitted on; a source's odds against the largest one move by a tenth at most.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike

from anymix._arrays import FloatArray
from anymix.core import simplex
from anymix.core.averaging import OwnMeasure
from anymix.core.guarantees.bounds import paper_bounds
from anymix.core.guarantees.confidence import Method
from anymix.core.guarantees.loss_summary import LossSummary
from anymix.core.guarantees.premises import Assumptions, Bound, gather, rule_loss_bound
from anymix.core.guarantees.sentence import BLIND, sentence_of
from anymix.core.guarantees.upper_bounds import (
    BoundOptions,
    UpperBounds,
    lower_ends,
    upper_bounds,
)
from anymix.core.losses import loss_name
from anymix.core.mixtures import ShareRange
from anymix.core.problem import EvaluatedPoints, gap
from anymix.core.records import Record, Solution

# What a certificate of a version that did not say it may claim, by its method.
EXACT_METHODS = ("betting", "bernstein", "hoeffding")
FOLD_MODELS = "the fold models"


class ReferenceLoss(NamedTuple):
    """The loss of a baseline on its worst source, on the same rows; `clipped` like the bound."""

    name: str
    loss: float
    clipped: float


@dataclass(frozen=True, eq=False)
class Certificate(Record):
    """What is guaranteed for h_z.

    Attributes
    ----------
    z : array (p,)
        The z that is certified, of several parts their mean.  It differs from the z passed in only
        if that was fitted on the same points: see `certify`.
    epsilon, own_losses : float, array (p,)
        ε = max_k ε_k and ε_k = L(D_k, h_k).
    source_losses, robust_loss, regret, gamma : array (p,), float, float, float
        L_k(z), max_k L_k, max_k (L_k − ε_k) and γ(z), as measured.
    eta, loss_bound : float
        η and M.
    bounds : tuple of Bound
        The theorems whose inputs are known.
    confidence, method : float or None, str or None
        With what probability the next two hold, both together, and by which bound; None when
        nothing is claimed, or the tables are taken as the distributions themselves.
    loss_upper, regret_upper : float or None
        Upper confidence bounds on max_k L_k and on max_k (L_k − ε_k); None where no confidence was
        earned.
    n_candidates : float
        How many choices the confidence is spread over: 1; if z was fitted here all rounded z; or
        the ways to learn that all rows together have chosen from.
    assumptions : Assumptions
        What the user stated.
    loss : str
        Name of the loss, or of the measure.
    loss_ground, regret_ground : "exact", "asymptotic", "measured" or "tables"
        What each upper bound rests on.  Exact holds at every number of rows; asymptotic as rows
        become many; of what is only measured no confidence is claimed; "tables" takes them as the
        distributions themselves.
    clip : float or None
        c: both upper bounds count no row for more.  None: losses count as they are.
    share_above : float or None
        Upper bound on the share of any source's rows that lose more than c; it holds together with
        the other two.
    rarest : float or None
        Harm to a smaller share of a source's rows than this may have missed these rows.
    subpopulation, subpopulation_upper : float or None
        β, if requested; and an upper bound on the loss of any subpopulation
        of at least a share β of any mixture, on the ground that the loss has; it holds together
        with the other three.
    mixtures : tuple of ShareRange
        What is stated of the shares of sources.  Bounds, `robust_loss` and `regret` are then for
        the mixtures with such shares alone: max_λ Σ_k λ_k L_k in the place of max_k L_k.
    reason : str
        Why nothing, or less, is claimed, and what would help.
    n_rows : float
        Of the source that has the fewest; 0 where it is not known.
    n_parts : int
        How many combinations are averaged, each certified by the rows that it was learned without.
    covers : str
        What is certified, where that is not exactly what is deployed.
    seen : tuple of str
        Sources whose rows here trained the model: then no confidence is claimed.
    beside : tuple of ReferenceLoss
        The worst losses of chance, the plain average and each source alone.
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
    loss_ground: str = ""
    regret_ground: str = ""
    clip: float | None = None
    n_rows: float = 0.0
    n_parts: int = 1
    covers: str = ""
    seen: tuple[str, ...] = ()
    beside: tuple[ReferenceLoss, ...] = ()
    share_above: float | None = None
    rarest: float | None = None
    reason: str = ""
    subpopulation: float | None = None
    subpopulation_upper: float | None = None
    mixtures: tuple[ShareRange, ...] = ()
    sentence: str = field(init=False)

    def __post_init__(self) -> None:
        # Versions that did not tell grounds claimed more than some of them had earned.
        exact = self.method in EXACT_METHODS and self.n_candidates == 1
        old = "tables" if self.confidence is None else "exact" if exact else "measured"
        for name in ("loss_ground", "regret_ground"):
            object.__setattr__(self, name, getattr(self, name) or old)
        object.__setattr__(self, "sentence", sentence_of(self))

    def __str__(self) -> str:
        return self.sentence

    @property
    def vacuous(self) -> bool:
        """Whether chance, or a constant, is as good as the guaranteed bound."""
        bound = self.loss_upper
        worst = self.robust_loss if bound is None else bound
        blind = [reference for reference in self.beside if reference.name in BLIND]
        return any(
            worst >= (reference.loss if bound is None else reference.clipped) for reference in blind
        )

    @property
    def subpopulation_ground(self) -> str:
        """The ground of the bound on subpopulations: all bounds of a certificate share one."""
        grounds = self.loss_ground, self.regret_ground
        return next((ground for ground in grounds if ground != "measured"), "measured")


# Sizes of a step of log z, and how many of them a weight may lie below the largest before it is
# zero: e^−10, where the share η/p that every source has anyway is the larger one.
LOG_STEP = 0.2
N_LEVELS = 51


def rounded(z: FloatArray) -> FloatArray:
    """Round log(z / max z) to multiples of 0.2 and set z to zero from 51 steps below on."""
    with np.errstate(divide="ignore"):
        steps = np.rint(-np.log(z / z.max()) / LOG_STEP)
    return simplex.clean(np.where(steps < N_LEVELS, np.exp(-LOG_STEP * steps), 0.0))


# More rounded z than this many sources have are too many to count, and to spread an error over.
MOST_SOURCES = 150


def check_n_sources(p: int) -> None:
    """Check the number of sources of a z that is certified on the points it was fitted on."""
    if p > MOST_SOURCES:
        raise ValueError(
            f"{p} sources are too many: z can be certified on the points it is learned from for "
            f"{MOST_SOURCES} at most; leave some out, pool those that are alike, or certify on "
            "held-out points."
        )


def n_rounded(p: int) -> float:
    """Return an upper bound on the number of rounded z, p·52^(p−1).

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
        points have equal weights, which is exact; otherwise it takes asymptotic bounds where every
        source has 200 points, and claims nothing where one has fewer.
    held_out : bool, optional
        Whether the points are new to z.  By default they are unless z is a Solution that was found
        on some of them.  A z fitted here is rounded (log z to steps of 0.2), and the confidence is
        spread over all such z, so that it holds whichever of them the points have chosen.
    clip : float, optional
        c: both bounds are on means of min(ℓ, c), so that they can be exact where no M is known; it
        must have been chosen without these points.  Without it asymptotic bounds clip at a high
        quantile of the losses here, as they would not hold for rare large losses.
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
    Guaranteed if the tables are the true distributions: on every mixture of the 2 sources the
    expected loss is at most 2.5e-07 above that of each source's own model on its own data, and at
    most 2.5e-07 in absolute terms (squared error in squared units of the target).
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
    M = rule_loss_bound(problem, given)
    stated = M is not None or clip is not None or confidence is None
    if method not in ("auto", "student") and not stated:
        raise ValueError(
            f"method={method!r} needs a bound on the loss: pass Assumptions(loss_bound=M), or "
            "use method='student'."
        )
    # With the pooled measure the points are the distributions themselves.
    draws = method != "auto" or isinstance(problem.measure, OwnMeasure)
    n_candidates, options, lower = 1.0, None, None
    if confidence is not None and draws and not _is_held_out(problem, z, held_out):
        weights, n_candidates = rounded(weights), n_rounded(problem.n_sources)
    summary = LossSummary.at(problem, weights)
    if confidence is not None and draws:
        how = cast("Method", method)
        options = BoundOptions.at(confidence, n_candidates, method=how, loss_bound=M, clip=clip)
        lower = lower_ends(summary, options.delta)
    name = loss_name(problem.loss)
    found = certify_rows(summary, options, z=weights, eta=problem.eta, loss=name, assumptions=given)
    # A bound on clipped losses says nothing of losses as they are.
    upper = found.loss_upper if found.clip is None else None
    facts = gather(problem, weights, given, upper=upper, lower=lower, confidence=confidence)
    M = problem.loss_bound if given.loss_bound is None else given.loss_bound
    return replace(
        found,
        bounds=paper_bounds(facts, given),
        confidence=confidence if found.confidence is not None else None,
        n_candidates=n_candidates,
        loss_bound=float(M),
    )


def certify_rows(
    summary: LossSummary,
    options: BoundOptions | None,
    *,
    z: FloatArray,
    eta: float,
    loss: str,
    assumptions: Assumptions | None = None,
) -> Certificate:
    """Certify one h_z, or an average of several, on evaluation rows.

    Without options the tables count as the distributions themselves.  `confidence` is that of the
    options, or None if none can be claimed; callers with a `Problem` add the theorems.

    Paper: Cor. 2, Lemma 4.
    """
    found = UpperBounds() if options is None else upper_bounds(summary, options)
    L, own = summary.source_losses, summary.own_losses
    claims = options is not None and (found.loss is not None or found.regret is not None)
    return Certificate(
        z=z,
        epsilon=float(own.max()),
        own_losses=own,
        source_losses=L,
        robust_loss=float(L.max()) if options is None else options.worst(L),
        regret=float((L - own).max()) if options is None else options.worst(L - own),
        gamma=gap(L, z),
        eta=eta,
        loss_bound=summary.largest,
        bounds=(),
        confidence=1.0 - options.delta if options is not None and claims else None,
        method=found.method,
        loss_upper=found.loss,
        regret_upper=found.regret,
        n_candidates=1.0,
        assumptions=assumptions or Assumptions(),
        loss=loss,
        loss_ground="tables" if options is None else found.loss_ground,
        regret_ground="tables" if options is None else found.regret_ground,
        clip=found.clip,
        n_rows=summary.n_rows,
        n_parts=summary.n_folds,
        share_above=found.share,
        rarest=found.rarest,
        reason=found.reason,
        subpopulation=None if options is None else options.share,
        subpopulation_upper=found.part,
        mixtures=() if options is None else options.mixtures,
    )


def _is_held_out(problem: EvaluatedPoints, z: ArrayLike | Solution, held_out: bool | None) -> bool:
    """Unless stated, look whether a Solution was found on some of these points.

    Of points that repeat each other only the losses tell, where all of them are the same.
    """
    if held_out is not None or not isinstance(z, Solution):
        return held_out is not False
    if z.seen is not None and z.seen.have_seen(problem.content()):
        return False
    losses = problem.source_losses(z.z)
    return not np.allclose(losses, z.source_losses, rtol=1e-9, atol=1e-300)


def check_stated(assumptions: Assumptions, largest: float) -> None:
    """Check a stated bound M on the loss against the largest loss of these rows."""
    if assumptions.loss_bound is not None and largest > assumptions.loss_bound * (1 + 1e-9):
        raise ValueError(
            f"loss_bound is {assumptions.loss_bound:g}, but these rows have a loss of {largest:g}; "
            "state at least that, or clip the predictions."
        )
