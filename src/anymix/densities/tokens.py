"""Tokenise texts, flatten token lists, and map tokens to ids, without a loop over tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise, repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import IntArray

TOKENS = 2**20  # held at a time
WORD = "[a-z']+"  # what a word is, in lower case; readers of packed densities cut texts like this


def documents_in(X: Any) -> list[Any]:
    """Return the documents of a list, a series, or a table with one column."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if len(shape) == 2 and shape[1] == 1:
        X = X.iloc[:, 0] if hasattr(X, "iloc") else np.ravel(X)
    if isinstance(X, str | bytes) or not isinstance(X, Iterable) or hasattr(X, "columns"):
        raise TypeError(
            f"documents must be a list of str; got {type(X).__name__}: give one str, or one list "
            "of tokens, for each document"
        )
    return list(X)


def pattern_of(token_pattern: str) -> re.Pattern[str]:
    """Return the compiled pattern; a ValueError says what is wrong with it."""
    pattern = re.compile(token_pattern)
    if pattern.groups > 1:
        raise ValueError("token_pattern has several groups; write the others as (?:...)")
    return pattern


def cut(texts: Sequence[str], token_pattern: str = WORD, lowercase: bool = True) -> list[list[str]]:
    """Cut texts into tokens."""
    kinds = set(map(type, texts))
    wrong = next((kind.__name__ for kind in kinds if not issubclass(kind, str)), None)
    if wrong is not None:
        raise TypeError(f"each document must be a str; got {wrong}: write a missing text as ''")
    find = pattern_of(token_pattern).findall
    return [find(text.lower()) for text in texts] if lowercase else [find(text) for text in texts]


def blocks_of(lists: Iterable[Sequence[str]], most: int = TOKENS) -> Iterator[list[Sequence[str]]]:
    """Split a sequence of lists into blocks of limited size; a longer list is its own block."""
    block: list[Sequence[str]] = []
    n = 0
    for one in lists:
        size = len(one) if hasattr(one, "__len__") else 0
        if block and size and n + size > most:
            yield block
            block, n = [], 0
        block.append(one)
        n += size
    if block:
        yield block


def flatten(lists: Sequence[Sequence[str]]) -> tuple[list[str], IntArray]:
    """Return all items in one list, and where each of the lists starts and the last ends."""
    lengths = np.fromiter(map(len, lists), np.int64, len(lists))
    return list(chain.from_iterable(lists)), np.append(0, np.cumsum(lengths))


def known_ids(
    words: Sequence[str], tokens: list[str], bounds: IntArray, other: int = -1
) -> tuple[IntArray, IntArray]:
    """Positions of the tokens among the words, `other` (-1: left out) if not there; new bounds."""
    index = {word: i for i, word in enumerate(words)}
    ids = np.fromiter(map(index.get, tokens, repeat(other)), np.int64, len(tokens))
    is_known = ids >= 0
    return ids[is_known], np.append(0, np.cumsum(is_known))[bounds]


def unflatten(words: Sequence[str], ids: IntArray, bounds: IntArray) -> list[list[str]]:
    """Return the words of the ids, cut into lists at the bounds."""
    # The empty word keeps the array one of objects when there are no words.
    flat = np.array([*words, ""], dtype=object)[ids].tolist()
    return [flat[a:b] for a, b in pairwise(bounds.tolist())]


MIN_DOCUMENTS = 5


class PairCounts(NamedTuple):
    """Pairs (h, w) as h size + w, their counts, and their numbers of documents.

    `word_documents` (size,) counts the documents of each word; its last entry is the boundary.
    """

    keys: IntArray
    counts: IntArray
    documents: IntArray
    word_documents: IntArray

    @property
    def size(self) -> int:
        """Number of words plus one, for the boundary."""
        return len(self.word_documents)

    def without(self, rare: NDArray[np.bool_], instead: int | None) -> PairCounts:
        """Replace rare words by another one, or leave out pairs with them."""
        contexts, nexts = np.divmod(self.keys, self.size)
        if instead is None:
            kept = ~(rare[contexts] | rare[nexts])
            return self._replace(
                keys=self.keys[kept], counts=self.counts[kept], documents=self.documents[kept]
            )
        contexts, nexts = (np.where(rare[ids], instead, ids) for ids in (contexts, nexts))
        keys, inverse = np.unique(contexts * self.size + nexts, return_inverse=True)
        counts, documents = (
            np.bincount(inverse, ids).astype(np.int64) for ids in (self.counts, self.documents)
        )
        return self._replace(keys=keys, counts=counts, documents=documents)

    def renumbered(self, kept: NDArray[np.bool_]) -> PairCounts:
        """Number the words that are kept consecutively."""
        number = np.cumsum(kept) - 1
        contexts, nexts = np.divmod(self.keys, self.size)
        keys = number[contexts] * int(kept.sum()) + number[nexts]
        return self._replace(keys=keys, word_documents=self.word_documents[kept])


def count_pairs(steps: tuple[IntArray, IntArray], starts: IntArray, size: int) -> PairCounts:
    """Count the transitions of documents, of which each begins at one of the starts."""
    lengths = np.diff(np.append(starts, len(steps[0])))
    if size**2 * (len(starts) + 1) > np.iinfo(np.int64).max:
        raise ValueError(
            f"{size - 1} words and {len(starts)} documents are too many to count pairs of words; "
            "give a smaller vocabulary"
        )
    owner = np.repeat(np.arange(len(starts)), lengths)
    keys, counts, documents = _met(steps[0] * size + steps[1], owner)
    words, _, met = _met(steps[1], owner)
    word_documents = np.zeros(size, dtype=np.int64)
    word_documents[words] = met
    return PairCounts(keys, counts, documents, word_documents)


def _met(values: IntArray, owner: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return the different values, how often each was met, and with how many owners."""
    n = int(owner[-1]) + 1 if len(owner) else 1
    both = np.sort(values * n + owner)
    anew = np.append(True, np.diff(both) != 0)[: len(both)]
    sorted_values = both // n
    begins = np.append(True, np.diff(sorted_values) != 0)[: len(both)]
    at = np.flatnonzero(begins)
    owners = np.diff(np.append(np.cumsum(anew)[at] - 1, np.sum(anew)))
    return sorted_values[at], np.diff(np.append(at, len(both))), owners
