"""Losses that overflow are refused before a search, and no search goes on for ever."""

import numpy as np
import pytest

from anymix.core import Budget, Problem, SolverWarning, solve
from anymix.core.guarantees.certificate import MOST_SOURCES
from anymix.core.solvers import methods, minimax
from tests.core.loss_cases import CASES, make_problem


@pytest.mark.parametrize("value", [1e80, -1e80, 1e16, 1e200])
def test_predictions_whose_losses_overflow_are_refused(value):
    predictions = np.zeros((2, 4))
    predictions[1, 2] = value
    for given in ({}, {"sample_domain": [1, 0, 1, 0]}):
        with pytest.raises(ValueError, match=r"source 1 has a loss of .* at point 2.*; leave"):
            Problem.from_log_densities(np.zeros((2, 4)), predictions, np.zeros(4), **given)


def test_a_target_beyond_all_is_refused():
    with pytest.raises(ValueError, match="source 0 has a loss of inf at point 1"):
        Problem(np.ones((2, 3)), np.zeros((2, 3)), [0.0, 1e200, 0.0])


def test_vectors_are_judged_too():
    predictions = np.full((2, 3, 2), 0.5)
    predictions[1, 0, 1] = 1e80
    with pytest.raises(ValueError, match="source 1 has a loss of 1e"):
        Problem(np.ones((2, 3)), predictions, [0, 1, 0], "brier")


def test_large_numbers_with_sound_losses_pass():
    """Times in nanoseconds: the numbers are large, their errors are not."""
    now = 1.7e18
    problem = Problem(np.full((2, 3), 1 / 3), np.full((2, 3), now), np.full(3, now + 1e9))
    assert problem.robust_loss([0.5, 0.5]) == pytest.approx(1e18)


@pytest.mark.parametrize(("objective", "method"), sorted(methods.METHODS))
@pytest.mark.parametrize("budget", [Budget(evaluations=1), Budget(seconds=0.0)])
def test_a_spent_budget_ends_with_the_best_z(objective, method, budget):
    problem = make_problem(CASES[0], seed=4, p=5, m=200)
    with pytest.warns(SolverWarning, match="status 'budget'.*best z so far.*larger budget"):
        found = solve(problem, objective, method, tol=1e-14, budget=budget)
    assert found.status == "budget"
    np.testing.assert_allclose(found.source_losses, problem.source_losses(found.z), rtol=1e-12)
    assert found.z.sum() == pytest.approx(1.0)
    assert found.regret == pytest.approx(problem.regret(found.z))
    # A round is asked as a whole: the prior, five corners, four by chance.
    assert found.n_evaluations <= budget.evaluations + 10


def test_more_budget_is_never_worse():
    problem = make_problem(CASES[0], seed=5, p=6, m=200)
    values = []
    for n in (1, 5, 20):
        with pytest.warns(SolverWarning, match="budget"):
            values.append(solve(problem, "robust", budget=Budget(n)).robust_loss)
    best = solve(problem, "robust").robust_loss
    assert values == sorted(values, reverse=True)
    assert best <= values[-1] + 1e-12


def test_a_part_of_the_points_serves_until_all_are_asked(monkeypatch):
    monkeypatch.setattr(minimax, "FEW_POINTS", 50)
    monkeypatch.setattr(minimax, "FEW_A_SOURCE", 5)
    problem = make_problem(CASES[0], seed=5, p=4, m=4000)
    with pytest.warns(SolverWarning, match="budget"):
        found = solve(problem, "robust", budget=Budget(0.3))
    assert 0 < found.n_evaluations < 1


@pytest.mark.parametrize("objective", ["gamma", "robust", "regret"])
def test_honest_problems_never_meet_the_budget(objective):
    problem = make_problem(CASES[0], seed=6, p=8, m=400)
    assert solve(problem, objective).n_evaluations < Budget().evaluations / 10


def test_as_many_sources_as_can_be_certified():
    assert MOST_SOURCES == 150
