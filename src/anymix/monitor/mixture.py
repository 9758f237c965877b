"""Which mixture λ of the sources is today's traffic?  From responsibilities alone, no labels.

inversion    mean r(traffic) = C λ,  C[:, k] = mean r over held-out rows of source k
em           λ_k ← mean λ_k r_k / Σ_j λ_j r_j, the likeliest λ if r is calibrated

The inversion is right whatever r is, calibrated or not: both sides see the same r.  So it may be
repeated with the posterior shares λ̂_k r_k / Σ_j λ̂_j r_j in place of r, which up to factors are the
slopes of the log-likelihood: then it is also as sharp as the likeliest λ where r is calibrated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls

from anymix._arrays import FloatArray, source_numbers
from anymix._parameters import Number, Rule, Words, check, share_rule
from anymix.core import Record, simplex
from anymix.monitor.scores import shares
from anymix.monitor.uncertainty import (
    Ends,
    confusion_matrix,
    exact_interval,
    joint_confidence,
    posterior,
    resampled_means,
    spread,
    student_interval,
    worth,
)


@dataclass(frozen=True)
class MixtureEstimate(Record):
    """λ̂ with intervals.

    Attributes
    ----------
    mixture, lower, upper : array (p,)
        λ̂ on the simplex, and the interval of each entry, one by one: λ_k lies in [lower_k, upper_k]
        with this confidence, whichever k is asked about.  The joint confidence of all p is lower.
    condition_number : float
        Of C: 1 if responsibilities name the source of each row, infinite if two sources cannot be
        separated; errors in mean r grow by at most this factor, relatively.
    method : str
        "inversion" or "em".
    n : int
        Rows of traffic.
    confidence : float
        Of each interval; of all joint ones together.
    joint_lower, joint_upper : array (p,) or None
        Wider intervals that hold all at once with this confidence; None in records of old.
    """

    mixture: FloatArray
    lower: FloatArray
    upper: FloatArray
    condition_number: float
    method: str
    n: int
    confidence: float
    joint_lower: FloatArray | None = None
    joint_upper: FloatArray | None = None

    def intervals(self, simultaneous: bool = False) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper ends, for each share alone or, if simultaneous, jointly."""
        if not simultaneous:
            return self.lower, self.upper
        if self.joint_lower is None or self.joint_upper is None:
            raise ValueError(
                "this record was written before joint intervals were introduced; estimate "
                "the mixture again."
            )
        return self.joint_lower, self.joint_upper


