"""min_d max_k (f_k + G_k d) + ½ d'Bd over Σ d = 0, d ≥ −room: a stack of them at once.

With multipliers λ of the functions and ν of the bounds, at the minimum

    Bd + Gᵀλ + y = ν ≥ 0    d ≥ −room    λ ≥ 0    s = t − f − Gd ≥ 0    λ's = ν'(d + room) = 0.

The active functions `on` (s = 0) and the free d (ν = 0) determine the minimum: given a guess of
both, the rest is one linear system.  Entries with the wrong sign are swapped, usually a few times;
if that fails, an interior-point method, which needs no guess, takes over.  Every system is solved
for the whole stack in one call.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray
from anymix.core.solvers.interior import (
    LEAST_SPREAD,
    InnerPoint,
    interior_step,
    solved,
    times,
)
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
MAX_STEPS, INWARD, NEAR = 40, 0.1, 1e-9
# Shares below this are at their bound, multipliers below it are off, where it ends.
SHARE = 1e-7


class Quadratics(NamedTuple):
    """f (s, p), G (s, p, p), B (s, p, p) positive, room (s, p) ≥ 0."""

    f: FloatArray
    G: FloatArray
    B: FloatArray
    room: FloatArray

    def functions(self, d: FloatArray) -> FloatArray:
        """f_k + G_k d + ½ d'Bd, (s, p)."""
        bent = 0.5 * (d * times(self.B, d)).sum(axis=1)
        return np.asarray(self.f + times(self.G, d) + bent[:, None])


# d and λ, which d are free and which functions are on: all (s, p).
Minima = tuple[FloatArray, FloatArray, BoolArray, BoolArray]


def minimise(stack: Quadratics, free: BoolArray, on: BoolArray) -> Minima:
    """Minimise each of the stack: by an active-set method, else by an interior-point method."""
    minima, done = swap(stack, free, on)
    if not done.all():
        inner = _inside(Quadratics(*(part[~done] for part in stack)))
        for whole, part in zip(minima, inner, strict=True):
            whole[~done] = part
    return minima


def swap(
    stack: Quadratics, free: BoolArray, on: BoolArray, most: int = MAX_SWAPS
) -> tuple[Minima, BoolArray]:
    """Swap entries of the wrong sign a limited number of times; also return which are solved."""
    s, p = stack.f.shape
    K, rhs = _system(stack)
    at_bound = np.concatenate([-stack.room, np.zeros((s, p + 2))], axis=1)
    held = np.ones((s, 2 * p + 2), dtype=bool)
    held[:, :p], held[:, p : 2 * p] = free, on
    slopes, eye = np.abs(stack.G).max(axis=(1, 2))[:, None], np.eye(2 * p + 2)
    x, done = np.zeros((s, 2 * p + 2)), np.zeros(s, dtype=bool)
    fewest, patience = np.full(s, held[0].size), np.full(s, PATIENCE)
    left = np.arange(s)
    for _ in range(most):
        now = held[left]
        system = np.where(now[:, :, None], K[left], eye)
        x[left] = solved(system, np.where(now, rhs[left], at_bound[left]))
        rest = times(K[left], x[left]) - rhs[left]
        wrong = _wrong_signs(now, x[left], rest, stack.room[left], slopes[left])
        n_wrong = wrong.sum(axis=1)
        done[left] = (n_wrong == 0) & np.isfinite(x[left]).all(axis=1)
        patience[left] = np.where(n_wrong < fewest[left], PATIENCE, patience[left] - 1)
        fewest[left] = np.minimum(fewest[left], n_wrong)
        # The last of the wrong signs alone, where patience has run out.
        last = wrong.shape[1] - 1 - wrong[:, ::-1].argmax(axis=1)
        alone = (patience[left] < 0)[:, None] & (np.arange(wrong.shape[1]) != last[:, None])
        held[left] ^= wrong & ~alone
        none = left[~held[left, p : 2 * p].any(axis=1)]
        held[none, p + stack.f[none].argmax(axis=1)] = True
        left = left[n_wrong > 0]
        if not left.size:
            break
    free, on = held[:, :p], held[:, p : 2 * p]
    return (x[:, :p], np.maximum(np.where(on, x[:, p : 2 * p], 0.0), 0.0), free, on), done


def _wrong_signs(
    on: BoolArray, x: FloatArray, rest: FloatArray, room: FloatArray, slope: FloatArray
) -> BoolArray:
    """Bounds that d breaks or ν < 0, and λ < 0 or functions above t, up to rounding."""
    p, reach = room.shape[1], room.sum(axis=1, keepdims=True)
    wrong = np.zeros_like(on)
    outside = x[:, :p] + room < -SIGN * reach
    wrong[:, :p] = np.where(on[:, :p], outside, rest[:, :p] < -SIGN * slope)
    above = rest[:, p : 2 * p] > SIGN * slope * reach
    wrong[:, p : 2 * p] = np.where(on[:, p : 2 * p], x[:, p : 2 * p] < -SIGN, above)
    return wrong


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


def _inside(stack: Quadratics) -> Minima:
    """Minimise by the interior method, all of the stack to the end."""
    p, total = stack.f.shape[1], stack.room.sum(axis=1, keepdims=True)
    x = (1 - INWARD) * stack.room + INWARD * np.maximum(total, TINY) / p
    f = stack.functions(x - stack.room)
    at = InnerPoint.first(x, f, LEAST_SPREAD * (TINY + np.abs(f).max(axis=1, keepdims=True)))
    first = at.gap()
    for _ in range(MAX_STEPS):
        # The common ½d'Bd of all functions is a function of its own: λ sums to 1.
        d = at.z - stack.room
        dual = times(stack.G.transpose(0, 2, 1), at.lam) + times(stack.B, d) - at.nu + at.y
        slack = at.s - at.t + stack.f + times(stack.G, d)
        at = interior_step(at, stack.G, stack.B, dual, slack, stack.room)
        if (at.gap() < NEAR * first).all():
            break
    d = at.z * (total / at.z.sum(axis=1, keepdims=True)) - stack.room
    lam = at.lam / at.lam.sum(axis=1, keepdims=True)
    return d, lam, at.z > SHARE * total, lam > SHARE
