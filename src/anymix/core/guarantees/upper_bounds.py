"""From the losses of each source's rows to the upper bounds of a certificate.

    loss      max_k E min(ℓ(h, y), c)
    regret    max_k E [min(ℓ(h, y), c) − min(ℓ(h_k, y), c)]        paired: far less noisy
    above     max_k P(ℓ(h, y) > c): what the other two do not see

δ is shared equally by them.  Where M ≥ ℓ serves, c = M, and the third is not needed.  Whether it
does is decided by numbers that are known before any loss.  Grounds:

    exact         holds at every number of rows
    asymptotic    holds as rows become many; claimed where each source has at least `MANY` of them
    measured      no confidence is claimed

Rows are independent draws of their source.  If they are new to h the worst source is a fixed one,
and max_k of bounds at δ is a bound at δ.  Else h is an average of K parts, each judged on rows new
to it (`CrossFittedCombination`): L_k(h) ≤ (1/K) Σ_t L_k(h_t).  But all rows have chosen z, which
makes the measured losses of the sources equal, so that the worst source is chosen by noise:

  * exact: given the rows outside fold t the worst source of h_t is fixed, so that max_k of bounds
    at δ/K on fold t bounds max_k L_k(h_t); the mean over t bounds max_k (1/K) Σ_t L_k(h_t).
  * asymptotic: by the central limit theorem of cross-validation (Bayle, Bayle, Janson, Mackey 2020)
    the mean over all rows is as near to (1/K) Σ_t L_k(h_t) as that of as many fresh rows.  Sources
    are independent: all p bounds at δ_k = 1 − (1 − δ)^(1/p) hold together with 1 − δ (Šidák 1967).
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
BoundKind = Literal["loss", "regret", "above"]

# From so many rows a source on asymptotic bounds are claimed: `python -m benchmarks.certificates`.
MANY = 200
# About so many rows of a source lose more than the clip.
ROWS_ABOVE_CLIP, LOWEST_QUANTILE = 10, 0.95
# A known bound M serves where it adds at most this part of the loss of chance to a bound; and
# inside a fit with few rows, where nothing else does, up to half of it.
WORTH, WORTH_OF_FEW = 0.05, 0.5
# A bound that is nearly c says nothing; nor do two where so many rows may lose more than c.
TRIVIAL, MOST_ABOVE = 0.9, 0.25


class SourceSample(NamedTuple):
    """The rows of one source: losses of what is judged and of the own model, and weights.

    fold says which part of what is judged speaks at each row: the part that was learned without it.
    Where rows come in groups, weights and fold are those of groups, `group` says which one a row is
    of, and `part` how much of it: bounds are on means of groups, which are independent draws.
    """

    losses: FloatArray
    own: FloatArray
    weights: FloatArray
    fold: IntArray
    group: IntArray | None = None
    part: FloatArray | None = None

    @classmethod
    def of(
        cls,
        losses: FloatArray,
        own: FloatArray,
        weights: FloatArray,
        fold: IntArray,
        groups: IntArray | None = None,
    ) -> Self:
        """Gather rows, all in columns; those of one of the groups count as one draw.

        >>> rows = np.array([1.0, 3.0, 5.0]), np.zeros(3), np.ones(3), np.zeros(3, dtype=np.intp)
        >>> found = SourceSample.of(*rows, np.array([7, 7, 9]))
        >>> found.by_group(found.losses), found.weights
        (array([2., 5.]), array([2., 1.]))
        """
        if groups is None:
            return cls(losses, own, weights, fold)
        _, first, group = np.unique(groups, return_index=True, return_inverse=True)
        total: FloatArray = np.bincount(group, weights).astype(float)
        return cls(losses, own, total, fold[first], group, weights / total[group])

    def by_group(self, values: FloatArray) -> FloatArray:
        """Average values of rows over each group."""
        if self.group is None or self.part is None:
            return values
        return np.bincount(self.group, self.part * values).astype(float)

    def values(self, kind: BoundKind, c: float) -> FloatArray:
        """min(ℓ, c); that less the own model's; or 1 where ℓ > c."""
        if kind == "above":
            return self.by_group((self.losses > c).astype(float))
        losses = np.minimum(self.losses, c)
        return self.by_group(losses if kind == "loss" else losses - np.minimum(self.own, c))

    def exact_uppers(
        self, kind: BoundKind, c: float, delta: float, method: Method, n_folds: int
    ) -> FloatArray:
        """Bounds (K,) on the mean of each fold, each at δ; without rows what it is at most."""
        values, rng = self.values(kind, c), np.random.default_rng(0)
        if self.group is not None and method == "binomial":
            method = "betting"  # a group's share is not 0 or 1
        a, b = {"loss": (0.0, c), "regret": (-c, c), "above": (0.0, 1.0)}[kind]
        folds = (values[self.fold == t] for t in range(n_folds))
        return np.array(
            [mean_upper_bound(x, delta, method, (a, b), rng=rng) if x.size else b for x in folds]
        )

    def moments(self, kind: BoundKind, c: float) -> tuple[Moments, list[float]]:
        """The moments of the values, and Σw and Σwx over those above half of the largest."""
        values, w = self.values(kind, c), self.weights
        high = values > (0.5 if kind == "above" else c / 2)
        return Moments.of(values, w), [w[high].sum(), w[high] @ values[high]]


