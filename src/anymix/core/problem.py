"""The problem of finding z: the losses of h_z on each source, with their derivatives in z.

J_z = Σ_k z_k D_k h_k + (η/p) U Σ_k h_k        K_z = Σ_k z_k D_k + η U        h_z = J_z / K_z
L_k(z) = Σ_i P_k(i) ℓ(h_z(i), y_i)             ∇_j L_k = Σ_i P_k ℓ'(h_z) D_j (h_j − h_z) / K_z
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from anymix._arrays import FloatArray
from anymix.core import inputs
from anymix.core.judgement import Judgement
from anymix.core.judgement import gap as gap


class Problem(Judgement):
    """Masses, predictions and targets of p sources at m points, with a loss and η.

    Parameters
    ----------
    masses : array (p, m)
        D_k(i) ≥ 0.  A common factor per point changes nothing but the part of η.
    predictions : array (p, m), or (p, m, c) for a vector loss
        h_k(i).  For the cross-entropy the probability of the label that occurred; given (p, m, c)
        with integer targets it is looked up.
    targets : array (m,), (m, c) for a vector loss, or None for the cross-entropy
        y_i.
    loss : str or Loss
        See `anymix.core.losses`.
    eta : float
        η > 0, the part of the reference measure in the weights.
    weights : array (p, m), optional
        P_k(i), the measure that losses are averaged with; None means P = D, the pooled measure.
    reference : array (m,) or "uniform", optional
        U(i); None means the mean of the sources' masses.

    Examples
    --------
    Two sources, each perfect at home; every average of them pays 1/4 (Lemma 7), this does not.

    >>> from anymix.core import Problem
    >>> problem = Problem([[1, 0], [0, 1]], [[0, 0], [1, 1]], [0, 1], eta=1e-3)
    >>> problem.source_losses([0.5, 0.5]).round(6)
    array([0., 0.])

    Paper: Eq. 1, Eq. 2.
    """

    def thin(self, n: int, rng: np.random.Generator) -> Problem:
        """Return the problem on about n of the points, each source keeping its share.

        Losses are averages over fewer points; the masses, and so h_z, are the same.
        """
        keep = self.measure.sample(n, rng)
        small = Problem.__new__(Problem)
        small.loss, small.eta, small.pooled = self.loss, self.eta, False
        small.masses = self.masses.take(keep, axis=1)
        small.predictions = self.predictions.take(keep, axis=1)
        small.targets, small.reference = self.targets[keep], self.reference[keep]
        small.measure = self.measure.restricted(keep)
        small.log_scale, small._order = self.log_scale, None
        small._prepare()
        return small

    @property
    def weighted(self) -> FloatArray:
        """D∘h, of the shape of the predictions."""
        return self._B

    def losses_and_jacobian(self, z: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return L (p,) and its Jacobian G_kj = ∂L_k/∂z_j (p, p), in one pass over the tables.

        G_kj = Σ_i P_k ℓ'(h_z) (D_j h_j − h_z D_j) / K
        """
        z = inputs.vector(z, self.n_sources)
        p, measure = self.n_sources, self.measure
        L, G = np.zeros(p), np.zeros((p, p))
        for block in measure.blocks():
            h, K = self.ratio(z, block)
            y, D, B = self.targets[block], self.masses[:, block], self._B[:, block]
            slope = self.loss.slope(h, y)
            measure.add_average(block, self.loss.value(h, y), L)
            if B.ndim == 3:
                B, slope, h = _contract(B, slope, h)
            measure.add_cross(block, slope / K, h, (B, D), G)
        return L, G

    def hessian(self, z: ArrayLike, multipliers: FloatArray) -> FloatArray:
        """Return Σ_k λ_k ∇²L_k (p, p); with a = D∘h − h_z D and W = Σ_k λ_k P_k

        Σ_i W [ℓ'' aa' − ℓ'(Da' + aD')] / K²
        """
        z = inputs.vector(z, self.n_sources)
        H = np.zeros((z.size, z.size))
        for block in self.measure.blocks():
            h, K = self.ratio(z, block)
            # One K here and one below: K² would underflow where all masses are tiny.
            W = self.measure.mix(block, multipliers) / K
            D, y = self.masses[:, block], self.targets[block]
            bends = self.loss.slope(h, y), self.loss.curvature(h, y)
            for B_c, h_c, slope, curvature in components(self._B[:, block], h, *bends):
                a = B_c - h_c * D
                H += (a * (W * curvature) - D * (2.0 * W * slope)) @ (a / K).T
        return (H + H.T) / 2


def components(B: FloatArray, *point: FloatArray) -> Iterator[tuple[FloatArray, ...]]:
    """Split D∘h (p, m, c) and arrays (m, c) by class; a scalar loss has one component."""
    if B.ndim == 2:
        yield (B, *point)
        return
    for c in range(B.shape[2]):
        yield (B[:, :, c], *(array[:, c] for array in point))


def _contract(
    B: FloatArray, slope: FloatArray, h: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Reduce a vector loss to the scalar form: Σ_c ℓ'_c B_jc, 1, Σ_c ℓ'_c h_c."""
    table = np.einsum("ic,jic->ji", slope, B)
    return table, np.ones(slope.shape[0]), np.einsum("ic,ic->i", slope, h)
