"""Novelty: how unlike all sources a point is, in [0, 1], independent of density units."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from anymix._arrays import FloatArray, source_numbers
from anymix.sources import Novelty


def novelty_scores(
    log_densities: ArrayLike, reference_log_densities: ArrayLike, sample_domain: ArrayLike
) -> FloatArray:
    """Return 1 − max_k p_k(x): near 1 where x is unlikely for every source.

    p_k(x) is the share of source k's own held-out rows whose density under k is no higher than
    that of x.  A row drawn from any source, hence from any mixture of them, has
    P(novelty > 1 − α) ≤ α for α ≥ 1/(n_k + 1), whatever the densities.  Only the order
    of each source's own log-densities counts (and, beyond the lowest, their ratios of distances):
    a factor in a density, as from other units, or a temperature changes nothing.

    Parameters
    ----------
    log_densities : array (p, n)
        log D_k(x_i) of the points; −inf for a density of zero.
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

    >>> import numpy as np
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
    domain = source_numbers(sample_domain, p, m, least=2)
    return Novelty(tuple(reference[k, domain == k] for k in range(p))).score(table)


def log_table(values: ArrayLike, name: str, n_sources: int | None = None) -> FloatArray:
    """Return a (p, n) table of logarithms: −inf is allowed, NaN and +inf are not."""
    table = np.asarray(values, dtype=float)
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(
            f"{name} has shape {table.shape}; it must be (p, n), one row for each source and one "
            "column for each point, neither empty."
        )
    if n_sources is not None and len(table) != n_sources:
        raise ValueError(
            f"{name} has {len(table)} rows, but the other table has {n_sources}: give one row for "
            "each source in both."
        )
    if np.isnan(table).any() or np.isposinf(table).any():
        raise ValueError(f"{name} must not be NaN or +inf; logarithms of densities are finite.")
    return table


def shares(values: ArrayLike, name: str, n_sources: int | None = None) -> FloatArray:
    """Return responsibilities r (p, n) from their logarithms; each column sums to 1."""
    log_r = log_table(values, name, n_sources)
    with np.errstate(over="ignore"):  # what is so large does not sum to 1
        r = np.exp(log_r)
    off = np.abs(r.sum(axis=0) - 1.0)
    if not off.max() < 1e-6:
        raise ValueError(
            f"{name} must hold log-responsibilities, whose exponentials sum to 1 in each column; "
            f"column {int(off.argmax())} does not: subtract its logsumexp first."
        )
    return np.asarray(r)
