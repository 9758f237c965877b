"""From the losses of each source's rows to the upper bounds of a certificate.

    loss      max_k E min(ℓ(h, y), c)
    regret    max_k E [min(ℓ(h, y), c) − min(ℓ(h_k, y), c)]        paired: far less noisy
    above     max_k P(ℓ(h, y) > c): what the other two do not see
    excess    t + max_k E (min(ℓ(h, y), c) − t)₊ / β, where it is asked for: the mean of min(ℓ, c)
              over any subpopulation of at least a share β of any mixture

If mixtures are stated, max_λ Σ_k λ_k of source k's bound replaces max_k.  They share δ equally.
If a known bound M ≥ ℓ is low enough, c = M, and the third is not needed; this is decided by numbers
that are known before any loss.  Grounds:

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

from anymix._arrays import FloatArray
from anymix.core.guarantees.confidence import Method, mean_upper_bound
from anymix.core.guarantees.loss_summary import BoundKind, LossSummary, clip_of
from anymix.core.mixtures import ShareRange, worst_value

Ground = Literal["exact", "asymptotic", "measured"]

# From so many rows a source on asymptotic bounds are claimed: `python -m benchmarks.certificates`.
MANY = 200
# A known bound M serves where it adds at most this part of the loss of chance to a bound; and
# inside a fit with few rows, where nothing else does, up to half of it.
WORTH, WORTH_OF_FEW = 0.05, 0.5
# A bound that is nearly c says nothing; nor do two where so many rows may lose more than c.
TRIVIAL, MOST_ABOVE = 0.9, 0.25


class BoundOptions(NamedTuple):
    """Options for computing bounds.

    delta is the joint error probability; loss_bound a bound M on the loss that the user states,
    known_bound one that the loss itself has, chance the loss of equal class probabilities; clip is
    c, where it was chosen by other rows.  `fresh` says that the rows are new to what is judged,
    each to its part: else nothing is exact.  Without `claims` the model was trained on the rows,
    which earn no confidence.  `binary` losses are 0 or 1.  names are those of the sources.  share
    is β of subpopulations that are to be covered, and threshold its t, where other rows have chosen
    it. `mixtures` are those that the bounds are for, if not all.
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
    share: float | None = None
    threshold: float | None = None
    mixtures: tuple[ShareRange, ...] = ()

    def worst(self, values: FloatArray) -> float:
        """The largest mean of values (p,) over the mixtures that the bounds are for."""
        return worst_value(values, self.mixtures, self.names)

    def statements(self, clipped: bool) -> int:
        """The number of statements that share δ."""
        return 2 + clipped + (self.share is not None)

    @classmethod
    def at(cls, confidence: float, ways: float = 1, **known: Any) -> Self:
        """Return options whose error 1 − confidence is shared by several choices."""
        if not 0 < confidence < 1:
            raise ValueError(f"confidence must lie strictly between 0 and 1; got {confidence}.")
        return cls((1.0 - confidence) / ways, **known)


