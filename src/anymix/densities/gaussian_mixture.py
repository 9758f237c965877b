"""The Gaussians of a mixture, by factors P_j of their precisions: P_j P_j' = S_j⁻¹.

    log D(x) = logsumexp_j [log w_j − d/2 log 2π + log det P_j − |(x − m_j)'P_j|²/2]

A mixture that was fitted and one that was read from its arrays take the same way here, whatever
shape the covariances had in the fit, so they agree to the last digit.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from anymix._arrays import FloatArray
from anymix._parameters import check_parameters
from anymix.densities._rules import MIXTURE
from anymix.densities.bandwidth import merge_repeats, spread, spreads
from anymix.densities.density import (
    LARGEST,
    TINY,
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
    without_tiny,
)

CHUNK = 2**22  # numbers held at a time, 32 MB: rows times components, or times features
UNCORRELATED = 1e-100  # a correlation that no digit can tell from 0

DEVIATIONS = 10.0  # that the Gaussian of rows that were not seen is wide


@dataclass(frozen=True, eq=False)
class Wide:
    """A share of the mixture for rows unlike all that were seen: mean and variances, (d,) each."""

    share: float
    mean: FloatArray
    variances: FloatArray

    @classmethod
    def of(cls, rows: FloatArray, share: float) -> Self:
        """Lie about the mean of the rows, ten deviations of each feature wide.

        Examples
        --------
        >>> Wide.of(np.array([[0.0], [4.0]]), 0.1).variances
        array([400.])
        """
        return cls(share, rows.mean(axis=0), np.square(DEVIATIONS * spreads(rows)))


@dataclass(frozen=True, eq=False)
class Gaussians:
    """Weights (k,), means (k, d) and factors, each (d, d), or (d,) where it is diagonal."""

    weights: FloatArray
    means: FloatArray
    factors: tuple[FloatArray, ...]

    def log_density(self, rows: FloatArray) -> FloatArray:
        """Log-density of each row, (n,).

        Examples
        --------
        >>> one = Gaussians(np.ones(1), np.zeros((1, 2)), factors_of(np.eye(2)[None], "full"))
        >>> one.log_density(np.zeros((1, 2))).round(4)
        array([-1.8379])
        """
        size = max(1, CHUNK // max(self.means.shape))
        heights = self.log_determinants(), np.log(self.weights)
        logs = np.empty(len(rows))
        for start in range(0, len(rows), size):
            chunk = slice(start, start + size)
            logs[chunk] = self._log_density(rows[chunk], *heights)
        return logs

    def _log_density(
        self, rows: FloatArray, log_determinants: FloatArray, log_weights: FloatArray
    ) -> FloatArray:
        logs = self._squares(rows)
        logs += rows.shape[1] * np.log(2 * np.pi)
        logs *= -0.5
        logs += log_determinants
        logs += log_weights
        return np.asarray(logsumexp(logs, axis=1))

    def _squares(self, rows: FloatArray) -> FloatArray:
        """|(x − m_j)'P_j|² of each row and component, (n, k)."""
        squares = np.empty((len(rows), len(self.weights)))
        diagonal = [j for j, factor in enumerate(self.factors) if factor.ndim == 1]
        if diagonal:
            squares[:, diagonal] = self._diagonal_squares(rows, diagonal)
        for j, factor in enumerate(self.factors):
            if factor.ndim == 2:
                apart = rows @ factor - self.means[j] @ factor
                squares[:, j] = np.sum(np.square(apart), axis=1)
        return squares

    def _diagonal_squares(self, rows: FloatArray, chosen: list[int]) -> FloatArray:
        """Σ_i p_i² (x_i² − 2 x_i m_i + m_i²) by products of matrices, from the middle of the means.

        From there the terms are no larger than the spread of the means asks for, so that little
        is lost in their difference.
        """
        precisions = np.square(np.stack([self.factors[j] for j in chosen]))
        centre = self.weights @ self.means
        means, rows = self.means[chosen] - centre, rows - centre
        squares = np.square(rows) @ precisions.T
        squares -= rows @ (2 * means * precisions).T
        squares += (np.square(means) * precisions).sum(axis=1)
        return np.maximum(squares, 0.0, out=squares)

    def sample(self, n_samples: int, rng: np.random.RandomState) -> FloatArray:
        """Draw rows in random order, x = m_j + z'P_j⁻¹ with z of unit variance, (n_samples, d).

        Examples
        --------
        >>> one = Gaussians(np.ones(1), np.full((1, 2), 7.0), (np.full(2, 1e9),))
        >>> one.sample(1, np.random.RandomState(0)).round(4)
        array([[7., 7.]])
        """
        chosen = rng.choice(len(self.weights), n_samples, p=self.weights)
        rows = rng.standard_normal((n_samples, self.means.shape[1]))
        for j in np.unique(chosen):
            factor, own = self.factors[j], chosen == j
            if factor.ndim == 1:
                rows[own] /= factor
            else:
                rows[own] = solve_triangular(factor.T, rows[own].T, lower=True).T
        rows += self.means[chosen]
        return np.asarray(rows)

    def log_determinants(self) -> FloatArray:
        """Return log det P_j, (k,)."""
        diagonals = [f if f.ndim == 1 else np.diagonal(f) for f in self.factors]
        return np.log(np.stack(diagonals)).sum(axis=1)

    def full_factors(self) -> FloatArray:
        """Return the factors as (k, d, d)."""
        return np.stack([f if f.ndim == 2 else np.diag(f) for f in self.factors])


