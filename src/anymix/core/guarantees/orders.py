"""Hölder's bound at the best order α: it holds for every α > 1 at once, so take the least.

With t = 1/α the logarithm of the bound is (1 − t)(log L + D_α) + t log M, and

    (1 − t) D_{1/t}(P ‖ Q) = t log Σ P (P/Q)^((1−t)/t)

is the perspective of the cumulant function of log P/Q at (1 − t, t): convex in t, so that there is
one valley between t = 0 (α = ∞, the largest ratio) and t = 1 (α = 1, where the bound is M).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar

from anymix.core.guarantees.bounds import hoelder

# Of 1/α.  The least over mixtures of a convex function need not be convex, so that a coarse
# search comes first.
GRID = np.linspace(0.0, 0.96, 17)
# Beyond α = 200 divergences differ from the largest ratio by less than they can be computed to.
LEAST = 0.005

Divergence = Callable[[float], ArrayLike] | Mapping[float, ArrayLike]


class BestOrder(NamedTuple):
    """α, the divergence d_α there, and the bound."""

    alpha: float
    divergence: float
    value: float


def best_hoelder(loss: float, divergence: Divergence, loss_bound: float) -> BestOrder:
    """min over α from 1.04 to 200, and infinity, of [d_α L]^((α−1)/α) M^(1/α).

    Parameters
    ----------
    loss : float
        L ≥ 0, the loss on the distribution that is started from: max_k L_k(z), or ε + ηM + γ.
    divergence : function of α, or dict {α: d_α}
        d_α, or the d_α of each source; of a dict the best entry is taken.  With upper confidence
        bounds on d_α use a dict, and share their error probability among its entries.
    loss_bound : float
        M, a bound on the loss.

    Returns
    -------
    BestOrder
        Pass `alpha` and `divergence` on as
        ``Assumptions(alpha=best.alpha, target_divergence=best.divergence)``.

    Examples
    --------
    A target with a tenth of its mass where the sources have next to none:

    >>> from anymix.core import nearest_mixture
    >>> target, sources = [0.6, 0.3, 0.1], [[0.7, 0.3, 0.0001], [0.5, 0.4, 0.01]]
    >>> def divergence(alpha):
    ...     return nearest_mixture(target, sources, alpha).value
    >>> best = best_hoelder(0.1, divergence, loss_bound=2.0)
    >>> from anymix.core.guarantees import hoelder
    >>> [round(hoelder(0.1, divergence(a), a, 2.0), 3) for a in (2.0, best.alpha, np.inf)]
    [0.595, 0.553, 0.91]

    Paper: Cor. 10.
    """
    if not (loss >= 0 and np.isfinite(loss) and 0 < loss_bound < np.inf):
        raise ValueError(f"loss must be ≥ 0 and loss_bound > 0; got {loss} and {loss_bound}.")
    if isinstance(divergence, Mapping):
        return _best_entry(loss, divergence, loss_bound)

    def at(t: float) -> BestOrder:
        alpha = np.inf if t <= 0 else 1.0 / float(t)
        d = float(np.max(np.asarray(divergence(alpha), dtype=float)))
        return BestOrder(alpha, d, hoelder(loss, d, alpha, loss_bound))

    values = [at(t).value for t in GRID]
    i = int(np.argmin(values))
    around = max(GRID[max(i - 1, 0)], LEAST), GRID[min(i + 1, GRID.size - 1)]
    found = minimize_scalar(lambda t: at(t).value, bounds=around, method="bounded")
    return min(at(float(found.x)), at(GRID[i]), key=lambda best: best.value)


def _best_entry(loss: float, table: Mapping[float, ArrayLike], M: float) -> BestOrder:
    if not table or min(table) <= 1:
        raise ValueError(f"divergence needs orders above 1; got {sorted(table)}.")
    largest = {alpha: float(np.max(np.asarray(d, dtype=float))) for alpha, d in table.items()}
    found = [BestOrder(float(a), d, hoelder(loss, d, a, M)) for a, d in largest.items()]
    return min(found, key=lambda best: best.value)
