"""What the distribution-weighted regressor and classifier share: fit, predict, evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from anymix._arrays import FloatArray, n_rows
from anymix._parameters import Number, Rule, check
from anymix.core import Certificate, CrossFittedCombination, Loss
from anymix.densities import ContrastiveDensity
from anymix.estimators import _inspection
from anymix.estimators._automatic import check_set_aside
from anymix.estimators._conformal import coverage
from anymix.estimators._ensemble import SourceEnsemble
from anymix.estimators._fitted_attributes import FromResult, raise_missing
from anymix.estimators._fitting import (
    PARAMETER_RULES,
    aligned,
    check_fit,
    check_parts,
    fit_members,
    fit_rows,
    fit_tables,
    inspect_columns,
)
from anymix.estimators._row_checks import FOLDS, Rows
from anymix.estimators._running import names_checked
from anymix.estimators._views import labelled
from anymix.estimators.comparison import Comparison
from anymix.sources import FitResult, Influence, Tables, TrainingRows, evaluate


class DistributionWeighting(SourceEnsemble):
    """Weights z_k D_k(x) + (η/p) U(x), with z learned so that no source is let down at home."""

    chooses_learner: ClassVar[bool] = True
    uses_density: ClassVar[bool] = True
    rule: str = "marginal"
    density: Any
    cv: int
    set_aside: str | Sequence[str] | None
    refit: bool
    result_: FitResult

    _takes: ClassVar[Mapping[str, Rule]] = PARAMETER_RULES
    _check_fit, _inspect = check_fit, inspect_columns

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

    # -- fit ---------------------------------------------------------------------------------

    def _fit_rows(self, rows: Rows, given: tuple[Any, Any, Any, Any]) -> None:
        if not self.refit and not self.sources and len(self.source_names_) > 1:
            self.result_ = fit_members(self, given, rows)
        else:
            self.result_ = fit_rows(self, rows)

    def fit_tables(self, tables: Tables, teaching: TrainingRows | None = None) -> Self:
        """Learn z from tables alone, when no rows may travel; the sources must have been given.

        Each site evaluates all sources on its own held-out rows, and sends the tables.  Where
        `teaching` is given, further rows that may be more than memory holds, z is learned from
        these and the tables evaluate it.
        """
        self.result_ = fit_tables(self, tables, teaching)
        return self

    def _check_sources_named(self) -> None:
        # A single source is neither cut into folds nor set aside.
        if len(self.source_names_) > 1:
            check(self.cv, "cv", FOLDS)
            check_set_aside(self.set_aside, self.source_names_)

    def _check_parts(self) -> None:
        super()._check_parts()
        check_parts(self)

    def _takes_gaps(self) -> bool:
        able = isinstance(self.density, str | ContrastiveDensity)
        return able and self.estimator is None and not self.sources

    # -- predict ---------------------------------------------------------------------------------

    def _combined(self, X: Any) -> FloatArray:
        members = self._members()
        if not members:
            return super()._combined(X)
        each = [aligned(self, member, member._combined(X)) for member in members]
        return np.asarray(np.mean(each, axis=0))

    def _combined_chunk(self, X: Any) -> FloatArray:
        if len(self.sources_) == 1:
            return self._ask(0, X)
        used, p = self.combination_, len(self.sources_)
        # No weight is below η/p² / (1 + η/p); skipping sources can only begin above that.
        skips = used.rule == "marginal" and not used.consults
        if skips and self.skip_below * (p + used.eta) > used.eta:
            return np.asarray(used.predict(self._log_masses(X), self._asking(X), self.skip_below))
        # Every source counts everywhere, so that all of them are evaluated at all rows.
        tables = evaluate(self.sources_, X, self._labels, self.router_, reference=False)
        return np.asarray(used.predict(tables.log_masses, tables.predictions))

    def _weights(self, X: Any) -> FloatArray:
        if len(self.sources_) == 1:
            return np.ones((1, n_rows(X)))
        return np.asarray(self.combination_.weights(self._log_masses(X)))

    def _row_weights(self, X: Any) -> FloatArray:
        members = self._members()
        if not members:
            return super()._row_weights(X)
        return np.asarray(np.mean([member.source_weights(X) for member in members], axis=0))

    def log_responsibilities(self, X: Any) -> FloatArray:
        """log r_k(x), calibrated and sharpened as predictions use them, shape (p, n)."""
        return _inspection.log_responsibilities(self, X)

    def model_weights(self, X: Any, *, frame: bool = False) -> Any:
        """How much each source's *model* counts at each row, through all who consult it: (n, p).

        Σ_k weight_k(x) a_kj, with a_kj the weight of source j's model in the pool of source k.  Of
        labels these are weights of logarithms, which need not sum to 1.  What a second round of
        training has used counts as the source's own.  frame=True is as in `source_weights`.
        """
        weights = _inspection.model_weights(self, X)
        return labelled(weights, X, self.source_names_) if frame else weights

    def model_evaluations(self, X: Any) -> dict[str, int]:
        """How many of the p·n model evaluations `predict` makes at these rows, and saves."""
        weights = self.source_weights(X)
        evaluated = weights >= self.skip_below / weights.shape[1]
        all_needed = self.rule != "marginal" or self.combination_.consults
        made = weights.size if all_needed else int(evaluated.sum())
        return {"made": made, "saved": weights.size - made}

    def novelty(self, X: Any) -> FloatArray:
        """How far each row is from all sources: 0 is typical of one, near 1 is unlike any.

        1 − max_k of the share of source k's own held-out rows that are no likelier than the row.
        """
        members = self._members() or (self,)
        return np.asarray(np.mean([_inspection.novelty(one, X) for one in members], axis=0))

    def predict_or_abstain(self, X: Any, max_novelty: float = 0.95) -> tuple[Any, Any]:
        """Predictions, and which rows (True) are unlike all sources; 1 − max_novelty at home."""
        check(max_novelty, "max_novelty", Number(0, 1))
        predictions = self.predict(X)
        with names_checked(self):
            return predictions, self.novelty(X) > max_novelty

    def coverage(self, alpha: float = 0.1, calibration: Any = None) -> Any:
        """Say what sets or intervals promise, on what ground, and what rows show.

        Parameters and promise are those of `predict_set` and `predict_interval`.  Each row is
        judged by the others, and by the part of the model that was learned without it.
        """
        return coverage(self, alpha, calibration)

    # -- evidence --------------------------------------------------------------------------------

    @cached_property
    def influence_(self) -> Influence:
        """What the rows of each site, and each source as a whole, do to the losses of the others.

        Computed when it is first read: z is learned anew without each of them, on some thousand of
        the held-out rows.
        """
        return _inspection.influence(self)

    @cached_property
    def comparison_(self) -> Comparison:
        """Each source alone, their average, the likeliest source and this model, on held-out rows.

        Each row is judged by the part of the model that was learned without it.
        """
        return self.compared()

    def compared(self, measure: str | Loss | None = None) -> Comparison:
        """Return `comparison_` by another measure: "accuracy", "auc", "mae", "rmse", ..."""
        return _inspection.compared(self, measure)

    def describe(self) -> str:
        """Say what was learned: the certificate, z, the model beside its rivals, and warnings.

        They are there if the plain average of the sources is better on held-out rows, and if a
        site or source moves the loss of another.
        """
        check_is_fitted(self, "combination_")
        return _inspection.describe(self)

    def evaluate(self, X: Any, y: Any = None, sample_domain: Any = None) -> Tables:
        """Evaluate all sources at rows, once: the tables that every verb on tables takes.

        y and sample_domain, the label and the source of each row, are added where they are known.
        """
        return _inspection.evaluate_rows(self, X, y, sample_domain)

    def certify(
        self,
        X: Any,
        y: ArrayLike,
        sample_domain: ArrayLike,
        *,
        confidence: float | None = 0.95,
        loss_bound: float | None = None,
        measure: str | Loss | None = None,
    ) -> Certificate:
        """State what new rows guarantee: rows that neither sources nor z have seen.

        Parameters
        ----------
        X, y, sample_domain : rows, their labels or numbers, the source of each
            Rows that `fit` has seen are recognised, and earn no confidence.
        confidence : float or None
        loss_bound : float, optional
            A bound M on the loss of any row; it makes the confidence exact.  Without it losses are
            certified clipped, where few own models lost more on the rows of `fit`: exact as well.
        measure : str or Loss, optional
            What to certify in place of the loss: "accuracy" for the share of wrong labels, "mae",
            "brier", ...
        """
        return _inspection.certify_new_rows(
            self, (X, y, sample_domain), confidence, loss_bound, measure
        )

    def named(self, certificate: Certificate) -> Certificate:
        """Call the reference losses of a certificate by the names of the sources."""
        return _inspection.name_references(self, certificate)

    def seen_among(self, tables: Tables, X: Any = None) -> list[str]:
        """Name the sources whose rows here were among those of `fit`, by their predictions."""
        return _inspection.seen_among(self, tables, X)

    def seen_domains(self, X: Any, sample_domain: ArrayLike) -> list[str]:
        """Name the domains whose rows here were among those of `fit`, by the rows themselves."""
        return _inspection.seen_domains(self, X, sample_domain)
