"""The problem of finding z: the losses of h_z on each source, with their derivatives in z.

J_z = Σ_k z_k D_k h_k + (η/p) U Σ_k h_k        K_z = Σ_k z_k D_k + η U        h_z = J_z / K_z
L_k(z) = Σ_i P_k(i) ℓ(h_z(i), y_i)             ∇_j L_k = Σ_i P_k ℓ'(h_z) D_j (h_j − h_z) / K_z
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from anymix._arrays import FloatArray, IntArray, source_numbers
from anymix.core import inputs, simplex
from anymix.core.averaging import DenseMeasure, Measure, OwnMeasure
from anymix.core.combination import mass_ratio
from anymix.core.losses import Loss, get_loss


class Sums(NamedTuple):
    """L_k (s, p), ∂L_k/∂z_j (s, p, p) and, with multipliers, Σ_k λ_k ∇²L_k for a stack of z."""

    losses: FloatArray
    jacobians: FloatArray
    hessians: FloatArray | None = None


def add_sums(parts: Iterable[Sums]) -> Sums:
    """Add up the sums of all parts, in their order."""
    losses, jacobians, hessians = zip(*parts, strict=True)
    bent = None if hessians[0] is None else sum(hessians)
    return Sums(np.asarray(sum(losses)), np.asarray(sum(jacobians)), bent)


class EvaluatedPoints:
    """Points at which h_z is evaluated and its losses measured; see `Problem` for the parameters.

    A subclass may predict in another way than by J_z/K_z (`ratio`).
    """

    n_sources: int
    n_points: int

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
        self.loss, self.eta = get_loss(loss), inputs.positive(eta, "eta")
        part = isinstance(weights, OwnMeasure) and weights.part
        D = np.ascontiguousarray(inputs.mass_table(masses, "masses", part))
        outcomes = inputs.outcomes(predictions, targets, self.loss, D.shape)
        self.pooled = weights is None
        if not isinstance(weights, OwnMeasure | DenseMeasure):
            P = D if weights is None else inputs.mass_table(weights, "weights")
            if P.shape != D.shape:
                raise ValueError(f"weights {P.shape} and masses {D.shape} must agree in shape.")
            weights = DenseMeasure(P)
        self._hold(D, *outcomes, inputs.reference_measure(reference, D), weights)

    def _hold(
        self,
        masses: FloatArray,
        predictions: FloatArray,
        targets: FloatArray,
        reference: FloatArray,
        measure: Measure,
    ) -> None:
        """Store checked tables, `weighted` = D∘h, and the parts of J and K without z."""
        self.n_sources, self.n_points = masses.shape
        # Rows in one piece: every pass runs along the points of a source.
        self.masses, self.predictions = map(np.ascontiguousarray, (masses, predictions))
        self.targets, self.reference, self.measure = targets, reference, measure
        self.log_scale = np.zeros(self.n_sources)
        self._order: IntArray | None = None
        vector = predictions.ndim == 3
        self.weighted = (self.masses[:, :, None] if vector else self.masses) * self.predictions
        self._K0 = self.eta * reference
        # h_z can be 0/0 where the reference has no mass; that is an error if the point counts.
        bare = (self._K0 == 0) & (self.masses.min(axis=0) == 0)
        if bare.any():
            if not isinstance(measure, DenseMeasure) or measure.weights[:, bare].any():
                raise ValueError(
                    f"point {int(np.flatnonzero(bare)[0])} counts for a source but the reference "
                    "has no mass there, so h_z can be 0/0; pass reference='uniform'."
                )
            # Nothing is averaged there; one grain of reference makes h_z the sources' plain mean.
            self._K0[bare] = 1.0
        self._J0 = (self._K0[:, None] if vector else self._K0) * self.predictions.mean(axis=0)

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
        *,
        totals: ArrayLike | None = None,
    ) -> Self:
        """Build the problem from log-densities (p, m), or log-responsibilities, of any magnitude.

        sample_domain (m,), the source 0..p−1 that each point was drawn from, gives the own measure
        P_k = 1/n_k on source k's points.  Without it the points are taken as an equal pool of all
        sources and D_k(i) = p r_k(i)/m, normalised, whose logarithm is `log_scale`.  totals (p,)
        says that the points are a part of all: P_k = 1/totals_k, and a source may have none here.

        Paper: Eq. 1, Eq. 2.
        """
        r = inputs.responsibilities(log_densities, floor=sample_domain is not None)
        if sample_domain is None:
            if totals is not None:
                raise ValueError("totals are for points with a sample_domain.")
            if sample_weight is not None:
                r = r * inputs.sample_weights(sample_weight, r.shape[1])
            total = inputs.mass_table(r, "log_densities").sum(axis=1, keepdims=True)
            self = cls(r / total, predictions, targets, loss, eta)
            self.log_scale = -np.log(total[:, 0] / total.mean())
            return self
        p, m = r.shape
        domain = source_numbers(sample_domain, p, m, least=int(totals is None))
        order = np.argsort(domain, kind="stable")
        self = cls.__new__(cls)
        self.loss, self.eta, self.pooled = get_loss(loss), inputs.positive(eta, "eta"), False
        # Checked before they are sorted, so that complaints name the points as the user does.
        h, y = inputs.outcomes(predictions, targets, self.loss, (p, m))
        D = inputs.mass_table(r, "masses", part=totals is not None)[:, order]
        measure = inputs.own_measure(domain, p, sample_weight, order, totals)
        self._hold(D, h[:, order], y[order], D.mean(axis=0), measure)
        self._order = order
        return self

    def ratio(self, z: FloatArray, block: slice = slice(None)) -> tuple[FloatArray, FloatArray]:
        """Return h_z = J_z/K_z and K_z on a block of points, in the problem's own order.

        Paper: Eq. 1, Eq. 2.
        """
        tables = self.masses[:, block], self.weighted[:, block]
        return mass_ratio(z, *tables, self._K0[block], self._J0[block])

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

    def content(self) -> FloatArray:
        """Targets and predictions, which identify the points whatever the rule and η: (m, q)."""
        y = self.targets.reshape(self.n_points, -1)
        predictions = np.moveaxis(self.predictions, 1, 0).reshape(self.n_points, -1)
        return np.concatenate([y, predictions], axis=1)

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

    @cached_property
    def own_losses(self) -> FloatArray:
        """ε_k = L(D_k, h_k): loss of each source's own predictor on its points, shape (p,)."""
        homes = map(self.measure.take, range(self.n_sources))
        pairs = zip(self.predictions, homes, strict=True)
        return np.array([w @ self.loss.value(h[i], self.targets[i]) for h, (i, w) in pairs])

    @cached_property
    def loss_bound(self) -> float:
        """M = max over sources and points of ℓ(h_k, y)."""
        return max(float(self.loss.value(h, self.targets).max()) for h in self.predictions)

    def mixture_loss(self, z: ArrayLike) -> float:
        """L(D_z, h_z) = Σ_k z_k L_k(z).

        Paper: Cor. 2.
        """
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
        """max_k (L_k(z) − ε_k): the largest excess over a source's own predictor."""
        return float((self.source_losses(z) - self.own_losses).max())


