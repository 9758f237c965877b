"""What the distribution-weighted regressor and classifier share."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from anymix._arrays import FloatArray, n_rows
from anymix.core import Combination, CrossFittedCombination, Loss, check_n_sources
from anymix.estimators._checked import Checked
from anymix.estimators._doubts import warn_of_slips
from anymix.estimators._held_out import held_out_answers, novelty_of
from anymix.estimators._jobs import step
from anymix.estimators._rows import Rows, check_every_source, check_X
from anymix.estimators._set_aside import with_set_aside
from anymix.estimators._source_training import SourceTrainer
from anymix.estimators._tables_given import check_tables
from anymix.estimators._taught import take_up
from anymix.estimators._warnings import names_checked
from anymix.sources import (
    Seen,
    Source,
    Tables,
    TrainingRows,
    evaluate,
    learn,
    log_reference,
    warn_of_training_rows,
)

LEARNED_FROM_ALL = (
    "z is learned from held-out rows of every source: add some of it, or leave it out"
)
# What a regressor has in place of what a classifier has, and the other way round.
INSTEAD = {
    "predict_interval": "predict_set",
    "predict_set": "predict_interval",
    "predict_proba": "predict and predict_interval",
}
# A fit to one source has none of these, not even those of an earlier fit to several.
LEARNED_FROM_SEVERAL = (
    "advice_",
    "calibration_report_",
    "certificate_",
    "comparison_",
    "cross_loss_",
    "density_choice_",
    "held_out_",
    "influence_",
    "novelty_",
    "seen_",
    "set_aside_",
    "solution_",
    "tables_",
    "taught_",
)


class DistributionWeighting(Checked):
    """Weights z_k D_k(x) + (η/p) U(x), with z learned so that no source is let down at home."""

    uses_density: ClassVar[bool] = True
    rule: str = "marginal"

    def __init__(
        self,
        estimator: Any = None,
        density: Any = "auto",
        *,
        sources: Sequence[Source] | None = None,
        loss: str | Loss = "squared",
        objective: str = "regret",
        shrinkage: float | str = "auto",
        eta: float = 1e-3,
        calibrate: bool = True,
        cv: int = 5,
        confidence: float = 0.95,
        skip_below: float = 1e-6,
        random_state: Any = None,
        set_aside: str | Sequence[str] | None = None,
        consult: bool = True,
        refit: bool = True,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ):
        self.estimator = estimator
        self.density = density
        self.sources = sources
        self.loss = loss
        self.objective = objective
        self.shrinkage = shrinkage
        self.eta = eta
        self.calibrate = calibrate
        self.cv = cv
        self.confidence = confidence
        self.skip_below = skip_below
        self.random_state = random_state
        self.set_aside = set_aside
        self.consult = consult
        self.refit = refit
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _check_fit(self, X: Any, y: Any, sample_domain: Any, sample_weight: Any) -> Rows:
        if sample_domain is None and not self.sources:
            warnings.warn(
                f"{type(self).__name__} was fitted without sample_domain, so all rows are one "
                "source and there is nothing to combine or certify: pass sample_domain, the source "
                "of each row.",
                UserWarning,
                stacklevel=2,
            )
        for old in ("members_", "combination_", *LEARNED_FROM_SEVERAL):
            self.__dict__.pop(old, None)
        rows = super()._check_fit(X, y, sample_domain, sample_weight)
        if not self.sources and sample_domain is not None:
            warn_of_slips(X, rows.y, self.source_names_[rows.domain])
        self._choose_learner(X)
        check_n_sources(len(self.source_names_))
        # Members are fitted on rows as they were given.
        self._given = (X, y, sample_domain, sample_weight) if self._deploys_folds() else None
        return rows

    if not TYPE_CHECKING:  # there it would hide every misspelt attribute

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(_why_missing(type(self).__name__, self.__dict__, name))

    def _train(self, rows: Rows, trainer: SourceTrainer) -> None:
        """Train the predictors; what weighs them is chosen by what they say."""
        if not self._deploys_folds():
            with step(self, "models of all sources"):
                self.sources_, self.router_ = trainer.predictors(rows), None

    def _learn(self, rows: Rows, trainer: SourceTrainer) -> None:
        given = self.__dict__.pop("_given")
        if given is not None:
            self._fit_members(given, rows)
            return
        if len(self.sources_) == 1:
            self.router_ = trainer.with_densities(self.sources_, rows)[1]
            self.combination_ = CrossFittedCombination.of(
                Combination(np.ones(1), self.eta, None, self.rule)
            )
            return
        fold = trainer.folds(rows, self.cv, self._classification(), self.random_state)
        tables = trainer.blank(rows, self._labels)
        with step(self, "held-out answers"):
            again = held_out_answers(trainer, rows, tables, fold, self._goal())
            self.sources_ = trainer.second_round(self.sources_, rows, again)
        with step(self, "what weighs them"):
            tables, strange = self._weigh(rows, trainer, tables, fold)
        with step(self, "z and its certificate"):
            self._learn_from(tables, fresh=self._is_given(trainer))
        self.seen_ = Seen.of(tables, rows.X)
        if strange is None and self.router_ is None:
            strange = tables.log_masses
        if strange is not None:
            self.novelty_ = novelty_of(tables, strange + log_reference(self.sources_, rows.X))

    def fit_tables(self, tables: Tables, teaching: TrainingRows | None = None) -> Self:
        """Learn z from tables alone, when no rows may travel; the sources must have been given.

        Each site evaluates all sources on its own held-out rows, and sends the tables.  Where
        `teaching` is given, further rows that may be more than memory holds, these teach and the
        tables judge.
        """
        check_tables(tables, self.sources)
        assert self.sources is not None
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
        self._learn_from(tables, teaching=teaching)
        self.seen_ = Seen.of(tables) if teaching is None else teaching.seen()
        return self

    def _is_given(self, trainer: SourceTrainer) -> bool:
        """Whether nothing but the combination is learned from the rows of `fit`."""
        return bool(trainer.sources) and trainer.weighed and not self._chooses()

    def _learn_from(
        self, tables: Tables, fresh: bool = True, teaching: TrainingRows | None = None
    ) -> None:
        """Calibrate, learn z, certify, all on rows that no source has seen."""
        check_every_source(tables, self.source_names_, LEARNED_FROM_ALL)
        if self.sources:
            warn_of_training_rows(tables, self.sources, stacklevel=3)
        names = tuple(str(name) for name in self.source_names_)
        goal = replace(self._goal(), fresh=fresh, names=names)
        goal = with_set_aside(self.set_aside, tables, goal, self.source_names_)
        if teaching is None:
            learned, self.taught_ = learn(tables, goal), None
        else:
            learned, self.taught_ = learn(tables, goal, teaching), teaching.n_points
        self.__dict__.pop("influence_", None)
        self.tables_ = tables
        self.set_aside_ = tuple(str(self.source_names_[j]) for j in goal.set_aside)
        assert learned.held_out is not None
        self.held_out_ = learned.held_out
        take_up(self, learned)

    def log_responsibilities(self, X: Any) -> FloatArray:
        """log r_k(x), calibrated and sharpened as predictions use them, shape (p, n)."""
        check_is_fitted(self, "combination_")
        X = check_X(self, X)
        if len(self.sources_) == 1:
            return np.zeros((1, n_rows(X)))
        with names_checked(self):
            return self.combination_.log_responsibilities(self._log_masses(X))

    def _weights(self, X: Any) -> FloatArray:
        if len(self.sources_) == 1:
            return np.ones((1, n_rows(X)))
        return self.combination_.weights(self._log_masses(X))

    def _combined_chunk(self, X: Any) -> FloatArray:
        if len(self.sources_) == 1:
            return self._ask(0, X)
        used, p = self.combination_, len(self.sources_)
        # No weight is below η/p² / (1 + η/p); skipping sources can only begin above that.
        skips = used.rule == "marginal" and not used.consults
        if skips and self.skip_below * (p + used.eta) > used.eta:
            return used.predict(self._log_masses(X), self._asking(X), self.skip_below)
        # Every source counts everywhere, so that all of them are asked about all rows.
        tables = evaluate(self.sources_, X, self._labels, self.router_, reference=False)
        return used.predict(tables.log_masses, tables.predictions)


def _why_missing(kind: str, known: dict[str, Any], name: str) -> str:
    """Say why a model has no such attribute, and what would give it one."""
    if name in LEARNED_FROM_SEVERAL and len(known.get("source_names_", ())) == 1:
        return (
            f"this {kind} has no {name}: it was fitted with one source, which leaves nothing to "
            "combine or certify; fit it with sample_domain, the source of each row."
        )
    if name in (*LEARNED_FROM_SEVERAL, "combination_") and known.get("members_"):
        return (
            f"this {kind} deploys the models of its folds (refit=False), of which each has its own "
            f"{name}: ask one of members_, or fit it with refit=True."
        )
    if name in LEARNED_FROM_SEVERAL and "source_names_" not in known:
        return f"this {kind} has no {name} yet: fit it with sample_domain, the source of each row."
    if name in INSTEAD:
        return f"{kind!r} object has no attribute {name!r}; it has {INSTEAD[name]}."
    return f"{kind!r} object has no attribute {name!r}"
