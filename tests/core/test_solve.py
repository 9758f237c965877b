"""The default path: equilibrium, minimax and solve against other solvers and their own promises."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from anymix.core import Problem, SolverWarning, simplex, solve
from anymix.core.solvers import methods
from anymix.core.solvers.equilibrium import brouwer_map, find_equilibrium
from anymix.core.solvers.oracle import Oracle
from experiments import synthetic
from experiments.simplex_grid import simplex_grid
from tests.core.loss_cases import CASES, every_loss, make_problem, smooth_loss

FAMILIES = {
    "regression": synthetic.random_regression,
    "classification": synthetic.random_classification,
    "tables": synthetic.random_tables,
    "tables-log": lambda p, m, rng: synthetic.random_tables(p, m, rng, "cross_entropy"),
}
# 24 problems: every family at six sizes.
SIZES = [(2, 300), (3, 500), (5, 400), (10, 600), (20, 600), (40, 400)]
random_problem = pytest.mark.parametrize(
    ("family", "p", "m"), [(name, p, m) for name in FAMILIES for p, m in SIZES]
)
few_problems = pytest.mark.parametrize(
    ("family", "p"), [(name, p) for name in FAMILIES for p in (3, 6)]
)


def draw(family, p, m, seed=0):
    return FAMILIES[family](p, m, np.random.default_rng(seed))


def slsqp(problem, baseline, start):
    """min t subject to L_k − b_k ≤ t on the simplex, by scipy."""
    p = problem.n_sources

    def margin(x):
        return x[-1] - problem.source_losses(x[:-1]) + baseline

    def margin_jacobian(x):
        return np.c_[-problem.losses_and_jacobian(x[:-1])[1], np.ones(p)]

    first = (problem.source_losses(start) - baseline).max()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        answer = minimize(
            lambda x: x[-1],
            np.append(start, first),
            jac=lambda x: np.append(np.zeros(p), 1.0),
            constraints=[
                {"type": "eq", "fun": lambda x: x[:-1].sum() - 1},
                {"type": "ineq", "fun": margin, "jac": margin_jacobian},
            ],
            bounds=[(0, 1)] * p + [(None, None)],
            method="SLSQP",
            options={"ftol": 1e-12, "maxiter": 200},
        )
    z = simplex.clean(answer.x[:-1])
    return float((problem.source_losses(z) - baseline).max())


@random_problem
def test_gamma_vanishes(family, p, m):
    problem = draw(family, p, m)
    solution = solve(problem, "gamma")
    assert solution.status == "converged"
    assert solution.gamma <= 1e-8 * solution.robust_loss
    # VI(−L, Δ): equal where z_k > 0, no larger elsewhere; recomputed from raw losses.
    L = problem.source_losses(solution.z)
    assert L.max() - L[solution.z > 1e-6].min() <= 1e-6 * L.max()


@few_problems
@pytest.mark.parametrize("objective", ["robust", "regret"])
def test_minimax_is_not_above_slsqp_nor_the_equilibrium(family, p, objective):
    problem = draw(family, p, 300, seed=1)
    baseline = problem.own_losses if objective == "regret" else np.zeros(p)
    solution = solve(problem, objective)
    value = solution.regret if objective == "regret" else solution.robust_loss
    scale = solution.robust_loss
    rng = np.random.default_rng(2)
    starts = [simplex.uniform(p), *(simplex.random(p, rng) for _ in range(3))]
    assert value <= min(slsqp(problem, baseline, z) for z in starts) + 1e-6 * scale
    level = find_equilibrium(Oracle(problem, baseline))
    assert value <= (problem.source_losses(level.z) - baseline).max() + 1e-9 * scale


@few_problems
def test_regret_keeps_the_per_source_guarantee(family, p):
    problem = draw(family, p, 300, seed=3)
    solution = solve(problem)
    assert solution.objective == "regret"
    assert solution.regret <= problem.eta * problem.loss_bound


@every_loss
@pytest.mark.parametrize("objective", ["gamma", "robust", "regret"])
@pytest.mark.parametrize("own", [False, True], ids=["pooled", "own"])
def test_every_loss_is_solved_and_its_numbers_are_recomputed(case, objective, own):
    problem = make_problem(case, seed=4, own=own, p=3, m=30)
    with warnings.catch_warnings():
        # γ of a loss with kinks need not vanish: the losses jump in slope.
        warnings.simplefilter("ignore" if case.loss.lipschitz else "error", SolverWarning)
        solution = solve(problem, objective)
    z, L = solution.z, problem.source_losses(solution.z)
    assert z.sum() == pytest.approx(1, abs=1e-12)
    assert z.min() >= 0
    np.testing.assert_array_equal(solution.source_losses, L)
    assert solution.gamma == pytest.approx(max(0, L.max() - z @ L), abs=1e-15)
    assert solution.robust_loss == L.max()
    assert solution.regret == pytest.approx((L - problem.own_losses).max(), abs=1e-15)
    assert solution.n_evaluations >= len(solution.trace) > 0


@smooth_loss
def test_minimax_beats_a_grid(case):
    problem = make_problem(case, seed=5, p=3, m=24)
    grid = simplex_grid(3, 30)
    for objective, function in [("robust", problem.robust_loss), ("regret", problem.regret)]:
        assert function(solve(problem, objective).z) <= min(map(function, grid)) + 1e-9


@pytest.mark.parametrize("objective", ["gamma", "robust", "regret"])
@pytest.mark.parametrize("own", [False, True], ids=["pooled", "own"])
def test_permuting_the_sources_permutes_z(objective, own):
    rng = np.random.default_rng(6)
    p, m = 4, 200
    log_d, y = rng.standard_normal((p, m)), rng.standard_normal(m)
    h = y + rng.standard_normal((p, m))
    domain = np.arange(m) % p if own else None
    order = np.array([2, 0, 3, 1])
    renamed = np.argsort(order)[domain] if own else None
    one = solve(Problem.from_log_densities(log_d, h, y, sample_domain=domain), objective)
    other = solve(
        Problem.from_log_densities(log_d[order], h[order], y, sample_domain=renamed), objective
    )
    np.testing.assert_allclose(one.z[order], other.z, atol=1e-5)
    np.testing.assert_allclose(one.source_losses[order], other.source_losses, rtol=1e-6)


def test_permuting_the_points_changes_nothing():
    rng = np.random.default_rng(7)
    log_d, h, y = rng.standard_normal((3, 60)), rng.random((3, 60)), rng.random(60)
    domain, order = np.arange(60) % 3, rng.permutation(60)
    one = Problem.from_log_densities(log_d, h, y, sample_domain=domain)
    other = Problem.from_log_densities(
        log_d[:, order], h[:, order], y[order], sample_domain=domain[order]
    )
    z = [0.2, 0.3, 0.5]
    np.testing.assert_allclose(one.source_losses(z), other.source_losses(z), rtol=1e-12)
    np.testing.assert_allclose(one.combined(z)[order], other.combined(z), rtol=1e-12)


@pytest.mark.parametrize("objective", ["gamma", "robust", "regret"])
@pytest.mark.parametrize("method", ["auto", "dca"])
@pytest.mark.parametrize(("p", "m"), [(1, 1), (1, 7), (2, 1)])
def test_one_source_and_one_point(objective, method, p, m):
    rng = np.random.default_rng(8)
    y = rng.random(m)
    D = np.full((p, m), 1 / m)
    solution = solve(Problem(D, y + 0.5 + rng.random((p, m)), y), objective, method)
    assert solution.z.shape == (p,)
    assert solution.gamma == pytest.approx(0, abs=1e-8)
    if p == 1:
        assert solution.regret == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("objective", ["gamma", "robust", "regret"])
@pytest.mark.parametrize("method", ["auto", "dca"])
def test_two_identical_sources(objective, method):
    rng = np.random.default_rng(9)
    D, y = rng.random((2, 50)), rng.standard_normal(50)
    h = y + rng.standard_normal((2, 50))
    two = Problem(D, h, y)
    three = Problem(D[[0, 1, 1]], h[[0, 1, 1]], y)
    one, other = solve(two, objective, method), solve(three, objective, method)
    # η leans to the doubled source, by no more than its own size.
    np.testing.assert_allclose(other.robust_loss, one.robust_loss, rtol=5e-3)
    assert other.source_losses[1] == pytest.approx(other.source_losses[2], rel=1e-12)


@pytest.mark.parametrize("objective", ["gamma", "robust", "regret"])
def test_perfect_predictors_everywhere(objective):
    rng = np.random.default_rng(10)
    y = rng.standard_normal(40)
    solution = solve(Problem(rng.random((3, 40)), np.tile(y, (3, 1)), y), objective)
    assert solution.status == ("converged" if objective == "gamma" else "stationary")
    assert solution.robust_loss <= 1e-25


def test_the_map_alone_reaches_the_same_equilibrium():
    problem = synthetic.paper_classification(300, np.random.default_rng(0))
    slow, fast = solve(problem, "gamma", "map", tol=1e-9), solve(problem, "gamma")
    np.testing.assert_allclose(slow.z, fast.z, atol=1e-6)
    assert slow.n_evaluations == len(slow.trace)


@given(seed=st.integers(0, 10_000), p=st.integers(1, 6), eta_prime=st.floats(0, 2))
def test_the_map_stays_on_the_simplex_whatever_the_signs(seed, p, eta_prime):
    rng = np.random.default_rng(seed)
    z, L = simplex.random(p, rng), rng.standard_normal(p)
    moved = brouwer_map(z, L, eta_prime)
    assert moved.sum() == pytest.approx(1)
    assert moved.min() >= 0
    np.testing.assert_array_equal(brouwer_map(z, np.zeros(p)), z)
    np.testing.assert_allclose(brouwer_map(z, np.ones(p)), z, rtol=1e-12)


def test_falling_short_is_never_silent():
    # Lemma 4's map, alone, circles here.
    problem = synthetic.random_tables(10, 50, np.random.default_rng(0))
    with pytest.warns(SolverWarning, match="status 'stalled': gamma is optimal only to 4.8e-01"):
        solution = solve(problem, "gamma", "map")
    assert solution.status == "stalled"


def test_the_same_rng_gives_the_same_answer():
    problem = synthetic.random_tables(4, 200, np.random.default_rng(1))
    one, other = (solve(problem, rng=3, n_starts=4) for _ in range(2))
    np.testing.assert_array_equal(one.z, other.z)
    given_start = solve(problem, start=[0.7, 0.1, 0.1, 0.1], n_starts=3)
    assert given_start.regret == pytest.approx(one.regret, abs=1e-8)


@pytest.mark.parametrize("objective", ["gamma", "robust", "regret"])
@pytest.mark.parametrize("own", [False, True], ids=["pooled", "own"])
def test_many_points_are_searched_in_part_and_answered_in_full(objective, own, monkeypatch):
    rng = np.random.default_rng(13)
    m = 6000
    y = rng.standard_normal(m)
    log_d, h = rng.standard_normal((3, m)), y + rng.standard_normal((3, m))
    domain = np.arange(m) % 3 if own else None
    problem = Problem.from_log_densities(log_d, h, y, sample_domain=domain)
    whole = solve(problem, objective)
    monkeypatch.setattr(methods, "MANY_POINTS", 5000)
    part = solve(problem, objective)
    assert part.status == ("converged" if objective == "gamma" else "stationary")
    np.testing.assert_allclose(part.z, whole.z, atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"objective": "worst"}, "objective must be 'regret', 'robust' or 'gamma'"),
        ({"method": "newton"}, "no method 'newton'"),
        ({"method": "map"}, "no method 'map' for objective 'regret'"),
        ({"shrinkage": -1.0}, "shrinkage must be 'auto' or a number ≥ 0"),
        ({"shrinkage": "some"}, "shrinkage must be 'auto' or a number ≥ 0"),
        ({"shrinkage": np.nan}, "shrinkage must be 'auto' or a number ≥ 0"),
        ({"shrinkage": 0.1, "objective": "gamma"}, "shrinkage is for objectives"),
        ({"shrinkage": 0.1, "method": "dca"}, "shrinkage is for objectives"),
        ({"shrinkage": "auto", "method": "dca"}, "shrinkage is for objectives"),
        ({"start": [0.5, 0.6, 0.1]}, "start must be on the simplex"),
        ({"start": [0.5, 0.5]}, r"start has shape \(2,\)"),
        ({"prior": [-0.5, 0.5, 1.0]}, "prior must be on the simplex"),
    ],
)
def test_bad_requests_are_refused_in_one_sentence(arguments, message):
    with pytest.raises(ValueError, match=message):
        solve(make_problem(CASES[0], 0), **arguments)
