"""Learn, certify and compare on what sites say of their rows: the rows themselves stay there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from anymix.core import Assumptions, Certificate, n_rounded
from anymix.estimators import Comparison, compare_tables, usual_methods
from anymix.exchange import ReceivedSource, SiteTable, join_sites
from anymix.models.folder import SavedModel, check_several
from anymix.models.place import Place
from anymix.models.record import TASKS
from anymix.models.seen_rows import seen_sources
from anymix.models.writing import write_model
from anymix.sources import Tables, certify_tables, consult


def fit_sites(
    received: Sequence[ReceivedSource], sites: Sequence[SiteTable], **settings: Any
) -> Any:
    """Learn one model of sources that were received; `settings` are those of the estimators."""
    kind = TASKS[received[0].manifest.task]
    model = kind.from_sources([one.source for one in received], loss=sites[0].loss, **settings)
    return model.fit_tables(join_sites(sites, received))


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
    saved: SavedModel, sites: Sequence[SiteTable], confidence: float = 0.95
) -> tuple[Comparison, list[str]]:
    """Put a model beside its sources on new rows; name the sources whose rows are not new."""
    check_several(saved.path, saved.model)
    tables, model = _joined(sites, saved), saved.model
    names = [str(name) for name in model.source_names_]
    tables.check_loss(model.loss, model.combination_.rule)
    seen = seen_sources(tables, model)
    methods = usual_methods(tables, model.combination_, names, _heard(tables, model, seen))
    return compare_tables(tables, methods, names, model.loss, confidence=confidence), seen


def certify_sites(
    saved: SavedModel,
    sites: Sequence[SiteTable],
    confidence: float = 0.95,
    loss_bound: float | None = None,
) -> tuple[Certificate, list[str]]:
    """Certify a model on new rows; name the sources whose rows are not new.

    On the rows that z was learned from the error is shared among all that fit could choose: each
    rounded z with each calibration, of which fit has kept the number.
    """
    check_several(saved.path, saved.model)
    tables, model = _joined(sites, saved), saved.model
    seen, p = seen_sources(tables, model), len(saved.received)
    tables.check_loss(model.loss, model.combination_.rule)
    found = certify_tables(
        _heard(tables, model, seen),
        replace(model.combination_, consulting=None),
        model.loss,
        confidence=confidence,
        held_out=not seen,
        choices=max(1.0, _n_candidates(model) / n_rounded(p)) if seen else 1,
        assumptions=Assumptions(loss_bound=loss_bound),
    )
    return found, seen


def _joined(sites: Sequence[SiteTable], saved: SavedModel) -> Tables:
    """Rows that are at hand are judged as whole as those that the model was learned from."""
    several = "tables_" in vars(saved.model)
    whole = several and not saved.model.tables_.at_label
    return join_sites(sites, saved.received, whole=whole)


def _heard(tables: Tables, model: Any, seen: Sequence[str]) -> Tables:
    """What sources say after they heard each other; of rows that taught it, by pools without them.

    Rows that pools were learned from would flatter them.
    """
    heard = tables.heard(model.combination_.consulting)
    if heard is tables or not seen:
        return heard
    names = [str(name) for name in model.source_names_]
    aside = [k for k, name in enumerate(names) if name in model.set_aside_]
    crossed = consult(tables, model.loss, aside).tables.predictions
    predictions, domain = heard.predictions.copy(), np.asarray(tables.sample_domain)
    for k in (names.index(name) for name in seen):
        predictions[k, domain == k] = crossed[k, domain == k]
    return replace(heard, predictions=predictions)


def _n_candidates(model: Any) -> float:
    if model.certificate_ is None:
        raise ValueError(
            "z was adapted to traffic, so these rows cannot certify it; give new rows."
        )
    return float(model.certificate_.n_candidates)
