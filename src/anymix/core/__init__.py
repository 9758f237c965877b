"""The paper in code: numpy and scipy only, imports no other room."""

from anymix.core.combine import combine, source_weights
from anymix.core.losses import LOSSES, Loss, get_loss
from anymix.core.problem import Problem
from anymix.core.records import Solution, SolverWarning
from anymix.core.solve import solve

__all__ = [
    "LOSSES",
    "Loss",
    "Problem",
    "Solution",
    "SolverWarning",
    "combine",
    "get_loss",
    "solve",
    "source_weights",
]
