"""What every fitted density shares."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, DensityMixin

RandomState = int | np.random.RandomState | None


class Density(DensityMixin, BaseEstimator):
    """A density with `score_samples`, and so with a `score` for model selection."""

    def score_samples(self, X: ArrayLike) -> NDArray[np.float64]:
        """Log-density of each row, (n_samples,)."""
        raise NotImplementedError

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Mean log-density of the rows."""
        return float(np.mean(self.score_samples(X)))
