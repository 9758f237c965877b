"""How likely is a text under each source?  Documents as they are, words that all sources share."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from anymix._arrays import FloatArray
from anymix._parameters import check_parameters
from anymix.densities._tokens import WORD, cut, documents_in
from anymix.densities.bigram import BigramModel
from anymix.densities.text import count_words, shared_words


class TextDensity(BigramModel):
    """A language model of raw documents, on the words that occur in any source.

    It is a `BigramModel` that cuts texts into words by itself. To compare the scores of several
    sources, all of them need one vocabulary: `with_shared` takes it from documents of all sources,
    and `SharedVocabulary.fit_counts` makes it for sites that do not share documents.

    By default the words of a document are independent, P(w_1 .. w_n) = P(w_1) .. P(w_n) P(end):
    on reviews and tweets that told sources apart better than pairs of words, and nothing but
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
        """Leave out words that stand in fewer than five documents; see `BigramModel`."""
        shared = super().shareable()
        shared._of_texts = self._of_texts
        return shared

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of a `BigramModel`, unless texts are cut in another way than usual."""
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
