"""Predictors as ONNX graphs: converted, reduced to one output, compared with the original.

A second round of training is one graph too, in which the graphs of all h_j are embedded:

    h'(x) = Σ_j a_j h_j(x) + b + g(x)                     numbers
    h'(x) = softmax(log g(x) + A mean_j log h_j(x))       labels
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from anymix._arrays import FloatArray, some_rows
from anymix.exceptions import AuditError, InputError
from anymix.exchange.boosted_export import BOOSTED, CONVERTERS, register_converters
from anymix.exchange.contents import all_parts, documents_of, rare_entries, words_in
from anymix.exchange.foreign_trees import foreign_kinds, is_estimator
from anymix.exchange.home_table import LEAST_LOGGED, first_round_key
from anymix.exchange.manifest import columns_taken
from anymix.exchange.onnx_graph import Graph, answer_of, embedded, finished
from anymix.exchange.own_graphs import Classes, one_output, read_own
from anymix.exchange.predictor import OnnxPredictor, audit
from anymix.exchange.read import ReceivedSource
from anymix.sandbox import Refused
from anymix.sources import (
    LeafClassifier,
    LeafRegressor,
    SecondRound,
    Source,
    TorchPredictor,
    at_rest,
    unwrapped,
)
from anymix.storage import need

OPSETS = {"": 17, "ai.onnx.ml": 3}
THAT_WORK = (
    "linear models, trees, forests, GradientBoosting, HistGradientBoosting, MLP and naive Bayes of "
    "scikit-learn, XGBoost, LightGBM and CatBoost"
)
DTYPES = {"float32": ("float32",), "float64": ("float64",), "nearest": ("float32", "float64")}
COMPARED_ROWS = 256
OF_DOCUMENTS = r"documents: use no sublinear_tf, and for pairs of words token_pattern=r'\w\w+'"


class NoSafeGraph(InputError):
    """An estimator without an ONNX form that passes the audit."""

    def __init__(self, estimator: Any, reason: str):
        super().__init__(
            type(_last_step(estimator)).__name__,
            f"cannot be packed as a safe graph ({reason}); {THAT_WORK} can, or pass an ONNX file",
        )


def classes_of(source: Source) -> Classes:
    """Return the labels of the predictor's columns, or None for a regression."""
    given = source.classes
    if given is None:
        given = getattr(source.predictor, "classes_", None)
    # CatBoost's regressors have an empty list.
    return None if given is None or not len(given) else tuple(np.asarray(given).tolist())


def graphs_of(source: Source, n_features: int, text: bool, dtype: str) -> list[OnnxPredictor]:
    """Return the graphs that a predictor can be written as, of the dtype asked for.

    With histogram gradient boosting float32 is not tried: it compares in float64, and a number that
    is rounded may fall on the other side of a threshold.
    """
    if dtype not in DTYPES:
        raise InputError(f"dtype={dtype!r}", f"is not known; choose one of {tuple(DTYPES)}")
    model, torch, classes = source.predictor, sys.modules.get("torch"), classes_of(source)
    model = unwrapped(model)
    if isinstance(model, LeafClassifier | LeafRegressor):
        return [one_output(_from_leaves(model), classes)]
    if is_estimator(model):
        exact = any(isinstance(part, (*BOOSTED, *foreign_kinds())) for part in all_parts(model))
        wanted = ("string",) if text else DTYPES["float64" if exact else dtype]
        return [one_output(graph, classes) for graph in _from_estimator(model, n_features, wanted)]
    if isinstance(model, TorchPredictor):
        return [one_output(_from_torch(model.as_module(), n_features, model.kind()), classes)]
    if torch is not None and isinstance(model, torch.nn.Module):
        kind = TorchPredictor(model, "number").kind()
        return [one_output(_from_torch(model, n_features, kind), classes)]
    if isinstance(model, bytes | str | Path):
        content = model if isinstance(model, bytes) else read_own(model)
        return [one_output(content, classes)]
    raise InputError(
        f"a predictor of type {type(model).__name__}",
        "cannot be packed; give a scikit-learn estimator, a PyTorch module, or the path of an "
        "ONNX file",
    )


