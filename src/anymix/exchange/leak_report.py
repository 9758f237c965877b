"""Leaks of training rows, measured on the very files that are handed over.

Rows, targets and rare words are searched for in predictor and density; the leaves of trees are
counted.  The report gives numbers, and files that hold rows are refused unless that is allowed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from anymix._arrays import n_rows
from anymix.exceptions import AuditError
from anymix.exchange.contents import (
    FEW,
    Cells,
    cells_of,
    dense,
    documents_of,
    has_operator,
    inputs_of_steps,
    numbers_in,
    rare_entries,
    searched_forms,
    words_in,
    words_of,
)
from anymix.exchange.manifest import shortened
from anymix.exchange.predictor import OnnxPredictor
from anymix.exchange.row_leaks import (
    answers_beyond_chance,
    numbers_beyond_chance,
    rows_beyond_chance,
)
from anymix.exchange.tensors import TOKEN, Tensors
from anymix.sources import Source
from anymix.storage import need
from anymix.tables import Columns


def said_of_categories(source: Source, rows: Any, reveals_rows: bool) -> str:
    """Say how many words are listed, and refuse those that tell of single rows.

    Words of a reference are public, whoever has them.

    Examples
    --------
    >>> from anymix.tables import Column
    >>> source = Source("north", None, columns=Columns((Column("sex", ("f", "m")),)))
    >>> said_of_categories(source, np.array([[0.0], [1.0]] * 5), False)
    ' It lists 2 words as categories of 1 column, each met by 5 training rows or more.'
    """
    if source.columns is None:
        return ""
    listed = [len(column.categories or ()) for column in source.columns]
    if not sum(listed):
        return ""
    columns = sum(column.categories is not None for column in source.columns)
    said = f" It lists {sum(listed)} words as categories of {columns} column{'s' * (columns > 1)}"
    if getattr(source.density, "reference_", None) is not None:
        return f"{said}, those of the reference."
    if rows is None:
        return f"{said}."
    rare = rare_categories(source.columns, np.asarray(rows, dtype=float))
    if rare and not reveals_rows:
        raise AuditError(
            f"the manifest of {source.name!r}",
            f"lists {rare} categories that fewer than {FEW} training rows have; list those of "
            f"{FEW} rows or more with Columns.of(X, least={FEW}), or allow it with "
            "reveals_rows=True (--reveals-rows)",
        )
    met = f"{rare} met by fewer" if rare else f"each met by {FEW} training rows or more"
    return f"{said}, {met}{f' than {FEW} training rows' if rare else ''}."


def rare_categories(columns: Columns, rows: Any) -> int:
    """How many categories are listed that fewer than five rows (n, d) have?"""
    found = 0
    for column, codes in zip(columns, rows.T, strict=True):
        if column.categories is not None:
            codes = codes[~np.isnan(codes)].astype(int)
            counts = np.bincount(codes, minlength=len(column.categories))
            found += int((counts[: len(column.categories)] < FEW).sum())
    return found


WORD = re.compile(r"\w+")
ALLOW = "or allow it with reveals_rows=True (--reveals-rows)"
REMEDIES = {
    "predictor": (
        f"train a linear model or a forest with min_samples_leaf={FEW} on more rows than these, "
        f"{ALLOW}"
    ),
    "density": f"use a GaussianKDE (--density kernels), {ALLOW}",
    "words": f"make the vocabulary with min_df={FEW}, {ALLOW}",
}
NOT_COMPARED = " Predictor and density were not compared with the training rows."
UNKNOWN_VECTORS = " Its support vectors may be rows in a form that is not known here."
MOST_CELLS = 10**7  # of sparse rows that are written out to be compared


class Training(NamedTuple):
    """The rows that a source was trained on, and their targets, if they are known."""

    rows: Any
    targets: Any = None
    what: str = "training rows"


class Packed(NamedTuple):
    """What is handed over: the graph, the density and its arrays; `text` if rows are documents."""

    predictor: OnnxPredictor
    density: Any
    arrays: Tensors
    text: bool

    @property
    def graph(self) -> bytes:
        """The predictor's file."""
        return self.predictor.content


@dataclass(frozen=True)
class LeakCounts:
    """How much of the training rows one file holds."""

    rows: int = 0
    targets: int = 0
    words: int = 0
    compared: bool = True


