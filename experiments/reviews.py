"""What the sentiment study fits: regressors, language models and a classifier of domains.

Words are counted once; a vocabulary is a choice of columns, and one RBF kernel matrix

    K_ij = exp(-γ |x_i − x_j|²)

over all reviews serves every regressor of a split, its rivals included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.svm import SVR

from anymix.densities import BigramModel, DomainClassifier, SharedVocabulary
from experiments.loaders import Reviews

Rows = NDArray[np.intp]
Floats = NDArray[np.float64]

# The paper takes them from Mansour, Mohri and Rostamizadeh (2008), who do not print them; these
# give its base errors within its deviations.
GAMMA, C, EPSILON = 0.00078, 8.0, 0.1
# Of five values the best by domain log-loss on rows held out of one split's training rows; they
# are test rows of other splits.
CLASSIFIER_C = 0.1


@dataclass(frozen=True)
class Corpus:
    """All reviews: counts (n, all words), tokens, ratings, domains, and a number for each text."""

    words: NDArray[np.object_]
    counts: csr_array
    tokens: list[list[str]]
    ratings: Floats
    domain: Rows
    text: Rows

    def view(self, rows: Rows | None = None) -> View:
        """Take the words that occur twice in each domain of the given rows, or of all rows.

        Paper: Sec. 5.1.
        """
        known = np.arange(len(self.tokens)) if rows is None else rows
        per_domain = [
            self.counts[known[self.domain[known] == k]].sum(axis=0)
            for k in range(self.domain.max() + 1)
        ]
        shared = np.flatnonzero((np.array(per_domain) >= 2).all(axis=0))
        if not shared.size:
            raise ValueError("No word occurs twice in every domain; give more reviews.")
        counts = self.counts[:, shared].toarray().astype(np.float32)
        return View(self, list(self.words[shared]), counts, rbf(counts, counts))


@dataclass(frozen=True)
class View:
    """The corpus over one vocabulary: counts (n, V) and their kernel (n, n), in float32."""

    corpus: Corpus
    vocabulary: list[str]
    counts: NDArray[np.float32]
    kernel: NDArray[np.float32]

    def documents(self, rows: Rows) -> list[str]:
        """Return the words of some reviews, a blank between them."""
        return [" ".join(self.corpus.tokens[i]) for i in rows]

    @cached_property
    def number(self) -> dict[str, int]:
        """The row of each document, or of one of its copies."""
        everything = np.arange(len(self.corpus.tokens))
        return {document: i for i, document in enumerate(self.documents(everything))}


def read_corpus(reviews: Reviews) -> Corpus:
    """Split the reviews into words, lower case, and count them."""
    reader = SharedVocabulary(min_count=1).fit(reviews.texts)
    counts = reader.transform(reviews.texts)
    tokens = reader.set_params(output="tokens").transform(reviews.texts)
    assert isinstance(counts, csr_array)
    assert isinstance(tokens, list)
    number = {text: i for i, text in enumerate(dict.fromkeys(reviews.texts))}
    text = np.array([number[text] for text in reviews.texts], dtype=np.intp)
    words = reader.get_feature_names_out()
    return Corpus(words, counts, tokens, reviews.ratings, reviews.domain, text)


def rbf(A: NDArray[np.float32], B: NDArray[np.float32]) -> NDArray[np.float32]:
    """exp(-γ |a − b|²) by one matrix product; exponents of whole counts are exact in float32.

    >>> rbf(np.zeros((1, 2), np.float32), np.full((1, 2), 10, np.float32)).round(4)
    array([[0.8556]], dtype=float32)
    """
    K = A @ B.T
    K *= 2
    K -= (A * A).sum(axis=1)[:, None]
    K -= (B * B).sum(axis=1)
    K *= GAMMA
    np.exp(K, out=K)
    return K


class Regressor(NamedTuple):
    """h(x) = Σ_i a_i k(x, x_i) + b over its training rows."""

    rows: Rows
    weights: Floats
    intercept: float

    def predict(self, kernel: NDArray[np.float32]) -> Floats:
        """Predict from the rows k(x, ·) over the training rows, (m, n)."""
        return np.asarray(kernel @ self.weights + self.intercept)


def fit_svr(
    view: View, rows: Rows, targets: Floats | None = None, weights: Floats | None = None
) -> Regressor:
    """Fit a support vector regressor on some rows, to their ratings or to other targets.

    A row of weight w has the price w C of an error.
    """
    K = view.kernel[np.ix_(rows, rows)].astype(np.float64)
    svr = SVR(kernel="precomputed", C=C, epsilon=EPSILON, cache_size=1000)
    y = view.corpus.ratings[rows] if targets is None else targets
    svr.fit(K, y, sample_weight=weights)
    coefficients = np.zeros(len(rows))
    coefficients[svr.support_] = svr.dual_coef_[0]
    return Regressor(rows, coefficients, float(svr.intercept_[0]))


class HeldOut(NamedTuple):
    """What is said of some rows: h_k, log D_k, and a classifier's log-responsibilities, (p, m)."""

    rows: Rows
    predictions: Floats
    log_densities: Floats
    log_classifier: Floats


def fit_bigrams(view: View, parts: Sequence[Rows]) -> list[BigramModel]:
    """Train one language model for each domain, all over the same words.

    Paper: App. E.2.
    """
    tokens = view.corpus.tokens
    return [
        BigramModel(vocabulary=view.vocabulary).fit([tokens[i] for i in rows]) for rows in parts
    ]


def predictions(view: View, regressors: Sequence[Regressor], rows: Rows) -> Floats:
    """h_k of the rows, (p, m)."""
    return np.stack([h.predict(view.kernel[np.ix_(rows, h.rows)]) for h in regressors])


def log_likelihoods(view: View, bigrams: Sequence[BigramModel], rows: Rows) -> Floats:
    """log D_k of the rows' texts, (p, m)."""
    documents = [view.corpus.tokens[i] for i in rows]
    return np.stack([model.score_samples(documents) for model in bigrams])


def fit_and_evaluate(view: View, train: Sequence[Rows], rows: Rows) -> HeldOut:
    """Fit regressors, language models and the classifier on one set of rows, ask about another."""
    seen = np.concatenate(train)
    classifier = DomainClassifier(C=CLASSIFIER_C)
    classifier.fit(csr_array(view.counts[seen]), view.corpus.domain[seen])
    return HeldOut(
        rows,
        predictions(view, [fit_svr(view, part) for part in train], rows),
        log_likelihoods(view, fit_bigrams(view, train), rows),
        classifier.log_responsibilities(csr_array(view.counts[rows])),
    )


def held_out(view: View, train: Sequence[Rows], n_folds: int = 5) -> HeldOut:
    """Evaluate every training row by sources that were fitted without its text, in folds.

    Copies of a text share a fold, so that none is judged by a source that has seen it.
    """
    fold = view.corpus.text % n_folds
    parts = []
    for f in range(n_folds):
        inner = [rows[fold[rows] != f] for rows in train]
        out = np.concatenate([rows[fold[rows] == f] for rows in train])
        parts.append(fit_and_evaluate(view, inner, out))
    rows, *tables = zip(*parts, strict=True)
    return HeldOut(np.concatenate(rows), *(np.concatenate(t, axis=1) for t in tables))
