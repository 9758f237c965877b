"""From the losses of each source's rows to the two upper bounds of a certificate.

    loss      max_k E min(ℓ(h, y), c)                              no row counts for more than c
    regret    max_k E [min(ℓ(h, y), c) − min(ℓ(h_k, y), c)]        paired: far less noisy

Both count rows as they are where a bound M on the loss serves.  Each has the ground it stands on:

    exact         holds at every number of rows
    asymptotic    holds as rows become many; claimed where each source has at least `MANY` of them
    measured      no confidence is claimed

h may be an average of K parts, each judged on rows new to it (`CrossFittedCombination`).  Then
L_k(h) ≤ (1/K) Σ_t L_k(h_t), and

  * exact: a bound at δ/K on each fold, which is fresh for h_t given all other rows; their mean.
    Of clipped losses min((1/K) Σ_t a_t, c) ≤ (1/K) Σ_t min(a_t, Kc) for a_t ≥ 0, so that folds are
    clipped at Kc; c comes from the own models' losses in *other* folds.
  * asymptotic: by the central limit theorem of cross-validation (Bayle, Bayle, Janson, Mackey 2020)
    the mean over all rows is as near to (1/K) Σ_t L_k(h_t) as that of as many fresh rows.

In both, rows of a source are independent draws from it.  The worst source is a fixed one, so that
no correction for the number of sources is paid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from anymix._arrays import FloatArray, IntArray
from anymix.core.guarantees.confidence import Method, Moments, mean_upper_bound
from anymix.core.problem import EvaluatedPoints

Ground = Literal["exact", "asymptotic", "measured"]

# From so many rows a source on asymptotic bounds are claimed: `python -m benchmarks.certificates`.
MANY = 200
# About so many rows of the source that has the fewest lose more than the clip: with fewer a normal
# bound does not hold, with more the loss is cut further than need be.
ROWS_ABOVE_CLIP, LOWEST_QUANTILE = 10, 0.9
# A known bound M serves from so many rows of a fold for each unit of it on: no exact bound is much
# less than M log(1/δ)/n above the mean.
ROWS_FOR_BOUND = 50


class SourceSample(NamedTuple):
    """The rows of one source: losses of what is judged and of the own model, and weights.

    fold says which part of what is judged speaks at each row: the part that was learned without it.
    """

    losses: FloatArray
    own: FloatArray
    weights: FloatArray
    fold: IntArray

    def clipped(self, c: float, paired: bool) -> FloatArray:
        """min(ℓ, c), and less the own model's where they are paired."""
        losses = np.minimum(self.losses, c)
        return losses - np.minimum(self.own, c) if paired else losses

    def exact_upper(self, c: float, paired: bool, delta: float, method: Method) -> float:
        """(1/K) Σ_t of bounds on the folds' means of min(ℓ, c), which all hold with 1 − δ."""
        values, limits = self.clipped(c, paired), (-c if paired else 0.0, c)
        parts = [values[self.fold == t] for t in np.unique(self.fold)]
        rng, each = np.random.default_rng(0), delta / len(parts)
        return float(np.mean([mean_upper_bound(x, each, method, limits, rng=rng) for x in parts]))


