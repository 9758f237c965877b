"""Evaluate sources on rows, each once and chunk by chunk; the result is a `Tables`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing

from anymix._arrays import FloatArray, n_rows
from anymix.densities import counted
from anymix.exceptions import InputError, PredictorError
from anymix.sources.model_source import Heard, Source
from anymix.sources.tables import Tables
from anymix.tables import as_rows

# Of numbers that sources give: beyond, losses overflow.
LARGEST = 1e30
# Numbers of the classes that a source gives at a time, 32 MB, and bytes of a table of all of them.
CHUNK_NUMBERS, TABLE_BYTES = 2**22, 2**30
# Large enough that what a model spends on each call does not show, whatever the model.
CHUNK_ROWS = 50_000


def evaluate(
    sources: Sequence[Source],
    X: Any,
    classes: ArrayLike | None = None,
    responsibilities: Any = None,
    chunk_rows: int = CHUNK_ROWS,
    reference: bool = True,
    generalist: Source | None = None,
) -> Tables:
    """Evaluate every source once on every row of X, chunk by chunk.

    Parameters
    ----------
    sources : sequence of Source
    X : rows, of whatever kind the sources take
    classes : labels, optional
        Given for classification; predictions are then (p, m, c) in this order.
    responsibilities : object with `log_responsibilities`, optional
        A `DomainClassifier` in place of the sources' densities.
    chunk_rows : int
        Rows evaluated at a time.
    reference : bool
        Whether scores log D_k/U become densities again, by log U(x): novelty needs it, and
        weights do not.
    generalist : Source, optional
        A predictor that sources may consult; it needs no density.

    Examples
    --------
    >>> import numpy as np
    >>> from anymix import Source, evaluate
    >>> near = Source("near", lambda X: 0 * X[:, 0], lambda X: -np.abs(X[:, 0]))
    >>> far = Source("far", lambda X: 1 + 0 * X[:, 0], lambda X: -np.abs(X[:, 0] - 5))
    >>> evaluate([near, far], np.array([[0.0], [5.0]])).predictions
    array([[0., 0.],
           [1., 1.]])
    """
    if not sources:
        raise ValueError("there are no sources to evaluate.")
    X = as_rows(X)
    n, models = n_rows(X), models_of(sources, responsibilities)
    labels = None if classes is None else np.asarray(classes)
    shape = (len(sources), n) if labels is None else (len(sources), n, labels.size)
    if len(shape) == 3 and 8 * np.prod(shape, dtype=float) > TABLE_BYTES:
        raise InputError(
            f"a table of {shape[0]} sources, {shape[1]} rows and {shape[2]} classes",
            f"takes more than {TABLE_BYTES // 2**20} MB; give fewer rows, or sources of fewer "
            "classes",
        )
    log_masses, predictions = np.empty(shape[:2]), np.empty(shape)
    general = None if generalist is None else np.empty(shape[1:])
    size = chunk_rows if labels is None else min(chunk_rows, max(1, CHUNK_NUMBERS // labels.size))
    for start in range(0, n, size):
        heard: Heard = {}
        block = slice(start, min(start + size, n))
        rows = counted(X if n <= size else _safe_indexing(X, block), models)
        log_masses[:, block] = masses_of(sources, rows, responsibilities)
        if reference and responsibilities is None:
            log_masses[:, block] += log_reference(sources, rows)
        try:
            for k, source in enumerate(sources):
                predictions[k, block] = predictions_of(source, rows, labels, heard, start)
            if general is not None and generalist is not None:
                general[block] = predictions_of(generalist, rows, labels, heard, start)
        except PredictorError as error:
            raise error.moved(start) from error
    return Tables(
        log_masses,
        predictions,
        classes=labels,
        has_densities=responsibilities is None,
        generalist=general,
    )


def models_of(sources: Sequence[Source], responsibilities: Any) -> list[Any]:
    """The models to evaluate: predictors, the own part of second rounds, the router."""
    predictors = [source.predictor for source in sources]
    return [getattr(p, "rest", p) for p in predictors] + [getattr(responsibilities, "model_", None)]


def predictions_of(
    source: Source,
    rows: Any,
    classes: NDArray[Any] | None,
    heard: Heard | None = None,
    start: int = 0,
) -> FloatArray:
    """Numbers (n,) of a regressor, or probabilities (n, c) of classes.

    `heard` has known predictions of models for these rows, and `start` the number of the first row:
    a number too large to be averaged is refused, and its row named.
    """
    if classes is not None:
        return source.predict_proba(rows, classes)
    found = source.predict(rows, heard)
    if found.size and not (found.min() >= -LARGEST and found.max() <= LARGEST):
        row = int(np.abs(found).argmax())
        raise InputError(
            f"source {source.name!r}",
            f"predicts {found[row]:.3g} for row {start + row}; beyond {LARGEST:g} no loss can be "
            "averaged: leave the row out, or repair the source",
        )
    return found


def masses_of(sources: Sequence[Source], X: Any, responsibilities: Any = None) -> FloatArray:
    """log D_k(x), or log r_k(x) from a classifier of sources, shape (p, n)."""
    if responsibilities is not None:
        return np.asarray(responsibilities.log_responsibilities(X), dtype=float)
    return np.stack([source.log_density(X) for source in sources])


def log_reference(sources: Sequence[Source], X: Any) -> FloatArray:
    """log U(x) where the scores of all densities are log D_k/U, and else 0: (n,) or a number.

    Weights do not need U, as it is the same for all; novelty does.
    """
    reference: Any = getattr(sources[0].density, "reference_", None)
    if not hasattr(reference, "log_density"):
        return np.zeros(1)
    return np.asarray(reference.log_density(X))
