"""Ridge regression that chooses its strength and predicts near the range of its targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.utils.validation import check_is_fitted

from anymix._arrays import FloatArray

# The share of the range of training targets by which predictions may leave it.
MARGIN = 0.2
# Of standardised columns; forty rows of hundreds of columns need the strongest.
STRENGTHS = tuple((10.0 ** np.arange(-1.0, 5.0)).tolist())


def bounds_of(
    y: ArrayLike, sample_weight: ArrayLike | None = None, margin: float = MARGIN
) -> tuple[float, float]:
    """Range of targets, with this share of it added at both ends; weights of 0 do not count.

    >>> bounds_of([0.0, 10.0, 99.0], [1, 1, 0])
    (-2.0, 12.0)
    """
    targets = np.asarray(y, dtype=np.float64).ravel()
    if sample_weight is not None and np.any(sample_weight):
        targets = targets[np.asarray(sample_weight) > 0]
    least, most = float(targets.min()), float(targets.max())
    return least - margin * (most - least), most + margin * (most - least)


class BoundedRidge(RegressorMixin, BaseEstimator):
    """Ridge regression whose predictions stay near the range of the training targets.

    A linear model of few rows, or of more columns than rows, extrapolates without limit to rows of
    another source.  Here a prediction is at most `margin` times the range of the training targets
    outside of this range:

        h(x) = min(max(w·x + b, lower), upper),
        lower = min y − margin (max y − min y),  upper = max y + margin (max y − min y)

    Parameters
    ----------
    alphas : sequence of float
        Strengths of the penalty; of several the one of the smallest leave-one-out error is used.
    margin : float, default=0.2

    Attributes
    ----------
    coef_ : array (d,)
    intercept_ : float
    alpha_ : float
    lower_, upper_ : float
        The bounds of predictions.

    Examples
    --------
    >>> model = BoundedRidge().fit(np.arange(10.0)[:, None], np.arange(10.0))
    >>> model.predict([[4.5], [1000.0]]).round(1)
    array([ 4.5, 10.8])
    """

    def __init__(self, alphas: Sequence[float] = STRENGTHS, margin: float = MARGIN):
        self.alphas = alphas
        self.margin = margin

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the ridge regression; rows of weight 0 do not count, nor for the bounds."""
        one = len(self.alphas) == 1
        ridge = Ridge(self.alphas[0]) if one else RidgeCV(self.alphas)
        ridge.fit(X, y, sample_weight=sample_weight)
        self.coef_, self.intercept_ = np.ravel(ridge.coef_), float(np.ravel(ridge.intercept_)[0])
        self.alpha_ = float(self.alphas[0] if one else ridge.alpha_)
        self.n_features_in_ = self.coef_.size
        if hasattr(ridge, "feature_names_in_"):
            self.feature_names_in_ = ridge.feature_names_in_
        self.lower_, self.upper_ = bounds_of(y, sample_weight, self.margin)
        self.model_ = ridge
        return self

    def predict(self, X: Any) -> FloatArray:
        """h(x), (n,)."""
        check_is_fitted(self, "coef_")
        return np.clip(np.ravel(self.model_.predict(X)), self.lower_, self.upper_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
