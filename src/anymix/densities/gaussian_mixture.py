"""A Gaussian mixture as density, with as many components as the data pay for."""

import warnings
from copy import copy
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from anymix.densities._base import Density, RandomState
from anymix.densities._kernel_sums import Array
from anymix.densities.bandwidth import merge_repeats, spread


class GaussianMixtureDensity(Density):
    """Gaussian mixture with the number of components that has the least BIC.

        f(x) = sum_j w_j N(x; m_j, S_j),    BIC = -2 log-likelihood + n_parameters log n

    A few means and covariances in place of the rows: small to hand over, and quick to score.

    Parameters
    ----------
    max_components : int, default=10
        Numbers of components from one to this are tried, but no more than distinct rows.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        Shape of the covariances; "diag" or "spherical" for many features and few rows.
    regularisation : float, default=1e-6
        Added to each variance, as a share of the mean variance of the features.
    random_state : int, RandomState instance or None, default=None
        Draws the starting points.

    Attributes
    ----------
    mixture_ : GaussianMixture
        The chosen mixture.
    n_components_ : int
        Its number of components.
    bic_ : ndarray of shape (n_tried,)
        BIC of one component, two components, and so on.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 1)) + 10 * (np.arange(200) % 2)[:, None]
    >>> density = GaussianMixtureDensity(random_state=0).fit(X)
    >>> density.n_components_
    2
    >>> bool(density.score_samples([[0.0]]) > density.score_samples([[5.0]]))
    True
    """

    def __init__(
        self,
        max_components: int = 10,
        *,
        covariance_type: str = "full",
        regularisation: float = 1e-6,
        random_state: RandomState = None,
    ) -> None:
        self.max_components = max_components
        self.covariance_type = covariance_type
        self.regularisation = regularisation
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Fit mixtures of one, two, ... components and keep the one with the least BIC."""
        rows: Array = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        if self.max_components < 1:
            raise ValueError(f"max_components must be at least 1, got {self.max_components}.")
        rng = check_random_state(self.random_state)
        distinct = len(merge_repeats(rows, np.ones(len(rows)))[0])
        tried = [
            self._fit_mixture(rows, n + 1, rng) for n in range(min(self.max_components, distinct))
        ]
        self.bic_ = np.array([mixture.bic(rows) for mixture in tried])
        self.mixture_ = tried[int(np.argmin(self.bic_))]
        self.n_components_ = self.mixture_.n_components
        if not self.mixture_.converged_:
            warnings.warn(
                f"The mixture of {self.n_components_} components did not settle; "
                "lower max_components or raise regularisation.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def score_samples(self, X: ArrayLike) -> Array:
        """Log-density of each row, (n_samples,)."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(self.mixture_.score_samples(rows))

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> Array:
        """Draw rows in random order, (n_samples, n_features)."""
        check_is_fitted(self)
        rng = check_random_state(random_state)
        rows, _ = copy(self.mixture_).set_params(random_state=rng).sample(n_samples)
        return np.asarray(rng.permutation(rows))

    def _fit_mixture(
        self, rows: Array, n_components: int, rng: np.random.RandomState
    ) -> GaussianMixture:
        # One unit of variance for constant data: any floor is right there, and zero is not.
        variance = spread(rows, np.ones(len(rows))) ** 2 or 1.0
        mixture = GaussianMixture(
            n_components,
            covariance_type=self.covariance_type,
            reg_covar=self.regularisation * variance,
            max_iter=500,
            random_state=rng,
        )
        with warnings.catch_warnings():
            # Candidates that lose need not settle; the winner is asked afterwards.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return mixture.fit(rows)
