"""A bigram model as named arrays and back: its words are bytes of JSON, its table is numbers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix.densities._base import Arrays, check_arrays, check_shapes, refuse_unless
from anymix.densities._bigram_table import BigramTable
from anymix.densities.arpa import LONGEST_WORD, MOST_PAIRS, MOST_WORDS, SUM_TOLERANCE, UNKNOWN
from anymix.storage import plain_json

LOGS = {"log_unigram", "log_backoff", "log_listed"}
MOST_BYTES = 2**26  # of all words that strangers hand over
MARKS_OF_A_WORD = 3  # two quotes and a comma


def to_arrays(words: list[str], unknown: str, table: BigramTable) -> dict[str, NDArray[Any]]:
    """Return the arrays of a model.

    Examples
    --------
    >>> half = np.log([0.5, 0.5])
    >>> table = BigramTable(half, np.zeros(2), np.array([], dtype=int), np.array([]))
    >>> words, unknown, again = from_arrays(to_arrays(["a"], "drop", table))
    >>> words, unknown, again.sums().round(6).tolist()
    (['a'], 'drop', [1.0, 1.0])
    """
    listed = json.dumps({"words": words, "unknown": unknown})
    return {
        "log_unigram": table.log_unigram,
        "log_backoff": table.log_backoff,
        "keys": table.keys.astype(np.int64, copy=False),
        "log_listed": table.log_listed,
        "words": np.frombuffer(listed.encode(), dtype=np.uint8),
    }


def from_arrays(arrays: Arrays) -> tuple[list[str], str, BigramTable]:
    """Return words, what to do with unknown ones, and the table; or say what is not sound."""
    # A context whose words are all listed has no back-off: log 0 is right there.
    check_arrays(arrays, {*LOGS, "keys", "words"}, logs=LOGS)
    text = arrays["words"].dtype == np.uint8 and arrays["words"].ndim == 1
    refuse_unless(text, "has words that are not text")
    n_bytes, n_pairs = arrays["words"].size, arrays["keys"].size
    refuse_unless(
        n_bytes <= MOST_BYTES and n_pairs <= MOST_PAIRS,
        f"has {n_bytes} bytes of words and {n_pairs} pairs of them, where {MOST_BYTES} and "
        f"{MOST_PAIRS} are allowed; ask for a model with fewer, as min_count=2 makes it",
    )
    words, unknown = _words(arrays["words"].tobytes())
    size, keys = len(words) + 1, arrays["keys"]
    check_shapes(arrays, log_unigram=(size,), log_backoff=(size,), log_listed=(keys.size,))
    ordered = keys.dtype == np.int64 and keys.ndim == 1 and (keys[1:] > keys[:-1]).all()
    inside = keys.size == 0 or (keys.flat[0] >= 0 and keys.flat[-1] < size**2)
    refuse_unless(ordered and inside, "has pairs of words that are not in order")
    table = BigramTable(arrays["log_unigram"], arrays["log_backoff"], keys, arrays["log_listed"])
    apart = np.abs(table.sums() - 1).max()
    refuse_unless(apart < SUM_TOLERANCE, "has probabilities that do not sum to 1")
    return words, unknown, table


def _words(content: bytes) -> tuple[list[str], str]:
    try:
        data = plain_json(content, MARKS_OF_A_WORD * MOST_WORDS)
    except ValueError as error:
        raise ValueError(f"has a list of words that {error}") from error
    sound = isinstance(data, dict) and set(data) == {"words", "unknown"}
    refuse_unless(sound and isinstance(data["words"], list), "has no sound list of words")
    words, unknown = data["words"], data["unknown"]
    texts = all(isinstance(word, str) and 0 < len(word) <= LONGEST_WORD for word in words)
    refuse_unless(texts and len(set(words)) == len(words) > 0, "has an invalid or repeated word")
    known = unknown == "drop" or (unknown == "map" and UNKNOWN in words)
    refuse_unless(known, "does not say what to do with unknown words")
    return words, unknown
