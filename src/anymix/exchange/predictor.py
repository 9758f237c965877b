"""Predictors from ONNX files: audited, rewritten, and run in a limited process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import numpy as np

from anymix._arrays import FloatArray
from anymix.exceptions import PredictorError
from anymix.sandbox import (
    DIED,
    LimitedProcess,
    Refused,
    ask_in_blocks,
    blocks_of,
    limited_process,
    open_session,
    rows_from_bytes,
    rows_to_bytes,
)
from anymix.storage import installed

BLOCK_ROWS = 4096
REQUEST_BYTES = 2**23
# Seconds within which a process that died is asked again, and a row that fails is looked for.
AGAIN, SEARCH = 5.0, 60.0
# Bytes beyond which a graph has a process of its own.
LARGE = 2**22


class OnnxPredictor:
    """An ONNX graph that `audit` has written, as a function of rows of one dtype.

    It is run in the limited process, which has little memory and time and no files; threads wait
    for each other there.  `in_process` runs it here, for graphs of one's own.  At most `block` rows
    are run at once, and `request` rows are sent in one message.
    """

    # What its owner can do where it is refused, and the source that it is of.
    remedy = ""
    owner: str | None = None

    def __init__(
        self,
        content: bytes,
        dtype: str = "float32",
        block: int = BLOCK_ROWS,
        request: int = BLOCK_ROWS,
        in_process: bool = False,
    ):
        self.content = content
        self.dtype = dtype
        self.block = block
        self.request = request
        self.in_process = in_process
        self._session: Any = None
        self._name = sha256(content).hexdigest()

    def __getstate__(self) -> dict[str, Any]:
        # A session cannot be copied, and is opened again where it is needed.
        return vars(self) | {"_session": None}

    def __call__(self, X: Any) -> FloatArray:
        """Return numbers (n, columns)."""
        rows, parts = _typed(X, self.dtype), []
        for start, end in self._requests(rows):
            try:
                parts.append(self._answers(rows[start:end]))
            except Refused as refusal:
                row = self._failing(rows[start:end])
                where = "the predictor" if self.owner is None else f"the predictor of {self.owner}"
                raise PredictorError(
                    where, f"cannot be used: {refusal}", None if row is None else start + row
                ) from refusal
        return np.concatenate(parts).astype(float)

    def _answers(self, rows: Any) -> Any:
        """Ask for the answers to some rows; a process that was killed is asked once more."""
        if self.in_process:
            self._session = self._session or open_session(self.content)
            return ask_in_blocks(self._session, rows, self.block)
        described, content = rows_to_bytes(rows)
        begun = time.monotonic()
        try:
            answer = self._send({"do": "ask", "rows": described}, content)
        except Refused as refusal:
            # One that has used up its time would do so again.
            if str(refusal) != DIED or time.monotonic() - begun > AGAIN:
                raise
            answer = self._send({"do": "ask", "rows": described}, content)
        return rows_from_bytes(*answer)

    def _failing(self, rows: Any) -> int | None:
        """Look for the first row that is not answered, by halves; None if that takes long."""
        low, high, end = 0, len(rows), time.monotonic() + SEARCH
        while high - low > 1 and time.monotonic() < end:
            middle = (low + high) // 2
            try:
                self._answers(rows[low:middle])
                low = middle
            except Refused:
                high = middle
        return low if high - low == 1 else None

    def judge(self, X: Any, classes: bool) -> None:
        """Refuse a predictor whose outputs are invalid or depend on other rows in the batch."""
        described, content = rows_to_bytes(_typed(X, self.dtype))
        self._send({"do": "judge", "rows": described, "classes": classes}, content)

    def _send(self, message: dict[str, Any], content: Any) -> tuple[dict[str, Any], bytes]:
        """Ask the limited process; where it does not know the graph yet, send that first."""
        process = limited_process(self._name if len(self.content) > LARGE else "")
        message |= {"name": self._name, "block": self.block}
        answer = process.ask(message, content)
        if "unknown" in answer[0]:
            process.ask({"do": "open", "name": self._name}, self.content)
            answer = process.ask(message, content)
        return answer

    def _requests(self, rows: Any) -> Iterator[tuple[int, int]]:
        """Yield where requests begin and end; there is one of no rows if there are none."""
        # A document takes more than its pointer; blocks of them are cut by their letters.
        text = self.dtype == "string"
        fits = self.block if text else max(REQUEST_BYTES // max(rows[:1].nbytes, 1), 1)
        return blocks_of(rows, min(self.request, fits))


def audit(
    content: bytes,
    dtype: str,
    n_features: int,
    n_classes: int | None = None,
    own: Any = (),
    others: Any = (),
) -> OnnxPredictor:
    """Check, try and rewrite a file in the limited process; raise `Refused` if it fails.

    It takes rows (n, n_features) and gives `n_classes` probabilities, or one number.  At its `own`
    rows answers must be finite, and probabilities of a classifier; at these and at `others` an
    answer must not depend on the other rows.
    """
    # They are loaded in the limited process alone.
    installed("onnx", "onnxruntime")
    rows = [_typed(part, dtype) for part in (own, others) if len(part)]
    expected = {
        "dtype": dtype,
        "n_features": n_features,
        "n_columns": n_classes or 1,
        "classes": n_classes is not None,
    }
    message = {"do": "audit", "expected": expected, "own": len(own)}
    # A large file is audited in a process that nothing has been opened in.
    large = len(content) > LARGE
    process = LimitedProcess() if large else limited_process()
    try:
        if rows:
            described, laid = rows_to_bytes(np.concatenate(rows))
            process.ask({"do": "lay", "rows": described}, laid)
        answer, graph = process.ask(message, content)
    finally:
        if large:
            process.close()
    return OnnxPredictor(graph, dtype, answer["block"], answer["request"])


def _typed(rows: Any, dtype: str) -> Any:
    if dtype == "string":
        return np.asarray(list(rows), dtype=object).reshape(-1, 1)
    return np.ascontiguousarray(rows, dtype=dtype)
