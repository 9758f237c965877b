"""Classifiers of the source of a point: responsibilities without a density."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils import check_consistent_length, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    _check_sample_weight,
    check_array,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from anymix._arrays import FloatArray
from anymix._parameters import Number, check_parameters
from anymix.densities.boosted_trees import TREES
from anymix.densities.density import (
    Arrays,
    GraphBuilder,
    RandomState,
    Travels,
    check_weights,
    refuse_unless,
)
from anymix.densities.domain_models import (
    fit_estimator,
    fit_linear,
    is_documents,
    linear_from_arrays,
    linear_graph,
    linear_to_arrays,
    log_probabilities,
    trees_from_arrays,
    trees_graph,
    trees_to_arrays,
)
from anymix.exceptions import InputError
from anymix.tables import Columns

FLOATS = [np.float64, np.float32]
MOST_DOMAINS = 500  # of a classifier that travels: every row costs a number for each


class DomainClassifier(Travels, BaseEstimator):
    """A classifier of the source of a point, corrected for source sizes.

    The classifier learns P(k | x) for sources of sizes n_k, so by Bayes' rule P(k | x) is
    proportional to n_k D_k(x).  Dividing by the sizes gives what the combination needs,

        log r_k(x) = log P(k | x) - log(n_k / n) - logsumexp_j [log P(j | x) - log(n_j / n)],

    the log-responsibility log D_k(x) - logsumexp_j log D_j(x) without any density in between.

    Without an estimator it is multinomial logistic regression: dense features are standardised
    first, sparse ones (word counts) are taken as they are.  Probabilities of another estimator are
    clipped at 1e-7, as a single log 0 would outweigh all rows that a calibration learns from.

    Parameters
    ----------
    estimator : classifier with predict_proba, default=None
        Any of scikit-learn's form, cloned before it is fitted; None: logistic regression.  A frame
        with words reaches it as numbers, codes of categories and NaN for missing values, and
        HistGradientBoostingClassifier gets the list of categorical columns; a Pipeline gets the
        frame, or the documents, untouched.
    C : float, default=1.0
        Of logistic regression: inverse strength of the ridge penalty on the coefficients; smaller
        is smoother.
    max_iter : int, default=1000
        Of logistic regression: iterations allowed to the solver.
    tol : float, default=1e-5
        Of logistic regression: gradient tolerance of the solver.

    Attributes
    ----------
    domains_ : ndarray of shape (p,)
        The source labels in sorted order, which is the order of the first axis of the answers.
    log_prior_ : ndarray of shape (p,)
        log(n_k / n), with sample weights in place of counts where they were given.
    model_ : fitted classifier, or None for a single source
        The estimator, or scikit-learn's Pipeline of logistic regression, before the correction.
    columns_ : Columns or None
        How words of a frame became numbers; None if there were none.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]])
    >>> classifier = DomainClassifier().fit(X, ["north"] * 3 + ["south"] * 3)
    >>> np.exp(classifier.log_responsibilities([[1.0], [6.0], [11.0]])).round(2)
    array([[0.78, 0.5 , 0.22],
           [0.22, 0.5 , 0.78]])
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> forest = DomainClassifier(RandomForestClassifier(random_state=0))
    >>> forest = forest.fit(X, ["north"] * 3 + ["south"] * 3)
    >>> forest.log_responsibilities([[1.0], [11.0]]).argmax(axis=0)
    array([0, 1])
    """

    kind = "domain_classifier"
    columns_: Columns | None = None

    _takes: ClassVar = {
        "C": Number(above=0),
        "max_iter": Number(1, whole=True),
        "tol": Number(above=0),
    }

    def __init__(
        self, estimator: Any = None, *, C: float = 1.0, max_iter: int = 1000, tol: float = 1e-5
    ) -> None:
        self.estimator = estimator
        self.C = C
        self.max_iter = max_iter
        self.tol = tol

    @classmethod
    def boosted(cls, random_state: RandomState = None) -> Self:
        """Return a classifier with boosted trees, for mixed tables with missing values."""
        # Chosen on held-out rows of tables of 4 to 9 sources, 600 to 14 000 rows.
        return cls(
            HistGradientBoostingClassifier(
                max_iter=70,
                learning_rate=0.15,
                l2_regularization=3.0,
                early_stopping=False,
                random_state=random_state,
            )
        )

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn which source each row of X comes from.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d), frame, or n documents
            Rows of all sources together; what the estimator takes.
        y : array of shape (n,)
            The source of each row, any labels: what other estimators take as sample_domain.
        sample_weight : array of shape (n,), optional
            Weight of each row.
        """
        check_parameters(self)
        if y is None:
            raise ValueError(
                "DomainClassifier requires y to be passed, but the target y is None: "
                "give the source of each row."
            )
        X = self._rows(X, reset=True)
        check_classification_targets(y)
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        self.domains_, codes = np.unique(y, return_inverse=True)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        size = np.bincount(codes, weights=weight)
        if not size.all():
            raise ValueError(
                f"Source {self.domains_[size == 0][0]!r} has no weight: every source needs a row "
                "with a positive sample_weight, or must be left out."
            )
        self.log_prior_: FloatArray = np.log(size / size.sum())
        if len(self.domains_) == 1:
            self.model_ = None
        elif self.estimator is None:
            self.model_ = fit_linear(X, codes, weight, self.C, self.max_iter, self.tol)
        else:
            given = None if sample_weight is None else weight
            self.model_ = fit_estimator(self.estimator, X, codes, given, self.columns_)
        return self

    def _rows(self, X: Any, reset: bool) -> Any:
        """Return rows as the classifier takes them."""
        if is_documents(X):
            if self.estimator is None:
                raise InputError(
                    "DomainClassifier()",
                    "takes numbers, not documents; give an estimator that takes them, as "
                    "make_pipeline(TfidfVectorizer(), LogisticRegression())",
                )
            return X
        frame = hasattr(X, "columns")
        if frame and isinstance(self.estimator, Pipeline):
            _check_feature_names(self, X, reset=reset)
            _check_n_features(self, X, reset=reset)
            return X
        if reset:
            table = frame and all(X.shape)
            if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "OU":
                table = any(isinstance(value, str) for value in X.ravel())
            columns = Columns.of(X) if table else None
            plain = columns is None or columns.are_plain(X)
            self.columns_ = None if plain else columns
        if self.columns_ is not None:
            if self.estimator is None and self.columns_.categorical.any():
                name = self.columns_.names[int(np.argmax(self.columns_.categorical))]
                raise InputError(
                    f"column {name!r}",
                    "holds words, which logistic regression does not take; use "
                    "DomainClassifier(HistGradientBoostingClassifier())",
                )
            if frame:
                _check_feature_names(self, X, reset=reset)
            rows = self.columns_.encode(X)
            _check_n_features(self, rows, reset=reset)
            return check_array(rows, ensure_all_finite="allow-nan")
        finite = True if self.estimator is None else "allow-nan"
        return validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=FLOATS, ensure_all_finite=finite
        )

    def log_responsibilities(self, X: Any) -> FloatArray:
        """Return log r_k(x) as (p, n): source by point, each column summing to 1 after exp."""
        check_is_fitted(self, "log_prior_")
        rows: Any = self._rows(X, reset=False)
        if self.model_ is None:
            return np.zeros((1, rows.shape[0] if hasattr(rows, "shape") else len(rows)))
        logs = log_probabilities(self.model_, rows, linear=self.estimator is None)
        log_r: FloatArray = log_softmax((logs - self.log_prior_).T, axis=0)
        return log_r

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return log_prior and the numbers of logistic regression, or the trees that were boosted.

        The names of the domains are not among them: read again, they are 0 .. p-1.
        """
        check_is_fitted(self, "log_prior_")
        d = getattr(self, "n_features_in_", 0)
        shared = {"log_prior": self.log_prior_, "n_features": np.array([d], dtype=np.int64)}
        if self.estimator is None or self.model_ is None:
            return shared | linear_to_arrays(self.model_, d)
        return shared | trees_to_arrays(self.model_, self.columns_)

    @classmethod
    def from_arrays(cls, arrays: Arrays, n_features: int) -> Self:
        """Build the classifier of the domains 0 .. p-1; a ValueError says what is invalid."""
        for name, kind in (("log_prior", np.float64), ("n_features", np.int64)):
            sound = name in arrays and arrays[name].dtype == kind and arrays[name].ndim == 1
            refuse_unless(sound, f"must hold {name}")
        log_prior = arrays["log_prior"]
        p = check_weights(np.exp(log_prior)).size
        refuse_unless(p <= MOST_DOMAINS, f"distinguishes {p} domains; {MOST_DOMAINS} are allowed")
        stated = arrays["n_features"].tolist() == [n_features]
        refuse_unless(stated, f"must say that there are {n_features} features")
        boosted = any(name.startswith(TREES) for name in arrays)
        classifier = cls(HistGradientBoostingClassifier()) if boosted else cls()
        classifier.domains_, classifier.log_prior_ = np.arange(p), log_prior
        classifier.n_features_in_ = n_features
        if boosted:
            trees = trees_from_arrays(arrays, p, n_features)
            classifier.model_, classifier.columns_ = trees
            if trees[1] is not None:
                classifier.feature_names_in_ = np.array(trees[1].names, dtype=object)
        else:
            classifier.model_ = linear_from_arrays(arrays, p, n_features)
        return classifier

    def log_responsibilities_graph(self, graph: GraphBuilder) -> str:
        """Write log r_k(x) of encoded rows, up to a number for each, into an ONNX graph: (n, p)."""
        check_is_fitted(self, "log_prior_")
        write = linear_graph if self.estimator is None else trees_graph
        return graph.add("Sub", write(graph, self.model_), graph.constant(self.log_prior_))

    def reveals(self) -> str:
        """Describe what the arrays reveal: differences of sources, and no row."""
        split = "" if self.estimator is None else ", by values and words of single columns"
        return f"how likely rows are of each of {len(self.log_prior_)} sources{split}; no row."

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        if self.estimator is not None:
            tags.input_tags = get_tags(self.estimator).input_tags
        return tags
