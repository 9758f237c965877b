"""The row *anymix* of the paper's tables: the estimators as they are by default, its learner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin

from anymix.estimators import DistributionWeightedRegressor
from experiments.reviews import Floats, Regressor, Rows, View, fit_svr


class ReviewRegressor(RegressorMixin, BaseEstimator):
    """The support vector regressor of the sentiment study, as an estimator of its documents.

    Documents are the words of reviews with a blank between them; those that share all words in
    their order share their rows of the kernel, so that any of them stands for all.
    """

    regressor_: Regressor

    def __init__(self, view: View):
        self.view = view

    def __sklearn_clone__(self) -> ReviewRegressor:
        # A copy of its kernel for each source and fold would fill the memory.
        return ReviewRegressor(self.view)

    def fit(self, X: Sequence[str], y: ArrayLike) -> Self:
        """Fit to the documents of some rows."""
        self.regressor_ = fit_svr(self.view, self._rows(X), np.asarray(y, dtype=np.float64))
        return self

    def predict(self, X: Sequence[str]) -> Floats:
        """Return the ratings (n,)."""
        kernel = self.view.kernel[np.ix_(self._rows(X), self.regressor_.rows)]
        return self.regressor_.predict(kernel)

    def _rows(self, X: Sequence[str]) -> Rows:
        number = self.view.number
        return np.array([number[document] for document in X], dtype=np.intp)


def review_ratings(view: View, train: Sequence[Rows], rows: Rows) -> Floats:
    """Fit the estimator with its defaults to the documents of each domain, ask it about others."""
    seen, corpus = np.concatenate(train), view.corpus
    model = DistributionWeightedRegressor(ReviewRegressor(view), random_state=0)
    model.fit(view.documents(seen), corpus.ratings[seen], sample_domain=corpus.domain[seen])
    return np.asarray(model.predict(view.documents(rows)))
