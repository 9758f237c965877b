"""How far is a point from all sources?  A score in [0, 1] that no unit of density can move."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from anymix.core.simplex import FloatArray
from anymix.monitor._inputs import domains, log_table


def tail_probabilities(scores: FloatArray, own: FloatArray) -> FloatArray:
    """How often would a source's own row score as low?  `own` (n_k,) are scores of held-out rows.

    p(s) = (1 + #{own ≤ s}) / (n_k + 1), and below the lowest own score the exponential tail
    p(s) = exp((s − min own) / b) / (n_k + 1), with b the mean distance of the lower half from the
    median: it orders the points that lie beyond all rows.

    Examples
    --------
    >>> tail_probabilities(np.array([-9.0, 1.0, 9.0]), np.array([0.0, 1.0, 2.0])).round(3)
    array([0.  , 0.75, 1.  ])
    """
    own = np.sort(own)
    n = len(own)
    p = (1.0 + np.searchsorted(own, scores, side="right")) / (n + 1.0)
    lowest, below = own[0], scores < own[0]
    if np.isfinite(lowest):
        spread = float(np.mean(np.median(own) - own[: (n + 1) // 2]))
        with np.errstate(divide="ignore"):
            depth = np.divide(lowest - scores[below], spread)
        p[below] = np.exp(-depth) / (n + 1.0)
    return np.asarray(p)


def novelty_scores(
    log_densities: ArrayLike, reference_log_densities: ArrayLike, sample_domain: ArrayLike
) -> FloatArray:
    """Return 1 − max_k p_k(x): near 1 where x is unlikely for every source.

    p_k(x) is the share of source k's own held-out rows whose density under k is no higher than
    that of x.  A row drawn from any source, hence from any mixture of them, has
    P(novelty > 1 − α) ≤ α for α ≥ 1/(n_k + 1), whatever the densities are worth.  Only the order
    of each source's own log-densities counts (and, beyond the lowest, their ratios of distances):
    a factor in a density, as from other units, or a temperature changes nothing.

    Parameters
    ----------
    log_densities : array (p, n)
        log D_k(x_i) of the points; −inf where a source says impossible.
    reference_log_densities : array (p, m)
        The same for held-out rows of the sources, on which no density was trained.
    sample_domain : array (m,)
        The source 0..p−1 of each held-out row.

    Returns
    -------
    array (n,)
        Scores in [0, 1].

    Examples
    --------
    Two sources around 0 and 10, the second in other units; 5 lies between them.

    >>> rng = np.random.default_rng(0)
    >>> domain = np.repeat([0, 1], 99)
    >>> rows = rng.normal(10.0 * domain)
    >>> def log_d(x):
    ...     return np.stack([-(x**2) / 2, 1000.0 - (x - 10.0) ** 2 / 2])
    >>> novelty_scores(log_d(np.array([0.0, 10.0, 5.0])), log_d(rows), domain).round(2)
    array([0., 0., 1.])
    """
    reference = log_table(reference_log_densities, "reference_log_densities")
    p, m = reference.shape
    table = log_table(log_densities, "log_densities", p)
    domain = domains(sample_domain, p, m)
    best = np.zeros(table.shape[1])
    for k in range(p):
        np.maximum(best, tail_probabilities(table[k], reference[k, domain == k]), out=best)
    return 1.0 - best
