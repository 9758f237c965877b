"""Learn, certify and compare models from the tables of sites; the rows stay there.

New rows are matched with those that z was learned from by the sources' predictions.  Rows of
few values match by chance: as large a share as among the rows that z was learned from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from anymix._arrays import Twins, more_than_chance
from anymix.core import Assumptions, Certificate, log_responsibilities, share_ranges
from anymix.estimators import (
    Comparison,
    certification_cut,
    compare_tables,
    usual_methods,
    verdicts,
)
from anymix.exceptions import InputError
from anymix.exchange import (
    ReceivedSource,
    SiteTable,
    is_rounded,
    join_sites,
    round_outcomes,
)
from anymix.models.model_folder import SavedModel, check_several
from anymix.models.model_record import TASKS
from anymix.models.target_folder import ReservedFolder
from anymix.models.writing import write_model
from anymix.sources import (
    Grounds,
    Novelty,
    Tables,
    TrainingRows,
    certify_tables,
    check_measure,
    combined_predictions,
    round_responsibilities,
    warn_of_training_rows,
    without_confidence,
)


def fit_folder(
    place: ReservedFolder,
    received: Sequence[ReceivedSource],
    sites: Sequence[SiteTable],
    teaching: TrainingRows | None = None,
    **settings: Any,
) -> tuple[Any, dict[str, Any]]:
    """Learn one model of sources that were received, write it, and return it with its record.

    `settings` are those of the estimators.  Where `teaching` rows are given z is learned from
    these, and the rows of the sites evaluate it.
    """
    kind = TASKS[received[0].manifest.task]
    model = kind.from_sources([one.source for one in received], loss=sites[0].loss, **settings)
    fresh = not any(site.cross_fitted for site in sites)
    model.fit_tables(join_sites(sites, received), teaching, fresh=fresh)
    evidence = model.result_.evidence
    if evidence is not None and evidence.novelty is None and teaching is None:
        novelty = joined_novelty(sites, [str(name) for name in model.source_names_])
        model.result_ = replace(model.result_, evidence=replace(evidence, novelty=novelty))
    return model, write_model(place, model, received)


def joined_novelty(sites: Sequence[SiteTable], names: Sequence[str]) -> Novelty | None:
    """Return the log-density quantiles of each site, if all have sent them and histograms."""
    ordered = sorted(sites, key=lambda site: names.index(site.site))
    own = [site.own_quantiles for site in ordered if site.own_quantiles is not None]
    totals = [site.total_histogram for site in ordered if site.total_histogram is not None]
    if len(own) < len(sites) or len(totals) < len(sites):
        return None
    return Novelty(tuple(own), tuple(totals))


def compare_sites(
    saved: SavedModel,
    sites: Sequence[SiteTable],
    confidence: float = 0.95,
    measure: str | None = None,
) -> tuple[Comparison, list[str]]:
    """Compare a model with its sources on new rows; name the sources whose rows are not new.

    `measure` is compared in place of the loss: "accuracy", "error_rate", "auc", ...
    """
    # Rows are ranked by what is said of all classes, so that each must tell its label.
    ranked = measure is not None and check_measure(measure) == "auc"
    tables, seen = _joined(sites, saved, ranked)
    model, by = saved.model, dict[str, Any](confidence=confidence, measure=measure)
    names = [str(name) for name in model.source_names_]
    methods = usual_methods(tables, model.combination_, names)
    compared: Comparison = compare_tables(tables, methods, names, model.loss, **by)
    predictions = combined_predictions(tables, model.combination_)
    judged = verdicts(tables, predictions, model.loss, fresh=not seen, **by)
    return replace(compared, verdicts=judged), seen


def certify_sites(
    saved: SavedModel,
    sites: Sequence[SiteTable],
    confidence: float = 0.95,
    loss_bound: float | None = None,
    measure: str | None = None,
    subpopulation: float | None = None,
) -> tuple[Certificate, list[str]]:
    """Certify a model on new rows; name the sources whose rows are not new.

    Rows that the model was learned from get no guarantee.  `measure` is certified in place of the
    loss: "error_rate", "mae", ...  Any subpopulation of at least that share is bounded as well.
    """
    (tables, seen), model = _joined(sites, saved), saved.model
    names = [str(name) for name in model.source_names_]
    cut = certification_cut(model, tables, measure, subpopulation)
    fresh = not any(site.cross_fitted for site in sites)
    mixtures = share_ranges(model.mixtures, names)
    grounds = Grounds(confidence, fresh, names=names, mixtures=mixtures, **cut)
    found = certify_tables(
        tables,
        model.combination_,
        model.loss,
        measure=measure,
        grounds=grounds,
        assumptions=Assumptions(loss_bound=loss_bound),
    )
    return without_confidence(found, seen), seen


def _joined(
    sites: Sequence[SiteTable], saved: SavedModel, whole: bool = False
) -> tuple[Tables, list[str]]:
    """Return rows as tables, as whole as those of fit, and the sources whose rows are not new."""
    model, old = saved.model, getattr(saved.model, "tables_", None)
    pooled = [site.site for site in sites if site.means]
    if pooled:
        raise InputError(
            f"the file of {pooled[0]}",
            "holds means over rows, by which z can be learned and nothing certified or compared; "
            "ask the site for a file without --mean-of",
        )
    check_several(saved.path, model)
    whole = whole or (old is not None and not old.at_label)
    tables = join_sites(sites, saved.received, whole=whole)
    warn_of_training_rows(tables, [one.source for one in saved.received], stacklevel=3)
    tables.check_loss(model.loss, model.combination_.rule)
    names = [str(name) for name in model.source_names_]
    # Rows are known by what is said of them, or by themselves.
    seen = set(model.seen_among(tables))
    if old is not None:
        seen |= {n for k, n in enumerate(names) if _are_seen(*_fingerprints(tables, old, k))}
    known: Any = getattr(model, "seen_", None)
    for site in sites if known is not None and known.knows_rows else ():
        if site.content is None:
            continue
        # Content of numbers are their bytes.
        content: Any = site.content if known.steps is None else site.content.view(np.float64)
        if known.have_seen(content, names.index(site.site)):
            seen.add(site.site)
    return tables, [name for name in names if name in seen]


# Digits after the point: more than chance can match, fewer than two machines differ in.
DIGITS = 6


def note_on(seen: list[str]) -> str:
    """Describe which rows are not new, and a remedy; nothing if all are new."""
    said = (
        f"\nThe rows of {', '.join(seen)} are those that z was learned from, or some of them, so "
        "this flatters; give rows that fit has not seen."
    )
    return said if seen else ""


def _fingerprints(new: Tables, old: Tables, k: int) -> list[Counter[bytes]]:
    """Fingerprints of the rows of source k in both, rounded if either is from a site's file."""
    responses = []
    for tables in (new, old):
        rows = np.asarray(tables.sample_domain) == k
        loss = "cross_entropy" if tables.predictions.ndim == 3 else "squared"
        log_r = log_responsibilities(tables.log_masses[:, rows])
        responses.append((log_r, tables.outcomes()[:, rows], loss))
    rounded = [is_rounded(outcomes, loss) for _, outcomes, loss in responses]
    counts = []
    for (log_r, outcomes, loss), known in zip(responses, rounded, strict=True):
        if any(rounded):
            log_r = log_r if known else round_responsibilities(log_r)
            outcomes = round_outcomes(outcomes, loss)
        # Adding 0 turns -0 into 0, which has other bytes.
        found = np.round(np.concatenate([log_r, outcomes]), DIGITS) + 0.0
        counts.append(Counter(row.tobytes() for row in np.ascontiguousarray(found.T)))
    return counts


def _are_seen(new: Counter[bytes], old: Counter[bytes]) -> bool:
    if new == old:
        return True
    n = max(new.total(), 1)
    known = sum(count for row, count in new.items() if row in old) / n
    twins = sum(count for count in old.values() if count > 1)
    return more_than_chance(known, n, Twins(old.total(), twins))
