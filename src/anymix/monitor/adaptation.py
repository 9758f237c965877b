"""Adapt z to the traffic: by λ̂ where it is reliable, or by a few target labels."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from scipy.special import softmax

from anymix._arrays import FloatArray, n_rows
from anymix.core import Loss, Penalty, Problem, SolverWarning, simplex
from anymix.monitor.alarm import Alarm
from anymix.monitor.mixture import MixtureEstimate
from anymix.monitor.scores import log_table
from anymix.sources import held_out_predictions

# A share below e^-50 is negligible next to η; its square must not be a denormal number.
LOWEST = -50.0


def adapt_z(
    z_robust: ArrayLike, estimate: MixtureEstimate, alarm: Alarm | None = None
) -> FloatArray:
    """Blend λ̂ with the robust z by the width of its interval.

    z = t λ̂ + (1 − t) z_robust,    t = 1 − max_k (upper_k − lower_k),
    t = 0 if the alarm rings or was not tested.

    On traffic of mixture λ, z = λ loses at most Σ_k λ_k ε_k + ηM, which may be more than the robust
    z loses there: where labelled held-out rows are at hand, `Monitor.adapt` does better.  A wrong
    λ̂ has no such bound, and an interval from 0 to 1 says nothing, so z moves further the narrower
    the interval is.

    Parameters
    ----------
    z_robust : array (p,)
        The z that is good on every mixture.
    estimate : MixtureEstimate
    alarm : Alarm, optional
        If it rings, λ̂ may describe no real mixture and z_robust is returned.

    Examples
    --------
    >>> estimate = MixtureEstimate(
    ...     mixture=np.array([0.9, 0.1]), lower=np.array([0.8, 0.0]), upper=np.array([1.0, 0.2]),
    ...     condition_number=1.5, method="inversion", n=200, confidence=0.95)
    >>> adapt_z([0.5, 0.5], estimate).round(2)
    array([0.82, 0.18])
    """
    z = simplex.check(z_robust, len(estimate.mixture), "z_robust")
    if alarm is not None and (alarm.rings or not alarm.tested):
        return z
    trust = 1.0 - float(np.max(estimate.upper - estimate.lower))
    return simplex.clean(trust * estimate.mixture + (1.0 - trust) * z)


def adapt_labelled(
    log_r: ArrayLike,
    predictions: ArrayLike,
    targets: ArrayLike,
    z_prior: ArrayLike,
    loss: str | Loss = "squared",
    *,
    eta: float = 1e-3,
    shrinkage: float | str = "auto",
) -> FloatArray:
    """Learn z from a few labelled target rows, held near a prior z.

    min_z  mean_i ℓ(h_z(x_i), y_i) + ρ KL(z_prior ‖ z)

    Parameters
    ----------
    log_r : array (p, n)
        Log-responsibilities of the target rows.
    predictions : array (p, n) or (p, n, c)
        h_k at the target rows, as `anymix.core.Problem` takes them.
    targets : array (n,) or (n, c)
        y_i.
    z_prior : array (p,)
        The robust z, or the answer of `adapt_z`.
    loss : str or Loss
    eta : float
        η > 0, as in prediction.
    shrinkage : float or "auto"
        ρ; "auto" takes three times the noise of the mean loss, see `label_noise`: it fades as
        labels come in.

    Examples
    --------
    Labels that agree with the first source move z towards it.

    >>> y = np.linspace(0.0, 1.0, 50)
    >>> predictions = np.stack([y, y + 1.0])
    >>> even = np.full((2, 50), np.log(0.5))
    >>> z = adapt_labelled(even, predictions, y, [0.5, 0.5])
    >>> bool(z[0] > 0.8)
    True
    """
    table = np.maximum(log_table(log_r, "log_r"), LOWEST)
    p, n = table.shape
    prior = simplex.check(z_prior, p, "z_prior")
    problem = Problem(
        np.exp(table), predictions, targets, loss, eta, weights=np.full((p, n), 1.0 / n)
    )
    if shrinkage == "auto":
        # Without noise all sources agree at these rows, and any amount leaves z at the prior.
        shrinkage = 3.0 * label_noise(problem, prior) or 1.0
    if isinstance(shrinkage, str) or not np.isfinite(shrinkage) or shrinkage < 0:
        raise ValueError(f"shrinkage must be 'auto' or a number ≥ 0; got {shrinkage!r}.")
    return _least_loss(problem, Penalty(float(shrinkage), prior))


def adapt_to_labels(model: Any, X: Any, y: ArrayLike) -> Any:
    """Return a copy of a model whose z is learned from labelled rows, held near its z."""
    tables, used = model.evaluate(X, y, np.zeros(n_rows(X), dtype=np.intp)), model.combination_
    tables = replace(tables, predictions=used.heard(tables.all_predictions), generalist=None)
    log_r = used.log_responsibilities(tables.log_masses)
    known = tables.predictions, np.asarray(tables.targets), model.z_, model.loss
    return with_z(model, adapt_labelled(log_r, *known, eta=model.eta))


def with_z(model: Any, z: FloatArray) -> Any:
    """Return a copy of a model with another z, which has no certificate."""
    adapted = copy.copy(model)
    adapted.combination_ = model.combination_.with_z(z)
    adapted.certificate_ = None
    adapted.__dict__.pop("comparison_", None)
    held_out = getattr(model, "held_out_", None)
    if held_out is not None:
        judged = held_out_predictions(model.tables_, adapted.combination_, held_out.fold)
        adapted.held_out_ = replace(held_out, predictions=judged)
    return adapted


def _least_loss(problem: Problem, penalty: Penalty) -> FloatArray:
    """Minimise the one loss of the problem, whose rows are all alike, plus the penalty.

    The loss is not convex in z: the search starts at the prior and near each source.  With
    z = softmax(t) and s the slope in z, the slope in t is z (s − z's).
    """

    def objective(t: FloatArray) -> tuple[float, FloatArray]:
        z = softmax(t)
        L, G = problem.losses_and_jacobian(z)
        slope = G[0] - penalty.pull(z) if penalty.rho > 0 else G[0]
        return float(L[0]) + float(penalty.values(z)), z * (slope - z @ slope)

    p = problem.n_sources
    ends = np.vstack([penalty.prior, 0.9 * np.eye(p) + 0.1 * penalty.prior])
    starts = np.log(0.999 * ends + 0.001 / p)
    scale = max(abs(objective(starts[0])[0]), penalty.rho, np.finfo(float).tiny)
    found = min((_descend(objective, t, scale) for t in starts), key=lambda end: end[1])
    return np.asarray(softmax(found[0]))


def _descend(
    objective: Callable[[FloatArray], tuple[float, FloatArray]],
    t: FloatArray,
    scale: float,
    max_rounds: int = 20,
) -> tuple[FloatArray, float]:
    """Repeat L-BFGS on objective / scale until it no longer helps: the end and its value."""
    value = np.inf
    # At a kink the search ends where its memory of curvature misleads; a fresh one goes on.
    for _ in range(max_rounds):
        found = minimize(
            lambda t: tuple(part / scale for part in objective(t)),
            t,
            jac=True,
            method="L-BFGS-B",
            bounds=[(-30.0, 30.0)] * len(t),
            options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 500},
        )
        t, gained, value = found.x, value - float(found.fun), float(found.fun)
        if gained <= 1e-6:
            return t, value
    warnings.warn(
        f"z still improved after {max_rounds} searches, the last by {gained:.1e} of the target "
        "loss; raise shrinkage or give more labels.",
        SolverWarning,
        stacklevel=5,
    )
    return t, value


def label_noise(problem: Problem, z: FloatArray) -> float:
    """The largest error over sources of the mean of d_k = ℓ(h_z, y) − ℓ(h_k, y) over n rows.

    max_k max(standard error of mean d_k, max_i |d_ki| / n): the second is the part of one row,
    without which one or two labels that agree by chance would seem certain.
    """
    y, n = problem.targets, problem.n_points
    combined = problem.loss.value(problem.ratio(z)[0], y)
    own = np.stack([problem.loss.value(h, y) for h in problem.predictions])
    d = combined - own
    return float(max(d.std(axis=1).max() / np.sqrt(n), np.abs(d).max() / n))