def _from_estimator(model: Any, n_features: int, dtypes: Sequence[str]) -> list[bytes]:
    """Convert to each dtype; the last failure is reported if none succeeds."""
    if is_classifier(model) and not hasattr(model, "predict_proba"):
        raise NoSafeGraph(model, "it gives no probabilities")
    graphs, failure = [], None
    for dtype in dtypes:
        try:
            graphs.append(_converted(model, n_features, dtype))
        except NoSafeGraph as error:
            failure = error
    if failure is not None and not graphs:
        raise failure
    return graphs


def _converted(model: Any, n_features: int, dtype: str) -> bytes:
    need("onnx")
    skl2onnx, types = need("skl2onnx"), need("skl2onnx.common.data_types")
    kinds = {"float32": "FloatTensorType", "float64": "DoubleTensorType"}
    kind = getattr(types, kinds.get(dtype, "StringTensorType"))
    last = _last_step(model)
    register_converters()
    try:
        graph = skl2onnx.convert_sklearn(
            model,
            initial_types=[("X", kind([None, n_features]))],
            options={id(last): {"zipmap": False}} if hasattr(last, "predict_proba") else None,
            custom_conversion_functions=dict(CONVERTERS),
            target_opset=OPSETS,
        )
    except Exception as error:
        # What follows the name of a node is a dump of its numbers.
        cause = str(error).strip().split("\n")[0].split(" with name=")[0][:200].rstrip(".")
        raise NoSafeGraph(model, f"skl2onnx says: {cause}") from error
    return bytes(graph.SerializeToString())


def _last_step(model: Any) -> Any:
    if isinstance(model, TorchPredictor):
        return model.module
    return model.steps[-1][1] if hasattr(model, "steps") else model


def _from_leaves(model: Any) -> bytes:
    """Write trees whose leaves were learned by sums, and what makes predictions of scores."""
    graph, name = Graph(), "prediction" if isinstance(model, LeafRegressor) else "probabilities"
    raw, k = model.trees.add_to(graph, graph.rows), model.trees.n_scores
    if name == "prediction":
        graph.add("Identity", raw, out=name)
    elif k > 1:
        graph.add("Softmax", raw, axis=1, out=name)
    else:
        second = graph.add("Sigmoid", raw)
        first = graph.add("Sub", graph.constant(np.array([1.0])), second)
        graph.add("Concat", first, second, axis=1, out=name)
        k = 2
    outputs = [(name, graph.onnx.TensorProto.DOUBLE, ["n", k])]
    return finished(graph, model.n_features_in_, outputs)


def _from_torch(model: Any, n_features: int, kind: tuple[Any, Any]) -> bytes:
    """Export a module for any number of rows; kind is its dtype and device."""
    torch, out = need("torch", "networks"), BytesIO()
    options = {
        "input_names": ["X"],
        "dynamic_axes": {"X": {0: "n"}},
        "opset_version": OPSETS[""],
        # The newer exporter needs a further library.
        "dynamo": False,
    }
    try:
        with warnings.catch_warnings(), at_rest(model):
            for kind_of in (DeprecationWarning, torch.jit.TracerWarning):
                # A constant that should not be one is seen where graph and module are compared.
                warnings.simplefilter("ignore", kind_of)
            rows = torch.zeros(2, n_features, dtype=kind[0], device=kind[1])
            torch.onnx.export(model, (rows,), out, **options)
    except Exception as error:
        cause = str(error).strip().split("\n")[0][:200].rstrip(".")
        raise NoSafeGraph(getattr(model, "inner", model), f"PyTorch says: {cause}") from error
    return out.getvalue()


def safe_graphs(
    source: Source, graphs: Sequence[OnnxPredictor], n_features: int
) -> list[OnnxPredictor]:
    """Keep the graphs that pass the audit."""
    classes, name = classes_of(source), f"the predictor of {source.name!r}"
    n_classes = None if classes is None else len(classes)
    kept: list[OnnxPredictor] = []
    reasons: list[str] = []
    for graph in graphs:
        try:
            kept.append(audit(graph.content, graph.dtype, n_features, n_classes))
        except Refused as refusal:
            reasons.append(str(refusal))
    if not kept and is_estimator(source.predictor):
        raise NoSafeGraph(source.predictor, reasons[0])
    if not kept:
        remedy = f"; {graphs[0].remedy}" if graphs[0].remedy else ""
        raise AuditError(name, f"cannot be trusted: {reasons[0]}{remedy}")
    return kept


