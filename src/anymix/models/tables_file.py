"""The tables that a model was learned from, as one safetensors file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix.exceptions import AuditError, InputError
from anymix.exchange import FileFacts, check_facts, load_arrays
from anymix.sources import Tables
from anymix.storage import read_file

# Reading keeps some copies of a file, and some fifteen numbers for each of the p·m answers: with
# these two it stays below 1 GB.
LIMIT, MOST_ANSWERS = 200 * 10**6, 5 * 10**6
LARGE = f"has tables of more than {MOST_ANSWERS:,} answers or {LIMIT:,} bytes; give fewer rows"
# Responsibilities sum to one at every point, which densities never do; rounding is far below this.
SUM_TOLERANCE = 1e-6
NEEDED, OPTIONAL = {"log_masses", "predictions", "sample_domain"}, {"targets", "sample_weight"}


def tables_to_arrays(tables: Tables) -> dict[str, NDArray[Any]]:
    """Write tables; targets are numbers, or positions in the classes, and no feature is there."""
    if _is_large(tables.predictions):
        raise InputError("the model", LARGE)
    targets = np.asarray(tables.targets)
    kind = np.float64 if tables.classes is None else np.int64
    arrays: dict[str, NDArray[Any]] = {
        "log_masses": np.asarray(tables.log_masses, dtype=np.float64),
        "predictions": np.asarray(tables.predictions, dtype=np.float64),
        "targets": targets.astype(kind),
        "sample_domain": np.asarray(tables.sample_domain, dtype=np.int64),
    }
    if tables.sample_weight is not None:
        arrays["sample_weight"] = np.asarray(tables.sample_weight, dtype=np.float64)
    return arrays


def rows_that_fit(n_sources: int, n_told: int) -> int:
    """Return of how many rows a model folder can hold the tables.

    >>> rows_that_fit(10, 1)
    500000
    """
    return min(MOST_ANSWERS // n_sources, LIMIT // (8 * n_sources * (n_told + 1)))


def _is_large(predictions: NDArray[Any]) -> bool:
    """Whether tables take too much memory, for writing as for reading."""
    answers = math.prod(predictions.shape[:2])
    return answers > MOST_ANSWERS or 8 * (predictions.size + answers) > LIMIT


def read_tables(path: Path, stated: FileFacts, **known: Any) -> Tables:
    """Read tables that the record of a model states; `known` are classes and flags."""
    content = read_file(path, LIMIT)
    check_facts(path, content, stated)
    arrays = load_arrays(content, str(path))
    if not NEEDED <= set(arrays) <= NEEDED | OPTIONAL:
        raise AuditError(path, f"must hold the arrays {sorted(NEEDED)}")
    _check_types(path, arrays)
    _check_shapes(path, arrays)
    if "targets" not in arrays:
        _complete(arrays, known.get("classes") is not None)
    if known.get("classes") is not None:
        _check_labels(path, arrays, len(known["classes"]))
    _check_flags(path, arrays, **known)
    domain = arrays["sample_domain"].astype(np.intp)
    return Tables(
        arrays["log_masses"],
        arrays["predictions"],
        arrays["targets"],
        domain,
        arrays.get("sample_weight"),
        **known,
    )


def _check_types(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Smaller numbers would grow when they are computed with."""
    whole = {"sample_domain", *({"targets"} if arrays["predictions"].ndim == 3 else ())}
    for name, array in arrays.items():
        if array.dtype != (np.int64 if name in whole else np.float64):
            raise AuditError(path, f"has {name} of the type {array.dtype}, which they never have")


def _check_flags(
    path: Path,
    arrays: dict[str, NDArray[Any]],
    classes: NDArray[Any] | None,
    has_densities: bool,
    at_label: bool,
) -> None:
    """Whether these are densities, and what was said at the label alone, shows in the numbers."""
    totals = np.logaddexp.reduce(arrays["log_masses"], axis=0)
    if has_densities == bool((np.abs(totals) <= SUM_TOLERANCE).all()):
        raise AuditError(
            path, f"does not go with the record, which says has_densities={has_densities}"
        )
    columns = arrays["predictions"].shape[2:]
    if classes is None:
        # Errors stand beside targets of zero; numbers whose targets are all zero are errors, too.
        possible = not at_label or not arrays["targets"].any()
    else:
        # What sites tell has the label first, alone or before all other classes.
        possible = columns == (len(classes),) or (at_label and columns == (1,))
        possible &= not (at_label and bool(arrays["targets"].any()))
    if not possible:
        raise AuditError(path, f"does not go with the record, which says at_label={at_label}")


def _check_shapes(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    log_masses, h = arrays["log_masses"], arrays["predictions"]
    if not log_masses.size or not h.size:
        raise AuditError(path, "has tables of no rows")
    if _is_large(h):
        raise AuditError(path, LARGE)
    if log_masses.ndim != 2 or h.ndim > 3 or h.shape[:2] != log_masses.shape:
        raise AuditError(path, "has tables of different shapes")
    for name in ("targets", "sample_domain", "sample_weight"):
        if name in arrays and arrays[name].shape != log_masses.shape[1:]:
            raise AuditError(path, f"has {name} of the wrong length")
    numbers = [array for name, array in arrays.items() if name != "log_masses"]
    # A density may be zero, and its logarithm then -inf; nothing else is not finite.
    impossible = np.isnan(log_masses).any() or (log_masses == np.inf).any()
    if impossible or not all(np.isfinite(array).all() for array in numbers):
        raise AuditError(path, "has numbers that are not finite")
    domain, weight = arrays["sample_domain"], arrays.get("sample_weight")
    every = np.array_equal(np.unique(domain), np.arange(len(log_masses)))
    if domain.dtype != np.int64 or not every:
        raise AuditError(path, "does not have rows of every source, and of no other")
    if weight is not None and weight.min() < 0:
        raise AuditError(path, "has a negative weight")


def _check_labels(path: Path, arrays: dict[str, NDArray[Any]], n_classes: int) -> None:
    """Probabilities are some of all classes, or of the one that occurred; labels are among them."""
    h, y = arrays["predictions"], arrays["targets"]
    columns = h.shape[2] if h.ndim == 3 else 0
    if columns not in (1, n_classes) or y.dtype != np.int64:
        raise AuditError(path, "has predictions or targets that are not of the model's classes")
    if y.min() < 0 or y.max() >= columns or h.min() < 0 or h.max() > 1 + 1e-9:
        raise AuditError(
            path, "has labels that are not there, or numbers that are not probabilities"
        )


def _complete(arrays: dict[str, NDArray[Any]], classification: bool) -> None:
    """Read tables of the first format, which hold what was said at the label, or its error."""
    arrays["targets"] = np.zeros(
        arrays["sample_domain"].size, dtype=int if classification else float
    )
    if classification:
        arrays["predictions"] = arrays["predictions"][:, :, None]
