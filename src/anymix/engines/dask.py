"""Rows on a Dask cluster: predictions are lazy, and what is learned from are sums of partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix.engines.cluster import connected, current, dask, mapping, sent
from anymix.engines.dask_rows import Asking, collection, names_of, tables_on
from anymix.estimators import DistributionWeightedClassifier, DistributionWeightedRegressor
from anymix.exchange import need
from anymix.sources import Source


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
    return np.asarray(model.predict_proba(X) if proba else model.predict(X))


def _answer_frame(X: Any, model: Any, proba: bool) -> Any:
    return _framed(_answer(X, model, proba), X.index, model)


def _framed(values: NDArray[Any], index: Any, model: Any) -> Any:
    """Name answers as the command does."""
    pandas = need("pandas", "dask")
    labels = getattr(model, "classes_", None)
    if values.ndim == 2:
        return pandas.DataFrame(values, index, columns=[f"p({label})" for label in model.classes_])
    return pandas.Series(values, index, name="prediction" if labels is None else "label")
