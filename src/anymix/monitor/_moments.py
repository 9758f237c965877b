"""The mean of any function of held-out rows on traffic of unknown mixture, and how sure it is.

A function f has the mean F_k on source k, and θ = Σ_k λ_k F_k on traffic of mixture λ.  The means
of the shares s posterior to λ̂ tell λ: q = C λ, with q over the traffic and C[:, k] over held-out
rows of source k.  So with a = C⁻ᵀF

    θ̃ = F'C⁻¹q = mean of a's over the traffic
    θ̃ − θ ≈ mean over traffic of (a's − its expectation) + Σ_k λ_k mean over source k of (f − a's)

to first order: independent means, whose variances add.  f = 1[source is k] gives θ = λ_k, f = the
loss of a model gives its loss on the traffic.  The shares need not be right, and may themselves be
learned from the rows: q = C λ holds for every s, so errors of s count in second order only.
θ̃ knows nothing of the simplex, so its error is Gaussian at the corners too, where resampled points
of the simplex are not; whoever cuts the interval to what is possible loses no coverage.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray

# Sources whose means are so nearly dependent cannot be told apart, whatever the inverse says.
SINGULAR = 1e8
# Agresti and Coull's rows, added to the traffic and spread evenly: about the square of 1.96.
DOUBT = 4.0
# Powers of the responsibilities, in order: a finer choice changes no interval that is seen.
POWERS = (1.0, 0.8, 0.63, 0.5, 0.4, 0.32, 0.25, 0.2)


class Evidence(NamedTuple):
    """Responsibilities of traffic (p, n) and of held-out rows (p, m), the sources of these, λ̂."""

    traffic: FloatArray
    reference: FloatArray
    domain: NDArray[np.intp]
    mixture: FloatArray


class Spread(NamedTuple):
    """θ̃ of d functions: values, standard errors, degrees of freedom, skewness; covariance (d, d).

    Errors are infinite where the sources cannot be told apart.
    """

    value: FloatArray
    error: FloatArray
    freedom: FloatArray
    skewness: FloatArray
    covariance: FloatArray


def confusion_matrix(r: FloatArray, domain: NDArray[np.intp]) -> FloatArray:
    """C[:, k] = mean of r (p, m) over the rows of source k; columns sum to 1.

    Examples
    --------
    >>> confusion_matrix(np.array([[0.9, 0.7, 0.2], [0.1, 0.3, 0.8]]), np.array([0, 0, 1]))
    array([[0.8, 0.2],
           [0.2, 0.8]])
    """
    p = int(domain.max()) + 1
    return np.stack([r[:, domain == k].mean(axis=1) for k in range(p)], axis=1)


def posterior(r: FloatArray, mixture: FloatArray) -> FloatArray:
    """λ_k r_k / Σ_j λ_j r_j, with λ a little off the boundary, where a share would be lost.

    Examples
    --------
    >>> posterior(np.array([[0.5], [0.5]]), np.array([0.8, 0.2])).round(3)
    array([[0.794],
           [0.206]])
    """
    w = (0.98 * mixture + 0.02 / len(mixture))[:, None] * r
    return np.asarray(w / w.sum(axis=0))


def spread(evidence: Evidence, values: FloatArray) -> Spread:
    """θ̃ and its spread for functions with `values` (d, m) at the held-out rows.

    Variance = Var(a's)/n + Σ_k λ̃_k² Var_k(f − a's)/n_k, each with what few rows hide (`_unseen`,
    `_doubtful`); degrees of freedom as Welch has them; skewness is that of θ̃.

    Examples
    --------
    Rows that name their source: λ̃ is a share of n, and its error the textbook's.

    >>> r, t = np.eye(2)[:, np.repeat([0, 1], 50)], np.eye(2)[:, np.repeat([0, 1], [70, 30])]
    >>> found = spread(Evidence(t, r, np.repeat([0, 1], 50), np.array([0.7, 0.3])), r)
    >>> found.value.round(3), found.error.round(3)
    (array([0.7, 0.3]), array([0.046, 0.046]))
    """
    domain, mixture = evidence.domain, evidence.mixture
    t, r = posterior(evidence.traffic, mixture), posterior(evidence.reference, mixture)
    C, F = confusion_matrix(r, domain), confusion_matrix(values, domain)
    if np.linalg.cond(C) > SINGULAR:
        return _nothing(F @ mixture)
    n, sizes = t.shape[1], np.bincount(domain)
    A, free = np.linalg.solve(C.T, F.T).T, np.linalg.solve(C, t.mean(axis=1))
    told, here = A @ r, mean_moments(A @ t)
    homes = [mean_moments((values - told)[:, domain == k]) for k in range(len(C))]
    traffic = np.maximum(np.diag(here[0]), _doubtful(told, domain, mixture, n))
    own = np.stack([np.diag(home[0]) for home in homes], axis=1)
    parts = free**2 * (own + _unseen(told, evidence.reference, domain) / sizes)
    variance = traffic + parts.sum(axis=1)
    doubt = traffic**2 / (n + DOUBT - 1.0) + (parts**2 / (sizes - 1)).sum(axis=1)
    third = here[1] + sum(share**3 * home[1] for share, home in zip(free, homes, strict=True))
    covariance = here[0] + sum(share**2 * home[0] for share, home in zip(free, homes, strict=True))
    tiny = np.finfo(float).tiny
    return Spread(
        A @ t.mean(axis=1),
        np.sqrt(variance),
        np.maximum(variance**2 / np.maximum(doubt, tiny), 1.0),
        third / np.maximum(variance, tiny**0.5) ** 1.5,
        np.asarray(covariance),
    )


def _nothing(value: FloatArray) -> Spread:
    """What is known of θ when the sources cannot be told apart."""
    d, none = value.size, np.zeros_like(value)
    return Spread(value, np.full(d, np.inf), np.ones(d), none, np.eye(d))


def mean_moments(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Covariance (d, d) and third cumulant (d,) of the mean of columns, without bias."""
    n = x.shape[1]
    c = x - x.mean(axis=1, keepdims=True)
    # Three products: numpy's power takes ten times as long.
    third = (c * c * c).sum(axis=1) / (n * (n - 1) * (n - 2)) if n > 2 else np.zeros(len(x))
    return c @ c.T / (n * max(n - 1, 1)), third


