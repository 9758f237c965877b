"""The method: from a problem to z.  Solvers see a problem through `Oracle` alone."""

from anymix.core.solvers.methods import solve
from anymix.core.solvers.oracle import Oracle, Solvable, SumOverPoints

__all__ = ["Oracle", "Solvable", "SumOverPoints", "solve"]
