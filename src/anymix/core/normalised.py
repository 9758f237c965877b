"""The normalised rule: the prediction h_z(x, y) / Σ_y' h_z(x, y') and its losses."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from anymix._arrays import FloatArray
from anymix.core import inputs
from anymix.core.combination import combine
from anymix.core.losses import Loss
from anymix.core.problem import EvaluatedPoints


class NormalisedRule(EvaluatedPoints):
    """The joint rule at the labels that occurred, divided by its sum over all labels.

    z is learned from the joint rule's `Problem`; this evaluates the normalised predictions.

    Paper: Thm 3.
    """

    log_joint: FloatArray
    proba: FloatArray

    @classmethod
    def of(
        cls,
        log_densities: ArrayLike,
        proba: ArrayLike,
        labels: ArrayLike,
        loss: str | Loss = "cross_entropy",
        eta: float = 1e-3,
        sample_domain: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        totals: ArrayLike | None = None,
    ) -> Self:
        """Build it from log D_k(x) (p, m), probabilities (p, m, c) and labels 0..c−1 (m,).

        The joint density of a source is D_k(x) h_k(x, y).
        """
        log_joint = joint_log_densities(log_densities, proba)
        y = inputs.class_numbers(labels, *log_joint.shape[1:])
        at_label = log_joint[:, np.arange(y.size), y]
        domains = sample_domain, sample_weight
        self = cls.from_log_densities(at_label, proba, y, loss, eta, *domains, totals=totals)
        order = np.arange(y.size) if self._order is None else self._order
        self.log_joint, self.proba = log_joint[:, order], np.asarray(proba, dtype=float)[:, order]
        return self

    def ratio(self, z: FloatArray, block: slice = slice(None)) -> tuple[FloatArray, FloatArray]:
        """Return the normalised h_z at the labels, or at all of them, and K_z.

        Paper: Thm 3.
        """
        joint, K = super().ratio(z, block)
        every = self._joint_rule(z, block)
        total = every.sum(axis=1)
        if joint.ndim == 2:
            return np.asarray(every / total[:, None]), K
        return np.asarray(joint / total), K

    def log_totals(self, z: FloatArray) -> FloatArray:
        """log Σ_y h_z(x, y) of the joint rule at the points, (m,): what normalising costs there.

        Paper: Thm 3.
        """
        return np.asarray(np.log(self._joint_rule(z, slice(None)).sum(axis=1)))

    @property
    def largest_log_total(self) -> float:
        """log min(p, |Y|), which no Σ_y h_z(x, y) exceeds: the weights are ≤ 1 and Σ_y h_k = 1.

        Paper: App. C.
        """
        return float(np.log(min(self.n_sources, self.proba.shape[2])))

    def mass_floor(self) -> float:
        """Return the least D_k(x, y)/U(x, y) over sources, points and labels, U the mean density.

        Paper: Thm 3.
        """
        joint = self._scaled(slice(None))
        return float(self.n_sources * np.exp((joint - logsumexp(joint, axis=0)).min()))

    def disagreement(self) -> float:
        """Return the largest |h_j − h_k| at a point: zero if the densities share one conditional.

        Paper: Thm 3.
        """
        return float(np.ptp(self.proba, axis=0).max())

    def _joint_rule(self, z: FloatArray, block: slice) -> FloatArray:
        """h_z(x, y) for every y, (m, c), not normalised."""
        return combine(self._scaled(block), self.proba[:, block], z, self.eta, rule="joint")

    def _scaled(self, block: slice) -> FloatArray:
        """log D_k(x, y) as the masses have it: the pooled measure scales every source."""
        return np.asarray(self.log_joint[:, block] + self.log_scale[:, None, None])


def joint_log_densities(log_densities: ArrayLike, proba: ArrayLike) -> FloatArray:
    """log D_k(x, y) = log D_k(x) + log h_k(x, y), shape (p, m, c)."""
    h = inputs.finite(proba, "predictions")
    return np.asarray(np.asarray(log_densities, dtype=float)[:, :, None] + np.log(h))
