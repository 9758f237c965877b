"""Shrinkage towards a prior: its amount, its pull and its optimum."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anymix.core import Problem, simplex, solve
from anymix.core.solvers.methods import automatic_shrinkage, paired_standard_errors
from anymix.core.solvers.oracle import Penalty
from experiments.simplex_grid import simplex_grid
from tests.core.loss_cases import CASES, central_difference, make_problem


def noisy(seed=0, p=3, m=90, own=True):
    rng = np.random.default_rng(seed)
    y = rng.standard_normal(m)
    h = y + rng.standard_normal((p, m))
    domain = rng.permutation(np.arange(m) % p) if own else None
    problem = Problem.from_log_densities(
        2 * rng.standard_normal((p, m)), h, y, sample_domain=domain
    )
    return problem, h, y, domain


def test_standard_errors_are_those_of_paired_means():
    problem, h, y, domain = noisy()
    z = simplex.uniform(3)
    gain = (problem.combined(z) - y) ** 2 - (h - y) ** 2
    expected = [gain[k, domain == k].std() / np.sqrt((domain == k).sum()) for k in range(3)]
    np.testing.assert_allclose(paired_standard_errors(problem, z), expected, rtol=1e-10)
    assert automatic_shrinkage(problem, z) == pytest.approx(3 * max(expected))


def test_standard_errors_do_not_depend_on_the_unit_of_the_weights():
    rng = np.random.default_rng(5)
    D, h, y, P = rng.random((2, 9)), rng.random((2, 9)), rng.random(9), rng.random((2, 9))
    one, other = (Problem(D, h, y, weights=c * P) for c in (1.0, 7.0))
    z = simplex.uniform(2)
    np.testing.assert_allclose(
        paired_standard_errors(one, z), paired_standard_errors(other, z), rtol=1e-12
    )


def test_vector_losses_and_the_pooled_measure_have_standard_errors():
    for own in (False, True):
        errors = paired_standard_errors(make_problem(CASES[2], 0, own=own), simplex.uniform(3))
        assert errors.shape == (3,)
        assert np.all(errors > 0)


def test_auto_is_reported_and_pulls_towards_the_prior():
    problem = noisy(1)[0]
    prior = np.array([0.6, 0.3, 0.1])
    free, held = solve(problem), solve(problem, shrinkage="auto", prior=prior)
    assert free.shrinkage == 0
    assert held.shrinkage == pytest.approx(automatic_shrinkage(problem, prior))
    assert np.abs(held.z - prior).sum() < np.abs(free.z - prior).sum()
    assert held.status == "stationary"


@pytest.mark.parametrize("objective", ["robust", "regret"])
def test_the_shrunk_answer_is_optimal_by_brute_force(objective):
    problem = noisy(2)[0]
    rho, prior = 0.2, np.array([0.5, 0.3, 0.2])
    baseline = problem.own_losses if objective == "regret" else 0.0

    def penalised(z):
        kl = np.sum(prior * np.log(prior / z))
        return (problem.source_losses(z) - baseline).max() + rho * kl

    solution = solve(problem, objective, shrinkage=rho, prior=prior)
    inside = simplex_grid(3, 50)
    inside = inside[inside.min(axis=1) > 0]
    assert penalised(solution.z) <= min(map(penalised, inside)) + 1e-9
    assert solution.z.min() > 0


def test_from_none_to_all():
    problem = noisy(3)[0]
    prior = np.array([0.2, 0.2, 0.6])
    ways = [solve(problem, shrinkage=rho, prior=prior) for rho in (0.0, 1e-2, 1e-1, 1.0, 100.0)]
    distances = [np.abs(way.z - prior).sum() for way in ways]
    assert distances == sorted(distances, reverse=True)
    np.testing.assert_allclose(ways[-1].z, prior, atol=1e-2)
    regrets = [way.regret for way in ways]
    assert regrets == sorted(regrets)


def test_a_prior_may_leave_a_source_out():
    solution = solve(noisy(4)[0], shrinkage=0.1, prior=[0.5, 0.5, 0.0])
    assert solution.status == "stationary"
    assert solution.z[:2].min() > 0


@given(seed=st.integers(0, 10_000), rho=st.floats(1e-3, 10))
@settings(max_examples=20, deadline=None)
def test_penalty_and_its_derivatives(seed, rho):
    rng = np.random.default_rng(seed)
    z, prior = 0.9 * simplex.random(4, rng) + 0.025, simplex.random(4, rng)
    penalty = Penalty(rho, prior)
    assert penalty.values(z) >= 0
    assert penalty.values(prior) == pytest.approx(0, abs=1e-12)
    slope = central_difference(penalty.values, z)
    np.testing.assert_allclose(-penalty.pull(z), slope, rtol=1e-5, atol=1e-7)
    bend = np.diag(central_difference(lambda z: -penalty.pull(z), z))
    np.testing.assert_allclose(penalty.pull(z * z), bend, rtol=1e-5, atol=1e-7)
    assert Penalty(rho, simplex.uniform(2)).values(np.array([0.0, 1.0])) == np.inf
