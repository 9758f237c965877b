"""A Gaussian mixture, by factors P_j of the precisions: P_j P_j' = S_j⁻¹.

log D(x) = logsumexp_j [log w_j − d/2 log 2π + log det P_j − |(x − m_j)'P_j|²/2]
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from anymix._arrays import FloatArray
from anymix._parameters import Number, Words, check_parameters, seed_rule
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
)

CHUNK = 2**22  # numbers held at a time, 32 MB: rows times components, or times features
UNCORRELATED = 1e-100
DEVIATIONS = 10.0  # that the Gaussian of rows that were not seen is wide
# Operations a row for each entry of a covariance, building it included, and for each component.
PER_ENTRY, PER_COMPONENT = 4, 3000
# Entries times dimensions of all covariances that are not diagonal: to factor them takes seconds.
MOST_TO_FACTOR = 20_000_000_000
BLOCK = 256  # rows of a covariance compared at a time


class GaussianMixtureDensity(Travels, Density):
    """Gaussian mixture whose number of components minimises the BIC.

        f(x) = n / (n + b) Σ_j w_j N(x; m_j, S_j) + b / (n + b) N(x; m, (10 s)^2)
        BIC = -2 log-likelihood of the first part + n_parameters log n

    It keeps a few means and covariances in place of the rows: small files, and fast scoring.

    Tables repeat values: a component of equal ones is as narrow as the regularisation allows.  So
    the last part, ten deviations s of the features wide about their mean m, stands for b rows that
    were not seen.

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
    _takes: ClassVar = {
        "max_components": Number(1, whole=True),
        "covariance_type": Words("full", "tied", "diag", "spherical"),
        "regularisation": Number(0),
        "background": Number(0),
        "random_state": seed_rule,
    }

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
        scale = spreads(rows)
        if self.covariance_type == "spherical":
            # One unit of variance for constant data: any floor is right there, and zero is not.
            scale = np.full(rows.shape[1], spread(rows, np.ones(len(rows))) or 1.0)
        most = min(self.max_components, len(merge_repeats(rows, np.ones(len(rows)))[0]))
        tried = [
            GaussianMixture(
                n + 1,
                covariance_type=self.covariance_type,
                reg_covar=self.regularisation,
                max_iter=500,
                random_state=rng,
            )
            for n in range(most)
        ]
        with warnings.catch_warnings():
            # Candidates that lose need not settle; the winner is asked afterwards.
            warnings.simplefilter("ignore", ConvergenceWarning)
            for mixture in tried:
                mixture.fit(rows / scale)
        volume = 2 * len(rows) * np.log(scale).sum()
        self.bic_ = np.array([mixture.bic(rows / scale) + volume for mixture in tried])
        self.mixture_ = _in_units(tried[int(np.argmin(self.bic_))], scale)
        self.n_components_ = len(self.mixture_.weights_)
        self._set_gaussians(*_with_background(self.mixture_, rows, self.background))
        if not self.mixture_.converged_:
            warnings.warn(
                f"The mixture of {self.n_components_} components did not settle; "
                "lower max_components or raise regularisation.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _set_gaussians(
        self, weights: FloatArray, means: FloatArray, covariances: FloatArray
    ) -> None:
        """Keep all components, covariances (k, d, d), or variances (k, d) if all are diagonal."""
        k, d = means.shape
        clean = covariances
        if covariances.ndim == 3:
            # Without correlations that no digit can tell from 0.
            deviations = np.sqrt(np.maximum(np.diagonal(covariances, axis1=1, axis2=2), 0.0))
            least = (UNCORRELATED * s[:, None] * s for s in deviations)
            clean = np.stack(list(map(_without_tiny, covariances, least)))
            # A product of matrices would cost d times as much for nothing.
            if d > 1 and all(map(_is_diagonal, clean)):
                clean = np.diagonal(clean, axis1=1, axis2=2)
        scored = GaussianMixture(k, covariance_type="full" if clean.ndim == 3 else "diag")
        scored.precisions_cholesky_ = (
            1 / np.sqrt(clean) if clean.ndim == 2 else np.stack([_factor(S) for S in clean])
        )
        self._centre = weights @ means
        scored.weights_, scored.means_ = weights, means - self._centre
        scored.covariances_, scored.n_features_in_ = covariances, d
        self._scored, self._means = scored, means

    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Log-density of each row, (n_samples,)."""
        check_is_fitted(self)
        rows: FloatArray = validate_data(self, X, dtype=np.float64, reset=False)
        size = max(1, CHUNK // max(self._means.shape))
        chunks = [rows[start : start + size] for start in range(0, len(rows), size)]
        return np.concatenate([self._scored.score_samples(part - self._centre) for part in chunks])

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> FloatArray:
        """Draw rows in random order, x = m_j + z'P_j⁻¹, (n_samples, n_features)."""
        check_is_fitted(self)
        rng = check_random_state(random_state)
        chosen = rng.choice(len(self._means), n_samples, p=self._scored.weights_)
        rows = rng.standard_normal((n_samples, self._means.shape[1]))
        for j in np.unique(chosen):
            factor, own = self._scored.precisions_cholesky_[j], chosen == j
            if factor.ndim == 1:
                rows[own] /= factor
            else:
                rows[own] = solve_triangular(factor.T, rows[own].T, lower=True).T
        return np.asarray(rows + self._means[chosen])

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return weights (k,), means (k, d) and covariances (k, d, d)."""
        check_is_fitted(self)
        covariances = _full(self._scored.covariances_)
        return {"weights": self._scored.weights_, "means": self._means, "covariances": covariances}

    @classmethod
    def from_arrays(cls, arrays: Arrays, n_features: int) -> Self:
        """Build the mixture from arrays; a ValueError says what is invalid."""
        check_arrays(arrays, {"weights", "means", "covariances"})
        weights, covariances = check_weights(arrays["weights"]), arrays["covariances"]
        n = weights.size
        check_shapes(arrays, means=(n, n_features), covariances=(n, n_features, n_features))
        cost = n * (PER_ENTRY * n_features**2 + PER_COMPONENT)
        check_cost(cost, f"{n} components in {n_features} dimensions")
        to_factor = n_features**3 * sum(not _is_diagonal(covariance) for covariance in covariances)
        refuse_unless(
            to_factor <= MOST_TO_FACTOR,
            f"has {n} covariances in {n_features} dimensions, some {to_factor:.0e} operations to "
            f"build, where {MOST_TO_FACTOR:.0e} are allowed",
        )
        parts = [slice(a, a + BLOCK) for a in range(0, n_features, BLOCK)]
        symmetric = (np.allclose(S[part], S[:, part].T) for S in covariances for part in parts)
        refuse_unless(all(symmetric), "has covariances that are not symmetric")
        variances = np.diagonal(covariances, axis1=1, axis2=2)
        refuse_unless(variances.min() > TINY, "has covariances that are not positive definite")
        density = cls(n)
        density.n_features_in_, density.n_components_ = n_features, n
        means = _without_tiny(arrays["means"])
        try:
            density._set_gaussians(weights, means, covariances)
        except LinAlgError as error:
            raise ValueError("has covariances that are not positive definite") from error
        factors = density._scored.precisions_cholesky_
        hardly = "has covariances that are hardly positive definite"
        refuse_unless(np.abs(factors).max() < LARGEST, hardly)
        mixture = density.mixture_ = GaussianMixture(n)
        mixture.weights_, mixture.means_, mixture.covariances_ = weights, means, covariances
        mixture.precisions_cholesky_ = _full(factors)
        mixture.converged_, mixture.n_features_in_ = True, n_features
        return density

    def reveals(self) -> str:
        """Describe what is revealed: means and covariances of groups of rows."""
        n = len(self._means)
        return f"means and covariances of {n} group{'s' * (n > 1)} of rows."

    def log_density_graph(self, graph: GraphBuilder) -> str:
        """log Σ_j exp(a_j − |(x − m_j)'P_j|²/2), all components in one product, (n, 1)."""
        check_is_fitted(self)
        P, (k, d) = _full(self._scored.precisions_cholesky_), self._means.shape
        factor = P.transpose(1, 0, 2).reshape(d, k * d)
        shift = -np.einsum("jd,jde->je", self._means, P).reshape(k * d)
        flat = graph.add("Gemm", graph.rows, graph.constant(factor), graph.constant(shift))
        cubes = graph.add("Reshape", flat, graph.constant(np.array([-1, k, d])))
        squares = graph.over("ReduceSumSquare", cubes, 2, keep=False)
        log_determinants = np.log(np.diagonal(P, axis1=1, axis2=2)).sum(axis=1)
        height = np.log(self._scored.weights_) - d / 2 * np.log(2 * np.pi) + log_determinants
        halves = graph.add("Mul", squares, graph.constant(np.array(-0.5)))
        return graph.log_sum_exp(graph.add("Add", halves, graph.constant(height)))


def _in_units(mixture: GaussianMixture, scale: FloatArray) -> GaussianMixture:
    """Bring a mixture of x / scale to the units of x: m s, S s s', and P / s."""
    by = {"diag": scale, "spherical": scale[0]}.get(mixture.covariance_type, scale[:, None])
    squares = by * (scale if np.ndim(by) == 2 else by)
    mixture.means_ = mixture.means_ * scale
    mixture.covariances_ = mixture.covariances_ * squares
    mixture.precisions_ = mixture.precisions_ / squares
    mixture.precisions_cholesky_ = mixture.precisions_cholesky_ / by
    return mixture


def _with_background(
    mixture: GaussianMixture, rows: FloatArray, background: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weights, means and covariances (k, d, d), or variances (k, d), with the wide Gaussian."""
    weights, means, covariances = mixture.weights_, mixture.means_, mixture.covariances_
    k, d = means.shape
    if mixture.covariance_type == "tied":
        covariances = np.tile(covariances, (k, 1, 1))
    elif mixture.covariance_type != "full":
        variances = np.broadcast_to(covariances.reshape(k, -1), (k, d))
        covariances = variances if d > 1 else _full(variances)
    share = background / (len(rows) + background)
    if share:
        wide = np.square(DEVIATIONS * spreads(rows))
        wide = wide if covariances.ndim == 2 else np.diag(wide)
        weights = np.append((1 - share) * weights, share)
        means = np.append(means, rows.mean(axis=0)[None], axis=0)
        covariances = np.append(covariances, wide[None], axis=0)
    return check_weights(weights), means, covariances


def _full(diagonals: FloatArray) -> FloatArray:
    """Matrices (k, d, d) with these diagonals (k, d); matrices as they are."""
    if diagonals.ndim == 3:
        return diagonals
    return np.asarray(diagonals[:, :, None] * np.eye(diagonals.shape[1]))


def _factor(covariance: FloatArray) -> FloatArray:
    """P, upper triangular, with P P' = S⁻¹."""
    if _is_diagonal(covariance):
        return np.diag(1 / np.sqrt(np.diagonal(covariance)))
    lower = cholesky(covariance, lower=True)
    identity = np.eye(len(covariance), order="F")
    factor = solve_triangular(lower, identity, lower=True, overwrite_b=True).T
    return np.ascontiguousarray(_without_tiny(factor))


def _is_diagonal(covariance: FloatArray) -> bool:
    return np.count_nonzero(covariance) == np.count_nonzero(np.diagonal(covariance))


def _without_tiny(values: FloatArray, least: float | FloatArray = TINY) -> FloatArray:
    """Return the numbers with 0 for those below `least`; the same array if there are none."""
    tiny = (np.abs(values) < least) & (values != 0)
    return np.where(tiny, 0.0, values) if tiny.any() else values
