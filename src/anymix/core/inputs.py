"""Check the user's inputs, with one clear sentence for each possible error."""

from __future__ import annotations

from numbers import Real

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax

from anymix._arrays import FloatArray, IntArray
from anymix.core.averaging import OwnMeasure
from anymix.core.losses import Loss

# Nothing has a loss beyond it; sums and squares of losses up to it are finite numbers.
LARGEST_LOSS = 1e30


def finite(values: ArrayLike, name: str) -> FloatArray:
    """Return a float array without NaN or infinity."""
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers, in rows of one length.") from error
    if not np.all(np.isfinite(array)):
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name} must be finite; found {array[where]} at index {where}.")
    return array


def positive(value: float, name: str) -> float:
    """Return a finite float above zero."""
    if not isinstance(value, Real):
        raise TypeError(f"{name} must be a number; got {value!r}.")
    if not (np.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be positive and finite; got {value}.")
    return float(value)


def vector(z: ArrayLike, p: int) -> FloatArray:
    """Return z as a vector (p,), which need not be on the simplex."""
    z = np.asarray(z, dtype=float)
    if z.shape != (p,):
        raise ValueError(f"z has shape {z.shape}; it must be ({p},).")
    return z


def mass_table(masses: ArrayLike, name: str, part: bool = False) -> FloatArray:
    """Return a (p, m) table of masses ≥ 0; every source needs some mass, unless it is a part."""
    D = finite(masses, name)
    if D.ndim != 2 or 0 in D.shape:
        raise ValueError(f"{name} must have shape (sources, points), none zero; got {D.shape}.")
    if D.min() < 0:
        k, i = np.argwhere(D < 0)[0]
        raise ValueError(f"{name} must not be negative; source {k} has {D[k, i]:g} at point {i}.")
    empty = np.flatnonzero(D.sum(axis=1) == 0)
    if empty.size and not part:
        raise ValueError(
            f"source {empty[0]} has no mass at any point next to source {D.sum(axis=1).argmax()}, "
            f"which has most; look at both, and leave the wrong one out of {name}."
        )
    return D


def outcomes(
    predictions: ArrayLike, targets: ArrayLike | None, loss: Loss, shape: tuple[int, ...]
) -> tuple[FloatArray, FloatArray]:
    """Return predictions (p, m[, c]) and targets (m[, c]) that fit the loss and each other."""
    h = finite(predictions, "predictions")
    if loss.takes == "label" and h.ndim == 3:
        labels = class_numbers(targets, *h.shape[1:])
        h = h[:, np.arange(labels.size), labels]
    elif loss.takes == "label" and targets is None:
        targets = np.zeros(shape[1])
    if targets is None:
        raise ValueError(f"targets are needed for the loss {type(loss).__name__}.")
    y = finite(targets, "targets")
    if h.shape[:2] != shape or h.ndim != (3 if loss.takes == "vector" else 2):
        wanted = f"{(*shape, 'classes')}" if loss.takes == "vector" else f"{shape}"
        raise ValueError(
            f"predictions have shape {h.shape}; with masses {shape} and the loss "
            f"{type(loss).__name__} they must have shape {wanted}."
        )
    if loss.takes == "vector" and y.ndim == 1:
        y = np.eye(h.shape[2])[class_numbers(y, y.size, h.shape[2])]
    if y.shape != h.shape[1:]:
        raise ValueError(f"targets have shape {y.shape}; they must have shape {h.shape[1:]}.")
    loss.check(h, y)
    # No loss may overflow, nor the sums and squares that are made of losses.  A convex loss of
    # numbers is largest at the ends of what the sources predict.
    ends = h if h.ndim == 3 else (h.min(axis=0), h.max(axis=0))
    with np.errstate(over="ignore", invalid="ignore"):
        if all((np.abs(loss.value(end, y)) <= LARGEST_LOSS).all() for end in ends):
            return h, y
        losses = np.abs([loss.value(h_k, y) for h_k in h])
    k, i = np.argwhere(~(losses <= LARGEST_LOSS))[0]
    raise ValueError(
        f"source {k} has a loss of {losses[k, i]:.3g} at point {i}, which is beyond "
        f"{LARGEST_LOSS:g} and cannot be averaged; leave the point out, or repair the source."
    )


def class_numbers(labels: ArrayLike | None, m: int, c: int) -> IntArray:
    """Return the class 0..c−1 of each of m points."""
    y = np.asarray(labels, dtype=float)
    if y.shape != (m,) or np.any(y != np.floor(y)) or y.min() < 0 or y.max() >= c:
        raise ValueError(f"targets must be {m} class numbers from 0 to {c - 1}.")
    return y.astype(np.intp)


def reference_measure(reference: ArrayLike | str | None, masses: FloatArray) -> FloatArray:
    """Return U (m,): the mean of the masses, a uniform measure, or the user's own."""
    m = masses.shape[1]
    if reference is None:
        return np.asarray(masses.mean(axis=0))
    if isinstance(reference, str):
        if reference != "uniform":
            raise ValueError(f"reference must be 'uniform', an array or None; got {reference!r}.")
        return np.full(m, 1.0 / m)
    return sample_weights(reference, m, "reference")


# Negligible next to η U; denormal numbers make a matrix product a hundred times slower.
LEAST_SHARE = 1e-100


def responsibilities(log_densities: ArrayLike, floor: bool = False) -> FloatArray:
    """r_k = D_k / Σ_j D_j at each point, from logarithms; −inf is allowed, but not in all sources.

    A source that has no share at any point, as the density of another is far above its own, keeps
    `LEAST_SHARE` with `floor`: it is a source all the same, with rows and a loss.
    """
    log_d = np.asarray(log_densities, dtype=float)
    if log_d.ndim != 2 or 0 in log_d.shape:
        raise ValueError(f"log_densities must have shape (sources, points); got {log_d.shape}.")
    if np.isnan(log_d).any() or np.isposinf(log_d).any():
        raise ValueError("log_densities must not be NaN or +inf.")
    lost = np.flatnonzero(np.isneginf(log_d).all(axis=0))
    if lost.size:
        raise ValueError(
            f"every source gives point {lost[0]} the density 0; drop such points or use densities "
            "with full support (a Gaussian kernel, a smoothed model)."
        )
    r = np.asarray(softmax(log_d, axis=0))
    r[r < LEAST_SHARE] = 0.0
    lost = r.max(axis=1) == 0 if floor else np.zeros(len(r), dtype=bool)
    r[lost] = np.where(np.isneginf(log_d[lost]), 0.0, LEAST_SHARE)
    return r


def sample_weights(weights: ArrayLike, m: int, name: str = "sample_weight") -> FloatArray:
    """Return m weights ≥ 0."""
    w = finite(weights, name)
    if w.shape != (m,) or w.min() < 0:
        raise ValueError(f"{name} must be {m} numbers ≥ 0; got shape {w.shape}.")
    return w


def own_measure(
    domain: IntArray,
    p: int,
    sample_weight: ArrayLike | None,
    order: IntArray,
    totals: ArrayLike | None = None,
) -> OwnMeasure:
    """P_k(i) = w_i / T_k, sorted by `order`; T_k, Σ w of k, is given for a part of all points."""
    domain = domain[order]
    bounds = np.searchsorted(domain, np.arange(p + 1))
    m = domain.size
    w = np.ones(m) if sample_weight is None else sample_weights(sample_weight, m)[order]
    here = np.bincount(domain, w, p)
    total = here if totals is None else finite(totals, "totals")
    if total.shape != (p,) or (total < here * (1 - 1e-9)).any():
        raise ValueError(
            f"totals must be {p} numbers, of each source the sum of the weights of all its points, "
            "and at least that of the points given."
        )
    if total.min() <= 0:
        raise ValueError(f"all sample weights of source {int(total.argmin())} are zero.")
    return OwnMeasure(w / total[domain], bounds, part=totals is not None)
