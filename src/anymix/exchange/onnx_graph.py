"""One ONNX graph of sources, densities, calibration and z: h_z with nothing else installed.

    log D_k(x)    kernels: one matrix product and a log-sum-exp; mixtures alike
    log q_k       a_k max(log r_k, floor) + b_k, times the sharpness, normalised over k
    weight_k      ∝ z_k q_k + η/p²
    h_z           Σ_k weight_k h_k

Densities are computed in float64, predictors in the type that they were made for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray
from anymix.densities import GaussianKDE
from anymix.exchange._optional import need
from anymix.exchange.read import ReceivedSource
from anymix.exchange.site import all_classes
from anymix.sources import PROBABILITY_FLOOR

OPSETS = {"": 18, "ai.onnx.ml": 3}


@dataclass(frozen=True)
class Weights:
    """What turns log D_k into weights: q ∝ exp(sharpness (max(log r, floor) / T + b)), z and η."""

    z: FloatArray
    eta: float
    temperature: FloatArray
    offset: FloatArray
    floor: float
    sharpness: float


class Graph:
    """Nodes that are added one after the other; each gives a name to its result."""

    def __init__(self) -> None:
        self.onnx = need("onnx")
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.ml_version = OPSETS["ai.onnx.ml"]

    def constant(self, value: Any) -> str:
        """Store an array, and return its name."""
        name = f"c{len(self.weights)}"
        self.weights.append(self.onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, operator: str, *inputs: str, out: str | None = None, **attributes: Any) -> str:
        """Apply an operator, and return the name of its result."""
        name = out or f"v{len(self.nodes)}"
        node = self.onnx.helper.make_node(operator, list(inputs), [name], **attributes)
        self.nodes.append(node)
        return name

    def over(self, operator: str, value: str, axis: int, keep: bool = True) -> str:
        """Reduce along an axis."""
        return self.add(operator, value, self.constant(np.array([axis])), keepdims=int(keep))

    def log_sum_exp(self, value: str) -> str:
        """log Σ exp over the last axis (n, k) -> (n, 1), with the largest taken out."""
        top = self.over("ReduceMax", value, 1)
        total = self.over("ReduceSum", self.add("Exp", self.add("Sub", value, top)), 1)
        return self.add("Add", self.add("Log", total), top)


def export_onnx(audited: Sequence[ReceivedSource], weights: Weights) -> bytes:
    """Return the ONNX file of the whole model.

    Its input is X, float64 (n, d).  A regression gives `prediction` (n,), a classification `label`
    (n,) and `probabilities` (n, c); both give `weights` (n, p).
    """
    for one in audited:
        if one.manifest.is_text:
            raise ValueError(
                f"source {one.manifest.name!r} has a bigram model, which cannot be written as "
                "ONNX; export needs densities of numbers."
            )
    graph, classes = Graph(), all_classes(audited)
    logs = [_log_density(graph, one.source.density) for one in audited]
    w = _weights(graph, graph.add("Concat", *logs, axis=1), weights)
    answers = [_answer(graph, k, one, classes) for k, one in enumerate(audited)]
    total = ""
    for k, answer in enumerate(answers):
        share = graph.add("Gather", w, graph.constant(np.array([k])), axis=1)
        part = graph.add("Mul", share, answer)
        total = part if k == 0 else graph.add("Add", total, part)
    outputs = _outputs(graph, total, classes)
    return _finish(graph, audited, outputs)


def _log_density(graph: Graph, density: Any) -> str:
    """log D(x), (n, 1)."""
    if isinstance(density, GaussianKDE):
        return _log_kernels(graph, density)
    mixture = density.mixture_
    return _log_mixture(graph, mixture.weights_, mixture.means_, mixture.precisions_cholesky_)


def _log_kernels(graph: Graph, density: GaussianKDE) -> str:
    """log Σ_j exp(a_j + x'c_j/v_j − |x|²/2v_j), x and c about the centres' mean."""
    centre = density.weights_ @ density.centres_
    c, v = density.centres_ - centre, density.bandwidth_**2 + density.variances_
    x = graph.add("Sub", "X", graph.constant(centre))
    squares = graph.over("ReduceSumSquare", x, 1)
    rows = graph.add("Concat", x, squares, axis=1)
    factor = np.concatenate([c / v[:, None], -0.5 / v[:, None]], axis=1).T
    d = c.shape[1]
    height = np.log(density.weights_) - d / 2 * np.log(2 * np.pi * v) - (c**2).sum(axis=1) / (2 * v)
    return graph.log_sum_exp(
        graph.add("Gemm", rows, graph.constant(factor), graph.constant(height))
    )


def _log_mixture(graph: Graph, w: FloatArray, means: FloatArray, P: FloatArray) -> str:
    """log Σ_j exp(a_j − |(x − m_j)'P_j|²/2), all components in one product."""
    k, d = means.shape
    factor = P.transpose(1, 0, 2).reshape(d, k * d)
    shift = -np.einsum("jd,jde->je", means, P).reshape(k * d)
    flat = graph.add("Gemm", "X", graph.constant(factor), graph.constant(shift))
    cubes = graph.add("Reshape", flat, graph.constant(np.array([-1, k, d])))
    squares = graph.over("ReduceSumSquare", cubes, 2, keep=False)
    log_det = np.log(np.abs(np.diagonal(P, axis1=1, axis2=2))).sum(axis=1)
    height = graph.constant(np.log(w) - d / 2 * np.log(2 * np.pi) + log_det)
    halves = graph.add("Mul", squares, graph.constant(np.array(-0.5)))
    return graph.log_sum_exp(graph.add("Add", halves, height))


def _weights(graph: Graph, logs: str, weights: Weights) -> str:
    """weight_k ∝ z_k q_k + η/p², (n, p)."""
    p = weights.z.size
    log_r = graph.add("Sub", logs, graph.log_sum_exp(logs))
    log_r = graph.add("Max", log_r, graph.constant(np.array(weights.floor)))
    scale = graph.constant(weights.sharpness / weights.temperature)
    offset = graph.constant(weights.sharpness * weights.offset)
    scores = graph.add("Add", graph.add("Mul", log_r, scale), offset)
    q = graph.add("Exp", graph.add("Sub", scores, graph.log_sum_exp(scores)))
    mixed = graph.add("Mul", q, graph.constant(weights.z))
    raw = graph.add("Add", mixed, graph.constant(np.array(weights.eta / p**2)))
    return graph.add("Div", raw, graph.over("ReduceSum", raw, 1), out="weights")


def _answer(graph: Graph, k: int, one: ReceivedSource, classes: NDArray[Any] | None) -> str:
    """h_k(x) as (n, 1), or (n, c) in the order of all classes."""
    onnx = graph.onnx
    types = {"float32": onnx.TensorProto.FLOAT, "float64": onnx.TensorProto.DOUBLE}
    rows = graph.add("Cast", "X", to=types[one.manifest.features[0].dtype])
    model = _same_opset(onnx, one)
    versions = [o.version for o in model.opset_import if o.domain == "ai.onnx.ml"]
    graph.ml_version = max(graph.ml_version, *versions, 0)
    inner = onnx.compose.add_prefix_graph(model.graph, f"s{k}_")
    weights = {tensor.name for tensor in inner.initializer}
    given = next(value.name for value in inner.input if value.name not in weights)
    graph.add("Identity", rows, out=given)
    graph.nodes.extend(inner.node)
    graph.weights.extend(inner.initializer)
    out = graph.add("Cast", inner.output[0].name, to=onnx.TensorProto.DOUBLE)
    columns = 1 if classes is None else len(one.manifest.classes or ())
    out = graph.add("Reshape", out, graph.constant(np.array([-1, columns])))
    return out if classes is None else _aligned(graph, out, one.source.labels, classes)


def _aligned(graph: Graph, proba: str, labels: NDArray[Any], classes: NDArray[Any]) -> str:
    """Put columns in the order of all classes; none below the floor; rows of sum 1."""
    place = graph.constant((labels[:, None] == classes).astype(float))
    moved = graph.add("MatMul", proba, place)
    floored = graph.add("Max", moved, graph.constant(np.array(PROBABILITY_FLOOR)))
    return graph.add("Div", floored, graph.over("ReduceSum", floored, 1))


def _same_opset(onnx: Any, one: ReceivedSource) -> Any:
    """Bring a predictor to the version of the operators that the graph has."""
    model = onnx.load_model_from_string(one.source.predictor.content)
    try:
        return onnx.version_converter.convert_version(model, OPSETS[""])
    except (RuntimeError, onnx.version_converter.ConvertError) as error:
        raise ValueError(
            f"the predictor of {one.manifest.name!r} cannot be brought to opset {OPSETS['']}; "
            "pack it again with a newer exporter."
        ) from error


def _outputs(graph: Graph, total: str, classes: NDArray[Any] | None) -> list[tuple[str, int, Any]]:
    """Name the results: (name, type, shape) of each."""
    kinds = graph.onnx.TensorProto
    if classes is None:
        graph.add("Reshape", total, graph.constant(np.array([-1])), out="prediction")
        return [("prediction", kinds.DOUBLE, ["n"])]
    graph.add("Identity", total, out="probabilities")
    best = graph.add("ArgMax", total, axis=1, keepdims=0)
    whole = classes.dtype.kind in "iu"
    labels = classes.astype(np.int64) if whole else classes.astype(object)
    graph.add("Gather", graph.constant(labels), best, out="label")
    kind = kinds.INT64 if whole else kinds.STRING
    return [("label", kind, ["n"]), ("probabilities", kinds.DOUBLE, ["n", classes.size])]


def _finish(
    graph: Graph, audited: Sequence[ReceivedSource], outputs: list[tuple[str, int, Any]]
) -> bytes:
    onnx = graph.onnx
    kinds, make = onnx.TensorProto, onnx.helper
    d, p = len(audited[0].manifest.features), len(audited)
    given = make.make_tensor_value_info("X", kinds.DOUBLE, ["n", d])
    results = [make.make_tensor_value_info(*out) for out in outputs]
    results.append(make.make_tensor_value_info("weights", kinds.DOUBLE, ["n", p]))
    whole = make.make_graph(graph.nodes, "anymix", [given], results, graph.weights)
    versions = {"": OPSETS[""], "ai.onnx.ml": graph.ml_version}
    opsets = [make.make_opsetid(domain, version) for domain, version in versions.items()]
    model = make.make_model(whole, opset_imports=opsets, ir_version=10)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())
