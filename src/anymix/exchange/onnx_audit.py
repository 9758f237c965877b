"""A stranger's ONNX file is parsed, inspected and tried in a process of its own.

The process may use little memory and time, so a file that swells, hangs or crashes takes nothing
else with it.  This file runs alone: `python onnx_audit.py` reads predictors from standard input and
answers each with a line of JSON.  What passes has run one block of BLOCK_ROWS rows within the
limits; predictors are never asked about more rows at once.
"""

from __future__ import annotations

import json
import math
import struct
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any, BinaryIO

import numpy as np

BLOCK_ROWS = 4096
MEMORY = 900 * 2**20
SECONDS = 60
MAX_NODES = 10_000
OPSETS = {"": range(9, 28), "ai.onnx.ml": range(1, 6), "com.microsoft": range(1, 2)}
# No control flow, no randomness, no files, no shapes that depend on the values of the rows.
_ONNX = """
    Abs Add And ArgMax ArgMin AveragePool BatchNormalization Cast Ceil Clip Concat Constant Conv Cos
    Div Dropout Elu Equal Erf Exp Expand Flatten Floor Gather GatherElements Gelu Gemm
    GlobalAveragePool GlobalMaxPool Greater GreaterOrEqual HardSigmoid HardSwish Identity
    InstanceNormalization LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax MatMul Max
    MaxPool Mean Min Mul Neg Not Or Pad Pow PRelu Reciprocal ReduceL1 ReduceL2 ReduceLogSumExp
    ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu Reshape Round Selu
    Shape Sigmoid Sign Sin Slice Softmax Softplus Split Sqrt Squeeze StringNormalizer Sub Sum Tanh
    TfIdfVectorizer TopK Transpose Unsqueeze Where Xor"""
_ONNX_ML = """
    ArrayFeatureExtractor Binarizer FeatureVectorizer Imputer LabelEncoder LinearClassifier
    LinearRegressor Normalizer OneHotEncoder SVMClassifier SVMRegressor Scaler
    TreeEnsembleClassifier TreeEnsembleRegressor"""
OPERATORS = {
    "": set(_ONNX.split()),
    "ai.onnx.ml": set(_ONNX_ML.split()),
    # How skl2onnx writes the cutting of text into words.
    "com.microsoft": {"Tokenizer"},
}


class Refused(Exception):
    """One sentence on what is wrong with a predictor."""


def inspect(content: bytes, dtype: str, n_features: int) -> None:
    """Refuse an ONNX file that is more than a graph of allowed operators on finite numbers."""
    import onnx

    try:
        model = onnx.load_model_from_string(content)
    except Exception as error:
        raise Refused("it is not an ONNX file") from error
    graph = model.graph
    if model.functions or model.training_info or graph.sparse_initializer:
        raise Refused("it has functions, training parts or sparse weights")
    if model.metadata_props or graph.metadata_props:
        raise Refused("it carries metadata, which may hold settings")
    if len(graph.node) > MAX_NODES:
        raise Refused(f"it has {len(graph.node)} nodes; {MAX_NODES} are allowed")
    _check_opsets(model)
    _check_ends(graph, dtype, n_features)
    for tensor in graph.initializer:
        _check_tensor(tensor, tensor.name)
    _check_nodes(graph)


def _check_opsets(model: Any) -> None:
    for opset in model.opset_import:
        domain = "" if opset.domain == "ai.onnx" else opset.domain
        if opset.version not in OPSETS.get(domain, ()):
            raise Refused(f"it uses version {opset.version} of the operators {domain!r:.60}")


def _check_ends(graph: Any, dtype: str, n_features: int) -> None:
    """One input of n_features columns, one output."""
    from onnx import TensorProto

    weights = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in weights]
    if len(inputs) != 1 or len(graph.output) != 1:
        raise Refused("it must have one input and one output")
    given = inputs[0].type.tensor_type
    kinds = {
        "float32": TensorProto.FLOAT,
        "float64": TensorProto.DOUBLE,
        "string": TensorProto.STRING,
    }
    if given.elem_type != kinds[dtype]:
        raise Refused(f"its input is not {dtype}, as the manifest says")
    sizes = [dim.dim_value for dim in given.shape.dim]
    if len(sizes) != 2 or sizes[0] > 0 or sizes[1] not in (0, n_features):
        raise Refused(f"its input must have the shape (any number, {n_features}), not {sizes}")


def _check_tensor(tensor: Any, name: str) -> None:
    from onnx import TensorProto, numpy_helper

    if tensor.external_data or tensor.data_location != TensorProto.DEFAULT:
        raise Refused(f"the weights {name!r:.60} lie outside the file")
    try:
        # Dimensions first: an array is made only of bytes that are there.
        size = math.prod(tensor.dims)
        array = numpy_helper.to_array(tensor) if 0 <= size <= 2**28 else None
    except Exception as error:
        raise Refused(f"the weights {name!r:.60} cannot be read") from error
    if array is None or (array.dtype.kind in "fc" and not np.isfinite(array).all()):
        raise Refused(f"the weights {name!r:.60} are not finite numbers")


