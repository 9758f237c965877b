"""Rows on a Dask cluster: predictions are lazy, and learning uses sums over partitions."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import IntArray, named_sources
from anymix.core import SeenRowsSketch
from anymix.engines.chunks import RowSplit
from anymix.engines.cluster import connected, current, dask, keeping, mapping, sent
from anymix.estimators import DistributionWeightedClassifier, DistributionWeightedRegressor
from anymix.exceptions import InputError
from anymix.models import rows_that_fit
from anymix.sources import (
    Block,
    Blocks,
    FoldResult,
    LearningSettings,
    Seen,
    Source,
    Tables,
    TrainingFold,
    add_to_sketch,
    evaluate,
    in_threads,
    learn_fold,
)
from anymix.storage import need


def predict(model: Any, X: Any, *, proba: bool = False, client: Any = None) -> Any:
    """Predict lazily: nothing is computed here, and no row leaves its partition.

    The model is sent once to each worker.

    Parameters
    ----------
    model : a fitted model
    X : dask DataFrame, Series (of texts) or array, or the path of a Parquet file or folder
        Sizes of chunks may be unknown.  Of Parquet the columns are read that the model knows.
    proba : bool
        Probabilities of all classes, in place of labels.
    client : distributed.Client, optional
        None takes the current one; where there is none, the answer belongs to no cluster, and any
        scheduler can compute it.

    Returns
    -------
    dask array for an array; else a Series "label" or "prediction", or a DataFrame with a column
    p(label) for each class, with the index of X.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from anymix import DistributionWeightedRegressor
    >>> from anymix.engines.dask import predict
    >>> X, d = np.arange(40.0).reshape(40, 1), np.repeat(["low", "high"], 20)
    >>> model = DistributionWeightedRegressor(random_state=0).fit(X, X[:, 0], d)
    >>> answer = predict(model, da.from_array(X, chunks=10))
    >>> answer
    dask.array<_answer, shape=(40,), dtype=float64, chunksize=(10,), chunktype=numpy.ndarray>
    >>> bool(np.allclose(answer, model.predict(X)))
    True
    """
    rows = collection(X, names_of(model))
    whole = sent(model, current() if client is None else client)
    if isinstance(rows, dask("array").Array):
        return _of_array(rows, model, whole, proba)
    none = _answer_frame(rows._meta.iloc[:0], model, proba)
    return rows.map_partitions(_answer_frame, whole, proba, meta=none)


def fit(
    model: Any,
    X: Any,
    y: Any,
    sample_domain: Any = None,
    sample_weight: Any = None,
    *,
    client: Any = None,
) -> Any:
    """Learn z from rows on a cluster; each partition is evaluated where it is.

    Rows never move; the sources' predictions and densities do, 2p numbers a row (p (1 + c) with c
    classes). If a model folder can hold those of all rows, they are collected, and result and
    certificate are those of `fit_tables` in one process.  Of more rows some are collected as
    evaluation rows, at most a fifth of each source's; all others stay and train, by sums in the
    order of the partitions.  A worker that dies changes nothing.

    Parameters
    ----------
    model : DistributionWeightedClassifier or Regressor of sources, or a list of Source
        Sources are trained elsewhere, each where its rows are: see `from_sources`.
    X : dask DataFrame or array, the path of a Parquet file or folder, or a dict of them
        A dict has the rows of each source by its name, and needs no sample_domain.
    y, sample_domain, sample_weight : str, or dask Series or array
        The name of a column of X, or a collection that has the partitions of X.
    client : distributed.Client or its address, optional
        None takes the current one, or else a `LocalCluster` that is closed at the end.

    Returns
    -------
    The fitted model.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from distributed import Client
    >>> from anymix import Source
    >>> from anymix.engines.dask import fit
    >>> near = Source("near", lambda X: X[:, 0], lambda X: -X[:, 0] ** 2)
    >>> far = Source("far", lambda X: 4 - X[:, 0], lambda X: -((X[:, 0] - 4) ** 2))
    >>> X = da.linspace(0, 4, 400, chunks=100)[:, None]
    >>> y, domain = da.minimum(X[:, 0], 4 - X[:, 0]), (X[:, 0] > 2).astype(int)
    >>> options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    >>> with Client(processes=False, **options):
    ...     model = fit([near, far], X, y, domain)
    >>> model.predict(np.array([[0.5], [3.5]])).round(1)
    array([0.5, 0.5])
    """
    found = _of_sources(model)
    with connected(client) as opened:
        parts = tables_on(opened, *_questions(found, X, y, sample_domain, sample_weight))
        most = rows_that_fit(parts.n_sources, parts.n_classes or 1)
        if parts.n_points > most:
            judging, teaching = dealt_out(parts, most, keeping(opened))
            del parts  # the workers need not hold the rows twice
            return found.fit_tables(judging, teaching)
        here = parts.map(attrgetter("tables"), parts.blocks)
        return found.fit_tables(Tables.concatenate(list(here)))


def ask(
    model: Any,
    X: Any,
    y: Any,
    sample_domain: Any = None,
    sample_weight: Any = None,
    *,
    client: Any = None,
) -> Blocks:
    """Evaluate the sources on the workers that hold the rows; the tables stay there, in parts.

    `anymix.sources.learn` and `certify_tables` then send queries, and no table moves at all.

    Parameters
    ----------
    model, X, y, sample_domain, sample_weight : see `fit`
    client : distributed.Client, optional
        None takes the current one; it must stay open for as long as the parts are asked.
    """
    opened = current() if client is None else client
    if opened is None:
        raise InputError(
            "ask", "needs a cluster that stays open; start one with: client = distributed.Client()"
        )
    given = _questions(_of_sources(model), X, y, sample_domain, sample_weight)
    return tables_on(opened, *given)


def _questions(
    model: Any, X: Any, y: Any, sample_domain: Any, sample_weight: Any
) -> tuple[Any, ...]:
    """Return what is asked, the rows, and their columns."""
    if sample_domain is None and not isinstance(X, Mapping) and len(model.sources) > 1:
        raise ValueError("sample_domain is needed: a column of X, or a dict of each source's rows.")
    labels = [source.labels for source in model.sources if source.gives_probabilities]
    classes = np.unique(np.concatenate(labels)) if labels else None
    asking = Asking(model.sources, classes, names_of(model))
    domain = np.asarray(model.sources[0].name) if sample_domain is None else sample_domain
    return asking, X, *(c for c in (y, domain, sample_weight) if c is not None)


def _of_sources(model: Any) -> Any:
    """Return a model whose sources are there; without dask, say how to get it."""
    dask()
    if isinstance(model, Sequence):
        labels = bool(model) and model[0].gives_probabilities
        kind = DistributionWeightedClassifier if labels else DistributionWeightedRegressor
        return kind.from_sources(model)
    if not model.sources:
        raise InputError(
            type(model).__name__,
            "has no sources; train one on the rows of each domain, where they are, and give all to "
            "from_sources: only z is learned on a cluster",
        )
    return model


def _of_array(X: Any, model: Any, whole: Any, proba: bool) -> Any:
    none = _nothing(model, proba)
    return X.map_blocks(
        _answer,
        whole,
        proba,
        dtype=none.dtype,
        meta=none,
        drop_axis=list(range(1, X.ndim)),
        new_axis=[1] if proba else None,
        chunks=(X.chunks[0], *([none.shape[1:]] if proba else [])),
    )


def _nothing(model: Any, proba: bool) -> NDArray[Any]:
    """What is said of no rows: of the right type and width."""
    labels = getattr(model, "classes_", None)
    if proba:
        return np.empty((0, len(model.classes_)))
    return np.empty(0) if labels is None else np.asarray(labels)[:0]


def _answer(X: Any, model: Any, proba: bool) -> NDArray[Any]:
    """Answer for one partition, which may be empty."""
    if len(X) == 0:
        return _nothing(model, proba)
    rows = as_known(X, names_of(model))
    return np.asarray(model.predict_proba(rows) if proba else model.predict(rows))


def _answer_frame(X: Any, model: Any, proba: bool) -> Any:
    """Answer for one partition, as a frame or series that is named as the command does."""
    pandas, labels = need("pandas", "dask"), getattr(model, "classes_", None)
    values = _answer(X, model, proba)
    if values.ndim == 2:
        return pandas.DataFrame(
            values, X.index, columns=[f"p({label})" for label in model.classes_]
        )
    return pandas.Series(values, X.index, name="prediction" if labels is None else "label")


def collection(X: Any, names: list[str] | None = None) -> Any:
    """Return a dask collection as it is, and a Parquet file or folder as a DataFrame of columns."""
    if isinstance(X, str | PathLike):
        return dask("dataframe").read_parquet(X, columns=names)
    frames, arrays = dask("dataframe"), dask("array")
    if not isinstance(X, frames.DataFrame | frames.Series | arrays.Array):
        raise TypeError(
            f"{type(X).__name__} is not a Dask collection; give a dask DataFrame or array, or the "
            "path of a Parquet folder, and rows that are in memory to the model itself."
        )
    # A partition has whole rows.
    return X.rechunk({1: -1}) if X.ndim > 1 and getattr(X, "numblocks", (1, 1))[1] > 1 else X


def names_of(model: Any) -> list[str] | None:
    """Return the column names that a model, or one of its sources, was fitted with; or None."""
    found = [getattr(model, "feature_names_in_", None)]
    for source in getattr(model, "sources_", None) or model.sources or ():
        columns = getattr(source.columns, "names", None)
        found += [source.feature_names, columns]
        found.append(getattr(source.predictor, "feature_names_in_", None))
    return next(([str(name) for name in names] for names in found if names is not None), None)


def as_known(X: Any, names: Sequence[str] | None) -> Any:
    """Drop the column names of a frame if the model was fitted without names."""
    return X.to_numpy() if names is None and hasattr(X, "columns") else X


@dataclass(frozen=True)
class Asking:
    """What a worker needs to evaluate a partition: sources, all labels, column names."""

    sources: Sequence[Source]
    classes: NDArray[Any] | None = None
    features: Sequence[str] | None = None

    def __call__(self, block: Any, *columns: Any) -> Block:
        """Ask every source about every row; y, the domain and weights are columns, or arrays."""
        named = [c for c in columns if isinstance(c, str)]
        y, domain, *weight = (
            block[c].to_numpy() if isinstance(c, str) else np.asarray(c) for c in columns
        )
        if self.classes is None and not np.isfinite(y.astype(float)).all():
            raise InputError("y", "has a missing or an infinite value; leave such rows out")
        if hasattr(block, "columns"):
            block = block[self.features or [c for c in block.columns if c not in named]]
        names = [source.name for source in self.sources]
        d = named_sources(np.broadcast_to(domain, y.shape), names)
        block = as_known(block, self.features)
        return Block(evaluate(self.sources, block, self.classes).labelled(y, d, *weight))


def tables_on(client: Any, asking: Asking, X: Any, *columns: Any) -> Blocks:
    """Evaluate the sources where the rows are, X or those of each source by name."""
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
    blocks, call = np.ravel(rows.to_delayed()), dask().delayed(operator.call, pure=False)
    given = [
        [c] * len(blocks)
        if isinstance(c, str) or np.ndim(c) == 0
        else np.ravel(collection(c).to_delayed())
        for c in columns
    ]
    if wrong := [len(c) for c in given if len(c) != len(blocks)]:
        raise InputError(
            f"X in {len(blocks)} partitions",
            f"has targets, domains or weights in {wrong[0]}; cut them alike, or name columns of X",
        )
    return [call(whole, *given) for given in zip(blocks, *given, strict=True)]


class BlockTrainingRows:
    """Training rows in parts; `n_points` of them, recognised by `seen`."""

    def __init__(self, tables: Blocks):
        self.tables = tables
        self.n_points = tables.n_points

    def learned(self, goal: LearningSettings) -> FoldResult:
        """Learn one combination from all of them, by queries to the parts."""
        return learn_fold(TrainingFold(self.tables), goal)

    def seen(self) -> Seen:
        """Remember the training rows: of each part the rows that the whole would remember."""
        first, *others = self.tables.blocks
        (sketch,) = self.tables.map(partial(_sketch, salt=""), [first])
        for other in self.tables.map(partial(_sketch, salt=sketch.salt), others):
            sketch.join(other)
        return Seen(None, sketch.seen_rows())


def dealt_out(tables: Blocks, most: int, keep: Any) -> tuple[Tables, BlockTrainingRows]:
    """Collect about `most` evaluation rows; `keep` is a map whose results stay on the workers."""
    deal = RowSplit.of(tables.rows.sum(axis=0).tolist(), most)
    before = np.cumsum(tables.rows, axis=0) - tables.rows
    bring: Any = tables.map
    judges = bring(partial(_taken, deal=deal, judge=True), tables.blocks, before)
    others = keep(partial(_taken, deal=deal, judge=False), tables.blocks, before)
    judging = Tables.concatenate([part.tables for part in judges])
    return judging, BlockTrainingRows(Blocks(others, tables.map))


def _taken(part: Block, before: IntArray, deal: RowSplit, judge: bool) -> Block:
    """Return the rows of a part that judge, or the others; so many of each source came before."""
    tables, judges = part.tables, np.zeros(part.tables.n_points, dtype=bool)
    for k, first in enumerate(before.tolist()):
        own = np.flatnonzero(tables.domain == k)
        judges[own] = deal.drawn(k, first, own.size)[0]
    return Block(tables.taken(np.flatnonzero(judges == judge)))


def _sketch(part: Block, salt: str) -> SeenRowsSketch:
    sketch = SeenRowsSketch(salt)
    add_to_sketch(sketch, part.tables)
    return sketch
