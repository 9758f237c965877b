"""What the distribution-weighted regressor and classifier share: fit, predict, certify."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.validation import check_is_fitted

from anymix._arrays import FloatArray, IntArray, content_of, n_rows
from anymix._parameters import Either, Flag, Number, Rule, Seed, Share, Words, check
from anymix.core import (
    Assumptions,
    Certificate,
    Combination,
    CrossFittedCombination,
    Loss,
    check_n_sources,
)
from anymix.densities import ContrastiveDensity, GaussianKDE
from anymix.estimators._automatic import (
    N_PARTS,
    candidates,
    check_set_aside,
    choose_density,
    default_estimator,
    held_out_answers,
    kind_of,
    novelty_of,
    with_set_aside,
)
from anymix.estimators._conformal import coverage
from anymix.estimators._describe import describe
from anymix.estimators._display import labelled
from anymix.estimators._ensemble import SourceEnsemble
from anymix.estimators._input_warnings import warn_of_slips
from anymix.estimators._members import aligned, fit_members
from anymix.estimators._row_checks import (
    FOLDS,
    Rows,
    check_complete_y,
    check_domains,
    check_every_source,
    check_order,
    check_tables,
    check_X,
    folds_of,
    is_text,
)
from anymix.estimators._running import OnceEach, names_checked, one_thread, step
from anymix.estimators._source_training import SourceTrainer, takes_weight
from anymix.estimators.comparison import Answers, Comparison, compare_tables, usual_methods
from anymix.exceptions import InputError, ParameterError
from anymix.sources import (
    FitEvidence,
    FitResult,
    Influence,
    LearningSettings,
    Seen,
    Tables,
    TrainingRows,
    certify_tables,
    check_learnable,
    evaluate,
    find_influence,
    learn,
    log_reference,
    masses_of,
    measure_of,
    usual_clip,
    warn_of_training_rows,
    without_confidence,
)
from anymix.tables import Columns

LEARNED_FROM_ALL = (
    "z is learned from held-out rows of every source: add some of it, or leave it out"
)
CERTIFIED_ON_ALL = "a mixture may be all of it: add some of its rows to certify on"
# A category of fewer rows is missing, as it is to a `Reference`: all folds must have one coding.
FEW = 5
# What a regressor has in place of what a classifier has, and the other way round.
INSTEAD = {
    "predict_interval": "predict_set",
    "predict_set": "predict_interval",
    "predict_proba": "predict and predict_interval",
}


class FromResult:
    """A fitted attribute that reads a field of `result_`, or of its evidence.

    Where the fit has no such thing, the AttributeError says why, and what would give it one.
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
            raise AttributeError(_why_missing(model, self.name))
        return value

    def __set__(self, model: Any, value: Any) -> None:
        result: FitResult = vars(model).get("result_") or FitResult(None)
        if self.field == "combination":
            model.result_ = replace(result, combination=value)
        else:
            evidence = replace(result.evidence or FitEvidence(), **{self.field: value})
            model.result_ = replace(result, evidence=evidence)


