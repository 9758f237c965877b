"""A second round of training as one graph: the pool of others and what the site adds to it.

    h'(x) = Σ_j a_j h_j(x) + b + g(x)

The graphs of all h_j are embedded, so that the folder stays a plain source folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from anymix._arrays import FloatArray
from anymix.exchange.conversion import graphs_of, nearest_graph, rows_to_compare, safe_graphs
from anymix.exchange.features import columns_taken
from anymix.exchange.onnx_graph import Graph, embedded, finished
from anymix.exchange.predictor import OnnxPredictor
from anymix.sources import SecondRound, Source


def second_round_graph(
    others: Sequence[OnnxPredictor], weights: FloatArray, offset: float, rest: Any, rows: FloatArray
) -> bytes:
    """Return the ONNX file of h', of predictors that were received and an estimator g of one's own.

    Parameters
    ----------
    others : sequence of OnnxPredictor
        h_j, each a regression.
    weights, offset : a (p,) and b
    rest : estimator
        g, a regressor of scikit-learn.
    rows : ndarray of shape (n, d)
        At some of them the graph of g is compared with the estimator.
    """
    own = _graph_of(rest, None, rows, (rows.shape[1], False))
    return _pooled((*others, own), weights, offset, (rows.shape[1], False))


def as_one_graph(
    source: Source, density: Any, rows: Any, known: dict[int, OnnxPredictor]
) -> Source:
    """Put the graph of a `SecondRound` into its place; `known` graphs of models are not made again.

    The density, or else the rows, say what columns there are; at some rows every model is compared
    with its graph.
    """
    found: SecondRound = source.predictor
    columns = columns_taken(source, density, rows)
    for model in (*found.others, found.rest):
        if id(model) not in known:
            known[id(model)] = _graph_of(model, density, rows, columns)
    parts = [known[id(model)] for model in (*found.others, found.rest)]
    names = source.feature_names
    if names is None and hasattr(found.rest, "feature_names_in_"):
        names = list(found.rest.feature_names_in_)
    content = _pooled(parts, found.weights, found.offset, columns)
    return replace(source, predictor=content, feature_names=names)


def _graph_of(model: Any, density: Any, rows: Any, columns: tuple[int, bool]) -> OnnxPredictor:
    """Return the safe graph of a regressor that is nearest to it."""
    source, (n_features, text) = Source("a part of it", model), columns
    graphs = safe_graphs(source, graphs_of(source, n_features, text, "nearest"), n_features)
    return nearest_graph(source, graphs, rows_to_compare(density, rows, text, graphs[0]))


def _pooled(
    parts: Sequence[OnnxPredictor], weights: FloatArray, offset: float, columns: tuple[int, bool]
) -> bytes:
    """Σ_j a_j h_j(x) + b + g(x), g being the last of the parts."""
    graph, (n_features, text) = Graph(), columns
    terms = [
        graph.add("Mul", embedded(graph, k, part, f"part {k + 1}"), graph.constant(np.array(a)))
        for k, (part, a) in enumerate(zip(parts, (*weights, 1.0), strict=True))
    ]
    total = graph.constant(np.array([[offset]]))
    for term in terms[:-1]:
        total = graph.add("Add", term, total)
    graph.add("Add", terms[-1], total, out="prediction")
    outputs = [("prediction", graph.onnx.TensorProto.DOUBLE, ["n", 1])]
    return finished(graph, n_features, outputs, text=text)
