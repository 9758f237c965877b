"""One column of all sites: the mixture Σ_s w_s M_s of what each of them says about it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anymix._arrays import FloatArray
from anymix.densities._marginals import Marginal

# In place of zero, for what was never seen: novelty compares logarithms.
LEAST_SHARE = 1e-9


def pooled_sample(
    parts: Sequence[Marginal], weights: FloatArray, n: int, rng: np.random.RandomState
) -> FloatArray:
    """Draw from Σ_s w_s M_s, (n,).

    Examples
    --------
    >>> parts = [Marginal(values=(1.0,), shares=(1.0,)), Marginal(gaps=1.0)]
    >>> pooled_sample(parts, np.array([0.5, 0.5]), 4, np.random.RandomState(0)).tolist()
    [nan, nan, nan, nan]
    """
    chosen = rng.choice(len(parts), n, p=weights)
    drawn = np.empty(n)
    for s, part in enumerate(parts):
        mine = chosen == s
        drawn[mine] = part.sample(int(mine.sum()), rng)
    return drawn


def pooled_log_density(parts: Sequence[Marginal], weights: FloatArray, x: FloatArray) -> FloatArray:
    """Logarithm of Σ_s w_s M_s(x), (n,): shares of gaps and atoms, a density elsewhere.

    What no part has ever seen counts with the share 1e-9 in place of none.

    Examples
    --------
    >>> part = Marginal(gaps=0.25, values=(1.0,), shares=(0.75,))
    >>> np.exp(pooled_log_density([part], np.ones(1), np.array([1.0, np.nan]))).round(2).tolist()
    [0.75, 0.25]
    """
    missing = np.isnan(x)
    at = np.where(missing, 0.0, x)
    values, shares = atoms_of(parts, weights)
    place = np.searchsorted(values, at)
    met = np.append(values, np.nan)[place] == at
    with np.errstate(divide="ignore"):
        logs = [np.log(w) + m.log_body_density(at) for w, m in zip(weights, parts, strict=True)]
        spread = np.logaddexp.reduce(logs, axis=0)
        atoms = np.log(np.append(shares, 0.0))[place]
        gap = np.log(gap_share(parts, weights))
    found = np.where(missing, gap, np.where(met, atoms, spread))
    # A body says itself how unlikely a far number is.
    unseen = missing | met | (not any(part.body for part in parts))
    return np.where(unseen, np.maximum(found, np.log(LEAST_SHARE)), found)


def atoms_of(parts: Sequence[Marginal], weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Values that are atoms of any part, sorted, and their shares in all, both (a,)."""
    values = np.concatenate([np.array(part.values) for part in parts])
    shares = np.concatenate([w * np.array(m.shares) for w, m in zip(weights, parts, strict=True)])
    distinct, place = np.unique(values, return_inverse=True)
    return distinct, np.asarray(np.bincount(place, shares, minlength=len(distinct)), dtype=float)


def gap_share(parts: Sequence[Marginal], weights: FloatArray) -> float:
    """Σ_s w_s gaps_s."""
    return float(weights @ np.array([part.gaps for part in parts]))


def centre_and_scale(parts: Sequence[Marginal], weights: FloatArray) -> tuple[float, float]:
    """Median and standard deviation of the numbers; 0 and 1 where there are none.

    A column of one number has the scale 1.

    Examples
    --------
    >>> part = Marginal(values=(1.0, 3.0, 5.0), shares=(0.25, 0.5, 0.25))
    >>> median, scale = centre_and_scale([part], np.ones(1))
    >>> median, round(scale, 3)
    (3.0, 1.414)
    """
    found = [part.points() for part in parts]
    values = np.concatenate([v for v, _ in found])
    shares = np.concatenate([w * s for w, (_, s) in zip(weights, found, strict=True)])
    if not shares.sum() > 0:
        return 0.0, 1.0
    order, shares = np.argsort(values, kind="stable"), shares / shares.sum()
    middle = int(np.searchsorted(np.cumsum(shares[order]), 0.5))
    median = float(values[order][min(middle, len(values) - 1)])
    scale = float(np.sqrt(shares @ (values - shares @ values) ** 2))
    return median, scale if scale > 1e-12 * max(abs(median), 1e-100) else 1.0
