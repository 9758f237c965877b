"""What a folder tells of its training rows, measured on the very files that are handed over.

Rows, targets and rare words are looked for in predictor and density; the leaves of trees are
counted.  What is found is said with numbers, and what holds rows is refused unless it is allowed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray, n_rows
from anymix._errors import AuditError
from anymix.exchange._optional import need
from anymix.exchange.contents import (
    FEW,
    Cells,
    cells_of,
    has_trees,
    numbers_in,
    parts_of,
    words_in,
    words_of,
)
from anymix.exchange.matches import numbers_beyond_chance, rows_beyond_chance
from anymix.exchange.tensors import TOKEN, Tensors
from anymix.sources import Source

WORD = re.compile(r"\w+")
ALLOW = "or allow it with reveals_rows=True (--reveals-rows)"
REMEDIES = {
    "predictor": f"train a linear model or a forest with min_samples_leaf={FEW}, {ALLOW}",
    "density": f"use a GaussianKDE (--density kernels), {ALLOW}",
    "words": f"make the vocabulary with min_df={FEW}, {ALLOW}",
}
NOT_COMPARED = " Predictor and density were not compared with the training rows."
MOST_CELLS = 10**8  # of sparse rows that are written out to be compared


class Training(NamedTuple):
    """The rows that a source was trained on, and their targets, if they are known."""

    rows: Any
    targets: Any = None
    what: str = "training rows"


class Packed(NamedTuple):
    """What is handed over: the graph, the density and its arrays; `text` if rows are documents."""

    graph: bytes
    density: Any
    arrays: Tensors
    text: bool


@dataclass(frozen=True)
class Found:
    """How much of the training rows one file holds."""

    rows: int = 0
    targets: int = 0
    words: int = 0


def training_of(source: Source, rows: Any, targets: Any) -> Training | None:
    """Return the training rows: those given, or else those that a kernel density still holds."""
    if rows is not None:
        return Training(rows, targets)
    held = getattr(source.density, "centres_", None)
    if held is None or source.density.variances_.any():
        return None
    return Training(held, targets, "rows that the density was fitted on")


def say_or_refuse(
    source: Source,
    packed: Packed,
    training: Training | None,
    *,
    keep_rows: bool,
    reveals_rows: bool,
) -> str:
    """Say what the files reveal, or refuse them if that is more than was allowed."""
    said = "no density." if packed.density is None else packed.density.reveals()
    cells = cells_of(source.predictor)
    predictor, density = Found(), Found()
    if training is not None:
        predictor, density = _in_predictor(source, training, packed), _in_density(training, packed)
    if not reveals_rows:
        _refuse(f"the predictor of {source.name!r}", predictor, cells, "predictor")
        if not keep_rows:
            _refuse(f"the density of {source.name!r}", density, Cells(), "density")
    uncounted = not cells.leaves and has_trees(packed.graph)
    said += " The leaves of its trees were not counted." if uncounted else str(cells)
    if training is None:
        words = len(words_in(packed.graph)) if packed.text else 0
        rare = f" The predictor lists {words} words, some maybe of a single document." * bool(words)
        return said + NOT_COMPARED + rare
    return f"{said} {_sentence(predictor, density, training, packed.text)}"


# --- compared with the rows ---------------------------------------------------------------------


def _rows_in(model: Any, rows: Any, arrays: list[NDArray[Any]]) -> int:
    """How many training rows stand in the arrays, as they are or as pipelines pass them on?"""
    rows = rows if hasattr(rows, "shape") else np.asarray(rows, dtype=float)
    if hasattr(model, "feature_names_in_") and not hasattr(rows, "columns"):
        rows = need("pandas").DataFrame(rows, columns=model.feature_names_in_)
    forms = (_dense(form) for form in (rows, *_passed_on(model, rows)))
    return max(rows_beyond_chance(form, arrays) for form in forms if form is not None)


def _passed_on(model: Any, rows: Any) -> Iterator[Any]:
    """Yield the rows as each pipeline in an estimator passes them on to its last step."""
    if len(getattr(model, "steps", ())) > 1:
        rows = model[:-1].transform(rows)
        yield rows
        yield from _passed_on(model.steps[-1][1], rows)
        return
    for part in parts_of(model):
        if getattr(part, "n_features_in_", None) == rows.shape[1]:
            yield from _passed_on(part, rows)


def _dense(rows: Any) -> FloatArray | None:
    """Rows as plain numbers; None if they are sparse and large."""
    if hasattr(rows, "toarray"):
        if np.prod(rows.shape) > MOST_CELLS:
            return None
        rows = rows.toarray()
    return np.asarray(rows, dtype=float)


def rare_words(documents: Iterable[Any], words: set[str]) -> int:
    """How many of the words stand in at least one document, but in fewer than five?

    Examples
    --------
    >>> rare_words(["the cat"] * 5 + ["the Mr. Quackenbush"], {"the", "cat", "quackenbush", "dog"})
    1
    """
    counts: Counter[str] = Counter()
    for document in documents:
        text = str(document).lower()
        counts.update(words & {*WORD.findall(text), *TOKEN.findall(text)})
    return sum(count < FEW for count in counts.values())


def _in_predictor(source: Source, training: Training, packed: Packed) -> Found:
    if packed.text:
        return Found(words=rare_words(training.rows, words_in(packed.graph)))
    arrays = numbers_in(packed.graph)
    targets = np.ravel(np.asarray(() if training.targets is None else training.targets))
    return Found(
        rows=_rows_in(source.predictor, training.rows, arrays),
        targets=numbers_beyond_chance(targets, arrays) if targets.dtype.kind == "f" else 0,
    )


def _in_density(training: Training, packed: Packed) -> Found:
    if packed.text:
        return Found(words=rare_words(training.rows, words_of(packed.arrays)))
    rows = _dense(training.rows)
    numbers = [array for array in packed.arrays.values() if array.dtype == float]
    return Found(rows=0 if rows is None else rows_beyond_chance(rows, numbers))


# --- said, or refused ---------------------------------------------------------------------------


def _refuse(where: str, found: Found, cells: Cells, part: str) -> None:
    held = {
        f"holds {found.rows} training rows as they are": found.rows,
        f"holds {found.targets} training targets as they are": found.targets,
        f"has {cells.single} leaves that are the target of a single row": cells.single,
    }
    for fault, count in held.items():
        if count:
            raise AuditError(where, f"{fault}; {REMEDIES[part]}")
    if found.words:
        fault = f"lists {found.words} words of fewer than {FEW} documents"
        raise AuditError(where, f"{fault}; {REMEDIES['words']}")


def _sentence(predictor: Found, density: Found, training: Training, text: bool) -> str:
    """Say what was found when both files were compared with the rows.

    Examples
    --------
    >>> _sentence(Found(), Found(2), Training(np.eye(9)), text=False)
    'Compared with 9 training rows: none stands in the predictor as it is, 2 in the density.'
    """
    n = n_rows(training.rows)
    if text:
        words = f"words of fewer than {FEW} documents"
        return (
            f"Compared with {n} training documents: {predictor.words or 'no'} {words} stand in the "
            f"predictor, {density.words or 'none'} in the density."
        )
    verb = (
        "stand in the predictor as they are"
        if predictor.rows
        else "stands in the predictor as it is"
    )
    rows = f"{predictor.rows or 'none'} {verb}, {density.rows or 'none'} in the density"
    targets = ""
    if training.targets is not None and np.asarray(training.targets).dtype.kind == "f":
        targets = f"; of their targets {predictor.targets or 'none'}"
    return f"Compared with {n} {training.what}: {rows}{targets}."
