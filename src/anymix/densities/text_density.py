"""Densities of texts, and vocabularies that domains share."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from anymix._arrays import FloatArray
from anymix._parameters import Number, Words, check_parameters
from anymix.densities.bigram import BigramModel
from anymix.densities.bigram_formats import LONGEST_WORD, MOST_WORDS
from anymix.densities.density import domain_codes
from anymix.densities.tokens import (
    MIN_DOCUMENTS,
    WORD,
    cut,
    documents_in,
    flatten,
    known_ids,
    pattern_of,
    unflatten,
)


class SharedVocabulary(TransformerMixin, BaseEstimator):
    """Turn documents into counts or token lists over a vocabulary that all domains share.

    Densities of several sources can be compared only if they score the same words. The paper's
    vocabulary is the words that occur at least `min_count` times in every domain; it leaves out
    words that separate domains. With `words="any"` the vocabulary is the union: the
    words that occur so often in all domains together.

    Sites that may not share documents call `word_counts` on their own and send the
    result; `fit_counts` then makes the vocabulary. Both are plain JSON.

    Parameters
    ----------
    min_count : int, default=2
        How often a word must occur, in each domain or in all together.
    words : {"every", "any"}, default="every"
        Words that occur so often in every domain, or words that occur so often at all.
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
    >>> union = SharedVocabulary(words="any", output="tokens")
    >>> union.fit_transform(reviews, sample_domain=[0, 1, 0, 1])
    [['good', 'good', 'plot'], ['a', 'good', 'pan'], ['plot', 'good'], ['good', 'a', 'pan']]

    Two sites, each of which names only words of two documents or more:

    >>> counts = [union.word_counts(reviews[k::2], min_documents=2) for k in (0, 1)]
    >>> counts[1]
    {'a': 2, 'good': 2, 'pan': 2}
    >>> union.fit_counts(counts).vocabulary_
    ['a', 'good', 'pan', 'plot']

    Paper: Sec. 5.1.
    """

    vocabulary_: list[str]

    _takes: ClassVar = {
        "output": Words("counts", "tokens"),
        "words": Words("every", "any"),
        "min_count": Number(1, whole=True),
    }

    def __init__(
        self,
        min_count: int = 2,
        *,
        words: str = "every",
        token_pattern: str = WORD,
        lowercase: bool = True,
        output: str = "counts",
    ) -> None:
        self.min_count = min_count
        self.words = words
        self.token_pattern = token_pattern
        self.lowercase = lowercase
        self.output = output

    def fit(self, X: Iterable[str], y: Any = None, sample_domain: ArrayLike | None = None) -> Self:
        """Find the words that occur often enough.

        Parameters
        ----------
        X : iterable of str
            Documents.
        y : ignored
        sample_domain : (m,) array, optional
            The domain of each document; by default they all belong to one.
        """
        check_parameters(self)
        counts = count_words(self._tokens(X), sample_domain)
        self.vocabulary_ = shared_words(counts, self.min_count, self.words)
        return self

    def word_counts(self, X: Iterable[str], min_documents: int = MIN_DOCUMENTS) -> dict[str, int]:
        """Count the words of a site's documents; words of few documents are left out.

        Parameters
        ----------
        X : iterable of str
            Documents of one site.
        min_documents : int, default=5
            A word that occurs in fewer documents is left out.

        Returns
        -------
        dict
            How often each word occurs, in the order of the alphabet.
        """
        if min_documents < 1:
            raise ValueError(f"min_documents is {min_documents}; it must be 1 or more")
        documents = self._tokens(X)
        counts = Counter(chain.from_iterable(documents))
        met = Counter(chain.from_iterable(map(set, documents)))
        return {word: counts[word] for word in sorted(met) if met[word] >= min_documents}

    def fit_counts(self, counts: Sequence[Mapping[str, int]]) -> Self:
        """Make the vocabulary from the word counts of all sites.

        Parameters
        ----------
        counts : list of dict
            What `word_counts` returned at each site; refused if it is anything else.
        """
        check_parameters(self)
        find = pattern_of(self.token_pattern).findall
        for k, counted in enumerate(counts):
            # Refuse what is not a count of words: it may come from anyone.
            where = f"the word counts of site {k}"
            if not isinstance(counted, Mapping) or len(counted) > MOST_WORDS:
                raise ValueError(
                    f"{where} must be a dict of at most {MOST_WORDS} words; make it anew"
                )
            for word, n in counted.items():
                text = isinstance(word, str) and len(word) <= LONGEST_WORD and find(word) == [word]
                if not (text and type(n) is int and 0 < n < 2**53):
                    raise ValueError(
                        f"{where} has {word!r:.50}: {n!r:.50}, which is no word of this "
                        "token_pattern with its count; make them with word_counts of the same "
                        "SharedVocabulary"
                    )
        self.vocabulary_ = shared_words(counts, self.min_count, self.words)
        return self

    def transform(self, X: Iterable[str]) -> csr_array | list[list[str]]:
        """Return the counts, a sparse (m, V) matrix, or the list of token lists."""
        check_is_fitted(self)
        ids, bounds = known_ids(self.vocabulary_, *flatten(self._tokens(X)))
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

    def _tokens(self, X: Iterable[str]) -> list[list[str]]:
        return cut(documents_in(X), self.token_pattern, self.lowercase)


def count_words(
    documents: Sequence[Sequence[str]], sample_domain: ArrayLike | None = None
) -> list[Counter[str]]:
    """Count the words of each domain's documents, which are lists of tokens."""
    domain = domain_codes(sample_domain, len(documents))
    parts = (np.flatnonzero(domain == k).tolist() for k in range(domain.max(initial=0) + 1))
    return [Counter(chain.from_iterable(documents[i] for i in rows)) for rows in parts]


