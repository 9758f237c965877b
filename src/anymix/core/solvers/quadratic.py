"""min_d max_k (f_k + G_k d) + ½ d'Bd over Σ d = 0, d ≥ −room: a stack of them at once.

With multipliers λ of the functions and ν of the bounds, at the minimum

    Bd + Gᵀλ + y = ν ≥ 0    d ≥ −room    λ ≥ 0    s = t − f − Gd ≥ 0    λ's = ν'(d + room) = 0.

Which functions are `on` (s = 0) and which d are `free` (ν = 0) decides all; given a guess of both,
the rest is one linear system.  Whatever then has the wrong sign is swapped, and few rounds of that
lead to the minimum; where they do not, an interior method, which needs no guess, takes over.
Every system is solved for all of the stack in one call.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray
from anymix.core.solvers.interior import LEAST_AHEAD, LEAST_SPREAD, MEHROTRA
from anymix.core.solvers.oracle import TINY

BoolArray = NDArray[np.bool_]

# Rounds of swaps: of 5000 models on random problems nine in ten took at most four.
MAX_SWAPS = 12
# Rounds without fewer wrong signs after which one is swapped at a time: all at once can circle.
PATIENCE = 3
# What counts as a wrong sign, relative to the numbers that it is made of.
SIGN = 1e-10
# Keeps systems regular where more functions are on than directions are free.
REGULAR = 1e-13
# The interior method: how far it may go, how far it starts from the bounds, how near it must come.
MAX_STEPS, INWARD, INSIDE, NEAR = 40, 0.1, 0.995, 1e-9
# Shares below this are at their bound, multipliers below it are off, where it ends.
SHARE = 1e-7


class Quadratics(NamedTuple):
    """f (s, p), G (s, p, p), B (s, p, p) positive, room (s, p) ≥ 0."""

    f: FloatArray
    G: FloatArray
    B: FloatArray
    room: FloatArray

    def taken(self, some: NDArray[np.intp]) -> Quadratics:
        """Return some of the stack."""
        return Quadratics(*(part[some] for part in self))

    def values(self, d: FloatArray) -> FloatArray:
        """max_k (f_k + G_k d) + ½ d'Bd, (s,)."""
        return np.asarray(self.functions(d).max(axis=1))

    def functions(self, d: FloatArray) -> FloatArray:
        """f_k + G_k d + ½ d'Bd, (s, p)."""
        bent = 0.5 * (d * times(self.B, d)).sum(axis=1)
        return np.asarray(self.f + times(self.G, d) + bent[:, None])


class Guess(NamedTuple):
    """Which d are free and which functions are on, both (s, p)."""

    free: BoolArray
    on: BoolArray


class Minima(NamedTuple):
    """d and λ (s, p), and the sets that they were found with."""

    d: FloatArray
    multipliers: FloatArray
    sets: Guess


def times(A: FloatArray, x: FloatArray) -> FloatArray:
    """A x for a stack of both, (s, n)."""
    return np.asarray((A @ x[:, :, None])[:, :, 0])


def minimise(stack: Quadratics, guess: Guess) -> Minima:
    """Minimise each of the stack: by swaps from the guess, else by the interior method."""
    found, solved = swap(stack, guess)
    left = np.flatnonzero(~solved)
    if left.size:
        other = _inside(stack.taken(left))
        for mine, theirs in zip((*found[:2], *found.sets), (*other[:2], *other.sets), strict=True):
            mine[left] = theirs
    return found