class LossSummary:
    """What bounds ask of rows: numbers of all sources, and three questions.

    Of rows at hand; `sources.certification` asks the same of rows in blocks.

    Parameters
    ----------
    samples : sequence of SourceSample
    n_folds : int
        In how many parts the rows are that judge.

    Attributes
    ----------
    source_losses, own_losses : array (p,)
        L_k and ε_k.
    n_rows : float
        Of the source that has the fewest: (Σ w)²/Σ w², as many rows of equal weight would tell as
        much.
    least, largest : float
        The least and the largest loss, of what is judged or of an own model.
    alike : bool
        Whether the rows of each source count alike, and can be seen one after the other.
    """

    source_losses: FloatArray
    own_losses: FloatArray
    n_rows: float
    least: float
    largest: float
    alike: bool

    def __init__(self, samples: Sequence[SourceSample], n_folds: int = 1):
        self.samples, self.n_folds = samples, n_folds
        pairs = [(s.weights, np.stack([s.losses, s.own])) for s in samples]
        means = np.array([both @ w / w.sum() for w, both in pairs])
        self.source_losses, self.own_losses = means.T
        self.n_rows = min(float(w.sum() ** 2 / (w @ w)) for w, _ in pairs)
        self.least = min(float(both.min()) for _, both in pairs)
        self.largest = max(float(both.max()) for _, both in pairs)
        self.alike = all(bool(np.ptp(w) <= 1e-9 * w.max()) for w, _ in pairs)

    @classmethod
    def at(cls, problem: EvaluatedPoints, z: FloatArray) -> Self:
        """Return what the points of a problem say of h_z; all of them are one part."""
        h, samples = problem.ratio(z)[0], []
        for k in range(problem.n_sources):
            points, w = problem.measure.take(k)
            y, there = problem.targets[points], w > 0
            losses = problem.loss.value(h[points], y)[there]
            own = problem.loss.value(problem.predictions[k, points], y)[there]
            fold = np.zeros(losses.size, dtype=np.intp)
            samples.append(SourceSample(losses, own, w[there], fold))
        return cls(samples)

    @classmethod
    def of_rows(
        cls,
        losses: FloatArray,
        own: FloatArray,
        domain: IntArray,
        weight: ArrayLike | None = None,
        fold: IntArray | None = None,
        p: int | None = None,
    ) -> Self:
        """Gather rows (m,) by their source 0..p−1; fold (m,) is 0..K−1, or one for all."""
        w = np.ones(losses.size) if weight is None else np.asarray(weight, dtype=float)
        parts = np.zeros(losses.size, dtype=np.intp) if fold is None else fold
        samples = []
        for k in range(int(domain.max()) + 1 if p is None else p):
            rows = np.flatnonzero((domain == k) & (w > 0))
            if not rows.size:
                raise ValueError(f"there are no rows of source {k} to judge by.")
            samples.append(SourceSample(losses[rows], own[rows], w[rows], parts[rows]))
        return cls(samples, int(parts.max()) + 1)

    def own_quantile(self, q: float, without: int | None = None) -> float:
        """The q-quantile of the own models' losses at home, over the rows of all folds but one."""
        kept = [s.own if without is None else s.own[s.fold != without] for s in self.samples]
        return float(np.quantile(np.concatenate(kept), q))

    def exact_upper(self, c: float, paired: bool, delta: float, method: Method) -> float:
        """max_k of the mean over folds of bounds on E min(ℓ, c), paired or not, each at δ/K."""
        return max(sample.exact_upper(c, paired, delta, method) for sample in self.samples)

    def normal_upper(self, c: float, paired: bool, delta: float) -> float:
        """max_k of the bound on E min(ℓ, c), paired or not, that holds as rows become many."""
        return max(Moments.of(s.clipped(c, paired), s.weights).upper(delta) for s in self.samples)


class BoundOptions(NamedTuple):
    """How bounds are found.

    delta is what both together may fail with; loss_bound a bound M on the loss that the user
    states, known_bound one that the loss itself has; clip is c, where it was chosen by other rows.
    `fresh` says that the rows are new to what is judged, each to its part: else nothing is exact.
    Without `claims` the rows have taught what they judge, and earn no confidence.  `binary` losses
    are 0 or 1.
    """

    delta: float
    method: Method | Literal["auto"] = "auto"
    loss_bound: float | None = None
    known_bound: float | None = None
    clip: float | None = None
    fresh: bool = True
    claims: bool = True
    binary: bool = False

    @classmethod
    def at(cls, confidence: float, ways: float = 1, **known: Any) -> Self:
        """Return options that may fail with 1 − confidence, shared by so many ways to choose."""
        if not 0 < confidence < 1:
            raise ValueError(f"confidence must lie strictly between 0 and 1; got {confidence}.")
        return cls((1.0 - confidence) / ways, **known)


class UpperBounds(NamedTuple):
    """Bounds on loss and regret, None where no confidence is claimed, and their grounds.

    clip is c, above which no row counts, or None where losses count as they are.
    """

    loss: float | None = None
    loss_ground: Ground = "measured"
    regret: float | None = None
    regret_ground: Ground = "measured"
    clip: float | None = None
    method: str | None = None


