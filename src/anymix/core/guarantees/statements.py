"""The two halves of a certificate, each an upper bound and the ground that it stands on.

    loss      max_k E min(ℓ(h, y), c)                              no row counts for more than c
    regret    max_k E [min(ℓ(h, y), c) − min(ℓ(h_k, y), c)]        paired: far less noisy

Both count rows as they are where a bound M on the loss serves.

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

What rows say of a predictor, source by source: its losses there, and those of the own model.

A statement asks for a few numbers of them: `LossSummary`.  Rows at hand are `Evidence`; rows in
parts answer the same questions, since each source's numbers need that source's rows alone.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from anymix._arrays import FloatArray, IntArray
from anymix.core.guarantees.confidence import Method, Moments, mean_upper_bound
from anymix.core.problem import EvaluatedPoints


class LossSummary(Protocol):
    """What a statement asks of rows, wherever they are; see `RowLosses`."""

    @property
    def n_folds(self) -> int:
        """In how many parts the rows are that judge."""

    @property
    def n_rows(self) -> float:
        """Of the source that has the fewest."""

    @property
    def least(self) -> float:
        """The least loss, of what is judged or of an own model."""

    @property
    def largest(self) -> float:
        """The largest loss, of what is judged or of an own model."""

    @property
    def alike(self) -> bool:
        """Whether the rows of each source count alike, and can be seen one after the other."""

    @property
    def source_losses(self) -> FloatArray:
        """L_k, (p,)."""

    @property
    def own_losses(self) -> FloatArray:
        """ε_k, (p,)."""

    def own_quantile(self, q: float, without: int | None = None) -> float:
        """The q-quantile of the own models' losses at home, over the rows of all folds but one."""

    def exact_upper(self, c: float, paired: bool, delta: float, method: Method) -> float:
        """The largest over sources of the mean over folds of bounds, each at δ/K."""

    def normal_upper(self, c: float, paired: bool, delta: float) -> float:
        """The largest over sources of the bound that holds as rows become many."""


class SourceSample(NamedTuple):
    """The rows of one source: losses of what is judged and of the own model, and weights.

    fold says which part of what is judged speaks at each row: the part that was learned without it.
    """

    losses: FloatArray
    own: FloatArray
    weights: FloatArray
    fold: IntArray

    @property
    def n_rows(self) -> float:
        """(Σ w)²/Σ w²: as many rows of equal weight would tell as much."""
        return float(self.weights.sum() ** 2 / (self.weights @ self.weights))

    @property
    def equal(self) -> bool:
        """Whether all rows count alike."""
        return bool(np.ptp(self.weights) <= 1e-9 * self.weights.max())

    def clipped(self, c: float, paired: bool) -> FloatArray:
        """min(ℓ, c), and less the own model's where they are paired."""
        losses = np.minimum(self.losses, c)
        return losses - np.minimum(self.own, c) if paired else losses

    def mean(self, values: FloatArray) -> float:
        """Average over the source."""
        return float(self.weights @ values)

    def exact_upper(
        self, c: float, paired: bool, delta: float, method: Method, n_folds: int = 1
    ) -> float:
        """(1/K) Σ_t of bounds on the folds' means of min(ℓ, c), which all hold with 1 − δ."""
        values, limits = self.clipped(c, paired), (-c if paired else 0.0, c)
        parts = [part for t in range(n_folds) if (part := values[self.fold == t]).size]
        rng, each = np.random.default_rng(0), delta / len(parts)
        return float(np.mean([mean_upper_bound(x, each, method, limits, rng=rng) for x in parts]))

    def moments(self, c: float, paired: bool) -> Moments:
        """What is needed of min(ℓ, c) for a bound that holds as rows become many."""
        return Moments.of(self.clipped(c, paired), self.weights)