def swap(stack: Quadratics, guess: Guess, most: int = MAX_SWAPS) -> tuple[Minima, BoolArray]:
    """Swap what has the wrong sign, at most so often; also tell which of the stack are solved."""
    s, p = stack.f.shape
    K, rhs = _system(stack)
    at_bound = np.concatenate([-stack.room, np.zeros((s, p + 2))], axis=1)
    held = np.ones((s, 2 * p + 2), dtype=bool)
    held[:, :p], held[:, p : 2 * p] = guess
    signs, eye = _Signs(stack), np.eye(2 * p + 2)
    x, solved = np.zeros((s, 2 * p + 2)), np.zeros(s, dtype=bool)
    fewest, patience = np.full(s, held[0].size), np.full(s, PATIENCE)
    left = np.arange(s)
    for _ in range(most):
        on = held[left]
        x[left] = _solved(
            np.where(on[:, :, None], K[left], eye), np.where(on, rhs[left], at_bound[left])
        )
        wrong = signs.wrong(left, on, x[left], times(K[left], x[left]) - rhs[left])
        n_wrong = wrong.sum(axis=1)
        solved[left] = (n_wrong == 0) & np.isfinite(x[left]).all(axis=1)
        patience[left] = np.where(n_wrong < fewest[left], PATIENCE, patience[left] - 1)
        fewest[left] = np.minimum(fewest[left], n_wrong)
        held[left] ^= _last_alone(wrong, patience[left] < 0)
        none = left[~held[left, p : 2 * p].any(axis=1)]
        held[none, p + stack.f[none].argmax(axis=1)] = True
        left = left[n_wrong > 0]
        if not left.size:
            break
    free, on = held[:, :p], held[:, p : 2 * p]
    lam = np.maximum(np.where(on, x[:, p : 2 * p], 0.0), 0.0)
    return Minima(x[:, :p], lam, Guess(free, on)), solved


class _Signs:
    """What the signs must be, up to rounding, which the sizes of the numbers tell."""

    def __init__(self, stack: Quadratics):
        self.room = stack.room
        self.reach = stack.room.sum(axis=1, keepdims=True)
        self.slope = np.abs(stack.G).max(axis=(1, 2))[:, None]

    def wrong(
        self, which: NDArray[np.intp], on: BoolArray, x: FloatArray, rest: FloatArray
    ) -> BoolArray:
        """Bounds that d breaks or ν < 0, and λ < 0 or functions above t."""
        p = self.room.shape[1]
        reach, slope = self.reach[which], self.slope[which]
        found = np.zeros_like(on)
        outside = x[:, :p] + self.room[which] < -SIGN * reach
        found[:, :p] = np.where(on[:, :p], outside, rest[:, :p] < -SIGN * slope)
        above = rest[:, p : 2 * p] > SIGN * slope * reach
        found[:, p : 2 * p] = np.where(on[:, p : 2 * p], x[:, p : 2 * p] < -SIGN, above)
        return found


def _system(stack: Quadratics) -> tuple[FloatArray, FloatArray]:
    """The conditions with every d free and every function on, in (d, λ, t, y); t from max f on."""
    s, p = stack.f.shape
    K, rhs = np.zeros((s, 2 * p + 2, 2 * p + 2)), np.zeros((s, 2 * p + 2))
    K[:, :p, :p] = stack.B
    K[:, :p, p : 2 * p], K[:, p : 2 * p, :p] = stack.G.transpose(0, 2, 1), stack.G
    K[:, p : 2 * p, 2 * p] = K[:, 2 * p, p : 2 * p] = -1.0
    K[:, :p, 2 * p + 1] = K[:, 2 * p + 1, :p] = 1.0
    steep, bend = (np.abs(part).max(axis=(1, 2)) for part in (stack.G, stack.B))
    i = np.arange(p, 2 * p)
    K[:, i, i] = (-REGULAR * steep**2 / np.maximum(bend, TINY))[:, None]
    rhs[:, p : 2 * p] = stack.f.max(axis=1, keepdims=True) - stack.f
    rhs[:, 2 * p] = -1.0
    return K, rhs


def _last_alone(wrong: BoolArray, alone: BoolArray) -> BoolArray:
    """Keep but the last of the wrong signs where `alone` says so."""
    if not alone.any():
        return wrong
    last = wrong.shape[1] - 1 - wrong[:, ::-1].argmax(axis=1)
    one = np.arange(wrong.shape[1]) == last[:, None]
    return np.asarray(np.where(alone[:, None], wrong & one, wrong))


def _solved(A: FloatArray, b: FloatArray) -> FloatArray:
    """A⁻¹b for a stack; least squares where one of them is singular."""
    try:
        return np.asarray(np.linalg.solve(A, b[:, :, None])[:, :, 0])
    except np.linalg.LinAlgError:
        pairs = zip(A, b, strict=True)
        return np.stack([np.linalg.lstsq(one, rhs, rcond=None)[0] for one, rhs in pairs])