def upper_bounds(summary: LossSummary, options: BoundOptions) -> UpperBounds:
    """Bound loss and regret, each with half of the error probability."""
    if not options.claims:
        return UpperBounds()
    delta, method, clip = options.delta / 2, options.method, options.clip
    cap = np.inf if options.known_bound is None else options.known_bound
    exact = options.fresh and summary.alike and summary.least > -1e-9
    if method not in ("auto", "student") and not exact:
        raise ValueError(
            f"the {method} bound needs equal weights and losses ≥ 0; use method='student'."
        )
    # Who asks for an asymptotic bound by name knows its limits.  Weights of n equal rows need not
    # multiply out to n in the last digit.
    many = method == "student" or summary.n_rows >= MANY - 1e-6
    M = options.loss_bound
    if M is None and method == "auto" and summary.n_rows >= ROWS_FOR_BOUND * cap * summary.n_folds:
        M = cap
    if exact and M is not None and method != "student":
        how: Method = "betting" if method == "auto" else method
        loss = summary.exact_upper(M, False, delta, "binomial" if options.binary else how)
        regret = summary.exact_upper(M, True, delta, how)
        found = UpperBounds(loss, "exact", regret, "exact", None, how)
    elif many and (clip is None or method == "student"):
        c = clip_of(summary, cap) if clip is None else clip
        halves = (_asymptotic(summary, c, paired, delta) for paired in (False, True))
        found = UpperBounds(*next(halves), *next(halves), c, "student")
    elif exact:
        found = _exact_clipped(summary, clip, cap, delta)
        if found.loss is not None and many and clip is not None:
            again = _asymptotic(summary, clip, True, delta)
            found = found._replace(regret=again[0], regret_ground=again[1])
    else:
        found = UpperBounds()
    if found.loss is None and found.regret is None:
        return UpperBounds()
    if found.clip is not None and found.clip >= cap:
        found = found._replace(clip=None)  # no loss can be above it
    if found.loss is None or found.regret is None or summary.least < -1e-9:
        return found
    # Where no loss is negative L_k − ε_k ≤ L_k.
    return found._replace(regret=min(found.loss, found.regret))


def clip_of(summary: LossSummary, most: float = np.inf, without: int | None = None) -> float:
    """c ≤ most: the own losses' quantile that about ten rows of the smallest source exceed.

    Of all folds but one, if that is named.
    """
    q = max(LOWEST_QUANTILE, 1.0 - ROWS_ABOVE_CLIP / summary.n_rows)
    return min(summary.own_quantile(q, without), most)


def _asymptotic(
    summary: LossSummary, c: float, paired: bool, delta: float
) -> tuple[float | None, Ground]:
    """max_k of the bound on E min(ℓ(h), c), or on that less E min(ℓ(h_k), c), and its ground.

    Where all rows of a source tell the same, nothing is known of those that differ.
    """
    worst = summary.normal_upper(c, paired, delta)
    if not np.isfinite(worst):
        return None, "measured"
    return worst if paired else min(worst, c), "asymptotic"


def _exact_clipped(
    summary: LossSummary, clip: float | None, cap: float, delta: float
) -> UpperBounds:
    """Bet on losses clipped by other rows; say nothing where that is no better than c itself."""
    K = summary.n_folds
    if clip is None and K == 1:
        return UpperBounds()
    # Folds are clipped at Kc, and each by what others have chosen: c is the least of them.
    c = min(clip_of(summary, cap, t) for t in range(K)) / K if clip is None else clip
    if not c > 0:
        return UpperBounds()
    loss = summary.exact_upper(c * K, False, delta, "betting")
    if not loss < c:
        return UpperBounds()
    if K > 1:
        return UpperBounds(loss, "exact", clip=c, method="betting")
    regret = summary.exact_upper(c, True, delta, "betting")
    return UpperBounds(loss, "exact", regret, "exact", c, "betting")


def lower_ends(summary: LossSummary, delta: float) -> tuple[float, float]:
    """What the worst loss and the regret exceed with confidence 1 − δ each, as rows become many."""

    def worst(paired: float) -> float:
        return max(
            -mean_upper_bound(paired * s.own - s.losses, delta, "student", weights=s.weights)
            for s in summary.samples
        )

    return worst(0.0), worst(1.0)
