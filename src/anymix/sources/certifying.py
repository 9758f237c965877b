"""Certify on tables: what was learned, by the rows that each part never saw; or on new rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from anymix._arrays import FloatArray, IntArray
from anymix.core import (
    FOLD_MODELS,
    Assumptions,
    Bound,
    BoundOptions,
    Certificate,
    Combination,
    CrossFittedCombination,
    Evidence,
    Loss,
    certify,
    certify_rows,
    check_stated,
    clip_of,
)
from anymix.sources.beside import beside, n_classes_of, targets_of
from anymix.sources.measures import Measure, measure_of
from anymix.sources.parts import HeldOut, answers
from anymix.sources.tables import Tables


class Grounds(NamedTuple):
    """What a certificate of a fit stands on.

    Without `fresh` the sources, or what weighs them, were trained on folds of the rows that judge;
    what is judged are those fold models.  Where all rows together have chosen one of several ways
    to learn, the error is shared by these.  names are those of the sources.
    """

    confidence: float = 0.95
    fresh: bool = True
    ways: int = 1
    names: Sequence[str] = ()


def certify_learned(
    tables: Tables,
    combination: CrossFittedCombination,
    held_out: HeldOut,
    loss: str | Loss,
    grounds: Grounds | None = None,
) -> Certificate:
    """State what the rows that a combination was learned from guarantee for it.

    Each part is judged by the rows that it was learned without, so that everything is covered that
    was learned from tables: calibration, sharpness, consulting and z.
    """
    grounds = grounds or Grounds()
    found = certify_parts(
        tables,
        held_out,
        loss,
        combination.z,
        combination.eta,
        grounds,
        price_of(combination, n_classes_of(tables)),
    )
    return founded(found, grounds, mean_bounds(tables, combination, held_out.fold, loss))


def founded(found: Certificate, grounds: Grounds, bounds: tuple[Bound, ...]) -> Certificate:
    """Add the theorems to a certificate of a fit, and what it covers."""
    covers = "" if grounds.fresh else FOLD_MODELS
    return replace(found, bounds=bounds, n_candidates=float(grounds.ways), covers=covers)


def certify_parts(
    tables: Tables,
    held_out: HeldOut,
    loss: str | Loss,
    z: FloatArray,
    eta: float,
    grounds: Grounds,
    price: float = 0.0,
) -> Certificate:
    """State what rows guarantee for an average of which each part is judged by rows new to it.

    price is what the rule may add to a bound on the sources' loss.
    """
    judge = measure_of(None, loss, n_classes_of(tables))
    evidence = _evidence(tables, held_out.losses(tables, loss), judge, held_out.fold)
    terms = terms_of_fit(judge, grounds, held_out.crossed, price)
    found = certify_rows(evidence, terms, z=z, eta=eta, loss=judge.name)
    return replace(
        found,
        confidence=None if found.confidence is None else grounds.confidence,
        beside=beside(tables, judge, found.clip, grounds.names),
    )


def terms_of_fit(
    judge: Measure, grounds: Grounds, crossed: bool, price: float = 0.0
) -> BoundOptions:
    """How the rows of a fit are to bound what it has learned, each part judged by rows new to it.

    Without `crossed` there is one part, which has seen them all.
    """
    return BoundOptions.at(
        grounds.confidence,
        grounds.ways,
        known_bound=None if judge.bound is None else judge.bound + price,
        fresh=grounds.fresh,
        claims=crossed,
    )


def price_of(combination: CrossFittedCombination, n_classes: int | None) -> float:
    """What normalising may add to a source's loss: the sum over labels is at most min(p, |Y|)."""
    normalised = combination.rule == "normalised" and n_classes is not None
    return float(np.log(min(combination.z.size, n_classes or 1))) if normalised else 0.0


def mean_bounds(
    tables: Tables,
    combination: CrossFittedCombination,
    fold: IntArray | None,
    loss: str | Loss,
    given: Assumptions | None = None,
) -> tuple[Bound, ...]:
    """The theorems for each part on the rows that it was learned without, averaged (Jensen).

    Without folds every part is judged by all rows.  A bound that is refuted for a part is refuted.
    """
    found = []
    for t, part in enumerate(combination.parts):
        some = tables if fold is None else tables.taken(np.flatnonzero(fold == t))
        heard = some.heard(part.consulting).weighed(part.calibration)
        judged = heard.judgement(loss, part.eta, part.rule)
        found.append(certify(judged, part.z, confidence=None, assumptions=given).bounds)
    return mean_of_bounds(found)


