"""Which source does a point come from?  Responsibilities without a density."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import log_softmax
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    column_or_1d,
    validate_data,
)
from threadpoolctl import threadpool_limits

FLOATS = [np.float64, np.float32]
# Products with a few columns are so short below this many entries that threads mostly wait.
ONE_THREAD = 10_000_000


class DomainClassifier(BaseEstimator):
    """Multinomial logistic regression on the source of a point, corrected for source sizes.

    The classifier learns P(k | x) for sources of sizes n_k, so by Bayes' rule P(k | x) is
    proportional to n_k D_k(x).  Dividing the sizes out leaves what the combination needs,

        log r_k(x) = log P(k | x) - log(n_k / n) - logsumexp_j [log P(j | x) - log(n_j / n)],

    the log-responsibility log D_k(x) - logsumexp_j log D_j(x) without any density in between.
    Dense features are standardised first; sparse ones (word counts) are taken as they are.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the ridge penalty on the coefficients; smaller is smoother.
    max_iter : int, default=1000
        Iterations allowed to the solver.
    tol : float, default=1e-5
        Gradient tolerance of the solver.

    Attributes
    ----------
    domains_ : ndarray of shape (p,)
        The source labels in sorted order, which is the order of the first axis of the answers.
    log_prior_ : ndarray of shape (p,)
        log(n_k / n), with sample weights in place of counts where they were given.
    model_ : sklearn Pipeline, or None for a single source
        The fitted classifier, before the correction.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]])
    >>> classifier = DomainClassifier().fit(X, ["north"] * 3 + ["south"] * 3)
    >>> np.exp(classifier.log_responsibilities([[1.0], [6.0], [11.0]])).round(2)
    array([[0.78, 0.5 , 0.22],
           [0.22, 0.5 , 0.78]])
    """

    def __init__(self, C: float = 1.0, max_iter: int = 1000, tol: float = 1e-5) -> None:
        self.C = C
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn which source each row of X, (n, d) dense or sparse, comes from.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            Rows of all sources together.
        y : array of shape (n,)
            The source of each row, any labels: what other estimators take as sample_domain.
        sample_weight : array of shape (n,), optional
            Weight of each row.
        """
        X, y = self._validated(X, y)
        self.domains_, codes = np.unique(y, return_inverse=True)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        size = np.bincount(codes, weights=weight)
        if not size.all():
            raise ValueError(
                f"Source {self.domains_[size == 0][0]!r} has no weight: every source needs a row "
                "with a positive sample_weight, or must be left out."
            )
        self.log_prior_: NDArray[np.float64] = np.log(size / size.sum())
        self.model_ = self._fit_model(X, codes, weight) if len(self.domains_) > 1 else None
        return self

    def _validated(self, X: ArrayLike, y: ArrayLike) -> tuple[Any, NDArray[Any]]:
        if y is None:
            raise ValueError(
                "DomainClassifier requires y to be passed, but the target y is None: "
                "give the source of each row."
            )
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=FLOATS)
        check_classification_targets(y)
        return X, column_or_1d(y)

    def _fit_model(self, X: Any, codes: NDArray[np.intp], weight: NDArray[np.float64]) -> Pipeline:
        steps: list[Any] = [LogisticRegression(C=self.C, max_iter=self.max_iter, tol=self.tol)]
        if not sparse.issparse(X):
            steps.insert(0, StandardScaler())
        model = make_pipeline(*steps)
        weights = {f"{name}__sample_weight": weight for name, _ in model.steps}
        threads = 1 if X.shape[0] * X.shape[1] < ONE_THREAD else None
        with threadpool_limits(limits=threads, user_api="blas"):
            return model.fit(X, codes, **weights)

    def log_responsibilities(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return log r_k(x) as (p, n): source by point, each column summing to 1 after exp."""
        check_is_fitted(self)
        rows: Any = validate_data(self, X, reset=False, accept_sparse="csr", dtype=FLOATS)
        if self.model_ is None:
            return np.zeros((1, rows.shape[0]))
        scores = np.asarray(self.model_.decision_function(rows), dtype=np.float64)
        if scores.ndim == 1:
            # With two classes scikit-learn keeps only the score of the second.
            scores = np.column_stack([np.zeros_like(scores), scores])
        log_r: NDArray[np.float64] = log_softmax((scores - self.log_prior_).T, axis=0)
        return log_r

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags
