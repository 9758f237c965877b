"""h_z at new points, in logarithms: the four rules of the paper are one function.

    weight_k ∝ z_k D_k + (η/p) U         h_z = Σ_k weight_k h_k

rule          densities        predictions      paper
regression    D_k(x)           h_k(x)           eq. (1)
marginal      D_k(x)           h_k(x, y)        the marginal rule h̃: normalised if the h_k are
joint         D_k(x, y)        h_k(x, y)        eq. (2): not normalised over y
normalised    D_k(x, y)        h_k(x, y)        Thm 3: eq. (2) divided by its sum over y
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp, softmax

from anymix._arrays import FloatArray
from anymix.core import inputs, simplex

RULES = ("marginal", "regression", "joint", "normalised")


def source_weights(
    log_densities: ArrayLike,
    z: ArrayLike,
    eta: float = 0.0,
    log_reference: ArrayLike | None = None,
) -> FloatArray:
    """Return weight_k ∝ z_k D_k + (η/p) U at each point, which sum to 1 over the sources.

    Parameters
    ----------
    log_densities : array (p, n) or (p, n, c)
        log D_k, of any magnitude; only differences between sources count.
    z : array (p,)
    eta : float
        η ≥ 0.
    log_reference : float or array, optional
        log U.  None means the mean of the sources' densities, which follows them everywhere; a
        constant is a floor: far from all sources it falls back to equal weights.

    Examples
    --------
    >>> source_weights([[-20_000.0, 0.0], [-20_010.0, -3.0]], [0.5, 0.5]).round(3)
    array([[1.   , 0.953],
           [0.   , 0.047]])

    Paper: Eq. 1, Eq. 2.
    """
    log_d = _log_table(log_densities, "log_densities")
    z = simplex.check(z, log_d.shape[0])
    if not (np.isfinite(eta) and eta >= 0):
        raise ValueError(f"eta must be finite and not negative; got {eta}.")
    with np.errstate(divide="ignore"):
        log_w = log_d + np.log(z).reshape(-1, *[1] * (log_d.ndim - 1))
        if eta > 0:
            p = log_d.shape[0]
            U = logsumexp(log_d, axis=0) - np.log(p) if log_reference is None else log_reference
            log_w = np.logaddexp(log_w, np.log(eta / p) + _log_table(U, "log_reference"))
    # A point that no source with weight can have produced tells nothing: all sources alike.
    log_w[:, np.isneginf(log_w).all(axis=0)] = 0.0
    return np.asarray(softmax(log_w, axis=0))


def combine(
    log_densities: ArrayLike,
    predictions: ArrayLike,
    z: ArrayLike,
    eta: float = 0.0,
    rule: str = "marginal",
    log_reference: ArrayLike | None = None,
) -> FloatArray:
    """Return h_z: predictions (p, n) or (p, n, c) combined to (n,) or (n, c).

    Examples
    --------
    >>> combine([[0.0, -9.0], [-9.0, 0.0]], [[0.0, 0.0], [1.0, 1.0]], [0.5, 0.5]).round(3)
    array([0., 1.])

    Paper: Eq. 1, Eq. 2, Thm 3, App. C.
    """
    if rule not in RULES:
        raise ValueError(f"rule must be one of {', '.join(RULES)}; got {rule!r}.")
    log_d, h = np.asarray(log_densities, dtype=float), inputs.finite(predictions, "predictions")
    joint = rule in ("joint", "normalised")
    if rule == "normalised" and h.ndim != 3:
        raise ValueError(
            f"rule 'normalised' sums over classes: predictions must be (p, n, c); got {h.shape}."
        )
    if h.ndim < 2 or log_d.shape != (h.shape if joint else h.shape[:2]):
        wanted = "the shape of the predictions" if joint else "the shape (sources, points)"
        raise ValueError(
            f"rule {rule!r} needs log_densities of {wanted}; got {log_d.shape} with predictions "
            f"{h.shape}."
        )
    weights = source_weights(log_d, z, eta, log_reference)
    subscripts = "kic,kic->ic" if joint and h.ndim == 3 else "ki...,ki...->i..."
    if not joint and h.ndim == 3:
        subscripts = "ki,kic->ic"
    combined = np.einsum(subscripts, weights, h)
    return _normalised(combined) if rule == "normalised" else np.asarray(combined)


def _normalised(combined: FloatArray) -> FloatArray:
    """Divide by the sum over classes.

    Paper: Thm 3.
    """
    total = combined.sum(axis=-1, keepdims=True)
    if total.min() <= 0:
        raise ValueError(
            f"no class has a probability at point {int(total[:, 0].argmin())}, so it cannot be "
            "normalised; pass eta > 0 with a finite log_reference, or rule='marginal'."
        )
    return np.asarray(combined / total)


def _log_table(values: ArrayLike, name: str) -> FloatArray:
    table = np.asarray(values, dtype=float)
    if np.isnan(table).any() or np.isposinf(table).any():
        raise ValueError(f"{name} must not be NaN or +inf.")
    return table
