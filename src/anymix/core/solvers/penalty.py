"""What holds z near a prior."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anymix._arrays import FloatArray


class Penalty(NamedTuple):
    """ρ KL(u ‖ z) = ρ Σ_k u_k log(u_k/z_k), which holds z near the prior u; z (p,) or (s, p)."""

    rho: float
    prior: FloatArray

    def values(self, z: FloatArray) -> FloatArray:
        """Return the penalty of each z; infinite where z_k = 0 < u_k."""
        if self.rho == 0.0:
            return np.zeros(z.shape[:-1])
        on = self.prior > 0
        with np.errstate(divide="ignore"):
            logs = np.log(self.prior[on]) - np.log(np.maximum(z[..., on], 0.0))
        return np.asarray(self.rho * (logs @ self.prior[on]))

    def value(self, z: FloatArray) -> float:
        """Return the penalty of one z."""
        return float(self.values(z))

    def worst(self, f: FloatArray, z: FloatArray) -> float:
        """max_k f_k and the penalty."""
        return float(f.max()) + self.value(z)

    def slope(self, z: FloatArray) -> FloatArray:
        """−ρ u/z; nothing holds a z_k whose u_k is 0."""
        return -self._over(z)

    def curvature(self, z: FloatArray) -> FloatArray:
        """ρ u/z², the diagonal of the Hessian."""
        return self._over(z * z)

    def _over(self, z: FloatArray) -> FloatArray:
        pull = np.broadcast_to(self.rho * self.prior, z.shape)
        return np.asarray(np.divide(pull, z, out=np.zeros(z.shape), where=pull > 0))
