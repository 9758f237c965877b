"""Default learners for each kind of rows, and the candidates of `estimator="auto"`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    Normalizer,
    OneHotEncoder,
    StandardScaler,
)

from anymix.estimators._row_checks import is_text
from anymix.exceptions import InputError
from anymix.sources import BoundedRidge
from anymix.tables import Columns, as_rows

# Columns of a table each mean something; of more, as of pixels, all mean the same kind of thing.
MOST_COLUMNS = 50
# Words and pairs of words; the pattern is one that ONNX can cut by.
WORDS: dict[str, Any] = {"token_pattern": "[a-zA-Z]+", "ngram_range": (1, 2), "min_df": 2}
# Letters of any language, for texts in which more than this share is not among a to z.
ANY_LETTERS, FOREIGN, LOOKED_AT = r"[^\W\d_]+", 0.01, 1000
# Small leaves are drawn together, which is what makes trees of a few hundred rows useful.
TREES: dict[str, Any] = {"l2_regularization": 10.0, "min_samples_leaf": 10, "early_stopping": False}
# Inverse penalties of logistic regression of standardised columns, for many rows and for few.
INVERSE_PENALTIES = (1.0, 0.1, 0.01)
# Random features of a kernel: of 300 a classifier of 8 × 8 pixels lost 1 % more, of 1000 as much.
N_FEATURES = 500


def kind_of(X: Any) -> str:
    """Name the kind of rows: "text", "mixed" tables, "numbers", or "vectors" of many numbers.

    A mixed table has categories or missing values.

    Examples
    --------
    >>> kind_of(["a good book"]), kind_of(np.zeros((9, 3))), kind_of(np.zeros((9, 300)))
    ('text', 'numbers', 'vectors')
    >>> kind_of(np.array([[1.0, np.nan]]))
    'mixed'
    """
    if is_text(X):
        return "text"
    if hasattr(X, "toarray"):
        return "vectors"
    X = as_rows(X)
    columns = Columns.of(X)
    if not columns.are_plain(X) or np.isnan(columns.encode(X)).any():
        return "mixed"
    return "numbers" if len(columns) <= MOST_COLUMNS else "vectors"


def default_estimator(
    X: Any,
    classification: bool,
    random_state: Any = None,
    sample_weight: Any = None,
    columns: Columns | None = None,
) -> Any:
    """Return an untrained default learner for rows of this kind, without a comparison.

    Mixed tables get boosted trees, which take the table as `Columns.encode` writes it; tables of
    numbers a linear model of standardised columns, vectors a linear model; text a linear model of
    tf-idf.  `choose_estimator` compares this learner with others.  How strongly a linear classifier
    of vectors is regularised depends on their variance, in which a row of sample_weight 2 counts as
    two rows.  Rows that were encoded by `columns` are a mixed table.

    Examples
    --------
    >>> default_estimator(np.zeros((9, 300)), classification=False)[-1]
    BoundedRidge()
    """
    encoded = columns is not None
    kind = kind_of(X) if columns is None else "mixed"
    columns = Columns.of(X) if kind == "mixed" and columns is None else columns
    found = candidate_estimators(kind, X, columns, classification, random_state, sample_weight)
    learner = found["trees" if columns is not None else next(iter(found))]
    if encoded or columns is None or len(columns) == len(columns.table_names):
        return learner
    # Dates and texts are several columns of numbers, which no learner makes of a frame.
    return make_pipeline(FunctionTransformer(columns.encode), learner)


def candidate_estimators(
    kind: str,
    X: Any,
    columns: Columns | None,
    classification: bool,
    random_state: Any = None,
    sample_weight: Any = None,
) -> dict[str, Any]:
    """Return the learners that are compared for rows of a known kind, by name, the cheapest first.

    A mixed table is given as `columns.encode` writes it, or as it is.
    """
    if kind == "text":
        words = TfidfVectorizer(**words_of(X))
        if not classification:
            return {"linear": make_pipeline(words, BoundedRidge((0.2,)))}
        return {
            "linear": make_pipeline(words, _logistic(10.0)),
            "linear (C=3)": make_pipeline(words, _logistic(3.0)),
        }
    if kind == "vectors":
        return _of_vectors(X, classification, sample_weight)
    found: dict[str, Any] = {}
    before = _plain_numbers(columns) if columns is not None else StandardScaler()
    if before is not None and classification:
        for C in INVERSE_PENALTIES:
            name = "linear" if C == 1 else f"linear (C={C:g})"
            found[name] = make_pipeline(before, _logistic(C))
    elif before is not None:
        found["linear"] = make_pipeline(before, BoundedRidge())
    if before is not None:
        n_columns = len(columns) if columns is not None else np.shape(X)[1]
        last = _logistic(10.0) if classification else BoundedRidge()
        found["kernel"] = make_pipeline(before, _fourier(1.0 / (8.0 * n_columns)), last)
    return found | {"trees": _trees(columns, classification, random_state)}


def _of_vectors(X: Any, classification: bool, weight: Any) -> dict[str, Any]:
    """Linear models of vectors as they are, scaled or of length 1, and of a kernel's features."""
    is_sparse = hasattr(X, "toarray")
    scaler = MaxAbsScaler() if is_sparse else StandardScaler()
    if classification:
        found: dict[str, Any] = {
            "linear": _logistic(_inverse_penalty(X, weight)),
            "linear, scaled columns": make_pipeline(scaler, _logistic(1.0 if is_sparse else 0.1)),
            "linear, rows of length 1": make_pipeline(Normalizer(), _logistic(10.0)),
        }
    else:
        ridge = BoundedRidge((1.0,)) if is_sparse else BoundedRidge()
        found = {"linear": make_pipeline(scaler, ridge)}
    if not is_sparse:
        last = _logistic(30.0) if classification else BoundedRidge()
        found["kernel"] = make_pipeline(Normalizer(), _fourier(1.0), last)
        scaled = make_pipeline(StandardScaler(), Normalizer(), _fourier(0.5), last)
        found["kernel, scaled columns"] = scaled
    return found


