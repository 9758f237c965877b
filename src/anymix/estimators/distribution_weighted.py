"""The distribution-weighted combination as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils.validation import check_is_fitted

from anymix.core import combine
from anymix.core.losses import CrossEntropy, Loss, get_loss
from anymix.core.simplex import FloatArray
from anymix.densities import GaussianKDE
from anymix.estimators._ensemble import SourceEnsemble
from anymix.estimators._learning import Goal, choose_weighing
from anymix.estimators._rows import Rows, check_X
from anymix.estimators._training import Recipe
from anymix.estimators.cross_loss import cross_loss
from anymix.estimators.novelty import Novelty
from anymix.sources import Source, Tables
from anymix.sources.tables import _length


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

    def _density(self) -> Any:
        if self.density is not None or self.sources:
            return self.density
        return GaussianKDE(random_state=self.random_state)

    def estimator_or_default(self) -> Any:
        """Return the estimator to clone for each domain."""
        return self._fallback() if self.estimator is None else self.estimator

    def _learn(self, rows: Rows, recipe: Recipe) -> None:
        if len(self.sources_) == 1:
            self.z_ = np.ones(1)
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
            return np.zeros((1, _length(X)))
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
        return novelty.score(self._log_masses(check_X(self, X)))

    def predict_or_abstain(self, X: Any, max_novelty: float = 0.95) -> tuple[Any, Any]:
        """Predictions, and which rows (True) are unlike all sources; 1 − max_novelty at home."""
        return self.predict(X), self.novelty(X) > max_novelty

    def model_evaluations(self, X: Any) -> dict[str, int]:
        """How many of the p·n model evaluations `predict` makes at these rows, and saves."""
        weights = self.source_weights(X)
        asked = weights >= self.skip_below / weights.shape[1]
        made = int(asked.sum()) if self.rule == "marginal" else weights.size
        return {"made": made, "saved": weights.size - made}


class DistributionWeightedRegressor(RegressorMixin, _DistributionWeighted):
    """Regression from several sources that is good on any mixture of them.

    Parameters
    ----------
    estimator : regressor, default Ridge()
        Cloned and trained for each domain.
    density : density, or `DomainClassifier`, default GaussianKDE()
        Cloned and trained for each domain; a classifier of domains once for all.  For given sources
        that have none it is learned from the rows of `fit`.  Densities are compared, so a step
        before one (a vocabulary, a scaler) is fitted beforehand and put in a `FrozenEstimator`.
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
        Fit temperatures and offsets of the densities on held-out rows, and sharpen what comes out
        where that serves the objective.
    cv : int
        Folds: no source is judged on rows that it was trained on.
    confidence : float
        Of the certificate.
    skip_below : float
        Sources whose weights at a row sum to less are not asked about it: probabilities move by
        less than this, numbers by less than this times the spread of the sources' answers.  As
        every source keeps a weight of about η/p, only a value above 2η saves much.
    random_state : int or None
        For the folds.

    Attributes
    ----------
    z_ : array (p,)
    certificate_ : Certificate
        How much, at most, it loses to each source's own model at home and on any mixture.
    solution_, cross_loss_, weighing_, tables_, sources_
        The solver's answer; each source's model on each domain; how densities became weights; the
        held-out tables; what was combined.

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
        skip_below: float = 1e-6,
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
            skip_below=skip_below,
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
        h = np.stack([self._ask(k, X) for k in range(len(self.sources_))])
        log_joint = self.log_responsibilities(X)[:, :, None] + np.log(h)
        return combine(log_joint, h, self.z_, self.eta, rule="normalised")
