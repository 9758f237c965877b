"""What passes between the two processes: a JSON object, then bytes, each with its length before."""

from __future__ import annotations

import json
import struct
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

HEAD = struct.Struct("<QQ")
# No answer is larger; a length beyond it is not a length.
LIMIT = 2**31


def send(stream: BinaryIO, message: dict[str, Any], content: Any = b"") -> None:
    """Write a message.

    Examples
    --------
    >>> from io import BytesIO
    >>> pipe = BytesIO()
    >>> send(pipe, {"do": "audit"}, b"bytes")
    >>> _ = pipe.seek(0)
    >>> receive(pipe)
    ({'do': 'audit'}, b'bytes')
    """
    head, body = json.dumps(message).encode(), memoryview(content).cast("B")
    stream.write(HEAD.pack(len(head), len(body)) + head)
    stream.write(body)
    stream.flush()


def receive(stream: BinaryIO) -> tuple[dict[str, Any], bytes] | None:
    """Read a message; None if the other side is gone."""
    lengths = stream.read(HEAD.size)
    if len(lengths) < HEAD.size:
        return None
    n_head, n_body = HEAD.unpack(lengths)
    if max(n_head, n_body) > LIMIT:
        return None
    head, body = stream.read(n_head), stream.read(n_body)
    if len(head) < n_head or len(body) < n_body:
        return None
    return json.loads(head), body


def rows_to_bytes(rows: Any) -> tuple[dict[str, Any], Any]:
    """Describe rows and give their bytes: numbers as they are, texts one after the other."""
    if rows.dtype.kind != "O":
        flat = np.ascontiguousarray(rows)
        return {"dtype": str(flat.dtype), "shape": flat.shape}, flat.reshape(-1).view(np.uint8)
    texts = [str(text).encode("utf-8", "replace") for text in rows.ravel()]
    return {"dtype": "string", "lengths": [len(text) for text in texts]}, b"".join(texts)


def rows_from_bytes(message: dict[str, Any], content: bytes) -> NDArray[Any]:
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
    texts = [content[a:b].decode() for a, b in zip(starts, ends, strict=True)]
    return np.array(texts, dtype=object).reshape(-1, 1)
