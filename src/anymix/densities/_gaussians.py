"""The Gaussians of a mixture, by factors P_j of their precisions: P_j P_j' = S_j⁻¹.

    log D(x) = logsumexp_j [log w_j − d/2 log 2π + log det P_j − |(x − m_j)'P_j|²/2]

A mixture that was fitted and one that was read from its arrays take the same way here, whatever
shape the covariances had in the fit, so they agree to the last digit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.special import logsumexp

from anymix._arrays import FloatArray
from anymix.densities._base import without_tiny
from anymix.densities._scales import spreads

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
