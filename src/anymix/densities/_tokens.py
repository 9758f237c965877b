"""Texts cut into tokens, lists of lists as one list, and tokens as ids: no loop over tokens."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise, repeat
from typing import Any

import numpy as np

from anymix._arrays import IntArray

TOKENS = 2**20  # held at a time
WORD = "[a-z']+"  # what a word is, in lower case; whoever reads a packed density cuts texts so


def documents_in(X: Any) -> list[Any]:
    """Return the documents of a list, a series, or a table with one column.

    Examples
    --------
    >>> documents_in(np.array([["a b"], ["c"]], dtype=object))
    ['a b', 'c']
    """
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
    """Return the compiled pattern, or say what is wrong with it."""
    pattern = re.compile(token_pattern)
    if pattern.groups > 1:
        raise ValueError("token_pattern has several groups; write the others as (?:...)")
    return pattern


def cut(texts: Sequence[str], token_pattern: str = WORD, lowercase: bool = True) -> list[list[str]]:
    """Cut texts into tokens.

    Examples
    --------
    >>> cut(["Good book, good plot!", ""])
    [['good', 'book', 'good', 'plot'], []]
    """
    kinds = set(map(type, texts))
    wrong = next((kind.__name__ for kind in kinds if not issubclass(kind, str)), None)
    if wrong is not None:
        raise TypeError(f"each document must be a str; got {wrong}: give gaps as the empty text")
    find = pattern_of(token_pattern).findall
    return [find(text.lower()) for text in texts] if lowercase else [find(text) for text in texts]


def blocks_of(lists: Iterable[Sequence[str]], most: int = TOKENS) -> Iterator[list[Sequence[str]]]:
    """Cut a sequence of lists into blocks of at most so many items; a longer list stands alone.

    Examples
    --------
    >>> list(blocks_of([["a"], ["b", "c", "d"], [], ["e"]], most=2))
    [[['a']], [['b', 'c', 'd'], []], [['e']]]
    """
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
    """Return all items in one list, and (m + 1,) where each of the lists starts and the last ends.

    Examples
    --------
    >>> flatten([["a", "b"], [], ["c"]])
    (['a', 'b', 'c'], array([0, 2, 2, 3]))
    """
    lengths = np.fromiter(map(len, lists), np.int64, len(lists))
    return list(chain.from_iterable(lists)), np.append(0, np.cumsum(lengths))


def known_ids(
    words: Sequence[str], tokens: list[str], bounds: IntArray, other: int = -1
) -> tuple[IntArray, IntArray]:
    """Return the positions of the tokens among the words, and the bounds of what is left.

    A token that is not a word becomes `other`, or is left out if that is -1.

    Examples
    --------
    >>> known_ids(["a", "c"], ["a", "b", "c"], np.array([0, 2, 2, 3]))
    (array([0, 1]), array([0, 1, 1, 2]))
    """
    index = {word: i for i, word in enumerate(words)}
    ids = np.fromiter(map(index.get, tokens, repeat(other)), np.int64, len(tokens))
    known = ids >= 0
    return ids[known], np.append(0, np.cumsum(known))[bounds]


def unflatten(words: Sequence[str], ids: IntArray, bounds: IntArray) -> list[list[str]]:
    """Return the words of the ids, cut into lists at the bounds.

    Examples
    --------
    >>> unflatten(["a", "c"], np.array([0, 1]), np.array([0, 1, 1, 2]))
    [['a'], [], ['c']]
    """
    # The empty word keeps the array one of objects when there are no words.
    flat = np.array([*words, ""], dtype=object)[ids].tolist()
    return [flat[a:b] for a, b in pairwise(bounds.tolist())]
