"""A predictor that came as an ONNX file: audited elsewhere, then run in onnxruntime."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from anymix._arrays import FloatArray
from anymix._errors import AuditError
from anymix.exchange import onnx_audit
from anymix.exchange._optional import need

# A name, the file, and what is expected of it: dtype, n_features and n_columns.
Predictor = tuple[str, bytes, dict[str, Any]]
DIED = "trying it out took too much memory or time, or crashed"


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
            raise AuditError("the predictor", f"cannot be used: {refusal}") from refusal
        return np.concatenate(parts).astype(float)

    def _rows(self, X: Any) -> Any:
        if self.dtype == "string":
            return np.asarray(list(X), dtype=object).reshape(-1, 1)
        return np.ascontiguousarray(X, dtype=self.dtype)


def audit_predictors(predictors: Sequence[Predictor]) -> None:
    """Refuse the first predictor that cannot be trusted, by its name."""
    for (name, _, _), verdict in zip(predictors, verdicts(predictors), strict=True):
        if verdict is not None:
            raise AuditError(name, f"cannot be trusted: {verdict}")


def verdicts(predictors: Sequence[Predictor]) -> Iterator[str | None]:
    """Inspect and try predictors in a process with little memory: None, or what is wrong with each.

    One process serves all; if a predictor kills it, a new one goes on with the next.
    """
    judged = 0
    while judged < len(predictors):
        answers = _answers(predictors[judged:])
        yield from answers
        judged += len(answers)
        if judged < len(predictors):
            yield DIED
            judged += 1


def _answers(predictors: Sequence[Predictor]) -> list[str | None]:
    """Return what the process said, as far as it came."""
    for library in ("onnx", "onnxruntime"):
        need(library)
    sent = b"".join(
        onnx_audit.frame(json.dumps(expected).encode()) + onnx_audit.frame(content)
        for _, content, expected in predictors
    )
    command = [sys.executable, "-P", onnx_audit.__file__]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    seconds = onnx_audit.SECONDS * (1 + len(predictors))
    try:
        done = subprocess.run(
            command, input=sent, capture_output=True, env=environment, timeout=seconds, check=False
        )
        said = done.stdout
    except subprocess.TimeoutExpired as late:
        said = late.stdout or b""
    # A line that the process died in is not an answer.
    return [json.loads(line) for line in said.splitlines(keepends=True) if line.endswith(b"\n")]
