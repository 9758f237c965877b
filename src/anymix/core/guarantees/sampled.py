"""An upper confidence bound on a Rényi ratio from draws: exact where the densities' ratio has one.

d_α(P ‖ Q)^(α−1) is the mean of w = (P/Q)^(α−1) under P.  If P/Q ≤ B then 0 ≤ w ≤ B^(α−1), and a
bound on the mean of a bounded variable is one on d_α.  Without B there is none: a set that no draw
has met may carry any w.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from anymix._arrays import FloatArray
from anymix.core.guarantees.confidence import Rng, mean_upper_bound
from anymix.core.guarantees.divergence import exponential, log_ratios, sampled_renyi_ratio


class UpperBound(NamedTuple):
    """A number, and whether it is a bound at every sample size or only an estimate of one.

    An estimate is too low under heavy tails; trusted is False where the draws themselves show them.
    """

    value: float
    exact: bool
    trusted: bool


def sampled_renyi_upper_bound(
    log_p: ArrayLike,
    log_q: ArrayLike,
    alpha: float,
    largest_ratio: float | None = None,
    delta: float = 0.05,
    rng: Rng = 0,
) -> UpperBound:
    """Return a number that d_α(P ‖ Q) exceeds with probability at most δ, from draws from P.

    Parameters
    ----------
    log_p, log_q : array (n,)
        Log-densities of both at independent draws from P; normalised ones, for a ratio to be known.
    alpha : float
        α > 1, and finite.
    largest_ratio : float, optional
        B ≥ P/Q everywhere, which holds for example with B = 1/c where Q has a part c of P mixed in.
        The bound is then exact at every n (betting).  Without it Student's bound is given, which is
        only an estimate: too low where P/Q has a heavy tail.
    delta : float
    rng : int or Generator
        For the order in which the bets are made.

    Notes
    -----
    Failures in 400 runs at δ = 5 %, n = 1000, two Gaussians with means .5, 1 and 1.5 apart: exact,
    with a tenth of P mixed into Q (B = 10), .8, 2.8, 4.5 % at α = 2 and 0, .2, 2.2 % at α = 4, on
    average 4 to 33 % above the truth; Student's, no B, 6, 9, 13 % and 10, 42, 81 %.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=2000)
    >>> log_p, shifted = -(x**2) / 2, -((x - 1.0) ** 2) / 2
    >>> log_q = np.logaddexp(np.log(0.9) + shifted, np.log(0.1) + log_p)
    >>> bound = sampled_renyi_upper_bound(log_p, log_q, 2.0, largest_ratio=10.0)
    >>> bound.exact, round(bound.value, 2)
    (True, 2.04)

    Paper: App. F.
    """
    if not 1 < alpha < np.inf:
        raise ValueError(f"alpha must be above 1 and finite; got {alpha}.")
    estimate = sampled_renyi_ratio(log_p, log_q, alpha)
    a, beta = log_ratios(log_p, log_q), alpha - 1.0
    top = _log_of_largest(a, largest_ratio)
    w = np.exp(beta * (a - top))
    if largest_ratio is None:
        mean = mean_upper_bound(w, delta, "student")
    else:
        mean = mean_upper_bound(w, delta, "betting", (0.0, 1.0), rng=rng)
    value = exponential(top + float(np.log(mean)) / beta)
    # No divergence is below one, and none above the largest ratio.
    value = max(1.0, value if largest_ratio is None else min(value, largest_ratio))
    exact = largest_ratio is not None
    return UpperBound(value, exact, exact or estimate.trusted)


def _log_of_largest(a: FloatArray, largest_ratio: float | None) -> float:
    """log B, or without it the largest log-ratio that was drawn."""
    seen = float(a.max())
    if largest_ratio is None:
        return seen
    if not largest_ratio >= 1:
        raise ValueError(f"largest_ratio bounds P/Q, so it is at least 1; got {largest_ratio}.")
    if seen > np.log(largest_ratio) + 1e-9:
        raise ValueError(
            f"largest_ratio is {largest_ratio:g}, but P/Q is {np.exp(seen):g} at a draw; state at "
            "least that, or mix a part c of P into Q, which bounds it by 1/c."
        )
    return float(np.log(largest_ratio))
