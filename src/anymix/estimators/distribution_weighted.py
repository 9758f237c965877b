"""The distribution-weighted combination as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, cast

import numpy as np
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils.validation import check_is_fitted

from anymix.core import combine, solve, source_weights
from anymix.core.certificate import certify
from anymix.core.losses import Loss, get_loss
from anymix.core.records import Objective
from anymix.core.simplex import FloatArray
from anymix.densities import GaussianKDE, TemperatureScaling
from anymix.estimators._ensemble import SourceEnsemble
from anymix.estimators._rows import Rows, check_X
from anymix.estimators._training import cross_fitted_tables
from anymix.estimators.cross_loss import cross_loss
from anymix.estimators.novelty import Novelty
from anymix.sources import Source, Tables, evaluate


class _DistributionWeighted(SourceEnsemble):
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
        self.random_state = random_state

    def _density(self) -> Any:
        return GaussianKDE() if self.density is None else self.density

    def estimator_or_default(self) -> Any:
        """Return the estimator to clone for each domain."""
        return self._fallback() if self.estimator is None else self.estimator

    def _learn(self, rows: Rows) -> None:
        if len(self.sources_) == 1:
            self.z_ = np.ones(1)
            return
        classes = self.classes_ if self._classification() else None
        if self.sources:
            y = rows.y if classes is None else np.searchsorted(classes, rows.y)
            tables = replace(
                evaluate(self.sources_, rows.X, classes),
                targets=y,
                sample_domain=rows.domain,
                sample_weight=rows.weight,
            )
        else:
            tables = cross_fitted_tables(
                rows,
                self.source_names_,
                self.estimator_or_default(),
                self._density(),
                classes,
                self.cv,
                self.random_state,
            )
        self._learn_from(tables)

    def fit_tables(self, tables: Tables) -> Any:
        """Learn z from tables alone, when no rows may travel; the sources must have been given.

        Each site evaluates all sources on its own held-out rows, and sends the tables.
        """
        if not self.sources:
            raise ValueError(
                "fit_tables needs sources: use from_sources([...]).fit_tables(tables)."
            )
        self.sources_, self.router_ = list(self.sources), None
        self.source_names_ = np.asarray([source.name for source in self.sources_])
        if self._classification():
            self.classes_ = np.asarray(tables.classes)
        self._learn_from(tables)
        return self

    def _learn_from(self, tables: Tables) -> None:
        """Calibrate, learn z, certify, all on rows that no source has seen."""
        if tables.targets is None or tables.sample_domain is None:
            raise ValueError("z is learned from held-out rows: tables need targets and domains.")
        self.calibration_ = None
        self.novelty_ = Novelty.from_tables(tables) if self.router_ is None else None
        if self.calibrate:
            self.calibration_ = TemperatureScaling().fit(
                tables.log_masses, tables.sample_domain, tables.sample_weight
            )
        self.tables_ = replace(tables, log_masses=self._calibrated(tables.log_masses))
        problem = self.tables_.problem(get_loss(self.loss), self.eta, self.rule)
        shrinkage = 0.0 if self.objective == "gamma" else self.shrinkage
        self.solution_ = solve(problem, cast(Objective, self.objective), shrinkage=shrinkage)
        self.certificate_ = certify(problem, self.solution_, confidence=self.confidence)
        # z was fitted on the rows that judge it; what is certified is z rounded, so that is used.
        self.z_ = self.certificate_.z
        self.cross_loss_ = cross_loss(self.tables_, self.loss, self.source_names_, self.confidence)

    def _calibrated(self, log_masses: FloatArray) -> FloatArray:
        if self.calibration_ is None:
            return np.asarray(log_softmax(log_masses, axis=0))
        return np.asarray(self.calibration_.transform(log_masses))

    def log_responsibilities(self, X: Any) -> FloatArray:
        """Calibrated log r_k(x), shape (p, n)."""
        check_is_fitted(self, "z_")
        X = check_X(self, X, False)
        if len(self.sources_) == 1:
            return np.zeros((1, X.shape[0] if hasattr(X, "shape") else len(X)))
        return self._calibrated(self._log_masses(X))

    def _weights(self, X: Any) -> FloatArray:
        return source_weights(self.log_responsibilities(X), self.z_, self.eta)

    def novelty(self, X: Any) -> FloatArray:
        """How far each row is from all sources: 0 is typical of one, near 1 is unlike any."""
        check_is_fitted(self, "z_")
        novelty: Novelty | None = getattr(self, "novelty_", None)
        if novelty is None:
            raise ValueError(
                "novelty needs a density for each of several sources; a DomainClassifier or a "
                "single source has none."
            )
        return novelty.score(self._log_masses(check_X(self, X, False)))

    def predict_or_abstain(self, X: Any, max_novelty: float = 0.99) -> tuple[Any, Any]:
        """Predictions, and which rows (True) are too unlike all sources to be trusted."""
        return self.predict(X), self.novelty(X) > max_novelty

    def model_evaluations(self, X: Any) -> dict[str, int]:
        """How many of the p·n model evaluations `predict` makes at these rows, and saves."""
        weights = self.source_weights(X)
        made = int((weights >= self.skip_below / weights.shape[1]).sum())
        return {"made": made, "saved": weights.size - made}


class DistributionWeightedRegressor(RegressorMixin, _DistributionWeighted):
    """Regression from several sources that is good on any mixture of them.

    Parameters
    ----------
    estimator : regressor, default Ridge()
        Cloned and trained for each domain.
    density : density, or `DomainClassifier`, default GaussianKDE()
        Cloned and trained for each domain; a classifier of domains once for all.
    sources : list of Source, optional
        Trained elsewhere; see `from_sources`.
    loss : str or Loss, default "squared"
    objective : "regret", "robust" or "gamma"
        What z is to achieve; see `anymix.core.solve`.
    shrinkage : "auto" or float
        How strongly z is held near uniform.
    eta : float
        η, the part of the mean density in the weights.
    calibrate : bool
        Fit temperature and offset of the densities on held-out rows.
    cv : int
        Folds: no source is judged on rows that it was trained on.
    confidence : float
        Of the certificate.
    random_state : int or None
        For the folds.

    Attributes
    ----------
    z_ : array (p,)
    certificate_ : Certificate
        How much, at most, it loses to each source's own model at home and on any mixture.
    solution_, cross_loss_, calibration_, sources_, source_names_
        The solver's answer; each source's model on each domain; what was learned on the way.

    Examples
    --------
    >>> import numpy as np
    >>> from anymix import DistributionWeightedRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = np.r_[rng.normal(-2, 1, (200, 1)), rng.normal(2, 1, (200, 1))]
    >>> y, d = np.abs(X[:, 0]), np.repeat(["north", "south"], 200)
    >>> model = DistributionWeightedRegressor(random_state=0).fit(X, y, sample_domain=d)
    >>> bool(np.abs(model.predict([[-2.0], [2.0]]) - 2).max() < 0.2)
    True

    Paper: Eq. 1.
    """

    def _classification(self) -> bool:
        return False

    def _fallback(self) -> Any:
        return Ridge()


class DistributionWeightedClassifier(ClassifierMixin, _DistributionWeighted):
    """Classification from several sources that is good on any mixture of them.

    Parameters are those of `DistributionWeightedRegressor`, with the default estimator
    LogisticRegression(), the default loss "cross_entropy" (or "brier"), and

    Parameters
    ----------
    rule : "marginal" or "normalised"
        Weigh sources by D_k(x), the same for all classes; or by D_k(x) h_k(x, y), class by class,
        and normalise (Thm 3).

    Examples
    --------
    >>> import numpy as np
    >>> from anymix import DistributionWeightedClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = np.r_[rng.normal(-2, 1, (200, 1)), rng.normal(2, 1, (200, 1))]
    >>> y, d = np.where(np.abs(X[:, 0]) > 2, "far", "near"), np.repeat(["north", "south"], 200)
    >>> model = DistributionWeightedClassifier(random_state=0).fit(X, y, sample_domain=d)
    >>> model.predict([[-4.0], [-1.0], [1.0], [4.0]])
    array(['far', 'near', 'near', 'far'], dtype='<U4')

    Paper: Eq. 2, Thm 3, App. C.
    """

    def __init__(
        self,
        estimator: Any = None,
        density: Any = None,
        *,
        sources: Sequence[Source] | None = None,
        loss: str | Loss = "cross_entropy",
        rule: str = "marginal",
        objective: str = "regret",
        shrinkage: float | str = "auto",
        eta: float = 1e-3,
        calibrate: bool = True,
        cv: int = 5,
        confidence: float = 0.95,
        random_state: Any = None,
    ):
        super().__init__(
            estimator,
            density,
            sources=sources,
            loss=loss,
            objective=objective,
            shrinkage=shrinkage,
            eta=eta,
            calibrate=calibrate,
            cv=cv,
            confidence=confidence,
            random_state=random_state,
        )
        self.rule = rule

    def _classification(self) -> bool:
        return True

    def _fallback(self) -> Any:
        return LogisticRegression(max_iter=1000)

    def _combined_chunk(self, X: Any) -> FloatArray:
        if self.rule == "marginal" or len(self.sources_) == 1:
            return super()._combined_chunk(X)
        if self.rule != "normalised":
            raise ValueError(f"rule must be 'marginal' or 'normalised'; got {self.rule!r}.")
        h = np.stack([self._ask(k, X) for k in range(len(self.sources_))])
        log_joint = self.log_responsibilities(X)[:, :, None] + np.log(h)
        return combine(log_joint, h, self.z_, self.eta, rule="normalised")
