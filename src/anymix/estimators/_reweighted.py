"""What estimators share that fit another estimator with learned row weights."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from anymix._parameters import check_parameters
from anymix.estimators._rows import is_text
from anymix.estimators._source_training import (
    check_part,
    fit_with_weight,
    no_estimator,
    takes_weight,
)


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
        rows = self._rows(X)
        return np.asarray(self.estimator_.predict(rows))

    @available_if(_inner_has("predict_proba"))
    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return class probabilities (n, c) of the fitted estimator."""
        rows = self._rows(X)
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
