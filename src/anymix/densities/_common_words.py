"""Which words and pairs of words stand in several documents, so that naming them names nobody."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import IntArray

MIN_DOCUMENTS = 5


class PairCounts(NamedTuple):
    """Pairs (h, w) as h size + w, how often each was met, and in how many documents.

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

    def is_rare(self) -> NDArray[np.bool_]:
        """Which words were met, but in fewer than five documents, (size,)."""
        return (self.word_documents > 0) & (self.word_documents < MIN_DOCUMENTS)

    def without(self, rare: NDArray[np.bool_], instead: int | None) -> PairCounts:
        """Let another word stand for the rare ones, or leave out the pairs that they are part of.

        Examples
        --------
        >>> found = count_pairs((np.array([2, 0, 1]), np.array([0, 1, 2])), np.array([0]), 3)
        >>> rare = np.array([False, True, False])
        >>> found.without(rare, None).keys.tolist(), found.without(rare, 0).keys.tolist()
        ([6], [0, 2, 6])
        """
        contexts, nexts = np.divmod(self.keys, self.size)
        if instead is None:
            kept = ~(rare[contexts] | rare[nexts])
            return self._replace(
                keys=self.keys[kept], counts=self.counts[kept], documents=self.documents[kept]
            )
        contexts, nexts = (np.where(rare[one], instead, one) for one in (contexts, nexts))
        keys, inverse = np.unique(contexts * self.size + nexts, return_inverse=True)
        counts, documents = (
            np.bincount(inverse, one).astype(np.int64) for one in (self.counts, self.documents)
        )
        return self._replace(keys=keys, counts=counts, documents=documents)

    def renumbered(self, kept: NDArray[np.bool_]) -> PairCounts:
        """Give the words that are kept new numbers, without gaps."""
        number = np.cumsum(kept) - 1
        contexts, nexts = np.divmod(self.keys, self.size)
        keys = number[contexts] * int(kept.sum()) + number[nexts]
        return self._replace(keys=keys, word_documents=self.word_documents[kept])


def count_pairs(steps: tuple[IntArray, IntArray], starts: IntArray, size: int) -> PairCounts:
    """Count the transitions of documents, of which each begins at one of the starts.

    Examples
    --------
    Two documents "a a" and "a", of the one word 0; the boundary is 1.

    >>> steps = np.array([1, 0, 0, 1, 0]), np.array([0, 0, 1, 0, 1])
    >>> found = count_pairs(steps, np.array([0, 3]), 2)
    >>> found.keys.tolist(), found.counts.tolist(), found.documents.tolist()
    ([0, 1, 2], [1, 2, 2], [1, 2, 2])
    >>> found.word_documents.tolist()
    [2, 2]
    """
    lengths = np.diff(np.append(starts, len(steps[0])))
    if size**2 * (len(starts) + 1) > np.iinfo(np.int64).max:
        raise ValueError(
            f"{size - 1} words and {len(starts)} documents are too many to count pairs of words; "
            "give a smaller vocabulary"
        )
    owner = np.repeat(np.arange(len(starts)), lengths)
    keys, counts, documents = _met(steps[0] * size + steps[1], owner)
    words, _, found = _met(steps[1], owner)
    word_documents = np.zeros(size, dtype=np.int64)
    word_documents[words] = found
    return PairCounts(keys, counts, documents, word_documents)


def _met(values: IntArray, owner: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return the different values, how often each was met, and with how many owners.

    Value and owner are sorted as one whole number, which is far quicker than an order of two.
    """
    n = int(owner[-1]) + 1 if len(owner) else 1
    both = np.sort(values * n + owner)
    anew = np.append(True, np.diff(both) != 0)[: len(both)]
    sorted_values = both // n
    begins = np.append(True, np.diff(sorted_values) != 0)[: len(both)]
    at = np.flatnonzero(begins)
    owners = np.diff(np.append(np.cumsum(anew)[at] - 1, np.sum(anew)))
    return sorted_values[at], np.diff(np.append(at, len(both))), owners


def named(words: Sequence[str], chosen: NDArray[np.bool_]) -> list[str]:
    """Return the words at which `chosen` (V or V + 1,) is true."""
    return [word for word, take in zip(words, chosen, strict=False) if take]
