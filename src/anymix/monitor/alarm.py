"""Is the traffic a mixture of the sources at all?

Under a mixture λ every score s(x) of the traffic has the distribution Σ_k λ_k F_k of the sources'
own scores.  So fit λ̂ and compare, for the novelty and each responsibility, the two distributions:

    T_s = mean over thresholds t of (F(t) − Σ_k λ̂_k F_k(t))² / (F̄(t) (1 − F̄(t)))

(Anderson and Darling's weights: tails count), and take the largest T_s in units of its own mean
under the null, or their sum in units of its own.  The null is simulated from held-out rows: traffic
of n rows from their mixture λ̂, sources resampled, λ̂ fitted again.  It accounts for few rows on
both sides, but not for values beyond all held-out rows.  So the rows of traffic that are more
unusual than (nearly) every held-out row are counted, too: `outlier_p_value`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import nbinom

from anymix._arrays import FloatArray, source_numbers
from anymix._parameters import Number, check
from anymix.core import Record
from anymix.exceptions import ParameterError
from anymix.monitor.mixture import invert, whitener
from anymix.monitor.scores import shares
from anymix.monitor.uncertainty import (
    CHUNK,
    confusion_matrix,
    resampled_means,
    resampled_source_means,
)

N_THRESHOLDS = 30
# Held-out rows of a source beyond these add cost but no power that matters.
MOST_ROWS = 4000
# Shares of the held-out rows above the novelty that makes a row of traffic an outlier, and the part
# of the level that is spent on each of them; the distributions have the rest.
ABOVE, PART = (0.0, 0.01), 0.1
# The p-value of the distributions beyond all resamples goes on from this share of the largest.
TAIL = 0.1


class Scores(NamedTuple):
    """Scores of rows for monitoring: log r_k (p, n), and novelty (n,), higher is rarer."""

    log_r: ArrayLike
    novelty: ArrayLike


@dataclass(frozen=True)
class Alarm(Record):
    """The result of the test.

    Attributes
    ----------
    rings : bool
        Whether p_value ≤ level, or its part for this test: traffic is not a mixture of the sources.
    p_value : float
        The probability that traffic from a mixture looks at least as unusual.
    level : float
        The rate of false alarms: of this test, or of all repeated tests together.
    distance : float
        The largest gap between the distribution functions of traffic and mixture, over all scores:
        how much of the traffic, at least, the mixture does not explain.
    look : int or None
        The number of this test of the traffic, 1, 2, …, if it is tested repeatedly.
    n_outliers : int
        Rows of traffic that are more unusual than every held-out row.
    tested : bool
        False if no held-out rows can be scored as traffic is scored; then p_value is 1 and means
        nothing.
    """

    rings: bool
    p_value: float
    level: float
    distance: float
    look: int | None = None
    n_outliers: int = 0
    tested: bool = True

    @property
    def threshold(self) -> float:
        """It rings at p-values up to this: the level, or the part 6/(π² t²) of it for look t.

        >>> Alarm(False, 0.5, 0.05, 0.1, look=2).threshold.__round__(4)
        0.0076
        """
        return self.level * (1.0 if self.look is None else 6.0 / (np.pi * self.look) ** 2)


def mixture_alarm(
    traffic: Scores,
    reference: Scores,
    sample_domain: ArrayLike,
    level: float = 0.01,
    n_bootstrap: int = 500,
    rng: int | np.random.Generator = 0,
    look: int | None = None,
) -> Alarm:
    """Test whether traffic is a mixture of the sources.

    The p-value is the least of three, each divided by its part of the level: that of the
    distributions, .8, and those of the outliers beyond all and beyond 99 % of the held-out rows, .1
    each.  Look t = 1, 2, … of a monitor rings at p ≤ 6 level / (π² t²).  Σ_t 6/(π² t²) = 1, so the
    chance that it ever rings falsely is at most the level, although all looks share the held-out
    rows.

    Parameters
    ----------
    traffic, reference : Scores
        Log-responsibilities and novelty of the traffic and of held-out rows of the sources.
    sample_domain : array (m,)
        The source 0..p−1 of each held-out row.
    level : float
        The rate of false alarms.
    n_bootstrap : int
        Draws from the null.  Below 1/(n_bootstrap + 1) the p-value follows their exponential tail.
    rng : int or Generator
    look : int, optional
        Which look it is.  Without it, the only one.

    Examples
    --------
    Sources at −1 and 1; traffic at 0 looks like an even mixture to every mean, and is not one.

    >>> rng = np.random.default_rng(0)
    >>> def evidence(centre):
    ...     x = rng.normal(centre, 0.3)
    ...     novelty = np.minimum(abs(x - 1), abs(x + 1))
    ...     return Scores(-np.logaddexp(0.0, [2 * x, -2 * x]), novelty)
    >>> domain = np.repeat([0, 1], 200)
    >>> sources = evidence(2.0 * domain - 1)
    >>> mixture_alarm(evidence(rng.choice([-1.0, 1.0], 300)), sources, domain).rings
    False
    >>> mixture_alarm(evidence(np.zeros(300)), sources, domain).rings
    True
    """
    check_level(level, n_bootstrap, look)
    rng = np.random.default_rng(rng)
    there = _scores(reference, "reference")
    p = len(there) - 1
    here = _scores(traffic, "traffic", p)
    domain = source_numbers(sample_domain, p, there.shape[1], least=2)
    order = rng.permutation(len(domain))
    kept = np.concatenate([order[domain[order] == k][:MOST_ROWS] for k in range(p)])
    there, domain = there[:, kept], domain[kept]
    gap, weight, null_gaps, mixture = _gaps(here, there, domain, n_bootstrap, rng)
    shape = (-1, p + 1, N_THRESHOLDS)
    T = (np.vstack([gap, null_gaps]) ** 2 * weight).reshape(shape).mean(axis=2)
    T = T / np.maximum(T[1:].mean(axis=0), np.finfo(float).tiny)
    both = np.stack([T.max(axis=1), T.sum(axis=1)])
    strange = np.max(both / both[:, 1:].mean(axis=1, keepdims=True), axis=0)
    p_values = [tail_p_value(strange[0], strange[1:]) / (1 - PART * len(ABOVE))]
    for share in ABOVE:
        p_values.append(outlier_p_value(here[-1], there[-1], domain, mixture, share) / PART)
    p_value = min(1.0, *p_values)
    outliers = int(np.sum(here[-1] > there[-1].max()))
    alarm = Alarm(False, float(p_value), level, float(np.abs(gap).max()), look, outliers)
    return replace(alarm, rings=alarm.p_value <= alarm.threshold)


def tail_p_value(value: float, null: FloatArray) -> float:
    """The p-value by counting draws from the null or, beyond all of them, by a tail model.

    Beyond all draws p = TAIL exp(−(value − u) / e), u their upper quantile and e the mean by which
    draws above it exceed it, raised by two standard errors: T is quadratic in Gaussian gaps, and
    the tail of such a sum is exponential.
    """
    larger = int(np.sum(null >= value))
    p_value = (1 + larger) / (null.size + 1)
    if larger:
        return p_value
    u = np.quantile(null, 1 - TAIL)
    above = null[null > u] - u
    if not above.size or above.mean() <= 0.0:
        return p_value
    e = above.mean() * (1 + 2 / np.sqrt(above.size))
    return float(min(p_value, TAIL * np.exp(-(value - u) / e)))


def outlier_p_value(
    novelty: ArrayLike,
    reference: ArrayLike,
    sample_domain: NDArray[np.intp],
    mixture: FloatArray,
    share: float,
) -> float:
    """The probability that a mixture has as many rows above a high novelty threshold.

    Of the n_k held-out rows of source k, a_k exceed it, so that with w_k = λ_k/n_k a row of traffic
    does with the chance Σ_k w_k a_k, if they showed it exactly.  Fay and Feuer (1997) take for it
    the gamma distribution of mean Σ_k w_k a_k + w and variance Σ_k w_k² a_k + w², w = max_k w_k;
    the count is then negative binomial.  It is the same as for conformal p-values: of n and m rows
    of one source, the j highest are all traffic with a chance of about (n/(n + m))^j.

    Examples
    --------
    >>> home, here = np.arange(100.0), np.r_[np.zeros(97), 100.0, 101.0, 102.0]
    >>> outlier_p_value(here, home, np.zeros(100, dtype=int), np.ones(1), 0)
    0.125
    """
    here, there = np.asarray(novelty), np.asarray(reference)
    threshold = np.sort(there)[there.size - 1 - int(share * there.size)]
    sizes = np.bincount(sample_domain)
    w, a = mixture / sizes, np.bincount(sample_domain[there > threshold], minlength=sizes.size)
    mean, variance = w @ a + w.max(), w**2 @ a + w.max() ** 2
    success = 1.0 / (1.0 + here.size * variance / mean)
    count = int(np.sum(here > threshold))
    return float(nbinom.sf(count - 1, mean**2 / variance, success))


def check_level(level: float, n_bootstrap: int, look: int | None = None) -> None:
    """Check that the level can be resolved by the resamples, and that looks count from 1."""
    if not 0.0 < level < 1.0 or (n_bootstrap + 1) * level < 1.0:
        raise ParameterError(
            f"level must lie between 1/(n_bootstrap + 1) and 1, or too few resamples show the "
            f"tail; got level={level} with n_bootstrap={n_bootstrap}."
        )
    if look is not None:
        check(look, "look", Number(1, whole=True))


def _scores(evidence: Scores, name: str, n_sources: int | None = None) -> FloatArray:
    """Stack responsibilities and novelty: shape (p + 1, n)."""
    r = shares(evidence.log_r, f"log_r of {name}", n_sources)
    novelty = np.asarray(evidence.novelty, dtype=float)
    if novelty.shape != r.shape[1:] or not np.isfinite(novelty).all():
        raise ValueError(
            f"novelty of {name} must hold {r.shape[1]} finite numbers, one for each row; give "
            "scores like those of novelty_scores."
        )
    return np.vstack([r, novelty])


def _gaps(
    here: FloatArray,
    there: FloatArray,
    domain: NDArray[np.intp],
    size: int,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """F − Σ_k λ̂_k F_k on the data, weights 1/(F̄(1 − F̄)), the gaps under the null, and λ̂."""
    p, n = len(there) - 1, here.shape[1]
    # Quantiles of each score, half from the traffic and half from the sources: (p + 1, t).
    at = (np.arange(N_THRESHOLDS // 2) + 0.5) / (N_THRESHOLDS // 2)
    quantiles = np.vstack([np.quantile(part, at, axis=1) for part in (here, there)])
    thresholds = np.sort(quantiles.T, axis=1)
    W = whitener(here[:-1], there[:-1], domain)
    table, step = _moments(there, thresholds), max(1, CHUNK // (thresholds.size + len(there)))
    parts = (here[:, first : first + step] for first in range(0, n, step))
    mean = np.asarray(sum(_moments(part, thresholds).sum(axis=1) for part in parts)) / n
    gap, mixture = _gap(W, confusion_matrix(table, domain), mean)
    F = np.clip(mean[p:] - gap / 2, 0.5 / n, 1 - 0.5 / n)
    # The null: n rows from the sources' held-out rows, mixed by λ̂.
    share = mixture[domain] / np.bincount(domain)[domain]
    traffic = resampled_means(table, size, rng, share / share.sum(), n)
    null, _ = _gap(W, resampled_source_means(table, domain, size, rng), traffic)
    return gap, 1 / (F * (1 - F)), null, mixture


def _gap(W: FloatArray, sources: FloatArray, traffic: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Fit λ̂ to the means of r, the first p moments, and return what it leaves of the others."""
    p = sources.shape[-1]
    mixture = invert(W, sources[..., :p, :], traffic[..., :p])
    explained = np.einsum("...dk,...k->...d", sources[..., p:, :], mixture)
    return traffic[..., p:] - explained, mixture


def _moments(scores: FloatArray, thresholds: FloatArray) -> FloatArray:
    """All that is averaged over rows: responsibilities, then 1[score ≤ threshold]: (d, n)."""
    below = scores[:, None, :] <= thresholds[:, :, None]
    return np.vstack([scores[:-1], below.reshape(-1, scores.shape[1])])
