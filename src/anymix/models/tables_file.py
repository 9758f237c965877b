"""The tables of a model as safetensors files: held-out rows, and log-densities of own rows.

Densities at the own rows of each source have a file of their own where the tables do not give them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix.exceptions import AuditError, InputError
from anymix.sources import HeldOut, Novelty, Tables, is_histogram

# Reading keeps some copies of a file, and some fifteen numbers for each of the p·m answers: with
# these two it stays below 1 GB.
LIMIT, MOST_ANSWERS = 200 * 10**6, 5 * 10**6
LARGE = f"has tables of more than {MOST_ANSWERS:,} answers or {LIMIT:,} bytes; give fewer rows"
# Responsibilities sum to one at every point, which densities never do; rounding is far below this.
SUM_TOLERANCE = 1e-6
NEEDED = {"log_masses", "predictions", "sample_domain"}
# Folders of format 1 lack targets, those of formats 1 to 3 what the model predicts at these rows.
HELD_OUT = {"fold", "held_out"}
OPTIONAL = {"targets", "sample_weight", "groups", "generalist", *HELD_OUT}
# A file has at most so many numbers besides each that `rows_that_fit` counts.
FILE_LIMIT = 5 * LIMIT // 2


def tables_to_arrays(tables: Tables, held_out: HeldOut | None = None) -> dict[str, NDArray[Any]]:
    """Write tables; targets are numbers, or positions in the classes, and no feature is there."""
    p, n, *told = tables.predictions.shape
    if n > rows_that_fit(p, math.prod(told)):
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
    if tables.groups is not None:
        arrays["groups"] = np.unique(tables.groups, return_inverse=True)[1].astype(np.int64)
    if tables.generalist is not None:
        arrays["generalist"] = np.asarray(tables.generalist, dtype=np.float64)
    if held_out is not None:
        arrays["fold"] = np.asarray(held_out.fold, dtype=np.int64)
        arrays["held_out"] = np.asarray(held_out.predictions, dtype=np.float64)
    return arrays


def rows_that_fit(n_sources: int, n_told: int) -> int:
    """Return the number of rows whose tables a model folder can hold.

    >>> rows_that_fit(10, 1)
    500000
    """
    return min(MOST_ANSWERS // n_sources, LIMIT // (8 * n_sources * (n_told + 1)))


def read_tables(
    path: Path, arrays: dict[str, NDArray[Any]], crossed: bool | None = None, **known: Any
) -> tuple[Tables, HeldOut | None]:
    """Return the tables in a file and the model's predictions there; none if crossed is None."""
    if not NEEDED <= set(arrays) <= NEEDED | OPTIONAL:
        raise AuditError(path, f"must hold the arrays {sorted(NEEDED)}")
    if len(HELD_OUT & set(arrays)) != (0 if crossed is None else 2):
        raise AuditError(path, f"does not go with the record, which says crossed={crossed}")
    if "targets" not in arrays:
        # Tables of the first format hold what was said at the label, or its error.
        kind = np.float64 if known["classes"] is None else np.int64
        arrays["targets"] = np.zeros(arrays["sample_domain"].size, dtype=kind)
        if known["classes"] is not None:
            arrays["predictions"] = arrays["predictions"][..., None]
    for holds, sentence in _rules(arrays, **known):
        if not holds:
            raise AuditError(path, sentence)
    tables = Tables(
        arrays["log_masses"],
        arrays["predictions"],
        arrays["targets"],
        arrays["sample_domain"].astype(np.intp),
        arrays.get("sample_weight"),
        groups=arrays.get("groups"),
        generalist=arrays.get("generalist"),
        **known,
    )
    if crossed is None:
        return tables, None
    return tables, HeldOut(arrays["held_out"], arrays["fold"].astype(np.intp), crossed)


