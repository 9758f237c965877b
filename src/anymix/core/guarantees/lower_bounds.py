"""What no normalised rule can avoid where the sources' conditionals differ."""

from __future__ import annotations

import numpy as np

from anymix.core import inputs
from anymix.core.normalised import NormalisedRule


def one_input_example(p: int, eta: float = 1e-3, floor: float = 1e-12) -> NormalisedRule:
    """Return p sources on one input x, each with a label of its own and sure of it.

    D_k sits on (x, y_k) and h_k(x, y) = 1 for y = y_k, so that every ε_k = 0 and the joint rule,
    not normalised, pays nothing either.  But Σ_k h̄(x, y_k) = 1 for whatever is normalised, so some
    h̄(x, y_k) ≤ 1/p and

        max_k L(D_k, h̄) ≥ log p   for every z and η,   with equality as η → 0,

    which is what an average pays in Lemma 8.  It is also the most that normalising costs: see
    `NormalisedRule.largest_log_total`.

    Parameters
    ----------
    p : int
        Number of sources, and of labels.
    eta : float
        η.
    floor : float
        What stands for the probabilities of zero, which the cross-entropy forbids.

    Examples
    --------
    >>> example = one_input_example(3)
    >>> example.own_losses.round(9), bool(example.robust_loss([0.2, 0.3, 0.5]) > np.log(3))
    (array([0., 0., 0.]), True)

    Paper: App. C.
    """
    floor = inputs.positive(floor, "floor")
    if p < 2 or floor > 1 / p:
        raise ValueError(f"p must be 2 or more and floor at most 1/p; got {p} and {floor:g}.")
    sure = np.full((p, p), floor) + (1 - p * floor) * np.eye(p)
    proba = np.repeat(sure[:, None, :], p, axis=1)
    labels = np.arange(p)
    return NormalisedRule.of(np.zeros((p, p)), proba, labels, eta=eta, sample_domain=labels)
