"""Gaussian kernel densities, exact and in log space, with the bandwidth chosen from the data."""

from numbers import Real
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.model_selection import KFold
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from anymix.densities._kernel_sums import Array, held_out_log_densities, log_densities
from anymix.densities.bandwidth import (
    grid_around,
    merge_repeats,
    pilot_bandwidth,
    scott,
    silverman,
    spread,
)

RULES = {"scott": scott, "silverman": silverman}


class GaussianKDE(DensityMixin, BaseEstimator):
    """Gaussian kernel density estimate.

        f(x) = sum_j w_j (2 pi h^2)^(-d/2) exp(-|x - x_j|^2 / 2h^2),    sum_j w_j = 1

    One bandwidth h serves all features, so bring them to one scale first. Log-densities are right
    to 1e-4 nats plus 1e-6 of their value in any dimension.

    Parameters
    ----------
    bandwidth : {"cv", "loo", "scott", "silverman"} or float, default="cv"
        "cv" takes the bandwidth with the best held-out log-likelihood over `n_folds` folds, "loo"
        leaves out one row at a time; repeated rows are held out together. The other two are rules
        of thumb, scaled by the spread of the data.
    bandwidths : array-like, default=None
        Bandwidths tried by "cv" and "loo". By default fifteen, in steps of 7 %, about one that
        suits a sample of the rows.
    n_folds : int, default=5
        Folds of "cv", at most one for each row: those of
        ``KFold(n_folds, shuffle=True, random_state=random_state)``.
    random_state : int, RandomState instance or None, default=None
        Draws the folds and the sample of rows.

    Attributes
    ----------
    bandwidth_ : float
        The bandwidth h.
    centres_, weights_ : ndarray of shape (n_centres, n_features) and (n_centres,)
        The points x_j that carry a kernel, and their weights w_j.
    bandwidths_, cv_scores_ : ndarray of shape (n_bandwidths,)
        Bandwidths tried and their mean held-out log-density; only after "cv" and "loo".

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> kde = GaussianKDE(random_state=0).fit(X)
    >>> print(round(kde.bandwidth_, 1))
    0.5
    >>> log_densities = kde.score_samples([[0.0, 0.0], [3.0, 0.0]])
    """

    def __init__(
        self,
        bandwidth: str | float = "cv",
        *,
        bandwidths: ArrayLike | None = None,
        n_folds: int = 5,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.bandwidth = bandwidth
        self.bandwidths = bandwidths
        self.n_folds = n_folds
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Keep the rows and choose the bandwidth; rows of weight zero are left away."""
        rows: Array = validate_data(self, X, dtype=np.float64)
        weights: Array = _check_sample_weight(
            sample_weight, rows, ensure_non_negative=True, dtype=np.float64
        )
        kept = weights > 0
        if not kept.any():
            raise ValueError("All sample weights are zero; at least one row must count.")
        self.centres_, self.weights_ = rows[kept], weights[kept] / weights.sum()
        self.bandwidth_ = self._choose_bandwidth()
        return self

    def score_samples(self, X: ArrayLike) -> NDArray[np.float64]:
        """Log-density of each row, (n_samples,)."""
        check_is_fitted(self)
        rows: Array = validate_data(self, X, dtype=np.float64, reset=False)
        return log_densities(rows, self.centres_, self.weights_, self.bandwidth_)[0]

    def score_training_samples(self) -> NDArray[np.float64]:
        """Log-density of each training row under all the others, (n_samples,).

        The estimate at its own row would be flattered by that row's kernel.
        """
        check_is_fitted(self)
        return held_out_log_densities(self.centres_, self.weights_, self.bandwidth_)[0]

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Mean log-density of the rows."""
        return float(np.mean(self.score_samples(X)))

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> NDArray[np.float64]:
        """Draw rows from the estimate, (n_samples, n_features): a centre, then its kernel."""
        check_is_fitted(self)
        rng = check_random_state(random_state)
        chosen = self.centres_[rng.choice(len(self.centres_), n_samples, p=self.weights_)]
        return chosen + self.bandwidth_ * rng.standard_normal(chosen.shape)

    def _choose_bandwidth(self) -> float:
        rows, weights = self.centres_, self.weights_
        if isinstance(self.bandwidth, Real):
            return _positive(float(self.bandwidth))
        if self.bandwidth not in ("cv", "loo", *RULES):
            raise ValueError(
                f"bandwidth={self.bandwidth!r} is not known; use 'cv', 'loo', 'scott', "
                "'silverman' or a positive number."
            )
        if spread(rows, weights) == 0:
            raise ValueError(
                f"bandwidth={self.bandwidth!r} needs rows that differ, got n_samples = {len(rows)} "
                "equal ones; pass the bandwidth as a number."
            )
        if self.bandwidth in RULES:
            return RULES[self.bandwidth](rows, weights)
        self.bandwidths_, self.cv_scores_ = self._search(rows, weights)
        return float(self.bandwidths_[np.argmax(self.cv_scores_)])

    def _search(self, rows: Array, weights: Array) -> tuple[Array, Array]:
        """Bandwidths tried and the mean held-out log-density of each."""
        rng = check_random_state(self.random_state)
        rows, weights = merge_repeats(rows, weights)
        folds = _folds(len(rows), self.n_folds, rng) if self.bandwidth == "cv" else None
        if self.bandwidths is None:
            tried = grid_around(pilot_bandwidth(rows, weights, rng))
        else:
            tried = np.array([_positive(float(h)) for h in np.ravel(self.bandwidths)])
        logs = held_out_log_densities(rows, weights, tried, folds)
        return tried, np.average(logs, axis=1, weights=weights)


def _folds(n_rows: int, n_folds: int, rng: np.random.RandomState) -> NDArray[np.int64]:
    """Fold of each row."""
    folds = np.empty(n_rows, dtype=np.int64)
    splits = KFold(min(n_folds, n_rows), shuffle=True, random_state=rng).split(folds)
    for fold, (_, test) in enumerate(splits):
        folds[test] = fold
    return folds


def _positive(bandwidth: float) -> float:
    if not 0 < bandwidth < np.inf:
        raise ValueError(f"A bandwidth must be positive and finite, got {bandwidth}.")
    return bandwidth