class RowLosses(NamedTuple):
    """The homes of all sources, and in how many parts their rows are."""

    homes: tuple[SourceSample, ...]
    n_folds: int = 1

    @classmethod
    def at(cls, problem: EvaluatedPoints, z: FloatArray) -> Self:
        """Return what the points of a problem say of h_z; all of them are one part."""
        h, homes = problem.ratio(z)[0], []
        for k in range(problem.n_sources):
            points, w = problem.measure.take(k)
            y, there = problem.targets[points], w > 0
            losses = problem.loss.value(h[points], y)[there]
            own = problem.loss.value(problem.predictions[k, points], y)[there]
            homes.append(SourceSample(losses, own, w[there], np.zeros(losses.size, dtype=np.intp)))
        return cls(tuple(homes))

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
        homes = []
        for k in range(int(domain.max()) + 1 if p is None else p):
            rows = np.flatnonzero((domain == k) & (w > 0))
            if not rows.size:
                raise ValueError(f"there are no rows of source {k} to judge by.")
            homes.append(
                SourceSample(losses[rows], own[rows], w[rows] / w[rows].sum(), parts[rows])
            )
        return cls(tuple(homes), int(parts.max()) + 1)

    @property
    def n_rows(self) -> float:
        """Of the source that has the fewest."""
        return min(home.n_rows for home in self.homes)

    @property
    def largest(self) -> float:
        """The largest loss, of what is judged or of an own model."""
        return max(float(max(home.losses.max(), home.own.max())) for home in self.homes)

    @property
    def least(self) -> float:
        """The least loss, of what is judged or of an own model."""
        return min(float(min(home.losses.min(), home.own.min())) for home in self.homes)

    @property
    def alike(self) -> bool:
        """Whether the rows of each source count alike."""
        return all(home.equal for home in self.homes)

    @property
    def source_losses(self) -> FloatArray:
        """L_k, (p,)."""
        return np.array([home.mean(home.losses) for home in self.homes])

    @property
    def own_losses(self) -> FloatArray:
        """ε_k, (p,)."""
        return np.array([home.mean(home.own) for home in self.homes])

    def own_quantile(self, q: float, without: int | None = None) -> float:
        """The q-quantile of the own models' losses at home, over the rows of all folds but one."""
        kept = [h.own if without is None else h.own[h.fold != without] for h in self.homes]
        return float(np.quantile(np.concatenate(kept), q))

    def exact_upper(self, c: float, paired: bool, delta: float, method: Method) -> float:
        """max_k of the mean over folds of bounds on E min(ℓ, c), paired or not, each at δ/K."""
        given = c, paired, delta, method, self.n_folds
        return max(home.exact_upper(*given) for home in self.homes)

    def normal_upper(self, c: float, paired: bool, delta: float) -> float:
        """max_k of the bound on E min(ℓ, c), paired or not, that holds as rows become many."""
        return max(home.moments(c, paired).upper(delta) for home in self.homes)


Ground = Literal["exact", "asymptotic", "measured"]

# From so many rows a source on asymptotic bounds are claimed: `python -m benchmarks.certificates`.
MANY = 200
# About so many rows of the source that has the fewest lose more than the clip: with fewer a normal
# bound does not hold, with more the loss is cut further than need be.
ROWS_ABOVE_CLIP, LOWEST_QUANTILE = 10, 0.9
# A known bound M serves from so many rows of a fold for each unit of it on: no exact bound is much
# less than M log(1/δ)/n above the mean.
ROWS_FOR_BOUND = 50


class UpperBound(NamedTuple):
    """One statement: a number, or None where no confidence is claimed, and its ground."""

    upper: float | None = None
    ground: Ground = "measured"


