"""Bigram models as ARPA files, the text format that language-model tools exchange, and as arrays.

A file lists log10 P(w) with log10 of the back-off weight of w, then log10 P(w | h).
"""

from __future__ import annotations

import gzip
import json
import zlib
from array import array
from collections.abc import Iterator, Sequence
from itertools import count, islice
from os import fspath
from pathlib import Path
from typing import Any, TextIO, cast

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray, IntArray
from anymix.densities.bigram_table import BigramTable
from anymix.densities.density import Arrays, check_arrays, check_shapes, refuse_unless
from anymix.exceptions import AuditError
from anymix.storage import plain_json

BEGIN, END, UNKNOWN = "<s>", "</s>", "<unk>"
# How far the probabilities of a context in a file may be from 1: files have rounded numbers.
SUM_TOLERANCE = 1e-3
LN10 = float(np.log(10.0))
# Limits for untrusted files, here and as arrays: characters of a word, words, pairs of words.
LONGEST_WORD, MOST_WORDS, MOST_PAIRS = 200, 1_000_000, 4_000_000
LONGEST_LINE, OTHER_LINES = 1000, 1000  # characters; lines of the header, and empty ones
SECTION, COLUMNS = "\\{}-grams:", "a line has missing or extra columns"


def write_arpa(path: str | Path, words: list[str], table: BigramTable) -> None:
    """Write a model; a name that ends in `.gz` is compressed."""
    spaced = next((word for word in words if word.split() != [word]), None)
    if spaced is not None:
        raise ValueError(
            f"the word {spaced!r} is empty or has a space in it, which an ARPA file cannot hold; "
            "train on other tokens"
        )
    with _open(path, "w") as file:
        file.writelines(f"{line}\n" for line in _lines(words, table))


