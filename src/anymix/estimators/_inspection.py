"""Inspection of fitted models: attributes, certificates, descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from anymix._arrays import FloatArray, n_rows
from anymix._parameters import Either, Number, check, share_rule
from anymix.core import (
    Assumptions,
    Certificate,
    Combination,
    CrossFittedCombination,
    Loss,
    share_ranges,
)
from anymix.estimators._description import describe
from anymix.estimators._fitting import settings_of
from anymix.estimators._members import aligned
from anymix.estimators._row_checks import (
    check_complete_y,
    check_domains,
    check_every_source,
    check_order,
    check_X,
    groups_of,
    take_columns,
)
from anymix.estimators._rows import Rows
from anymix.estimators._running import names_checked
from anymix.estimators.comparison import Comparison, compare_tables, usual_methods
from anymix.sources import (
    FitEvidence,
    FitResult,
    Grounds,
    HeldOut,
    Influence,
    Tables,
    certify_learned,
    certify_tables,
    evaluate,
    find_influence,
    measure_of,
    usual_cut,
    warn_of_training_rows,
    without_confidence,
)

CERTIFIED_ON_ALL = "a mixture may be all of it: add some of its rows to certify on"
# What a regressor has in place of what a classifier has, and the other way round.
INSTEAD = {
    "predict_interval": "predict_set",
    "predict_set": "predict_interval",
    "predict_proba": "predict and predict_interval",
}


class FromResult:
    """A fitted attribute that reads a field of `result_`, or of its evidence.

    If the fit has none, the AttributeError says why, and how to get one.
    """

    def __init__(self, field: str, optional: bool = True):
        self.field, self.optional = field, optional

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        if model is None:
            return self
        result: FitResult | None = vars(model).get("result_")
        part = result if self.field == "combination" else getattr(result, "evidence", None)
        value = getattr(part, self.field, None)
        absent = part is None or (value is None and not self.optional)
        if absent or (value is None and result is not None and result.members):
            raise_missing(model, self.name)
        return value

    def __set__(self, model: Any, value: Any) -> None:
        result: FitResult = vars(model).get("result_") or FitResult(None)
        if self.field == "combination":
            model.result_ = replace(result, combination=value)
        else:
            evidence = replace(result.evidence or FitEvidence(), **{self.field: value})
            model.result_ = replace(result, evidence=evidence)


def raise_missing(model: Any, name: str) -> NoReturn:
    """Raise the AttributeError that says why a model lacks an attribute, and what would give it."""
    kind, known = type(model).__name__, vars(model)
    learned = isinstance(getattr(type(model), name, None), FromResult | cached_property | property)
    members = getattr(known.get("result_"), "members", ())
    if learned and len(known.get("source_names_", ())) == 1 and name != "combination_":
        raise AttributeError(
            f"this {kind} has no {name}: it was fitted with one source, which leaves nothing to "
            "combine or certify; fit it with sample_domain, the source of each row."
        )
    if learned and members:
        raise AttributeError(
            f"this {kind} deploys the models of its folds (refit=False), of which each has its own "
            f"{name}: ask one of members_, or fit it with refit=True."
        )
    if learned and "source_names_" not in known and name != "z_":
        raise AttributeError(
            f"this {kind} has no {name} yet: fit it with sample_domain, the source of each row."
        )
    instead = f"; it has {INSTEAD[name]}." if name in INSTEAD else ""
    raise AttributeError(f"{kind!r} object has no attribute {name!r}{instead}")


class FittedEvidence:
    """The fitted attributes of a distribution-weighted model, and its description."""

    confidence: float
    eta: float
    loss: str | Loss
    mixtures: Mapping[str, tuple[float, float]] | None
    result_: FitResult
    router_: Any
    generalist_: Any
    _combined: Any
    source_names_: Any
    sources_: Any

    combination_ = FromResult("combination", optional=False)
    certificate_ = FromResult("certificate")
    solution_ = FromResult("solution")
    cross_loss_ = FromResult("cross_loss")
    calibration_report_ = FromResult("calibration_report")
    novelty_ = FromResult("novelty")
    held_out_ = FromResult("held_out", optional=False)
    advice_ = FromResult("consulting_gain")
    tables_ = FromResult("tables", optional=False)
    seen_ = FromResult("seen", optional=False)
    density_choice_ = FromResult("density_choice", optional=False)
    learner_choice_ = FromResult("learner_choice")
    set_aside_ = FromResult("set_aside")
    taught_ = FromResult("n_training")

    if not TYPE_CHECKING:  # there it would hide every misspelt attribute
        __getattr__ = raise_missing

    @property
    def z_(self) -> FloatArray:
        """The weights of the sources, shape (p,)."""
        members = self._members()
        if members:
            return np.mean([member.z_ for member in members], axis=0)
        combination: CrossFittedCombination = self.combination_
        return combination.z

    @property
    def members_(self) -> list[Any]:
        """With refit=False: the model that was learned without each fold."""
        members = self._members()
        if not members:
            raise_missing(self, "members_")
        return list(members)

    def _members(self) -> tuple[Any, ...]:
        return getattr(vars(self).get("result_"), "members", ())

    @cached_property
    def influence_(self) -> Influence:
        """The influence of each site's rows, and of each source, on the losses of the others.

        Computed when it is first read: z is learned again without each of them, on some thousand of
        the held-out rows.
        """
        names = [str(name) for name in self.source_names_]
        aside = tuple(k for k, name in enumerate(names) if name in self.set_aside_)
        settings = replace(settings_of(self), set_aside=aside)
        return find_influence(self.tables_, settings, names)

    @cached_property
    def comparison_(self) -> Comparison:
        """Each source alone, their average, the likeliest source and this model, on held-out rows.

        Each row is predicted by the part of the model that was learned without it.
        """
        return self.compared()

    def compared(self, measure: str | Loss | None = None) -> Comparison:
        """Return `comparison_` by another measure: "accuracy", "auc", "mae", "rmse", ..."""
        tables, names = self.tables_, [str(name) for name in self.source_names_]
        methods = usual_methods(tables, self.held_out_, names)
        sure = self.confidence
        return compare_tables(tables, methods, names, self.loss, confidence=sure, measure=measure)

    def describe(self) -> str:
        """Describe what was learned: the certificate, z, the comparison with baselines, warnings.

        Warnings appear if the plain average of the sources is better on held-out rows, or if a
        site or source raises the loss of another.
        """
        check_is_fitted(self, "combination_")
        return describe(self)

    def evaluate(self, X: Any, y: Any = None, sample_domain: Any = None) -> Tables:
        """Evaluate all sources at rows, once; return the tables that other methods accept.

        y and sample_domain, the label and the source of each row, are added where they are known.
        """
        check_is_fitted(self, "sources_")
        X, (sample_domain,), _ = take_columns(X, sample_domain=sample_domain)
        check_order(X, y=y, sample_domain=sample_domain)
        classes, members = vars(self).get("classes_"), self._members()
        if members:
            # Each source's model is the average of those of the folds.
            each = (member.evaluate(X).predictions for member in members)
            pairs = zip(members, each, strict=True)
            said = np.mean([[aligned(self, m, h) for h in all_] for m, all_ in pairs], axis=0)
            blank = np.full(said.shape[:2], -np.log(len(said)))
            tables = Tables(blank, said, classes=classes, has_densities=False)
        else:
            rows = check_X(self, X)
            with names_checked(self):
                given = self.sources_, rows, classes, self.router_
                tables = evaluate(*given, generalist=self.generalist_)
        if y is None:
            return tables
        check_complete_y(y)
        names = [str(name) for name in self.source_names_]
        return tables.labelled(y, check_domains(sample_domain, n_rows(X), names)[1])

    def certify(
        self,
        X: Any = None,
        y: ArrayLike | None = None,
        sample_domain: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        confidence: float | None = 0.95,
        loss_bound: float | None = None,
        measure: str | Loss | None = None,
        subpopulation: float | None = None,
    ) -> Certificate:
        """Certify the model on new rows, which neither sources nor z have seen.

        Without rows the certificate of `fit` is recomputed.

        Parameters
        ----------
        X, y, sample_domain : rows, their labels or numbers, the source of each, optional
            Rows that `fit` has seen are recognised, and get no guarantee.
        groups : array (n,), optional
            The group of each row, such as the patient, if rows depend on each other: the rows of a
            group count as one draw, and so do copies of a row.
        confidence : float or None
        loss_bound : float, optional
            A bound M on the loss of any row; it makes the confidence exact.  Without it losses are
            clipped at a value that few rows of `fit` exceed; this is exact, too.
        measure : str or Loss, optional
            What to certify in place of the loss: "error_rate", "mae",
            "brier", ...
        subpopulation : float, optional
            A share β, such as 0.1: also bound the mean loss on any subpopulation of at least this
            share of any mixture (`certificate.subpopulation_upper`).
        """
        if confidence is not None:
            check(confidence, "confidence", share_rule)
        check(subpopulation, "subpopulation", Either(None, share_rule))
        if X is None:
            if y is not None or (groups, loss_bound, measure) != (None, None, None):
                raise ValueError(
                    "y, groups, loss_bound and measure need new rows: give X and sample_domain too."
                )
            return _certified_again(self, confidence, subpopulation)
        check(loss_bound, "loss_bound", Either(None, Number(above=0)))
        classes = vars(self).get("classes_")
        measure_of(measure, self.loss, None if classes is None else len(classes))
        X, (sample_domain, groups), _ = take_columns(X, sample_domain=sample_domain, groups=groups)
        tables = self.evaluate(X, y, sample_domain)
        rows = Rows(X, np.asarray(y), tables.domain)
        draws = groups_of(rows, groups, stacklevel=3)
        if groups is None and draws is not None:
            kept = np.unique(draws, return_index=True)[1]
            X, tables = _safe_indexing(X, kept), tables.taken(kept)
        tables = replace(tables, groups=None if groups is None else draws)
        check_every_source(tables, self.source_names_, CERTIFIED_ON_ALL)
        members = self._members()
        if not members:
            warn_of_training_rows(tables, self.sources_, stacklevel=2)
        names = [str(name) for name in self.source_names_]
        cut = certification_cut(self, tables, measure, subpopulation)
        mixtures = share_ranges(self.mixtures, names)
        grounds = Grounds(confidence, names=names, mixtures=mixtures, **cut)
        certificate = certify_tables(
            tables,
            Combination(self.z_, self.eta) if members else self.combination_,
            self.loss,
            held_out=HeldOut(self._combined(X), 0 * tables.domain) if members else None,
            measure=measure,
            grounds=grounds,
            assumptions=Assumptions(loss_bound=loss_bound),
        )
        return without_confidence(certificate, self.seen_among(tables, X))

    def seen_among(self, tables: Tables, X: Any = None) -> list[str]:
        """Return the sources whose rows here were among those of `fit`, by their predictions."""
        seen = getattr(self, "seen_", None)
        if seen is None:
            return []
        rows = None if X is None else check_X(self, X)
        return [str(self.source_names_[k]) for k in seen.sources(tables, rows)]

    def seen_domains(self, X: Any, sample_domain: ArrayLike) -> list[str]:
        """Return the domains whose rows here were among those of `fit`, by their values.

        These domains may differ from the sources of the model.  A model that was fitted to tables
        has seen no rows: see `seen_among`.
        """
        seen = getattr(self, "seen_", None)
        if seen is None or not seen.knows_rows:
            return []
        rows, domain = check_X(self, X), np.asarray(sample_domain).astype(str)
        number = {str(name): k for k, name in enumerate(self.source_names_)}
        return [
            str(name)
            for name in np.unique(domain)
            if seen.have_seen(
                _safe_indexing(rows, np.flatnonzero(domain == name)), number.get(str(name))
            )
        ]


def certification_cut(
    model: Any, new: Tables, measure: str | Loss | None, share: float | None
) -> dict[str, Any]:
    """Where losses of new rows are clipped: from the rows of fit or, without them, as in fit."""
    if hasattr(model, "tables_"):
        return usual_cut(model.tables_, model.held_out_, model.loss, measure, new, share)
    stored = model.certificate_ if measure is None else None
    return {"clip": stored and stored.clip, "share": share, "threshold": 0.0}


def _certified_again(
    model: FittedEvidence, confidence: float | None, share: float | None
) -> Certificate:
    """State again what the rows of `fit` guarantee."""
    stored = getattr(model, "certificate_", None)
    if stored is None or not hasattr(model, "tables_"):
        raise ValueError(
            "the model keeps no rows of fit to certify it by; give new rows: X, y and "
            "sample_domain."
        )
    names, members = [str(name) for name in model.source_names_], bool(model._members())
    ways = int(stored.n_candidates) if model.held_out_.crossed else 1
    mixtures = share_ranges(model.mixtures, names)
    known = confidence, not stored.covers, ways, names
    grounds = Grounds(*known, share=share, mixtures=mixtures)
    used = Combination(model.z_, model.eta) if members else model.combination_
    given = model.tables_, used, model.held_out_, model.loss, grounds
    return certify_learned(*given, theorems=not members)