class BoundOptions(NamedTuple):
    """How bounds are found.

    delta is what both halves together may fail with; loss_bound a bound M on the loss that the user
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
        """Return terms that may fail with 1 − confidence, shared by so many ways to choose."""
        if not 0 < confidence < 1:
            raise ValueError(f"confidence must lie strictly between 0 and 1; got {confidence}.")
        return cls((1.0 - confidence) / ways, **known)

    def can_be_exact(self, evidence: LossSummary) -> bool:
        """Whether rows are fresh and count alike, and no loss is negative."""
        return self.fresh and evidence.alike and evidence.least > -1e-9


class Statement(NamedTuple):
    """Both halves; c, above which no row counts, or None where losses count as they are."""

    loss: UpperBound = UpperBound()
    regret: UpperBound = UpperBound()
    clip: float | None = None
    method: str | None = None

    @property
    def earned(self) -> bool:
        """Whether any confidence is claimed."""
        return self.loss.upper is not None or self.regret.upper is not None


def state(evidence: LossSummary, terms: BoundOptions) -> Statement:
    """State both halves, each with half of the error probability.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> losses, domain = rng.random((2, 1000)), np.repeat([0, 1], 500)
    >>> found = state(RowLosses.of_rows(*losses, domain), BoundOptions(0.05, loss_bound=1.0))
    >>> found.loss.ground, found.regret.ground, found.clip
    ('exact', 'exact', None)
    >>> found = state(RowLosses.of_rows(*losses, domain), BoundOptions(0.05))
    >>> found.loss.ground, found.regret.ground, round(found.clip, 2)
    ('asymptotic', 'asymptotic', 0.98)
    """
    if not terms.claims:
        return Statement()
    terms = terms._replace(delta=terms.delta / 2)
    if terms.method not in ("auto", "student") and not terms.can_be_exact(evidence):
        raise ValueError(
            f"the {terms.method} bound needs equal weights and losses ≥ 0; use method='student'."
        )
    M = _bound_in_use(evidence, terms)
    method: Method = "betting" if terms.method == "auto" else terms.method
    if M is not None and method != "student":
        loss, regret = (_exact(evidence, terms, method, M, paired) for paired in (False, True))
        return _capped(evidence, Statement(loss, regret, None, method))
    c = terms.clip if terms.clip is not None else _clip(evidence, terms)
    if _many(evidence, terms) and (terms.clip is None or terms.method == "student"):
        loss, regret = (_asymptotic(evidence, terms, c, paired) for paired in (False, True))
        found = Statement(loss, regret, _shown(c, terms), "student")
        return _capped(evidence, found) if found.earned else Statement()
    found = _exact_clipped(evidence, terms)
    if found.loss.upper is not None and _many(evidence, terms):
        found = found._replace(regret=_asymptotic(evidence, terms, c, paired=True))
    return _capped(evidence, found) if found.earned else Statement()


def _many(evidence: LossSummary, terms: BoundOptions) -> bool:
    """Whether an asymptotic bound may be claimed; who asks for one by name knows its limits."""
    # Weights of n equal rows need not multiply out to n in the last digit.
    return terms.method == "student" or evidence.n_rows >= MANY - 1e-6


def _bound_in_use(evidence: LossSummary, terms: BoundOptions) -> float | None:
    """M, where it is stated, or known and small for this many rows, and an exact bound can be."""
    if not terms.can_be_exact(evidence):
        return None
    known = terms.known_bound
    if terms.loss_bound is None and known is not None and terms.method == "auto":
        enough = evidence.n_rows >= ROWS_FOR_BOUND * known * evidence.n_folds
        return known if enough else None
    return terms.loss_bound


def _exact(
    evidence: LossSummary, terms: BoundOptions, method: Method, M: float, paired: bool
) -> UpperBound:
    """max_k of the mean over folds of bounds on E min(ℓ, M), or on E (ℓ(h) − ℓ(h_k))."""
    method = "binomial" if terms.binary and not paired else method
    return UpperBound(evidence.exact_upper(M, paired, terms.delta, method), "exact")


def _asymptotic(evidence: LossSummary, terms: BoundOptions, c: float, paired: bool) -> UpperBound:
    """max_k of the bound on E min(ℓ(h), c), or on that less E min(ℓ(h_k), c).

    Where all rows of a source tell the same, nothing is known of those that differ.
    """
    worst = evidence.normal_upper(c, paired, terms.delta)
    if not np.isfinite(worst):
        return UpperBound()
    return UpperBound(worst if paired else min(worst, c), "asymptotic")


def clip_of(evidence: LossSummary, without: int | None = None) -> float:
    """c: the quantile of own models' losses that about ten rows of the smallest source exceed."""
    q = max(LOWEST_QUANTILE, 1.0 - ROWS_ABOVE_CLIP / evidence.n_rows)
    return evidence.own_quantile(q, without)


def _clip(evidence: LossSummary, terms: BoundOptions, without: int | None = None) -> float:
    """c, at most the bound that the loss has."""
    c = clip_of(evidence, without)
    return c if terms.known_bound is None else min(c, terms.known_bound)


def _exact_clipped(evidence: LossSummary, terms: BoundOptions) -> Statement:
    """Bet on losses clipped by other rows; say nothing where that is no better than c itself."""
    K = evidence.n_folds
    if not terms.can_be_exact(evidence) or (K == 1 and terms.clip is None):
        return Statement()
    limits = [terms.clip if terms.clip is not None else _clip(evidence, terms, t) for t in range(K)]
    # Folds are clipped at Kc, and each by what others have chosen: c is the least of them.
    c = min(limits) / (1 if terms.clip is not None else K)
    if not c > 0:
        return Statement()
    loss = _exact(evidence, terms, "betting", c * K, paired=False)
    if loss.upper is None or not loss.upper < c:
        return Statement()
    regret = _exact(evidence, terms, "betting", c, paired=True) if K == 1 else UpperBound()
    return Statement(loss, regret, _shown(c, terms), "betting")


def lower_ends(evidence: RowLosses, delta: float) -> tuple[float, float]:
    """What the worst loss and the regret exceed with confidence 1 − δ each, as rows become many."""
    ends = []
    for paired in (0.0, 1.0):
        values = [-(home.losses - paired * home.own) for home in evidence.homes]
        pairs = zip(evidence.homes, values, strict=True)
        uppers = [mean_upper_bound(x, delta, "student", weights=h.weights) for h, x in pairs]
        ends.append(max(-upper for upper in uppers))
    return ends[0], ends[1]


def _shown(c: float, terms: BoundOptions) -> float | None:
    """c, unless no loss can be above it."""
    return None if terms.known_bound is not None and c >= terms.known_bound else c


def _capped(evidence: LossSummary, found: Statement) -> Statement:
    """Where no loss is negative L_k − ε_k ≤ L_k, so that the regret is at most the loss."""
    loss, regret = found.loss, found.regret
    if loss.upper is None or regret.upper is None:
        return found
    if evidence.least < -1e-9:
        return found
    return found._replace(regret=regret._replace(upper=min(loss.upper, regret.upper)))
