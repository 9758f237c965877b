"""One ONNX graph of sources, densities, calibration and z: h_z with nothing else installed.

    log D_k(x)    kernels: one matrix product and a log-sum-exp; mixtures alike; trees
    h'_k          log-linear or affine in all h_j, where the sources consult each other
    log q_k       a_k max(log r_k, floor) + b_k, times the sharpness, normalised over k
    weight_k      ∝ z_k q_k + η/p²
    h_z           Σ_k weight_k h'_k, averaged over the parts that were learned

Densities, responsibilities and weights are computed in float64, predictors in the type that they
were made for.  The float32 form takes and gives float32, and adds up the answers in it: logarithms
of densities are differences of large numbers, of which float32 would keep too few digits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix._version import __version__
from anymix.core import Combination, Consulting, CrossFittedCombination
from anymix.exceptions import InputError
from anymix.exchange.manifest import Feature, parse_json
from anymix.exchange.read import ReceivedSource, all_classes
from anymix.sources import PROBABILITY_FLOOR
from anymix.storage import need

PREFIX = "anymix."
AS_JSON = ("features", "classes", "sources", "z", "eta", "certificate.grounds")


def described_features(features: Sequence[Feature]) -> list[dict[str, Any]]:
    """Describe columns by name and type; the code of a category is its place in the list."""
    found = []
    for feature in features:
        words = feature.categories
        kind = "text" if feature.dtype == "string" else "number" if words is None else "category"
        listed = {} if words is None else {"categories": list(words)}
        found.append({"name": feature.name, "kind": kind, "gaps": bool(feature.gaps), **listed})
    return found


def noted(**values: Any) -> dict[str, str]:
    """Write values as texts under their keys; None is left out."""
    keys = {name: name.replace("__", ".") for name in values}
    return {
        PREFIX + keys[name]: json.dumps(value) if keys[name] in AS_JSON else str(value)
        for name, value in values.items()
        if value is not None
    }


def describe_graph(path: str | Path) -> dict[str, Any]:
    """Return the metadata of a file that `anymix export` wrote.

    Parameters
    ----------
    path : path
        The ONNX file.

    Returns
    -------
    dict
        By key, without the prefix "anymix.": `features`, `classes`, `sources`, `z`, `certificate`
        and more; docs/serving.md lists them.  It is what the file claims; nothing is checked.

    Raises
    ------
    InputError
        If the file is no graph that anymix has written.

    Examples
    --------
    >>> describe_graph("nowhere.onnx")
    Traceback (most recent call last):
    ...
    anymix.exceptions.InputError: nowhere.onnx cannot be read as an ONNX file; give one that \