def _check_nodes(graph: Any) -> None:
    """Each node is an allowed operator on names that are there already, so there are no loops."""
    known = {"", *(value.name for value in graph.input), *(t.name for t in graph.initializer)}
    for node in graph.node:
        domain = "" if node.domain == "ai.onnx" else node.domain
        if node.op_type not in OPERATORS.get(domain, ()):
            raise Refused(f"the operator {node.op_type!r:.60} is not allowed")
        if not known.issuperset(node.input):
            raise Refused(f"the node {node.name!r:.60} uses a value that no earlier node gives")
        if known.intersection(node.output) - {""}:
            raise Refused(f"the node {node.name!r:.60} gives a value that is there already")
        known.update(node.output)
        for attribute in node.attribute:
            _check_attribute(attribute, node.name)
    if graph.output[0].name not in known:
        raise Refused("no node gives its output")


def _check_attribute(attribute: Any, name: str) -> None:
    from onnx import AttributeProto

    plain = (
        AttributeProto.FLOAT,
        AttributeProto.INT,
        AttributeProto.STRING,
        AttributeProto.TENSOR,
        AttributeProto.FLOATS,
        AttributeProto.INTS,
        AttributeProto.STRINGS,
    )
    nested = attribute.graphs or attribute.HasField("g") or attribute.HasField("sparse_tensor")
    if attribute.type not in plain or nested or attribute.ref_attr_name:
        raise Refused(f"the node {name!r:.60} holds a graph or another invalid attribute")
    if not np.isfinite([attribute.f, *attribute.floats]).all():
        raise Refused(f"the node {name!r:.60} holds numbers that are not finite")
    for tensor in [attribute.t] if attribute.HasField("t") else []:
        _check_tensor(tensor, name)


def open_session(content: bytes) -> Any:
    """Start onnxruntime on one thread, quietly."""
    onnxruntime = import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = 4
    # A process that keeps an arena never gives back what its largest block took.
    options.enable_cpu_mem_arena = False
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def ask(session: Any, rows: Any) -> Any:
    """Run one block of rows, and return numbers (n, columns)."""
    out = session.run(None, {session.get_inputs()[0].name: rows})[0]
    if not isinstance(out, np.ndarray) or out.dtype.kind != "f" or out.shape[:1] != (len(rows),):
        raise Refused("its output must hold numbers, one row for each row of the input")
    if out.ndim > 2:
        raise Refused(f"its output has the shape {out.shape}; it must be (rows, columns)")
    return out.reshape(len(rows), -1)


def try_out(content: bytes, dtype: str, n_features: int, n_columns: int) -> None:
    """Run two rows and a whole block of made-up rows."""
    rng = np.random.default_rng(0)
    try:
        session = open_session(content)
        for n in (2, BLOCK_ROWS):
            rows: Any = rng.normal(size=(n, n_features)).astype(dtype if dtype != "string" else "f")
            if dtype == "string":
                rows = np.full((n, 1), "some words, and some more", dtype=object)
            columns = ask(session, rows).shape[1]
            if columns != n_columns:
                raise Refused(f"it gives {columns} columns where {n_columns} are expected")
    except Refused:
        raise
    except Exception as error:
        cause = str(error).split("\n")[0].split(" : ")[-1][-160:].rstrip(".")
        raise Refused(f"it does not run: {cause}") from error


def read_frames(stream: BinaryIO) -> Iterator[bytes]:
    """Yield what `frame` joined."""
    while head := stream.read(8):
        yield stream.read(struct.unpack("<Q", head)[0])


def frame(content: bytes) -> bytes:
    """Put the length before some bytes.

    Examples
    --------
    >>> from io import BytesIO
    >>> list(read_frames(BytesIO(frame(b"a") + frame(b"bc"))))
    [b'a', b'bc']
    """
    return struct.pack("<Q", len(content)) + content


def judge(content: bytes, dtype: str, n_features: int, n_columns: int) -> str | None:
    """Return None, or one sentence on what is wrong."""
    try:
        inspect(content, dtype, n_features)
        try_out(content, dtype, n_features, n_columns)
    except Refused as refusal:
        return str(refusal)
    except MemoryError:
        return "it needs too much memory"
    return None


def _limit_resources() -> None:
    try:
        import resource
    except ImportError:  # there is none on Windows, where the parent's clock alone stops a bomb
        return
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    """Answer each pair of frames (what is expected, predictor) with a line."""
    _limit_resources()
    frames = read_frames(sys.stdin.buffer)
    for expected in frames:
        answer = judge(next(frames), **json.loads(expected))
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