def _logistic(C: float) -> LogisticRegression:
    return LogisticRegression(C=C, max_iter=1000)


def _fourier(gamma: float) -> RBFSampler:
    """Random features of exp(−γ‖x − x'‖²); all sources have the same, and no row is kept."""
    return RBFSampler(gamma=gamma, n_components=N_FEATURES, random_state=0)


def _trees(columns: Columns | None, classification: bool, random_state: Any) -> Any:
    kind = HistGradientBoostingClassifier if classification else HistGradientBoostingRegressor
    words = None if columns is None or not columns.categorical.any() else columns.categorical
    return kind(**TREES, categorical_features=words, random_state=random_state)


def _plain_numbers(columns: Columns) -> ColumnTransformer | None:
    """Impute and standardise numbers, mark what was missing, and one-hot encode categories.

    A missing or unknown category is zero in all its columns.  None if nothing would be left.
    """
    sizes = [len(column.categories or ()) for column in columns]
    numbers = np.flatnonzero(~columns.categorical).tolist()
    words = [j for j, size in enumerate(sizes) if size]
    parts: list[tuple[str, Any, list[int]]] = []
    if numbers:
        imputer = SimpleImputer(strategy="median", keep_empty_features=True)
        parts.append(("numbers", make_pipeline(imputer, StandardScaler()), numbers))
        parts.append(("missing", MissingIndicator(features="all"), numbers))
    if words:
        codes = [np.arange(sizes[j], dtype=np.float64) for j in words]
        one_hot = OneHotEncoder(categories=codes, handle_unknown="ignore", sparse_output=False)
        parts.append(("categories", one_hot, words))
    return ColumnTransformer(parts) if parts else None


def words_of(texts: Any) -> dict[str, Any]:
    """Return the tokenisation of texts: ASCII letters, or letters of any language if needed."""
    return WORDS | ({"token_pattern": ANY_LETTERS} if is_foreign(texts) else {})


def is_foreign(texts: Any) -> bool:
    """Whether texts have letters other than a to z."""
    some = "".join(islice((text for text in texts if isinstance(text, str)), LOOKED_AT))
    if some.isascii():
        return False
    letters = sum(map(str.isalpha, some))
    return sum(c.isalpha() and not c.isascii() for c in some) > FOREIGN * letters


def _inverse_penalty(X: Any, weight: Any = None) -> float:
    """C that goes with the scale of vectors, whatever their unit: 0.15 over their mean variance."""
    X = X if hasattr(X, "toarray") else np.asarray(X, dtype=float)
    squares = X.multiply(X) if hasattr(X, "multiply") else X * X
    if weight is None:
        means = np.asarray(X.mean(axis=0)), np.asarray(squares.mean(axis=0))
    else:
        share = np.asarray(weight, dtype=float) / np.sum(weight)
        means = share @ X, share @ squares
    variance = float((means[1] - means[0] ** 2).mean())
    return float(np.clip(0.15 / max(variance, 1e-300), 1e-6, 1e6))


def named_estimators(estimators: Sequence[Any]) -> dict[str, Any]:
    """Name the learners of a list by their last step; of the same name the second has a number.

    Examples
    --------
    >>> list(named_estimators([LogisticRegression(), LogisticRegression(C=2)]))
    ['LogisticRegression', 'LogisticRegression 2']
    """
    if not len(estimators):
        raise InputError("estimator", "is an empty list; name a learner, or leave it at 'auto'")
    found: dict[str, Any] = {}
    for estimator in estimators:
        last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
        name, n = type(last).__name__, 2
        while name in found:
            name, n = f"{type(last).__name__} {n}", n + 1
        found[name] = estimator
    return found