def _rules(
    arrays: dict[str, NDArray[Any]],
    classes: NDArray[Any] | None,
    has_densities: bool,
    at_label: bool,
) -> Iterator[tuple[Any, str]]:
    """Yield what must hold of tables, in order, and the sentence that refuses them else."""
    log_masses, h, y = arrays["log_masses"], arrays["predictions"], arrays["targets"]
    domain = arrays["sample_domain"]
    whole = {"sample_domain", "fold", "groups", *({"targets"} if h.ndim == 3 else ())}
    for name, array in arrays.items():
        # Smaller numbers would grow when they are computed with.
        due = array.dtype == (np.int64 if name in whole else np.float64)
        yield due, f"has {name} of the type {array.dtype}, which they never have"
    yield log_masses.size and h.size, "has tables of no rows"
    same = log_masses.ndim == 2 and h.ndim <= 3 and h.shape[:2] == log_masses.shape
    yield same, "has tables of different shapes"
    yield log_masses.shape[1] <= rows_that_fit(len(h), math.prod(h.shape[2:])), LARGE
    for name in sorted(set(arrays) - {"log_masses", "predictions"}):
        each = name in ("held_out", "generalist")
        shape = h.shape[1:] if each else log_masses.shape[1:]
        yield arrays[name].shape == shape, f"has {name} of the wrong length"
    # A density may be zero, and its logarithm then -inf; nothing else is not finite.
    numbers = [array for name, array in arrays.items() if name != "log_masses"]
    finite = all(np.isfinite(array).all() for array in numbers) and (log_masses < np.inf).all()
    yield finite, "has numbers that are not finite"
    every = np.array_equal(np.unique(domain), np.arange(len(log_masses)))
    yield every, "does not have rows of every source, and of no other"
    yield arrays.get("sample_weight", np.zeros(1)).min() >= 0, "has a negative weight"
    groups = arrays.get("groups", np.zeros(1, dtype=np.int64))
    numbered = np.array_equal(np.unique(groups), np.arange(int(groups.max()) + 1))
    yield numbered, "has groups that are not numbered 0, 1, and so on"
    # Errors have targets of zero; numbers whose targets are all zero are errors, too.
    possible = not (at_label and y.any())
    if classes is not None:
        # Probabilities are of all classes, or of the one that occurred.
        n_columns = h.shape[2] if h.ndim == 3 else 0
        known = n_columns in (1, len(classes))
        yield known, "has predictions or targets that are not of the model's classes"
        shares = [h, arrays.get("held_out", h), arrays.get("generalist", h)]
        sound = y.min() >= 0 and y.max() < n_columns
        sound &= all(some.min() >= 0 and some.max() <= 1 + 1e-9 for some in shares)
        yield sound, "has labels that are not there, or numbers that are not probabilities"
        # What sites tell has the label first, alone or before all other classes.
        possible &= n_columns == len(classes) or at_label
    totals = np.logaddexp.reduce(log_masses, axis=0)
    shown = not (np.abs(totals) <= SUM_TOLERANCE).all()
    stated = f"does not go with the record, which says has_densities={has_densities}"
    yield shown == has_densities, stated
    yield possible, f"does not go with the record, which says at_label={at_label}"


NOVELTY_LIMIT = 50 * 10**6
# Log-densities at home and, from rounded files, histograms of log_total; how many each source has.
NOVELTY_TYPES = {"own": np.float64, "sizes": np.int64}
HISTOGRAM_TYPES = NOVELTY_TYPES | {"totals": np.float64, "total_sizes": np.int64}


def novelty_to_arrays(model: Any) -> dict[str, NDArray[Any]] | None:
    """Return the log-densities of own rows and their number; None if the tables hold them."""
    novelty: Novelty | None = getattr(model, "novelty_", None)
    if novelty is None or novelty.is_of(model.tables_):
        return None
    sizes = np.array([own.size for own in novelty.own], dtype=np.int64)
    found = {"own": np.concatenate(novelty.own).astype(np.float64), "sizes": sizes}
    if novelty.totals:
        found["totals"] = np.concatenate(novelty.totals, axis=1)
        found["total_sizes"] = np.array([one.shape[1] for one in novelty.totals], dtype=np.int64)
    return found


def read_novelty(path: Path, arrays: dict[str, NDArray[Any]], tables: Tables) -> Novelty:
    """Return what is usual at each source, which has no more rows than the tables have of it."""
    types = {name: array.dtype for name, array in arrays.items()}
    if types not in (NOVELTY_TYPES, HISTOGRAM_TYPES):
        raise AuditError(
            path, f"must hold the arrays {sorted(NOVELTY_TYPES)}, of float64 and int64"
        )
    rows = np.bincount(np.asarray(tables.sample_domain), minlength=len(tables.log_masses))
    own = tuple(_sorted_parts(path, arrays["own"], arrays["sizes"], rows))
    if "totals" not in arrays:
        return Novelty(own)
    both, sizes = arrays["totals"], arrays["total_sizes"]
    if sizes.shape != rows.shape or (sizes < 1).any() or both.shape != (2, int(sizes.sum())):
        raise AuditError(path, "does not have one histogram for each source")
    totals = np.split(both, np.cumsum(sizes)[:-1], axis=1)
    if not all(is_histogram(one, n) for one, n in zip(totals, rows.tolist(), strict=True)):
        raise AuditError(path, "has a histogram that cannot be of its source's rows")
    return Novelty(own, tuple(totals))


def _sorted_parts(
    path: Path, values: NDArray[Any], sizes: NDArray[Any], rows: NDArray[Any]
) -> list[NDArray[np.float64]]:
    """Return the numbers of each source, which has at least as many rows."""
    sound = sizes.shape == rows.shape and values.shape == (int(sizes.sum()),)
    if not sound or (sizes < 1).any() or (sizes > rows).any():
        raise AuditError(path, "has not as many numbers of each source as it can have rows")
    # A density may be zero, and its logarithm then -inf.
    if np.isnan(values).any() or (values == np.inf).any():
        raise AuditError(path, "has numbers that cannot be logarithms of densities")
    parts = np.split(values, np.cumsum(sizes)[:-1])
    if any((part[1:] < part[:-1]).any() for part in parts):
        raise AuditError(path, "has numbers that are not sorted")
    return parts
