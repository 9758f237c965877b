"""Run onnxruntime on one thread, without log output, one block of rows at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix.sandbox.shapes import Refused

# onnxruntime writes a number of the machine and what it does to the user's folders, and sends both
# to its makers, unless that is switched off before it is loaded.
SILENCE = {"ORT_DISABLE_TELEMETRY": "1"}
# Rows of a block are a multiple of this: more than a vector of any processor holds.
VECTOR = 64
# Documents of a block have so many letters together, each counted as long as the longest.
LETTERS = 2**22


def open_session(content: bytes) -> Any:
    """Start onnxruntime on a checked graph, which is read only as protobuf."""
    os.environ.update(SILENCE)
    onnxruntime = import_module("onnxruntime")
    # For the case that somebody has loaded it before.
    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = 4
    # A file may be read as a second format, in which it may be another graph.
    options.add_session_config_entry("session.load_model_format", "ONNX")
    # A process that keeps an arena never gives back what its largest block took.
    options.enable_cpu_mem_arena = False
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise Refused(f"it does not run: {cause_of(error)}") from error


def run(session: Any, names: list[str] | None, rows: Any = None) -> list[Any]:
    """Return the values of these names, or the output, at some rows."""
    inputs = {} if rows is None else {session.get_inputs()[0].name: rows}
    try:
        return list(session.run(names, inputs))
    except Exception as error:
        raise Refused(f"it does not run: {cause_of(error)}") from error


def ask(session: Any, rows: Any) -> NDArray[Any]:
    """Run one block of rows, and return numbers (n, columns)."""
    out = run(session, None, rows)[0]
    if not isinstance(out, np.ndarray) or out.dtype.kind != "f" or out.shape[:1] != (len(rows),):
        raise Refused("its output must hold numbers, one row for each row of the input")
    if out.ndim > 2:
        raise Refused(f"its output has the shape {out.shape}; it must be (rows, columns)")
    return out.reshape(len(rows), -1)


def ask_in_blocks(session: Any, rows: Any, block: int) -> NDArray[Any]:
    """Run rows in blocks; without rows there is one empty block.

    Blocks are filled up to whole vectors of the processor: the last few numbers of an array are
    often computed differently, so that an output would depend on a row's place in its batch.
    """
    parts = []
    for start, end in blocks_of(rows, block):
        some = rows[start:end]
        missing = -len(some) % min(VECTOR, block)
        if missing:
            more = np.full((missing, 1), "", dtype=object) if some.dtype == object else some[-1:]
            some = np.concatenate([some, np.repeat(more, missing // len(more), axis=0)])
        parts.append(ask(session, some)[: end - start])
    return np.concatenate(parts)


def blocks_of(rows: Any, block: int) -> Iterator[tuple[int, int]]:
    """Yield where blocks begin and end; documents are filled up to the longest of their block."""
    if rows.dtype != object or not len(rows):
        yield from ((a, min(a + block, len(rows))) for a in range(0, max(len(rows), 1), block))
        return
    start = longest = 0
    for i, text in enumerate(rows[:, 0]):
        longest = max(longest, len(str(text)))
        if i > start and ((i + 1 - start) * longest > LETTERS or i - start == block):
            yield start, i
            start, longest = i, len(str(text))
    yield start, len(rows)


def cause_of(error: Exception) -> str:
    """Return the end of onnxruntime's message, on one line and printable."""
    text = str(error).split("\n")[0].split(" : ")[-1][-160:].rstrip(".")
    return "".join(letter if letter.isprintable() else "?" for letter in text)