class DistributionWeighting(SourceEnsemble):
    """Weights z_k D_k(x) + (η/p) U(x), with z learned so that no source is let down at home."""

    uses_density: ClassVar[bool] = True
    chooses_learner: ClassVar[bool] = True
    rule: str = "marginal"
    density: Any
    loss: str | Loss
    objective: str
    shrinkage: float | str
    eta: float
    calibrate: bool
    cv: int
    confidence: float
    random_state: Any
    set_aside: str | Sequence[str] | None
    consult: bool
    refit: bool
    result_: FitResult

    _takes: ClassVar[Mapping[str, Rule]] = {
        "objective": Words("regret", "robust", "gamma"),
        "shrinkage": Either(Words("auto"), Number(0)),
        "eta": Number(above=0),
        "calibrate": Flag(),
        "confidence": Share(),
        "skip_below": Number(0),
        "random_state": Seed(),
        "consult": Flag(),
        "refit": Flag(),
        "rule": Words("marginal", "normalised"),
        "n_jobs": Either(None, Number(1, whole=True), Number(most=-1, whole=True)),
    }

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

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(_why_missing(self, name))

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
            raise AttributeError(_why_missing(self, "members_"))
        return list(members)

    def _members(self) -> tuple[Any, ...]:
        return getattr(vars(self).get("result_"), "members", ())

    # -- fit ---------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_domain: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Train a source for each domain, unless sources were given, and learn their weights.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame (n, d), or a list of documents
        y : array (n,)
        sample_domain : array (n,), optional
            Which source each row belongs to, as any labels; None makes all rows one source, which
            leaves nothing to combine.
        sample_weight : array (n,), optional

        Returns
        -------
        self
        """
        with OnceEach():
            rows = self._check_fit(X, y, sample_domain, sample_weight)
            with one_thread(rows):
                if not self.refit and not self.sources and len(self.source_names_) > 1:
                    result = fit_members(self, (X, y, sample_domain, sample_weight), rows)
                else:
                    result = self._fit_rows(rows)
        self.result_ = result
        return self

    def _fit_rows(self, rows: Rows) -> FitResult:
        """Train sources, evaluate them on held-out rows, choose a density, and learn z."""
        trainer = self._trainer()
        with step(self, "models of all sources"):
            self.sources_, self.router_ = trainer.predictors(rows), None
        if len(self.sources_) == 1:
            self.router_ = trainer.with_densities(self.sources_, rows)[1]
            alone = Combination(np.ones(1), self.eta, None, self.rule)
            return FitResult(CrossFittedCombination.of(alone))
        fold = trainer.folds(rows, self.cv, self._classification(), self.random_state)
        tables = trainer.blank(rows, self._labels)
        with step(self, "held-out answers"):
            again = held_out_answers(trainer, rows, tables, fold, self._settings())
            self.sources_ = trainer.second_round(self.sources_, rows, again)
        with step(self, "what weighs them"):
            tables, choice, strange = self._weigh(rows, trainer, tables, fold)
        with step(self, "z and its certificate"):
            # Whether nothing but the combination is learned from the rows of `fit`.
            fresh = bool(trainer.sources) and trainer.weighed and not self._chooses()
            result = self._learn_from(tables, fresh=fresh)
        assert result.evidence is not None
        evidence = replace(result.evidence, seen=Seen.of(tables, rows.X), density_choice=choice)
        if strange is None and self.router_ is None:
            strange = tables.log_masses
        if strange is not None:
            novelty = novelty_of(tables, strange + log_reference(self.sources_, rows.X))
            evidence = replace(evidence, novelty=novelty)
        return replace(result, evidence=evidence)

    def fit_tables(self, tables: Tables, teaching: TrainingRows | None = None) -> Self:
        """Learn z from tables alone, when no rows may travel; the sources must have been given.

        Each site evaluates all sources on its own held-out rows, and sends the tables.  Where
        `teaching` is given, further rows that may be more than memory holds, z is learned from
        these and the tables evaluate it.
        """
        check_tables(tables, self.sources)
        assert self.sources is not None
        self._forget()
        self.sources_, self.router_, self.columns_ = list(self.sources), None, None
        self.source_names_ = np.asarray([source.name for source in self.sources_])
        for stale in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(stale, None)
        columns = self.sources_[0].feature_names
        if columns is not None:
            self.n_features_in_ = len(columns)
        if self._classification():
            if tables.classes is None:
                raise ValueError("tables of a classification come from evaluate(..., classes=...).")
            self.classes_ = np.asarray(tables.classes)
        result = self._learn_from(tables, teaching=teaching)
        assert result.evidence is not None
        seen = Seen.of(tables) if teaching is None else teaching.seen()
        self.result_ = replace(result, evidence=replace(result.evidence, seen=seen))
        return self

    def _learn_from(
        self, tables: Tables, fresh: bool = True, teaching: TrainingRows | None = None
    ) -> FitResult:
        """Calibrate, learn z, certify, all on rows that no source has seen."""
        check_every_source(tables, self.source_names_, LEARNED_FROM_ALL)
        if self.sources:
            warn_of_training_rows(tables, self.sources, stacklevel=3)
        names = tuple(str(name) for name in self.source_names_)
        settings = replace(self._settings(), fresh=fresh, names=names)
        settings = with_set_aside(self.set_aside, tables, settings, names)
        result = learn(tables, settings, teaching)
        assert result.evidence is not None
        aside = tuple(names[k] for k in settings.set_aside)
        return replace(result, evidence=replace(result.evidence, set_aside=aside))

    def _settings(self) -> LearningSettings:
        return LearningSettings(
            loss=self.loss,
            eta=self.eta,
            rule=self.rule,
            objective=self.objective,
            shrinkage=self.shrinkage,
            calibrate=self.calibrate,
            confidence=self.confidence,
            consult=self.consult,
        )

    def _forget(self) -> None:
        """Drop what an earlier fit has learned."""
        for name in ("result_", "influence_", "comparison_"):
            self.__dict__.pop(name, None)

    # -- checks before anything is trained ------------------------------------------------------

    def _check_fit(self, X: Any, y: Any, sample_domain: Any, sample_weight: Any) -> Rows:
        if sample_domain is None and not self.sources:
            warnings.warn(
                f"{type(self).__name__} was fitted without sample_domain, so all rows are one "
                "source and there is nothing to combine or certify: pass sample_domain, the source "
                "of each row.",
                UserWarning,
                stacklevel=2,
            )
        self._forget()
        rows = super()._check_fit(X, y, sample_domain, sample_weight)
        if not self.sources and sample_domain is not None:
            warn_of_slips(X, rows.y, self.source_names_[rows.domain])
        if not self.sources:
            first = next(iter(X)) if self.estimator is None and is_text(X) else ""
            if not isinstance(first, str):
                raise InputError(
                    "X", "holds lists of tokens; join each to a text, or give an estimator for them"
                )
            self.estimator_ = self.estimator
            if self.estimator is None:
                by_task = self._classification(), self.random_state, rows.weight
                self.estimator_ = default_estimator(X, *by_task)
        check_n_sources(len(self.source_names_))
        return rows

    def _check_sources_named(self) -> None:
        # A single source is neither cut into folds nor set aside.
        if len(self.source_names_) > 1:
            check(self.cv, "cv", FOLDS)
            check_set_aside(self.set_aside, self.source_names_)

    def _check_parts(self) -> None:
        super()._check_parts()
        self._check_kind()
        check_learnable(self.loss, self._classification())
        if self.objective == "gamma" and self.shrinkage not in ("auto", 0):
            raise ParameterError(
                "shrinkage is for the objectives 'regret' and 'robust'; leave it at 'auto' with "
                "'gamma', which has one answer."
            )

    def _check_kind(self) -> None:
        """Refuse an estimator that learns numbers where labels are due, and the other way round."""
        wrong = is_regressor if self._classification() else is_classifier
        if self.estimator is None or not wrong(self.estimator):
            return
        own, other = "DistributionWeightedClassifier", "DistributionWeightedRegressor"
        due, example = ("labels", "LogisticRegression()")
        if not self._classification():
            own, other, due, example = other, own, "numbers", "Ridge()"
        raise ParameterError(
            f"estimator {type(self.estimator).__name__} does not learn {due}, as {own} needs it "
            f"to; give one that does, such as {example}, or take {other}."
        )

    # -- what the rows choose where the user says nothing: columns, learner, density -------------

    def _takes_gaps(self) -> bool:
        able = isinstance(self.density, str | ContrastiveDensity)
        return able and self.estimator is None and not self.sources

    def _describe(self, X: Any) -> Columns | None:
        """Read mixed tables by their columns, unless the user's own estimator sees to them."""
        if self.sources:
            known = [source.columns for source in self.sources]
            return known[0] if all(one == known[0] for one in known) else None
        if self.estimator is not None or kind_of(X) != "mixed":
            return None
        return Columns.of(X, least=FEW)

    def _density(self) -> Any:
        if self._chooses():
            return None
        if self.density is not None or self.sources:
            return None if isinstance(self.density, str) else self.density
        return GaussianKDE(random_state=self.random_state)

    def _chooses(self) -> bool:
        """Whether held-out rows choose the density: not where all sources have brought one."""
        if not isinstance(self.density, str):
            return False
        return not self.sources or any(source.density is None for source in self.sources)

    def estimator_or_default(self) -> Any:
        """Return the estimator to clone for each domain."""
        return self.estimator_

    def _weigh(
        self, rows: Rows, trainer: SourceTrainer, tables: Tables, fold: IntArray
    ) -> tuple[Tables, Any, FloatArray | None]:
        """Add what weighs the sources, to them and to the held-out tables.

        Returns the tables, the choice of a density if there was one and, where others than the
        weights say how strange a row is, held-out log-densities for that.
        """
        choice, strange = None, None
        if not self._chooses():
            if self.columns_ is not None and isinstance(trainer.density, ContrastiveDensity):
                # Rows are encoded here, and no longer show which columns hold categories.
                density = trainer.density.with_shared(rows.X, rows.domain, self.columns_)
                trainer = replace(trainer, density=density)
            log_masses = trainer.held_out_masses(rows, fold, range(int(fold.max()) + 1))
        else:
            # Densities are trained here, whatever the sources brought.
            fold = folds_of(rows, N_PARTS, self._classification(), self.random_state)
            options = candidates(rows, self.columns_, self.random_state)
            if rows.weight is not None:
                options = {name: one for name, one in options.items() if takes_weight(one)}
            # Sites that are known to be set aside choose no density, either.
            aside = None if self.set_aside == "worst" else self.set_aside
            settings = with_set_aside(aside, tables, self._settings(), self.source_names_)
            choice, log_masses, strange = choose_density(
                trainer, rows, tables, fold, settings, options
            )
            trainer = replace(trainer, density=options[choice.chosen])
            if choice.novelty is not None:
                kept = replace(trainer, density=options[choice.novelty])
                self.sources_, _ = kept.with_densities(self.sources_, rows)
        sources, self.router_ = trainer.with_densities(self.sources_, rows)
        if self.columns_ is not None and not self.sources:
            sources = [replace(source, columns=self.columns_) for source in sources]
        self.sources_ = sources
        has_densities = self.router_ is None
        return replace(tables, log_masses=log_masses, has_densities=has_densities), choice, strange

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
        return np.asarray(np.mean([one.source_weights(X) for one in members], axis=0))

    def log_responsibilities(self, X: Any) -> FloatArray:
        """log r_k(x), calibrated and sharpened as predictions use them, shape (p, n)."""
        check_is_fitted(self, "combination_")
        X = check_X(self, X)
        if len(self.sources_) == 1:
            return np.zeros((1, n_rows(X)))
        with names_checked(self):
            return np.asarray(self.combination_.log_responsibilities(self._log_masses(X)))

    def model_weights(self, X: Any, *, frame: bool = False) -> Any:
        """How much each source's *model* counts at each row, through all who consult it: (n, p).

        Σ_k weight_k(x) a_kj, with a_kj the weight of source j's model in the pool of source k.  Of
        labels these are weights of logarithms, which need not sum to 1.  What a second round of
        training has used counts as the source's own.  frame=True is as in `source_weights`.
        """
        check_is_fitted(self, "combination_")
        rows = check_X(self, X)
        if len(self.sources_) == 1:
            weights = np.ones((n_rows(rows), 1))
        else:
            with names_checked(self):
                weights = self.combination_.model_weights(self._log_masses(rows)).T
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
        members = self._members()
        if members:
            return np.asarray(np.mean([one.novelty(X) for one in members], axis=0))
        check_is_fitted(self, "combination_")
        novelty = getattr(self, "novelty_", None)
        if novelty is None:
            raise ValueError(
                "novelty needs a density for each of several sources; a DomainClassifier or a "
                "single source has none."
            )
        X = check_X(self, X)
        with names_checked(self):
            # Of the densities that weigh sources, or of those that were kept for novelty.
            log_densities = masses_of(self.sources_, X) + log_reference(self.sources_, X)
            return np.asarray(novelty.score(log_densities))

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
        names = [str(name) for name in self.source_names_]
        aside = tuple(k for k, name in enumerate(names) if name in self.set_aside_)
        return find_influence(self.tables_, replace(self._settings(), set_aside=aside), names)

    @cached_property
    def comparison_(self) -> Comparison:
        """Each source alone, their average, the likeliest source and this model, on held-out rows.

        Each row is judged by the part of the model that was learned without it.
        """
        return self.compared()

    def compared(self, measure: str | Loss | None = None) -> Comparison:
        """Return `comparison_` by another measure: "accuracy", "auc", "mae", "rmse", ..."""
        names = [str(name) for name in self.source_names_]
        methods = usual_methods(self.tables_, Answers(self.held_out_.predictions), names)
        return compare_tables(
            self.tables_, methods, names, self.loss, confidence=self.confidence, measure=measure
        )

    def describe(self) -> str:
        """Say what was learned: the certificate, z, the model beside its rivals, and warnings.

        They are there if the plain average of the sources is better on held-out rows, and if a
        site or source moves the loss of another.
        """
        check_is_fitted(self, "combination_")
        return describe(self)

    def evaluate(self, X: Any, y: Any = None, sample_domain: Any = None) -> Tables:
        """Evaluate all sources at rows, once: the tables that every verb on tables takes.

        y and sample_domain, the label and the source of each row, are added where they are known.
        """
        check_is_fitted(self, "sources_")
        check_order(X, y=y, sample_domain=sample_domain)
        X = check_X(self, X)
        with names_checked(self):
            tables = evaluate(self.sources_, X, self._labels, self.router_)
        if y is None:
            return tables
        check_complete_y(y)
        _, domain = check_domains(sample_domain, n_rows(X), [str(n) for n in self.source_names_])
        return tables.labelled(y, domain)

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
        if confidence is not None:
            check(confidence, "confidence", Share())
        check(loss_bound, "loss_bound", Either(None, Number(above=0)))
        measure_of(measure, self.loss, len(self.classes_) if self._classification() else None)
        tables = self.evaluate(X, y, sample_domain)
        check_every_source(tables, self.source_names_, CERTIFIED_ON_ALL)
        warn_of_training_rows(tables, self.sources_)
        certificate = certify_tables(
            tables,
            self.combination_,
            self.loss,
            confidence=confidence,
            measure=measure,
            clip=usual_clip(self.tables_, self.loss, measure),
            assumptions=Assumptions(loss_bound=loss_bound),
        )
        return self.named(without_confidence(certificate, self.seen_among(tables, X)))

    def named(self, certificate: Certificate) -> Certificate:
        """Call what stands beside a certificate by the names of the sources."""
        alone = {f"source {k + 1} alone": f"{n} alone" for k, n in enumerate(self.source_names_)}
        beside = (one._replace(name=alone.get(one.name, one.name)) for one in certificate.beside)
        return replace(certificate, beside=tuple(beside))

    def seen_among(self, tables: Tables, X: Any = None) -> list[str]:
        """Name the sources whose rows here were among those of `fit`, by their predictions.

        X are the rows themselves, where they are at hand.
        """
        seen = getattr(self, "seen_", None)
        if seen is None:
            return []
        rows = None if X is None else check_X(self, X)
        return [str(self.source_names_[k]) for k in seen.sources(tables, rows)]

    def seen_domains(self, X: Any, sample_domain: ArrayLike) -> list[str]:
        """Name the domains whose rows here were among those of `fit`, by the rows themselves.

        They need not be the sources that it was fitted to.  A model that was fitted to tables has
        seen no rows: see `seen_among`.
        """
        seen = getattr(self, "seen_", None)
        if seen is None or seen.rows is None:
            return []
        content, domain = content_of(check_X(self, X)), np.asarray(sample_domain).astype(str)
        number = {str(name): k for k, name in enumerate(self.source_names_)}
        return [
            str(name)
            for name in np.unique(domain)
            if seen.rows.have_seen(content[domain == name], number.get(name))
        ]


def _why_missing(model: Any, name: str) -> str:
    """Say why a model has no such attribute, and what would give it one."""
    kind, known = type(model).__name__, vars(model)
    learned = isinstance(getattr(type(model), name, None), FromResult | cached_property | property)
    members = getattr(known.get("result_"), "members", ())
    if learned and len(known.get("source_names_", ())) == 1 and name != "combination_":
        return (
            f"this {kind} has no {name}: it was fitted with one source, which leaves nothing to "
            "combine or certify; fit it with sample_domain, the source of each row."
        )
    if learned and members:
        return (
            f"this {kind} deploys the models of its folds (refit=False), of which each has its own "
            f"{name}: ask one of members_, or fit it with refit=True."
        )
    if learned and "source_names_" not in known and name != "z_":
        return f"this {kind} has no {name} yet: fit it with sample_domain, the source of each row."
    if name in INSTEAD:
        return f"{kind!r} object has no attribute {name!r}; it has {INSTEAD[name]}."
    return f"{kind!r} object has no attribute {name!r}"
