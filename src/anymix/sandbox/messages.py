"""What passes between the two processes: a JSON object and bytes.

Both go through a pipe, each with its length before; bytes that are many lie in shared memory.
"""

from __future__ import annotations

import json
import struct
from mmap import mmap
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

HEAD = struct.Struct("<QQ")
# No answer is larger; a length beyond it is not a length.
LIMIT = 2**31
# Memory that both processes see: rows need not pass through a pipe.
SHARED, LEAST_SHARED = 2**23, 2**12


def send(
    stream: BinaryIO, message: dict[str, Any], content: Any = b"", shared: mmap | None = None
) -> None:
    """Write a message; many bytes are laid into memory that both sides see, if there is some.

    Examples
    --------
    >>> from io import BytesIO
    >>> pipe = BytesIO()
    >>> send(pipe, {"do": "audit"}, b"bytes")
    >>> _ = pipe.seek(0)
    >>> receive(pipe)
    ({'do': 'audit'}, b'bytes')
    """
    body = memoryview(content).cast("B")
    if shared is not None and LEAST_SHARED < len(body) <= len(shared):
        shared[: len(body)] = body
        message, body = {**message, "shared": len(body)}, memoryview(b"")
    head = json.dumps(message).encode()
    stream.write(HEAD.pack(len(head), len(body)) + head)
    stream.write(body)
    stream.flush()


def receive(stream: BinaryIO, shared: mmap | None = None) -> tuple[dict[str, Any], Any] | None:
    """Read a message; None if the other side is gone.

    Shared bytes are not copied: they are there until the next message.
    """
    lengths = stream.read(HEAD.size)
    if len(lengths) < HEAD.size:
        return None
    n_head, n_body = HEAD.unpack(lengths)
    if max(n_head, n_body) > LIMIT:
        return None
    head, body = stream.read(n_head), stream.read(n_body)
    if len(head) < n_head or len(body) < n_body:
        return None
    message = json.loads(head)
    if shared is not None and "shared" in message:
        return message, memoryview(shared)[: message.pop("shared")]
    return message, body


def rows_to_bytes(rows: Any) -> tuple[dict[str, Any], Any]:
    """Describe rows and give their bytes: numbers as they are, texts one after the other."""
    if rows.dtype.kind != "O":
        flat = np.ascontiguousarray(rows)
        return {"dtype": str(flat.dtype), "shape": flat.shape}, flat.reshape(-1).view(np.uint8)
    texts = [str(text).encode("utf-8", "replace") for text in rows.ravel()]
    return {"dtype": "string", "lengths": [len(text) for text in texts]}, b"".join(texts)


def rows_from_bytes(message: dict[str, Any], content: Any) -> NDArray[Any]:
    """Return the rows.

    Examples
    --------
    >>> described, content = rows_to_bytes(np.array([["a b"], ["c"]], dtype=object))
    >>> rows_from_bytes(described, content).tolist()
    [['a b'], ['c']]
    """
    if message["dtype"] != "string":
        return np.frombuffer(content, dtype=message["dtype"]).reshape(message["shape"])
    ends = np.cumsum(message["lengths"], dtype=int)
    starts = ends - np.asarray(message["lengths"], dtype=int)
    texts = [bytes(content[a:b]).decode() for a, b in zip(starts, ends, strict=True)]
    return np.array(texts, dtype=object).reshape(-1, 1)
