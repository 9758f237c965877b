"""A predictor that came as an ONNX file: sent through the customs, then run in onnxruntime."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from anymix._arrays import FloatArray
from anymix.exchange import onnx_audit
from anymix.exchange._optional import need
from anymix.exchange.manifest import AuditError


class OnnxPredictor:
    """An ONNX graph as a function of rows, on one thread, in blocks of 4096 rows.

    Parameters
    ----------
    content : bytes
        The file.
    dtype : "float32", "float64" or "string"
        Of the rows that it takes.
    """

    def __init__(self, content: bytes, dtype: str = "float32"):
        self.content = content
        self.dtype = dtype
        self._session: Any = None

    def __call__(self, X: Any) -> FloatArray:
        """Return numbers (n, columns)."""
        if self._session is None:
            need("onnxruntime")
            self._session = onnx_audit.open_session(self.content)
        rows = self._rows(X)
        blocks = range(0, max(len(rows), 1), onnx_audit.BLOCK_ROWS)
        try:
            parts = [
                onnx_audit.ask(self._session, rows[a : a + onnx_audit.BLOCK_ROWS]) for a in blocks
            ]
        except onnx_audit.Refused as refusal:
            raise ValueError(f"the predictor cannot be used: {refusal}.") from refusal
        return np.concatenate(parts).astype(float)

    def _rows(self, X: Any) -> Any:
        if self.dtype == "string":
            return np.asarray(list(X), dtype=object).reshape(-1, 1)
        return np.ascontiguousarray(X, dtype=self.dtype)


def audit_predictors(predictors: Sequence[tuple[str, bytes, dict[str, Any]]]) -> None:
    """Inspect and try predictors (name, file, what is due) in a process with little memory.

    The process is the same for all; the first predictor that it refuses, or dies of, is named.
    """
    for library in ("onnx", "onnxruntime"):
        need(library)
    sent = b"".join(
        onnx_audit.frame(json.dumps(due).encode()) + onnx_audit.frame(content)
        for _, content, due in predictors
    )
    command = [sys.executable, "-P", onnx_audit.__file__]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    seconds = onnx_audit.SECONDS * (1 + len(predictors))
    try:
        done = subprocess.run(
            command, input=sent, capture_output=True, env=environment, timeout=seconds, check=False
        )
        answers = done.stdout.splitlines()
    except subprocess.TimeoutExpired as late:
        answers = (late.stdout or b"").splitlines()
    for i, (name, _, _) in enumerate(predictors):
        verdict = json.loads(answers[i]) if i < len(answers) else _DIED
        if verdict is not None:
            raise AuditError(name, f"cannot be trusted: {verdict}")


_DIED = "trying it out took too much memory or time, or crashed"
