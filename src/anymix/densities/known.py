"""A density that the user knows."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from anymix._arrays import FloatArray, n_rows
from anymix.densities._base import Density, RandomState


class KnownDensity(Density):
    """A log-density function with the interface of a fitted density.

    Parameters
    ----------
    log_density : callable
        Takes the rows and returns their natural-log densities, (n_samples,); minus infinity where
        the density is zero.
    sampler : callable, default=None
        ``sampler(n_samples, random_state)`` draws rows; only `sample` needs it.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> density = KnownDensity(lambda X: norm.logpdf(X[:, 0]))
    >>> density.score_samples(np.array([[0.0], [1.0]])).round(3)
    array([-0.919, -1.419])
    """

    def __init__(
        self,
        log_density: Callable[[Any], Any],
        sampler: Callable[[int, np.random.RandomState], Any] | None = None,
    ) -> None:
        self.log_density = log_density
        self.sampler = sampler

    def fit(self, X: Any = None, y: object = None) -> Self:
        """Do nothing: the density is known already."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def score_samples(self, X: Any) -> FloatArray:
        """Log-density of each row, (n_samples,), as the function gives it."""
        logs = np.asarray(self.log_density(X), dtype=np.float64)
        n_samples = n_rows(X)
        if logs.shape != (n_samples,):
            raise ValueError(
                f"log_density returned shape {logs.shape} for {n_samples} rows; "
                f"it must return one number for each row, shape ({n_samples},)."
            )
        if np.isnan(logs).any() or (logs == np.inf).any():
            raise ValueError(
                "log_density returned NaN or +inf; it must return natural logarithms, "
                "with -inf where the density is zero."
            )
        return logs

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> Any:
        """Draw rows with the sampler."""
        if self.sampler is None:
            raise ValueError("This density cannot be sampled; pass a sampler to KnownDensity.")
        return self.sampler(n_samples, check_random_state(random_state))
