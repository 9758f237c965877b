"""Losses of each source's model on each domain, with intervals."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from scipy.stats import norm

from anymix._arrays import FloatArray
from anymix.core import Loss, Record, get_loss, loss_name, unit_of
from anymix.sources.text_tables import lay_out, number


@dataclass(frozen=True)
class CrossLoss(Record):
    """mean[k, j] is the loss of source k's model on domain j; lower and upper bound it.

    Examples
    --------
    >>> import numpy as np
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
    measure: str = ""

    def __str__(self) -> str:
        half = (self.upper - self.lower) / 2
        cells = [
            [f"{number(m, 4)} ± {number(h, 4)}" for m, h in zip(*row, strict=True)]
            for row in zip(self.mean, half, strict=True)
        ]
        unit = f": {unit_of(self.measure).head}" if self.measure else ""
        return (
            f"{lay_out(self.names, self.names, cells)}\n(loss of each source's model, by row, on "
            f"the rows of each source, by column{unit}; ±: {100 * self.confidence:g} % intervals)"
        )


def make_cross_loss(
    mean: FloatArray,
    error: FloatArray,
    names: Iterable[object],
    confidence: float,
    loss: str | Loss,
) -> CrossLoss:
    """Name the sources of means (p, p), and turn standard errors into normal intervals."""
    width, measure = float(norm.ppf(0.5 + confidence / 2)) * error, loss_name(get_loss(loss))
    ends = mean - width, mean + width
    return CrossLoss(tuple(map(str, names)), mean, *ends, confidence, measure)
