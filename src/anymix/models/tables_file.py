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
    log_masses, domain = arrays["log_masses"], arrays["sample_domain"]
    if log_masses.ndim != 2 or arrays["predictions"].shape[:2] != log_masses.shape:
        raise AuditError(path, "has tables of different shapes")
    for name in ("targets", "sample_domain", "sample_weight"):
        if name in arrays and arrays[name].shape != log_masses.shape[1:]:
            raise AuditError(path, f"has {name} of the wrong length")
    if domain.size and not 0 <= domain.min() <= domain.max() < len(log_masses):
        raise AuditError(path, "names a source that is not there")


def _complete(arrays: dict[str, NDArray[Any]], classification: bool) -> None:
    """Read tables of the first format, which hold what was said at the label, or its error."""
    arrays["targets"] = np.zeros(
        arrays["sample_domain"].size, dtype=int if classification else float
    )
    if classification:
        arrays["predictions"] = arrays["predictions"][:, :, None]
