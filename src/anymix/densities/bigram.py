"""Bigram language models as densities of documents."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from anymix._arrays import FloatArray, IntArray
from anymix._parameters import Number, Words, check_parameters
from anymix.densities.bigram_formats import (
    BEGIN,
    END,
    UNKNOWN,
    from_arrays,
    read_arpa,
    to_arrays,
    write_arpa,
)
from anymix.densities.bigram_table import SMOOTHINGS, UNIGRAM, BigramTable, smooth_counts
from anymix.densities.density import Arrays, Travels
from anymix.densities.tokens import (
    MIN_DOCUMENTS,
    PairCounts,
    blocks_of,
    count_pairs,
    flatten,
    known_ids,
    unflatten,
)

Documents = Iterable[Sequence[str]]


class BigramModel(Travels, BaseEstimator):
    """A smoothed bigram model of documents, each a list of tokens.

    A document w_1 .. w_n has the probability P(w_1 | begin) P(w_2 | w_1) .. P(end | w_n), so the
    probabilities of all documents over the vocabulary sum to 1. Four smoothings are those of
    OpenGrm NGram with its default options; see `bigram_table.py`. With the fifth, "unigram", the
    word before says nothing: P(w | h) = P(w), and no pair is listed.

    To compare the scores of several sources, give all their models one `vocabulary`: only then do
    they score the same words of a document.

    Parameters
    ----------
    smoothing : {"katz", "kneser_ney", "witten_bell", "absolute", "unigram"}, default="katz"
        How pairs of words that training has not met get their probability.
    unknown : {"drop", "map"}, default="drop"
        A word outside the vocabulary is left out of the document, or mapped to "<unk>", which is
        then a word like the others. Both happen in training as well.
    min_count : int, default=1
        Pairs of words, and words if the vocabulary is learned, that occur less often in training
        are not listed in the model, so that a model given away does not quote rare text.
    vocabulary : sequence of str, optional
        The words of the model. A word that training does not meet counts as met half a time. By
        default, all words of the training documents that occur `min_count` times.

    Attributes
    ----------
    vocabulary_ : list of str
        The words; their positions are the ids of the table.
    table_ : BigramTable
        The log-probabilities.

    Examples
    --------
    >>> docs = [["the", "cat", "sat"], ["the", "dog", "sat"], ["the", "cat"]]
    >>> model = BigramModel(smoothing="witten_bell").fit(docs)
    >>> model.score_samples([["the", "cat"], ["cat", "the"], []]).round(2)
    array([-1.9 , -7.3 , -2.69])
    >>> round(model.perplexity(docs), 3)
    1.831
    >>> len(model.sample(5, random_state=0))
    5

    Paper: App. E.2.
    """

    kind = "bigram"
    takes = "tokens"

    vocabulary_: list[str]
    table_: BigramTable
    # What was counted, if this model was fitted here, and whether rare words were left out.
    _pairs: PairCounts | None = None
    _is_common: bool = False

    _takes: ClassVar = {
        "smoothing": Words(*SMOOTHINGS),
        "unknown": Words("drop", "map"),
        "min_count": Number(1, whole=True),
    }

    def __init__(
        self,
        smoothing: str = "katz",
        *,
        unknown: str = "drop",
        min_count: int = 1,
        vocabulary: Sequence[str] | None = None,
    ) -> None:
        self.smoothing = smoothing
        self.unknown = unknown
        self.min_count = min_count
        self.vocabulary = vocabulary

    def fit(self, X: Documents, y: Any = None) -> Self:
        """Count the pairs of words of the documents and smooth the counts.

        Parameters
        ----------
        X : iterable of lists of str
            Documents as tokens; at least one.
        y : ignored
        """
        check_parameters(self)
        tokens, bounds = flatten(self._documents(X))
        if len(bounds) == 1:
            raise ValueError("the corpus is empty; give at least one document to learn from")
        self.vocabulary_ = self._words(tokens)
        (contexts, nexts), starts = self._steps(tokens, bounds)
        if self.smoothing == UNIGRAM:
            # One context for all words: their counts, and no pair of words.
            contexts = np.full_like(nexts, len(self.vocabulary_))
        pairs = count_pairs((contexts, nexts), starts, len(self.vocabulary_) + 1)
        self._learn(pairs, pairs.counts >= self.min_count)
        return self

    def _documents(self, X: Documents) -> list[Sequence[str]]:
        """Return the documents as lists of tokens."""
        return _check_documents(X)

    def _learn(self, pairs: PairCounts, listed: NDArray[np.bool_]) -> None:
        listed = listed & (self.smoothing != UNIGRAM)
        self.table_ = smooth_counts(*pairs[:2], pairs.size, self.smoothing, listed)
        self._pairs = pairs

    def score_samples(self, X: Documents) -> FloatArray:
        """Return the natural log-probability of each whole document, (m,)."""
        check_is_fitted(self)
        _check_iterable(X)
        logs = [np.empty(0)]
        for block in blocks_of(X):
            steps, starts = self._steps(*flatten(self._documents(block)))
            logs.append(np.add.reduceat(self.table_.log_prob(*steps), starts))
        return np.concatenate(logs)

    def perplexity(self, X: Documents) -> float:
        """Return exp(-mean log P(w | h)) over all words and ends of the documents."""
        check_is_fitted(self)
        steps, starts = self._steps(*flatten(self._documents(X)))
        if not len(starts):
            raise ValueError("the perplexity of no documents is not defined; give at least one")
        return float(np.exp(-self.table_.log_prob(*steps).mean()))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> list[list[str]]:
        """Draw whole documents.

        Parameters
        ----------
        n_samples : int
            Number of documents.
        random_state : int, RandomState or None
            The source of randomness, as in scikit-learn.
        """
        check_is_fitted(self)
        if n_samples < 0:
            raise ValueError(f"n_samples is {n_samples}; it must not be negative")
        ids, lengths = self.table_.sample(n_samples, check_random_state(random_state))
        return unflatten(self.vocabulary_, ids, np.append(0, np.cumsum(lengths)))

    def to_arpa(self, path: str | Path) -> None:
        """Write the model as an ARPA file, gzipped if the name ends in `.gz`."""
        check_is_fitted(self)
        write_arpa(path, self.vocabulary_, self.table_)

    @classmethod
    def from_arpa(cls, path: str | Path) -> Self:
        """Return the fitted model of an ARPA file, of this or of another tool.

        The file does not say how the model was smoothed, so `smoothing` has no meaning then.
        Unknown words are mapped if the file has "<unk>", and dropped otherwise.
        """
        words, table = read_arpa(path)
        return cls._of(words, "map" if UNKNOWN in words else "drop", table)

    @classmethod
    def _of(cls, words: list[str], unknown: str, table: BigramTable) -> Self:
        model = cls(unknown=unknown, vocabulary=words)
        model.vocabulary_, model.table_ = words, table
        return model

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the table's log-probabilities and keys, and the words as bytes of JSON."""
        check_is_fitted(self)
        return to_arrays(self.vocabulary_, self.unknown, self.table_)

    @classmethod
    def from_arrays(cls, arrays: Arrays, n_features: int = 1) -> Self:
        """Build the model from arrays, or raise a ValueError that says what is invalid."""
        return cls._of(*from_arrays(arrays))

    def reveals(self) -> str:
        """Say how many words and pairs of words are revealed, and how rare they may be."""
        sentence = f"{len(self.vocabulary_)} words and {len(self.table_.keys)} pairs of words, "
        if self._is_common:
            return f"{sentence}each met in {MIN_DOCUMENTS} documents or more, or in none."
        if self._pairs is None:
            return f"{sentence}of which it is not known how often they were met."
        return f"{sentence}each pair met {self.min_count} time(s) or more in training."

    def shareable(self) -> Self:
        """Leave out words and pairs of words that occur in fewer than five documents.

        A rare word is dropped, or counts as unknown if unknown words are mapped. A vocabulary that
        was given stays complete, so that sources can be compared: its rare words count as
        unseen.
        """
        check_is_fitted(self)
        if self._pairs is None or self._is_common:
            return self
        words, met = self.vocabulary_, self._pairs.word_documents
        rare = (met > 0) & (met < MIN_DOCUMENTS)
        rare[-1] = False  # the boundary
        instead = words.index(UNKNOWN) if self.unknown == "map" else None
        if instead is not None:
            rare[instead] = False
        pairs = self._pairs.without(rare, instead)
        if self.vocabulary is None:
            pairs = pairs.renumbered(~rare)
            words = [word for word, out in zip(words, rare[:-1], strict=True) if not out]
        if not words or not len(pairs.keys):
            raise ValueError(
                f"no word occurs in {MIN_DOCUMENTS} documents, so that each would reveal a "
                "single one; learn the model from more documents, or keep the words as they are"
            )
        shared = type(self)(**{**self.get_params(), "vocabulary": words})
        shared.vocabulary_ = words
        common = (pairs.documents >= MIN_DOCUMENTS) & (pairs.counts >= self.min_count)
        shared._learn(pairs, common)
        shared._is_common = True
        return shared

    def _words(self, tokens: list[str]) -> list[str]:
        """Return the vocabulary: given, or learned from the tokens."""
        if self.vocabulary is None:
            counts = Counter(tokens)
            words = sorted(word for word, n in counts.items() if n >= self.min_count)
            if tokens and not words:
                raise ValueError(f"no word occurs {self.min_count} times; lower min_count")
        else:
            words = list(self.vocabulary)
            if isinstance(self.vocabulary, str) or not all(isinstance(w, str) for w in words):
                raise TypeError("the vocabulary must be a list of str; give one str for each word")
            if len(set(words)) != len(words):
                twice = Counter(words).most_common(1)[0][0]
                raise ValueError(f"the vocabulary has {twice!r} twice; give each word once")
        reserved = {BEGIN, END}.intersection(words)
        if reserved:
            raise ValueError(
                f"{sorted(reserved)} stand for the ends of a document and cannot be words; "
                "take them out, the model adds them by itself"
            )
        adds_unknown = self.unknown == "map" and UNKNOWN not in words
        return [*words, UNKNOWN] if adds_unknown else words

    def _steps(
        self, tokens: list[str], bounds: IntArray
    ) -> tuple[tuple[IntArray, IntArray], IntArray]:
        """Return all transitions of the documents, and where each document starts in them."""
        words = self.vocabulary_
        other = words.index(UNKNOWN) if self.unknown == "map" else -1
        ids, bounds = known_ids(words, tokens, bounds, other)
        stream = np.insert(ids, bounds, len(words))
        return (stream[:-1], stream[1:]), bounds[:-1] + np.arange(len(bounds) - 1)


def _check_iterable(docs: Documents) -> None:
    if isinstance(docs, str | bytes) or not isinstance(docs, Iterable):
        raise TypeError(
            f"documents must be a list of lists of tokens; got {type(docs).__name__}: "
            "split each text into words first"
        )


def _check_documents(docs: Documents) -> list[Sequence[str]]:
    """Return the documents as a list, or say what is wrong with them."""
    _check_iterable(docs)
    docs = list(docs)
    wrong = next((doc for doc in docs if not isinstance(doc, list | tuple | np.ndarray)), None)
    if wrong is not None:
        raise TypeError(
            f"each document must be a list of tokens; got {type(wrong).__name__}: "
            "split each text into words first"
        )
    kinds = set(map(type, chain.from_iterable(docs)))
    wrong_kinds = [kind.__name__ for kind in kinds if not issubclass(kind, str)]
    if wrong_kinds:
        raise TypeError(f"each token must be a str; got {wrong_kinds[0]}: convert them first")
    return docs