def gap(losses: FloatArray, z: FloatArray) -> float:
    """max_k L_k − Σ_k z_k L_k.

    Paper: Eq. 4.
    """
    return max(0.0, float(losses.max() - z @ losses))


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
    Two sources, each perfect on its own points; every average of them loses 1/4 (Lemma 7), this
    none.

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
        D, h = self.masses.take(keep, axis=1), self.predictions.take(keep, axis=1)
        U, measure = self.reference[keep], self.measure.restricted(keep)
        small._hold(D, h, self.targets[keep], U, measure)
        small.log_scale = self.log_scale
        return small

    def evaluate_many(self, Z: ArrayLike, multipliers: FloatArray | None = None) -> Sums:
        """Return L, G and, with multipliers λ (s, p), the Hessian Σ_k λ_k ∇²L_k, for each z of Z.

        All of Z (s, p) in one pass over the tables; with a = D∘h − h_z D and W = Σ_k λ_k P_k,

        G_kj = Σ_i P_k ℓ' a_j / K        Σ_k λ_k ∇²L_k = Σ_i W [ℓ'' aa' − ℓ'(Da' + aD')] / K²
        """
        Z = np.asarray(Z, dtype=float)
        if Z.ndim != 2 or Z.shape[1] != self.n_sources:
            raise ValueError(f"Z has shape {Z.shape}; a stack of z must be (s, {self.n_sources}).")
        s, p = Z.shape
        L, G = np.zeros((s, p)), np.zeros((s, p, p))
        H = None if multipliers is None else np.zeros((s, p, p))
        for block in self.measure.blocks(s):
            h, K = self.ratio(Z, block)
            # A loss knows points, not stacks of them.
            y = self.targets[block]
            flat = h.reshape(-1, *h.shape[2:]), y if s == 1 else np.concatenate([y] * s)
            slope = self.loss.slope(*flat).reshape(h.shape)
            self.measure.add_average(block, self.loss.value(*flat).reshape(K.shape), L)
            B, D = self.weighted[:, block], self.masses[:, block]
            if h.ndim == 2:
                self.measure.add_cross(block, slope / K, h, (B, D), G)
            else:
                # A vector loss in the scalar form, for each z: Σ_c ℓ'_c B_jc, 1, Σ_c ℓ'_c h_c.
                summed = np.einsum("sic,jic->sji", slope, B, optimize=True), D
                self.measure.add_cross(block, 1.0 / K, (slope * h).sum(axis=2), summed, G)
            if H is not None and multipliers is not None:
                # One K here and one below: K² would underflow where all masses are tiny.
                W = self.measure.mix(block, multipliers) / K
                bends = self.loss.curvature(*flat).reshape(h.shape)
                for B_c, h_c, first, second in components(B, h, slope, bends):
                    a = B_c - h_c[:, None] * D
                    left = a * (W * second)[:, None] - D * (2.0 * W * first)[:, None]
                    a /= K[:, None]
                    H += left @ a.transpose(0, 2, 1)
        return Sums(L, G, None if H is None else (H + H.transpose(0, 2, 1)) / 2)

    def losses_and_jacobian(self, z: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return L (p,) and its Jacobian G_kj = ∂L_k/∂z_j (p, p); see `evaluate_many`."""
        batch = self.evaluate_many(inputs.vector(z, self.n_sources)[None])
        return batch.losses[0], batch.jacobians[0]

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
        """Σw, Σwd, Σw², Σw²d, Σw²d² of d = ℓ(h_z, y) − ℓ(h_k, y) on own points, w = P_k: (5, p).

        They give the standard error of a source's excess loss, and add up over parts of the points.
        """
        z = inputs.vector(z, self.n_sources)
        moments = np.zeros((5, self.n_sources))
        for k in range(self.n_sources):
            points, w = self.measure.take(k)
            h, y = self.ratio(z, points)[0], self.targets[points]
            d = self.loss.value(h, y) - self.loss.value(self.predictions[k, points], y)
            moments[:, k] = w.sum(), w @ d, w @ w, (w * w) @ d, (w * w) @ (d * d)
        return moments


def components(B: FloatArray, *point: FloatArray) -> Iterator[tuple[FloatArray, ...]]:
    """Split D∘h (p, m, c) and arrays (..., m, c) by class; a scalar loss has one component."""
    if B.ndim == 2:
        yield (B, *point)
        return
    for c in range(B.shape[2]):
        yield (B[:, :, c], *(array[..., c] for array in point))