def estimate_mixture(
    log_r_traffic: ArrayLike,
    log_r_reference: ArrayLike,
    sample_domain: ArrayLike,
    method: str = "inversion",
    n_bootstrap: int = 500,
    confidence: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> MixtureEstimate:
    """Estimate the mixture of sources that unlabelled traffic is drawn from.

    Parameters
    ----------
    log_r_traffic : array (p, n)
        log r_k(x) of the traffic; exponentials sum to 1 in each column.
    log_r_reference : array (p, m)
        The same for held-out rows of known source.
    sample_domain : array (m,)
        The source 0..p−1 of each held-out row.
    method : "inversion" or "em"
        "em" has narrower intervals, but they are about the traffic's noise only; it is wrong where
        the responsibilities are not calibrated.
    n_bootstrap : int
        Resamples of the traffic behind the intervals of "em"; "inversion" needs none.
    confidence : float
        Of each interval, and of the joint ones together, in (0, 1).
    rng : int or Generator

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> def log_r(source):
    ...     score = rng.normal(2.0 * source - 1.0)
    ...     return -np.logaddexp(0.0, [2.0 * score, -2.0 * score])
    >>> domain = np.repeat([0, 1], 1000)
    >>> traffic = (rng.random(2000) < 0.3).astype(int)
    >>> estimate_mixture(log_r(traffic), log_r(domain), domain).mixture.round(1)
    array([0.7, 0.3])
    """
    reference = shares(log_r_reference, "log_r_reference")
    p, m = reference.shape
    traffic = shares(log_r_traffic, "log_r_traffic", p)
    domain = source_numbers(sample_domain, p, m, least=2)
    for name, value in zip(SETTINGS, (method, n_bootstrap, confidence), strict=True):
        check(value, name, SETTINGS[name])
    rng = np.random.default_rng(rng)
    C = confusion_matrix(reference, domain)
    n = traffic.shape[1] * worth(reference, C, domain)
    find = _invert if method == "inversion" else _most_likely
    mixture, covariance, ends = find(traffic, reference, domain, n_bootstrap, rng)
    joint = joint_confidence(covariance, confidence, rng)
    one, all_ = (_interval(mixture, ends, n, level) for level in (confidence, joint))
    return MixtureEstimate(
        mixture=mixture,
        lower=one[0],
        upper=one[1],
        condition_number=float(np.linalg.cond(C)),
        method=method,
        n=traffic.shape[1],
        confidence=confidence,
        joint_lower=np.minimum(one[0], all_[0]),
        joint_upper=np.maximum(one[1], all_[1]),
    )


# λ̂, the covariance of its errors, and what gives intervals for a confidence.
MixtureFit = tuple[FloatArray, FloatArray, Callable[[float], Ends]]


def _interval(
    mixture: FloatArray, ends: Callable[[float], Ends], n: FloatArray, confidence: float
) -> Ends:
    """Cut the interval to [0, 1]; it holds λ̂ and the exact interval for n rows of known source.

    Few rows that look alike are alike in every resample too, which would leave no width at all.
    """
    if mixture.size == 1:  # the share of a single source is no estimate
        return mixture, mixture
    lower, upper = (np.clip(end, 0.0, 1.0) for end in ends(confidence))
    least, most = exact_interval(mixture, n, confidence)
    return np.minimum.reduce([lower, least, mixture]), np.maximum.reduce([upper, most, mixture])


# Fewer resamples have no ends.
SETTINGS: dict[str, Rule] = {
    "method": Words("inversion", "em"),
    "n_bootstrap": Number(20, whole=True),
    "confidence": share_rule,
}


def _factor(V: FloatArray, lift: float) -> FloatArray:
    """Return the lower Cholesky factor of V + lift · mean variance · I."""
    return np.asarray(
        cholesky(V + (lift * np.trace(V) / len(V) + 1e-12) * np.eye(len(V)), lower=True)
    )


def whitener(traffic: FloatArray, reference: FloatArray, domain: NDArray[np.intp]) -> FloatArray:
    """Return W with W'W the inverse covariance of mean r − C λ, at an unweighted first λ."""
    rough = simplex_least_squares(confusion_matrix(reference, domain), traffic.mean(axis=1))
    # Cov(mean r − C λ) = Cov(r)/n + Σ_k λ_k² Cov_k(r)/n_k
    V = np.atleast_2d(np.cov(traffic, bias=True)) / traffic.shape[1]
    for k, share in enumerate(rough):
        rows = reference[:, domain == k]
        V = V + share**2 * np.atleast_2d(np.cov(rows, bias=True)) / rows.shape[1]
    # Responsibilities sum to 1, so the covariance has a null direction; residuals on the simplex
    # have no part in it, and any lift will do that does not drown the others.
    L = _factor(V, lift=1e-2)
    return np.asarray(solve_triangular(L, np.eye(len(L)), lower=True))


def invert(W: FloatArray, C: FloatArray, q: FloatArray) -> FloatArray:
    """argmin ‖W(Cλ − q)‖² over the simplex for stacks of C (..., p, p) and q (..., p)."""
    A, b = W @ C, q @ W.T
    stack = zip(A.reshape(-1, *A.shape[-2:]), b.reshape(-1, b.shape[-1]), strict=True)
    return np.array([simplex_least_squares(A_b, b_b) for A_b, b_b in stack]).reshape(q.shape)


def _invert(
    traffic: FloatArray,
    reference: FloatArray,
    domain: NDArray[np.intp],
    size: int,
    rng: np.random.Generator,
) -> MixtureFit:
    """Solve C λ = mean r by weighted least squares, again with posteriors; errors by `spread`."""
    mixture = simplex.uniform(len(reference))
    for _ in range(3):
        t, r = posterior(traffic, mixture), posterior(reference, mixture)
        W = whitener(t, r, domain)
        mixture = invert(W, confusion_matrix(r, domain), t.mean(axis=1))
    found = spread(traffic, reference, domain, mixture, np.eye(mixture.size)[:, domain])
    return mixture, found[4], partial(student_interval, found)


def expectation_maximisation(r: FloatArray, max_iter: int = 10_000) -> FloatArray:
    """argmax_λ Σ_i log Σ_k λ_k r_ki by λ_k ← λ_k g_k, g_k = mean_i r_ki / Σ_j λ_j r_ji.

    max_k log g_k bounds how far the mean log-likelihood is from its maximum; the iteration ends
    when that is 1e-3 nats for all rows together, far below what rows can tell.
    """
    p, n = r.shape
    mixture = simplex.uniform(p)
    for _ in range(max_iter):
        gain = np.mean(r / (mixture @ r), axis=1)
        if n * (gain.max() - 1.0) <= 1e-3:
            break
        mixture = simplex.clean(mixture * gain)
    return mixture


def _most_likely(
    traffic: FloatArray,
    reference: FloatArray,
    domain: NDArray[np.intp],
    size: int,
    rng: np.random.Generator,
) -> MixtureFit:
    """EM on the traffic; resamples move one Newton step from its answer, exactly on the simplex.

    With D = r / Σ_j λ̂_j r_j, g* a resampled mean of D and H = mean DD', the resampled
    log-likelihood is to second order g*'(λ − λ̂) − ½ (λ − λ̂)'H(λ − λ̂), and with H = LL' that is
    largest where ‖L'λ − L'λ̂ − L⁻¹g*‖² is least.
    """
    mixture = expectation_maximisation(traffic)
    D = traffic / (mixture @ traffic)
    L = _factor(D @ D.T / D.shape[1], lift=1e-8)
    gains = solve_triangular(L, resampled_means(D, size, rng).T, lower=True).T
    draws = np.array([simplex_least_squares(L.T, L.T @ mixture + gain) for gain in gains])

    def percentiles(confidence: float) -> Ends:
        tail = 50.0 * (1.0 - confidence)
        lower, upper = np.percentile(draws, [tail, 100.0 - tail], axis=0)
        return lower, upper

    return mixture, np.atleast_2d(np.cov(draws.T)), percentiles


# Of x'g − min g with entries of M up to 1: rounding leaves 1e-15, broken answers left 1e-2.
TOLERANCE = 1e-12


def simplex_least_squares(A: FloatArray, b: FloatArray) -> FloatArray:
    """argmin ‖Aλ − b‖² over the simplex, exactly, by one problem of non-negative least squares.

    On the simplex Aλ − b = (A − b1')λ =: Mλ.  For x = tλ the function ‖Mx‖² + (1'x − 1)² is
    t²f + (t − 1)² with f = ‖Mλ‖²; its least value over t is f/(1 + f), increasing in f.  So its
    minimiser over x ≥ 0, divided by its sum, is the answer.
    """
    M = A - b[:, None]
    scale = np.abs(M).max()
    M = M / scale if scale > 0 else M
    p = A.shape[1]
    x = simplex.clean(nnls(np.vstack([M, np.ones(p)]), np.append(np.zeros(len(b)), 1.0))[0])
    # scipy's factorisation can break when a dependent column enters whose slope is zero but for
    # rounding; the answer then still lies on the simplex, somewhere.
    return x if _excess(M, x) <= TOLERANCE else nearest_to_origin(M)


def _excess(M: FloatArray, x: FloatArray) -> float:
    """x'g − min_k g_k with g = M'Mx: zero at the minimum and nowhere else."""
    g = (M @ x) @ M
    return float(x @ g - g.min())


def nearest_to_origin(M: FloatArray, max_iter: int = 1000) -> FloatArray:
    """argmin ‖Mx‖² over the simplex by Wolfe's method: one column joins, others may leave.

    The column of least slope joins those in use; then x goes to the point of their flat that is
    nearest to the origin, and drops every column whose share reaches zero on the way.
    """

    def aimed(used: list[int]) -> FloatArray:
        """argmin ‖Mx‖² over Σx = 1 alone."""
        A, b = M[:, used[1:]] - M[:, used[:1]], -M[:, used[0]]
        rest = np.linalg.lstsq(A, b)[0]
        return np.append(1.0 - rest.sum(), rest)

    first = int(np.sum(M * M, axis=0).argmin())
    x, used = np.eye(M.shape[1])[first], [first]
    for _ in range(max_iter):
        if _excess(M, x) <= TOLERANCE:
            break
        used.append(int(((M @ x) @ M).argmin()))
        while (aim := aimed(used)).min() < 0.0:
            here = x[used]
            steps = np.where(aim < 0.0, here / np.maximum(here - aim, 1e-300), np.inf)
            x[used] = here + steps.min() * (aim - here)
            x[used[int(steps.argmin())]] = 0.0  # exactly, so that the loop ends
            used = [k for k in used if x[k] > 0.0]
        x[used] = aim
    return simplex.clean(x)
