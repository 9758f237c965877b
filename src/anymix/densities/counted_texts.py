"""Documents whose words were counted once, for all models with the same tokens.

A model of texts is a scikit-learn pipeline that starts with a `TfidfVectorizer`.  Trained on these
documents, or evaluated on them, it uses the common counts; the result is the ordinary pipeline,
with the same predictions as for the texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any, Self, overload

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from anymix._arrays import IntArray

# Parameters of a vectoriser that say how it cuts texts, and those that a common count is made for.
CUTTING = (
    *("input", "encoding", "decode_error", "strip_accents", "lowercase", "token_pattern"),
    *("ngram_range", "analyzer", "stop_words"),
)
PLAIN: dict[str, Any] = {
    **dict.fromkeys(("preprocessor", "tokenizer", "vocabulary", "max_features", "stop_words")),
    **{"max_df": 1.0, "binary": False, "analyzer": "word", "use_idf": True},
}


class CountedTexts(Sequence[str]):
    """A sequence of texts, with the counts of their words (n, words).

    Examples
    --------
    >>> texts = CountedTexts.of(["a good book", "a good pan"], TfidfVectorizer())
    >>> texts.words.tolist(), texts.counts.toarray().tolist()
    (['book', 'good', 'pan'], [[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    >>> texts.take(np.array([1]))[0]
    'a good pan'
    """

    def __init__(
        self,
        texts: list[str],
        counts: csr_matrix,
        words: NDArray[Any],
        cutting: tuple[Any, ...],
        min_df: int,
        column_of: dict[str, int],
    ):
        self.column_of = column_of
        self.texts, self.counts, self.words = texts, counts, words
        self.cutting, self.min_df = cutting, min_df

    @classmethod
    def of(cls, texts: Sequence[str], vectorizer: TfidfVectorizer, min_df: int = 1) -> Self:
        """Count the tokens of texts with this vectoriser; of at least `min_df` texts."""
        settings = {name: getattr(vectorizer, name) for name in CUTTING}
        counter = CountVectorizer(**settings, min_df=min_df, dtype=np.float64)
        listed = list(texts)
        try:
            counts = csr_matrix(counter.fit_transform(listed))
        except ValueError:  # no text has a word
            counts, words = csr_matrix((len(listed), 0)), np.empty(0, dtype=object)
        else:
            words = counter.get_feature_names_out()
        index = {word: j for j, word in enumerate(words.tolist())}
        return cls(listed, counts, words, cutting_of(vectorizer), min_df, index)

    def __len__(self) -> int:
        return len(self.texts)

    @overload
    def __getitem__(self, key: int) -> str: ...

    @overload
    def __getitem__(self, key: slice) -> Sequence[str]: ...

    def __getitem__(self, key: Any) -> Any:
        return self.texts[key]

    def take(self, rows: IntArray) -> CountedTexts:
        """Return some of the texts."""
        some = [self.texts[i] for i in rows.tolist()]
        settings = self.cutting, self.min_df, self.column_of
        return CountedTexts(some, self.counts[rows], self.words, *settings)

    def counts_of(self, vocabulary: dict[str, int]) -> csr_matrix:
        """Counts (n, v) of the words of a vocabulary, in its columns."""
        if self.words.size <= len(vocabulary):
            found = map(vocabulary.get, self.words.tolist(), repeat(-1))
            places = np.fromiter(found, np.int32, self.words.size)
        else:
            found = map(self.column_of.get, vocabulary, repeat(-1))
            theirs = np.fromiter(found, np.int32, len(vocabulary))
            own = np.fromiter(vocabulary.values(), np.int32, len(vocabulary))
            places = np.full(self.words.size, -1, dtype=np.int32)
            places[theirs[theirs >= 0]] = own[theirs >= 0]
        columns = places[self.counts.indices]
        known = columns >= 0
        bounds = np.append(0, np.cumsum(known))[self.counts.indptr]
        parts = self.counts.data[known], columns[known], bounds
        counts = csr_matrix(parts, shape=(len(self), len(vocabulary)))
        counts.sort_indices()
        return counts


def taken(X: Any, rows: IntArray) -> Any:
    """Return some rows of texts or of a table."""
    return X.take(rows) if isinstance(X, CountedTexts) else _safe_indexing(X, rows)


def cutting_of(vectorizer: Any) -> tuple[Any, ...]:
    """Return the tokenisation settings of a vectoriser."""
    return tuple(getattr(vectorizer, name) for name in CUTTING)


def vectorizer_of(model: Any) -> TfidfVectorizer | None:
    """The vectoriser that a pipeline starts with, if common counts serve it."""
    if not isinstance(model, Pipeline) or len(model.steps) < 2:
        return None
    first = model.steps[0][1]
    if type(first) is not TfidfVectorizer or not isinstance(first.min_df, int):
        return None
    return first if all(getattr(first, name) == value for name, value in PLAIN.items()) else None


def counted(texts: Any, models: Sequence[Any], training: bool = False) -> Any:
    """Count the words of texts once, for all models that can use the counts.

    Words of fewer training texts than the models' `min_df` are left out.  Other rows are returned
    unchanged.

    >>> counted(["a text"], [object()])
    ['a text']
    """
    if isinstance(texts, CountedTexts):
        return texts
    vectorizer = next(filter(None, map(vectorizer_of, models)), None)
    if (
        vectorizer is None
        or not isinstance(texts, list | tuple | np.ndarray)
        or getattr(texts, "ndim", 1) > 1
    ):
        return texts
    listed = [text for text in texts if isinstance(text, str)]
    if not listed or len(listed) < len(texts):
        return texts
    return CountedTexts.of(listed, vectorizer, vectorizer.min_df if training else 1)


def _fits(model: Any, X: Any) -> bool:
    vectorizer = vectorizer_of(model) if isinstance(X, CountedTexts) else None
    if vectorizer is None or vectorizer.min_df < X.min_df:
        return False
    return bool(cutting_of(vectorizer) == X.cutting)


def fit_on(model: Any, X: Any, *y: Any, **parameters: Any) -> Any:
    """Fit a model in place, as `model.fit(X, y)`; from common counts where it can use them."""
    if not _fits(model, X):
        return model.fit(X, *y, **parameters)
    vectorizer = model.steps[0][1]
    frequent = np.bincount(X.counts.indices, minlength=X.words.size) >= max(vectorizer.min_df, 1)
    if not frequent.any():  # the vectoriser says what is wrong
        return model.fit(list(X), *y, **parameters)
    words = X.words[frequent].tolist()
    vectorizer.vocabulary_ = {word: j for j, word in enumerate(words)}
    counts = X.counts_of(vectorizer.vocabulary_)
    weighing = _weighing(vectorizer).fit(counts)
    vectorizer.idf_ = weighing.idf_
    rest = Pipeline(model.steps[1:])
    rest.fit(weighing.transform(counts), *y, **parameters)
    return model


def _weighing(vectorizer: TfidfVectorizer) -> TfidfTransformer:
    names = ("norm", "use_idf", "smooth_idf", "sublinear_tf")
    return TfidfTransformer(**{name: getattr(vectorizer, name) for name in names})


def ask(model: Any, method: str, X: Any) -> Any:
    """Return `model.method(X)`; the model itself is called if it has no such method."""
    if not _fits(model, X):
        return getattr(model, method, model)(X)
    vectorizer = model.steps[0][1]
    weighing = _weighing(vectorizer)
    weighing.idf_ = vectorizer.idf_
    rows = weighing.transform(X.counts_of(vectorizer.vocabulary_))
    return getattr(Pipeline(model.steps[1:]), method)(rows)
