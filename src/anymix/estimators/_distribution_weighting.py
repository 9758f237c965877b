"""The distribution-weighted combination: what the regressor and the classifier share."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from anymix._arrays import FloatArray, n_rows
from anymix.core import CrossEntropy, Loss, get_loss
from anymix.densities import GaussianKDE
from anymix.estimators._ensemble import SourceEnsemble
from anymix.estimators._rows import Rows, check_every_source, check_sources, check_X
from anymix.estimators._source_training import SourceTrainer
from anymix.estimators._warnings import names_checked
from anymix.estimators._weighing import Goal, choose_weighing
from anymix.estimators.cross_loss import cross_loss
from anymix.sources import Novelty, Source, Tables

# A fit to one source has none of these, not even those of an earlier fit to several.
LEARNED_FROM_SEVERAL = (
    "novelty_",
    "weighing_",
    "tables_",
    "solution_",
    "certificate_",
    "cross_loss_",
)


class DistributionWeighting(SourceEnsemble):
    """Weights z_k D_k(x) + (η/p) U(x), with z learned so that no source is let down at home."""

    uses_density: ClassVar[bool] = True
    rule: str = "marginal"

    def __init__(
        self,
        estimator: Any = None,
        density: Any = None,
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

    def _check_fit(self, X: Any, y: Any, sample_domain: Any, sample_weight: Any) -> Rows:
        if sample_domain is None and not self.sources:
            warnings.warn(
                f"{type(self).__name__} was fitted without sample_domain, so all rows are one "
                "source and there is nothing to combine or certify: pass sample_domain, the source "
                "of each row.",
                UserWarning,
                stacklevel=2,
            )
        return super()._check_fit(X, y, sample_domain, sample_weight)

    def _density(self) -> Any:
        if self.density is not None or self.sources:
            return self.density
        return GaussianKDE(random_state=self.random_state)

    if not TYPE_CHECKING:  # there it would hide every misspelt attribute

        def __getattr__(self, name: str) -> Any:
            kind = type(self).__name__
            if name in LEARNED_FROM_SEVERAL and "z_" in self.__dict__:
                raise AttributeError(
                    f"this {kind} has no {name}: it was fitted with one source, which leaves "
                    "nothing to combine or certify; fit it with sample_domain, the source of each "
                    "row."
                )
            raise AttributeError(f"{kind!r} object has no attribute {name!r}")

    def estimator_or_default(self) -> Any:
        """Return the estimator to clone for each domain."""
        return self._fallback() if self.estimator is None else self.estimator

    def _learn(self, rows: Rows, recipe: SourceTrainer) -> None:
        if len(self.sources_) == 1:
            self.z_ = np.ones(1)
            for learned in LEARNED_FROM_SEVERAL:
                self.__dict__.pop(learned, None)
            return
        self._learn_from(recipe.held_out_tables(rows, self._labels, self.cv, self.random_state))

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
        self.sources_, self.router_ = list(self.sources), None
        self.source_names_ = np.asarray([source.name for source in self.sources_])
        if self._classification():
            if tables.classes is None:
                raise ValueError("tables of a classification come from evaluate(..., classes=...).")
            self.classes_ = np.asarray(tables.classes)
        self._learn_from(tables)
        return self

    def _learn_from(self, tables: Tables) -> None:
        """Calibrate, learn z, certify, all on rows that no source has seen."""
        self._check_parameters()
        check_every_source(tables, self.source_names_)
        goal = Goal(self.loss, self.eta, self.rule, self.objective, self.shrinkage)
        self.novelty_ = Novelty.from_tables(tables) if self.router_ is None else None
        self.weighing_, self.tables_, self.solution_, n = choose_weighing(
            tables, goal, self.calibrate
        )
        # z was fitted on the rows that judge it; what is certified is z rounded, so that is used.
        self.certificate_ = goal.certify(self.tables_, self.solution_.z, self.confidence, n)
        self.z_ = self.certificate_.z
        self.cross_loss_ = cross_loss(self.tables_, self.loss, self.source_names_, self.confidence)

    def _check_parameters(self) -> None:
        if self.rule not in ("marginal", "normalised"):
            raise ValueError(f"rule must be 'marginal' or 'normalised'; got {self.rule!r}.")
        loss = get_loss(self.loss)
        if self._classification() != (loss.vector or isinstance(loss, CrossEntropy)):
            kind = "'cross_entropy' or 'brier'" if self._classification() else "a loss of numbers"
            raise ValueError(f"{type(self).__name__} needs {kind}; got loss={self.loss!r}.")

    def log_responsibilities(self, X: Any) -> FloatArray:
        """log r_k(x), calibrated and sharpened as predictions use them, shape (p, n)."""
        check_is_fitted(self, "z_")
        X = check_X(self, X)
        if len(self.sources_) == 1:
            return np.zeros((1, n_rows(X)))
        with names_checked(self):
            return self.weighing_.transform(self._log_masses(X))

    def _weights(self, X: Any) -> FloatArray:
        # core.source_weights for responsibilities: these sum to 1, so U = 1/p is never tiny.
        r = np.exp(self.log_responsibilities(X))
        weights: FloatArray = self.z_[:, None] * r + self.eta / len(r) ** 2
        return weights / weights.sum(axis=0)

    def novelty(self, X: Any) -> FloatArray:
        """How far each row is from all sources: 0 is typical of one, near 1 is unlike any.

        1 − max_k of the share of source k's own held-out rows that are no likelier than the row.
        """
        check_is_fitted(self, "z_")
        novelty: Novelty | None = getattr(self, "novelty_", None)
        if novelty is None:
            raise ValueError(
                "novelty needs a density for each of several sources; a DomainClassifier or a "
                "single source has none."
            )
        X = check_X(self, X)
        with names_checked(self):
            return novelty.score(self._log_masses(X))

    def predict_or_abstain(self, X: Any, max_novelty: float = 0.95) -> tuple[Any, Any]:
        """Predictions, and which rows (True) are unlike all sources; 1 − max_novelty at home."""
        answer = self.predict(X)
        with names_checked(self):
            return answer, self.novelty(X) > max_novelty

    def model_evaluations(self, X: Any) -> dict[str, int]:
        """How many of the p·n model evaluations `predict` makes at these rows, and saves."""
        weights = self.source_weights(X)
        asked = weights >= self.skip_below / weights.shape[1]
        made = int(asked.sum()) if self.rule == "marginal" else weights.size
        return {"made": made, "saved": weights.size - made}
