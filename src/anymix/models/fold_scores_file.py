"""The densities of the folds as a safetensors file, by which the monitor scores traffic.

`layout` is JSON, for each fold the kind of the classifier of sources and of each source's density,
null where there is none; arrays of fold t are named t.router.NAME and t.k.NAME.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import IntArray
from anymix.exceptions import AuditError
from anymix.exchange import DocumentDensity, density_from_arrays, density_to_arrays
from anymix.sources import FoldDensities, FoldScores, Tables

Arrays = dict[str, NDArray[Any]]
FOLDS_LIMIT, LONGEST_LAYOUT = 10**9, 10**6
ROWS = {"rows": np.int64, "fold": np.int64, "novelty": np.float64}
ROUTER, LAYOUT = "router", "layout"


def fold_scores_to_arrays(model: Any) -> Arrays | None:
    """Return the densities of the folds as arrays; None if the model has none."""
    known: FoldScores | None = getattr(model.result_.evidence, "fold_scores", None)
    if known is None:
        return None
    arrays: Arrays = {name: getattr(known, name).astype(kind) for name, kind in ROWS.items()}
    layout: list[list[str | None]] = [[] for _ in known.learned]
    for t, name, part in _parts(known.learned):
        kind, found = (None, {}) if part is None else density_to_arrays(part)
        layout[t].append(kind)
        arrays |= {f"{t}.{name}.{array}": value for array, value in found.items()}
    arrays[LAYOUT] = np.frombuffer(json.dumps(layout).encode(), np.uint8).copy()
    return arrays


def _parts(learned: tuple[FoldDensities, ...]) -> Iterator[tuple[int, str, Any]]:
    for t, fold in enumerate(learned):
        yield t, ROUTER, fold.router
        for k, density in enumerate(fold.densities):
            yield t, str(k), density


def read_fold_scores(
    path: Path, arrays: Arrays, tables: Tables, n_features: int, text: bool, names: Any = None
) -> FoldScores:
    """Build the densities of the folds from untrusted arrays.

    text says whether rows are documents; `names` are those of the columns, if densities know them.
    """
    parts: dict[str, Arrays] = {}
    for name in sorted(set(arrays) - {*ROWS, LAYOUT}):
        part, _, array = name.rpartition(".")
        parts.setdefault(part, {})[array] = arrays[name]
    learned = []
    for t, kinds in enumerate(_layout(path, arrays, tables.n_sources)):
        found: list[Any] = []
        for name, kind in zip([ROUTER, *map(str, range(tables.n_sources))], kinds, strict=True):
            own = parts.pop(f"{t}.{name}", {})
            if kind is None:
                _refuse_unless(path, not own, "holds arrays of a density that it does not list")
                found.append(None)
                continue
            is_router = kind == "domain_classifier"
            _refuse_unless(path, is_router == (name == ROUTER), f"has a {kind} for {name}")
            density = density_from_arrays(kind, own, n_features, str(path))
            _refuse_unless(
                path,
                (density.takes != "numbers") == text,
                "has densities of another kind of rows than the sources take",
            )
            if names is not None and hasattr(density, "n_features_in_"):
                density.feature_names_in_ = names
            found.append(DocumentDensity(density) if text else density)
        learned.append(FoldDensities(tuple(found[1:]), found[0]))
    _refuse_unless(path, not parts, "holds arrays that its layout does not list")
    return FoldScores(tuple(learned), *_rows(path, arrays, tables, len(learned)))


def _layout(path: Path, arrays: Arrays, n_sources: int) -> list[list[str | None]]:
    """Return the kinds of densities of each fold: the router's, then those of the sources."""
    stated = arrays.get(LAYOUT, np.zeros(0))
    sound = stated.dtype == np.uint8 and stated.ndim == 1 and 0 < stated.size <= LONGEST_LAYOUT
    _refuse_unless(path, sound, "has no layout")
    try:
        layout = json.loads(stated.tobytes())
    except (ValueError, RecursionError) as error:
        raise AuditError(path, "has a layout that is no JSON") from error
    sound = isinstance(layout, list) and bool(layout)
    for fold in layout if sound else []:
        sound &= isinstance(fold, list) and len(fold) == n_sources + 1
        sound = sound and all(kind is None or isinstance(kind, str) for kind in fold)
        # All sources have a density, or a router takes their place.
        lacking = sound and fold[1:].count(None)
        sound = sound and (lacking == 0 or (lacking == n_sources and fold[0] is not None))
        sound = sound and [kind is None for kind in fold] == [kind is None for kind in layout[0]]
    _refuse_unless(path, sound, "has a layout that does not fit the sources")
    return list(layout)


def _rows(
    path: Path, arrays: Arrays, tables: Tables, n_folds: int
) -> tuple[IntArray, IntArray, NDArray[np.float64]]:
    """Return which held-out rows were scored, by which fold, and how novel they are."""
    found = [arrays.get(name, np.zeros(0)) for name in ROWS]
    shape = found[0].shape
    sound = len(shape) == 1 and shape[0] > 0
    for array, kind in zip(found, ROWS.values(), strict=True):
        sound &= array.dtype == kind and array.shape == shape
    _refuse_unless(path, sound, f"must hold the arrays {sorted(ROWS)} of one length")
    rows, fold, novelty = found
    sound = rows.min() >= 0 and rows.max() < tables.n_points and bool((np.diff(rows) > 0).all())
    sound &= np.array_equal(np.unique(fold), np.arange(n_folds))
    sound &= bool(((novelty >= 0) & (novelty <= 1)).all())
    domain = tables.domain[rows.clip(0, tables.n_points - 1)]
    sound &= bool((np.bincount(domain, minlength=tables.n_sources) >= 2).all())
    _refuse_unless(path, sound, "has rows that are not those of its folds")
    return rows.astype(np.intp), fold.astype(np.intp), novelty


def _refuse_unless(path: Path, condition: Any, cause: str) -> None:
    if not condition:
        raise AuditError(path, cause)
