"""The problem of finding z: the losses of h_z on each source, with their derivatives in z.

J_z = Σ_k z_k D_k h_k + (η/p) U Σ_k h_k        K_z = Σ_k z_k D_k + η U        h_z = J_z / K_z
L_k(z) = Σ_i P_k(i) ℓ(h_z(i), y_i)             ∇_j L_k = Σ_i P_k ℓ'(h_z) D_j (h_j − h_z) / K_z
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy

import numpy as np
from numpy.typing import ArrayLike

from anymix._arrays import FloatArray
from anymix.core import inputs
from anymix.core.evaluated_points import EvaluatedPoints
from anymix.core.evaluated_points import gap as gap
from anymix.core.sums import Sums


class Problem(EvaluatedPoints):
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

    def thin(self, n: float, rng: np.random.Generator | int) -> Problem:
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

    def evaluate_many(self, Z: ArrayLike, multipliers: FloatArray | None = None) -> Sums:
        """Return L, G and, with multipliers λ (s, p), the Hessian Σ_k λ_k ∇²L_k, for each z of Z.

        All of Z (s, p) in one pass over the tables; with a = D∘h − h_z D and W = Σ_k λ_k P_k,

        G_kj = Σ_i P_k ℓ' a_j / K        Σ_k λ_k ∇²L_k = Σ_i W [ℓ'' aa' − ℓ'(Da' + aD')] / K²
        """
        Z = inputs.stack(Z, self.n_sources)
        s, p = Z.shape
        L, G = np.zeros((s, p)), np.zeros((s, p, p))
        H = None if multipliers is None else np.zeros((s, p, p))
        for block in self.measure.blocks(s):
            h, K = self.ratio(Z, block)
            # A loss knows points, not stacks of them.
            flat = h.reshape(-1, *h.shape[2:]), _repeated(self.targets[block], s)
            slope = self.loss.slope(*flat).reshape(h.shape)
            self.measure.add_average(block, self.loss.value(*flat).reshape(K.shape), L)
            self._add_slopes(block, K, h, slope, G)
            if H is not None and multipliers is not None:
                # One K here and one below: K² would underflow where all masses are tiny.
                W = self.measure.mix(block, multipliers) / K
                D, bends = self.masses[:, block], self.loss.curvature(*flat).reshape(h.shape)
                for B_c, h_c, first, second in components(self._B[:, block], h, slope, bends):
                    a = B_c - h_c[:, None] * D
                    left = a * (W * second)[:, None] - D * (2.0 * W * first)[:, None]
                    a /= K[:, None]
                    H += left @ a.transpose(0, 2, 1)
        return Sums(L, G, None if H is None else (H + H.transpose(0, 2, 1)) / 2)

    def _add_slopes(
        self, block: slice, K: FloatArray, h: FloatArray, slope: FloatArray, G: FloatArray
    ) -> None:
        B, D = self._B[:, block], self.masses[:, block]
        if B.ndim == 3:
            B, slope, h = _contract(B, slope, h)
        self.measure.add_cross(block, slope / K, h, (B, D), G)

    def losses_and_jacobian(self, z: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return L (p,) and its Jacobian G_kj = ∂L_k/∂z_j (p, p); see `evaluate_many`."""
        found = self.evaluate_many(inputs.vector(z, self.n_sources)[None])
        return found.losses[0], found.jacobians[0]

    def hessian(self, z: ArrayLike, multipliers: FloatArray) -> FloatArray:
        """Return Σ_k λ_k ∇²L_k (p, p); see `evaluate_many`."""
        Z = inputs.vector(z, self.n_sources)[None]
        hessians = self.evaluate_many(Z, np.asarray(multipliers, dtype=float)[None]).hessians
        assert hessians is not None
        return np.asarray(hessians[0])

    def smoothed(self, width: float) -> Problem:
        """Return the problem with the kinks of its loss rounded within `width`; tables are shared.

        A loss without kinks stays as it is.
        """
        view = copy(self)
        view.loss = self.loss.smoothed(width)
        view.__dict__.pop("own_losses", None)
        view.__dict__.pop("loss_bound", None)
        return view

    def paired_moments(self, z: ArrayLike) -> FloatArray:
        """Σw, Σwd, Σw², Σw²d, Σw²d² of d = ℓ(h_z, y) − ℓ(h_k, y) at home, w = P_k: (5, p).

        They tell the standard error of what a source loses, and add up over parts of the points.
        """
        z = inputs.vector(z, self.n_sources)
        found = np.zeros((5, self.n_sources))
        for k in range(self.n_sources):
            points, w = self.measure.take(k)
            h, y = self.ratio(z, points)[0], self.targets[points]
            d = self.loss.value(h, y) - self.loss.value(self.predictions[k, points], y)
            found[:, k] = w.sum(), w @ d, w @ w, (w * w) @ d, (w * w) @ (d * d)
        return found


def _repeated(y: FloatArray, times: int) -> FloatArray:
    return y if times == 1 else np.concatenate([y] * times)


def components(B: FloatArray, *point: FloatArray) -> Iterator[tuple[FloatArray, ...]]:
    """Split D∘h (p, m, c) and arrays (..., m, c) by class; a scalar loss has one component."""
    if B.ndim == 2:
        yield (B, *point)
        return
    for c in range(B.shape[2]):
        yield (B[:, :, c], *(array[..., c] for array in point))


def _contract(
    B: FloatArray, slope: FloatArray, h: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Reduce a vector loss to the scalar form, for each z: Σ_c ℓ'_c B_jc, 1, Σ_c ℓ'_c h_c."""
    table = np.einsum("sic,jic->sji", slope, B, optimize=True)
    return table, np.ones(slope.shape[:2]), np.einsum("sic,sic->si", slope, h)
