"""How a kernel density comes to its bandwidth: a number, a rule of thumb or held-out rows."""

from numbers import Real

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import KFold

from anymix._arrays import FloatArray, IntArray
from anymix.densities._kernel_sums import held_out_log_densities
from anymix.densities.bandwidth import (
    climb,
    grid_around,
    merge_repeats,
    pilot_bandwidth,
    scott,
    silverman,
    spread,
    wide_grid,
)
from anymix.densities.centres import Kernels, cluster

RULES = {"scott": scott, "silverman": silverman}


class ChoosesBandwidth:
    """What `GaussianKDE` does to choose its bandwidth, on rows that were scaled."""

    bandwidth: str | float
    bandwidths: ArrayLike | None
    n_folds: int
    centres: int | None

    def _kernels(
        self, rows: FloatArray, weights: FloatArray, rng: np.random.RandomState
    ) -> Kernels:
        if self.centres is None:
            return Kernels(rows, weights, np.zeros(len(rows)))
        return cluster(rows, weights, self.centres, rng)

    def _choose_bandwidth(
        self, rows: FloatArray, weights: FloatArray, rng: np.random.RandomState
    ) -> float:
        if isinstance(self.bandwidth, Real):
            return float(checked_bandwidths(self.bandwidth)[0])
        if self.bandwidth not in ("cv", "loo", *RULES):
            raise ValueError(
                f"bandwidth={self.bandwidth!r} is not known; use 'cv', 'loo', 'scott', "
                "'silverman' or a positive number."
            )
        if self.bandwidth == "loo" and self.centres is not None:
            raise ValueError("bandwidth='loo' needs the rows themselves; use 'cv' with centres.")
        if spread(rows, weights) == 0:
            raise ValueError(
                f"bandwidth={self.bandwidth!r} needs rows that differ; got n_samples = {len(rows)} "
                "equal ones; pass the bandwidth as a number."
            )
        if self.bandwidth in RULES:
            return RULES[self.bandwidth](rows, weights)
        return self._search(*merge_repeats(rows, weights), rng)

    def _search(self, rows: FloatArray, weights: FloatArray, rng: np.random.RandomState) -> float:
        """Keep the bandwidths tried and their mean held-out log-densities; return the best."""
        folds = draw_folds(len(rows), self.n_folds, rng) if self.bandwidth == "cv" else None

        def score(tried: FloatArray) -> FloatArray:
            if self.centres is None or folds is None:
                logs = held_out_log_densities(rows, weights, tried, folds, for_means=True)
                return logs @ weights
            return self._held_out_from_centres(rows, weights, tried, folds, rng) @ weights

        if self.bandwidths is not None:
            tried = checked_bandwidths(self.bandwidths)
            self.bandwidths_, self.cv_scores_ = tried, score(tried)
        elif self.centres is not None:
            self.bandwidths_ = wide_grid(spread(rows, weights))
            self.cv_scores_ = score(self.bandwidths_)
        else:
            grid = grid_around(pilot_bandwidth(rows, weights, rng))
            self.bandwidths_, self.cv_scores_ = climb(score, grid)
        return float(self.bandwidths_[np.argmax(self.cv_scores_)])

    def _held_out_from_centres(
        self,
        rows: FloatArray,
        weights: FloatArray,
        tried: FloatArray,
        folds: IntArray,
        rng: np.random.RandomState,
    ) -> FloatArray:
        """Log-density of each row under the centres of the other folds' rows."""
        logs = np.empty((len(tried), len(rows)))
        for fold in range(folds.max() + 1):
            test = folds == fold
            kernels = self._kernels(rows[~test], weights[~test], rng)
            logs[:, test] = kernels.log_densities(rows[test], tried)
        return logs


def draw_folds(n_rows: int, n_folds: int, rng: np.random.RandomState) -> IntArray:
    """Fold of each row, (n_rows,).

    Examples
    --------
    >>> np.bincount(draw_folds(6, 3, np.random.RandomState(0))).tolist()
    [2, 2, 2]
    """
    folds = np.empty(n_rows, dtype=np.int64)
    splits = KFold(min(n_folds, n_rows), shuffle=True, random_state=rng).split(folds)
    for fold, (_, test) in enumerate(splits):
        folds[test] = fold
    return folds


def checked_bandwidths(bandwidths: ArrayLike) -> FloatArray:
    """Return bandwidths as an array, or say that they are not positive.

    Examples
    --------
    >>> checked_bandwidths(2)
    array([2.])
    """
    checked = np.ravel(np.asarray(bandwidths, dtype=np.float64))
    if not checked.size or not np.all((checked > 0) & (checked < np.inf)):
        raise ValueError(f"Bandwidths must be positive and finite; got {bandwidths!r}.")
    return checked
