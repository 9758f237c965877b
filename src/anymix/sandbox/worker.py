"""The limited process: it checks, tries and runs graphs.

Before the first message it loads what it needs, then gives up what it does not: no further file or
socket can be opened, little memory can be taken, and each request has some seconds of processor.
"""

from __future__ import annotations

import os
import sys
from collections import OrderedDict
from contextlib import suppress
from mmap import mmap
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from anymix.sandbox.confinement import confine
from anymix.sandbox.graph import RewrittenGraph, rewritten
from anymix.sandbox.process import SHARED, receive, rows_from_bytes, rows_to_bytes, send
from anymix.sandbox.session import ask, ask_in_blocks, open_session, run
from anymix.sandbox.shapes import N, Refused, W, is_stacked

try:
    import resource
except ImportError:  # there is none on Windows, where the other side's clock alone stops a bomb
    resource = None  # type: ignore[assignment]

MEMORY = 900 * 2**20
SECONDS = 40
# Graphs that are kept open together may have so many bytes.
OPEN = 2**25


class Desk:
    """The state behind requests: open graphs, by name, and stored rows."""

    def __init__(self, layers: list[str] | None = None) -> None:
        self.layers = layers or []
        self.sessions: OrderedDict[str, tuple[Any, int]] = OrderedDict()
        self.rows: Any = None

    def answer(self, message: dict[str, Any], contents: list[Any]) -> tuple[dict[str, Any], Any]:
        """Handle a message; its content is taken out of the list, and freed after use."""
        if message["do"] == "tell layers":
            return {"layers": self.layers}, b""
        if message["do"] == "audit":
            rows, self.rows = self.rows, None
            dtype, n_features, n_columns, classes = (
                message["expected"][name]
                for name in ("dtype", "n_features", "n_columns", "classes")
            )
            graph = rewritten(contents, dtype, n_features, n_columns)
            try_out(graph, dtype, n_features, rows, message["own"], classes)
            return {"block": graph.block, "request": graph.request}, graph.content
        if message["do"] == "open":
            content = bytes(contents.pop())
            self.sessions[message["name"]] = open_session(content), len(content)
            # Those that were not used for long are closed.
            while len(self.sessions) > 1 and sum(n for _, n in self.sessions.values()) > OPEN:
                self.sessions.popitem(last=False)
            return {}, b""
        if message["do"] == "lay":
            # Copied: the next message comes in the same memory.
            self.rows = rows_from_bytes(message["rows"], bytes(contents.pop()))
            return {}, b""
        if message["name"] not in self.sessions:
            return {"unknown": message["name"]}, b""
        self.sessions.move_to_end(message["name"])
        session = self.sessions[message["name"]][0]
        rows = rows_from_bytes(message["rows"], contents.pop())
        if message["do"] == "judge":
            judge(session, rows, message["block"], len(rows), message["classes"])
            return {}, b""
        return rows_to_bytes(ask_in_blocks(session, rows, message["block"]))


def serve(
    incoming: BinaryIO,
    outgoing: BinaryIO,
    shared: mmap | None = None,
    layers: list[str] | None = None,
) -> None:
    """Respond to messages until the other side is gone; `layers` are the active protections."""
    desk = Desk(layers)
    while (request := receive(incoming, shared)) is not None:
        message, contents = request[0], [request[1]]
        del request
        if resource is not None:
            # At the end of its seconds of processor the process is killed.
            used = resource.getrusage(resource.RUSAGE_SELF)
            most = int(used.ru_utime + used.ru_stime) + SECONDS + 1
            resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))
        try:
            message, content = desk.answer(message, contents)
        except Refused as refusal:
            message, content = {"refused": str(refusal)}, b""
        except MemoryError:
            message, content = {"refused": "it needs too much memory"}, b""
        except Exception as error:  # noqa: BLE001  a graph that no rule has thought of is refused
            message, content = {"refused": f"it is not understood ({type(error).__name__})"}, b""
        send(outgoing, message, content, shared)


def _warm_up() -> None:
    """Load all that checking and running need, while files can still be opened."""
    import numpy.ma  # noqa: F401  numpy loads it when `unique` is first called
    from onnx import TensorProto, helper, numpy_helper

    input_info = helper.make_tensor_value_info("X", TensorProto.FLOAT, ["n", 1])
    out = helper.make_tensor_value_info("Y", TensorProto.FLOAT, ["n", 1])
    weight = numpy_helper.from_array(np.ones((1, 1), dtype=np.float32), "w")
    # One constant is computed, so that what computes constants is loaded, too.
    nodes = [
        helper.make_node(*node) for node in (("Abs", ["w"], ["v"]), ("MatMul", ["X", "v"], ["Y"]))
    ]
    graph = helper.make_graph(nodes, "warm", [input_info], [out], [weight])
    opset = [helper.make_opsetid("", 17)]
    content = helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()
    checked = rewritten([content], "float32", 1, 1)
    try_out(checked, "float32", 1, np.ones((2, 1), dtype=np.float32))


def _give_up() -> None:
    """Give up files, sockets, further processes and memory."""
    if resource is None:
        return
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    # Each open file or socket needs a number below that of NOFILE.
    for none in ("RLIMIT_CORE", "RLIMIT_FSIZE", "RLIMIT_NPROC", "RLIMIT_NOFILE"):
        resource.setrlimit(getattr(resource, none), (0, 0))


