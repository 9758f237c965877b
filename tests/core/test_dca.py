"""The DC algorithm never rises, agrees with the default solver and says how it ended."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anymix.core import SolverWarning, simplex, solve
from anymix.core.solvers.dca import dca, decompose
from experiments import synthetic
from experiments.simplex_grid import simplex_grid
from tests.core.loss_cases import CASES, every_loss, make_problem, smooth_loss


def values(trace, objective):
    return np.array([step.gamma if objective == "gamma" else step.worst for step in trace])


@every_loss
@pytest.mark.parametrize("objective", ["gamma", "robust", "regret"])
def test_never_rises(case, objective):
    problem = make_problem(case, seed=0)
    result = dca(problem, objective, start=np.array([0.8, 0.1, 0.1]), max_iter=25)
    path = values(result.trace, objective)
    assert len(path) > 1
    assert np.all(np.diff(path) <= 0)
    assert result.status in ("converged", "stationary", "stalled", "out of evaluations")
    objective_at = {
        "gamma": problem.gamma,
        "robust": problem.robust_loss,
        "regret": problem.regret,
    }[objective]
    assert objective_at(result.z) == pytest.approx(path[-1], rel=1e-9, abs=1e-12)


@given(seed=st.integers(0, 10_000), index=st.integers(0, len(CASES) - 1), own=st.booleans())
@settings(max_examples=15, deadline=None, derandomize=True)
def test_never_rises_on_random_problems(seed, index, own):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(1, 6))
    problem = make_problem(CASES[index], seed, own=own, p=p, m=5 * p)
    objective = "regret" if own else str(rng.choice(["gamma", "robust"]))
    result = dca(problem, objective, start=simplex.random(p, rng), max_iter=10)
    assert np.all(np.diff(values(result.trace, objective)) <= 0)
    assert result.z.sum() == pytest.approx(1)


@smooth_loss
@pytest.mark.parametrize("own", [False, True], ids=["pooled", "own"])
def test_agrees_with_the_default_solver_from_its_answer_and_from_afar(case, own):
    problem = make_problem(case, seed=1, own=own)
    best = solve(problem, "robust")
    again = dca(problem, "robust", start=best.z)
    assert problem.robust_loss(again.z) == pytest.approx(best.robust_loss, rel=1e-8)
    afar = dca(problem, "robust", start=np.array([0.05, 0.05, 0.9]), tol=1e-8)
    assert best.robust_loss <= problem.robust_loss(afar.z) * (1 + 1e-7)


@pytest.mark.parametrize("index", [0, 1, 2, 3])
def test_regret_agrees_with_the_default_solver(index):
    problem = make_problem(CASES[index], seed=1)
    result, best = dca(problem, "regret"), solve(problem, "regret")
    assert result.status == "stationary"
    assert problem.regret(result.z) == pytest.approx(best.regret, abs=1e-7)


def test_a_step_that_fell_short_at_a_kink_is_no_stationary_point():
    problem = make_problem(CASES[6], seed=0)
    with pytest.warns(SolverWarning, match="status 'stalled'"):
        solution = solve(problem, "robust", method="dca")
    assert solution.status == "stalled"


def test_agrees_with_the_default_solver_on_the_papers_data():
    for make in (synthetic.paper_regression, synthetic.paper_classification):
        problem = make(300, np.random.default_rng(0))
        result, answer = dca(problem, "gamma"), solve(problem, "gamma")
        assert result.status == "converged"
        assert problem.gamma(result.z) <= 1e-9
        np.testing.assert_allclose(result.z, answer.z, atol=1e-5)


def test_does_not_mistake_rounding_for_a_stationary_point():
    """C is large here; z once drifted off the simplex and the DCA stopped at γ of 9 %."""
    problem = synthetic.random_regression(3, 300, np.random.default_rng(1))
    result = dca(problem, "gamma", max_iter=100)
    assert result.status == "converged"
    assert result.optimality <= 1e-10


def test_each_step_minimises_the_convexified_objective():
    """Eq. (6) by brute force over a grid of z, one step from the uniform start."""
    problem = make_problem(CASES[1], seed=2)
    parts, z0 = decompose(problem, "gamma"), simplex.uniform(3)
    v, slope = parts.v(z0)

    def upper(z):
        return (parts.u(z)[0] - v - slope @ (z - z0)).max()

    z1 = dca(problem, "gamma", max_iter=1).z
    least = min(upper(z) for z in simplex_grid(3, 60))
    assert upper(z1) <= least + 1e-9
    # It is an upper bound that touches at z0, which is why the objective cannot rise.
    assert upper(z0) == pytest.approx(problem.gamma(z0), rel=1e-9)
    assert all(upper(z) >= problem.gamma(z) - 1e-9 for z in simplex_grid(3, 8))


def test_own_measure_with_cross_entropy_has_its_gamma_too():
    problem = make_problem(CASES[1], seed=3, own=True)
    result = dca(problem, "gamma")
    assert np.all(np.diff(values(result.trace, "gamma")) <= 0)
    assert result.trace[-1].gamma < 0.1 * result.trace[0].gamma


def test_pointwise_constants_beat_the_papers_global_one():
    problem = synthetic.paper_regression(300, np.random.default_rng(0))
    near, far = (dca(problem, "gamma", constant=c, max_iter=30) for c in ("pointwise", "global"))
    assert problem.gamma(near.z) < 1e-3 * problem.gamma(far.z)


def test_out_of_steps_is_said():
    problem = synthetic.paper_regression(300, np.random.default_rng(0))
    assert dca(problem, "gamma", max_iter=2).status == "out of evaluations"


def test_gamma_that_stays_above_zero_is_reported_and_warned_about():
    problem = make_problem(CASES[9], seed=11)
    with pytest.warns(SolverWarning, match="'stationary': gamma is optimal only to 9.3e-02"):
        solution = solve(problem, "gamma", method="dca", tol=1e-2)
    assert solution.status == "stationary"
    assert solution.optimality == pytest.approx(solution.gamma / solution.robust_loss, rel=0.2)
