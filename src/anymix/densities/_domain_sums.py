"""Which source do points come from, and how sure is that?  Sums over points, and their report.

All that a calibration asks of held-out points is additive (`DomainSums`), so that the points may
lie in parts: each part answers for its own, beside numbers that are of all (`AllPoints`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

import numpy as np
from scipy.special import log_softmax

from anymix._arrays import FloatArray, IntArray
from anymix.densities._domain_likelihood import (
    doubted_targets,
    floored_responsibilities,
    likelihood,
)

N_BINS = 15


@dataclass(frozen=True)
class CalibrationReport:
    """Domain log-loss (nats) and expected calibration error, before and after, equal sources."""

    n_points: int
    log_loss_before: float
    log_loss_after: float
    error_before: float
    error_after: float

    @classmethod
    def of(cls, n_points: int, tally: FloatArray) -> Self:
        """Make a report of what points, or parts of them, have tallied; see `DomainRows.tally`."""
        before, after = np.split(tally[1:] / tally[0], 2)
        gaps = np.abs(before[1:]).sum(), np.abs(after[1:]).sum()
        return cls(n_points, float(before[0]), float(after[0]), *map(float, gaps))


def domain_log_loss(log_r: FloatArray, sample_domain: IntArray, weight: FloatArray) -> float:
    """Return -Σ_i w_i log r_{d_i}(x_i) / Σ_i w_i.

    Examples
    --------
    >>> log_r = np.log([[0.5, 0.2], [0.5, 0.8]])
    >>> round(domain_log_loss(log_r, np.array([0, 1]), np.ones(2)), 4)
    0.4581
    """
    own = log_r[sample_domain, np.arange(len(sample_domain))]
    return float(-np.average(own, weights=weight))


def calibration_error(
    log_r: FloatArray, sample_domain: IntArray, weight: FloatArray, n_bins: int = N_BINS
) -> float:
    """Return the expected calibration error: the mean gap between confidence and accuracy.

    Points are put into bins of equal width by the responsibility of their likeliest source;
    error = Σ_bins |Σ_{i in bin} w_i (1[right] - confidence)| / Σ_i w_i.

    Examples
    --------
    >>> log_r = np.log([[0.9, 0.9], [0.1, 0.1]])
    >>> round(calibration_error(log_r, np.array([0, 1]), np.ones(2)), 4)
    0.4
    """
    return float(np.abs(binned_gaps(log_r, sample_domain, weight, n_bins)).sum() / weight.sum())


def binned_gaps(
    log_r: FloatArray, sample_domain: IntArray, weight: FloatArray, n_bins: int = N_BINS
) -> FloatArray:
    """Σ_{i in bin} w_i (1[right] - confidence) of each bin, which add up over parts of the points.

    Examples
    --------
    >>> log_r = np.log([[0.9, 0.9], [0.1, 0.1]])
    >>> binned_gaps(log_r, np.array([0, 1]), np.ones(2), 2).round(2)
    array([ 0. , -0.8])
    """
    confidence = np.exp(log_r.max(axis=0))
    gap = weight * ((log_r.argmax(axis=0) == sample_domain) - confidence)
    bins = np.minimum((confidence * n_bins).astype(np.intp), n_bins - 1)
    return np.asarray(np.bincount(bins, weights=gap, minlength=n_bins), dtype=float)


def balanced_weights(
    sample_domain: IntArray,
    weight: FloatArray,
    n_sources: int,
    totals: FloatArray | None = None,
    n_points: float | None = None,
) -> FloatArray:
    """Rescale positive weights so that each source has the same total and their mean is 1.

    Where the points are but a part of all, totals (p,) are the sums of all weights of each source,
    and n_points is how many there are.

    Examples
    --------
    >>> balanced_weights(np.array([0, 0, 0, 1]), np.ones(4), 2).round(2)
    array([0.67, 0.67, 0.67, 2.  ])
    """
    here = np.bincount(sample_domain, weights=weight, minlength=n_sources)
    total = np.asarray(here if totals is None else totals, dtype=float)
    n = len(weight) if n_points is None else n_points
    if not total.all():
        missing = np.flatnonzero(total == 0).tolist()
        raise ValueError(
            f"No held-out point of source(s) {missing} has a positive weight: calibration needs "
            "at least one of every source; give held-out points or leave the source out."
        )
    balanced: FloatArray = weight * n / (n_sources * total[sample_domain])
    return balanced


class AllPoints(NamedTuple):
    """What a part of the points must know of all: points and weights of each source, the floor.

    counts and totals are (p,), of points with a positive weight.
    """

    counts: FloatArray
    totals: FloatArray
    floor: float


class DomainSums(Protocol):
    """What a calibration asks of points, wherever they are."""

    @property
    def n_sources(self) -> int:
        """p."""

    @property
    def n_points(self) -> int:
        """m, of points with a positive weight."""

    @property
    def floor(self) -> float:
        """The lowest log-responsibility that counts."""

    def likelihood(self, theta: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Value, gradient and Hessian at theta = (a, b), (2p,)."""

    def tally(self, temperature: FloatArray, offset: FloatArray) -> FloatArray:
        """What a report is made of: see `DomainRows.tally`."""


class DomainRows:
    """Points at hand: log-responsibilities, the source of each, weights; perhaps a part of all.

    table (p, m) holds log-densities, domain (m,) sources 0..p-1, weight (m,) is positive.
    """

    def __init__(
        self,
        table: FloatArray,
        domain: IntArray,
        weight: FloatArray,
        doubt: float,
        all_points: AllPoints | None = None,
    ):
        counts, totals, floor = (None, None, None) if all_points is None else all_points
        p = len(table)
        n = None if counts is None else float(counts.sum())
        self.domain, self.n_sources, self.n_points = domain, p, len(domain)
        self.weight = balanced_weights(domain, weight, p, totals, n)
        self.log_r, self.floor = floored_responsibilities(table, floor)
        self.targets = doubted_targets(domain, p, doubt, counts)

    def likelihood(self, theta: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Value, gradient and Hessian of the domain likelihood at theta = (a, b), (2p,)."""
        return likelihood(theta, self.log_r, self.targets, self.weight)

    def tally(self, temperature: FloatArray, offset: FloatArray) -> FloatArray:
        """Σ w, then -Σ w log r and the gaps of 15 bins, before and after: (33,)."""
        after = calibrated(self.log_r, temperature, offset)
        found = [np.array([self.weight.sum()])]
        for log_r in (self.log_r, after):
            own = log_r[self.domain, np.arange(self.n_points)]
            found += [
                np.array([-(self.weight @ own)]),
                binned_gaps(log_r, self.domain, self.weight),
            ]
        return np.concatenate(found)


def calibrated(log_r: FloatArray, temperature: FloatArray, offset: FloatArray) -> FloatArray:
    """log q_k from floored log r_k, both (p, m)."""
    log_q: FloatArray = log_softmax(log_r / temperature[:, None] + offset[:, None], axis=0)
    return log_q
