"""Rows of dask as parts: each partition is asked about where it lies, and its tables stay there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import named_sources
from anymix.engines.cluster import dask, mapping, sent
from anymix.exceptions import InputError
from anymix.sources import Block, Blocks, Source, Tables, evaluate, in_threads


def collection(X: Any, names: list[str] | None = None) -> Any:
    """Return a dask collection as it is, and a Parquet file or folder as a DataFrame of columns."""
    if isinstance(X, str | PathLike):
        return dask("dataframe").read_parquet(X, columns=names)
    frames, arrays = dask("dataframe"), dask("array")
    if not isinstance(X, frames.DataFrame | frames.Series | arrays.Array):
        raise TypeError(
            f"{type(X).__name__} is no collection of dask; give a dask DataFrame or array, or the "
            "path of a Parquet folder, and rows that are in memory to the model itself."
        )
    # A partition has whole rows.
    return X.rechunk({1: -1}) if X.ndim > 1 and getattr(X, "numblocks", (1, 1))[1] > 1 else X


def names_of(model: Any) -> list[str] | None:
    """Return the columns that a model, or one of its sources, knows by name; or None."""
    found = [getattr(model, "feature_names_in_", None)]
    for source in getattr(model, "sources_", None) or model.sources or ():
        columns = getattr(source.columns, "names", None)
        found += [source.feature_names, columns]
        found.append(getattr(source.predictor, "feature_names_in_", None))
    return next(([str(name) for name in names] for names in found if names is not None), None)


def as_known(X: Any, names: Sequence[str] | None) -> Any:
    """Take the names of columns off a frame where nobody knows them."""
    return X.to_numpy() if names is None and hasattr(X, "columns") else X


@dataclass(frozen=True)
class Asking:
    """What a worker needs to make tables of a partition: sources, all labels, names of columns."""

    sources: Sequence[Source]
    classes: NDArray[Any] | None = None
    features: Sequence[str] | None = None

    def __call__(self, block: Any, *columns: Any) -> Tables:
        """Ask every source about every row; y, the domain and weights are columns, or arrays."""
        named = [c for c in columns if isinstance(c, str)]
        y, domain, *weight = (
            block[c].to_numpy() if isinstance(c, str) else np.asarray(c) for c in columns
        )
        if self.classes is None and not np.isfinite(y.astype(float)).all():
            raise InputError("y", "has a gap, or what is no finite number; leave such rows out")
        if hasattr(block, "columns"):
            block = block[self.features or [c for c in block.columns if c not in named]]
        names = [source.name for source in self.sources]
        d = named_sources(np.broadcast_to(domain, y.shape), names)
        block = as_known(block, self.features)
        return evaluate(self.sources, block, self.classes).labelled(y, d, *weight)


def tables_on(client: Any, asking: Asking, X: Any, *columns: Any) -> Blocks:
    """Ask the sources where the rows are; the parts are futures, and none of them is empty.

    X is a collection, or one for each source by its name, whose domain need not be told then.
    """
    whole = sent(asking, client)
    if isinstance(X, Mapping):
        y, _, *weight = columns
        tasks = [
            task
            for name, rows in X.items()
            for task in _asked(whole, rows, asking.features, y, np.asarray(name), *weight)
        ]
    else:
        tasks = _asked(whole, X, asking.features, *columns)
    parts, asked = client.compute(tasks), mapping(client)
    sizes = asked(attrgetter("tables.n_points"), parts)
    some = [part for part, n in zip(parts, sizes, strict=True) if n]
    return Blocks(some, asked, in_threads)


def _asked(whole: Any, X: Any, features: Sequence[str] | None, *columns: Any) -> list[Any]:
    """Return a task for each partition of X."""
    named = [c for c in columns if isinstance(c, str)]
    rows = collection(X, None if features is None else [*features, *named])
    blocks, call = _blocks(rows), dask().delayed(_part, pure=False)
    given = [
        [c] * len(blocks) if isinstance(c, str) or np.ndim(c) == 0 else _blocks(collection(c))
        for c in columns
    ]
    if wrong := [len(c) for c in given if len(c) != len(blocks)]:
        raise InputError(
            f"X in {len(blocks)} partitions",
            f"has targets, domains or weights in {wrong[0]}; cut them alike, or name columns of X",
        )
    return [call(whole, *given) for given in zip(blocks, *given, strict=True)]


def _blocks(rows: Any) -> list[Any]:
    return list(np.ravel(rows.to_delayed()))


def _part(asking: Asking, *given: Any) -> Block:
    return Block(asking(*given))
