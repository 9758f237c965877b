"""Estimate the mean of a function on traffic of unknown mixture, with an interval.

A function f has the mean F_k on source k, and θ = Σ_k λ_k F_k on traffic of mixture λ.  The means
of the shares s posterior to λ̂ tell λ: q = C λ, with q over the traffic and C[:, k] over held-out
rows of source k.  So with a = C⁻ᵀF

    θ̃ = F'C⁻¹q = mean of a's over the traffic
    θ̃ − θ ≈ mean over traffic of (a's − its expectation) + Σ_k λ_k mean over source k of (f − a's)

to first order: independent means, whose variances add.  f = 1[source is k] gives θ = λ_k, f = the
loss of a model gives its loss on the traffic.  The shares need not be right, and may themselves be
learned from the rows: q = C λ holds for every s, so errors of s count in second order only.
θ̃ knows nothing of the simplex, so its error is Gaussian at the corners too, where resampled points
of the simplex are not; cutting the interval to what is possible loses no coverage.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtr, stdtrit

from anymix._arrays import FloatArray

# Sources whose means are so nearly dependent cannot be separated, whatever the inverse says.
SINGULAR = 1e8
# Agresti and Coull's rows, added to the traffic and spread evenly: about the square of 1.96.
DOUBT = 4.0
# Powers of the responsibilities, in order: a finer choice changes no interval that is seen.
POWERS = (1.0, 0.8, 0.63, 0.5, 0.4, 0.32, 0.25, 0.2)


# θ̃ of d functions: values, standard errors, degrees of freedom, skewness (d,), covariance (d, d).
# Errors are infinite where the sources cannot be separated.
Spread = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]
Ends = tuple[FloatArray, FloatArray]


def confusion_matrix(r: FloatArray, domain: NDArray[np.intp]) -> FloatArray:
    """C[:, k] = mean of r (p, m) over the rows of source k; columns sum to 1."""
    p = int(domain.max()) + 1
    return np.stack([r[:, domain == k].mean(axis=1) for k in range(p)], axis=1)


def posterior(r: FloatArray, mixture: FloatArray) -> FloatArray:
    """λ_k r_k / Σ_j λ_j r_j, with λ a little off the boundary, where a share would be lost."""
    w = (0.98 * mixture + 0.02 / len(mixture))[:, None] * r
    return np.asarray(w / w.sum(axis=0))


def spread(
    traffic: FloatArray,
    reference: FloatArray,
    domain: NDArray[np.intp],
    mixture: FloatArray,
    values: FloatArray,
) -> Spread:
    """θ̃ and its spread for functions with `values` (d, m) at the held-out rows.

    `traffic` (p, n) and `reference` (p, m) are responsibilities, `domain` (m,) the sources of the
    held-out rows, and `mixture` is λ̂.

    Variance = Var(a's)/n + Σ_k λ̃_k² Var_k(f − a's)/n_k, each with what few rows hide (`_unseen`);
    degrees of freedom as Welch has them; skewness is that of θ̃.
    """
    t, r = posterior(traffic, mixture), posterior(reference, mixture)
    C, F = confusion_matrix(r, domain), confusion_matrix(values, domain)
    if np.linalg.cond(C) > SINGULAR:
        d = len(F)  # nothing is known of θ
        return F @ mixture, np.full(d, np.inf), np.ones(d), np.zeros(d), np.eye(d)
    n, sizes = t.shape[1], np.bincount(domain)
    A, free = np.linalg.solve(C.T, F.T).T, np.linalg.solve(C, t.mean(axis=1))
    inverted, here = A @ r, mean_moments(A @ t)
    homes = [mean_moments((values - inverted)[:, domain == k]) for k in range(len(C))]
    # Var(a's)/n of traffic with four more rows, one part from each source: a few rows that all look
    # alike have no variance, and prove nothing.
    doubted = (n * mixture + DOUBT / mixture.size) / (n + DOUBT)
    mean, square = (
        confusion_matrix(inverted, domain) @ doubted,
        confusion_matrix(inverted**2, domain),
    )
    ours = np.maximum(np.diag(here[0]), (square @ doubted - mean**2) / (n + DOUBT))
    own = np.stack([np.diag(home[0]) for home in homes], axis=1)
    parts = free**2 * (own + _unseen(inverted, reference, domain) / sizes)
    variance = ours + parts.sum(axis=1)
    doubt = ours**2 / (n + DOUBT - 1.0) + (parts**2 / (sizes - 1)).sum(axis=1)
    third = here[1] + sum(share**3 * home[1] for share, home in zip(free, homes, strict=True))
    covariance = here[0] + sum(share**2 * home[0] for share, home in zip(free, homes, strict=True))
    tiny = np.finfo(float).tiny
    return (
        A @ t.mean(axis=1),
        np.sqrt(variance),
        np.maximum(variance**2 / np.maximum(doubt, tiny), 1.0),
        third / np.maximum(variance, tiny**0.5) ** 1.5,
        np.asarray(covariance),
    )


def mean_moments(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Covariance (d, d) and third cumulant (d,) of the mean of columns, without bias."""
    n = x.shape[1]
    c = x - x.mean(axis=1, keepdims=True)
    # Three products: numpy's power takes ten times as long.
    third = (c * c * c).sum(axis=1) / (n * (n - 1) * (n - 2)) if n > 2 else np.zeros(len(x))
    return c @ c.T / (n * max(n - 1, 1)), third


