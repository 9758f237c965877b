"""How far the float32 form of an exported graph is from the float64 form, on draws of densities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from anymix._arrays import FloatArray
from anymix.exchange.conversion import COMPARED_ROWS
from anymix.exchange.read import ReceivedSource
from anymix.sandbox import open_session

# The largest difference that is taken: of a probability, or of a prediction beside their spread.
TOLERANCE = 1e-3


class Narrowed(NamedTuple):
    """The largest difference at `n_rows` rows, and the share of them that get another label.

    Of probabilities it is as it is; of predictions it is beside their standard deviation.
    """

    largest: float
    other_labels: float
    n_rows: int

    @property
    def holds(self) -> bool:
        """Whether the difference is within what is taken; without rows nobody knows."""
        return self.n_rows == 0 or self.largest <= TOLERANCE

    def __str__(self) -> str:
        if not self.n_rows:
            return "not compared with float64, as no density tells what rows look like"
        moved = f", {100 * self.other_labels:.2g} % with another label" * (self.other_labels > 0)
        return f"at most {self.largest:.1g} from float64 at {self.n_rows} rows{moved}"


def narrowed(wide: bytes, narrow: bytes, rows: FloatArray | None) -> Narrowed:
    """Compare two graphs of one model, which take float64 and float32, at rows (n, d)."""
    if rows is None or not len(rows):
        return Narrowed(0.0, 0.0, 0)
    due, found = _answers(wide, rows), _answers(narrow, rows.astype(np.float32))
    numbers = "probabilities" if "probabilities" in due else "prediction"
    scale = 1.0 if numbers == "probabilities" else float(due[numbers].std()) or 1.0
    # What is not finite compares as false, and so counts as far.
    apart = np.abs(found[numbers] - due[numbers]) / scale
    largest = float(apart.max()) if np.isfinite(apart).all() else np.inf
    other = float(np.mean(due["label"] != found["label"])) if "label" in due else 0.0
    return Narrowed(largest, other, len(rows))


def _answers(content: bytes, rows: Any) -> dict[str, Any]:
    session = open_session(content)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {"X": rows}), strict=True))


def round_thresholds(onnx: Any, nodes: Sequence[Any]) -> None:
    """Round thresholds of trees as rows are rounded, in place: x ≤ t gives fl(x) ≤ fl(t).

    Boosted trees compare in float64, and often with a number that rows have: of these half would
    else fall on the other side.
    """
    for node in nodes:
        for attribute in node.attribute if node.op_type.startswith("TreeEnsemble") else ():
            if attribute.name == "nodes_values_as_tensor":
                exact = onnx.numpy_helper.to_array(attribute.t).astype(np.float64)
                with np.errstate(over="ignore"):
                    near = exact.astype(np.float32).astype(np.float64)
                kept = np.where(np.isfinite(near), near, exact)
                attribute.t.CopyFrom(onnx.numpy_helper.from_array(kept, attribute.t.name))


def draws_of(received: Sequence[ReceivedSource]) -> FloatArray | None:
    """Return rows drawn from the density of each source; None if one has none."""
    densities = [one.source.density for one in received]
    if any(density is None or not hasattr(density, "sample") for density in densities):
        return None
    drawn = [density.sample(COMPARED_ROWS, random_state=0) for density in densities]
    return np.concatenate([np.asarray(rows, dtype=float) for rows in drawn])
