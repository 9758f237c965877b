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
from anymix.sources import Arrays, Map, Options, Query, joined_scales

# Coefficients up to which Newton's method is used; more are found by gradients alone.
MOST_COEFFICIENTS = 600
MAX_STEPS, TOL = 100, 1e-13


class FeaturePart:
    """Rows of numbers (n, d) and the source 0..p−1 of each, as a part that responds to queries.

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
            raise InputError("a column", "holds words; encode them as numbers first") from error
        if X.ndim != 2 or not np.isfinite(X).all():
            raise InputError(
                "the rows", "must be a table of finite numbers; impute missing values first"
            )
        domain = source_numbers(self.domain, self.n_sources, len(X), least=0)
        w = np.ones(len(X)) if self.weight is None else np.asarray(self.weight, dtype=float)
        return X, np.eye(self.n_sources)[domain], w

    def answer(self, verb: str, words: Options, arrays: Arrays) -> Arrays:
        """Answer "columns": weights, means and Σw(x − mean)²; or "domain_likelihood"."""
        X, hot, w = self.rows()
        if verb == "columns":
            mean = w @ X / max(float(w.sum()), np.finfo(float).tiny)
            return {"weights": w @ hot, "mean": mean, "second": w @ (X - mean) ** 2}
        if verb != "domain_likelihood":
            known = "columns or domain_likelihood"
            raise InputError(f"the query {verb!r}", f"is not one for rows: {known}")
        X = (X - arrays["mean"]) / arrays["scale"]
        return domain_likelihood(X, hot, w, arrays["theta"], words.get("hessian") == "yes")


def domain_likelihood(
    X: FloatArray, hot: FloatArray, w: FloatArray, theta: FloatArray, hessian: bool = True
) -> Arrays:
    """−Σ_i w_i log P(d_i | x_i), P = softmax(θ x) or (0, θ x), and derivatives in θ (r, d + 1)."""
    X1, (r, e) = np.column_stack([X, np.ones(len(X))]), theta.shape
    first = hot.shape[1] - r
    scores = np.column_stack([np.zeros((len(X), first)), X1 @ theta.T])
    log_q = log_softmax(scores, axis=1)
    Q = np.exp(log_q)[:, first:]
    found: Arrays = {
        "value": np.asarray(-(w @ (hot * log_q).sum(axis=1))),
        "gradient": (((Q - hot[:, first:]) * w[:, None]).T @ X1).ravel(),
    }
    if hessian:
        H = np.empty((r, e, r, e))
        for k in range(r):
            for j in range(k + 1):
                bend = w * Q[:, k] * ((k == j) - Q[:, j])
                H[k, :, j] = H[j, :, k] = (X1 * bend[:, None]).T @ X1
        found["hessian"] = H.reshape(r * e, r * e)
    return found


def fit_domain_classifier(
    parts: Iterable[Any], map: Map = builtin_map, *, C: float = 1.0
) -> DomainClassifier:
    """Fit the logistic regression of `DomainClassifier` on rows in parts, by sums alone.

    Columns are standardised by sums, too.  The result weights rows like a classifier fitted on the
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
    total, r, e = float(weights.sum()), 1 if weights.size == 2 else weights.size, mean.size + 1
    ridge = np.tile(np.append(np.full(e - 1, 1.0 / C), 0.0), r)
    # Intercepts of all domains may move together: held at sum 0, where gradients lead from zero.
    common = np.tile(np.append(np.zeros(e - 1), float(r > 1)), r)

    def objective(theta: FloatArray, hessian: bool = True) -> tuple[float, FloatArray, Any]:
        arrays = {"mean": mean, "scale": scale, "theta": theta.reshape(r, e)}
        words = {"hessian": "yes" if hessian else "no"}
        found = list(map(Query("domain_likelihood", words, arrays), parts))
        sums = {n: reduce(np.add, [one[n] for one in found]) for n in found[0]}
        shared = common @ theta
        value = float(sums["value"]) + 0.5 * float(ridge @ theta**2 + shared**2)
        gradient = sums["gradient"] + ridge * theta + shared * common
        bend = sums["hessian"] + np.diag(ridge) + np.outer(common, common) if hessian else None
        return value, gradient, bend

    def mean_slope(theta: FloatArray) -> tuple[float, FloatArray]:
        value, gradient, _ = objective(theta, False)
        return value / total, gradient / total

    theta = np.zeros(r * e)
    if theta.size <= MOST_COEFFICIENTS:
        theta = newton(objective, theta, 0, TOL * total, MAX_STEPS)[0]
    else:
        options = {"maxiter": 1000, "gtol": 1e-10, "ftol": 1e-15}
        theta = minimize(mean_slope, theta, jac=True, method="L-BFGS-B", options=options).x
    theta = np.reshape(theta, (r, e))
    arrays = {
        "log_prior": np.log(weights / total),
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
    known = joined_scales(found)
    weights = known["weights"]
    empty = np.flatnonzero(weights == 0)
    if empty.size or weights.size < 2:
        lost = f"source {empty[0]} has no row" if empty.size else "there is one source alone"
        raise ValueError(f"{lost}: a classifier of domains needs rows of two sources or more.")
    return weights, known["mean"], known["scale"]
