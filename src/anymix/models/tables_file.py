"""The tables that a model was learned from, as one safetensors file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix._errors import AuditError
from anymix._files import read_file
from anymix.exchange import FileFacts, check_facts, load
from anymix.sources import Tables

LIMIT = 2**31
NEEDED, OPTIONAL = {"log_masses", "predictions", "sample_domain"}, {"targets", "sample_weight"}


def tables_to_arrays(tables: Tables) -> dict[str, NDArray[Any]]:
    """Write tables; targets are numbers, or positions in the classes, and no feature is there."""
    targets = np.asarray(tables.targets)
    kind = np.float64 if tables.classes is None else np.int64
    arrays: dict[str, NDArray[Any]] = {
        "log_masses": tables.log_masses,
        "predictions": tables.predictions,
        "targets": targets.astype(kind),
        "sample_domain": np.asarray(tables.sample_domain, dtype=np.int64),
    }
    if tables.sample_weight is not None:
        arrays["sample_weight"] = tables.sample_weight
    return arrays


def read_tables(path: Path, stated: FileFacts, **known: Any) -> Tables:
    """Read tables that the record of a model states; `known` are classes and has_densities."""
    content = read_file(path, LIMIT)
    check_facts(path, content, stated)
    arrays = load(content, str(path))
    if not NEEDED <= set(arrays) <= NEEDED | OPTIONAL:
        raise AuditError(path, f"must hold the arrays {sorted(NEEDED)}")
    _check_shapes(path, arrays)
    if "targets" not in arrays:
        _complete(arrays, known.get("classes") is not None)
    if known.get("classes") is not None:
        _check_labels(path, arrays, len(known["classes"]))
    domain = arrays["sample_domain"].astype(np.intp)
    return Tables(
        arrays["log_masses"],
        arrays["predictions"],
        arrays["targets"],
        domain,
        arrays.get("sample_weight"),
        **known,
    )


def _check_shapes(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    log_masses, h = arrays["log_masses"], arrays["predictions"]
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