class _Inner(NamedTuple):
    """Primal x = d + room, t, slacks s; dual λ, ν, y; also a direction."""

    x: FloatArray
    t: FloatArray
    s: FloatArray
    lam: FloatArray
    nu: FloatArray
    y: FloatArray

    def moved(self, d: _Inner, primal: FloatArray, dual: FloatArray) -> _Inner:
        steps = (primal, primal, primal, dual, dual, dual)
        return _Inner(*(mine + step * by for mine, by, step in zip(self, d, steps, strict=True)))

    def steps(self, d: _Inner) -> tuple[FloatArray, FloatArray]:
        primal = np.minimum(_to_boundary(self.s, d.s), _to_boundary(self.x, d.x))
        dual = np.minimum(_to_boundary(self.lam, d.lam), _to_boundary(self.nu, d.nu))
        return primal, dual

    def gap(self) -> FloatArray:
        return np.asarray((self.lam * self.s + self.nu * self.x).sum(axis=1, keepdims=True))


def _to_boundary(x: FloatArray, dx: FloatArray) -> FloatArray:
    """The largest a ≤ 1 with x + a dx ≥ 0, for each of the stack, (s, 1)."""
    ratio = np.divide(-x, dx, out=np.ones_like(x), where=dx < 0)
    return np.asarray(np.minimum(1.0, ratio.min(axis=1, keepdims=True)))


def _inside(stack: Quadratics) -> Minima:
    """Minimise by Mehrotra's predictor and corrector, all of the stack to the end."""
    p, total = stack.f.shape[1], stack.room.sum(axis=1, keepdims=True)
    x = (1 - INWARD) * stack.room + INWARD * np.maximum(total, TINY) / p
    f = stack.functions(x - stack.room)
    spread = np.maximum(np.ptp(f, axis=1), LEAST_SPREAD * (TINY + np.abs(f).max(axis=1)))[:, None]
    t = f.max(axis=1, keepdims=True) + spread
    at = _Inner(x, t, t - f, np.full_like(f, 1.0 / p), spread / (p * p * x), np.zeros_like(t))
    first = at.gap()
    for _ in range(MAX_STEPS):
        at = _step(stack, at)
        if (at.gap() < NEAR * first).all():
            break
    d = at.x * (total / at.x.sum(axis=1, keepdims=True)) - stack.room
    lam = at.lam / at.lam.sum(axis=1, keepdims=True)
    return Minima(d, lam, Guess(at.x > SHARE * total, lam > SHARE))


def _step(stack: Quadratics, at: _Inner) -> _Inner:
    """Predict with μ = 0, see how far that gets, aim for the μ it earned, correct, step."""
    p, d = stack.f.shape[1], at.x - stack.room
    Bd, w = times(stack.B, d), at.lam / at.s
    GT = stack.G.transpose(0, 2, 1)
    # The common ½d'Bd of all functions is a function of its own: λ sums to 1.
    dual = times(GT, at.lam) + Bd - at.nu + at.y
    slack = at.s - at.t + stack.f + times(stack.G, d)
    A = np.zeros((len(d), p + 2, p + 2))
    i = np.arange(p)
    A[:, :p, :p] = stack.B + (GT * w[:, None, :]) @ stack.G
    A[:, i, i] += at.nu / at.x
    A[:, :p, p] = A[:, p, :p] = -times(GT, w)
    A[:, p, p], A[:, :p, p + 1], A[:, p + 1, :p] = w.sum(axis=1), 1.0, 1.0

    def direction(rs: FloatArray, rx: FloatArray) -> _Inner:
        pull = rs / at.s + w * slack
        last = [pull.sum(axis=1) - 1.0 + at.lam.sum(axis=1), (stack.room - at.x).sum(axis=1)]
        u = _solved(A, np.column_stack([rx / at.x - dual - times(GT, pull), *last]))
        dx, dt, dy = u[:, :p], u[:, p : p + 1], u[:, p + 1 :]
        ds = dt - times(stack.G, dx) - slack
        return _Inner(dx, dt, ds, rs / at.s - w * ds, rx / at.x - at.nu / at.x * dx, dy)

    ahead = direction(-at.lam * at.s, -at.x * at.nu)
    left = at.moved(ahead, *at.steps(ahead)).gap() / at.gap()
    aim = np.minimum(1.0, np.maximum(left, LEAST_AHEAD) ** MEHROTRA) * at.gap() / (2 * p)
    found = direction(
        aim - at.lam * at.s - ahead.s * ahead.lam, aim - at.x * at.nu - ahead.x * ahead.nu
    )
    primal, dual_step = at.steps(found)
    return at.moved(found, INSIDE * primal, INSIDE * dual_step)
