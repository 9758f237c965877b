"""A Gaussian mixture as density, with as many components as the data pay for."""

import warnings
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from anymix._arrays import FloatArray
from anymix.densities._base import (
    Arrays,
    Density,
    GraphBuilder,
    RandomState,
    Travels,
    check_arrays,
    check_cost,
    check_shapes,
    check_weights,
    refuse_unless,
)
from anymix.densities._gaussians import Gaussians, factors_of, full_covariances
from anymix.densities.bandwidth import merge_repeats, spread

# Operations a row for each entry of a covariance, building it included, and for each component.
PER_ENTRY, PER_COMPONENT = 4, 3000


class GaussianMixtureDensity(Travels, Density):
    """Gaussian mixture with the number of components that has the least BIC.

        f(x) = Σ_j w_j N(x; m_j, S_j),    BIC = -2 log-likelihood + n_parameters log n

    A few means and covariances in place of the rows: small to hand over, and quick to score.

    Parameters
    ----------
    max_components : int, default=10
        From one component to this many are tried, but never more than there are distinct rows.
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

    kind = "gaussian_mixture"

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
        rows: FloatArray = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        if self.max_components < 1:
            raise ValueError(f"max_components must be at least 1; got {self.max_components}.")
        rng = check_random_state(self.random_state)
        distinct = len(merge_repeats(rows, np.ones(len(rows)))[0])
        tried = [
            self._fit_mixture(rows, n + 1, rng) for n in range(min(self.max_components, distinct))
        ]
        self.bic_ = np.array([mixture.bic(rows) for mixture in tried])
        self._keep(tried[int(np.argmin(self.bic_))])
        if not self.mixture_.converged_:
            warnings.warn(
                f"The mixture of {self.n_components_} components did not settle; "
                "lower max_components or raise regularisation.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Log-density of each row, (n_samples,)."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        return self._gaussians.log_density(rows)

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> FloatArray:
        """Draw rows in random order, (n_samples, n_features)."""
        check_is_fitted(self)
        rng = check_random_state(random_state)
        rows, _ = copy(self.mixture_).set_params(random_state=rng).sample(n_samples)
        return np.asarray(rng.permutation(rows))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return weights (k,), means (k, d) and covariances (k, d, d)."""
        check_is_fitted(self)
        mixture = self.mixture_
        shape, means = mixture.covariance_type, mixture.means_
        covariances = full_covariances(mixture.covariances_, shape, means)
        return {"weights": mixture.weights_, "means": means, "covariances": covariances}

    @classmethod
    def from_arrays(cls, arrays: Arrays, n_features: int) -> Self:
        """Build the mixture of these weights, means and covariances, or say what is not sound."""
        check_arrays(arrays, {"weights", "means", "covariances"})
        n, covariances = check_weights(arrays["weights"]), arrays["covariances"]
        check_shapes(arrays, means=(n, n_features), covariances=(n, n_features, n_features))
        cost = n * (PER_ENTRY * n_features**2 + PER_COMPONENT)
        check_cost(cost, f"{n} components in {n_features} dimensions")
        symmetric = all(np.allclose(covariance, covariance.T) for covariance in covariances)
        refuse_unless(symmetric, "has covariances that are not symmetric")
        mixture = GaussianMixture(n)
        mixture.weights_, mixture.means_ = arrays["weights"], arrays["means"]
        mixture.covariances_ = covariances
        mixture.converged_, mixture.n_features_in_ = True, n_features
        density = cls(n)
        density.n_features_in_ = n_features
        try:
            density._keep(mixture)
        except np.linalg.LinAlgError as error:
            raise ValueError("has covariances that are not positive definite") from error
        mixture.precisions_cholesky_ = density._gaussians.full_factors()
        return density

    def reveals(self) -> str:
        """Say of how many groups of rows means and covariances are revealed."""
        n = self.n_components_
        return f"means and covariances of {n} group{'s' * (n > 1)} of rows."

    def log_density_graph(self, graph: GraphBuilder) -> str:
        """log Σ_j exp(a_j − |(x − m_j)'P_j|²/2), all components in one product, (n, 1)."""
        check_is_fitted(self)
        weights, P = self._gaussians.weights, self._gaussians.full_factors()
        k, d = self._gaussians.means.shape
        factor = P.transpose(1, 0, 2).reshape(d, k * d)
        shift = -np.einsum("jd,jde->je", self._gaussians.means, P).reshape(k * d)
        flat = graph.add("Gemm", graph.rows, graph.constant(factor), graph.constant(shift))
        cubes = graph.add("Reshape", flat, graph.constant(np.array([-1, k, d])))
        squares = graph.over("ReduceSumSquare", cubes, 2, keep=False)
        height = np.log(weights) - d / 2 * np.log(2 * np.pi) + self._gaussians.log_determinants()
        halves = graph.add("Mul", squares, graph.constant(np.array(-0.5)))
        return graph.log_sum_exp(graph.add("Add", halves, graph.constant(height)))

    def _keep(self, mixture: GaussianMixture) -> None:
        weights, means = mixture.weights_, mixture.means_
        factors = factors_of(mixture.covariances_, mixture.covariance_type, *means.shape)
        self.mixture_, self.n_components_ = mixture, len(weights)
        self._gaussians = Gaussians(weights, means, factors)

    def _fit_mixture(
        self, rows: FloatArray, n_components: int, rng: np.random.RandomState
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
