"""Is the traffic a mixture of the sources at all?

Under a mixture λ every score s(x) of the traffic has the distribution Σ_k λ_k F_k of the sources'
own scores.  So fit λ̂ and compare, for the novelty and each responsibility, the two distributions:

    T_s = mean over thresholds t of (F(t) − Σ_k λ̂_k F_k(t))² / (F̄(t) (1 − F̄(t)))

(Anderson and Darling's weights: tails count), and take the largest T_s in units of its own mean
under the null.  The null is drawn from held-out rows: traffic of n rows from their mixture λ̂,
sources resampled, λ̂ fitted again.  It knows how few the rows are on both sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anymix._arrays import FloatArray, source_numbers
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


class Scores(NamedTuple):
    """What monitoring sees of some rows: log r_k (p, n), and novelty (n,), higher is stranger."""

    log_r: ArrayLike
    novelty: ArrayLike


@dataclass(frozen=True)
class Alarm(Record):
    """The answer of the test.

    Attributes
    ----------
    rings : bool
        Whether p_value ≤ level: the traffic is not a mixture of the sources.
    p_value : float
        How often traffic that is a mixture looks as strange.
    level : float
        The rate of false alarms that was asked for.
    distance : float
        The largest gap between the distribution functions of traffic and mixture, over all scores:
        how much of the traffic, at least, the mixture does not explain.
    """

    rings: bool
    p_value: float
    level: float
    distance: float


def mixture_alarm(
    traffic: Scores,
    reference: Scores,
    sample_domain: ArrayLike,
    level: float = 0.01,
    n_bootstrap: int = 500,
    rng: int | np.random.Generator = 0,
) -> Alarm:
    """Test whether traffic is a mixture of the sources.

    Parameters
    ----------
    traffic, reference : Scores
        Log-responsibilities and novelty of the traffic and of held-out rows of the sources.
    sample_domain : array (m,)
        The source 0..p−1 of each held-out row.
    level : float
        The rate of false alarms.
    n_bootstrap : int
        Draws from the null; p-values are multiples of 1/(n_bootstrap + 1).
    rng : int or Generator

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
    check_level(level, n_bootstrap)
    rng = np.random.default_rng(rng)
    there = _scores(reference, "reference")
    p = len(there) - 1
    here = _scores(traffic, "traffic", p)
    domain = source_numbers(sample_domain, p, there.shape[1], least=2)
    order = rng.permutation(len(domain))
    kept = np.concatenate([order[domain[order] == k][:MOST_ROWS] for k in range(p)])
    there, domain = there[:, kept], domain[kept]
    gap, weight, null_gaps = _gaps(here, there, domain, n_bootstrap, rng)
    shape = (-1, p + 1, N_THRESHOLDS)
    observed = (gap**2 * weight).reshape(shape).mean(axis=2)[0]
    null = (null_gaps**2 * weight).reshape(shape).mean(axis=2)
    unit = np.maximum(null.mean(axis=0), np.finfo(float).tiny)
    stranger = np.max(null / unit, axis=1) >= np.max(observed / unit)
    p_value = float((1 + stranger.sum()) / (n_bootstrap + 1))
    return Alarm(p_value <= level, p_value, level, float(np.abs(gap).max()))


def check_level(level: float, n_bootstrap: int) -> None:
    """Refuse a rate of false alarms that so many resamples cannot tell."""
    if not 0.0 < level < 1.0 or (n_bootstrap + 1) * level < 1.0:
        raise ParameterError(
            f"level must lie between 1/(n_bootstrap + 1) and 1, or the alarm could never ring; got "
            f"level={level} with n_bootstrap={n_bootstrap}."
        )


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
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """F − Σ_k λ̂_k F_k on the data, the weights 1/(F̄(1 − F̄)), and the gaps under the null."""
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
    return gap, 1 / (F * (1 - F)), null


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