def shared_words(counts: Sequence[Mapping[str, int]], min_count: int, words: str) -> list[str]:
    """Return the words that every domain, or all together ("any"), has `min_count` times."""
    if words == "any":
        total = Counter[str]()
        for counted in counts:
            total.update(counted)
        often = {word for word, n in total.items() if n >= min_count}
    else:
        sets = [{word for word, n in counted.items() if n >= min_count} for counted in counts]
        often = set.intersection(*sets) if sets else set()
    if not often:
        where = "all domains together" if words == "any" else f"each of the {len(counts)} domains"
        raise ValueError(
            f"no word occurs at least {min_count} times in {where}; lower min_count or give more "
            "documents"
        )
    return sorted(often)


class TextDensity(BigramModel):
    """A language model of raw documents, on the words that occur in any source.

    It is a `BigramModel` with a tokenizer. To compare the scores of several
    sources, all of them need one vocabulary: `with_shared` takes it from documents of all sources,
    and `SharedVocabulary.fit_counts` makes it for sites that do not share documents.

    By default the words of a document are independent, P(w_1 .. w_n) = P(w_1) .. P(w_n) P(end):
    on reviews and tweets that separated sources better than pairs of words, and nothing but
    counts of words leaves a site.

    Parameters
    ----------
    smoothing : {"unigram", "katz", "kneser_ney", "witten_bell", "absolute"}, default="unigram"
        Whether the word before counts, and how pairs that training has not met are smoothed.
    unknown : {"drop", "map"}, default="drop"
        A word outside the vocabulary is left out, or mapped to "<unk>".
    min_count : int, default=2
        Words that occur less often, in all sources together, are left out, and pairs of words
        that occur less often in a source.
    vocabulary : sequence of str, optional
        The words of the model; by default those of `with_shared`, or else of the documents of
        `fit`.
    token_pattern : str, default="[a-z']+"
        Regular expression of a word, in lower case. A density with another one cannot be packed.

    Attributes
    ----------
    vocabulary_ : list of str
        The words; their positions are the ids of the table.
    table_ : BigramTable
        The log-probabilities.

    Examples
    --------
    >>> from sklearn.base import clone
    >>> books = ["A good plot, a good end.", "The plot was bad", "Good plot"]
    >>> pans = ["A good pan for eggs!", "The pan was bad: eggs stick", "good pan"]
    >>> shared = TextDensity().with_shared(books + pans)
    >>> shared.vocabulary
    ['a', 'bad', 'eggs', 'good', 'pan', 'plot', 'the', 'was']
    >>> densities = [clone(shared).fit(texts) for texts in (books, pans)]
    >>> [density.score_samples(["Good eggs", "a plot!"]).round(1).tolist() for density in densities]
    [[-6.6, -5.2], [-5.5, -7.6]]
    >>> densities[1].sample(2, random_state=0)
    ['pan pan pan pan', 'the pan plot']
    """

    kind = "text"

    # Whether `fit` was given texts, so that texts are drawn, too.
    _of_texts: bool = False

    def __init__(
        self,
        smoothing: str = "unigram",
        *,
        unknown: str = "drop",
        min_count: int = 2,
        vocabulary: Sequence[str] | None = None,
        token_pattern: str = WORD,
    ) -> None:
        super().__init__(smoothing, unknown=unknown, min_count=min_count, vocabulary=vocabulary)
        self.token_pattern = token_pattern

    def with_shared(self, X: Iterable[Any], sample_domain: ArrayLike | None = None) -> Self:
        """Return a copy, not fitted, with the words of documents of all sources.

        A vocabulary that was given stays as it is.

        Parameters
        ----------
        X : iterable of str, or of lists of str
            Documents of all sources.
        sample_domain : ignored
            A word counts wherever it occurs.
        """
        shared: Self = clone(self)
        if self.vocabulary is None:
            check_parameters(self)
            counts = count_words(self._documents(X))
            shared.set_params(vocabulary=shared_words(counts, self.min_count, "any"))
        return shared

    def fit(self, X: Iterable[Any], y: Any = None) -> Self:
        """Count the words of the documents and smooth the counts.

        Parameters
        ----------
        X : iterable of str, or of lists of str
            Documents as texts or as tokens; at least one.
        y : ignored
        """
        documents = documents_in(X)
        self._of_texts = _are_texts(documents)
        return super().fit(documents)

    def score_samples(self, X: Iterable[Any]) -> FloatArray:
        """Return the natural log-probability of each whole document, text or tokens, (m,)."""
        # A stream is scored as it comes, and never held as a whole.
        return super().score_samples(X if isinstance(X, Iterator) else documents_in(X))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> list[Any]:
        """Draw whole documents: texts if `fit` was given texts, and lists of tokens otherwise."""
        drawn = super().sample(n_samples, random_state)
        return [" ".join(tokens) for tokens in drawn] if self._of_texts else drawn

    def shareable(self) -> Self:
        """Leave out words that occur in fewer than five documents; see `BigramModel`."""
        shared = super().shareable()
        shared._of_texts = self._of_texts
        return shared

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of a `BigramModel`; only the default tokenisation is allowed."""
        if self.token_pattern != WORD:
            raise ValueError(
                f"a density with token_pattern={self.token_pattern!r} cannot be packed: whoever "
                f"reads it cuts texts into {WORD}; leave token_pattern as it is"
            )
        return super().to_arrays()

    def _documents(self, X: Iterable[Any]) -> list[Sequence[str]]:
        documents = documents_in(X)
        if _are_texts(documents):
            return list(cut(documents, self.token_pattern))
        return super()._documents(documents)


def _are_texts(documents: Sequence[Any]) -> bool:
    return bool(documents) and isinstance(documents[0], str)
