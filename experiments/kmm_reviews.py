"""Kernel mean matching on the kernel of the sentiment study: one rival, fitted for each target."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from anymix.estimators import BoxAndBand, MeanMatching, solve_qp
from experiments.kmm_programs import Floats, solve_exactly, solve_together
from experiments.reviews import Regressor, Rows, View, fit_svr

RIDGE = 2.0**-10
UPPER = 1000.0
# The default of `KernelMeanMatching`.  It is no detail: stopped there, the weights are nearer to
# equal than the program's answer, and the errors are others.
TOLERANCE = 1e-4

Mixture = tuple[float, ...]


class MeanMatcher:
    """Weigh training rows to match target mixtures of unlabelled rows, then fit to the weighted.

    The kernel mean of a mixture is the mixture of the domains' kernel means, so that a new target
    costs one quadratic program and one fit, and no draw of rows (Huang et al. 2006; B = 1000 and
    their eps).

    Parameters
    ----------
    view : View
    train, target : sequence of rows, one entry per domain
        All training rows are weighted; the target rows are used without their ratings.
    mixtures : sequence of mixtures
        The targets that it will be asked for; each program starts where a neighbour's ended.
    """

    def __init__(
        self,
        view: View,
        train: Sequence[Rows],
        target: Sequence[Rows],
        mixtures: Sequence[Mixture] = (),
    ) -> None:
        self.view, self.mixtures = view, list(dict.fromkeys(mixtures))
        self.rows = np.concatenate(train)
        self.kernel = view.kernel[np.ix_(self.rows, self.rows)]
        means = [view.kernel[np.ix_(self.rows, t)].mean(axis=1, dtype=np.float64) for t in target]
        self.kappa = len(self.rows) * np.stack(means)
        self._solved: dict[Mixture, Floats] = {}

    def fit(self, mixture: Mixture) -> Regressor:
        """Fit the study's support vector regressor; a row's C is C times its weight.

        Paper: Sec. 5.1.
        """
        return self._regressor(self.weights(mixture))

    def weights(self, mixture: Mixture) -> Floats:
        """Return the answer of the program, to rounding."""
        start = np.ones(len(self.rows), dtype=bool)
        if self._solved:
            near = min(self._solved, key=lambda m: float(np.abs(np.subtract(m, mixture)).sum()))
            start = self._solved[near] > 0
        self._solved[mixture] = solve_exactly(self._program(mixture), start)
        return self._solved[mixture]

    def fit_early(self, mixture: Mixture) -> Regressor:
        """Fit the same with the weights at which an iterative solver stops."""
        return self._regressor(self._early[mixture])

    @cached_property
    def _early(self) -> dict[Mixture, Floats]:
        programs = [self._program(mixture) for mixture in self.mixtures]
        return dict(zip(self.mixtures, solve_together(programs, TOLERANCE), strict=True))

    def _regressor(self, b: Floats) -> Regressor:
        on = b > 0
        return fit_svr(self.view, self.rows[on], weights=b[on])

    def _program(self, mixture: Mixture) -> MeanMatching:
        n = len(self.rows)
        slack = np.sqrt(n) * (np.sqrt(n) - 1)
        bounds = BoxAndBand(UPPER, n - slack, n + slack)
        return MeanMatching(self.kernel, np.asarray(mixture) @ self.kappa, bounds)

    def ridge(self, mixture: Mixture) -> Regressor:
        """Fit kernel ridge regression: minimise Σ b_i (f(x_i) + c − y_i)² + n λ |f|².

        c is the weighted mean of y.  λ is read as a price against the mean loss, and y is centred:
        both make this rival stronger.
        """
        b = solve_qp(self._program(mixture), TOLERANCE).weights
        on = np.flatnonzero(b > 0)
        s, ratings = np.sqrt(b[on]), self.view.corpus.ratings[self.rows]
        centre = float(np.average(ratings, weights=b))
        A = s[:, None] * self.kernel[np.ix_(on, on)] * s
        A[np.diag_indices(len(on))] += len(b) * RIDGE
        weights = s * np.linalg.solve(A, s * (ratings[on] - centre))
        return Regressor(self.rows[on], weights, centre)


def quarter(train: Sequence[Rows]) -> list[Rows]:
    """Take the first 1/p of each domain's rows, as many in all as one domain has.

    >>> [rows.tolist() for rows in quarter([np.arange(4), np.arange(10, 14)])]
    [[0, 1], [10, 11]]
    """
    return [rows[: len(rows) // len(train)] for rows in train]
