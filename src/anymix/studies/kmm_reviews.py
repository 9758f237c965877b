"""Kernel mean matching on the kernel of the sentiment study: one rival, fitted for each target."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anymix.estimators import BoxAndBand, MeanMatching, solve_qp
from anymix.studies.reviews import Floats, Regressor, Rows, View

RIDGE = 2.0**-10


class MeanMatcher:
    """Match training rows to target mixtures of unlabelled rows, then fit kernel ridge regression.

    The kernel mean of a mixture is the mixture of the domains' kernel means, so that a new target
    costs one quadratic program and one linear system, and no draw of rows.

    Parameters
    ----------
    view : View
    train, target : sequence of rows, one entry per domain
        A quarter of each domain's training rows are weighted, as many in all as one domain has;
        the target rows are used without their ratings.
    """

    def __init__(self, view: View, train: Sequence[Rows], target: Sequence[Rows]) -> None:
        self.rows = np.concatenate([rows[: len(rows) // len(train)] for rows in train])
        self.ratings = view.corpus.ratings[self.rows]
        self.kernel = view.kernel[np.ix_(self.rows, self.rows)]
        means = [view.kernel[np.ix_(self.rows, t)].mean(axis=1, dtype=np.float64) for t in target]
        self.kappa = len(self.rows) * np.stack(means)

    def fit(self, mixture: Sequence[float]) -> Regressor:
        """Fit for one target mixture (Huang et al. 2006; B = 1000 and their eps).

        Paper: Sec. 5.1.
        """
        n = len(self.rows)
        slack = np.sqrt(n) * (np.sqrt(n) - 1)
        bounds = BoxAndBand(1000.0, n - slack, n + slack)
        problem = MeanMatching(self.kernel, np.asarray(mixture) @ self.kappa, bounds)
        b = solve_qp(problem, tol=1e-4).weights
        return self._ridge(b)

    def _ridge(self, b: Floats) -> Regressor:
        """Minimise Σ b_i (f(x_i) + c − y_i)² + n λ |f|², c the weighted mean of y.

        λ is read as a price against the mean loss, and y is centred: both make this rival stronger.
        """
        on = np.flatnonzero(b > 0)
        s = np.sqrt(b[on])
        centre = float(np.average(self.ratings, weights=b))
        A = s[:, None] * self.kernel[np.ix_(on, on)] * s
        A[np.diag_indices(len(on))] += len(b) * RIDGE
        weights = s * np.linalg.solve(A, s * (self.ratings[on] - centre))
        return Regressor(self.rows[on], weights, centre)
