"""The method: from a problem to z.  Solvers see a problem through `Oracle` alone."""

from anymix.core.solvers.methods import solve
from anymix.core.solvers.oracle import Budget, Oracle, Solvable, SumOverPoints

__all__ = ["Budget", "Oracle", "Solvable", "SumOverPoints", "solve"]
