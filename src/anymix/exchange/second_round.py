"""A second round of training as one graph: the pool of others and what the site adds to it.

    h'(x) = Σ_j a_j h_j(x) + b + g(x)

The graphs of all h_j are embedded, so that the folder stays a plain source folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anymix._arrays import FloatArray
from anymix.exchange.conversion import graphs_of, nearest_graph, rows_to_compare, safe_graphs
from anymix.exchange.onnx_graph import Graph, embedded, finished
from anymix.exchange.predictor import OnnxPredictor
from anymix.sources import Source


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
    source, n_features = Source("the residual", rest), rows.shape[1]
    graphs = safe_graphs(source, graphs_of(source, n_features, False, "nearest"), n_features)
    own = nearest_graph(source, graphs, rows_to_compare(None, rows, False, graphs[0]))
    graph = Graph()
    terms = [
        graph.add("Mul", embedded(graph, k, part, f"part {k + 1}"), graph.constant(np.array(a)))
        for k, (part, a) in enumerate(zip((*others, own), (*weights, 1.0), strict=True))
    ]
    total = graph.constant(np.array([[offset]]))
    for term in terms[:-1]:
        total = graph.add("Add", term, total)
    graph.add("Add", terms[-1], total, out="prediction")
    return finished(graph, n_features, [("prediction", graph.onnx.TensorProto.DOUBLE, ["n", 1])])