anymix export wrote.
    """
    onnx = need("onnx")
    try:
        model = onnx.load_model(str(path), load_external_data=False)
    except Exception as error:
        raise InputError(
            path, "cannot be read as an ONNX file; give one that anymix export wrote"
        ) from error
    told = {one.key: one.value for one in model.metadata_props if one.key.startswith(PREFIX)}
    if not told:
        raise InputError(path, "has no notes of anymix; export the model again to have them")
    found = {key.removeprefix(PREFIX): value for key, value in told.items()}
    return {
        key: parse_json(value.encode(), f"{path}, {key}") if key in AS_JSON else value
        for key, value in found.items()
    }


OPSETS = {"": 18, "ai.onnx.ml": 3}
INPUT = "X"


class Graph:
    """Nodes that are added one after the other; each gives a name to its result.

    `answers` is the type of what goes in and comes out.  All is float64 at first, and of that type
    once the graph is narrowed.
    """

    def __init__(self, float32: bool = False, prefix: str = "") -> None:
        self.onnx, self.prefix = need("onnx"), prefix
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.versions = dict(OPSETS)
        kinds = self.onnx.TensorProto
        self.answers = int(kinds.FLOAT if float32 else kinds.DOUBLE)
        self.now = int(kinds.DOUBLE)
        self.rows = self.add("Cast", INPUT, to=self.now) if float32 else INPUT

    def narrow(self) -> None:
        """Switch to the type of the outputs for all later nodes."""
        self.now = self.answers

    def constant(self, value: Any, name: str = "") -> str:
        """Store an array, and return its name; numbers of float64 have the type of now."""
        array, name = np.asarray(value), name or f"{self.prefix}c{len(self.weights)}"
        if array.dtype == np.float64 and self.now == self.onnx.TensorProto.FLOAT:
            array = array.astype(np.float32)
        self.weights.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def cast(self, value: str, out: str | None = None) -> str:
        """Give numbers the type of now."""
        return self.add("Cast", value, to=self.now, out=out)

    def add(self, operator: str, *inputs: str, out: str | None = None, **attributes: Any) -> str:
        """Apply an operator, of another `domain` if one is given, and return its result's name.

        Attributes that are arrays become tensors.
        """
        name = out or f"{self.prefix}v{len(self.nodes)}"
        for key, value in attributes.items():
            if isinstance(value, np.ndarray):
                attributes[key] = self.onnx.numpy_helper.from_array(value, key)
        node = self.onnx.helper.make_node(operator, list(inputs), [name], **attributes)
        self.nodes.append(node)
        return name

    def over(self, operator: str, value: str, axis: int, keep: bool = True) -> str:
        """Reduce along an axis."""
        return self.add(operator, value, self.constant(np.array([axis])), keepdims=int(keep))

    def total(self, values: Sequence[str]) -> str:
        """Add values one after the other."""
        found = values[0]
        for value in values[1:]:
            found = self.add("Add", found, value)
        return found

    def log_sum_exp(self, value: str) -> str:
        """log Σ exp over the last axis (n, k) -> (n, 1), with the largest taken out."""
        top = self.over("ReduceMax", value, 1)
        total = self.over("ReduceSum", self.add("Exp", self.add("Sub", value, top)), 1)
        return self.add("Add", self.add("Log", total), top)


def export_onnx(
    received: Sequence[ReceivedSource],
    combination: Combination | CrossFittedCombination,
    router: Any = None,
    *,
    float32: bool = False,
    notes: Mapping[str, str] | None = None,
    generalist: ReceivedSource | None = None,
) -> bytes:
    """Return the ONNX file of the whole model; a router weights sources without densities.

    Its input is X, float64 or `float32` (n, d).  Of a mixed table these are codes and
    NaN, as the manifests say.  A regression gives `prediction` (n,), a classification `label` (n,)
    and `probabilities` (n, c); both give `weights` (n, p).  What the sources say of themselves is
    in the file's metadata, and further notes (docs/serving.md).
    """
    average = CrossFittedCombination.of(combination)
    if combination.rule != "marginal":
        raise InputError(
            f"the rule {combination.rule!r}",
            "cannot be written as ONNX; fit the model with rule='marginal' to export it",
        )
    graph, classes = Graph(float32), all_classes(received)
    if router is not None:
        logs = str(router.log_responsibilities_graph(graph))
    else:
        parts = [_log_density(graph, one) for one in received]
        logs = graph.add("Concat", *parts, axis=1)
    log_r = graph.add("Sub", logs, graph.log_sum_exp(logs))
    weights = [_weights(graph, log_r, part) for part in average.parts]
    mean = _mean(graph, weights)
    graph.narrow()
    graph.cast(mean, out="weights")
    models, needed = [*received, *([] if generalist is None else [generalist])], average.needed()
    answers = [
        answer_of(graph, k, one, classes) if k < needed.size and needed[k] else ""
        for k, one in enumerate(models)
    ]
    sums = [
        _combined(graph, graph.cast(w), answers, part)
        for w, part in zip(weights, average.parts, strict=True)
    ]
    outputs = _outputs(graph, _mean(graph, sums), classes)
    outputs.append(("weights", graph.answers, ["n", len(received)]))
    first = received[0].manifest
    told = noted(
        version=__version__,
        task=first.task,
        dtype="float32" if float32 else "float64",
        features=described_features(first.features),
        classes=None if classes is None else classes.tolist(),
        sources=[one.manifest.name for one in received],
    )
    if first.columns is not None:
        # The coding of a table with categories or missing values, which older readers look for.
        told["columns"] = json.dumps(first.columns.to_dict())
    return finished(graph, len(first.features), outputs, notes=told | dict(notes or {}))


def _log_density(graph: Graph, one: ReceivedSource) -> str:
    if not hasattr(one.source.density, "log_density_graph"):
        raise InputError(
            f"source {one.manifest.name!r}",
            f"has a density of the kind {one.manifest.density!r}, which cannot be written as "
            "ONNX; export needs densities of numbers",
        )
    return str(one.source.density.log_density_graph(graph))


def _combined(graph: Graph, w: str, answers: Sequence[str], part: Combination) -> str:
    """Σ_k weight_k h'_k of one part, (n, 1) or (n, c)."""
    consulting, p = part.consulting, part.z.size
    pooled = list(answers) if consulting is None else consulted(graph, answers, consulting)
    shares = [graph.add("Gather", w, graph.constant(np.array([k])), axis=1) for k in range(p)]
    return graph.total([graph.add("Mul", w, h) for w, h in zip(shares, pooled[:p], strict=True)])


