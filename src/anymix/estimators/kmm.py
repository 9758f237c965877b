"""Kernel mean matching: reweigh the training rows to look like unlabelled target rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array, check_consistent_length, validate_data

from anymix._parameters import Either, Number, Rule
from anymix.estimators._kmm_qp import BoxAndBand, Kernel, QPAnswer, mean_matching_weights
from anymix.estimators._order import check_order
from anymix.estimators._reweighted import ReweightedEstimator
from anymix.estimators._rows import not_numbers
from anymix.exceptions import InputError


class KernelMeanMatching(ReweightedEstimator):
    """Fit an estimator on rows weighted to match the target in kernel mean (Huang et al. 2006).

    The weights b of the n training rows x_i, given m target rows t_j, minimise

        1/2 b'Kb - kappa'b,  K_ij = k(x_i, x_j),  kappa_i = (n / m) Σ_j k(x_i, t_j),
        0 <= b_i <= B,  |Σ_i b_i - n| <= n eps,

    which is n^2 / 2 times the squared distance between the kernel means, up to a constant.  It is a
    privileged baseline: it sees target rows, and has to be trained again for every target.
    Holds K in memory: 4 n^2 bytes.

    Parameters
    ----------
    estimator : estimator
        What is fitted; its `fit` takes `sample_weight`.
    kernel : str or callable, default="rbf"
        A positive semi-definite kernel, by its name in scikit-learn or as a function of two rows.
    gamma : float, optional
        Parameter of the kernel; None means 1 / number of features.
    B : float, default=1000.0
        Largest weight of a row.
    eps : float, optional
        How far the mean weight may be from 1; None means (sqrt(n) - 1) / sqrt(n).
    tol : float, default=1e-4
        Optimality residual at which the solver ends, relative to max |kappa|.

    Attributes
    ----------
    estimator_ : estimator
        The fitted clone.
    weights_ : ndarray of shape (n,)
        Weights of the training rows; ones if there was no target.
    objective_, residual_ : float
        Value and optimality residual of the weights; only with a target.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> X = np.linspace(-2, 2, 50)[:, None]
    >>> near_two = np.linspace(1, 2, 20)[:, None]
    >>> model = KernelMeanMatching(LinearRegression()).fit(X, X[:, 0] ** 2, X_target=near_two)
    >>> model.estimator_.coef_.round(1)
    array([3.])

    Paper: Sec. 5.1.
    """

    _takes: ClassVar[Mapping[str, Rule]] = {
        "gamma": Either(None, Number(above=0)),
        "B": Number(above=0),
        "eps": Either(None, Number(0)),
        "tol": Number(above=0),
    }

    def __init__(
        self,
        estimator: Any,
        kernel: Kernel = "rbf",
        gamma: float | None = None,
        B: float = 1000.0,
        eps: float | None = None,
        tol: float = 1e-4,
    ) -> None:
        self.estimator = estimator
        self.kernel = kernel
        self.gamma = gamma
        self.B = B
        self.eps = eps
        self.tol = tol

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        X_target: ArrayLike | None = None,
        sample_domain: ArrayLike | None = None,
    ) -> Self:
        """Learn the weights, then fit the estimator with them.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            Training rows of all sources.
        y : array of shape (n,)
            Their targets.
        X_target : array or sparse matrix of shape (m, d), optional
            Unlabelled target rows.  Without them the estimator is fitted with unit weights.
        sample_domain : array of shape (n,), optional
            Not used, as the rows are pooled; taken so that all baselines have one interface.
        """
        rows = self._rows(X, reset=True)
        check_order(X, y=y)
        if X_target is None:
            self.estimator_ = self._fit_weighted(rows, y, None)
            self.weights_: NDArray[np.float64] = np.ones(rows.shape[0])
            return self
        check_consistent_length(rows, y)
        answer = self._match(rows, X_target)
        self.weights_, self.objective_ = answer.weights, answer.objective
        self.residual_ = answer.residual
        self.estimator_ = self._fit_weighted(rows, y, self.weights_)
        return self

    def _match(self, X: Any, X_target: ArrayLike) -> QPAnswer:
        rows, target = self._numbers(X, X_target)
        n = rows.shape[0]
        eps = (np.sqrt(n) - 1.0) / np.sqrt(n) if self.eps is None else self.eps
        if not (eps >= 0 and 1 - eps <= self.B and self.B > 0):
            raise ValueError(
                f"No weights fit B = {self.B} and eps = {eps}: eps must be at least 0 and B "
                "positive and at least 1 - eps, the least allowed mean weight."
            )
        bounds = BoxAndBand(float(self.B), n * (1.0 - eps), n * (1.0 + eps))
        return mean_matching_weights(rows, target, self.kernel, self.gamma, bounds, self.tol)

    def _numbers(self, X: Any, X_target: Any) -> tuple[Any, Any]:
        """Return the rows of both as numbers, or say which column holds something else."""
        numbers: dict[str, Any] = {"accept_sparse": "csr", "dtype": np.float64}
        try:
            return check_array(X, **numbers), validate_data(self, X_target, reset=False, **numbers)
        except ValueError as error:
            fault = not_numbers(X) or not_numbers(X_target)
            if fault is None:
                raise
            raise InputError(
                "KernelMeanMatching",
                f"compares rows as numbers, but {fault}; put the preprocessing in front of it, as "
                "make_pipeline(preprocessing, KernelMeanMatching(estimator)) does",
            ) from error