def in_units(mixture: Any, scale: FloatArray) -> Any:
    """Bring a scikit-learn mixture of x / scale to the units of x: m s, S s s', and P / s.

    Examples
    --------
    >>> from sklearn.mixture import GaussianMixture
    >>> in_units(GaussianMixture().fit([[0.0], [2.0]]), np.array([5.0])).covariances_.round(1)
    array([[[25.]]])
    """
    by = {"diag": scale, "spherical": scale[0]}.get(mixture.covariance_type, scale[:, None])
    squares = by * (scale if np.ndim(by) == 2 else by)
    mixture.means_ = mixture.means_ * scale
    mixture.covariances_ = mixture.covariances_ * squares
    mixture.precisions_ = mixture.precisions_ / squares
    mixture.precisions_cholesky_ = mixture.precisions_cholesky_ / by
    return mixture


def full_covariances(covariances: FloatArray, shape: str, means: FloatArray) -> FloatArray:
    """Write the covariances of a scikit-learn mixture as (k, d, d).

    Examples
    --------
    >>> full_covariances(np.array([2.0]), "spherical", np.zeros((1, 2))).tolist()
    [[[2.0, 0.0], [0.0, 2.0]]]
    """
    k, d = means.shape
    if shape == "full":
        return covariances
    if shape == "tied":
        return np.broadcast_to(covariances, (k, d, d)).copy()
    diagonal = covariances if shape == "diag" else np.repeat(covariances[:, None], d, axis=1)
    return np.asarray(diagonal[:, :, None] * np.eye(d))


def factors_of(
    covariances: FloatArray, shape: str, n_components: int = 1, n_features: int = 1
) -> tuple[FloatArray, ...]:
    """Return the factors of covariances in one of the shapes of scikit-learn's mixtures.

    Examples
    --------
    >>> factors_of(np.array([4.0]), "spherical", 1, 3)
    (array([0.5, 0.5, 0.5]),)
    """
    if shape == "full":
        return tuple(_factor(covariance) for covariance in covariances)
    if shape == "tied":
        return (_factor(covariances),) * n_components
    if shape == "spherical":
        covariances = np.repeat(covariances[:, None], n_features, axis=1)
    return tuple(_factor(np.diag(v)) if v.size == 1 else 1 / np.sqrt(v) for v in covariances)


def _factor(covariance: FloatArray) -> FloatArray:
    if not is_diagonal(covariance):
        covariance = _without_tiny(covariance)
    # A product of matrices would cost d times as much for nothing.
    if len(covariance) > 1 and is_diagonal(covariance):
        variances = np.diagonal(covariance)
        if not (variances > 0).all():
            raise LinAlgError("a variance is not positive")
        return np.asarray(1 / np.sqrt(variances))
    lower = cholesky(covariance, lower=True)
    identity = np.eye(len(covariance), order="F")
    factor = solve_triangular(lower, identity, lower=True, overwrite_b=True).T
    return np.ascontiguousarray(without_tiny(factor))


