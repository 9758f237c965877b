"""What a pass over the points brings back, for a stack of z at once; sums of parts add up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from anymix._arrays import FloatArray


class Sums(NamedTuple):
    """L_k, ∂L_k/∂z_j and, where multipliers were given, Σ_k λ_k ∇²L_k, for each z of a stack.

    losses (s, p), jacobians (s, p, p), hessians (s, p, p) or None.
    """

    losses: FloatArray
    jacobians: FloatArray
    hessians: FloatArray | None = None

    def plus(self, other: Sums) -> Sums:
        """Add what another part of the points brings."""
        bent = None
        if self.hessians is not None and other.hessians is not None:
            bent = self.hessians + other.hessians
        return Sums(self.losses + other.losses, self.jacobians + other.jacobians, bent)


def add_sums(parts: Iterable[Sums]) -> Sums:
    """Add up the sums of all parts, in their order.

    >>> import numpy as np
    >>> part = Sums(np.ones((1, 2)), np.ones((1, 2, 2)))
    >>> add_sums([part, part]).losses
    array([[2., 2.]])
    """
    found = iter(parts)
    total = next(found)
    for part in found:
        total = total.plus(part)
    return total
