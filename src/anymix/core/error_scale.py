"""What errors are measured by before they are compared: their usual size at x, and a tilt.

Both decide how large sets are, never whether they cover: see `anymix.core.conformal`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anymix._arrays import FloatArray, IntArray
from anymix.core.records import Record

# Tilts that are tried, in units of the usual error; 0 is the plain largest p-value.
TILTS = (0.0, 0.03, 0.1, 0.3)
# So many rows of the usual error stand behind that of each source, lest few rows decide it.
PRIOR_ROWS = 10.0
# Below it a source has nothing to do with a point.
LEAST_LOG = -700.0
# 1 − 0.9 times 20 is to be 2: the α that is kept is larger by less than this over n + 1.
ROUNDING = 1e-9


def fewest(alpha: float) -> int:
    """How many rows a source needs, n ≥ 1/α − 1, so that its p-value can be α or less.

    >>> fewest(0.1), fewest(0.05), fewest(1 - 0.9)
    (9, 19, 9)
    """
    return int(np.ceil(1 / (alpha + ROUNDING / 2) - 1 - ROUNDING))


def least_count(n: int, alpha: float) -> int:
    """How many of n rows must be as strange as y, so that p > α: 1 + c > α (n + 1).

    >>> least_count(19, 0.1), least_count(8, 0.1)
    (2, 0)
    """
    return int(np.floor(alpha * (n + 1) + ROUNDING))


def errors_at(h: FloatArray, y: FloatArray | IntArray) -> FloatArray:
    """|y − h(x)| of numbers h (n,), 1 − h(x, y) of probabilities h (n, c): (n,).

    >>> errors_at(np.array([1.0]), np.array([3.0])), errors_at(np.array([[0.5, 0.5]]), [1])
    (array([2.]), array([0.5]))
    """
    if h.ndim == 1:
        return np.abs(np.asarray(y, dtype=float) - h)
    return np.asarray(1.0 - h[np.arange(len(h)), np.asarray(y, dtype=np.intp)])


@dataclass(frozen=True, eq=False)
class ErrorScale(Record):
    """What errors are measured by: σ(x) = Σ_k r_k(x) σ_k, and the tilt a.

    Attributes
    ----------
    spread : array (p,)
        σ_k > 0.
    tilt : float
        a ≥ 0.
    """

    spread: FloatArray
    tilt: float = 0.0

    def scale(self, log_r: FloatArray) -> FloatArray:
        """σ(x) from log r_k, (p, n): (n,)."""
        return np.asarray(self.spread @ np.exp(log_r))

    def pull(self, log_r: FloatArray) -> FloatArray:
        """a log r_k(x), (p, n) or (n,): what a source's limit at x is lowered by."""
        return np.asarray(self.tilt * np.maximum(log_r, LEAST_LOG))

    def scores(self, errors: FloatArray, log_r: FloatArray, domain: IntArray) -> FloatArray:
        """s_k(x_i, y_i) of rows, each for its own source k, (n,)."""
        own = log_r[domain, np.arange(domain.size)]
        return np.asarray(errors / self.scale(log_r) - self.pull(own))


def learn_yardstick(
    errors: FloatArray,
    log_r: FloatArray,
    domain: IntArray,
    alpha: float,
    labels: FloatArray | None = None,
) -> ErrorScale:
    """Learn σ_k, the mean error that x tells of, and the tilt that makes sets smallest.

    σ_k = (n₀ ē + Σ_i r_k(x_i) e_i) / (n₀ + Σ_i r_k(x_i)), ē being the mean error.  Errors of labels
    lie between 0 and 1 already: there σ is ē for all, and `labels` (n, c) are those of all labels.

    Examples
    --------
    >>> errors = np.array([1.0, 1.0, 3.0, 3.0])
    >>> log_r = np.log([[0.99, 0.99, 0.01, 0.01], [0.01, 0.01, 0.99, 0.99]])
    >>> learn_yardstick(errors, log_r, np.array([0, 0, 1, 1]), 0.1).spread.round(2)
    array([1.84, 2.16])
    """
    p, mean = len(log_r), float(errors.mean())
    spread = np.full(p, mean if mean > 0 else 1.0)
    if labels is None and mean > 0:
        r = np.exp(log_r)
        spread = (PRIOR_ROWS * mean + r @ errors) / (PRIOR_ROWS + r.sum(axis=1))
    tried = [ErrorScale(spread, tilt) for tilt in TILTS]
    if labels is not None and labels.shape[1] == 1:
        return tried[0]  # of the label alone nobody knows how large a set would be
    sizes = [_mean_size(one, errors, log_r, domain, alpha, labels) for one in tried]
    return tried[int(np.argmin(sizes))]


def _mean_size(
    by: ErrorScale,
    errors: FloatArray,
    log_r: FloatArray,
    domain: IntArray,
    alpha: float,
    labels: FloatArray | None,
) -> float:
    """The mean size of sets at rows, sources counting equally, that these rows would give."""
    own, limits = by.scores(errors, log_r, domain), []
    for k in range(len(log_r)):
        known = own[domain == k]
        limits.append(nth_largest(known, max(least_count(known.size, alpha), 1)))
    limit = (np.array(limits)[:, None] + by.pull(log_r)).max(axis=0) * by.scale(log_r)
    size = np.maximum(limit, 0.0) if labels is None else (labels <= limit[:, None]).sum(axis=1)
    return float(np.mean([size[domain == k].mean() for k in np.unique(domain)]))


def nth_largest(values: FloatArray, n: int) -> float:
    """Return infinity where there are fewer than n values."""
    return float(np.partition(values, -n)[-n]) if values.size >= n else np.inf
