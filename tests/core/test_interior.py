"""The interior method for min max of convex functions, against linear programming and SLSQP."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from anymix.core import simplex
from anymix.core.solvers.dca import decompose
from anymix.core.solvers.interior import minimise_max, step_to_boundary
from experiments.synthetic import random_regression


def quadratic_model(A, b, B):
    """f_k = b_k + A_k z + z'Bz/2."""

    def model(z):
        return (
            A @ z + b + 0.5 * z @ B @ z,
            A + B @ z,
            lambda lam: lam.sum() * B,
        )

    return model


@given(seed=st.integers(0, 10_000), p=st.integers(1, 8))
@settings(max_examples=20, deadline=None, derandomize=True)
def test_a_matrix_game_is_solved_as_by_linear_programming(seed, p):
    A = np.random.default_rng(seed).standard_normal((p, p))
    found = minimise_max(quadratic_model(A, np.zeros(p), np.zeros((p, p))), simplex.uniform(p))
    answer = linprog(
        np.append(np.zeros(p), 1),
        A_ub=np.c_[A, -np.ones(p)],
        b_ub=np.zeros(p),
        A_eq=np.append(np.ones(p), 0)[None],
        b_eq=[1],
        bounds=[(0, None)] * p + [(None, None)],
    )
    assert found.converged
    assert found.value == pytest.approx(answer.fun, abs=1e-8)
    # λ is the other player's strategy: it holds the value against every z.
    assert found.multipliers.sum() == pytest.approx(1)
    assert (found.multipliers @ A).min() == pytest.approx(answer.fun, abs=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_quadratics_are_solved_as_by_slsqp(seed):
    rng = np.random.default_rng(seed)
    p = 5
    A, b, root = rng.standard_normal((p, p)), rng.standard_normal(p), rng.standard_normal((p, p))
    model = quadratic_model(A, b, root @ root.T)
    found = minimise_max(model, simplex.uniform(p))
    other = minimize(
        lambda x: x[-1],
        np.append(simplex.uniform(p), 10.0),
        jac=lambda x: np.append(np.zeros(p), 1),
        constraints=[
            {"type": "eq", "fun": lambda x: x[:-1].sum() - 1},
            {"type": "ineq", "fun": lambda x: x[-1] - model(x[:-1])[0]},
        ],
        bounds=[(0, None)] * p + [(None, None)],
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 300},
    )
    assert found.converged
    assert found.value == pytest.approx(other.fun, abs=1e-6)
    assert found.value <= other.fun + 1e-8


def test_the_answer_is_on_the_simplex_and_its_value_is_attained_there():
    """u falls without bound off the simplex; asked for more than rounding allows, z drifted off."""
    problem = random_regression(3, 300, np.random.default_rng(2))
    parts, z = decompose(problem, "gamma"), simplex.uniform(3)
    for _ in range(6):
        v, slope = parts.v(z)

        def model(x, z=z, v=v, slope=slope):
            u, G, hessian = parts.u(x)
            return u - v - slope @ (x - z), G - slope, hessian

        found = minimise_max(model, z, tol=1e-13)
        z = found.z
        assert model(z)[0].max() == pytest.approx(found.value, abs=1e-9)


def test_step_to_boundary():
    assert step_to_boundary(np.array([1.0, 2.0]), np.array([1.0, 0.0])) == 1.0
    assert step_to_boundary(np.array([1.0, 2.0]), np.array([-4.0, -1.0])) == 0.25
