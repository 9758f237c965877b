"""What is trained where nobody says: learners and densities by the kind of the rows."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from anymix.densities import (
    ContrastiveDensity,
    DomainClassifier,
    GaussianKDE,
    Reference,
    TextDensity,
)
from anymix.estimators._rows import Rows, is_text
from anymix.tables import Columns

# Columns of a table each mean something; of more, as of pixels, all mean the same kind of thing.
MOST_COLUMNS = 50
# Words and pairs of words; the pattern is one that ONNX can cut by.
WORDS: dict[str, Any] = {"token_pattern": "[a-zA-Z]+", "ngram_range": (1, 2), "min_df": 2}
# Letters of any language, for texts in which more than this share is not among a to z.
ANY_LETTERS, FOREIGN, LOOKED_AT = r"[^\W\d_]+", 0.01, 1000
# Small leaves are drawn together, which is what makes trees of a few hundred rows worth hearing.
TREES: dict[str, Any] = {"l2_regularization": 10.0, "min_samples_leaf": 10, "early_stopping": False}


def kind_of(X: Any) -> str:
    """Tell "text", "mixed" tables (words or gaps), "numbers" and "vectors" of many numbers apart.

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
    columns = Columns.of(X)
    if columns.categorical.any() or np.isnan(columns.encode(X)).any():
        return "mixed"
    return "numbers" if len(columns) <= MOST_COLUMNS else "vectors"


def default_estimator(
    X: Any, classification: bool, random_state: Any = None, sample_weight: Any = None
) -> Any:
    """Return the learner for rows of this kind, not yet trained.

    Mixed tables get boosted trees, which take the table as `Columns.encode` writes it; tables of
    numbers a linear model of standardised columns, vectors a linear model; text a linear model of
    tf-idf.  How strongly a linear classifier of vectors is regularised depends on their variance,
    in which a row of sample_weight 2 counts as two rows.

    Examples
    --------
    >>> default_estimator(np.zeros((9, 300)), classification=False)
    Ridge()
    """
    kind = kind_of(X)
    if kind == "mixed":
        trees = HistGradientBoostingClassifier if classification else HistGradientBoostingRegressor
        words = Columns.of(X).categorical
        chosen = {**TREES, "categorical_features": words if words.any() else None}
        return trees(**chosen, random_state=random_state)
    if kind == "text":
        linear = LogisticRegression(C=10.0, max_iter=1000) if classification else Ridge(0.2)
        return make_pipeline(TfidfVectorizer(**_words(X)), linear)
    if kind == "numbers":
        linear = LogisticRegression(max_iter=1000) if classification else Ridge()
        return make_pipeline(StandardScaler(), linear)
    return (
        LogisticRegression(C=_strength(X, sample_weight), max_iter=1000)
        if classification
        else Ridge()
    )


def _words(texts: Any) -> dict[str, Any]:
    """Say how to cut texts: by plain letters, or by those of any language where they need it."""
    return WORDS | ({"token_pattern": ANY_LETTERS} if _is_foreign(texts) else {})


def _is_foreign(texts: Any) -> bool:
    some = "".join(islice((text for text in texts if isinstance(text, str)), LOOKED_AT))
    letters = sum(map(str.isalpha, some))
    return sum(c.isalpha() and not c.isascii() for c in some) > FOREIGN * letters


def _strength(X: Any, weight: Any = None) -> float:
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


def candidates(
    rows: Rows, columns: Columns | None = None, random_state: Any = None
) -> dict[str, Any]:
    """Name the densities, and classifiers of sources, that rows of this kind may be weighed by.

    Each density of a source by itself can also be learned at a site that shares no rows; the
    classifiers see all rows, which are in one place here.  `columns` are those that the rows were
    encoded by.
    """
    kind = "mixed" if columns is not None else kind_of(rows.X)
    seed = {"random_state": random_state}
    if kind == "text":
        linear = LogisticRegression(C=10.0, max_iter=1000)
        words = make_pipeline(TfidfVectorizer(**_words(rows.X)), linear)
        density = TextDensity()
        if _is_foreign(rows.X):
            density.set_params(token_pattern=ANY_LETTERS)
        return {"words": density, "classifier of texts": DomainClassifier(words)}
    if hasattr(rows.X, "toarray"):
        return {"linear classifier": DomainClassifier()}
    if kind == "vectors":
        return {"kernels": GaussianKDE(**seed), "linear classifier": DomainClassifier()}
    # Half of the draws from marginals, half from centres: on no table worse than one of them alone.
    reference = Reference.of(rows.X, "both", rows.domain, columns=columns, **seed)
    boosted = DomainClassifier.boosted(random_state)
    found = {"contrast": ContrastiveDensity(reference=reference, **seed), "trees": boosted}
    if columns is not None and columns.categorical.any():
        boosted.estimator.set_params(categorical_features=columns.categorical)
    if kind == "numbers":
        found["kernels"] = GaussianKDE(scale="shared", **seed)
        found["linear classifier"] = DomainClassifier()
    return found