def is_diagonal(covariance: FloatArray) -> bool:
    """Say whether all but the variances is 0.

    Examples
    --------
    >>> is_diagonal(np.eye(2)), is_diagonal(np.ones((2, 2)))
    (True, False)
    """
    off = np.count_nonzero(covariance) - np.count_nonzero(np.diagonal(covariance))
    return bool(off == 0)


def _without_tiny(covariance: FloatArray) -> FloatArray:
    deviations = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    return without_tiny(covariance, UNCORRELATED * deviations[:, None] * deviations)


# Operations a row for each entry of a covariance, building it included, and for each component.
PER_ENTRY, PER_COMPONENT = 4, 3000
# Entries times dimensions of all covariances that are not diagonal: to factor them takes seconds.
MOST_TO_FACTOR = 20_000_000_000
BLOCK = 256  # rows of a covariance compared at a time


class GaussianMixtureDensity(Travels, Density):
    """Gaussian mixture with the number of components that has the least BIC.

        f(x) = n / (n + b) Σ_j w_j N(x; m_j, S_j) + b / (n + b) N(x; m, (10 s)^2)
        BIC = -2 log-likelihood of the first part + n_parameters log n

    A few means and covariances in place of the rows: small to hand over, and quick to score.

    Tables repeat values: a component of equal ones is as narrow as the regularisation allows, and
    the next row beside it would be a million nats less likely, more than all other rows say when
    densities are calibrated.  So the last part, ten deviations s of the features wide about their
    mean m, stands for b rows that were not seen.

    Parameters
    ----------
    max_components : int, default=10
        From one component to this many are tried, but never more than there are distinct rows.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        Shape of the covariances; "diag" or "spherical" for many features and few rows.
    regularisation : float, default=1e-4
        Added to each variance, as a share of the variance of the feature; of the mean variance of
        all of them if covariances are "spherical".
    background : float, default=1.0
        The number b of rows that the wide Gaussian stands for; 0 leaves it out.
    random_state : int, RandomState instance or None, default=None
        Draws the starting points.

    Attributes
    ----------
    mixture_ : GaussianMixture
        The chosen mixture, without the wide Gaussian.
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
    _wide: Wide | None = None

    _takes = MIXTURE

    def __init__(
        self,
        max_components: int = 10,
        *,
        covariance_type: str = "full",
        regularisation: float = 1e-4,
        background: float = 1.0,
        random_state: RandomState = None,
    ) -> None:
        self.max_components = max_components
        self.covariance_type = covariance_type
        self.regularisation = regularisation
        self.background = background
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Fit mixtures of one, two, ... components and keep the one with the least BIC."""
        check_parameters(self)
        rows: FloatArray = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        rng = check_random_state(self.random_state)
        scale = self._scale(rows)
        most = min(self.max_components, len(merge_repeats(rows, np.ones(len(rows)))[0]))
        tried = [self._fit_mixture(rows / scale, n + 1, rng) for n in range(most)]
        volume = 2 * len(rows) * np.log(scale).sum()
        self.bic_ = np.array([mixture.bic(rows / scale) + volume for mixture in tried])
        mixture = in_units(tried[int(np.argmin(self.bic_))], scale)
        share = self.background / (len(rows) + self.background)
        self._keep(mixture, Wide.of(rows, share) if share else None)
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
        return self._gaussians.sample(n_samples, check_random_state(random_state))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return weights (k,), means (k, d) and covariances (k, d, d)."""
        check_is_fitted(self)
        mixture = self.mixture_
        shape, means = mixture.covariance_type, mixture.means_
        covariances = full_covariances(mixture.covariances_, shape, means)
        if self._wide is not None:
            covariances = np.concatenate([covariances, np.diag(self._wide.variances)[None]])
        parts = self._gaussians
        return {"weights": parts.weights, "means": parts.means, "covariances": covariances}

    @classmethod
    def from_arrays(cls, arrays: Arrays, n_features: int) -> Self:
        """Build the mixture of these weights, means and covariances, or say what is not sound."""
        check_arrays(arrays, {"weights", "means", "covariances"})
        weights, covariances = check_weights(arrays["weights"]), arrays["covariances"]
        n = weights.size
        check_shapes(arrays, means=(n, n_features), covariances=(n, n_features, n_features))
        cost = n * (PER_ENTRY * n_features**2 + PER_COMPONENT)
        check_cost(cost, f"{n} components in {n_features} dimensions")
        _check_covariances(covariances)
        mixture = _ReceivedMixture(n)
        mixture.weights_, mixture.means_ = weights, without_tiny(arrays["means"])
        mixture.covariances_ = covariances
        mixture.converged_, mixture.n_features_in_ = True, n_features
        density = cls(n)
        density.n_features_in_ = n_features
        try:
            density._keep(mixture)
        except np.linalg.LinAlgError as error:
            raise ValueError("has covariances that are not positive definite") from error
        largest = max(np.abs(factor).max() for factor in density._gaussians.factors)
        refuse_unless(largest < LARGEST, "has covariances that are hardly positive definite")
        return density

    def reveals(self) -> str:
        """Say of how many groups of rows means and covariances are revealed."""
        n = len(self._gaussians.weights)
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

    def _keep(self, mixture: GaussianMixture, wide: Wide | None = None) -> None:
        weights, means = mixture.weights_, mixture.means_
        factors = factors_of(mixture.covariances_, mixture.covariance_type, *means.shape)
        self.mixture_, self.n_components_, self._wide = mixture, len(weights), wide
        if wide is not None:
            weights = np.append((1 - wide.share) * weights, wide.share)
            means = np.append(means, wide.mean[None], axis=0)
            factors += factors_of(np.diag(wide.variances)[None], "full")
        self._gaussians = Gaussians(check_weights(weights), means, factors)

    def _scale(self, rows: FloatArray) -> FloatArray:
        """What features are divided by, (d,), so that one number regularises all of them."""
        if self.covariance_type != "spherical":
            return spreads(rows)
        # One unit of variance for constant data: any floor is right there, and zero is not.
        return np.full(rows.shape[1], spread(rows, np.ones(len(rows))) or 1.0)

    def _fit_mixture(
        self, rows: FloatArray, n_components: int, rng: np.random.RandomState
    ) -> GaussianMixture:
        mixture = GaussianMixture(
            n_components,
            covariance_type=self.covariance_type,
            reg_covar=self.regularisation,
            max_iter=500,
            random_state=rng,
        )
        with warnings.catch_warnings():
            # Candidates that lose need not settle; the winner is asked afterwards.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return mixture.fit(rows)


class _ReceivedMixture(GaussianMixture):
    """A mixture made of arrays: what scikit-learn derives from them is made when it is asked for.

    It is as large as the covariances, and nothing here needs it.
    """

    @cached_property
    def precisions_cholesky_(self) -> FloatArray:
        factors = factors_of(self.covariances_, "full")
        return Gaussians(self.weights_, self.means_, factors).full_factors()


def _check_covariances(covariances: FloatArray) -> None:
    n, d, _ = covariances.shape
    to_factor = d**3 * sum(not is_diagonal(covariance) for covariance in covariances)
    refuse_unless(
        to_factor <= MOST_TO_FACTOR,
        f"has {n} covariances in {d} dimensions, some {to_factor:.0e} operations to build, where "
        f"{MOST_TO_FACTOR:.0e} are allowed",
    )
    refuse_unless(all(map(_is_symmetric, covariances)), "has covariances that are not symmetric")
    variances = np.diagonal(covariances, axis1=1, axis2=2)
    refuse_unless(variances.min() > TINY, "has covariances that are not positive definite")


def _is_symmetric(covariance: FloatArray) -> bool:
    blocks = [slice(a, a + BLOCK) for a in range(0, len(covariance), BLOCK)]
    return all(np.allclose(covariance[b], covariance[:, b].T) for b in blocks)
