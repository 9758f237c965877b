"""The generalist of sites that keep their rows: a linear model of common columns.

    columns     leaves of the trees that the sources' graphs hold, or else the features,
                standardised, where these are complete numbers
    learned     by the sums of `core.linear_sums`, for all folds and strengths in the same rounds
    then        each site keeps the predictions of its rows by the model of the other folds, and
                responds as if they were those of one more source that all may consult

Sites and server compute the same columns from the same source folders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray
from anymix.core import SKETCHED
from anymix.engines.rounds import key_of
from anymix.engines.wire import pack
from anymix.exceptions import InputError
from anymix.exchange import ReceivedSource, all_classes, received_trees
from anymix.sources import (
    MOST_TREES,
    N_FOLDS,
    Arrays,
    Block,
    GeneralistRecord,
    LeafColumns,
    LinearRows,
    NumberColumns,
    Query,
    Source,
    fit_by_sums,
    predictions_of,
)

NAME = "generalist"
# Queries of the fit; what lets sites predict by it; and the array that says by which one.
LINEAR, PREDICT, GENERAL = ("scales", "sketch", "step", "losses"), "generalist", "general"
ARRAYS = {
    "scales": set[str](),
    "sketch": set[str](),
    "step": {"theta", "without", "along", "at", "of"},
    "losses": {"theta", "fold"},
    PREDICT: {"theta"},
}
AGREED = {"mean", "scale"}
# Of one query: folds by strengths.  Coefficients of a model that fits are far below the largest.
MOST_PROBLEMS, LARGEST = 40, 1e12
# Largest standard deviation of log-odds at a site.  Steeper ones are 0 or 1 on either side of a
# plane, and sums by two planes next to each other are of the one row in between.  Labels of 20 000
# rows that a plane separates need 35.
MOST_SPREAD = 50.0
STRENGTH = 1.0
# The bit of a node of `BoostedTrees` that is a leaf.
LEAF = 1
Columns = LeafColumns | NumberColumns


def columns_of(received: Sequence[ReceivedSource]) -> Columns | None:
    """Return the columns that all sites can compute, or None."""
    found = [trees for one in received if (trees := received_trees(one)) is not None]
    if found:
        return LeafColumns(tuple(trees.first(MOST_TREES) for trees in found))
    features = received[0].manifest.features
    complete = all(each.gaps is None and each.categories is None for each in features)
    if received[0].manifest.is_text or not complete:
        return None
    return NumberColumns(STRENGTH, standardised=True)


def linear_rows(columns: Columns, X: Any, part: Block) -> LinearRows:
    """The rows of a site, which respond with sums; folds are those of the tables."""
    tables = part.tables
    fold = part.fold(_folds(tables.n_sources))
    y, n_classes = np.asarray(tables.targets), tables.n_classes or 0
    return LinearRows(columns, np.asarray(X, dtype=float), y, np.ones(len(y)), fold, n_classes)


def _folds(p: int) -> Arrays:
    return {"folds": np.array(N_FOLDS), "spread": np.zeros(p, dtype=bool)}


def width(columns: Any, n_features: int) -> int:
    """D: how many columns there are."""
    if not isinstance(columns, LeafColumns):
        return n_features
    return sum(int(((trees.kinds & LEAF) != 0).sum()) for trees in columns.models)


def check_linear(query: Query, rows: LinearRows) -> None:
    """Refuse what learning the generalist does not need, and arrays of other shapes."""
    where, arrays = f"the query {query.name!r:.60}", dict(query.arrays)
    agreed = {name: arrays.pop(name) for name in AGREED if name in arrays}
    if query.options or not set(arrays) <= ARRAYS[query.name]:
        raise InputError(where, "has options or arrays that the protocol does not need")
    d = rows.X.shape[1]
    standardised = isinstance(rows.columns, NumberColumns) and query.name != "scales"
    if set(agreed) != (AGREED if standardised else set()):
        raise InputError(where, "has other arrays that sites have agreed on")
    outputs = rows.n_classes if rows.n_classes > 2 else 1
    shape = (outputs, width(rows.columns, d) + 1)
    for name, array in (arrays | agreed).items():
        expected = {"mean": (d,), "scale": (d,)}.get(name)
        flat = name in ("without", "of", "fold")
        if expected is None:
            expected = (len(array),) if flat and array.ndim else (*array.shape[:1], *shape)
        if array.shape != expected or len(array) > max(MOST_PROBLEMS, d):
            raise InputError(where, f"has {name!r:.40} of shape {array.shape}")
        low, high = (-1, N_FOLDS - 1) if flat else (-LARGEST, LARGEST)
        if array.size and not (low <= array.min() <= array.max() <= high):
            raise InputError(where, f"has {name!r:.40} outside of {low:g} to {high:g}")
    if "scale" in agreed and not (agreed["scale"] > 0).all():
        raise InputError(where, "has scales that are not positive")
    if rows.n_classes and isinstance(rows.columns, NumberColumns):
        for name in {"theta", "at"} & set(arrays):
            if _spread(rows, arrays[name], agreed) > MOST_SPREAD:
                raise InputError(where, f"has {name!r} that is steeper than {MOST_SPREAD:g}")


def _spread(rows: LinearRows, theta: FloatArray, agreed: Arrays) -> float:
    """The largest standard deviation of log-odds at the rows of a site, by θ (b, c, D + 1)."""
    X = rows.columns.matrix(rows.X, agreed, rows.min_rows)
    scores = np.einsum("nd,bcd->nbc", X, theta[:, :, :-1])
    if theta.shape[1] > 1:
        scores -= scores.mean(axis=2, keepdims=True)
    return float(scores.std(axis=0).max(initial=0.0))


def expected_shapes(query: Query, columns: Columns, n_features: int, outputs: int) -> Any:
    """The shapes of a response to a query of the fit, by the names of its arrays."""
    d, arrays = width(columns, n_features), query.arrays
    if query.name == "scales":
        return {"weights": (1,), "mean": (n_features,), "second": (n_features,)}
    if query.name == "sketch":
        sketched = min(d, SKETCHED)
        return {"image": (d, sketched), "sums": (d,), "targets": (outputs,), "weight": ()}
    if query.name == "losses":
        b = len(arrays["fold"])
        return {"losses": (b,), "weights": (b,)}
    if query.name == PREDICT:
        return {}
    b, none = len(arrays.get("without", ())), (0,)
    at = (b,) if b else none
    slope = (b, outputs, d + 1) if b else none
    return {"value": at, "bend": at, "gradient": slope} | {
        "product": arrays["along"].shape if "along" in arrays else none
    }


def held_out_predictions_of(
    query: Query, rows: LinearRows, classes: NDArray[Any] | None
) -> FloatArray:
    """Predict each row of a site by the model that was learned without its fold: (n[, c])."""
    given = {name: query.arrays[name] for name in AGREED if name in query.arrays}
    found: FloatArray | None = None
    for t, theta in enumerate(query.arrays["theta"]):
        at = np.flatnonzero(rows.fold == t)
        if not at.size:
            continue
        model = Source(NAME, rows.columns.predictor(theta, classes, given))
        told = predictions_of(model, rows.X[at], classes)
        found = np.empty((len(rows.X), *told.shape[1:])) if found is None else found
        found[at] = told
    assert found is not None
    return found


def number_of(query: Query) -> int:
    """Identify a generalist by a number, a hash of its content."""
    return int(key_of(pack(query))[:12], 16)


def learn_generalist(
    ask: Callable[[Query, Iterable[Any]], list[Arrays]],
    names: Sequence[str],
    columns: Columns,
    received: Sequence[ReceivedSource],
) -> tuple[Source, int, GeneralistRecord]:
    """Learn it by rounds of `ask(query, names)`; return it with its number and its cost."""
    classes = all_classes(received)
    folds = (*range(N_FOLDS), -1)
    fit = fit_by_sums(columns, names, classes, folds, map=ask)
    # (K, S, c, D + 1): the strength is that of the least loss, on average over the sources.
    theta, S = fit.theta[:-1], len(fit.strengths)
    asked = {"theta": theta.reshape(-1, *theta.shape[2:]), "fold": np.repeat(range(N_FOLDS), S)}
    sums = ask(Query("losses", {}, fit.agreed | asked), names)
    by_source = [
        one["losses"].reshape(-1, S).sum(axis=0) / one["weights"].reshape(-1, S).sum(axis=0)
        for one in sums
    ]
    best = int(np.argmin(np.mean(by_source, axis=0)))
    told = Query(PREDICT, {}, {"theta": np.ascontiguousarray(theta[:, best]), **fit.agreed})
    ask(told, names)
    features = [feature.name for feature in received[0].manifest.features]
    model = Source(NAME, fit.predictors[-1][best], feature_names=features)
    numbers = fit.n_numbers + sum(np.size(a) for one in sums for a in one.values())
    record = GeneralistRecord(
        "sums over sites", fit.n_rounds + 2, int(numbers), fit.strengths[best]
    )
    return model, number_of(told), record