def _unseen(told: FloatArray, reference: FloatArray, domain: NDArray[np.intp]) -> FloatArray:
    """By how much Var_k(a's) is larger than the rows of source k show, (d, p).

    A row that looks as if it came from elsewhere may occur once in fifty, and in twenty rows not
    at all.  But rows of all sources, weighed by how likely they are under k, hold it: w_ki =
    r_ki / Σ_j n_j r_ji, if r is calibrated.  Where r is too sure, a power of it is taken; where it
    errs otherwise, nothing is taken from what k shows.
    """
    sizes, r = np.bincount(domain), less_sure(reference, domain)
    w = r / (sizes @ r)
    w = w / np.maximum(w.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    lent = told**2 @ w.T - (told @ w.T) ** 2
    shown = confusion_matrix(told**2, domain) - confusion_matrix(told, domain) ** 2
    return np.maximum(lent - shown * (sizes / (sizes - 1)), 0.0)


def less_sure(r: FloatArray, domain: NDArray[np.intp]) -> FloatArray:
    """r_k^b / Σ_j r_j^b, b ≤ 1 the power that tells the sources of these rows best.

    The mean over sources of mean log r of the right one is concave in b: the search may stop
    where it no longer rises.

    Examples
    --------
    One row in ten is given to the wrong source, each time with 99.9 % certainty:

    >>> right = np.r_[np.full(9, 0.999), 0.001]
    >>> r = np.stack([np.r_[right, 1 - right], np.r_[1 - right, right]])
    >>> less_sure(r, np.repeat([0, 1], 10))[:, 0].round(2)
    array([0.9, 0.1])
    """
    log_r = np.log(np.maximum(r, np.finfo(float).tiny))
    right, weight = (domain, np.arange(domain.size)), 1.0 / np.bincount(domain)[domain]
    best, found = -np.inf, r
    for power in POWERS:
        flat = np.exp(power * log_r)
        flat /= flat.sum(axis=0)
        told = float(np.log(np.maximum(flat[right], np.finfo(float).tiny)) @ weight)
        if told <= best:
            break
        best, found = told, flat
    return found


def _doubtful(
    told: FloatArray, domain: NDArray[np.intp], mixture: FloatArray, n: int
) -> FloatArray:
    """Var(a's)/n of traffic with four more rows, one part from each source: (d,).

    A few rows that all look alike have no variance, and prove nothing.
    """
    doubted = (n * mixture + DOUBT / mixture.size) / (n + DOUBT)
    mean, square = confusion_matrix(told, domain) @ doubted, confusion_matrix(told**2, domain)
    return np.asarray((square @ doubted - mean**2) / (n + DOUBT))
