"""Compute h_z: the four rules of the paper in one function.

    weight_k ∝ z_k D_k + (η/p) U         h_z = Σ_k weight_k h_k

rule          densities        predictions      paper
regression    D_k(x)           h_k(x)           eq. (1)
marginal      D_k(x)           h_k(x, y)        the marginal rule h̃: normalised if the h_k are
joint         D_k(x, y)        h_k(x, y)        eq. (2): not normalised over y
normalised    D_k(x, y)        h_k(x, y)        Thm 3: eq. (2) divided by its sum over y

`combine` accepts log-densities of any magnitude; a `Combination` holds everything learned,
including the calibration; `mass_ratio` is the same sum at the fixed points of a problem, for many
z.

A `CrossFittedCombination` is the average h = (1/K) Σ_t h_t of combinations that were each learned
without one fold.  The loss is convex, so that L(D, h) ≤ (1/K) Σ_t L(D, h_t) on every distribution,
and the rows of fold t are new to h_t.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, softmax

from anymix._arrays import FloatArray, IntArray
from anymix.core import inputs, simplex
from anymix.core.pooling import Consulting
from anymix.core.records import Record
from anymix.core.responsibilities import Calibration, log_responsibilities

RULES = ("marginal", "regression", "joint", "normalised")
# Of what is read from files: long before it the weights are all alike.
LARGEST_ETA = 1e6
MOST_PARTS = 100

# Asks source k about some of the points, by their numbers, or about all of them: None.
Ask = Callable[[int, IntArray | None], FloatArray]


@dataclass(frozen=True, eq=False)
class Combination(Record):
    """Everything needed to compute h_z from the sources' log-densities and predictions.

    Attributes
    ----------
    z : array (p,)
        On the simplex.
    eta : float
        η ≥ 0, the part of the mean density in the weights.
    calibration : Calibration or None
        Of the densities; None uses them as they are.
    rule : "marginal" or "normalised"
        Weigh by D_k(x), or by D_k(x) h_k(x, y) and normalise over y.
    consulting : Consulting or None
        How each source pools all models before they are combined; None: each its own.

    Examples
    --------
    >>> combination = Combination(np.array([0.5, 0.5]), 0.0)
    >>> log_masses = np.array([[0.0, -9.0], [-9.0, 0.0]])
    >>> combination.predict(log_masses, np.array([[0.0, 0.0], [1.0, 1.0]])).round(3)
    array([0., 1.])
    >>> Combination.from_dict(combination.to_dict()).z
    array([0.5, 0.5])
    """

    z: FloatArray
    eta: float
    calibration: Calibration | None = None
    rule: str = "marginal"
    consulting: Consulting | None = None

    def check(self) -> None:
        """Raise a ValueError, in one sentence, for numbers that no fit can produce."""
        simplex.check(self.z, np.size(self.z))
        _check_eta(self.eta)
        if self.eta > LARGEST_ETA:
            raise ValueError(f"eta must be at most {LARGEST_ETA:g}; got {self.eta:g}.")
        if self.rule not in ("marginal", "normalised"):
            raise ValueError(f"rule must be 'marginal' or 'normalised'; got {self.rule!r}.")
        if self.calibration is not None:
            self.calibration.check(self.z.size)
        if self.consulting is not None:
            self.consulting.check(self.z.size)

    def log_responsibilities(self, log_masses: FloatArray) -> FloatArray:
        """log q_k from log D_k or log r_k, both (p, n)."""
        return log_responsibilities(log_masses, self.calibration)

    def model_weights(self, log_masses: FloatArray) -> FloatArray:
        """Σ_k weight_k a_kj: how much each *model* counts after pooling, (p, n), or (p + 1, n)."""
        weights = self.weights(log_masses)
        return weights if self.consulting is None else self.consulting.weights.T @ weights

    def heard(self, predictions: FloatArray) -> FloatArray:
        """What each source predicts after consulting, (p, n[, c])."""
        if self.consulting is None:
            return predictions[: self.z.size]
        return self.consulting.heard(predictions[: self.consulting.weights.shape[1]])

    def needed(self) -> NDArray[np.bool_]:
        """Which models the predictions need: (p,), or (p + 1,) if a generalist is consulted."""
        every = np.ones(self.z.size, dtype=bool)
        return every if self.consulting is None else self.consulting.needed()

    def weights(self, log_masses: FloatArray) -> FloatArray:
        """weight_k ∝ z_k q_k + η/p², (p, n): U is the mean of the q_k, which is 1/p.

        Paper: Eq. 1, Eq. 2.
        """
        log_q = log_responsibilities(log_masses, self.calibration)
        if self.eta > 0:  # no logarithms are needed
            return _shares(np.exp(log_q), self.z, self.eta)
        return source_weights(log_q, self.z)

    def predict(
        self, log_masses: FloatArray, predictions: FloatArray | Ask, skip_below: float = 0.0
    ) -> FloatArray:
        """h_z = Σ_k weight_k h'_k, (n,) or (n, c), h'_k being the pooled predictions.

        predictions are a table (p, n[, c]), or (p + 1, n[, c]) with the generalist in the last
        place; or a function that evaluates a source at some points, which is called only where
        its weight can be seen (see `mix`).

        Paper: Eq. 1, Eq. 2, Thm 3.
        """
        if callable(predictions) and (self.consulting or self.rule == "normalised"):
            predictions = _evaluated(predictions, self.needed())
        if not callable(predictions):
            predictions = self.heard(predictions)
        if self.rule == "marginal" or callable(predictions):
            return mix(self.weights(log_masses), predictions, skip_below)
        log_joint = self.log_responsibilities(log_masses)[:, :, None] + np.log(predictions)
        return combine(log_joint, predictions, self.z, self.eta, "normalised")


def _evaluated(ask: Ask, needed: NDArray[np.bool_]) -> FloatArray:
    """The predictions of all models at all points; zeros of those that are not needed."""
    found = {k: ask(k, None) for k in np.flatnonzero(needed).tolist()}
    none = np.zeros_like(next(iter(found.values())))
    return np.stack([found.get(k, none) for k in range(needed.size)])


def mix(weights: FloatArray, predictions: FloatArray | Ask, skip_below: float = 0.0) -> FloatArray:
    """Σ_k w_k h_k, from weights (p, n) that sum to 1 over the sources, (n,) or (n, c).

    A weight below skip_below/p is dropped, and the others make up for it: a probability moves by
    less than skip_below, a number by less than that times the spread of the sources' predictions.
    If predictions are a function, a source is not evaluated at points that dropped it.
    """
    p, n = weights.shape
    if not 0 <= skip_below < 1:
        raise ValueError(f"skip_below must be 0 or more and below 1; got {skip_below}.")
    if skip_below > 0:
        weights = np.where(weights < skip_below / p, 0.0, weights)
        weights /= weights.sum(axis=0)
    if not callable(predictions):
        return np.asarray(np.einsum("ki,ki...->i...", weights, predictions))
    total: FloatArray | None = None
    for k in range(p):
        seen = np.flatnonzero(weights[k])
        if not seen.size and (k < p - 1 or total is not None):
            continue
        part = slice(None) if seen.size == n else seen
        h = predictions(k, None if seen.size == n else seen)
        total = np.zeros((n, *h.shape[1:])) if total is None else total
        total[part] += weights[k, part].reshape(-1, *[1] * (h.ndim - 1)) * h
    assert total is not None
    return total


def _shares(r: FloatArray, z: FloatArray, eta: float) -> FloatArray:
    """z_k r_k + (η/p) U for r of sum 1, so that U, the mean of the r_k, is 1/p; normalised."""
    weights = z.reshape(-1, *[1] * (r.ndim - 1)) * r
    weights += eta / len(r) ** 2
    weights /= weights.sum(axis=0)
    return np.asarray(weights)


def mass_ratio(
    z: FloatArray, D: FloatArray, B: FloatArray, K0: FloatArray, J0: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """h_z = J_z/K_z and K_z, J = Σ_k z_k B_k + J0 with B = D∘h, K = Σ_k z_k D_k + K0.

    z is (p,), or a stack (s, p) of them.

    Paper: Eq. 1, Eq. 2.
    """
    K = z @ D + K0
    if B.ndim == 2:
        return (z @ B + J0) / K, K
    J = np.tensordot(z, B, axes=1) + J0
    return np.asarray(J / K[..., None]), K


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
    _check_eta(eta)
    if eta > 0 and log_reference is None and not np.isneginf(log_d).all(axis=0).any():
        return _shares(np.asarray(softmax(log_d, axis=0)), z, eta)
    with np.errstate(divide="ignore"):
        log_w = log_d + np.log(z).reshape(-1, *[1] * (log_d.ndim - 1))
        if eta > 0:
            p = log_d.shape[0]
            U = logsumexp(log_d, axis=0) - np.log(p) if log_reference is None else log_reference
            log_w = np.logaddexp(log_w, np.log(eta / p) + _log_table(U, "log_reference"))
    # A point that no source with weight can have produced says nothing: all sources alike.
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
    combined = np.einsum("kic,kic->ic", weights, h) if log_d.ndim == 3 else mix(weights, h)
    if rule != "normalised":
        return np.asarray(combined)
    total = combined.sum(axis=-1, keepdims=True)
    if total.min() <= 0:
        raise ValueError(
            f"no class has a probability at point {int(total[:, 0].argmin())}, so it cannot be "
            "normalised; pass eta > 0 with a finite log_reference, or rule='marginal'."
        )
    return np.asarray(combined / total)


def _check_eta(eta: float) -> None:
    if not (np.isfinite(eta) and eta >= 0):
        raise ValueError(f"eta must be finite and not negative; got {eta}.")


def _log_table(values: ArrayLike, name: str) -> FloatArray:
    table = np.asarray(values, dtype=float)
    if np.isnan(table).any() or np.isposinf(table).any():
        raise ValueError(f"{name} must not be NaN or +inf.")
    return table


@dataclass(frozen=True, eq=False)
class CrossFittedCombination(Record):
    """The average of several combinations of the same sources.

    Attributes
    ----------
    parts : tuple of Combination
        One at least, of one rule and one η.
    """

    parts: tuple[Combination, ...]

    def check(self) -> None:
        """Raise a ValueError for parts that are inconsistent."""
        if not 0 < len(self.parts) <= MOST_PARTS:
            raise ValueError(f"an average needs 1 to {MOST_PARTS} parts; got {len(self.parts)}.")
        for part in self.parts:
            part.check()
        if len({(part.z.size, part.eta, part.rule) for part in self.parts}) > 1:
            raise ValueError("the parts of an average have one number of sources, η and rule.")

    @classmethod
    def of(cls, combination: Combination | CrossFittedCombination) -> CrossFittedCombination:
        """Return an average unchanged, and a single combination as an average of one part."""
        if isinstance(combination, Combination):
            return CrossFittedCombination((combination,))
        return combination

    @property
    def z(self) -> FloatArray:
        """The mean of the parts' z, (p,)."""
        return np.asarray(np.mean([part.z for part in self.parts], axis=0))

    @property
    def eta(self) -> float:
        """η, of all parts."""
        return self.parts[0].eta

    @property
    def rule(self) -> str:
        """The rule, of all parts."""
        return self.parts[0].rule

    @property
    def consults(self) -> bool:
        """Whether any source consults another, in any part."""
        return any(part.consulting is not None for part in self.parts)

    @property
    def pool_weights(self) -> FloatArray:
        """a_kj, the mean weight of model j in the pool of source k: (p, p) or (p, p + 1)."""
        pools = [part.consulting for part in self.parts]
        n_models = max((pool.weights.shape[1] for pool in pools if pool is not None), default=0)
        own = np.eye(self.z.size, max(n_models, self.z.size))
        each = [own if pool is None else pool.weights for pool in pools]
        return np.asarray(np.mean(each, axis=0))

    def needed(self) -> NDArray[np.bool_]:
        """Which models the predictions need: (p,), or (p + 1,) if a generalist is consulted."""
        found = np.zeros(self.pool_weights.shape[1], dtype=bool)
        for part in self.parts:
            needed = part.needed()
            found[: needed.size] |= needed
        return found

    def heard(self, predictions: FloatArray) -> FloatArray:
        """What each source predicts after consulting the others, on average over the parts."""
        each = [part.heard(predictions) for part in self.parts]
        return np.asarray(np.mean(each, axis=0)) if len(each) > 1 else each[0]

    def consulted(self, ask: Ask) -> FloatArray:
        """Like `heard`, evaluating models only where they are needed."""
        return self.heard(_evaluated(ask, self.needed()))

    def with_z(self, z: FloatArray) -> CrossFittedCombination:
        """Replace the z of every part by one z."""
        return CrossFittedCombination(tuple(replace(part, z=z) for part in self.parts))

    def log_responsibilities(self, log_masses: FloatArray) -> FloatArray:
        """log q_k from log D_k or log r_k, both (p, n): of several parts, of their mean q_k."""
        if len(self.parts) == 1:
            return self.parts[0].log_responsibilities(log_masses)
        logs = np.stack([part.log_responsibilities(log_masses) for part in self.parts])
        return np.asarray(np.logaddexp.reduce(logs, axis=0) - np.log(len(self.parts)))

    def weights(self, log_masses: FloatArray) -> FloatArray:
        """The mean weights of the sources, (p, n), which sum to 1; see `Combination`."""
        return np.asarray(np.mean([part.weights(log_masses) for part in self.parts], axis=0))

    def model_weights(self, log_masses: FloatArray) -> FloatArray:
        """How much each *model* counts after pooling, (p, n); see `Combination`."""
        each = [part.model_weights(log_masses) for part in self.parts]
        wide = max(map(len, each))
        return np.asarray(np.mean([np.pad(w, ((0, wide - len(w)), (0, 0))) for w in each], axis=0))

    def predict(
        self, log_masses: FloatArray, predictions: FloatArray | Ask, skip_below: float = 0.0
    ) -> FloatArray:
        """(1/K) Σ_t h_t, (n,) or (n, c); parameters are those of `Combination.predict`.

        Without consulting the marginal rule is linear in the weights, so that one sum serves all
        parts.
        """
        if not self.consults and self.rule == "marginal":
            given = predictions if callable(predictions) else predictions[: self.z.size]
            return mix(self.weights(log_masses), given, skip_below)
        if callable(predictions):
            predictions = _evaluated(predictions, self.needed())
        each = [part.predict(log_masses, predictions) for part in self.parts]
        return np.asarray(np.mean(each, axis=0))