def judge_own(source: Source, graph: OnnxPredictor, rows: Any) -> None:
    """Refuse a file whose outputs are no probabilities, with a remedy."""
    if rows is None or is_estimator(source.predictor) or classes_of(source) is None:
        return
    try:
        graph.judge(rows, True)
    except Refused as refusal:
        raise AuditError(
            f"the predictor of {source.name!r}",
            f"cannot be trusted: {refusal}; let a network end in torch.nn.Softmax(dim=1)",
        ) from refusal


def rows_to_compare(density: Any, rows: Any, text: bool, graph: OnnxPredictor) -> Any:
    """Return some of the given rows or documents, or synthetic ones; None if there are none.

    Rows are drawn from the density, documents are of the words that the graph lists.
    """
    if rows is not None:
        rows = documents_of(rows) if text else rows
        chosen = some_rows(rows if hasattr(rows, "shape") else np.asarray(rows), COMPARED_ROWS)
        if text:
            return chosen
        return np.asarray(chosen.toarray() if hasattr(chosen, "toarray") else chosen, dtype=float)
    if text:
        return made_up_documents(sorted(words_in(graph.content)))
    return None if density is None else np.asarray(density.sample(COMPARED_ROWS, random_state=0))


def made_up_documents(words: Sequence[str]) -> Any:
    """Return synthetic documents, each of a few repeated words."""
    if not words:
        return None
    rng = np.random.default_rng(0)
    few = (rng.integers(len(words), size=rng.integers(1, 8)) for _ in range(COMPARED_ROWS))
    drawn = [rng.choice(places, rng.integers(1, 20)) for places in few]
    return np.array([" ".join(words[i] for i in places) for places in drawn], dtype=object)


def nearest_graph(source: Source, graphs: Sequence[OnnxPredictor], rows: Any) -> OnnxPredictor:
    """Return the graph whose largest difference from the estimator at these rows is smallest.

    A graph that predicts differently from the estimator is refused.  What is not an estimator is
    not
    compared.
    """
    model = source.predictor
    if rows is None and len(graphs) > 1:
        raise InputError(
            "dtype='nearest'", "needs rows to compare at; pass rows, or a source with a density"
        )
    if rows is None or not (is_estimator(model) or isinstance(model, TorchPredictor)):
        return graphs[0]
    # Of two that are as near the first is kept: float32 is smaller and faster.
    best = min(graphs, key=lambda graph: _differences(model, graph, rows)[0].max())
    typed = rows if best.dtype == "string" else rows.astype(best.dtype)
    differences, scale = _differences(model, best, typed)
    apart = differences > 1e-3 * (1 + scale)
    if apart.mean() > 0.02:
        share = f"{100 * apart.mean():.0f} %"
        what = OF_DOCUMENTS if best.dtype == "string" else "rows"
        raise NoSafeGraph(model, f"its ONNX form differs from the estimator at {share} of {what}")
    return best


def _differences(model: Any, graph: OnnxPredictor, rows: Any) -> tuple[FloatArray, float]:
    """Return how far each row's answer is from the estimator's, and the largest answer."""
    asked: Any = rows
    if hasattr(model, "feature_names_in_"):
        asked = need("pandas").DataFrame(rows, columns=model.feature_names_in_)
    method = model
    if is_estimator(model):
        method = model.predict_proba if hasattr(model, "predict_proba") else model.predict
    answers = np.reshape(method(asked), (len(rows), -1))
    return np.abs(graph(rows) - answers).max(axis=1), float(np.abs(answers).max())


