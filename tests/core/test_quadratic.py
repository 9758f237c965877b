"""Stacks of quadratic minimax models: by swaps, by the interior method, and as SLSQP has them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from anymix.core.solvers import quadratic
from anymix.core.solvers.quadratic import Quadratics, minimise, swap


def draw(seed, p, s=4):
    """Some of the room is nothing, as where z_k = 0."""
    rng = np.random.default_rng(seed)
    f, G, root = rng.normal(size=(s, p)), rng.normal(size=(s, p, p)), rng.normal(size=(s, p, p))
    B = root @ root.transpose(0, 2, 1) / p + 1e-3 * np.eye(p)
    room = rng.exponential(size=(s, p)) * (rng.random((s, p)) > 0.3) / p
    room[:, 0] += 0.1
    return Quadratics(f, G, B, room)


def first_guess(stack):
    on = stack.f >= stack.f.max(axis=1, keepdims=True)
    return np.ones(stack.f.shape, dtype=bool), on


def largest(stack, d):
    return stack.functions(d).max(axis=1)


def conditions(stack, d, lam):
    """How far from optimal: primal, dual and complementary residuals."""
    functions = stack.functions(d)
    t = functions.max(axis=1, keepdims=True)
    g = quadratic.times(stack.B, d) + quadratic.times(stack.G.transpose(0, 2, 1), lam)
    x = d + stack.room
    # The multiplier of Σd = 0 is that of any d that is free.
    y = -np.take_along_axis(g, x.argmax(axis=1)[:, None], axis=1)
    nu = g + y
    parts = [d.sum(axis=1), np.minimum(x, 0), lam.sum(axis=1) - 1, np.minimum(lam, 0)]
    parts += [lam * (t - functions), np.minimum(nu, 0), nu * x]
    return max(float(np.abs(part).max()) for part in parts)


@given(seed=st.integers(0, 10_000), p=st.integers(2, 12))
@settings(max_examples=20, deadline=None, derandomize=True)
def test_the_minimum_meets_its_conditions(seed, p):
    stack = draw(seed, p)
    d, lam, _, _ = minimise(stack, *first_guess(stack))
    assert conditions(stack, d, lam) < 1e-5


@pytest.mark.parametrize("seed", range(5))
def test_swaps_and_the_interior_method_agree_with_slsqp(seed):
    stack = draw(seed, 4)
    (d, *_), solved = swap(stack, *first_guess(stack))
    inside = largest(stack, quadratic._inside(stack)[0])
    assert solved.any()
    np.testing.assert_allclose(largest(stack, d)[solved], inside[solved], atol=1e-7)
    for i, (f, G, B, room) in enumerate(zip(*stack, strict=True)):
        other = minimize(
            lambda x, B=B: x[-1] + 0.5 * x[:-1] @ B @ x[:-1],
            np.append(np.zeros(4), f.max() + 1),
            constraints=[
                {"type": "eq", "fun": lambda x: x[:-1].sum()},
                {"type": "ineq", "fun": lambda x, f=f, G=G: x[-1] - f - G @ x[:-1]},
            ],
            bounds=[(-r, None) for r in room] + [(None, None)],
            method="SLSQP",
            options={"ftol": 1e-12, "maxiter": 500},
        )
        assert inside[i] == pytest.approx(other.fun, abs=1e-6)


def test_a_right_guess_needs_one_system():
    stack = draw(3, 6)
    d, _, free, on = minimise(stack, *first_guess(stack))
    (again, *_), solved = swap(stack, free, on, most=1)
    assert solved.all()
    np.testing.assert_allclose(again, d, atol=1e-6)


def test_what_swaps_do_not_solve_the_interior_method_does(monkeypatch):
    stack = draw(1, 8)
    wanted = largest(stack, minimise(stack, *first_guess(stack))[0])
    monkeypatch.setattr(quadratic, "MAX_SWAPS", 1)
    d, *_ = minimise(stack, *(np.zeros_like(part) for part in first_guess(stack)))
    np.testing.assert_allclose(largest(stack, d), wanted, atol=1e-7)


def test_a_singular_system_gets_its_least_squares():
    A, b = np.zeros((2, 2, 2)), np.ones((2, 2))
    A[1] = np.eye(2)
    np.testing.assert_allclose(quadratic.solved(A, b), [[0, 0], [1, 1]])
