"""Control of the limited process: started at the first request, killed after a timeout."""

from __future__ import annotations

import atexit
import json
import os
import struct
import subprocess
import sys
import threading
from collections import OrderedDict
from mmap import mmap
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from anymix.sandbox.confinement import missing_layers
from anymix.sandbox.session import SILENCE
from anymix.sandbox.shapes import Refused

SECONDS = 60
DIED = "it took too much memory or time, or crashed"
# So many large graphs have processes at a time.
MOST = 16
# One thread each: the libraries would start as many as there are cores.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


class LimitedProcess:
    """One process that runs untrusted graphs; threads wait for each other.

    If it dies during a request, the next request starts another.  Requests that were given up, as
    by Ctrl-C, end it too: the next would read the answer of the last.

    Examples
    --------
    >>> process = LimitedProcess()
    >>> process.ask({"do": "nothing"})
    Traceback (most recent call last):
    ...
    anymix.sandbox.shapes.Refused: it is not understood (KeyError)
    >>> process.close()
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._shared: mmap | None = None

    def ask(self, message: dict[str, Any], content: Any = b"") -> tuple[dict[str, Any], bytes]:
        """Send a message and return the answer; `Refused` if the process refuses or dies."""
        with self._lock:
            if self._child is not None and self._child.poll() is not None:
                self._end()
            if self._child is None:
                self._child, self._shared = _start()
            answer = None
            try:
                answer = self._exchange(self._child, message, content)
            finally:
                if answer is None:
                    self._end()
        if answer is None:
            raise Refused(DIED)
        if "refused" in answer[0]:
            raise Refused(answer[0]["refused"])
        return answer

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.communicate()
            self._child = self._shared = None

    def _exchange(
        self, child: subprocess.Popen[bytes], message: dict[str, Any], content: Any
    ) -> tuple[dict[str, Any], bytes] | None:
        """Return the answer; None if the process died, or was killed because it was late."""
        late = threading.Timer(SECONDS, child.kill)
        late.daemon = True
        late.start()
        try:
            send(cast(BinaryIO, child.stdin), message, content, self._shared)
            answer = receive(cast(BinaryIO, child.stdout), self._shared)
        except BrokenPipeError:
            return None
        finally:
            late.cancel()
        # Copied while no other thread can ask: shared memory holds one answer.
        return None if answer is None else (answer[0], bytes(answer[1]))


def _start() -> tuple[subprocess.Popen[bytes], mmap | None]:
    """Start the process; where the system can, with memory that both see and no disk does."""
    number = os.memfd_create("rows") if hasattr(os, "memfd_create") else None
    shared = None
    if number is not None:
        os.ftruncate(number, SHARED)
        shared = mmap(number, SHARED)
    program = [sys.executable, "-P", str(Path(__file__).with_name("__main__.py"))]
    child = subprocess.Popen(
        program if number is None else [*program, str(number)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **ONE_THREAD, **SILENCE},
        pass_fds=() if number is None else (number,),
        # Ctrl-C is for the process that asks; this one ends with it.
        start_new_session=True,
    )
    if number is not None:
        os.close(number)
    return child, shared


_REGISTRY = threading.Lock()
_PROCESSES: OrderedDict[tuple[int, str], LimitedProcess] = OrderedDict()


def limited_process(graph: str = "") -> LimitedProcess:
    """Return the limited process of this one; a fork has another than its parent.

    A large graph has a process of its own, by its name: memory is limited for each.
    """
    key = os.getpid(), graph
    with _REGISTRY:
        if key not in _PROCESSES:
            _PROCESSES[key] = LimitedProcess()
            atexit.register(_PROCESSES[key].close)
        _PROCESSES.move_to_end(key)
        own = [name for name in _PROCESSES if name[0] == key[0] and name[1]]
        late = [_PROCESSES.pop(name) for name in own[:-MOST]]
        current = _PROCESSES[key]
    for process in late:
        process.close()
    return current


def _renew() -> None:
    """In a fork: a thread of the parent may have held the lock."""
    global _REGISTRY
    _REGISTRY = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


def missing_protection() -> str:
    """Say in one line which layers of the limited process this system lacks; nothing if none."""
    answer, _ = limited_process().ask({"do": "tell layers"})
    return missing_layers(list(answer["layers"]))


HEAD = struct.Struct("<QQ")
# No answer is larger; a length beyond it is not a length.
LIMIT = 2**31
# Memory that both processes see: rows need not pass through a pipe.
SHARED, LEAST_SHARED = 2**23, 2**12


def send(
    stream: BinaryIO, message: dict[str, Any], content: Any = b"", shared: mmap | None = None
) -> None:
    """Write a message; many bytes are laid into memory that both sides see, if there is some."""
    body = memoryview(content).cast("B")
    if shared is not None and LEAST_SHARED < len(body) <= len(shared):
        shared[: len(body)] = body
        message, body = {**message, "shared": len(body)}, memoryview(b"")
    head = json.dumps(message).encode()
    stream.write(HEAD.pack(len(head), len(body)) + head)
    stream.write(body)
    stream.flush()


def receive(stream: BinaryIO, shared: mmap | None = None) -> tuple[dict[str, Any], Any] | None:
    """Read a message; None if the other process has ended.

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
    """Return the rows that `rows_to_bytes` has described."""
    if message["dtype"] != "string":
        return np.frombuffer(content, dtype=message["dtype"]).reshape(message["shape"])
    ends = np.cumsum(message["lengths"], dtype=int)
    starts = ends - np.asarray(message["lengths"], dtype=int)
    texts = [bytes(content[a:b]).decode() for a, b in zip(starts, ends, strict=True)]
    return np.array(texts, dtype=object).reshape(-1, 1)
