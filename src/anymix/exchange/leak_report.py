"""Leaks of training rows, measured on the files that are shared.

Rows, targets and rare words are searched for in predictor and density; the leaves of trees are
counted.  The report gives numbers, and files that hold rows are refused unless that is allowed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import n_rows
from anymix.exceptions import AuditError
from anymix.exchange.contents import (
    FEW,
    cells_of,
    documents_of,
    has_operator,
    inputs_of_steps,
    numbers_in,
    rare_entries,
    words_in,
)
from anymix.exchange.foreign_trees import is_estimator
from anymix.exchange.manifest import parse_json, shortened
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
SINGLE = "the target of a single one"
NOT_COMPARED = " Predictor and density were not compared with the training rows."
UNKNOWN_VECTORS = " Its support vectors may be rows in a form that is not known here."
MOST_CELLS = 10**7  # of sparse rows that are written out for a predictor


class Packed(NamedTuple):
    """A packed source: the predictor, the density and its arrays; whether rows are documents.

    Words that are known already reveal nothing.
    """

    predictor: OnnxPredictor
    density: Any
    arrays: Tensors
    text: bool
    known_words: Collection[str] = ()


class Training(NamedTuple):
    """The rows that a source was trained on, and their targets, if they are known."""

    rows: Any
    targets: Any
    what: str

    @property
    def has_numbers(self) -> bool:
        """Whether the targets are numbers that can be searched for."""
        return self.targets is not None and np.asarray(self.targets).dtype.kind == "f"


def check_leaks(
    source: Source,
    packed: Packed,
    rows: Any,
    targets: Any,
    *,
    keep_rows: bool,
    reveals_rows: bool,
    measure: bool,
) -> str:
    """Describe what the files reveal of the training rows, or refuse them.

    Without rows those count that a kernel density still holds; without `measure` nothing is
    compared, and nothing refused.
    """
    training = _training_of(source, rows, targets, packed.text) if measure else None
    said = "no density." if packed.density is None else shortened(packed.density.reveals())
    own_rows = None if training is None or packed.text else training.rows
    cells, content = cells_of(source.predictor, own_rows), packed.predictor.content
    predictor, density = Counter[str](), Counter[str]()
    if training is not None:
        predictor = _in_predictor(source, training, packed)
        density = _in_density(source, training, packed)
    if measure and not reveals_rows:
        single = cells["single"]
        _refuse(f"the predictor of {source.name!r}", "predictor", predictor, packed.text, single)
        if not keep_rows:
            _refuse(f"the density of {source.name!r}", "density", density, packed.text)
    if cells["leaves"]:
        said += _of_leaves(cells)
    elif has_operator(content, "TreeEnsemble"):
        said += " The leaves of its trees were not counted."
    known = is_estimator(source.predictor)
    said += UNKNOWN_VECTORS if not known and has_operator(content, "SVM") else ""
    if training is None:
        words = len(words_in(content)) if packed.text else 0
        rare = f" The predictor lists {words} words, some maybe of a single document." * bool(words)
        said += NOT_COMPARED + rare
    else:
        said += _compared(predictor, density, training, packed.text, known)
    return said + _of_categories(source, rows if measure else None, reveals_rows)


def check_structure(name: str, predictor: OnnxPredictor, reveals: str) -> None:
    """Refuse a packed predictor whose type contains rows, targets or words."""
    for held, what in (
        (re.search(rf"\d {SINGLE}", reveals), f"has leaves that are {SINGLE}"),
        (has_operator(predictor.content, "SVM"), "has support vectors, which are training rows"),
        (predictor.dtype == "string", "lists words, some maybe of a single document"),
    ):
        if held:
            cause = f"{what}; train one with {FEW} rows a leaf or more, or a linear model"
            raise AuditError(f"the predictor of {name!r}", cause)


def _training_of(source: Source, rows: Any, targets: Any, text: bool) -> Training | None:
    if rows is not None:
        return Training(documents_of(rows) if text else rows, targets, "training rows")
    held = getattr(source.density, "centres_", None)
    if held is None or source.density.variances_.any():
        return None
    return Training(held, targets, "rows that the density was fitted on")


# --- compared with the rows ---------------------------------------------------------------------


def _in_predictor(source: Source, training: Training, packed: Packed) -> Counter[str]:
    content, model = packed.predictor.content, source.predictor
    arrays = numbers_in(content)
    words = rare_entries(model, training.rows) if packed.text else 0
    if words is None:
        words = rare_in_texts(training.rows, words_in(content).difference(packed.known_words))
    rows = training.rows
    rows = rows if hasattr(rows, "shape") else np.asarray(rows, dtype=float)
    if hasattr(model, "feature_names_in_") and not hasattr(rows, "columns"):
        rows = need("pandas").DataFrame(rows, columns=model.feature_names_in_)
    forms = chain(() if packed.text else (rows,), inputs_of_steps(model, rows))
    found = max((_found(form, arrays) for form in forms if len(form.shape) == 2), default=0)
    return Counter(rows=found, targets=_targets_in(training, packed, arrays), words=words)


def _found(rows: Any, arrays: list[NDArray[Any]]) -> int:
    rows = rows if hasattr(rows, "tocsr") else np.asarray(rows, dtype=float)
    return rows_beyond_chance(rows, arrays)


def _targets_in(training: Training, packed: Packed, arrays: list[NDArray[Any]]) -> int:
    """How many targets do the arrays contain, or trees add up to at their rows?"""
    if not training.has_numbers:
        return 0
    targets = np.ravel(np.asarray(training.targets, dtype=float))
    found = numbers_beyond_chance(targets, arrays)
    rows, sparse = training.rows, hasattr(training.rows, "toarray")
    large = sparse and np.prod(rows.shape) > MOST_CELLS
    if large or not has_operator(packed.predictor.content, "TreeEnsemble"):
        return found
    if not packed.text:
        rows = np.asarray(rows.toarray() if sparse else rows, dtype=float)
    answers = packed.predictor(rows)
    if answers.size != targets.size:
        return found
    return max(found, answers_beyond_chance(targets, answers.ravel()))


def _in_density(source: Source, training: Training, packed: Packed) -> Counter[str]:
    if not packed.text:
        numbers = [array for array in packed.arrays.values() if array.dtype == float]
        return Counter(rows=_found(training.rows, numbers))
    listed: set[str] = set()
    if "words" in packed.arrays:
        listed.update(parse_json(packed.arrays["words"].tobytes(), "the density")["words"])
    # Of a vocabulary that all share, the form to hand over does not tell which words were met.
    if getattr(packed.density, "_is_common", False):
        listed -= set(getattr(source.density, "vocabulary", None) or ())
    texts = [str(document).lower() for document in training.rows]
    return Counter(words=sum(count < FEW for count in _met(texts, listed).values()))


def rare_in_texts(documents: Iterable[Any], words: set[str]) -> int:
    """Count the words, under any tokenisation, that occur in one to four documents.

    Words that occur as such are counted so; others, such as telephone numbers or pairs of words,
    wherever their characters occur.
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


