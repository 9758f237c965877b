"""Certify with rows in blocks: a fit, on the rows that each part never saw; or new rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from anymix._arrays import FloatArray
from anymix.core import (
    FOLD_MODELS,
    Assumptions,
    Bound,
    BoundOptions,
    Certificate,
    Combination,
    CrossFittedCombination,
    Loss,
    LossSummary,
    ReferenceLoss,
    ShareRange,
    TheoremSums,
    certify_rows,
    check_stated,
    facts_of,
    get_loss,
    paper_bounds,
)
from anymix.sources.block_summary import BlockLossSummary, joined_responses
from anymix.sources.blocks import Blocks
from anymix.sources.cross_fitting import HeldOut
from anymix.sources.error_measures import chance_loss, measure_of, own_values, reference_table
from anymix.sources.queries import Arrays, once, pack_average
from anymix.sources.tables import Tables


class Grounds(NamedTuple):
    """What a certificate of a fit rests on.

    Without `fresh` the sources, or their densities, were trained on folds of the evaluation rows;
    the fold models are certified.  If one of several ways to learn was chosen on all rows, these
    share the error.  names are those of the sources; clip is c, where it was
    chosen by other rows, and threshold t for subpopulations of a share β, if they are asked about.
    `mixtures` are those that the certificate is for, if not all.
    Without confidence losses are only measured.
    """

    confidence: float | None = 0.95
    fresh: bool = True
    ways: int = 1
    names: Sequence[str] = ()
    clip: float | None = None
    share: float | None = None
    threshold: float | None = None
    mixtures: tuple[ShareRange, ...] = ()

    def options(self, **known: Any) -> BoundOptions | None:
        """Return how bounds are found, with what is known of the loss; None without confidence."""
        if self.confidence is None:
            return None
        given = self._asdict()
        del given["confidence"], given["ways"]
        return BoundOptions.at(self.confidence, self.ways, **given, **known)


class JudgedAverage:
    """An average of combinations, and the rows in blocks that evaluate it.

    judged says what evaluates each row: "folds" by the part of the average that never saw it,
    "new" by all of it, "alone" by the one part that there is.
    """

    def __init__(
        self,
        rows: Tables | Blocks,
        used: CrossFittedCombination,
        loss: str | Loss,
        judged: str,
        measure: str | Loss | None = None,
        set_aside: Sequence[int] = (),
    ):
        self.blocks, self.used, self.judged = Blocks.of(rows), used, judged
        self.options: dict[str, Any] = {"rule": used.rule, "loss": loss, "judged": judged}
        self.options |= {} if measure is None else {"measure": measure}
        self.judge = measure_of(measure, loss, self.blocks.n_classes)
        self.n_folds = len(used.parts) if judged == "folds" else 1
        self.folds = self.blocks.folds | {"folds": np.array(self.n_folds)}
        self.arrays: Arrays = (
            pack_average(used) | self.folds | {"homes": self.blocks.homes(set_aside)}
        )

    @once
    def held_out(self) -> HeldOut | None:
        """The evaluated predictions, if the rows are in memory."""
        block = self.blocks.in_memory
        return None if block is None else block.held_out(self.options, self.arrays)

    @once
    def summary(self) -> LossSummary:
        """The loss summary that a certificate needs."""
        if self.blocks.in_memory is None or self.held_out is None:
            return BlockLossSummary(self)
        tables = self.blocks.in_memory.tables
        losses = self.judge.value(self.held_out.predictions, np.asarray(tables.targets))
        rows = losses, own_values(tables, self.judge), tables.domain, tables.sample_weight
        return LossSummary.of_rows(*rows, self.held_out.fold, tables.n_sources, tables.groups)

    @property
    def chance(self) -> float | None:
        """The loss of equal class probabilities; None for numbers."""
        c = self.blocks.n_classes
        return None if c is None else chance_loss(self.judge, c, 1 if self.blocks.at_label else c)

    def price(self) -> float:
        """The largest loss due to normalising: the sum over labels is at most min(p, |Y|)."""
        if self.used.rule != "normalised" or self.blocks.n_classes is None:
            return 0.0
        return float(np.log(min(self.used.z.size, self.blocks.n_classes)))

    def theorems(self, given: Assumptions) -> tuple[Bound, ...]:
        """The theorems for each part on the rows that it was learned without, averaged (Jensen).

        A bound that is contradicted for a part is contradicted.
        """
        totals = self.blocks.total("count", {}, self.folds)["weights"]
        totals = np.broadcast_to(totals, (len(self.used.parts), totals.shape[1]))
        asked, normalised = given.mass_floor is not None, self.used.rule == "normalised"
        extra = self.arrays | {"totals": totals, "asked": asked}
        joined = joined_responses(self.blocks.ask("theorems", self.options, extra))
        names = ["largest", "lowest", "away", "spared"] + ["floor"] * asked
        names += ["disagreement"] * (asked and normalised)
        each = []
        for t, part in enumerate(self.used.parts):
            known: dict[str, Any] = {name: float(joined[name][t]) for name in names}
            points = TheoremSums(
                losses=joined["losses"][t],
                own=joined["own"][t],
                eta=self.used.eta,
                logarithmic=get_loss(self.options["loss"]).logarithmic,
                log_total=self.price() if normalised else None,
                price=self.price(),
                **known,
            )
            each.append(paper_bounds(facts_of(points, part.z, given), given))
        found = []
        for same in zip(*each, strict=True):
            refuted = next((one for one in same if one.contradicted), same[0])
            value = float(np.mean([one.value for one in same]))
            checked = all(one.checked for one in same)
            found.append(replace(refuted, value=value, checked=checked))
        return tuple(found)


def references(
    blocks: Blocks,
    options: dict[str, Any],
    clip: float | None,
    names: Sequence[str] = (),
    worst: Callable[[FloatArray], float] = np.max,
) -> tuple[ReferenceLoss, ...]:
    """Worst losses of chance or a constant, the plain average and each source alone.

    If a bound is on clipped losses, these losses are also given clipped.
    """
    given = {"clip": np.inf if clip is None else clip}
    given["constant"] = blocks.mean_target if blocks.n_classes is None else 0.0
    sums = blocks.total("beside", options, given)
    total = blocks.by_fold["weights"].sum(axis=0)
    means = sums["plain"] / total, sums["clipped"] / total
    # Errors alone do not tell what was to be predicted.
    blind = [] if blocks.at_label else ["a constant"]
    return reference_table(["chance"] if blocks.n_classes else blind, *means, names, worst)


def _certify(
    average: JudgedAverage,
    options: BoundOptions | None,
    names: Sequence[str] = (),
    assumptions: Assumptions | None = None,
) -> Certificate:
    """State what rows guarantee, with the reference losses: the one body of all certificates.

    The theorems of the paper are added where `assumptions` are given.
    """
    used, worst = average.used, np.max if options is None else options.worst
    known: dict[str, Any] = {"z": used.z, "eta": used.eta, "loss": average.judge.name}

    def judged() -> Certificate:
        found = certify_rows(average.summary, options, **known, assumptions=assumptions)
        told = references(average.blocks, average.options, found.clip, names, worst)
        return replace(found, beside=told)

    found, bounds = average.blocks.at_once(
        judged, lambda: () if assumptions is None else average.theorems(assumptions)
    )
    return replace(found, bounds=bounds)


def certify_average(
    average: JudgedAverage, grounds: Grounds, assumptions: Assumptions | None
) -> Certificate:
    """Certify the average that a fit has learned, by the rows of the fit.

    Each part is evaluated on the rows that it was learned without, so that everything is covered
    that was learned from tables: calibration, sharpness, consulting and z.
    """
    bound = average.judge.bound
    options = grounds.options(
        known_bound=None if bound is None else bound + average.price(),
        chance=average.chance,
        claims=average.judged != "alone",
    )
    found = _certify(average, options, grounds.names, assumptions)
    confidence = None if found.confidence is None else grounds.confidence
    if assumptions is None:
        return replace(found, confidence=confidence)
    covers = "" if grounds.fresh else FOLD_MODELS
    return replace(found, confidence=confidence, n_candidates=float(grounds.ways), covers=covers)


def certify_learned(
    tables: Tables,
    combination: Combination | CrossFittedCombination,
    held_out: HeldOut,
    loss: str | Loss,
    grounds: Grounds | None = None,
    theorems: bool = True,
) -> Certificate:
    """Recompute the certificate of a fit from its held-out predictions.

    Without `theorems` the predictions are of other models, each made without its row, and of the
    combination only z and η are named.
    """
    used = CrossFittedCombination.of(combination)
    several = "folds" if len(used.parts) > 1 else "new"
    average = JudgedAverage(tables, used, loss, several if held_out.crossed else "alone")
    average.held_out = held_out
    return certify_average(average, grounds or Grounds(), Assumptions() if theorems else None)


def certify_tables(
    rows: Tables | Blocks,
    combination: Combination | CrossFittedCombination,
    loss: str | Loss,
    *,
    grounds: Grounds | None = None,
    held_out: HeldOut | None = None,
    measure: str | Loss | None = None,
    assumptions: Assumptions | None = None,
) -> Certificate:
    """Certify a combination on new rows, from the sources' predictions for them.

    Parameters
    ----------
    rows : Tables or Blocks
        With targets and the source of each row; rows that the combination was not learned from.
    combination : Combination or CrossFittedCombination
    loss : str or Loss
        That it was learned with.
    grounds : Grounds, optional
        Confidence, clip and the names of the sources.
    held_out : HeldOut, optional
        What a model predicts that is no combination of the tables, such as one with members; the
        theorems say nothing of it.
    measure : str or Loss, optional
        What is certified in place of the loss: "error_rate", "mae",
        "brier", or any other loss of labels, or of numbers.
    assumptions : see `anymix.core.certify`
    """
    given, used = assumptions or Assumptions(), CrossFittedCombination.of(combination)
    given.check()
    average = JudgedAverage(rows, used, loss, "new", measure)
    theorems = given if measure is None and held_out is None else None
    if held_out is not None:
        average.held_out = held_out
    check_stated(given, average.summary.largest)
    grounds, judge = grounds or Grounds(), average.judge
    price = average.price() if measure is None else 0.0
    stated = 1.0 if judge.binary and given.loss_bound is None else given.loss_bound
    M, known = (None if one is None else one + price for one in (stated, judge.bound))
    options = grounds.options(
        loss_bound=M, known_bound=known, chance=average.chance, binary=judge.binary
    )
    found = _certify(average, options, grounds.names, theorems)
    return replace(found, assumptions=given)


def usual_clip(
    tables: Tables,
    held_out: HeldOut,
    loss: str | Loss,
    measure: str | Loss | None = None,
    new: Tables | None = None,
) -> float:
    """Return the clip c for new rows: that of the rows of a fit, or lower for few new rows."""
    return float(usual_cut(tables, held_out, loss, measure, new)["clip"])


def usual_cut(
    tables: Tables,
    held_out: HeldOut,
    loss: str | Loss,
    measure: str | Loss | None = None,
    new: Tables | None = None,
    share: float | None = None,
) -> dict[str, Any]:
    """The clip c and the threshold t of `Grounds` for new rows, by the rows of a fit.

    t is where, by these rows, the bound on subpopulations of a share is lowest.
    """
    judge = measure_of(measure, loss, tables.n_classes)
    if judge.binary:
        return {"clip": 1.0, "share": share, "threshold": 0.0}
    losses = judge.value(held_out.predictions, np.asarray(tables.targets))
    known = own_values(tables, judge), tables.domain, tables.sample_weight, None, tables.n_sources
    c = tables.n_classes
    chance = None if c is None else chance_loss(judge, c, 1 if tables.at_label else c)
    summary = LossSummary.of_rows(losses, *known)
    # How many new rows there are is known before their losses: about ten of them exceed c.
    counts = np.inf if new is None else np.bincount(new.domain, minlength=new.n_sources)
    few = max(float(np.min(counts)), 1.0)
    clip = max(sample.quantile(share or 1.0, few) for sample in summary.samples)
    clip = clip if chance is None else max(clip, chance)
    threshold = None if share is None else summary.threshold(share, clip)
    return {"clip": clip, "share": share, "threshold": threshold}


def without_confidence(certificate: Certificate, seen: Sequence[str]) -> Certificate:
    """Withdraw all claims of confidence: the model was trained on the rows of some sources."""
    if not seen:
        return certificate
    return replace(
        certificate,
        confidence=None,
        method=None,
        loss_upper=None,
        regret_upper=None,
        loss_ground="measured",
        regret_ground="measured",
        clip=None,
        share_above=None,
        rarest=None,
        subpopulation_upper=None,
        reason="",
        seen=tuple(seen),
    )