def read_arpa(path: str | Path) -> tuple[list[str], BigramTable]:
    """Read the words and the model of a bigram ARPA file, plain or gzipped; else an AuditError."""
    with _open(path, "r") as file:
        try:
            return _read(_bounded(file))
        except (ValueError, EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise AuditError(path, f"is not a usable bigram model: {error}".rstrip(".")) from error


def _open(path: str | Path, mode: str) -> TextIO:
    opener = gzip.open if fspath(path).endswith(".gz") else open
    return cast(TextIO, opener(path, mode + "t", encoding="utf-8"))


def _lines(words: list[str], table: BigramTable) -> Iterator[str]:
    """Return the lines of the file; the boundary is `<s>` as a context, `</s>` as a next word."""
    contexts, nexts = (side.tolist() for side in table.pairs)
    unigram, backoff, listed = (
        (logs / LN10).tolist() for logs in (table.log_unigram, table.log_backoff, table.log_listed)
    )
    yield from ("", "\\data\\", f"ngram 1={table.size + 1}", f"ngram 2={len(listed)}", "")
    yield from ("\\1-grams:", f"-99\t{BEGIN}\t{backoff[-1]:.12g}", f"{unigram[-1]:.12g}\t{END}")
    for word, log_prob, weight in zip(words, unigram[:-1], backoff[:-1], strict=True):
        yield f"{log_prob:.12g}\t{word}\t{weight:.12g}"
    yield from ("", "\\2-grams:")
    before, after = [*words, BEGIN], [*words, END]
    for log_prob, h, w in zip(listed, contexts, nexts, strict=True):
        yield f"{log_prob:.12g}\t{before[h]} {after[w]}"
    yield from ("", "\\end\\")


def _bounded(file: TextIO) -> Iterator[str]:
    """Return the lines of a file that may be endless once it is unpacked."""
    for n in count():
        line = file.readline(LONGEST_LINE + 1)
        if not line:
            return
        if len(line) > LONGEST_LINE or n >= MOST_WORDS + MOST_PAIRS + OTHER_LINES:
            raise ValueError(
                f"it has a line of more than {LONGEST_LINE} characters, or more lines than "
                f"{MOST_WORDS} words and {MOST_PAIRS} pairs need"
            )
        yield line.strip()


def _read(lines: Iterator[str]) -> tuple[list[str], BigramTable]:
    """Return words and table, checked against the header's counts."""
    promised: dict[int, int] = {}
    for line in lines:
        if line == SECTION.format(1):
            break
        if line.startswith("ngram "):
            order, _, announced = line[6:].partition("=")
            promised[int(order)] = int(announced)
    if sorted(promised) != [1, 2]:
        raise ValueError(f"it announces n-grams of the orders {sorted(promised)} instead of [1, 2]")
    listed = islice(_until(SECTION.format(2), lines), MOST_WORDS + 3)
    rows = [line.split() for line in listed]
    _check_count(1, promised[1], len(rows), MOST_WORDS + 2)
    words, unigram, backoff = _unigrams(rows)
    keys, logs = _pairs(words, _until("\\end\\", lines))
    _check_count(2, promised[2], len(keys), MOST_PAIRS)
    order_of_keys = np.argsort(keys)
    table = BigramTable(unigram, backoff, keys[order_of_keys], logs[order_of_keys])
    if np.any(np.diff(table.keys) == 0):
        raise ValueError("a 2-gram is listed twice")
    sums = table.sums()
    worst = int(np.argmax(np.abs(sums - 1.0)))
    if abs(sums[worst] - 1.0) > SUM_TOLERANCE:
        context = [*words, BEGIN][worst]
        raise ValueError(f"after {context!r} its probabilities sum to {sums[worst]:.6g}, not 1")
    return words, table


def _until(end: str, lines: Iterator[str]) -> Iterator[str]:
    """Return the lines that are not empty, up to this one."""
    for line in lines:
        if line == end:
            return
        if line:
            yield line
    raise ValueError(f"it has no {end} line, so it may be cut short")


def _check_count(order: int, promised: int, listed: int, most: int) -> None:
    if listed != promised:
        raise ValueError(f"it announces {promised} {order}-grams and lists {listed}")
    if listed > most:
        raise ValueError(f"it lists {listed} {order}-grams, where {most} are allowed")


def _unigrams(lines: list[list[str]]) -> tuple[list[str], FloatArray, FloatArray]:
    """Return words, their log-probabilities and back-off weights, of the split lines."""
    if {len(line) for line in lines} - {2, 3}:
        raise ValueError(COLUMNS)
    rows = {line[1]: line for line in lines}
    if len(rows) != len(lines) or BEGIN not in rows or END not in rows:
        raise ValueError(f"each word, {BEGIN} and {END} must be listed once among the 1-grams")
    words = [word for word in rows if word not in (BEGIN, END)]
    if max(map(len, words), default=0) > LONGEST_WORD:
        raise ValueError(f"a word has more than {LONGEST_WORD} characters")
    unigram = _logs([float(rows[word][0]) for word in [*words, END]])
    return words, unigram, _logs([float((*rows[word], "0")[2]) for word in [*words, BEGIN]])


def _pairs(words: list[str], lines: Iterator[str]) -> tuple[IntArray, FloatArray]:
    """Return keys and log-probabilities; as numbers at once, since the lines take far more."""
    before = {word: i for i, word in enumerate([*words, BEGIN])}
    after = {word: i for i, word in enumerate([*words, END])}
    keys, logs, size = array("q"), array("d"), len(words) + 1
    for line in lines:
        columns = line.split()
        if len(columns) != 3:
            raise ValueError(COLUMNS)
        try:
            keys.append(before[columns[1]] * size + after[columns[2]])
        except KeyError as error:
            raise ValueError(f"a 2-gram has the word {error} where no 1-gram allows it") from None
        logs.append(float(columns[0]))
    return np.array(keys, dtype=np.int64), _logs(logs)


def _logs(decimal: Sequence[float]) -> FloatArray:
    """Return decimal logarithms as natural ones."""
    logs = np.array(decimal, dtype=np.float64) * LN10
    if not np.isfinite(logs).all():
        raise ValueError("a probability or weight is not a finite number")
    return logs


LOGS = {"log_unigram", "log_backoff", "log_listed"}
MOST_BYTES = 2**26  # of all words of an untrusted file
MARKS_OF_A_WORD = 3  # two quotes and a comma


def to_arrays(words: list[str], unknown: str, table: BigramTable) -> dict[str, NDArray[Any]]:
    """Return the arrays of a model."""
    listed = json.dumps({"words": words, "unknown": unknown})
    return {
        "log_unigram": table.log_unigram,
        "log_backoff": table.log_backoff,
        "keys": table.keys.astype(np.int64, copy=False),
        "log_listed": table.log_listed,
        "words": np.frombuffer(listed.encode(), dtype=np.uint8),
    }


def from_arrays(arrays: Arrays) -> tuple[list[str], str, BigramTable]:
    """Return words, treatment of unknown ones, and the table; a ValueError says what is invalid."""
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
    valid = unknown == "drop" or (unknown == "map" and UNKNOWN in words)
    refuse_unless(valid, "does not say what to do with unknown words")
    return words, unknown
