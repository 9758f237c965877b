"""Each source's model on each domain: who is good where, with intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from anymix.core.losses import Loss
from anymix.core.records import Record
from anymix.core.simplex import FloatArray
from anymix.sources import Tables


@dataclass(frozen=True)
class CrossLoss(Record):
    """mean[k, j] is the loss of source k's model on domain j; lower and upper bound it."""

    names: tuple[str, ...]
    mean: FloatArray
    lower: FloatArray
    upper: FloatArray
    confidence: float


def cross_loss(
    tables: Tables, loss: str | Loss, names: NDArray[np.str_], confidence: float
) -> CrossLoss:
    """Average the sources' losses over the held-out rows of each domain; normal intervals."""
    losses, p = tables.point_losses(loss), len(names)
    assert tables.sample_domain is not None
    weight = np.ones(tables.n_points) if tables.sample_weight is None else tables.sample_weight
    mean, error = np.empty((p, p)), np.empty((p, p))
    for j in range(p):
        on = tables.sample_domain == j
        w = weight[on] / weight[on].sum()
        mean[:, j] = losses[:, on] @ w
        error[:, j] = np.sqrt(((w * (losses[:, on] - mean[:, j : j + 1])) ** 2).sum(axis=1))
    width = float(norm.ppf(0.5 + confidence / 2)) * error
    return CrossLoss(tuple(map(str, names)), mean, mean - width, mean + width, confidence)