class LossSummary:
    """What bounds ask of rows: numbers of all sources, and three questions.

    Of rows at hand; `sources.certification` asks the same of rows in blocks.

    Parameters
    ----------
    samples : sequence of SourceSample
    n_folds : int
        In how many parts the rows are that judge.  More than one have taught each other's parts.

    Attributes
    ----------
    source_losses, own_losses : array (p,)
        L_k and ε_k.
    rows : array (p,)
        (Σ w)²/Σ w² of each source: as many rows of equal weight would tell as much.
    least, largest : float
        The least and the largest loss, of what is judged or of an own model.
    alike : bool
        Whether the rows of each source count alike, and can be seen one after the other.
    """

    source_losses: FloatArray
    own_losses: FloatArray
    rows: FloatArray
    least: float
    largest: float
    alike: bool

    def __init__(self, samples: Sequence[SourceSample], n_folds: int = 1):
        self.samples, self.n_folds = samples, n_folds
        pairs = [(s.weights, np.stack([*map(s.by_group, (s.losses, s.own))])) for s in samples]
        means = np.array([both @ w / w.sum() for w, both in pairs])
        self.source_losses, self.own_losses = means.T
        self.rows = np.array([w.sum() ** 2 / (w @ w) for w, _ in pairs])
        self.least = min(min(s.losses.min(), s.own.min()) for s in samples)
        self.largest = max(max(s.losses.max(), s.own.max()) for s in samples)
        self.alike = all(bool(np.ptp(w) <= 1e-9 * w.max()) for w, _ in pairs)

    @property
    def n_rows(self) -> float:
        """Of the source that has the fewest."""
        return float(self.rows.min())

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
        groups: IntArray | None = None,
    ) -> Self:
        """Gather rows (m,) by their source 0..p−1; fold (m,) is 0..K−1, or one for all.

        Rows of one of the groups (m,) count as one draw.
        """
        w = np.ones(losses.size) if weight is None else np.asarray(weight, dtype=float)
        parts = np.zeros(losses.size, dtype=np.intp) if fold is None else fold
        samples = []
        for k in range(int(domain.max()) + 1 if p is None else p):
            rows = np.flatnonzero((domain == k) & (w > 0))
            if not rows.size:
                raise ValueError(f"there are no rows of source {k} to judge by.")
            own_groups = None if groups is None else groups[rows]
            known = losses[rows], own[rows], w[rows], parts[rows], own_groups
            samples.append(SourceSample.of(*known))
        return cls(samples, int(parts.max()) + 1)

    def quantiles(self) -> FloatArray:
        """Of each source's losses and own losses, which about ten of its rows exceed: (p,)."""
        q = clip_shares(self.rows)
        pairs = zip(self.samples, q, strict=True)
        return np.array([max(np.quantile(s.losses, q), np.quantile(s.own, q)) for s, q in pairs])

    def exact_upper(self, kind: BoundKind, c: float, delta: float, method: Method) -> float:
        """mean_t max_k of bounds on what source k tells of part t, each at δ/K."""
        given = kind, c, delta / self.n_folds, method, self.n_folds
        return float(np.max([s.exact_uppers(*given) for s in self.samples], axis=0).mean())

    def asymptotic_upper(self, kind: BoundKind, c: float, delta: float) -> float:
        """max_k of bounds that hold as rows become many, each at δ."""
        known = [s.moments(kind, c) for s in self.samples]
        return max(one.upper(delta, 1.0 if kind == "above" else c, tail) for one, tail in known)


def clip_shares(rows: FloatArray) -> FloatArray:
    """At which quantile of a source's losses a clip is: 1 − 10/n, at least .95."""
    return np.maximum(LOWEST_QUANTILE, 1.0 - ROWS_ABOVE_CLIP / rows)


class BoundOptions(NamedTuple):
    """How bounds are found.

    delta is what all together may fail with; loss_bound a bound M on the loss that the user states,
    known_bound one that the loss itself has, chance what it is of all classes alike; clip is c,
    where it was chosen by other rows.  `fresh` says that the rows are new to what is judged, each
    to its part: else nothing is exact.  Without `claims` the rows have taught what they judge, and
    earn no confidence.  `binary` losses are 0 or 1.  names are those of the sources.
    """

    delta: float
    method: Method | Literal["auto"] = "auto"
    loss_bound: float | None = None
    known_bound: float | None = None
    chance: float | None = None
    clip: float | None = None
    fresh: bool = True
    claims: bool = True
    binary: bool = False
    names: Sequence[str] = ()

    @classmethod
    def at(cls, confidence: float, ways: float = 1, **known: Any) -> Self:
        """Return options that may fail with 1 − confidence, shared by so many ways to choose."""
        if not 0 < confidence < 1:
            raise ValueError(f"confidence must lie strictly between 0 and 1; got {confidence}.")
        return cls((1.0 - confidence) / ways, **known)


class UpperBounds(NamedTuple):
    """Bounds on loss and regret, None where no confidence is claimed, and their grounds.

    clip is c, or None where losses count as they are; share bounds the share of a source's rows
    that lose more.  rarest is the largest share of harmful rows that may have been missed.  reason
    says why nothing, or less, is claimed.
    """

    loss: float | None = None
    loss_ground: Ground = "measured"
    regret: float | None = None
    regret_ground: Ground = "measured"
    clip: float | None = None
    method: str | None = None
    share: float | None = None
    rarest: float | None = None
    reason: str = ""


def upper_bounds(summary: LossSummary, options: BoundOptions) -> UpperBounds:
    """Bound loss and regret, and the share of rows above the clip, all together with 1 − δ."""
    n, K, method = summary.n_rows, summary.n_folds, options.method
    fair = options.fresh and summary.alike and summary.least > -1e-9
    named = method not in ("auto", "student")
    if options.claims and named and not fair:
        raise ValueError(
            f"the {method} bound needs equal weights and losses ≥ 0; use method='student'."
        )
    # Who asks for an asymptotic bound by name knows its limits.  Weights of n equal rows need not
    # multiply out to n in the last digit.
    few = method != "student" and n < MANY - 1e-6
    cap = np.inf if options.known_bound is None else options.known_bound
    M = options.loss_bound if fair and method != "student" else None
    if M is None and method == "auto" and options.chance is not None:
        # No bound is much less than M ln(1/δ)/n above the mean.
        folds, worth = (K, WORTH_OF_FEW) if few and K > 1 else (1, WORTH)
        if cap * folds * np.log(2 * folds / options.delta) / n <= worth * options.chance:
            M = cap
    known = M is not None or (options.clip is not None and K == 1)
    exact = fair and known and method != "student" and (few or named or K == 1)
    if not options.claims or (few and not exact):
        return UpperBounds(reason=_too_few(summary, options))
    c = M if M is not None else options.clip
    if c is None:
        c = clip_of(summary, cap, options.chance)
    if c <= 0 <= summary.least + 1e-9:
        return UpperBounds(reason="Nothing is claimed: nearly all losses are 0.")
    bound = _exact_bounds if exact else _asymptotic_bounds
    found = bound(summary, options, c, clipped=M is None)
    if summary.least > -1e-9 and found.loss is not None and found.regret is not None:
        found = found._replace(regret=min(found.loss, found.regret))  # L_k − ε_k ≤ L_k
    if M is not None or c >= cap:
        return _useful(found._replace(clip=None, share=None), c, np.inf)
    return _useful(found, c, c - (1 - TRIVIAL) * abs(c) if method == "auto" else np.inf)