def main() -> None:
    """Serve the process that started this one, on file descriptors of their own."""
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    shared = mmap(int(sys.argv[1]), SHARED) if len(sys.argv) > 1 else None
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    _warm_up()
    # Landlock needs a descriptor for its rules, of which no new one can be had later.
    layers = confine()
    _give_up()
    serve(incoming, outgoing, shared, layers)
    sys.exit(0)


Array = NDArray[Any]
# Rounding depends on the size of a batch, as products are summed in another order.
TOLERANCE = 1e-3
ALONE = 12
MADE_UP = 64
FAR = (1e3, 1e6, 1e30)


def try_out(
    graph: RewrittenGraph,
    dtype: str,
    n_features: int,
    rows: Any = None,
    own: int = 0,
    classes: bool = False,
) -> None:
    """Try synthetic rows, and given ones; the first `own` are of the predictor's kind."""
    check_shapes(graph, dtype, n_features)
    session = open_session(graph.content)
    made_up = _made_up(dtype, n_features)
    in_company(session, made_up, graph.block)
    for extreme in _extremes(made_up, dtype):
        # It may refuse a missing value or a far row, in time and within its memory.
        with suppress(Refused):
            ask(session, extreme)
    if rows is not None and len(rows):
        judge(session, rows, graph.block, own, classes)


def judge(session: Any, rows: Any, block: int, own: int, classes: bool) -> None:
    """Check that outputs do not depend on other rows, and are valid at the first `own` rows."""
    answers = in_company(session, rows, block)[:own]
    if not own:
        return
    bad = np.flatnonzero(~np.isfinite(answers).all(axis=1))
    if bad.size:
        raise Refused(f"it answers {answers[bad[0]].tolist()!r:.60} to a row of a known kind")
    if classes:
        off = np.abs(answers.sum(axis=1) - 1).max() > TOLERANCE or answers.min() < -1e-6
        if off:
            raise Refused("its answers are scores, not probabilities that add up to 1")


def in_company(session: Any, rows: Any, block: int) -> Array:
    """Return the outputs, which must not depend on other requests, or on their order."""
    rng, n = np.random.default_rng(0), len(rows)
    answers = ask_in_blocks(session, rows, block)
    scale = TOLERANCE * (1 + np.nanmax(np.abs(np.where(np.isfinite(answers), answers, 0.0))))
    # Documents are not repeated: long ones would take all the time there is.
    crowd = np.resize(np.arange(n), n if rows.dtype == object else min(block, max(4 * n, 1000)))
    ways = [np.arange(n), rng.permutation(n), rng.permutation(crowd), np.arange(min(n, 2))]
    ways += [np.array([i]) for i in rng.choice(n, min(n, ALONE), replace=False)]
    for way in ways:
        again, due = ask_in_blocks(session, rows[way], block), answers[way]
        with np.errstate(invalid="ignore"):
            apart = ~((np.abs(again - due) <= scale) | (again == due))
        if (apart & ~(np.isnan(again) & np.isnan(due))).any():
            raise Refused("its answer to a row depends on the other rows, or on chance")
    return answers


def _made_up(dtype: str, n_features: int) -> Any:
    if dtype == "string":
        words = np.array(["some words", "and some more of them", "x", "a b c d e f", "words words"])
        return np.resize(words.astype(object), (MADE_UP, 1))
    return np.random.default_rng(0).normal(size=(MADE_UP, n_features)).astype(dtype)


def _extremes(rows: Any, dtype: str) -> list[Any]:
    """Far rows, missing values, zeros; the answers only have to come."""
    if dtype == "string":
        odd = ["", " ", "\N{SNOWMAN} é", "1 2 3", "word " * 2000]
        return [np.array(odd, dtype=object)[:, None]]
    with np.errstate(over="ignore"):
        far = [(rows[:4] * size).astype(dtype) for size in FAR]
    return [*far, np.full_like(rows[:2], np.nan), np.zeros_like(rows[:1]), rows[:1] * 0 - np.inf]


def check_shapes(graph: RewrittenGraph, dtype: str, n_features: int) -> None:
    """Check that every value has the inferred shape, at several numbers of rows."""
    from onnx import GraphProto, ModelProto, ValueInfoProto

    inner = [name for name in graph.shapes if name][1:]
    further = [ValueInfoProto(name=name) for name in inner if name != graph.output]
    # Messages that stand one after the other are one: the graph, with further outputs.
    more = ModelProto(graph=GraphProto(output=further)).SerializeToString() if further else b""
    whole = open_session(graph.content + more)
    for n in (1, 2, 3):
        outputs = run(whole, inner, _made_up(dtype, n_features)[:n])
        for name, value in zip(inner, outputs, strict=True):
            shape, stated = np.shape(value), graph.shapes[name]
            sizes = zip(shape, stated, strict=False)
            fits = is_stacked(stated) or all(b in (W, a) or (b == N and a == n) for a, b in sizes)
            if len(shape) != len(stated) or not fits:
                raise Refused(f"the value {name!r:.60} has another shape than its operators say")
