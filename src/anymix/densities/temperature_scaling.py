"""Temperature scaling: calibrate responsibilities on held-out points.

Log-densities in many dimensions differ by hundreds of nats, so raw responsibilities are almost 0
or 1 even where the likeliest source is wrong.  A temperature and an offset per source correct this.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import block_diag
from scipy.special import log_softmax
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from anymix._arrays import FloatArray, source_numbers
from anymix._parameters import Number, Words, check_parameters
from anymix.densities.domain_likelihood import (
    CalibrationReport,
    DomainRows,
    floored_responsibilities,
    newton,
    penalty,
)

MANY_POINTS = 10_000


class TemperatureScaling(BaseEstimator):
    """A temperature and an offset for each source, fitted by held-out domain log-likelihood.

    With log r_k the log-responsibilities of the raw densities, the calibrated ones are

        log q_k(x) = a_k log r_k(x) + b_k - logsumexp_j [a_j log r_j(x) + b_j],    a_k = 1 / T_k,

    and (a, b) minimise a convex function in which every source counts equally:

        -Σ_i w_i Σ_k t_ki log q_k(x_i) + prior * penalty(a, b),
        t_ki = (n 1[k = d_i] + doubt / p) / (n + doubt),  n the points of source d_i.

    First one temperature is fitted for all sources, the penalty drawing it to the identity
    (a = 1, b = 0); then each source gets its own, drawn to the common one.  The doubt says that n
    points cannot prove more certainty than about 1 - doubt / n.

    Parameters
    ----------
    temperature : {"own", "shared"}, default="own"
        One temperature for each source, or stop at the common one.
    prior : float, default=1.0
        Weight of the penalty, in points.
    doubt : float, default=0.1
        Part of a point in each source that is labelled evenly with all sources.
    max_iter : int, default=100
        Newton steps allowed.
    tol : float, default=1e-10
        Newton decrement, per point, at which the fit ends.

    Attributes
    ----------
    temperature_ : ndarray of shape (p,)
        T_k; above 1 where the densities were too sure.
    offset_ : ndarray of shape (p,)
        b_k, with sum 0.
    floor_ : float
        Raw log-responsibilities below it, -inf included, count as this value.
    report_ : CalibrationReport
        Domain log-loss and calibration error on the points of the fit, before and after.
    n_iter_ : int
        Newton steps taken.

    Examples
    --------
    >>> log_densities = np.array([[-10.0, -90.0, -30.0, -80.0], [-50.0, -20.0, -20.0, -40.0]])
    >>> scaling = TemperatureScaling().fit(log_densities, [0, 1, 0, 1])
    >>> np.exp(scaling.transform([[-20.0], [-40.0]])).round(2)
    array([[0.98],
           [0.02]])
    """

    KINDS: ClassVar = ("own", "shared")
    _takes: ClassVar = {
        "temperature": Words("own", "shared"),
        "prior": Number(above=0),  # else separable points would send a temperature to 0
        "doubt": Number(0),
        "max_iter": Number(1, whole=True),
        "tol": Number(above=0),
    }

    def __init__(
        self,
        temperature: str = "own",
        prior: float = 1.0,
        doubt: float = 0.1,
        max_iter: int = 100,
        tol: float = 1e-10,
    ) -> None:
        self.temperature = temperature
        self.prior = prior
        self.doubt = doubt
        self.max_iter = max_iter
        self.tol = tol

    def fit(
        self,
        log_densities: ArrayLike,
        sample_domain: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit on held-out points: rows that no density was trained on.

        Parameters
        ----------
        log_densities : array of shape (p, m)
            log D_k(x_i), or log-responsibilities; -inf for a density of zero.
        sample_domain : array of shape (m,)
            The source of each point, in 0..p-1.
        sample_weight : array of shape (m,), optional
            Weight of each point within its source.
        """
        check_parameters(self)
        table = _checked_log_densities(log_densities)
        p, m = table.shape
        # A source without a point is refused where the weights are balanced, with its remedy.
        domain = source_numbers(sample_domain, p, m, least=0)
        weight = np.ones(m) if sample_weight is None else np.asarray(sample_weight, np.float64)
        if weight.shape != (m,) or not np.isfinite(weight).all() or weight.min() < 0:
            raise ValueError(f"sample_weight must hold {m} finite numbers, none of them negative.")
        table, domain, weight = table[:, weight > 0], domain[weight > 0], weight[weight > 0]
        return self.fit_sums(DomainRows(table, domain, weight, self.doubt))

    def fit_sums(self, points: Any) -> Self:
        """Fit by sums over points, such as those of `DomainRows`."""
        return self.solve_sums(points).report_sums(points)

    def solve_sums(self, points: Any) -> Self:
        """Fit by sums, without a report."""
        check_parameters(self)
        # The products of a Newton step are short: a second thread would mostly wait.  Of few points
        # they are so short that nothing starts one, and to look for threads takes longer.
        here = isinstance(points, DomainRows) and points.n_points >= MANY_POINTS
        # The common temperature from the identity, then each source's own from the common one.
        p, self.n_iter_ = points.n_sources, 0
        theta = np.concatenate([[1.0], np.zeros(p)])
        with threadpool_limits(limits=1, user_api="blas") if here else nullcontext():
            for n_scales in (1,) if self.temperature == "shared" else (1, p):
                theta = np.concatenate([np.broadcast_to(theta[0], n_scales), theta[-p:]])
                # Scales are tied where there is only one.
                tie = block_diag(np.ones((p, 1)) if n_scales == 1 else np.eye(p), np.eye(p))
                objective = partial(self._objective, points, tie, theta)
                tol = self.tol * points.n_points
                theta, taken = newton(objective, theta, n_scales, tol, self.max_iter)
                self.n_iter_ += taken
        self.offset_, self.floor_ = theta[-p:], points.floor
        self.temperature_ = 1.0 / np.broadcast_to(theta[:-p], p)
        return self

    def report_sums(self, points: Any) -> Self:
        """Report confidence and accuracy of responsibilities, from sums."""
        tally = points.tally(self.temperature_, self.offset_)
        (loss, *gaps), (loss_after, *gaps_after) = np.split(tally[1:] / tally[0], 2)
        errors = float(np.abs(gaps).sum()), float(np.abs(gaps_after).sum())
        self.report_ = CalibrationReport(points.n_points, float(loss), float(loss_after), *errors)
        return self

    def _objective(
        self, points: Any, tie: FloatArray, centre: FloatArray, theta: FloatArray
    ) -> tuple[float, FloatArray, FloatArray]:
        """The likelihood and its penalty: value, gradient and Hessian."""
        value, gradient, hessian = points.likelihood(tie @ theta)
        extra = penalty(theta, centre, len(centre) - points.n_sources)
        return (
            value + self.prior * extra[0],
            tie.T @ gradient + self.prior * extra[1],
            tie.T @ hessian @ tie + self.prior * extra[2],
        )

    def transform(self, log_densities: ArrayLike) -> FloatArray:
        """Return calibrated log-responsibilities, (p, m), from raw log-densities, (p, m)."""
        check_is_fitted(self)
        table = _checked_log_densities(log_densities)
        if len(table) != len(self.offset_):
            raise ValueError(
                f"log_densities has {len(table)} rows, but the calibration was fitted with "
                f"{len(self.offset_)} sources: give one row for each of them."
            )
        log_r = floored_responsibilities(table, self.floor_)[0]
        raised = log_r / self.temperature_[:, None] + self.offset_[:, None]
        return np.asarray(log_softmax(raised, axis=0))


def _checked_log_densities(log_densities: ArrayLike) -> FloatArray:
    table = np.asarray(log_densities, dtype=np.float64)
    if table.ndim != 2 or table.size == 0:
        raise ValueError(
            f"log_densities has shape {table.shape}; it must be (p, m), one row for each source "
            "and one column for each point, neither empty."
        )
    if np.isnan(table).any() or np.isposinf(table).any():
        raise ValueError(
            "log_densities contains NaN or +inf: a log-density is a finite number, or -inf where "
            "the density is zero."
        )
    return table
