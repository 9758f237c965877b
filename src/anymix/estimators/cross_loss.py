"""Each source's model on each domain: who is good where, with intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from anymix._arrays import FloatArray
from anymix.core import Loss, Record
from anymix.estimators._format import lay_out, number
from anymix.sources import Tables


@dataclass(frozen=True)
class CrossLoss(Record):
    """mean[k, j] is the loss of source k's model on domain j; lower and upper bound it.

    Examples
    --------
    >>> mean = np.array([[0.1, 0.9], [0.8, 0.2]])
    >>> print(CrossLoss(("north", "south"), mean, mean - 0.05, mean + 0.05, 0.95))
                     north            south
    north  0.1000 ± 0.0500  0.9000 ± 0.0500
    south  0.8000 ± 0.0500  0.2000 ± 0.0500
    (loss of each source's model, by row, on the rows of each source, by column; ±: 95 % intervals)
    """

    names: tuple[str, ...]
    mean: FloatArray
    lower: FloatArray
    upper: FloatArray
    confidence: float

    def __str__(self) -> str:
        half = (self.upper - self.lower) / 2
        cells = [
            [f"{number(m, 4)} ± {number(h, 4)}" for m, h in zip(*row, strict=True)]
            for row in zip(self.mean, half, strict=True)
        ]
        return (
            f"{lay_out(self.names, self.names, cells)}\n(loss of each source's model, by row, on "
            f"the rows of each source, by column; ±: {100 * self.confidence:g} % intervals)"
        )


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
