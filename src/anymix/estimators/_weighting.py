"""The base of the distribution-weighted regressor and classifier: fit, predict, evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from anymix._arrays import FloatArray, IntArray, n_rows
from anymix._parameters import Number, Rule, check, is_automatic
from anymix.core import Ask, Coverage
from anymix.densities import ContrastiveDensity, counted, taken
from anymix.estimators import _fitting
from anymix.estimators._conformal import coverage
from anymix.estimators._ensemble import SourceEnsemble
from anymix.estimators._generalist import check_generalist
from anymix.estimators._inspection import FittedEvidence
from anymix.estimators._members import aligned
from anymix.estimators._row_checks import check_X, known_sources, take_columns
from anymix.estimators._running import names_checked, warnings_once
from anymix.estimators._views import labelled
from anymix.exceptions import ParameterError
from anymix.sources import (
    Source,
    Tables,
    TrainingRows,
    check_learnable,
    log_reference,
    masses_of,
    models_of,
    predictions_of,
    round_responsibilities,
)


class DistributionWeighting(FittedEvidence, SourceEnsemble):
    """Weights z_k D_k(x) + (η/p) U(x), with z learned to keep the largest regret small."""

    # Groups that a splitter takes are those of the rows of fit as well.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True}
    uses_density: ClassVar[bool] = True
    rule: str = "marginal"
    density: Any
    cv: int
    set_aside: str | Sequence[str] | None
    mixtures: Mapping[str, tuple[float, float]] | None
    refit: bool
    generalist: Any
    share_rows: bool
    generalist_: Source | None = None

    _takes: ClassVar[Mapping[str, Rule]] = _fitting.PARAMETER_RULES
    # -- fit ---------------------------------------------------------------------------------

    _fit = _fitting.fit

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_domain: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Train a source for each domain, unless sources were given, and learn z.

        Copies of a row, also with nearly the same numbers, are detected and count as one draw.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame (n, d), or a list of documents
        y : array (n,)
        sample_domain : array (n,) or the name of a column of X, optional
            Which source each row belongs to, as any labels; None makes all rows one source, which
            leaves nothing to combine.  A column that is named is left out of the features.
        sample_weight : array (n,), optional
        groups : array (n,) or the name of a column of X, optional
            What rows that depend on each other have in common, such as the patient, as any labels.
            Rows of one group are never in two folds, and count as one draw in the certificate.

        Returns
        -------
        self
        """
        X, (sample_domain, groups), self.left_out_ = take_columns(
            X, sample_domain=sample_domain, groups=groups
        )
        with warnings_once():
            self._fit(X, y, sample_domain, sample_weight, groups)
        return self

    def _check_parts(self) -> None:
        """Refuse a learner of the other task, and a loss or shrinkage that fits nothing else."""
        super()._check_parts()
        check_generalist(self)
        _check_task(self)

    def fit_tables(
        self, tables: Tables, teaching: TrainingRows | None = None, *, fresh: bool = True
    ) -> Self:
        """Learn z from tables, where rows may not leave their sites; needs `from_sources`.

        Each site evaluates all sources on its own held-out rows, and sends the tables.  With
        `teaching`, additional rows that need not fit into memory, z is learned from those rows, and
        the tables evaluate it.  With fresh=False the sites evaluated their own source by fold
        models, which the certificate states.
        """
        self.result_ = _fitting.fit_tables(self, tables, teaching, fresh)
        return self

    def with_mixtures(
        self, mixtures: Mapping[str, tuple[float, float]] | None, **settings: Any
    ) -> Self:
        """Return a copy whose z and certificate are for other mixtures, without any training.

        z is learned again from the held-out rows of `fit`.

        Parameters
        ----------
        mixtures : dict or None
            {source: (least share, largest share)}; None for all mixtures.
        **settings
            Other parameters, such as objective, shrinkage and confidence.
        """
        relearned: Self = _fitting.relearned(self, {"mixtures": mixtures, **settings})
        return relearned

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        able = isinstance(self.density, str | ContrastiveDensity)
        own = is_automatic(self.estimator) and not self.sources
        tags.input_tags.allow_nan = able and own
        return tags

    # -- predict ---------------------------------------------------------------------------------

    def predict(self, X: Any, sample_domain: Any = None) -> NDArray[Any]:
        """Predict labels (n,) of a classification, numbers (n,) of a regression.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame (n, d), or a list of documents
        sample_domain : array (n,) or the name of a column of X, optional
            The source of rows whose source is known: its own model, after consulting the others,
            predicts them.  Rows of an unknown source, None or NaN, are predicted by the
            combination of all.
        """
        return self._decided(self._predicted(X, sample_domain))

    @available_if(lambda self: self._classification)
    def predict_proba(self, X: Any, sample_domain: Any = None) -> FloatArray:
        """Class probabilities (n, c), in the order of `classes_`; parameters as of `predict`."""
        return self._predicted(X, sample_domain)

    def _predicted(self, X: Any, sample_domain: Any) -> FloatArray:
        """Predict rows of known source by that source's pooled model, and others by all."""
        if sample_domain is None:
            return self._combined(X)
        check_is_fitted(self, "sources_")
        X, (sample_domain,), _ = take_columns(X, sample_domain=sample_domain)
        known = known_sources(
            sample_domain, n_rows(X), self.source_names_, vars(self).get("too_small_", ())
        )
        if (known < 0).all():
            return self._combined(X)
        if (known >= 0).all():
            return self._of_sources(X, known)
        unknown, named = np.flatnonzero(known < 0), np.flatnonzero(known >= 0)
        by_source = self._of_sources(_safe_indexing(X, named), known[named])
        found = np.empty((known.size, *by_source.shape[1:]))
        found[named] = by_source
        found[unknown] = self._combined(_safe_indexing(X, unknown))
        return found

    def _of_sources(self, X: Any, source: IntArray) -> FloatArray:
        """Predict each row by the model of its source, after this has consulted the others."""
        members = self._members()
        if members:
            each = [aligned(self, m, m._of_sources(X, source)) for m in members]
            return np.asarray(np.mean(each, axis=0))
        return np.asarray(self.consulted_predictions(X)[source, np.arange(source.size)])

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
        skips &= self.skip_below * (p + used.eta) > used.eta
        skip_below = self.skip_below if skips else 0.0
        X = counted(X, models_of(self.sources_, self.router_))
        return np.asarray(used.predict(self._log_masses(X), self._asking(X), skip_below))

    def _asking(self, X: Any) -> Ask:
        """Return a function that evaluates model k, the generalist for k = p, at some rows or all.

        What a model has said of all rows is known to those of a second round.
        """
        models, heard = [*self.sources_, self.generalist_], dict[int, FloatArray]()

        def ask(k: int, rows: IntArray | None) -> FloatArray:
            some, known = (X, heard) if rows is None else (taken(X, rows), None)
            return predictions_of(models[k], some, self._labels, known)

        return ask

    def consulted_predictions(self, X: Any) -> FloatArray:
        """The predictions of each source after consulting the others: (p, n) or (p, n, c).

        These are the h'_k that predictions combine by their weights.
        """
        check_is_fitted(self, "combination_")
        X = check_X(self, X)
        with names_checked(self):
            if len(self.sources_) == 1:
                return self._ask(0, X)[None]
            return self.combination_.consulted(self._asking(X))

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
        check_is_fitted(self, "combination_")
        X = check_X(self, X)
        if len(self.sources_) == 1:
            return np.zeros((1, n_rows(X)))
        with names_checked(self):
            return np.asarray(self.combination_.log_responsibilities(self._log_masses(X)))

    def model_weights(self, X: Any, *, frame: bool = False) -> Any:
        """The weight of each source's *model* at each row, through all pools: (n, p).

        Σ_k weight_k(x) a_kj, with a_kj the weight of source j's model in the pool of source k.  For
        labels these are weights of logarithms, which need not sum to 1.  What a second round of
        training has used counts as the source's own.  A generalist that may be consulted has a
        last column, (n, p + 1).  frame=True is as in `source_weights`.
        """
        check_is_fitted(self, "combination_")
        rows = check_X(self, X)
        weights = np.ones((n_rows(rows), 1))
        if len(self.sources_) > 1:
            with names_checked(self):
                weights = self.combination_.model_weights(self._log_masses(rows)).T
        names = [*self.source_names_, "generalist"][: weights.shape[1]]
        return labelled(weights, X, names) if frame else weights

    def model_evaluations(self, X: Any) -> dict[str, int]:
        """The number of model evaluations of `predict` at these rows, and of those saved.

        There are p·n of them, and n more where there is a generalist.
        """
        weights, used = self.source_weights(X), self.combination_
        n, needed = len(weights), used.needed()
        every = n * (len(self.sources_) + (self.generalist_ is not None))
        made = n * int(needed.sum())
        if self.rule == "marginal" and not used.consults:
            made = int((weights >= self.skip_below / weights.shape[1]).sum())
        return {"made": made, "saved": every - made}

    def novelty(self, X: Any) -> FloatArray:
        """How unlike all sources each row is: 0 is typical of one, near 1 is unlike any.

        1 − max_k of the share of source k's own held-out rows that are no likelier than the row.
        """
        members = self._members()
        if members:
            return np.asarray(np.mean([member.novelty(X) for member in members], axis=0))
        check_is_fitted(self, "combination_")
        learned = getattr(self, "novelty_", None)
        if learned is None:
            raise ValueError(
                "novelty needs a density for each of several sources; a DomainClassifier or a "
                "single source has none."
            )
        X = check_X(self, X)
        with names_checked(self):
            # Of the densities that weigh sources, or of those that were kept for novelty.
            log_densities = masses_of(self.sources_, X) + log_reference(self.sources_, X)
            return np.asarray(learned.score(log_densities))

    def fold_scores(
        self, X: Any, rng: int | np.random.Generator = 0
    ) -> tuple[FloatArray, FloatArray]:
        """Score rows as the held-out rows of `fit` were: log r_k(x) (p, n) and novelty (n,).

        Each row is scored by the densities that were learned without a random fold, so that new
        rows and `result_.evidence.fold_scores` have the same distribution; see `Monitor`.  Without
        densities the novelty is zero.
        """
        check_is_fitted(self, "combination_")
        evidence = self.result_.evidence
        known = None if evidence is None else evidence.fold_scores
        if known is None:
            raise ValueError(
                "this model keeps no densities of folds: they were given to it, or its folder is "
                "of an older version."
            )
        X = check_X(self, X)
        with names_checked(self):
            log_masses, novel = known.masses(self.sources_, X, np.random.default_rng(rng))
        log_r = self.combination_.log_responsibilities(log_masses)
        return log_r, np.zeros(n_rows(X)) if novel is None else self.novelty_.score(novel)

    def site_scores(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Score rows as sites do in rounded files: log r_k(x) (p, n) and log Σ_k D_k(x) (n,)."""
        check_is_fitted(self, "combination_")
        X = check_X(self, X)
        with names_checked(self):
            log_masses = masses_of(self.sources_, X) + log_reference(self.sources_, X)
        total = np.logaddexp.reduce(log_masses, axis=0)
        log_r = log_masses - np.where(np.isneginf(total), 0.0, total)
        log_r[:, np.isneginf(total)] = -np.log(len(log_r))
        rounded = round_responsibilities(log_r)
        return self.combination_.log_responsibilities(rounded), total

    def predict_or_abstain(self, X: Any, max_novelty: float = 0.95) -> tuple[Any, Any]:
        """Return predictions, and which rows (True) are unlike all sources."""
        check(max_novelty, "max_novelty", Number(0, 1))
        predictions = self.predict(X)
        with names_checked(self):
            return predictions, self.novelty(X) > max_novelty

    def coverage(self, alpha: float = 0.1, calibration: Any = None) -> Coverage:
        """Return the guaranteed and the measured coverage of sets or intervals.

        Parameters and guarantee are those of `predict_set` and `predict_interval`.  Each row is
        compared with the others, by the part of the model that was learned without it.
        """
        return coverage(self, alpha, calibration)


def _check_task(model: DistributionWeighting) -> None:
    """Refuse a learner of the other task, and what does not go with the loss or objective."""
    classification = model._classification
    wrong = is_regressor if classification else is_classifier
    for estimator in filter(wrong, model._learners()):
        own, other = "DistributionWeightedClassifier", "DistributionWeightedRegressor"
        due, example = ("labels", "LogisticRegression()")
        if not classification:
            own, other, due, example = other, own, "numbers", "Ridge()"
        raise ParameterError(
            f"estimator {type(estimator).__name__} does not learn {due}, as {own} needs "
            f"it to; give one that does, such as {example}, or take {other}."
        )
    check_learnable(model.loss, classification)
    if model.objective == "gamma" and model.mixtures:
        raise ParameterError(
            "mixtures are for the objectives 'regret' and 'robust'; 'gamma' makes the losses "
            "of all sources equal."
        )
    if model.objective == "gamma" and model.shrinkage not in ("auto", 0):
        raise ParameterError(
            "shrinkage is for the objectives 'regret' and 'robust'; leave it at 'auto' with "
            "'gamma', which has one answer."
        )
