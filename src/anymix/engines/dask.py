"""Rows on a Dask cluster: predictions are lazy, and what is learned from are sums of partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix.engines.cluster import connected, current, dask, keeping, sent
from anymix.engines.dask_rows import Asking, as_known, collection, names_of, tables_on
from anymix.engines.dask_teaching import dealt_out
from anymix.estimators import DistributionWeightedClassifier, DistributionWeightedRegressor
from anymix.exceptions import InputError
from anymix.exchange import need
from anymix.models import rows_that_fit
from anymix.sources import Blocks, Tables


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
    none = _framed(_nothing(model, proba), rows._meta.index[:0], model)
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
    """Learn z from rows on a cluster: each partition is asked about where it lies.

    Rows never move; what the sources say of them does, 2p numbers a row (p (1 + c) with c classes).
    Where a model folder can hold that of all rows it comes here, and answer and certificate are
    those of `fit_tables` in one process.  Of more rows some come to judge, at most a fifth of each
    source's; all others stay and teach, by sums in the order of the partitions.  A worker that dies
    changes nothing.

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
    """Ask the sources where the rows are, and leave what they say there: labelled rows in parts.

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
        chunks=(X.chunks[0], none.shape[1:]) if proba else (X.chunks[0],),
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
    return _framed(_answer(X, model, proba), X.index, model)


def _framed(values: NDArray[Any], index: Any, model: Any) -> Any:
    """Name answers as the command does."""
    pandas = need("pandas", "dask")
    labels = getattr(model, "classes_", None)
    if values.ndim == 2:
        return pandas.DataFrame(values, index, columns=[f"p({label})" for label in model.classes_])
    return pandas.Series(values, index, name="prediction" if labels is None else "label")
