"""Solvers: from a problem to z.  They use a problem only through `Oracle`."""

from anymix.core.solvers.methods import solve
from anymix.core.solvers.oracle import Budget, Oracle, Solvable, SumOverPoints

__all__ = ["Budget", "Oracle", "Solvable", "SumOverPoints", "solve"]
