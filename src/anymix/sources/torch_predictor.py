"""A PyTorch network as the predictor of a source.

    logits          softmax over the classes; of one column and two classes the sigmoid
    probabilities   as they are; one column is that of the second class
    number          as it is

PyTorch is imported only when needed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from anymix._arrays import FloatArray
from anymix.exceptions import InputError, not_installed

OUTPUTS = ("logits", "probabilities", "number")
# Rows, and numbers, that are asked about at once.
BATCH_ROWS, BATCH_NUMBERS = 1024, 2**22
# Modes of a network are switched and put back: two threads would undo each other's.
_ONE_AT_A_TIME = threading.RLock()


def need_torch() -> Any:
    """Import PyTorch, or say how to get it."""
    try:
        return import_module("torch")
    except ImportError as error:
        raise not_installed("torch", "networks") from error


@contextmanager
def at_rest(module: Any) -> Iterator[Any]:
    """Put a module and all its parts into evaluation mode, and restore them afterwards."""
    with _ONE_AT_A_TIME:
        modes = [(part, part.training) for part in module.modules()]
        try:
            yield module.eval()
        finally:
            for part, training in modes:
                part.training = training


class TorchPredictor:
    """A module as a function of rows: numbers (n, d) in, probabilities (n, c) or numbers (n,) out.

    Rows have the dtype and go to the device of the module's weights; answers are float64.

    Parameters
    ----------
    module : torch.nn.Module
    output : "logits", "probabilities" or "number"
        What the module gives.
    n_classes : int
        0 for a regression.
    shape : tuple of int, optional
        Of one row, as the module takes it, such as (1, 28, 28); by default (d,).
    """

    def __init__(
        self, module: Any, output: str, n_classes: int = 0, shape: tuple[int, ...] | None = None
    ):
        self.module = module
        self.output = output
        self.n_classes = n_classes
        self.shape = shape

    def __call__(self, X: Any) -> FloatArray:
        """Answer rows in batches, without gradients and in evaluation mode."""
        torch = need_torch()
        rows = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)
        dtype, device = self.kind()
        size = max(1, min(BATCH_ROWS, BATCH_NUMBERS // max(rows[:1].size, 1)))
        parts = []
        with at_rest(self.module), torch.no_grad():
            for start in range(0, max(len(rows), 1), size):
                # A copy: a module may work in place, and rows of a frame may not be written to.
                some = torch.tensor(rows[start : start + size], dtype=dtype, device=device)
                parts.append(self.answer(some).to("cpu", torch.float64).numpy())
        return np.concatenate(parts)

    def kind(self) -> tuple[Any, Any]:
        """Return the dtype and the device of the weights: float32 on the CPU if there are none."""
        torch = need_torch()
        found = (*self.module.parameters(), *self.module.buffers())
        weights = [tensor for tensor in found if tensor.is_floating_point()]
        if not weights:
            return torch.float32, torch.device("cpu")
        return weights[0].dtype, weights[0].device

    def answer(self, rows: Any) -> Any:
        """h(x) of a tensor of rows (n, d), as a tensor: (n, c) of probabilities, or (n, 1)."""
        torch = need_torch()
        out = self._out(rows)
        if out.ndim == 1:
            out = out.unsqueeze(1)
        columns = out.shape[-1]
        if self.n_classes == 2 and columns == 1:
            p = torch.sigmoid(out) if self.output == "logits" else out
            return torch.cat([1 - p, p], dim=1)
        if out.ndim != 2 or columns != max(self.n_classes, 1):
            wanted = f"(n, {self.n_classes})" if self.n_classes else "(n,) or (n, 1)"
            raise InputError(
                f"the module {type(self.module).__name__}",
                f"gives the shape {tuple(out.shape)} where {wanted} is expected; check output= and "
                "classes=",
            )
        return torch.softmax(out, dim=1) if self.output == "logits" else out

    def _out(self, rows: Any) -> Any:
        """What the module gives; an error states the shape of rows that it cannot take."""
        shape = tuple(rows.shape[1:]) if self.shape is None else self.shape
        try:
            return self.module(rows if self.shape is None else rows.reshape(-1, *self.shape))
        except RuntimeError as error:
            if "shape" not in str(error):  # a fault of its own, or of the machine
                raise
            raise InputError(
                f"the module {type(self.module).__name__}",
                f"cannot take {rows.shape[-1]} columns as rows of the shape {shape}: {error}; give "
                "the columns that it was trained on, or shape=",
            ) from error

    def as_module(self) -> Any:
        """Return one module that takes rows (n, d) and gives what `answer` gives."""
        torch, predictor = need_torch(), self

        class Whole(torch.nn.Module):  # type: ignore[name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.inner = predictor.module

            def forward(self, rows: Any) -> Any:
                return predictor.answer(rows)

        return Whole()


def torch_predictor(
    module: Any, output: str, classes: Any, shape: tuple[int, ...] | None
) -> TorchPredictor:
    """Return a module as a predictor; inconsistent options are refused."""
    torch = need_torch()
    if not isinstance(module, torch.nn.Module):
        raise InputError(
            f"a {type(module).__name__}", "is not a torch.nn.Module; pass the network itself"
        )
    if output not in OUTPUTS:
        raise InputError(f"output={output!r}", f"is not known; choose one of {', '.join(OUTPUTS)}")
    if (output == "number") != (classes is None):
        remedy = "leave classes out" if output == "number" else "pass classes=[...]"
        raise InputError(
            f"output={output!r}", f"and classes={classes!r:.60} do not go together; {remedy}"
        )
    if classes is not None and len(set(classes)) < len(classes):
        raise InputError(f"classes={classes!r:.60}", "name one twice; name each once, in order")
    return TorchPredictor(module, output, 0 if classes is None else len(classes), shape)