def _mean(graph: Graph, values: Sequence[str]) -> str:
    """Average over the parts that were learned."""
    return graph.add("Div", graph.total(values), graph.constant(np.array(float(len(values)))))


def consulted(graph: Graph, answers: Sequence[str], consulting: Consulting) -> list[str]:
    """h'_k of every source, from all h_j, (n, 1) or (n, c) each; "" is one that is not needed."""
    logarithmic = consulting.form != "numbers"
    models = {
        j: graph.add("Log", answers[j]) if logarithmic else answers[j]
        for j in np.flatnonzero(consulting.needed()).tolist()
    }
    out = list(answers[: len(consulting.weights)])
    for k in np.flatnonzero(consulting.consults):
        terms = [
            graph.add("Mul", model, graph.constant(np.array(consulting.weights[k, j])))
            for j, model in models.items()
        ]
        pool = graph.add("Add", graph.add("Sum", *terms), graph.constant(consulting.offset[k]))
        base = models[int(consulting.centres[k])] if consulting.form != "labels" else ""
        if consulting.form == "labels":
            out[k] = floored(graph, graph.add("Softmax", pool, axis=1))
            continue
        ends = (graph.constant(np.array(s * consulting.reach[k])) for s in (-1.0, 1.0))
        moved = graph.add("Clip", graph.add("Sub", pool, base), *ends)
        said = graph.add("Add", base, moved)
        out[k] = graph.add("Exp", said) if logarithmic else said
    return out


def _weights(graph: Graph, log_r: str, combination: Combination) -> str:
    """weight_k ∝ z_k q_k + η/p², (n, p)."""
    p, calibration = combination.z.size, combination.calibration
    log_q = log_r
    if calibration is not None:
        log_r = graph.add("Max", log_q, graph.constant(np.array(calibration.floor)))
        scale = graph.constant(calibration.sharpness / calibration.temperature)
        offset = graph.constant(calibration.sharpness * calibration.offset)
        scores = graph.add("Add", graph.add("Mul", log_r, scale), offset)
        log_q = graph.add("Sub", scores, graph.log_sum_exp(scores))
    mixed = graph.add("Mul", graph.add("Exp", log_q), graph.constant(combination.z))
    raw = graph.add("Add", mixed, graph.constant(np.array(combination.eta / p**2)))
    return graph.add("Div", raw, graph.over("ReduceSum", raw, 1))


def answer_of(graph: Graph, k: int, one: ReceivedSource, classes: NDArray[Any] | None) -> str:
    """h_k(x) as (n, 1), or (n, c) in the order of all classes."""
    columns = 1 if classes is None else len(one.manifest.classes or ())
    out = embedded(graph, k, one.source.predictor, one.manifest.name, columns)
    if classes is None:
        return out
    place = graph.constant((one.source.labels[:, None] == classes).astype(float))
    return floored(graph, graph.add("MatMul", out, place))


