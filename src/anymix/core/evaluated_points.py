"""p sources at m points with their targets: what h_z loses on each source.

L_k(z) = Σ_i P_k(i) ℓ(h_z(i), y_i)
"""

from __future__ import annotations

from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from anymix._arrays import FloatArray, IntArray, source_numbers
from anymix.core import inputs, simplex
from anymix.core.combination import mass_ratio
from anymix.core.losses import Loss, get_loss
from anymix.core.measures import Measure, OwnMeasure


class EvaluatedPoints:
    """The points, and what is measured there for one z; see `Problem` for the parameters.

    A certificate needs nothing else.  A subclass may predict in another way than by J_z/K_z
    (`ratio`); what can be solved for z is a `Problem`, which has derivatives, too.
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
        part = isinstance(weights, OwnMeasure) and weights.part
        self.masses = np.ascontiguousarray(inputs.mass_table(masses, "masses", part))
        h, self.targets = inputs.outcomes(predictions, targets, self.loss, self.masses.shape)
        self.predictions = np.ascontiguousarray(h)
        self.reference = inputs.reference_measure(reference, self.masses)
        self.pooled = weights is None
        self.measure = inputs.measure(self.masses if weights is None else weights, self.masses)
        self.log_scale = np.zeros(self.n_sources)
        self._order: IntArray | None = None
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
        *,
        totals: ArrayLike | None = None,
    ) -> Self:
        """Build the problem from log-densities (p, m), or log-responsibilities, of any magnitude.

        sample_domain (m,), the source 0..p−1 that each point was drawn from, gives the own measure
        P_k = 1/n_k on source k's points.  Without it the points are taken as an equal pool of all
        sources and D_k(i) = p r_k(i)/m, normalised: the pooled measure.  `log_scale` then holds the
        logarithm of that normalisation, to be added to log-densities at new points.

        totals (p,) says that the points are a part of all: P_k = 1/totals_k, a source may have no
        point here, and the sums over all parts are those of one problem.

        Paper: Eq. 1, Eq. 2.
        """
        r = inputs.responsibilities(log_densities)
        if sample_domain is None:
            if totals is not None:
                raise ValueError("totals are for points with a sample_domain.")
            return cls._pooled(r, predictions, targets, loss, eta, sample_weight)
        p, m = r.shape
        domain = source_numbers(sample_domain, p, m, least=int(totals is None))
        order = np.argsort(domain, kind="stable")
        # Checked before they are sorted, so that complaints name the points as the user does.
        h, y = inputs.outcomes(predictions, targets, get_loss(loss), (p, m))
        measure = inputs.own_measure(domain, p, sample_weight, order, totals)
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
    ) -> Self:
        if sample_weight is not None:
            r = r * inputs.sample_weights(sample_weight, r.shape[1])
        total = inputs.mass_table(r, "log_densities").sum(axis=1, keepdims=True)
        self = cls(r / total, predictions, targets, loss, eta)
        self.log_scale = -np.log(total[:, 0] / total.mean())
        return self

    @property
    def n_sources(self) -> int:
        """p."""
        return int(self.masses.shape[0])

    @property
    def n_points(self) -> int:
        """m."""
        return int(self.masses.shape[1])

    def ratio(self, z: FloatArray, block: slice = slice(None)) -> tuple[FloatArray, FloatArray]:
        """Return h_z = J_z/K_z and K_z on a block of points, in the problem's own order.

        Paper: Eq. 1, Eq. 2.
        """
        tables = self.masses[:, block], self._B[:, block]
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
        """What tells the points apart, whatever the rule and η: targets and predictions, (m, q)."""
        y = self.targets.reshape(self.n_points, -1)
        said = np.moveaxis(self.predictions, 1, 0).reshape(self.n_points, -1)
        return np.concatenate([y, said], axis=1)

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
        """ε_k = L(D_k, h_k): each source's own predictor at home, shape (p,)."""
        homes = map(self.measure.take, range(self.n_sources))
        pairs = zip(self.predictions, homes, strict=True)
        return np.array([w @ self.loss.value(h[i], self.targets[i]) for h, (i, w) in pairs])

    def cross_losses(self) -> tuple[FloatArray, FloatArray]:
        """L(D_j, h_k), each source's predictor k on each source j, and its standard error: (p, p).

        With weights w of sum 1 the error of Σ w ℓ is √(n/(n−1) Σ w² (ℓ − mean)²), n = 1/Σ w²: for
        equal weights the standard deviation over √n.
        """
        losses = np.stack([self.loss.value(h, self.targets) for h in self.predictions])
        mean, error = np.empty((2, self.n_sources, self.n_sources))
        for j in range(self.n_sources):
            points, w = self.measure.take(j)
            mean[:, j] = losses[:, points] @ w
            spread = losses[:, points] - mean[:, j : j + 1]
            n = 1.0 / float(w @ w)
            error[:, j] = np.sqrt(n / max(n - 1.0, 1.0) * ((w * spread) ** 2).sum(axis=1))
        return mean, error

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
        """max_k (L_k(z) − ε_k): the most that h_z loses to a source's own predictor at home."""
        return float((self.source_losses(z) - self.own_losses).max())


def gap(losses: FloatArray, z: FloatArray) -> float:
    """max_k L_k − Σ_k z_k L_k.

    Paper: Eq. 4.
    """
    return max(0.0, float(losses.max() - z @ losses))
