"""Untrusted graphs: checked, rewritten, and run in a limited process.

    graph.py          parses a file and rewrites it; what is not understood is refused
    operators.py      the allowed operators, and how each keeps rows apart
    worker.py         the limited process, which also tries a graph as it will be used
    process.py        starts the limited process and sends it requests
    confinement.py    what the kernel forbids the limited process: Landlock, seccomp

Importing this package loads neither onnx nor onnxruntime.
"""

from anymix.sandbox.process import (
    DIED,
    LimitedProcess,
    limited_process,
    missing_protection,
    rows_from_bytes,
    rows_to_bytes,
)
from anymix.sandbox.session import ask_in_blocks, blocks_of, open_session
from anymix.sandbox.shapes import Refused

__all__ = [
    "DIED",
    "LimitedProcess",
    "Refused",
    "ask_in_blocks",
    "blocks_of",
    "limited_process",
    "missing_protection",
    "open_session",
    "rows_from_bytes",
    "rows_to_bytes",
]
