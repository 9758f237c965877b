"""A classifier of domains from rows that stay in their parts: sums of gradients and Hessians.

d columns, p domains, r = p rows of coefficients, or 1 for two domains as scikit-learn has it:

    verb                 goes in                         comes out                      numbers
    columns              -                               weights, means, spreads        p+2d
    domain_likelihood    means, scales, θ (r, d + 1)     value, gradient, Hessian       1+r(d+1)+...

The Hessian has r²(d + 1)² numbers, and is asked for only where that is not too many.
"""

from __future__ import annotations

from builtins import map as builtin_map
from collections.abc import Iterable
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from scipy.special import log_softmax

from anymix._arrays import FloatArray, source_numbers
from anymix.densities import DomainClassifier, newton
from anymix.exceptions import InputError
from anymix.sources import Arrays, Map, Options, Query

# Coefficients up to which Newton's method is used; more are found by gradients alone.
MOST_COEFFICIENTS = 600
MAX_STEPS, TOL = 100, 1e-13


class FeaturePart:
    """Rows of numbers (n, d) and the source 0..p−1 of each, as a part that answers questions.

    Examples
    --------
    >>> part = FeaturePart(np.array([[0.0], [1.0]]), [0, 0], n_sources=2)
    >>> part.answer("columns", {}, {})["mean"]
    array([0.5])
    """

    def __init__(
        self,
        X: ArrayLike,
        sample_domain: ArrayLike,
        n_sources: int,
        sample_weight: ArrayLike | None = None,
    ):
        self.X, self.domain, self.n_sources = X, sample_domain, n_sources
        self.weight = sample_weight

    def rows(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The rows, their sources one-hot (n, p), and weights (n,), checked."""
        try:
            X = np.asarray(self.X, dtype=float)
        except (TypeError, ValueError) as error:
            raise InputError("a column", "holds words; code them as numbers first") from error
        if X.ndim != 2 or not np.isfinite(X).all():
            raise InputError("the rows", "must be a table of finite numbers; fill gaps first")
        domain = source_numbers(self.domain, self.n_sources, len(X), least=0)
        w = np.ones(len(X)) if self.weight is None else np.asarray(self.weight, dtype=float)
        return X, np.eye(self.n_sources)[domain], w

    def answer(self, verb: str, words: Options, arrays: Arrays) -> Arrays:
        """Answer "columns" or "domain_likelihood"."""
        if verb == "columns":
            return columns(*self.rows())
        if verb != "domain_likelihood":
            known = "columns or domain_likelihood"
            raise InputError(f"the question {verb!r}", f"is not one of rows: {known}")
        X, hot, w = self.rows()
        X = (X - arrays["mean"]) / arrays["scale"]
        return domain_likelihood(X, hot, w, arrays["theta"], words.get("hessian") == "yes")


def columns(X: FloatArray, hot: FloatArray, w: FloatArray) -> Arrays:
    """Weights of each source, and of each column the mean and Σw(x − mean)²."""
    total = max(float(w.sum()), np.finfo(float).tiny)
    mean = w @ X / total
    return {"weights": w @ hot, "mean": mean, "second": w @ (X - mean) ** 2}


def domain_likelihood(
    X: FloatArray, hot: FloatArray, w: FloatArray, theta: FloatArray, hessian: bool = True
) -> Arrays:
    """−Σ_i w_i log P(d_i | x_i) and its derivatives in θ (r, d + 1), the last column intercepts.

    P = softmax(θ x) over r = p rows, or (0, θ x) where there are two domains and one row.

    Examples
    --------
    >>> found = domain_likelihood(np.ones((1, 1)), np.eye(2)[:1], np.ones(1), np.zeros((1, 2)))
    >>> found["value"].round(3), found["gradient"]
    (np.float64(0.693), array([0.5, 0.5]))
    """
    X1 = np.column_stack([X, np.ones(len(X))])
    scores, r = X1 @ theta.T, len(theta)
    first = hot.shape[1] - r
    log_q = log_softmax(np.column_stack([np.zeros((len(X), first)), scores]), axis=1)
    Q = np.exp(log_q)[:, first:]
    found: Arrays = {
        "value": np.asarray(-(w @ (hot * log_q).sum(axis=1))),
        "gradient": (((Q - hot[:, first:]) * w[:, None]).T @ X1).ravel(),
    }
    if hessian:
        found["hessian"] = _hessian(X1, Q, w)
    return found


def _hessian(X1: FloatArray, Q: FloatArray, w: FloatArray) -> FloatArray:
    r, e = Q.shape[1], X1.shape[1]
    H = np.empty((r, e, r, e))
    for k in range(r):
        for j in range(k + 1):
            bend = w * Q[:, k] * ((k == j) - Q[:, j])
            H[k, :, j] = H[j, :, k] = (X1 * bend[:, None]).T @ X1
    return H.reshape(r * e, r * e)


def fit_domain_classifier(
    parts: Iterable[Any], map: Map = builtin_map, *, C: float = 1.0
) -> DomainClassifier:
    """Fit the logistic regression of `DomainClassifier` on rows in parts, by sums alone.

    Columns are standardised by sums, too.  The answer weighs rows as one that was fitted on the
    rows of all parts together.

    Parameters
    ----------
    parts : iterable of FeaturePart, or of what stands for one
    map : callable
        See `PartitionedProblem`.
    C : float
        Inverse strength of the ridge penalty on the coefficients.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> parts = [FeaturePart(rng.normal(k, 1.0, (40, 2)), np.full(40, k), 2) for k in range(2)]
    >>> router = fit_domain_classifier(parts)
    >>> router.log_responsibilities([[-1.0, -1.0], [2.0, 2.0]]).argmax(axis=0)
    array([0, 1])
    """
    if not C > 0:
        raise ValueError(f"C must be positive; got {C}.")
    parts = list(parts)
    weights, mean, scale = _standard(list(map(Query("columns"), parts)))
    shape = (1 if weights.size == 2 else weights.size, mean.size + 1)

    def summed(theta: FloatArray, hessian: bool) -> Arrays:
        arrays = {"mean": mean, "scale": scale, "theta": theta.reshape(shape)}
        words = {"hessian": "yes" if hessian else "no"}
        found = list(map(Query("domain_likelihood", words, arrays), parts))
        return {n: reduce(np.add, [one[n] for one in found]) for n in found[0]}

    theta = _fitted(summed, shape, C, float(weights.sum())).reshape(shape)
    arrays = {
        "log_prior": np.log(weights / weights.sum()),
        "n_features": np.array([mean.size], dtype=np.int64),
        "coefficients": theta[:, :-1].copy(),
        "intercepts": theta[:, -1].copy(),
        "single": np.array([0], dtype=np.int64),
        "mean": mean,
        "scale": scale,
    }
    return DomainClassifier.from_arrays(arrays, mean.size)


def _standard(found: list[Arrays]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weights of the sources, means and standard deviations of the columns, of all parts."""
    weights = np.sum([one["weights"] for one in found], axis=0)
    empty = np.flatnonzero(weights == 0)
    if empty.size or weights.size < 2:
        lost = f"source {empty[0]} has no row" if empty.size else "there is one source alone"
        raise ValueError(f"{lost}: a classifier of domains needs rows of two sources or more.")
    each = np.array([one["weights"].sum() for one in found])
    means = np.array([one["mean"] for one in found])
    total = each.sum()
    mean = each @ means / total
    second = np.sum([one["second"] for one in found], axis=0) + each @ (means - mean) ** 2
    variance, tiny = second / total, total * np.finfo(float).eps
    # As scikit-learn tells a constant column.
    constant = variance <= tiny * variance + (tiny * mean) ** 2
    return weights, mean, np.where(constant, 1.0, np.sqrt(variance))


def _fitted(summed: Any, shape: tuple[int, int], C: float, total: float) -> FloatArray:
    """Minimise the sums and |coefficients|²/2C, from zero."""
    r, e = shape
    ridge = np.tile(np.append(np.full(e - 1, 1.0 / C), 0.0), r)
    # Intercepts of all domains may move together: held at sum 0, where gradients lead from zero.
    common = np.tile(np.append(np.zeros(e - 1), 1.0), r)
    tie = np.outer(common, common) if r > 1 else np.zeros((r * e, r * e))

    def objective(theta: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        found = summed(theta, True)
        value = float(found["value"]) + 0.5 * float(ridge @ theta**2 + theta @ tie @ theta)
        gradient = found["gradient"] + ridge * theta + tie @ theta
        return value, gradient, found["hessian"] + np.diag(ridge) + tie

    def slope(theta: FloatArray) -> tuple[float, FloatArray]:
        found = summed(theta, False)
        value = float(found["value"]) + 0.5 * float(ridge @ theta**2)
        return value / total, (found["gradient"] + ridge * theta) / total

    start = np.zeros(r * e)
    if start.size <= MOST_COEFFICIENTS:
        return newton(objective, start, 0, TOL * total, MAX_STEPS)[0]
    options = {"maxiter": 1000, "gtol": 1e-10, "ftol": 1e-15}
    done = minimize(slope, start, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(done.x)
