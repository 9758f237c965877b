"""Learn, certify and compare on what sites say of their rows: the rows themselves stay there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from anymix.core import Assumptions, Certificate
from anymix.estimators import Comparison, compare_tables, usual_methods, verdicts
from anymix.exchange import ReceivedSource, SiteTable, join_sites
from anymix.models.folder import SavedModel, check_several
from anymix.models.place import Place
from anymix.models.record import TASKS
from anymix.models.seen_rows import seen_sources
from anymix.models.writing import write_model
from anymix.sources import (
    Tables,
    TrainingRows,
    certify_tables,
    check_measure,
    combined_predictions,
    usual_clip,
    warn_of_training_rows,
    without_confidence,
)


def fit_sites(
    received: Sequence[ReceivedSource],
    sites: Sequence[SiteTable],
    teaching: TrainingRows | None = None,
    **settings: Any,
) -> Any:
    """Learn one model of sources that were received; `settings` are those of the estimators.

    Where further rows teach, what the sites say judges.
    """
    kind = TASKS[received[0].manifest.task]
    model = kind.from_sources([one.source for one in received], loss=sites[0].loss, **settings)
    return model.fit_tables(join_sites(sites, received), teaching)


def fit_folder(
    place: Place,
    received: Sequence[ReceivedSource],
    sites: Sequence[SiteTable],
    **settings: Any,
) -> tuple[Any, dict[str, Any]]:
    """Learn a model as `fit_sites` does, and write it; return it with its record."""
    model = fit_sites(received, sites, **settings)
    return model, write_model(place, model, received)


def compare_sites(
    saved: SavedModel,
    sites: Sequence[SiteTable],
    confidence: float = 0.95,
    measure: str | None = None,
) -> tuple[Comparison, list[str]]:
    """Put a model beside its sources on new rows; name the sources whose rows are not new.

    `measure` is compared in place of the loss: "accuracy", "auc", "mae", ...
    """
    check_several(saved.path, saved.model)
    # Rows are ranked by what is said of all classes, so that each must tell its label.
    ranked = measure is not None and check_measure(measure) == "auc"
    tables, model = _joined(sites, saved, ranked), saved.model
    names = [str(name) for name in model.source_names_]
    tables.check_loss(model.loss, model.combination_.rule)
    seen = _seen(tables, sites, model)
    methods = usual_methods(tables, model.combination_, names)
    by: dict[str, Any] = {"confidence": confidence, "measure": measure}
    found = compare_tables(tables, methods, names, model.loss, **by)
    said = combined_predictions(tables, model.combination_)
    told = verdicts(tables, said, model.loss, fresh=not seen, **by)
    return replace(found, verdicts=told), seen


def certify_sites(
    saved: SavedModel,
    sites: Sequence[SiteTable],
    confidence: float = 0.95,
    loss_bound: float | None = None,
    measure: str | None = None,
) -> tuple[Certificate, list[str]]:
    """Certify a model on new rows; name the sources whose rows are not new.

    Rows that the model was learned from earn no confidence.  `measure` is certified in place of the
    loss: "accuracy", "mae", ...
    """
    check_several(saved.path, saved.model)
    tables, model = _joined(sites, saved), saved.model
    seen, told = _seen(tables, sites, model), hasattr(model, "tables_")
    tables.check_loss(model.loss, model.combination_.rule)
    found = certify_tables(
        tables,
        model.combination_,
        model.loss,
        confidence=confidence,
        measure=measure,
        # Rows that stayed at their sites have left no own losses to clip by.
        clip=usual_clip(model.tables_, model.loss, measure) if told else None,
        assumptions=Assumptions(loss_bound=loss_bound),
    )
    return model.named(without_confidence(found, seen)), seen


def _seen(tables: Tables, sites: Sequence[SiteTable], model: Any) -> list[str]:
    """Name the sources whose rows fit has seen: by what is said of them, or by themselves."""
    found = set(model.seen_among(tables))
    if hasattr(model, "tables_"):
        found |= set(seen_sources(tables, model))
    known = getattr(model, "seen_", None)
    rows = None if known is None else known.rows
    names = [str(name) for name in model.source_names_]
    for site in sites:
        if rows is None or site.content is None:
            continue
        if rows.have_seen(site.content, names.index(site.site)):
            found.add(site.site)
    return [name for name in names if name in found]


def _joined(sites: Sequence[SiteTable], saved: SavedModel, whole: bool = False) -> Tables:
    """Rows that are at hand are judged as whole as those that the model was learned from."""
    several = hasattr(saved.model, "tables_")
    whole = whole or (several and not saved.model.tables_.at_label)
    tables = join_sites(sites, saved.received, whole=whole)
    warn_of_training_rows(tables, [one.source for one in saved.received], stacklevel=3)
    return tables
