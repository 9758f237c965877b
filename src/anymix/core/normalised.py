"""The normalised rule: what is predicted is h_z(x, y) / Σ_y' h_z(x, y'), and that is judged."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from anymix._arrays import FloatArray
from anymix.core import inputs
from anymix.core.combination import combine
from anymix.core.judgement import Judgement
from anymix.core.losses import Loss


class NormalisedRule(Judgement):
    """The joint rule at the labels that occurred, divided by its sum over all labels.

    z is learned from the joint rule's `Problem`; this judges what is then predicted.

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
    ) -> Self:
        """Build it from log D_k(x) (p, m), probabilities (p, m, c) and labels 0..c−1 (m,).

        The joint density of a source is D_k(x) h_k(x, y).
        """
        log_joint = joint_log_densities(log_densities, proba)
        y = inputs.class_numbers(labels, *log_joint.shape[1:])
        at_label = log_joint[:, np.arange(y.size), y]
        self = cls.from_log_densities(at_label, proba, y, loss, eta, sample_domain, sample_weight)
        order = np.arange(y.size) if self._order is None else self._order
        self.log_joint, self.proba = log_joint[:, order], np.asarray(proba, dtype=float)[:, order]
        return self

    def ratio(self, z: FloatArray, block: slice = slice(None)) -> tuple[FloatArray, FloatArray]:
        """Return the normalised h_z at the labels, and K_z.

        Paper: Thm 3.
        """
        joint, K = super().ratio(z, block)
        log_d, h = self.log_joint[:, block], self.proba[:, block]
        total = combine(log_d, h, z, self.eta, rule="joint").sum(axis=1)
        return np.asarray(joint / total), K


def joint_log_densities(log_densities: ArrayLike, proba: ArrayLike) -> FloatArray:
    """log D_k(x, y) = log D_k(x) + log h_k(x, y), shape (p, m, c)."""
    h = inputs.finite(proba, "predictions")
    return np.asarray(np.asarray(log_densities, dtype=float)[:, :, None] + np.log(h))