def _unseen(inverted: FloatArray, reference: FloatArray, domain: NDArray[np.intp]) -> FloatArray:
    """By how much Var_k(a's) is larger than the rows of source k show, (d, p).

    A row that looks as if it came from elsewhere may occur once in fifty, and in twenty rows not
    at all.  But rows of all sources, weighed by how likely they are under k, hold it: w_ki =
    r_ki / Σ_j n_j r_ji, if r is calibrated.  Where r is too sure, a power of it is taken; where it
    errs otherwise, nothing is taken from what k shows.
    """
    sizes, r = np.bincount(domain), less_sure(reference, domain)
    w = r / (sizes @ r)
    w = w / np.maximum(w.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    lent = inverted**2 @ w.T - (inverted @ w.T) ** 2
    shown = confusion_matrix(inverted**2, domain) - confusion_matrix(inverted, domain) ** 2
    return np.maximum(lent - shown * (sizes / (sizes - 1)), 0.0)


def less_sure(r: FloatArray, domain: NDArray[np.intp]) -> FloatArray:
    """r_k^b / Σ_j r_j^b, b ≤ 1 the power that identifies the sources of these rows best.

    The mean over sources of mean log r of the right one is concave in b: the search may stop
    where it no longer rises.
    """
    log_r = np.log(np.maximum(r, np.finfo(float).tiny))
    right, weight = (domain, np.arange(domain.size)), 1.0 / np.bincount(domain)[domain]
    best, found = -np.inf, r
    for power in POWERS:
        flat = np.exp(power * log_r)
        flat /= flat.sum(axis=0)
        likelihood = float(np.log(np.maximum(flat[right], np.finfo(float).tiny)) @ weight)
        if likelihood <= best:
            break
        best, found = likelihood, flat
    return found


# Part of a row that counts as none: the beta distribution has no parameter zero.
NONE = 1e-6
# Below it the skewness moves no digit that is shown, and would be divided by.
STRAIGHT = 1e-6
# Draws behind the level at which intervals hold together; it is then known to 0.003.
DRAWS = 5_000


def student_interval(found: Spread, confidence: float) -> Ends:
    """θ̃ ± t · standard error, t the quantile of Student's distribution."""
    value, error, freedom, *_ = found
    reach = stdtrit(freedom, 0.5 + confidence / 2.0) * error
    return value - reach, value + reach


def skewed_interval(found: Spread, confidence: float) -> Ends:
    """Student's interval, and as far beyond it as skewness asks for.

    With T = (θ̃ − θ)/error and g the skewness of θ̃, Hall's transformation of T

        T + g T²/3 + g² T³/27 + g/6,    its inverse at x  3/g ((1 + g (x − g/6))^⅓ − 1),

    takes the skewness away: T lies between the inverses at ∓t.  Of the two ends at each side the
    outer one counts: rows with few large losses show too small a mean and too small an error
    together, and Hall's inner end trusts a g that so few rows cannot tell.
    """
    low, high = student_interval(found, confidence)
    value, error, freedom, skewness, _ = found
    g = np.where(np.abs(skewness) < STRAIGHT, STRAIGHT, skewness)
    x = stdtrit(freedom, 0.5 + confidence / 2.0)
    ends = [
        value - error * 3.0 / g * (np.cbrt(1.0 + g * (side * x - g / 6.0)) - 1.0)
        for side in (1.0, -1.0)
    ]
    return np.minimum(low, ends[0]), np.maximum(high, ends[1])


def joint_confidence(covariance: FloatArray, confidence: float, rng: np.random.Generator) -> float:
    """The confidence of each interval at which all of them hold simultaneously.

    That of the quantile of max_k |Z_k| for Gaussian Z with the correlations of λ̃: less is lost
    than by dividing the risk among p intervals, as the shares sum to 1.
    """
    scale = np.sqrt(np.diag(covariance))
    if not (scale > 0.0).all():
        covariance, scale = np.eye(len(scale)), np.ones(len(scale))
    if len(scale) == 2:  # λ_2 = 1 − λ_1, and so are its ends
        return confidence
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    Z = rng.standard_normal((DRAWS, len(scale))) * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
    return float(2.0 * ndtr(np.quantile(np.abs(Z).max(axis=1), confidence)) - 1.0)


def worth(r: FloatArray, C: FloatArray, domain: NDArray[np.intp]) -> FloatArray:
    """The information of a row of traffic on each share, relative to a known source, in [0, 1].

    With C[:, k] the mean of r over rows of source k, λ̂ = C⁻¹ mean r has at the even mixture the
    variance [C⁻¹ Cov(r) C⁻ᵀ]_kk per row; it would be (1/p)(1 − 1/p) if rows named their sources.
    """
    p = len(r)
    if p == 1:
        return np.ones(1)
    if np.linalg.cond(C) > SINGULAR:
        return np.zeros(p)
    chance = 1.0 / (p * np.bincount(domain, minlength=p))[domain]
    centred = np.linalg.solve(C, r - (r @ chance)[:, None])
    variance = centred**2 @ chance
    even = (p - 1) / p**2
    return np.asarray(even / np.maximum(variance, even))


def exact_interval(share: FloatArray, n: FloatArray, confidence: float) -> Ends:
    """Clopper and Pearson's interval for a share that was found in n rows, whole or not."""
    tail = (1.0 - confidence) / 2.0
    seen, other = n * share, n * (1.0 - share)
    lower = betaincinv(np.maximum(seen, NONE), other + 1.0, tail)
    upper = betaincinv(seen + 1.0, np.maximum(other, NONE), 1.0 - tail)
    return np.where(seen > NONE, lower, 0.0), np.where(other > NONE, upper, 1.0)


# Indices drawn at a time; tables of 16 MB.
CHUNK = 2_000_000
# The mean of so many bounded rows is Gaussian to more digits than an interval shows.
MANY_ROWS = 10_000


def resampled_means(
    table: FloatArray,
    size: int,
    rng: np.random.Generator,
    share: FloatArray | None = None,
    n: int | None = None,
) -> FloatArray:
    """Means over n columns, drawn with probabilities `share`, of a table (d, m): shape (size, d).

    By default the bootstrap: n = m and equal chances.
    """
    m = table.shape[1]
    n = m if n is None else n
    if n >= MANY_ROWS:
        chance = np.full(m, 1.0 / m) if share is None else share
        mean = table @ chance
        centred = table - mean[:, None]
        covariance = (centred * chance) @ centred.T / n
        return np.asarray(rng.multivariate_normal(mean, covariance, size, method="eigh"))
    step, means = max(1, CHUNK // max(m, n)), []
    for first in range(0, size, step):
        some = min(step, size - first)
        if share is not None:
            counts = np.asarray(rng.multinomial(n, share, some))
        else:
            rows = rng.integers(m, size=(some, n)) + m * np.arange(some)[:, None]
            counts = np.bincount(rows.ravel(), minlength=some * m).reshape(some, m)
        means.append(counts @ table.T / n)
    return np.concatenate(means)


def resampled_source_means(
    table: FloatArray, domain: NDArray[np.intp], size: int, rng: np.random.Generator
) -> FloatArray:
    """Means over resampled columns, source by source: shape (size, d, p)."""
    p = int(domain.max()) + 1
    means = [resampled_means(table[:, domain == k], size, rng) for k in range(p)]
    return np.stack(means, axis=2)