def second_round_graph(
    others: Sequence[ReceivedSource],
    weights: FloatArray,
    offset: float,
    rest: Any,
    rows: FloatArray,
) -> bytes:
    """Return the ONNX file of h', of received regressions h_j, a (p,), b and one's own regressor g.

    At some of the rows (n, d) the graph of g is compared with the estimator.
    """
    columns = rows.shape[1], False
    parts = [*(one.source.predictor for one in others), _graph_of(rest, None, rows, columns)]
    keys = [first_round_key(one.manifest.name, one.sha256) for one in others]
    return _pooled(parts, weights, offset, columns, keys=keys)


def second_round_of_labels(
    others: Sequence[ReceivedSource], mixing: FloatArray, rest: Any, rows: Any
) -> tuple[bytes, set[str]]:
    """Return the ONNX file of h', of received classifiers h_j, A (c, c) and one's own classifier g.

    All have the same labels.  At some of the rows the graph of g is compared with the estimator.
    Also returns the words that reveal nothing of the rows: those of others, and frequent ones.
    """
    text = np.ndim(rows) == 1
    columns, labels = (1 if text else int(np.shape(rows)[1]), text), np.asarray(rest.classes_)
    graph, c = Graph(), len(labels)
    terms = []
    for k, one in enumerate(others):
        said = graph.add("Log", answer_of(graph, k, one, labels))
        part = graph.constant(mixing / len(others), first_round_key(one.manifest.name, one.sha256))
        terms.append(graph.add("MatMul", said, part))
    rest_graph = _graph_of(rest, None, rows, columns)
    own = embedded(graph, len(others), rest_graph, "the rest", c)
    least = graph.add("Max", own, graph.constant(np.array(LEAST_LOGGED)))
    total = graph.total([graph.add("Log", least), *terms])
    graph.add("Softmax", total, axis=1, out="probabilities")
    outputs = [("probabilities", graph.onnx.TensorProto.DOUBLE, ["n", c])]
    known = [one.source.predictor.content for one in others]
    known += [rest_graph.content] if text and rare_entries(rest, rows) == 0 else []
    words = set().union(*map(words_in, known)) if text else set()
    return finished(graph, columns[0], outputs, text=text), words


def as_one_graph(
    source: Source, density: Any, rows: Any, known: dict[int, OnnxPredictor]
) -> Source:
    """Replace a `SecondRound` by its graph; `known` graphs of models are not made again.

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
    content = _pooled(parts, found.weights, found.offset, columns, found.bounds)
    return replace(source, predictor=content, feature_names=names)


def _graph_of(model: Any, density: Any, rows: Any, columns: tuple[int, bool]) -> OnnxPredictor:
    """Return the safe graph of a regressor that is nearest to it."""
    source, (n_features, text) = Source("a part of it", model), columns
    graphs = safe_graphs(source, graphs_of(source, n_features, text, "nearest"), n_features)
    return nearest_graph(source, graphs, rows_to_compare(density, rows, text, graphs[0]))


def _pooled(
    parts: Sequence[OnnxPredictor],
    weights: FloatArray,
    offset: float,
    columns: tuple[int, bool],
    bounds: tuple[float, float] = (-np.inf, np.inf),
    keys: Sequence[str] = (),
) -> bytes:
    """Σ_j a_j h_j(x) + b + g(x) within its bounds, g being the last of the parts.

    The coefficients have the `keys` as names.
    """
    graph, (n_features, text) = Graph(), columns
    named = (*keys, *[""] * (len(parts) - len(keys)))
    terms = [
        graph.add(
            "Mul", embedded(graph, k, part, f"part {k + 1}"), graph.constant(np.array(a), key)
        )
        for k, (part, a, key) in enumerate(zip(parts, (*weights, 1.0), named, strict=True))
    ]
    total = graph.total([graph.constant(np.array([[offset]])), *terms[:-1]])
    last = graph.add("Add", terms[-1], total)
    for operator, bound in zip(("Max", "Min"), bounds, strict=True):
        if np.isfinite(bound):
            last = graph.add(operator, last, graph.constant(np.array(bound)))
    graph.add("Identity", last, out="prediction")
    outputs = [("prediction", graph.onnx.TensorProto.DOUBLE, ["n", 1])]
    return finished(graph, n_features, outputs, text=text)
