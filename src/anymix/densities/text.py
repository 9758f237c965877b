"""From documents to the words that all domains share, as counts or as lists of tokens."""

import re
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from anymix._arrays import IntArray
from anymix.densities._tokens import flatten, known_ids, unflatten


class SharedVocabulary(TransformerMixin, BaseEstimator):
    """Turn documents into counts or lists of the words that every domain uses.

    Densities of several sources can be compared only on words that all of them may know. The
    vocabulary is the words that occur at least `min_count` times in each domain.

    Parameters
    ----------
    min_count : int, default=2
        How often a word must occur in each domain.
    token_pattern : str, default="[a-z']+"
        Regular expression of a token.
    lowercase : bool, default=True
        Whether documents are put in lower case first.
    output : {"counts", "tokens"}, default="counts"
        What `transform` returns: a sparse matrix of word counts, or the documents as lists of
        tokens (in their order, other words left out), as `BigramModel` takes them.

    Attributes
    ----------
    vocabulary_ : list of str
        The shared words, sorted; the columns of the counts.

    Examples
    --------
    >>> reviews = ["Good book, good plot", "a good pan!", "The plot is good.", "Good? A pan"]
    >>> words = SharedVocabulary(min_count=1).fit(reviews, sample_domain=[0, 1, 0, 1])
    >>> words.vocabulary_
    ['good']
    >>> words.transform(reviews).toarray().ravel()
    array([2, 1, 1, 1])
    >>> SharedVocabulary(output="tokens").fit_transform(reviews)
    [['good', 'good', 'plot'], ['a', 'good', 'pan'], ['plot', 'good'], ['good', 'a', 'pan']]

    Paper: Sec. 5.1.
    """

    vocabulary_: list[str]

    def __init__(
        self,
        min_count: int = 2,
        *,
        token_pattern: str = "[a-z']+",
        lowercase: bool = True,
        output: str = "counts",
    ) -> None:
        self.min_count = min_count
        self.token_pattern = token_pattern
        self.lowercase = lowercase
        self.output = output

    def fit(self, X: Iterable[str], y: Any = None, sample_domain: ArrayLike | None = None) -> Self:
        """Find the words that occur often enough in every domain.

        Parameters
        ----------
        X : iterable of str
            Documents.
        y : ignored
        sample_domain : (m,) array, optional
            The domain of each document; by default they all belong to one.
        """
        if self.output not in ("counts", "tokens"):
            raise ValueError(f"output={self.output!r} is not known; choose 'counts' or 'tokens'")
        if self.min_count < 1:
            raise ValueError(f"min_count is {self.min_count}; it must be 1 or more")
        tokens, bounds = self._tokens(X)
        domain = _domains(sample_domain, len(bounds) - 1)
        words, n_domains = sorted(set(tokens)), int(domain.max(initial=0)) + 1
        ids, _ = known_ids(words, tokens, bounds)
        cells = np.repeat(domain, np.diff(bounds)) * len(words) + ids
        counts = np.bincount(cells, minlength=n_domains * len(words))
        shared = (counts.reshape(n_domains, len(words)) >= self.min_count).all(axis=0)
        if not shared.any():
            raise ValueError(
                f"no word occurs at least {self.min_count} times in each of the {n_domains} "
                "domains; lower min_count or give more documents"
            )
        self.vocabulary_ = [words[i] for i in np.flatnonzero(shared)]
        return self

    def transform(self, X: Iterable[str]) -> csr_array | list[list[str]]:
        """Return the counts, a sparse (m, V) matrix, or the list of token lists."""
        check_is_fitted(self)
        ids, bounds = known_ids(self.vocabulary_, *self._tokens(X))
        if self.output == "tokens":
            return unflatten(self.vocabulary_, ids, bounds)
        shape = len(bounds) - 1, len(self.vocabulary_)
        counts = csr_array((np.ones(len(ids), dtype=np.int64), ids, bounds), shape=shape)
        counts.sum_duplicates()
        return counts

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the words, in the order of the columns."""
        check_is_fitted(self)
        return np.array(self.vocabulary_, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        return tags

    def _tokens(self, X: Iterable[str]) -> tuple[list[str], IntArray]:
        """Return the tokens of all documents in one list, and their bounds."""
        if isinstance(X, str | bytes) or not isinstance(X, Iterable):
            raise TypeError(f"documents must be a list of str; got {type(X).__name__}")
        texts = list(X)
        wrong = next((text for text in texts if not isinstance(text, str)), None)
        if wrong is not None:
            raise TypeError(f"each document must be a str; got {type(wrong).__name__}")
        pattern = re.compile(self.token_pattern)
        if pattern.groups > 1:
            raise ValueError("token_pattern has several groups; write the others as (?:...)")
        if self.lowercase:
            texts = [text.lower() for text in texts]
        return flatten([pattern.findall(text) for text in texts])


def _domains(sample_domain: ArrayLike | None, n_documents: int) -> IntArray:
    """Return the domains as 0 .. p-1."""
    if sample_domain is None:
        return np.zeros(n_documents, dtype=np.int64)
    domain = np.asarray(sample_domain)
    if domain.shape != (n_documents,):
        raise ValueError(
            f"sample_domain has the shape {domain.shape}; it needs one entry for each of the "
            f"{n_documents} documents"
        )
    return np.unique(domain, return_inverse=True)[1]