def training_of(source: Source, rows: Any, targets: Any) -> Training | None:
    """Return the training rows: those given, or else those that a kernel density still holds."""
    if rows is not None:
        return Training(rows, targets)
    held = getattr(source.density, "centres_", None)
    if held is None or source.density.variances_.any():
        return None
    return Training(held, targets, "rows that the density was fitted on")


def check_leaks(
    source: Source,
    packed: Packed,
    training: Training | None,
    *,
    keep_rows: bool,
    reveals_rows: bool,
) -> str:
    """Say what the files reveal, or refuse them if that is more than was allowed."""
    said = "no density." if packed.density is None else shortened(packed.density.reveals())
    cells = cells_of(source.predictor)
    predictor, density = LeakCounts(), LeakCounts()
    if training is not None and packed.text:
        training = training._replace(rows=documents_of(training.rows))
    if training is not None:
        predictor = _in_predictor(source, training, packed)
        density = _in_density(source, training, packed)
    if not reveals_rows:
        _refuse(f"the predictor of {source.name!r}", predictor, cells, packed.text)
        if not keep_rows:
            _refuse(f"the density of {source.name!r}", density, Cells(), packed.text)
    uncounted = not cells.leaves and has_operator(packed.graph, "TreeEnsemble")
    said += " The leaves of its trees were not counted." if uncounted else str(cells)
    known = isinstance(source.predictor, BaseEstimator)
    said += UNKNOWN_VECTORS if not known and has_operator(packed.graph, "SVM") else ""
    if training is None:
        words = len(words_in(packed.graph)) if packed.text else 0
        rare = f" The predictor lists {words} words, some maybe of a single document." * bool(words)
        return said + NOT_COMPARED + rare
    say = _of_documents if packed.text else _of_rows
    return f"{said} {say(predictor, density, training)}"


# --- compared with the rows ---------------------------------------------------------------------


def _rows_in(model: Any, rows: Any, arrays: list[NDArray[Any]], text: bool) -> int:
    """How many training rows stand in the arrays, as they are or as parts of a model get them?"""
    rows = rows if hasattr(rows, "shape") else np.asarray(rows, dtype=float)
    if hasattr(model, "feature_names_in_") and not hasattr(rows, "columns"):
        rows = need("pandas").DataFrame(rows, columns=model.feature_names_in_)
    forms = chain(() if text else (rows,), inputs_of_steps(model, rows))
    numbers = (form for form in forms if len(form.shape) == 2)
    found = (
        rows_beyond_chance(r, arrays) for form in numbers for r in searched_forms(form, MOST_CELLS)
    )
    return max(found, default=0)


def _targets_in(training: Training, packed: Packed, arrays: list[NDArray[Any]]) -> int:
    """How many targets stand in the arrays, or are what trees add up to at their rows?"""
    if not _has_numbers(training):
        return 0
    targets = np.ravel(np.asarray(training.targets, dtype=float))
    found = numbers_beyond_chance(targets, arrays)
    rows = training.rows if packed.text else dense(training.rows, MOST_CELLS)
    if rows is None or not has_operator(packed.graph, "TreeEnsemble"):
        return found
    answers = packed.predictor(rows)
    if answers.size != targets.size:
        return found
    return max(found, answers_beyond_chance(targets, answers.ravel()))


def _has_numbers(training: Training) -> bool:
    return training.targets is not None and np.asarray(training.targets).dtype.kind == "f"


def rare_words(documents: Iterable[Any], words: set[str]) -> int:
    """How many of the words stand in at least one document, but in fewer than five?

    Examples
    --------
    >>> rare_words(["the cat"] * 5 + ["the Mr. Quackenbush"], {"the", "cat", "quackenbush", "dog"})
    1
    """
    texts = (str(document).lower() for document in documents)
    return sum(count < FEW for count in _met(texts, words).values())


def rare_in_texts(documents: Iterable[Any], words: set[str]) -> int:
    """How many of the words, however they are cut out, stand in one to four documents?

    Words that are met as such are counted so, and others, as numbers of telephones or pairs of
    words, wherever their letters stand.

    Examples
    --------
    >>> rare_in_texts(["the cat, black"] * 5 + ["the a@b.de"], {"cat black", "cat", "a@b.de"})
    1
    """
    texts = [str(document).lower() for document in documents]
    counts = _met(texts, words)
    whole = "\0".join(f"{text}\1{' '.join(WORD.findall(text))}" for text in texts)
    others = (_places(whole, word) for word in words - counts.keys())
    return sum(0 < count < FEW for count in chain(counts.values(), others))


