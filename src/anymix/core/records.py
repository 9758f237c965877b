"""What a solver and a certificate answer: frozen records that can be written as JSON."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from anymix._arrays import FloatArray

Objective = Literal["regret", "robust", "gamma"]


class SolverWarning(UserWarning):
    """The answer is usable but not as good as was asked for."""


class Step(NamedTuple):
    """One evaluation on the way: passes over the data so far, γ and max_k (L_k − b_k)."""

    n_evaluations: float
    gamma: float
    worst: float


def plain(value: Any) -> Any:
    """Turn records and arrays into what JSON knows; NaN and infinity become None."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: plain(item) for name, item in value._asdict().items()}
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


# Arrays have no truth of equality: without eq=False, == and hash() of a record would raise.
@dataclass(frozen=True, eq=False)
class Record:
    """A frozen answer that can be written down."""

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain numbers, strings, lists and dictionaries."""
        return dict(plain(self))

    def to_json(self) -> str:
        """Return the record as one JSON object."""
        return json.dumps(self.to_dict(), allow_nan=False)


@dataclass(frozen=True, eq=False)
class Solution(Record):
    """z and how good it is; every loss recomputed from the problem, none from a decomposition.

    Attributes
    ----------
    z : array (p,)
        The answer, on the simplex.
    objective, method : str
        What was asked for and what found it.
    gamma, robust_loss, regret : float
        γ(z), max_k L_k(z) and max_k (L_k(z) − ε_k).
    source_losses, own_losses : array (p,)
        L_k(z) and ε_k.
    status : "converged", "stationary", "stalled" or "out of evaluations"
        "stationary" is the DCA's own word: no step of it helps, though γ need not be zero.
    optimality : float
        What is left, relative to the losses: γ, or the decrease that the model still promises.
    n_evaluations, n_hessians : float
        Evaluations of the losses (with or without Jacobian) and of a Hessian, in passes over all
        points; a pass over a part of them counts as that part.
    shrinkage : float
        ρ, the amount of the penalty ρ KL(prior ‖ z).
    trace : tuple of Step
        One entry an evaluation.
    """

    z: FloatArray
    objective: str
    method: str
    gamma: float
    robust_loss: float
    regret: float
    source_losses: FloatArray
    own_losses: FloatArray
    status: str
    optimality: float
    n_evaluations: float
    n_hessians: float = 0.0
    shrinkage: float = 0.0
    trace: tuple[Step, ...] = ()
