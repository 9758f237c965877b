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

from anymix._arrays import FloatArray, IntArray
from anymix.densities._base import (
    Arrays,
    Travels,
    check_arrays,
    check_shapes,
    check_weights,
    refuse_unless,
)

FLOATS = [np.float64, np.float32]
# Products with a few columns are so short below this many entries that threads mostly wait.
ONE_THREAD = 10_000_000
MOST_DOMAINS = 500  # of a classifier that travels: every row costs a number for each


class DomainClassifier(Travels, BaseEstimator):
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

    kind = "domain_classifier"

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
        self.log_prior_: FloatArray = np.log(size / size.sum())
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

    def _fit_model(self, X: Any, codes: IntArray, weight: FloatArray) -> Pipeline:
        steps: list[Any] = [LogisticRegression(C=self.C, max_iter=self.max_iter, tol=self.tol)]
        if not sparse.issparse(X):
            steps.insert(0, StandardScaler())
        model = make_pipeline(*steps)
        weights = {f"{name}__sample_weight": weight for name, _ in model.steps}
        threads = 1 if X.shape[0] * X.shape[1] < ONE_THREAD else None
        with threadpool_limits(limits=threads, user_api="blas"):
            return model.fit(X, codes, **weights)

    def log_responsibilities(self, X: ArrayLike) -> FloatArray:
        """Return log r_k(x) as (p, n): source by point, each column summing to 1 after exp."""
        check_is_fitted(self)
        rows: Any = validate_data(self, X, reset=False, accept_sparse="csr", dtype=FLOATS)
        if self.model_ is None:
            return np.zeros((1, rows.shape[0]))
        scores = np.asarray(self.model_.decision_function(rows), dtype=np.float64)
        if scores.ndim == 1:
            # With two classes scikit-learn keeps only the score of the second.
            scores = np.column_stack([np.zeros_like(scores), scores])
        log_r: FloatArray = log_softmax((scores - self.log_prior_).T, axis=0)
        return log_r

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return coefficients, intercepts, log_prior and, for dense rows, the scaler's numbers.

        The names of the domains are not among them: read again, they are 0 .. p-1.
        """
        check_is_fitted(self)
        d, steps = self.n_features_in_, [] if self.model_ is None else list(self.model_)
        arrays: dict[str, NDArray[Any]] = {
            "log_prior": self.log_prior_,
            "n_features": np.array([d], dtype=np.int64),
            "coefficients": np.empty((0, d)),
            "intercepts": np.empty(0),
            "single": np.array([0], dtype=np.int64),
        }
        if steps:
            arrays["coefficients"] = steps[-1].coef_.astype(np.float64)
            arrays["intercepts"] = steps[-1].intercept_.astype(np.float64)
            # Fitted on float32 the products are of float32, and must be again.
            arrays["single"][0] = steps[-1].coef_.dtype == np.float32
        if len(steps) > 1:
            arrays |= {"mean": steps[0].mean_, "scale": steps[0].scale_}
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Arrays, n_features: int) -> Self:
        """Build the classifier of the domains 0 .. p-1, or say what is not sound."""
        scaler = {"mean", "scale"} & set(arrays)
        names = {"log_prior", "n_features", "coefficients", "intercepts", "single"}
        check_arrays(arrays, names | ({"mean", "scale"} if scaler else set()))
        log_prior = arrays["log_prior"]
        p = check_weights(np.exp(log_prior.astype(np.float64, copy=False))).size
        refuse_unless(p <= MOST_DOMAINS, f"tells {p} domains apart; {MOST_DOMAINS} are allowed")
        # With two classes scikit-learn keeps the coefficients of the second alone.
        rows = {1: 0, 2: 1}.get(p, p)
        shapes = {"coefficients": (rows, n_features), "intercepts": (rows,), "log_prior": (p,)}
        check_shapes(arrays, **shapes, **dict.fromkeys(scaler, (n_features,)))
        whole = all(arrays[name].dtype == np.int64 for name in ("n_features", "single"))
        refuse_unless(
            whole and arrays["n_features"].tolist() == [n_features],
            f"must say that there are {n_features} features",
        )
        refuse_unless(arrays["single"].tolist() in ([0], [1]), "must have single 0 or 1")
        refuse_unless(not scaler or arrays["scale"].min() > 0, "has a scale of zero or less")
        classifier = cls()
        classifier.domains_, classifier.log_prior_ = np.arange(p), log_prior
        classifier.n_features_in_ = n_features
        classifier.model_ = _pipeline(arrays) if p > 1 else None
        return classifier

    def reveals(self) -> str:
        """Say that the arrays tell sources apart, and hold no row."""
        return f"how likely rows are of each of {len(self.log_prior_)} sources; no row."

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


def _pipeline(arrays: Arrays) -> Pipeline:
    """Return the fitted steps that these arrays describe."""
    precision = np.float32 if arrays["single"][0] else np.float64
    linear = LogisticRegression()
    # In the order of scikit-learn's own, so that products round alike.
    linear.coef_ = np.asfortranarray(arrays["coefficients"], dtype=precision)
    linear.intercept_ = arrays["intercepts"].astype(precision)
    linear.classes_ = np.arange(len(arrays["log_prior"]))
    linear.n_features_in_ = linear.coef_.shape[1]
    if "mean" not in arrays:
        return make_pipeline(linear)
    scaler = StandardScaler()
    scaler.mean_, scaler.scale_ = arrays["mean"], arrays["scale"]
    scaler.var_, scaler.n_features_in_ = arrays["scale"] ** 2, linear.n_features_in_
    return make_pipeline(scaler, linear)