class UpperBounds(NamedTuple):
    """Bounds on loss and regret, None where no confidence is claimed, and their grounds.

    clip is c, or None where losses count as they are; share bounds the share of a source's rows
    that lose more.  rarest is the largest share of harmful rows that may have been missed.  reason
    says why nothing, or less, is claimed.  part bounds the loss of subpopulations, on the ground
    that the loss has.
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
    part: float | None = None


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
        few_of = n * (options.share or 1.0)
        if cap * folds * np.log(2 * folds / options.delta) / few_of <= worth * options.chance:
            M = cap
    known = M is not None or (options.clip is not None and K == 1)
    exact = fair and known and method != "student" and (few or named or K == 1)
    if not options.claims or (few and not exact):
        return UpperBounds(reason=_too_few(summary, options))
    c = M if M is not None else options.clip
    if c is None:
        c = clip_of(summary, cap, options.chance, options.share or 1.0)
    if c <= 0 <= summary.least + 1e-9:
        return UpperBounds(reason="Nothing is claimed: nearly all losses are 0.")
    bound = _exact_bounds if exact else _asymptotic_bounds
    found = bound(summary, options, c, clipped=M is None)
    if summary.least > -1e-9 and found.loss is not None and found.regret is not None:
        found = found._replace(regret=min(found.loss, found.regret))  # L_k − ε_k ≤ L_k
    if M is not None or c >= cap:
        found = found._replace(clip=None, share=None)
        return _with_part(_useful(found, c, np.inf), options, c)
    most = c - (1 - TRIVIAL) * abs(c) if method == "auto" else np.inf
    return _with_part(_useful(found, c, most), options, most)


def _with_part(found: UpperBounds, options: BoundOptions, most: float) -> UpperBounds:
    """Take back the bound on subpopulations from `most` on, or where many of them may exceed c."""
    if options.share is None or (found.loss is None and found.regret is None):
        return found._replace(part=None)
    above = (found.share or 0.0) / options.share
    if found.part is not None and found.part < most and above <= MOST_ABOVE:
        return found
    why = "more rows, or a larger share, would tell."
    reason = f"No bound on subpopulations of {100 * options.share:g} % is claimed: {why}"
    return found._replace(part=None, reason=" ".join(filter(None, (found.reason, reason))))


def _exact_bounds(
    summary: LossSummary, options: BoundOptions, c: float, clipped: bool
) -> UpperBounds:
    """Bounds that hold at every number of rows; each fold has its part of δ."""
    delta = options.delta / options.statements(clipped)
    how: Method = "betting" if options.method == "auto" else options.method
    # The worst source of a part is a fixed one; a mixture has up to p sources, and their errors.
    each = delta / summary.rows.size if options.mixtures else delta

    def worst(kind: BoundKind, method: Method, t: float = 0.0) -> float:
        """mean_t max_λ Σ_k λ_k of the bounds."""
        return float(np.mean([*map(options.worst, summary.exact_uppers(kind, c, each, method, t))]))

    above = 0.0
    if clipped:
        above = float(summary.exact_uppers("above", c, delta, "binomial").max(axis=1).mean())
    part, t = None, options.threshold
    if options.share is not None and t is not None:
        by: Method = "binomial" if options.binary and t == 0 else how
        part = t + worst("excess", by, t) / options.share
    return UpperBounds(
        loss=worst("loss", "binomial" if options.binary else how),
        loss_ground="exact",
        regret=worst("regret", how),
        regret_ground="exact",
        clip=c,
        method=how,
        share=above,
        rarest=float(np.log(summary.n_folds / delta)) * summary.n_folds / summary.n_rows,
        part=None if part is None else min(part, c),
    )


def _asymptotic_bounds(
    summary: LossSummary, options: BoundOptions, c: float, clipped: bool
) -> UpperBounds:
    """Bounds that hold as rows become many; crossed folds share δ among the sources."""
    delta, part = options.delta / options.statements(clipped), None
    fixed = summary.n_folds == 1 and not options.mixtures
    each = delta if fixed else -np.expm1(np.log1p(-delta) / summary.rows.size)
    if options.share is not None:
        t = options.threshold
        t = summary.threshold(options.share, c) if t is None else t
        excess = options.worst(summary.asymptotic_uppers("excess", c, each, t))
        part = min(t + excess / options.share, c)
    return UpperBounds(
        loss=min(options.worst(summary.asymptotic_uppers("loss", c, each)), c),
        loss_ground="asymptotic",
        regret=options.worst(summary.asymptotic_uppers("regret", c, each)),
        regret_ground="asymptotic",
        clip=c,
        method="student",
        share=float(summary.asymptotic_uppers("above", c, each).max()) if clipped else 0.0,
        rarest=float(np.log(1 / each)) / summary.n_rows,
        part=part,
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
        return "Nothing is claimed: the model was trained on these rows."
    what, help_ = "held-out rows", "certify on new rows, or give more."
    if options.claims and summary.n_folds == 1:
        what, help_ = "rows", "give more, or equal weights and a bound on the loss."
    return f"Nothing is claimed: {who} has {n:.0f} {what}, and {MANY} are needed; {help_}"


def lower_ends(summary: LossSummary, delta: float) -> tuple[float, float]:
    """The largest of the sources' asymptotic lower bounds of the loss, and of the regret.

    Each source's is at 1 − δ/p, so that the largest of p holds with probability 1 − δ.
    """
    each = delta / len(summary.samples)

    def worst(paired: float) -> float:
        return max(
            -mean_upper_bound(paired * s.own - s.losses, each, "student", weights=s.weights)
            for s in summary.samples
        )

    return worst(0.0), worst(1.0)
