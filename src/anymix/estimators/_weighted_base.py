"""What the distribution-weighted regressor and classifier share."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from anymix._arrays import FloatArray, IntArray, n_rows
from anymix._columns import Columns
from anymix.core import Combination, Loss, check_number
from anymix.densities import GaussianKDE
from anymix.estimators._defaults import candidates, default_estimator, kind_of
from anymix.estimators._held_out import N_PARTS, choose_density, held_out_answers, novelty_of
from anymix.estimators._questions import Questions
from anymix.estimators._rows import Rows, check_every_source, check_sources, check_X
from anymix.estimators._set_aside import with_set_aside
from anymix.estimators._source_training import SourceTrainer
from anymix.estimators._warnings import names_checked
from anymix.estimators.cross_loss import cross_loss
from anymix.sources import Source, Tables, evaluate, learn, log_reference

# A fit to one source has none of these, not even those of an earlier fit to several.
LEARNED_FROM_SEVERAL = (
    "calibration_report_",
    "certificate_",
    "comparison_",
    "consulted_",
    "cross_loss_",
    "density_choice_",
    "influence_",
    "novelty_",
    "set_aside_",
    "solution_",
    "tables_",
)


class DistributionWeighting(Questions):
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

    def _check_fit(self, X: Any, y: Any, sample_domain: Any, sample_weight: Any) -> Rows:
        if sample_domain is None and not self.sources:
            warnings.warn(
                f"{type(self).__name__} was fitted without sample_domain, so all rows are one "
                "source and there is nothing to combine or certify: pass sample_domain, the source "
                "of each row.",
                UserWarning,
                stacklevel=2,
            )
        rows = super()._check_fit(X, y, sample_domain, sample_weight)
        self._choose_learner(X)
        check_number(len(self.source_names_))
        return rows

    def _takes_gaps(self) -> bool:
        return self.estimator is None and not self.sources

    def _describe(self, X: Any) -> Columns | None:
        """Read mixed tables by their columns, unless the user's own estimator sees to them."""
        if self.sources:
            known = [source.columns for source in self.sources]
            return known[0] if all(one == known[0] for one in known) else None
        if self.estimator is not None or kind_of(X) != "mixed":
            return None
        return Columns.of(X)

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

    if not TYPE_CHECKING:  # there it would hide every misspelt attribute

        def __getattr__(self, name: str) -> Any:
            kind = type(self).__name__
            names = self.__dict__.get("source_names_", ())
            if name in LEARNED_FROM_SEVERAL and len(names) == 1:
                raise AttributeError(
                    f"this {kind} has no {name}: it was fitted with one source, which leaves "
                    "nothing to combine or certify; fit it with sample_domain, the source of each "
                    "row."
                )
            raise AttributeError(f"{kind!r} object has no attribute {name!r}")

    def _choose_learner(self, X: Any) -> None:
        """Choose the learner by the rows, where none was given."""
        if not self.sources:
            seed = self.random_state
            chosen = default_estimator(X, self._classification(), seed)
            self.estimator_ = chosen if self.estimator is None else self.estimator

    def estimator_or_default(self) -> Any:
        """Return the estimator to clone for each domain."""
        return self.estimator_

    @property
    def z_(self) -> FloatArray:
        """The weights of the sources, shape (p,)."""
        return self.combination_.z

    def _train(self, rows: Rows, trainer: SourceTrainer) -> None:
        """Train the predictors; what weighs them is chosen by what they say."""
        self.sources_, self.router_ = trainer.predictors(rows), None

    def _learn(self, rows: Rows, trainer: SourceTrainer) -> None:
        for learned in LEARNED_FROM_SEVERAL:
            self.__dict__.pop(learned, None)
        if len(self.sources_) == 1:
            self.router_ = trainer.with_densities(self.sources_, rows)[1]
            self.combination_ = Combination(np.ones(1), self.eta, None, self.rule)
            return
        fold = trainer.folds(rows, self.cv, self._classification(), self.random_state)
        tables = trainer.blank(rows, self._labels)
        again = held_out_answers(trainer, rows, tables, fold, self._goal())
        self.sources_ = trainer.second_round(self.sources_, rows, again)
        tables, strange = self._weigh(rows, trainer, tables, fold)
        self._learn_from(tables)
        if strange is None and self.router_ is None:
            strange = tables.log_masses
        if strange is not None:
            self.novelty_ = novelty_of(tables, strange + log_reference(self.sources_, rows.X))

    def _weigh(
        self, rows: Rows, trainer: SourceTrainer, tables: Tables, fold: IntArray
    ) -> tuple[Tables, FloatArray | None]:
        """Add what weighs the sources, to them and to the held-out tables.

        The second answer are held-out log-densities where others than the weights say how strange
        a row is, or where a reference is to be added to them.
        """
        if not self._chooses():
            folds = range(int(fold.max()) + 1)
            tables = replace(tables, log_masses=trainer.held_out_masses(rows, fold, folds))
            strange = None
        else:
            fold = trainer.folds(rows, N_PARTS, self._classification(), self.random_state)
            options = candidates(rows, self.columns_, self.random_state)
            found = choose_density(trainer, rows, tables, fold, self._goal(), options)
            self.density_choice_, log_masses, strange = found
            tables = replace(tables, log_masses=log_masses)
            trainer = replace(trainer, density=options[self.density_choice_.chosen])
            if self.density_choice_.novelty is not None:
                density = replace(trainer, density=options[self.density_choice_.novelty])
                self.sources_, _ = density.with_densities(self.sources_, rows)
        sources, self.router_ = trainer.with_densities(self.sources_, rows)
        if self.columns_ is not None and not self.sources:
            sources = [replace(source, columns=self.columns_) for source in sources]
        self.sources_ = sources
        return replace(tables, has_densities=self.router_ is None), strange

    def fit_tables(self, tables: Tables) -> Self:
        """Learn z from tables alone, when no rows may travel; the sources must have been given.

        Each site evaluates all sources on its own held-out rows, and sends the tables.
        """
        if not self.sources:
            raise ValueError(
                "fit_tables needs sources: use from_sources([...]).fit_tables(tables)."
            )
        check_sources(self.sources)
        p = len(self.sources)
        if len(tables.log_masses) != p:
            raise ValueError(f"the tables are of {len(tables.log_masses)} sources, not of {p}.")
        if tables.targets is None or tables.sample_domain is None:
            raise ValueError(
                "z is learned from held-out rows: add their targets and domains to the tables with "
                "tables.labelled(y, sample_domain)."
            )
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
        self._learn_from(tables)
        return self

    def _learn_from(self, tables: Tables) -> None:
        """Calibrate, learn z, certify, all on rows that no source has seen."""
        check_every_source(tables, self.source_names_)
        goal = with_set_aside(self.set_aside, tables, self._goal(), self.source_names_)
        learned = learn(tables, goal)
        self.__dict__.pop("influence_", None)
        self.tables_ = tables
        self.set_aside_ = tuple(str(self.source_names_[j]) for j in goal.set_aside)
        self.combination_, self.certificate_ = learned.combination, learned.certificate
        self.solution_, self.calibration_report_ = learned.solution, learned.calibration_report
        self.novelty_, self.consulted_ = learned.novelty, learned.consulted
        self.cross_loss_ = cross_loss(*learned.cross_losses, self.source_names_, self.confidence)

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
        skips = used.rule == "marginal" and used.consulting is None
        if skips and self.skip_below * (p + used.eta) > used.eta:
            return used.predict(self._log_masses(X), self._asking(X), self.skip_below)
        # Every source counts everywhere, so that all of them are asked about all rows.
        tables = evaluate(self.sources_, X, self._labels, self.router_)
        return used.predict(tables.log_masses, tables.predictions)

    def model_weights(self, X: Any) -> FloatArray:
        """How much each source's *model* counts at each row, through all who hear it: (n, p).

        Σ_k weight_k(x) a_kj, with a_kj how source k takes what the model of source j says.  Of
        labels these are weights of logarithms, which need not sum to 1.
        """
        check_is_fitted(self, "combination_")
        X = check_X(self, X)
        if len(self.sources_) == 1:
            return np.ones((n_rows(X), 1))
        with names_checked(self):
            return self.combination_.model_weights(self._log_masses(X)).T

    def model_evaluations(self, X: Any) -> dict[str, int]:
        """How many of the p·n model evaluations `predict` makes at these rows, and saves."""
        weights = self.source_weights(X)
        asked = weights >= self.skip_below / weights.shape[1]
        all_asked = self.rule != "marginal" or self.combination_.consulting is not None
        made = weights.size if all_asked else int(asked.sum())
        return {"made": made, "saved": weights.size - made}