def _exact_bounds(
    summary: LossSummary, options: BoundOptions, c: float, clipped: bool
) -> UpperBounds:
    """Bounds that hold at every number of rows; each fold has its part of δ."""
    delta = options.delta / (3 if clipped else 2)
    how: Method = "betting" if options.method == "auto" else options.method
    return UpperBounds(
        loss=summary.exact_upper("loss", c, delta, "binomial" if options.binary else how),
        loss_ground="exact",
        regret=summary.exact_upper("regret", c, delta, how),
        regret_ground="exact",
        clip=c,
        method=how,
        share=summary.exact_upper("above", c, delta, "binomial") if clipped else 0.0,
        rarest=float(np.log(summary.n_folds / delta)) * summary.n_folds / summary.n_rows,
    )


def _asymptotic_bounds(
    summary: LossSummary, options: BoundOptions, c: float, clipped: bool
) -> UpperBounds:
    """Bounds that hold as rows become many; crossed folds share δ among the sources."""
    delta = options.delta / (3 if clipped else 2)
    each = delta if summary.n_folds == 1 else -np.expm1(np.log1p(-delta) / summary.rows.size)
    return UpperBounds(
        loss=min(summary.asymptotic_upper("loss", c, each), c),
        loss_ground="asymptotic",
        regret=summary.asymptotic_upper("regret", c, each),
        regret_ground="asymptotic",
        clip=c,
        method="student",
        share=summary.asymptotic_upper("above", c, each) if clipped else 0.0,
        rarest=float(np.log(1 / each)) / summary.n_rows,
    )


def _useful(found: UpperBounds, c: float, most: float) -> UpperBounds:
    """Take back bounds from `most` on, near the clip c, and all where many rows may exceed c."""
    share, more = found.share, "more rows would tell."
    if share is not None and share > MOST_ABOVE and most < np.inf:
        return UpperBounds(
            reason=f"Nothing is claimed: {100 * min(share, 1.0):.0f} % of a source's rows may lose "
            f"more than {c:.4g}, where losses would be clipped; {more}"
        )
    near = f"it would come near {c:.4g}, where losses are clipped; {more}"
    if found.regret is None or not found.regret < most:
        found = found._replace(regret=None, regret_ground="measured")
    if found.loss is None or not found.loss < most:
        if found.regret is None:
            return UpperBounds(reason=f"Nothing is claimed: {near}")
        reason = f"No bound on the loss is claimed: {near}"
        found = found._replace(loss=None, loss_ground="measured", reason=reason)
    return found


def _too_few(summary: LossSummary, options: BoundOptions) -> str:
    """Say which source has too few rows, and what would help."""
    k = int(np.argmin(summary.rows))
    who, n = options.names[k] if options.names else f"source {k + 1}", summary.rows[k]
    if not options.claims and n >= MANY:
        return "Nothing is claimed: these rows have taught what they judge."
    what, help_ = "held-out rows", "certify on new rows, or give more."
    if options.claims and summary.n_folds == 1:
        what, help_ = "rows", "give more, or equal weights and a bound on the loss."
    return f"Nothing is claimed: {who} has {n:.0f} {what}, and {MANY} are needed; {help_}"


def clip_of(summary: LossSummary, most: float = np.inf, least: float | None = None) -> float:
    """c: the largest quantile that about ten rows of a source exceed, within bounds.

    Of labels it is at least the loss of chance: that of a right answer would be no clip.
    """
    return float(min(max(summary.quantiles().max(), least or -np.inf), most))


def lower_ends(summary: LossSummary, delta: float) -> tuple[float, float]:
    """What the worst loss and the regret exceed with confidence 1 − δ each, as rows become many."""

    def worst(paired: float) -> float:
        return max(
            -mean_upper_bound(paired * s.own - s.losses, delta, "student", weights=s.weights)
            for s in summary.samples
        )

    return worst(0.0), worst(1.0)