def embedded(graph: Graph, k: int, predictor: Any, name: str, columns: int = 1) -> str:
    """Put the graph of a predictor into another one; its answers are (n, columns) of numbers."""
    onnx = graph.onnx
    types = {"float32": onnx.TensorProto.FLOAT, "float64": onnx.TensorProto.DOUBLE}
    rows = graph.rows
    if predictor.dtype != "string":
        rows = graph.add("Cast", rows, to=types[predictor.dtype])
    try:
        model = onnx.load_model_from_string(predictor.content)
        model = onnx.version_converter.convert_version(model, OPSETS[""])
    except (RuntimeError, onnx.version_converter.ConvertError) as error:
        raise InputError(
            f"the predictor of {name!r}",
            f"cannot be brought to opset {OPSETS['']}; pack it again from a file of that opset",
        ) from error
    for used in model.opset_import:
        if used.domain:
            graph.versions[used.domain] = max(graph.versions.get(used.domain, 0), used.version)
    inner = onnx.compose.add_prefix_graph(model.graph, f"s{k}_")
    weights = {tensor.name for tensor in inner.initializer}
    given = next(value.name for value in inner.input if value.name not in weights)
    graph.add("Identity", rows, out=given)
    graph.nodes.extend(inner.node)
    graph.weights.extend(inner.initializer)
    out = graph.cast(inner.output[0].name)
    return graph.add("Reshape", out, graph.constant(np.array([-1, columns])))


def floored(graph: Graph, proba: str) -> str:
    """Raise probabilities to the floor, and rescale rows to sum 1."""
    floored = graph.add("Max", proba, graph.constant(np.array(PROBABILITY_FLOOR)))
    return graph.add("Div", floored, graph.over("ReduceSum", floored, 1))


def _outputs(graph: Graph, total: str, classes: NDArray[Any] | None) -> list[tuple[str, int, Any]]:
    """Name the results: (name, type, shape) of each."""
    kinds = graph.onnx.TensorProto
    if classes is None:
        graph.add("Reshape", total, graph.constant(np.array([-1])), out="prediction")
        return [("prediction", graph.answers, ["n"])]
    graph.add("Identity", total, out="probabilities")
    best = graph.add("ArgMax", total, axis=1, keepdims=0)
    whole = classes.dtype.kind in "iu"
    labels = classes.astype(np.int64) if whole else classes.astype(object)
    graph.add("Gather", graph.constant(labels), best, out="label")
    kind = kinds.INT64 if whole else kinds.STRING
    return [("label", kind, ["n"]), ("probabilities", graph.answers, ["n", classes.size])]


def finished(
    graph: Graph,
    d: int,
    outputs: list[tuple[str, int, Any]],
    *,
    text: bool = False,
    notes: Mapping[str, str] | None = None,
) -> bytes:
    """Return the ONNX file of a graph that takes X, numbers (n, d), or n documents, with notes."""
    onnx = graph.onnx
    make, kinds = onnx.helper, onnx.TensorProto
    kind = kinds.STRING if text else graph.answers
    given = make.make_tensor_value_info(INPUT, kind, ["n", d])
    results = [make.make_tensor_value_info(*out) for out in outputs]
    if graph.answers == kinds.FLOAT:
        round_thresholds(onnx, graph.nodes)
    whole = make.make_graph(graph.nodes, "anymix", [given], results, graph.weights)
    opsets = [make.make_opsetid(domain, version) for domain, version in graph.versions.items()]
    model = make.make_model(whole, producer_name="anymix", opset_imports=opsets, ir_version=10)
    make.set_model_props(model, dict(notes or {}))
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError as error:
        cause = " ".join(str(error).split())[:160].rstrip(".")
        raise InputError("the model", f"has no form as one ONNX file ({cause})") from error
    return bytes(model.SerializeToString())


def round_thresholds(onnx: Any, nodes: Sequence[Any]) -> None:
    """Round thresholds of trees as rows are rounded, in place: x ≤ t gives fl(x) ≤ fl(t).

    Boosted trees compare in float64, and often with a number that rows have: otherwise half of
    these would fall on the other side.
    """
    trees = (node for node in nodes if node.op_type.startswith("TreeEnsemble"))
    for attribute in chain.from_iterable(node.attribute for node in trees):
        if attribute.name == "nodes_values_as_tensor":
            exact = onnx.numpy_helper.to_array(attribute.t).astype(np.float64)
            with np.errstate(over="ignore"):
                near = exact.astype(np.float32).astype(np.float64)
            kept = np.where(np.isfinite(near), near, exact)
            attribute.t.CopyFrom(onnx.numpy_helper.from_array(kept, attribute.t.name))