def _met(texts: Iterable[str], words: set[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(words & {*WORD.findall(text), *TOKEN.findall(text)})
    return counts


def _places(whole: str, word: str) -> int:
    """In how many texts, parted by zeros, do these letters stand?  Counted up to five."""
    count, place = 0, whole.find(word)
    while place >= 0 and count < FEW:
        count += 1
        end = whole.find("\0", place)
        place = -1 if end < 0 else whole.find(word, end)
    return count


def _in_predictor(source: Source, training: Training, packed: Packed) -> LeakCounts:
    arrays, model = numbers_in(packed.graph), source.predictor
    words = rare_entries(model, training.rows) if packed.text else 0
    if words is None:
        words = rare_in_texts(training.rows, words_in(packed.graph))
    return LeakCounts(
        rows=_rows_in(model, training.rows, arrays, packed.text),
        targets=_targets_in(training, packed, arrays),
        words=words,
        compared=not packed.text or isinstance(model, BaseEstimator),
    )


def _in_density(source: Source, training: Training, packed: Packed) -> LeakCounts:
    if packed.text:
        # Of a vocabulary that all share, the form to hand over does not tell which words were met.
        hidden = getattr(packed.density, "_is_common", False)
        shared = set(getattr(source.density, "vocabulary", None) or ()) if hidden else set()
        return LeakCounts(words=rare_words(training.rows, words_of(packed.arrays) - shared))
    numbers = [array for array in packed.arrays.values() if array.dtype == float]
    rows = searched_forms(training.rows, MOST_CELLS)
    return LeakCounts(max((rows_beyond_chance(form, numbers) for form in rows), default=0))


# --- said, or refused ---------------------------------------------------------------------------


def _refuse(where: str, found: LeakCounts, cells: Cells, text: bool) -> None:
    rows = "training documents as vectors of words" if text else "training rows as they are"
    held = {
        f"holds {found.rows} {rows}": found.rows,
        f"holds {found.targets} training targets as they are": found.targets,
        f"has {cells.single} leaves that are the target of a single row": cells.single,
    }
    part = "density" if where.startswith("the density") else "predictor"
    for fault, count in held.items():
        if count:
            raise AuditError(where, f"{fault}; {REMEDIES[part]}")
    if found.words:
        fault = f"lists {found.words} words of fewer than {FEW} documents"
        raise AuditError(where, f"{fault}; {REMEDIES['words']}")


def _of_documents(predictor: LeakCounts, density: LeakCounts, training: Training) -> str:
    """Say what was found when both files were compared with documents.

    Examples
    --------
    >>> _of_documents(LeakCounts(words=2), LeakCounts(), Training(["a b"] * 9))
    'Compared with 9 training documents: none stands in the predictor as a vector of words; \
2 words of fewer than 5 documents stand in the predictor, none in the density.'
    """
    rows = f"{_standing(predictor.rows)} as {'vectors' if predictor.rows else 'a vector'} of words"
    if not predictor.compared:
        rows = "they were not looked for in the predictor as vectors of words"
    words = f"{predictor.words or 'no'} words of fewer than {FEW} documents stand in the predictor"
    return (
        f"Compared with {n_rows(training.rows)} training documents: {rows}; {words}, "
        f"{density.words or 'none'} in the density{_of_targets(predictor, training)}."
    )


def _of_rows(predictor: LeakCounts, density: LeakCounts, training: Training) -> str:
    """Say what was found when both files were compared with rows.

    Examples
    --------
    >>> _of_rows(LeakCounts(), LeakCounts(2), Training(np.eye(9)))
    'Compared with 9 training rows: none stands in the predictor as it is, 2 in the density.'
    """
    standing = f"{_standing(predictor.rows)} as {'they are' if predictor.rows else 'it is'}"
    rows = f"{standing}, {density.rows or 'none'} in the density"
    compared = f"Compared with {n_rows(training.rows)} {training.what}"
    return f"{compared}: {rows}{_of_targets(predictor, training)}."


def _standing(count: int) -> str:
    return f"{count or 'none'} {'stand' if count else 'stands'} in the predictor"


def _of_targets(predictor: LeakCounts, training: Training) -> str:
    found = f"; of their targets {predictor.targets or 'none'}"
    return found if _has_numbers(training) else ""
