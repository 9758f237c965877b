"""The problem: p sources at m points, and the losses of h_z on each source as functions of z.

J_z = Σ_k z_k D_k h_k + (η/p) U Σ_k h_k        K_z = Σ_k z_k D_k + η U        h_z = J_z / K_z
L_k(z) = Σ_i P_k(i) ℓ(h_z(i), y_i)             ∇_j L_k = Σ_i P_k ℓ'(h_z) D_j (h_j − h_z) / K_z
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anymix._arrays import FloatArray
from anymix.core import inputs, simplex
from anymix.core.losses import Loss, get_loss
from anymix.core.measures import Measure


class Problem:
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

    def __init__(
        self,
        masses: ArrayLike,
        predictions: ArrayLike,
        targets: ArrayLike | None,
        loss: str | Loss = "squared",
        eta: float = 1e-3,
        weights: ArrayLike | Measure | None = None,
        reference: ArrayLike | str | None = None,
    ):
        self.loss = get_loss(loss)
        self.eta = inputs.positive(eta, "eta")
        # Rows in one piece: every pass runs along the points of a source.
        self.masses = np.ascontiguousarray(inputs.mass_table(masses, "masses"))
        h, self.targets = inputs.outcomes(predictions, targets, self.loss, self.masses.shape)
        self.predictions = np.ascontiguousarray(h)
        self.reference = inputs.reference_measure(reference, self.masses)
        self.pooled = weights is None
        self.measure = inputs.measure(self.masses if weights is None else weights, self.masses)
        self.log_scale = np.zeros(self.n_sources)
        self._order: NDArray[np.intp] | None = None
        self._prepare()

    def _prepare(self) -> None:
        """Store D∘h and the parts of J and K that do not depend on z."""
        vector = self.predictions.ndim == 3
        D, U = self.masses, self.reference
        self._B = (D[:, :, None] if vector else D) * self.predictions
        mean = self.predictions.mean(axis=0)
        self._K0 = self.eta * U
        inputs.check_reach(D, self._K0, self.measure)
        self._J0 = (self._K0[:, None] if vector else self._K0) * mean

    @classmethod
    def from_log_densities(
        cls,
        log_densities: ArrayLike,
        predictions: ArrayLike,
        targets: ArrayLike | None,
        loss: str | Loss = "squared",
        eta: float = 1e-3,
        sample_domain: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Problem:
        """Build the problem from log-densities (p, m), or log-responsibilities, of any magnitude.

        sample_domain (m,), the source 0..p−1 that each point was drawn from, gives the own measure
        P_k = 1/n_k on source k's points.  Without it the points are taken as an equal pool of all
        sources and D_k(i) = p r_k(i)/m, normalised: the pooled measure.  `log_scale` then holds the
        logarithm of that normalisation, to be added to log-densities at new points.

        Paper: Eq. 1, Eq. 2.
        """
        r = inputs.responsibilities(log_densities)
        if sample_domain is None:
            return cls._pooled(r, predictions, targets, loss, eta, sample_weight)
        p, m = r.shape
        domain = inputs.domains(sample_domain, p, m)
        order = np.argsort(domain, kind="stable")
        # Checked before they are sorted, so that complaints name the points as the user does.
        h, y = inputs.outcomes(predictions, targets, get_loss(loss), (p, m))
        measure = inputs.own_measure(domain, p, sample_weight, order)
        self = cls(r[:, order], h[:, order], y[order], loss, eta, measure)
        self._order = order
        return self

    @classmethod
    def _pooled(
        cls,
        r: FloatArray,
        predictions: ArrayLike,
        targets: ArrayLike | None,
        loss: str | Loss,
        eta: float,
        sample_weight: ArrayLike | None,
    ) -> Problem:
        if sample_weight is not None:
            r = r * inputs.sample_weights(sample_weight, r.shape[1])
        total = inputs.mass_table(r, "log_densities").sum(axis=1, keepdims=True)
        self = cls(r / total, predictions, targets, loss, eta)
        self.log_scale = -np.log(total[:, 0] / total.mean())
        return self

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
    def n_sources(self) -> int:
        """p."""
        return int(self.masses.shape[0])

    @property
    def n_points(self) -> int:
        """m."""
        return int(self.masses.shape[1])

    @property
    def weighted(self) -> FloatArray:
        """D∘h, of the shape of the predictions."""
        return self._B

    def ratio(self, z: FloatArray, block: slice = slice(None)) -> tuple[FloatArray, FloatArray]:
        """Return h_z = J_z/K_z and K_z on a block of points, in the problem's own order.

        Paper: Eq. 1, Eq. 2.
        """
        K = z @ self.masses[:, block] + self._K0[block]
        if self._B.ndim == 2:
            return (z @ self._B[:, block] + self._J0[block]) / K, K
        J = np.tensordot(z, self._B[:, block], axes=1) + self._J0[block]
        return np.asarray(J / K[:, None]), K

    def combined(self, z: ArrayLike) -> FloatArray:
        """Return h_z at the problem's points, in the order in which they were given.

        Paper: Eq. 1, Eq. 2.
        """
        z = simplex.check(z, self.n_sources)
        h = self.ratio(z, slice(None))[0]
        if self._order is None:
            return h
        out = np.empty_like(h)
        out[self._order] = h
        return out

    def source_losses(self, z: ArrayLike) -> FloatArray:
        """Return L_k(z) = Σ_i P_k(i) ℓ(h_z(i), y_i), shape (p,).

        Paper: Eq. 3, Eq. 4.
        """
        z = inputs.vector(z, self.n_sources)
        L = np.zeros(self.n_sources)
        for block in self.measure.blocks():
            h, _ = self.ratio(z, block)
            self.measure.add_average(block, self.loss.value(h, self.targets[block]), L)
        return L

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

    @cached_property
    def own_losses(self) -> FloatArray:
        """ε_k = L(D_k, h_k): each source's own predictor at home, shape (p,)."""
        homes = map(self.measure.take, range(self.n_sources))
        pairs = zip(self.predictions, homes, strict=True)
        return np.array([w @ self.loss.value(h[i], self.targets[i]) for h, (i, w) in pairs])

    @cached_property
    def loss_bound(self) -> float:
        """M = max over sources and points of ℓ(h_k, y)."""
        return max(float(self.loss.value(h, self.targets).max()) for h in self.predictions)

    def mixture_loss(self, z: ArrayLike) -> float:
        """L(D_z, h_z) = Σ_k z_k L_k(z)."""
        return float(np.asarray(z, dtype=float) @ self.source_losses(z))

    def gamma(self, z: ArrayLike, baseline: FloatArray | float = 0.0) -> float:
        """γ(z) = max_k (L_k − b_k) − Σ_k z_k (L_k − b_k) ≥ 0; zero at a fixed point of Lemma 4.

        Paper: Eq. 3, Eq. 4.
        """
        return gap(self.source_losses(z) - baseline, np.asarray(z, dtype=float))

    def robust_loss(self, z: ArrayLike) -> float:
        """max_k L_k(z): the loss of h_z on the worst mixture."""
        return float(self.source_losses(z).max())

    def regret(self, z: ArrayLike) -> float:
        """max_k (L_k(z) − ε_k): the most that h_z loses to a source's own predictor at home."""
        return float((self.source_losses(z) - self.own_losses).max())


def gap(losses: FloatArray, z: FloatArray) -> float:
    """max_k L_k − Σ_k z_k L_k.

    Paper: Eq. 4.
    """
    return max(0.0, float(losses.max() - z @ losses))


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