def mean_of_bounds(found: Sequence[Sequence[Bound]]) -> tuple[Bound, ...]:
    """Average the theorems of several parts; one that is refuted for a part is refuted."""
    return tuple(_mean_bound(same) for same in zip(*found, strict=True))


def _mean_bound(same: Sequence[Bound]) -> Bound:
    refuted = next((one for one in same if one.contradicted), same[0])
    value = float(np.mean([one.value for one in same]))
    return replace(refuted, value=value, checked=all(one.checked for one in same))


def certify_tables(
    tables: Tables,
    combination: Combination | CrossFittedCombination,
    loss: str | Loss,
    *,
    confidence: float | None = 0.95,
    measure: str | Loss | None = None,
    clip: float | None = None,
    assumptions: Assumptions | None = None,
) -> Certificate:
    """State what new rows guarantee for a combination, from what the sources say of them.

    Parameters
    ----------
    tables : Tables
        With targets and the source of each row; rows that the combination was not learned from.
    combination : Combination or Averaged
    loss : str or Loss
        That it was learned with.
    confidence, clip, assumptions : see `anymix.core.certify`
    measure : str or Loss, optional
        What is certified in place of the loss: "accuracy" for the share of wrong labels, "mae",
        "brier", or any other loss of labels, or of numbers.
    """
    given, used = assumptions or Assumptions(), CrossFittedCombination.of(combination)
    given.check()
    judge = measure_of(measure, loss, n_classes_of(tables))
    evidence = _evidence(tables, judge.value(answers(tables, used), targets_of(tables)), judge)
    check_stated(given, evidence.largest)
    price = price_of(used, n_classes_of(tables)) if measure is None else 0.0
    terms = terms_of_rows(judge, confidence, given, clip, price)
    found = certify_rows(
        evidence, terms, z=used.z, eta=used.eta, loss=judge.name, assumptions=given
    )
    bounds = mean_bounds(tables, used, None, loss, given) if measure is None else ()
    return replace(found, bounds=bounds, beside=beside(tables, judge, found.clip))


def terms_of_rows(
    judge: Measure,
    confidence: float | None,
    given: Assumptions,
    clip: float | None = None,
    price: float = 0.0,
) -> BoundOptions | None:
    """How new rows are to bound what they judge; None where no confidence is asked for."""
    if confidence is None:
        return None
    stated = 1.0 if judge.binary and given.loss_bound is None else given.loss_bound
    M, known = (None if one is None else one + price for one in (stated, judge.bound))
    return BoundOptions.at(
        confidence, loss_bound=M, known_bound=known, clip=clip, binary=judge.binary
    )


def usual_clip(tables: Tables, loss: str | Loss, measure: str | Loss | None = None) -> float:
    """c for new rows, by rows that taught the model: where few own models lose more at home."""
    judge = measure_of(measure, loss, n_classes_of(tables))
    own = own_values(tables, judge)
    return 1.0 if judge.binary else clip_of(_gathered(tables, own, own))


def without_confidence(certificate: Certificate, seen: Sequence[str]) -> Certificate:
    """Take every claim back: the rows of some sources have taught what they judge."""
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
        seen=tuple(seen),
    )


def _evidence(
    tables: Tables, judged: FloatArray, judge: Measure, fold: IntArray | None = None
) -> Evidence:
    return _gathered(tables, judged, own_values(tables, judge), fold)


def own_values(tables: Tables, judge: Measure) -> FloatArray:
    """What the own model of each row's source is judged at there, (m,)."""
    domain = np.asarray(tables.sample_domain)
    return judge.value(tables.predictions[domain, np.arange(domain.size)], targets_of(tables))


def _gathered(
    tables: Tables, judged: FloatArray, own: FloatArray, fold: IntArray | None = None
) -> Evidence:
    domain, p = np.asarray(tables.sample_domain), len(tables.log_masses)
    return Evidence.of_rows(judged, own, domain, tables.sample_weight, fold, p)
