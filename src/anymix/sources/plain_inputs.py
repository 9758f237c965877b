"""Wrappers for learners that accept only plain column names, or labels 0, 1, ..."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.pipeline import Pipeline

LIBRARIES = ("xgboost", "lightgbm")


class _PlainColumns(MetaEstimatorMixin, BaseEstimator):
    """Hands a frame of numbers on as an array, and remembers the names of its columns."""

    def __init__(self, estimator: Any):
        self.estimator = estimator

    def _fit(self, X: Any, y: Any, more: dict[str, Any]) -> Self:
        if hasattr(X, "columns"):
            self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        self.estimator_ = clone(self.estimator).fit(self._plain(X), y, **more)
        return self

    def _plain(self, X: Any) -> Any:
        if not hasattr(X, "columns") or isinstance(self.estimator, Pipeline):
            return X
        return X.to_numpy(dtype=np.float64, na_value=np.nan)


class PlainRegressor(RegressorMixin, _PlainColumns):
    """Train a regressor on a frame whatever its columns are called.

    Parameters
    ----------
    estimator : regressor

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.linear_model import LinearRegression
    >>> table = pd.DataFrame({"age [years]": [0.0, 1.0]})
    >>> PlainRegressor(LinearRegression()).fit(table, [1.0, 3.0]).predict(table).round(6).tolist()
    [1.0, 3.0]
    """

    def fit(self, X: Any, y: Any, **more: Any) -> Self:
        """Fit a clone on an array; `more` is passed on."""
        return self._fit(X, y, more)

    def predict(self, X: Any) -> Any:
        """Return a number for each row."""
        return self.estimator_.predict(self._plain(X))


class CodedLabels(ClassifierMixin, _PlainColumns):
    """Train a classifier on the positions of labels among the sorted ones.

    Parameters
    ----------
    estimator : classifier or pipeline with `predict_proba`

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> model = CodedLabels(LogisticRegression()).fit([[0.0], [1.0]], ["no", "yes"])
    >>> model.predict([[5.0]]).tolist(), model.estimator_.classes_.tolist()
    (['yes'], [0, 1])
    """

    def fit(self, X: Any, y: Any, **more: Any) -> Self:
        """Fit a clone on codes; `more` is passed on."""
        self.classes_, codes = np.unique(np.asarray(y), return_inverse=True)
        return self._fit(X, codes, more)

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes, (n, c)."""
        return self.estimator_.predict_proba(self._plain(X))

    def predict(self, X: Any) -> Any:
        """Return the likeliest label of each row."""
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]


def made_to_fit(model: Any, X: Any, y: Any) -> Any:
    """Return the model, wrapped if its library refuses such names of columns or such labels."""
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    kind = type(last).__name__
    if type(last).__module__.partition(".")[0] not in LIBRARIES or y is None:
        return model
    named = any(not str(name).isidentifier() for name in getattr(X, "columns", ()))
    if kind == "XGBClassifier":
        classes = np.unique(np.asarray(y))
        coded = classes.dtype.kind in "biu" and np.array_equal(classes, np.arange(classes.size))
        named = named or not coded
    if not named:
        return model
    return CodedLabels(model) if kind.endswith("Classifier") else PlainRegressor(model)


def unwrapped(model: Any) -> Any:
    """Return the wrapped, trained estimator."""
    return model.estimator_ if isinstance(model, _PlainColumns) else model
