r"""Bigram models as ARPA files, the text format that language-model tools exchange.

A file lists log10 P(w) with log10 of the back-off weight of w, then log10 P(w | h):

    \data\
    ngram 1=3
    ngram 2=1

    \1-grams:
    -99	<s>	0
    -0.30103	</s>
    -0.30103	a	-0.69897

    \2-grams:
    -0.045757	a </s>

    \end\
"""

import gzip
from collections.abc import Iterable, Iterator
from os import fspath
from pathlib import Path
from typing import TextIO, cast

import numpy as np

from anymix._arrays import FloatArray, IntArray
from anymix.densities._bigram_table import BigramTable

BEGIN, END, UNKNOWN = "<s>", "</s>", "<unk>"
# How far the probabilities of a context in a file may be from 1: files have rounded numbers.
SUM_TOLERANCE = 1e-3
LN10 = float(np.log(10.0))


def write_arpa(path: str | Path, words: list[str], table: BigramTable) -> None:
    """Write a model; a name that ends in `.gz` is compressed.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> table = BigramTable(np.log([0.4, 0.6]), np.zeros(2), np.empty(0, int), np.empty(0))
    >>> with TemporaryDirectory() as folder:
    ...     write_arpa(folder + "/model.arpa", ["hello"], table)
    ...     words, again = read_arpa(folder + "/model.arpa")
    >>> words, np.exp(again.log_unigram).round(6).tolist()
    (['hello'], [0.4, 0.6])
    """
    spaced = next((word for word in words if word.split() != [word]), None)
    if spaced is not None:
        raise ValueError(
            f"the word {spaced!r} is empty or has a space in it, which an ARPA file cannot hold; "
            "train on other tokens"
        )
    with _open(path, "w") as file:
        file.writelines(f"{line}\n" for line in _lines(words, table))


def read_arpa(path: str | Path) -> tuple[list[str], BigramTable]:
    """Read the words and the model of a bigram ARPA file, plain or gzipped.

    Raises
    ------
    ValueError
        If the file is not a bigram model, or its probabilities do not sum to 1 in every context.
    """
    with _open(path, "r") as file:
        try:
            sections = _sections(file)
            words, table = _assemble(sections[1], sections[2])
        except ValueError as error:
            raise ValueError(f"{fspath(path)} is not a usable bigram model: {error}") from error
    return words, table


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


def _sections(file: Iterable[str]) -> dict[int, list[list[str]]]:
    """Return the split lines of the two n-gram sections, checked against the header's counts."""
    promised: dict[int, int] = {}
    sections: dict[int, list[list[str]]] = {1: [], 2: []}
    current: list[list[str]] | None = None
    for line in map(str.strip, file):
        if line == "\\end\\":
            break
        if line.startswith("\\") and line.endswith("-grams:"):
            current = sections.setdefault(int(line[1:-7]), [])
        elif current is not None and line:
            current.append(line.split())
        elif line.startswith("ngram "):
            announced = line[6:].split("=")
            promised[int(announced[0])] = int(announced[1])
    else:
        raise ValueError("it has no \\end\\ line, so it may be cut short")
    if sorted(promised) != [1, 2]:
        raise ValueError(f"it announces n-grams of the orders {sorted(promised)} instead of [1, 2]")
    for order, count in promised.items():
        if len(sections[order]) != count:
            found = len(sections[order])
            raise ValueError(f"it announces {count} {order}-grams and lists {found}")
    return sections


def _assemble(unigrams: list[list[str]], bigrams: list[list[str]]) -> tuple[list[str], BigramTable]:
    """Return words and table of the split lines."""
    if {len(line) for line in unigrams} - {2, 3} or {len(line) for line in bigrams} - {3}:
        raise ValueError("a line has missing or extra columns")
    rows = {line[1]: line for line in unigrams}
    if len(rows) != len(unigrams) or BEGIN not in rows or END not in rows:
        raise ValueError(f"each word, {BEGIN} and {END} must be listed once among the 1-grams")
    words = [word for word in rows if word not in (BEGIN, END)]
    unigram = _logs(rows[word][0] for word in [*words, END])
    backoff = _logs((*rows[word], "0")[2] for word in [*words, BEGIN])
    before = {word: i for i, word in enumerate([*words, BEGIN])}
    after = {word: i for i, word in enumerate([*words, END])}
    keys = _ids(before, (line[1] for line in bigrams)) * len(unigram)
    keys += _ids(after, (line[2] for line in bigrams))
    order = np.argsort(keys)
    table = BigramTable(unigram, backoff, keys[order], _logs(line[0] for line in bigrams)[order])
    return words, _checked(table, [*words, BEGIN])


def _logs(numbers: Iterable[str]) -> FloatArray:
    """Return decimal logarithms, as text, as natural ones."""
    logs = np.array([float(number) for number in numbers]) * LN10
    if not np.isfinite(logs).all():
        raise ValueError("a probability or weight is not a finite number")
    return logs


def _ids(index: dict[str, int], words: Iterable[str]) -> IntArray:
    try:
        return np.array([index[word] for word in words], dtype=np.int64)
    except KeyError as error:
        raise ValueError(f"a 2-gram has the word {error} where no 1-gram allows it") from None


def _checked(table: BigramTable, contexts: list[str]) -> BigramTable:
    """Return the table if it is a distribution in every context."""
    if np.any(np.diff(table.keys) == 0):
        raise ValueError("a 2-gram is listed twice")
    sums = table.sums()
    worst = int(np.argmax(np.abs(sums - 1.0)))
    if abs(sums[worst] - 1.0) > SUM_TOLERANCE:
        raise ValueError(
            f"after {contexts[worst]!r} its probabilities sum to {sums[worst]:.6g}, not 1"
        )
    return table