def rare_categories(columns: Columns, rows: Any) -> int:
    """Count the listed categories of fewer than five rows (n, d)."""
    found = 0
    for column, codes in zip(columns, rows.T, strict=True):
        if column.categories is not None:
            codes = codes[~np.isnan(codes)].astype(int)
            counts = np.bincount(codes, minlength=len(column.categories))
            found += int((counts[: len(column.categories)] < FEW).sum())
    return found


# --- said, or refused ---------------------------------------------------------------------------


def _refuse(where: str, part: str, found: Counter[str], text: bool, single: int = 0) -> None:
    rows = "training documents as vectors of words" if text else "training rows as they are"
    faults = (
        (found["rows"], f"holds {found['rows']} {rows}", part),
        (found["targets"], f"holds {found['targets']} training targets as they are", part),
        (single, f"has {single} leaves that are the target of a single row", part),
        (found["words"], f"lists {found['words']} words of fewer than {FEW} documents", "words"),
    )
    for count, fault, remedy in faults:
        if count:
            raise AuditError(where, f"{fault}; {REMEDIES[remedy]}")


def _of_leaves(cells: Counter[str]) -> str:
    few, verb = cells["few"] or "None", "hold" if cells["few"] > 1 else "holds"
    one = f", {cells['single']} {SINGLE}" if cells["single"] else ""
    left = "what the trees before left of the target of a single one"
    rest = f", {cells['rest']} {left}" if cells["rest"] else ""
    leaves = f"{few} of the {cells['leaves']} leaves of its trees"
    return f" {leaves} {verb} fewer than {FEW} rows{one}{rest}."


def _compared(
    predictor: Counter[str], density: Counter[str], training: Training, text: bool, known: bool
) -> str:
    """Say what both files hold of the rows, or of documents if they are text."""
    many, one = ("vectors of words", "a vector of words") if text else ("they are", "it is")
    count = predictor["rows"]
    rows = f"{count or 'none'} {'stand' if count else 'stands'} in the predictor as "
    rows += many if count else one
    if text and not known:
        rows = "they were not looked for in the predictor as vectors of words"
    held = f", {density['rows'] or 'none'} in the density"
    if text:
        words = f"{predictor['words'] or 'no'} words of fewer than {FEW} documents"
        held = f"; {words} stand in the predictor, {density['words'] or 'none'} in the density"
    targets = f"; of their targets {predictor['targets'] or 'none'}" * training.has_numbers
    what = "training documents" if text else training.what
    return f" Compared with {n_rows(training.rows)} {what}: {rows}{held}{targets}."


def _of_categories(source: Source, rows: Any, reveals_rows: bool) -> str:
    """Say how many words are listed, and refuse those that tell of single rows.

    Words of a reference are public.
    """
    listed = [len(column.categories or ()) for column in source.columns or ()]
    if source.columns is None or not sum(listed):
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
            f"{FEW} rows or more with Columns.of(X, least={FEW}), {ALLOW}",
        )
    met = f"{rare} met by fewer" if rare else f"each met by {FEW} training rows or more"
    return f"{said}, {met}{f' than {FEW} training rows' if rare else ''}."
