"""Baselines that fit one estimator with learned row weights: GroupDRO and kernel mean matching."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from anymix._arrays import n_rows
from anymix._parameters import Either, Number, Rule, check_parameters
from anymix.estimators._ensemble import store_parameters
from anymix.estimators._kmm_qp import BoxAndBand, Kernel, mean_matching_weights
from anymix.estimators._row_checks import check_order, is_text, not_numbers, take_columns
from anymix.estimators._running import step
from anymix.estimators._source_training import (
    check_part,
    fit_with_weight,
    no_estimator,
    takes_weight,
)
from anymix.exceptions import InputError
from anymix.tables import as_rows


def _inner_has(method: str) -> Any:
    """Return a check that the fitted, or else the given, estimator has this method."""
    return lambda self: hasattr(getattr(self, "estimator_", self.estimator), method)


class ReweightedEstimator(MetaEstimatorMixin, BaseEstimator):
    """Predict with `estimator_`, a clone of `estimator` that was fitted with row weights.

    All of them see the rows of all sources in one place, which makes them privileged.
    """

    privileged: ClassVar[bool] = True
    estimator: Any

    def _fit_weighted(self, X: Any, y: Any, weights: NDArray[np.float64] | None) -> Any:
        """Return a clone fitted with the weights, or without any for weights=None."""
        if weights is None:
            return clone(self.estimator).fit(X, y)
        if not takes_weight(self.estimator):
            raise TypeError(
                f"{type(self).__name__} needs an estimator whose fit takes sample_weight, which "
                f"{type(self.estimator).__name__} does not: choose another one."
            )
        return fit_with_weight(self.estimator, X, y, weights)

    def _rows(self, X: Any, reset: bool = False) -> Any:
        """Return X as an array or sparse matrix; whether NaN is allowed is up to the inner one.

        Text passes untouched, and so does a DataFrame once its names are checked: the estimator
        inside may need the columns by name and kind.
        """
        if reset:
            check_parameters(self)
            if self.estimator is None:
                raise no_estimator(f"{type(self).__name__} needs an estimator")
            check_part(self.estimator, "estimator", ("predict",), "LogisticRegression() or Ridge()")
        else:
            check_is_fitted(self, "estimator_")
        X = as_rows(X, vars(self).get("left_out_", ()))
        if is_text(X):
            return X
        if hasattr(X, "columns"):
            return validate_data(self, X, reset=reset, skip_check_array=True)
        return validate_data(
            self,
            X,
            reset=reset,
            accept_sparse=("csr", "csc"),
            dtype=None,
            ensure_all_finite=False,
        )

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict with the fitted estimator."""
        rows = self._rows(X)  # says first if nothing was fitted
        return np.asarray(self.estimator_.predict(rows))

    @available_if(_inner_has("predict_proba"))
    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return class probabilities (n, c) of the fitted estimator."""
        rows = self._rows(X)  # says first if nothing was fitted
        return np.asarray(self.estimator_.predict_proba(rows))

    @available_if(_inner_has("decision_function"))
    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the scores of the fitted estimator."""
        rows = self._rows(X)
        return np.asarray(self.estimator_.decision_function(rows))

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Return the score of the fitted estimator: accuracy, or R^2 of a regressor."""
        rows = self._rows(X)
        return float(self.estimator_.score(rows, y))

    @property
    def classes_(self) -> NDArray[Any]:
        """Class labels of the fitted classifier."""
        labels: NDArray[Any] = self.estimator_.classes_
        return labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.estimator is None:
            return tags
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = inner.classifier_tags
        tags.regressor_tags = inner.regressor_tags
        tags.target_tags = inner.target_tags
        tags.input_tags = inner.input_tags
        tags.non_deterministic = inner.non_deterministic
        return tags


class GroupDRO(ReweightedEstimator):
    """One model, trained to make the loss on its worst source small (Sagawa et al. 2020).

    The game min_h max_q Σ_g q_g L_g(h) over group weights q is played in rounds: the estimator
    is fitted with weight q_g / n_g on each row of group g, then the groups with large loss gain,

        q_g <- q_g exp(step_size L_g / max_j L_j) / (normaliser),

    and the fit with the least max_g L_g is kept.  L_g is the training loss: log-loss where the
    estimator gives probabilities, misclassification for other classifiers, else squared error.  A
    model that fits its rows exactly has nothing to balance: regularise it.

    Parameters
    ----------
    estimator : estimator
        What is fitted; its `fit` takes `sample_weight`.
    n_rounds : int, default=20
        Number of fits.
    step_size : float, default=1.0
        How fast group weights move.
    verbose : bool or int, default=False
        Print a line for each round, with its time.

    Attributes
    ----------
    estimator_ : estimator
        The kept fit.
    groups_ : ndarray of shape (p,)
        Group labels, sorted.
    group_weights_, group_losses_ : ndarray of shape (p,)
        q and L of the kept fit.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> X, y = np.ones((10, 1)), np.array([0.0] * 9 + [1.0])
    >>> plain = Ridge(alpha=0.0, fit_intercept=False).fit(X, y)
    >>> model = GroupDRO(Ridge(alpha=0.0, fit_intercept=False)).fit(X, y, sample_domain=y)
    >>> plain.coef_.round(2), model.estimator_.coef_.round(2)
    (array([0.1]), array([0.5]))
    """

    _takes: ClassVar[Mapping[str, Rule]] = {
        "n_rounds": Number(1, whole=True),
        "step_size": Number(above=0),
    }

    def __init__(
        self,
        estimator: Any,
        n_rounds: int = 20,
        step_size: float = 1.0,
        verbose: bool | int = False,
    ) -> None:
        store_parameters(self, locals())

    def fit(self, X: ArrayLike, y: ArrayLike, sample_domain: ArrayLike | None = None) -> Self:
        """Fit on the rows of all sources.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame (n, d), or a list of documents
            Training rows of all sources.
        y : array of shape (n,)
            Their targets.
        sample_domain : array of shape (n,), optional
            The source of each row; without it all rows are one group, which is a plain fit.
        """
        X, (sample_domain,), self.left_out_ = take_columns(X, sample_domain=sample_domain)
        rows = self._rows(X, reset=True)
        check_order(X, y=y, sample_domain=sample_domain)
        domain = np.zeros(n_rows(rows), dtype=int) if sample_domain is None else sample_domain
        check_consistent_length(rows, domain)
        self.groups_, group = np.unique(np.asarray(domain), return_inverse=True)
        self._play(rows, y, group)
        return self

    def _play(self, X: Any, y: Any, group: NDArray[np.intp]) -> None:
        """Play the rounds and keep the fit whose worst group is best off."""
        size = np.bincount(group)
        q, worst = np.full(len(size), 1.0 / len(size)), np.inf
        n_rounds = self.n_rounds if len(size) > 1 else 1
        for number in range(1, n_rounds + 1):
            # A mean row weight of 1 leaves the estimator's own regularisation as strong as it was.
            weights = (q * len(group) / size)[group] if len(size) > 1 else None
            with step(self, f"round {number} of {n_rounds}"):
                model = self._fit_weighted(X, y, weights)
                losses = np.bincount(group, weights=row_losses(model, X, y)) / size
            if losses.max() < worst:
                worst = losses.max()
                self.estimator_, self.group_weights_, self.group_losses_ = model, q, losses
            if losses.max() == 0:
                break
            q = q * np.exp(self.step_size * (losses / losses.max() - 1.0))
            q = q / q.sum()


def row_losses(model: Any, X: Any, y: ArrayLike) -> NDArray[np.float64]:
    """Return the loss of each row: log-loss, misclassification or squared error (n,).

    Examples
    --------
    >>> from sklearn.dummy import DummyRegressor
    >>> model = DummyRegressor(strategy="constant", constant=1.0).fit([[0.0]], [1.0])
    >>> row_losses(model, [[0.0], [0.0]], [1.0, 3.0])
    array([0., 4.])
    """
    y = np.asarray(y)
    losses: NDArray[Any]
    if not is_classifier(model):
        gap = np.reshape(model.predict(X), y.shape) - y.astype(np.float64)
        losses = (gap.reshape(len(y), -1) ** 2).mean(axis=1)
    elif not hasattr(model, "predict_proba"):
        losses = (model.predict(X) != y.ravel()).astype(np.float64)
    else:
        own = model.predict_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y.ravel())]
        losses = -np.log(np.maximum(own, np.finfo(np.float64).tiny))
    return losses


class KernelMeanMatching(ReweightedEstimator):
    """Fit an estimator on rows weighted to match the target in kernel mean (Huang et al. 2006).

    The weights b of the n training rows x_i, given m target rows t_j, minimise

        1/2 b'Kb - kappa'b,  K_ij = k(x_i, x_j),  kappa_i = (n / m) Σ_j k(x_i, t_j),
        0 <= b_i <= B,  |Σ_i b_i - n| <= n eps,

    which is n^2 / 2 times the squared distance between the kernel means, up to a constant.  It is a
    privileged baseline: it sees target rows, and has to be trained again for every target.
    Holds K in memory: 4 n^2 bytes.

    Parameters
    ----------
    estimator : estimator
        What is fitted; its `fit` takes `sample_weight`.
    kernel : str or callable, default="rbf"
        A positive semi-definite kernel, by its name in scikit-learn or as a function of two rows.
    gamma : float, optional
        Parameter of the kernel; None means 1 / number of features.
    B : float, default=1000.0
        Largest weight of a row.
    eps : float, optional
        How far the mean weight may be from 1; None means (sqrt(n) - 1) / sqrt(n).
    tol : float, default=1e-4
        Optimality residual at which the solver ends, relative to max |kappa|.

    Attributes
    ----------
    estimator_ : estimator
        The fitted clone.
    weights_ : ndarray of shape (n,)
        Weights of the training rows; ones if there was no target.
    objective_, residual_ : float
        Value and optimality residual of the weights; only with a target.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> X = np.linspace(-2, 2, 50)[:, None]
    >>> near_two = np.linspace(1, 2, 20)[:, None]
    >>> model = KernelMeanMatching(LinearRegression()).fit(X, X[:, 0] ** 2, X_target=near_two)
    >>> model.estimator_.coef_.round(1)
    array([3.])

    Paper: Sec. 5.1.
    """

    _takes: ClassVar[Mapping[str, Rule]] = {
        "gamma": Either(None, Number(above=0)),
        "B": Number(above=0),
        "eps": Either(None, Number(0)),
        "tol": Number(above=0),
    }

    def __init__(
        self,
        estimator: Any,
        kernel: Kernel = "rbf",
        gamma: float | None = None,
        B: float = 1000.0,
        eps: float | None = None,
        tol: float = 1e-4,
    ) -> None:
        store_parameters(self, locals())

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        X_target: ArrayLike | None = None,
        sample_domain: ArrayLike | None = None,
    ) -> Self:
        """Learn the weights, then fit the estimator with them.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            Training rows of all sources.
        y : array of shape (n,)
            Their targets.
        X_target : array or sparse matrix of shape (m, d), optional
            Unlabelled target rows.  Without them the estimator is fitted with unit weights.
        sample_domain : array of shape (n,), optional
            Not used, as the rows are pooled; taken so that all baselines have one interface.
        """
        X, _, self.left_out_ = take_columns(X, sample_domain=sample_domain)
        rows = self._rows(X, reset=True)
        check_order(X, y=y)
        if X_target is None:
            self.estimator_ = self._fit_weighted(rows, y, None)
            self.weights_: NDArray[np.float64] = np.ones(rows.shape[0])
            return self
        check_consistent_length(rows, y)
        numbers, target = self._numbers(rows, X_target)
        n = rows.shape[0]
        eps = (np.sqrt(n) - 1.0) / np.sqrt(n) if self.eps is None else self.eps
        if 1 - eps > self.B:
            raise ValueError(
                f"No weights fit B = {self.B} and eps = {eps}: B must be at least 1 - eps, the "
                "least allowed mean weight."
            )
        bounds = BoxAndBand(float(self.B), n * (1.0 - eps), n * (1.0 + eps))
        known = numbers, target, self.kernel, self.gamma, bounds, self.tol
        answer = mean_matching_weights(*known)
        self.weights_, self.objective_ = answer.weights, answer.objective
        self.residual_ = answer.residual
        self.estimator_ = self._fit_weighted(rows, y, self.weights_)
        return self

    def _numbers(self, X: Any, X_target: Any) -> tuple[Any, Any]:
        """Return the rows of both as numbers, or say which column holds something else."""
        numbers: dict[str, Any] = {"accept_sparse": "csr", "dtype": np.float64}
        try:
            return check_array(X, **numbers), validate_data(self, X_target, reset=False, **numbers)
        except ValueError as error:
            fault = not_numbers(X) or not_numbers(X_target)
            if fault is None:
                raise
            raise InputError(
                "KernelMeanMatching",
                f"compares rows as numbers, but {fault}; put the preprocessing in front of it, as "
                "make_pipeline(preprocessing, KernelMeanMatching(estimator)) does",
            ) from error
