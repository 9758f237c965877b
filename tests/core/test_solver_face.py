"""What solvers ask of a problem, what they hand back, and the table that names them."""

import ast
from pathlib import Path

import numpy as np
import pytest

from anymix.core import Solution, simplex, solve
from anymix.core.solvers import methods, minimax
from anymix.core.solvers.equilibrium import find_equilibrium
from anymix.core.solvers.minimax import descend
from anymix.core.solvers.oracle import (
    Oracle,
    Penalty,
    Solvable,
    SolverResult,
    SumOverPoints,
    with_status,
)
from experiments import synthetic
from tests.core.loss_cases import CASES, make_problem

OBJECTIVES = ["gamma", "robust", "regret"]


class Sums:
    """What an oracle may ask, and nothing else."""

    __slots__ = ("_problem",)

    def __init__(self, problem):
        self._problem = problem

    n_sources = property(lambda self: self._problem.n_sources)

    def source_losses(self, z):
        return self._problem.source_losses(z)

    loss = property(lambda self: self._problem.loss)

    def evaluate_many(self, Z, multipliers=None):
        return self._problem.evaluate_many(Z, multipliers)

    def smoothed(self, width):
        return type(self)(self._problem.smoothed(width))


class Bare(Sums):
    """What solve may ask, and nothing else."""

    __slots__ = ()
    n_points = property(lambda self: self._problem.n_points)
    own_losses = property(lambda self: self._problem.own_losses)

    def thin(self, n, rng):
        return Bare(self._problem.thin(n, rng))

    def paired_moments(self, z):
        return self._problem.paired_moments(z)


def names(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


def test_the_wrappers_have_what_is_stated_and_no_more():
    assert names(Sums) == names(SumOverPoints)
    assert names(Bare) == names(Solvable)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("many", [10**9, 500], ids=["all points", "thinned"])
@pytest.mark.parametrize("own", [False, True], ids=["pooled", "own"])
def test_solve_asks_for_no_more_than_it_states(objective, many, own, monkeypatch):
    monkeypatch.setattr(methods, "MANY_POINTS", many)
    monkeypatch.setattr(minimax, "FEW_POINTS", many // 5)
    problem = make_problem(CASES[1], seed=2, own=own, p=3, m=600)
    one, other = solve(problem, objective), solve(Bare(problem), objective)
    assert one.status == other.status == ("converged" if objective == "gamma" else "stationary")
    np.testing.assert_array_equal(one.z, other.z)
    assert one.n_evaluations == other.n_evaluations
    assert one.regret == other.regret


def test_an_oracle_asks_for_less():
    problem = make_problem(CASES[0], seed=3)
    oracle = Oracle(Sums(problem), problem.own_losses)
    level = find_equilibrium(oracle)
    lowest = descend(oracle, level.z[None], Penalty(0.0, simplex.uniform(3)))[0]
    assert level.converged
    assert lowest.converged
    assert lowest.value == pytest.approx(problem.regret(lowest.z), abs=1e-14)
    assert lowest.value <= problem.regret(level.z) + 1e-12


def test_what_needs_the_tables_says_so():
    with pytest.raises(ValueError, match="method='dca' needs the tables of a Problem; a Bare"):
        solve(Bare(make_problem(CASES[0], 0)), method="dca")


def test_sums_tell_how_much_to_shrink():
    problem = make_problem(CASES[0], 0, own=True)
    one, other = (solve(asked, shrinkage="auto") for asked in (problem, Bare(problem)))
    assert one.shrinkage == other.shrinkage > 0
    np.testing.assert_array_equal(one.z, other.z)


@pytest.mark.parametrize("case", [c for c in CASES if c.loss.kink], ids=lambda c: repr(c.loss))
def test_kinks_are_rounded_by_sums_alone(case):
    problem = make_problem(case, 0)
    one, other = solve(problem, "robust"), solve(Bare(problem), "robust")
    assert one.status == "stationary"
    np.testing.assert_array_equal(one.z, other.z)


@pytest.mark.parametrize(
    ("objective", "known"),
    [
        ("regret", "use 'auto' or 'dca'"),
        ("robust", "use 'auto' or 'dca'"),
        ("gamma", "use 'auto', 'dca' or 'map'"),
    ],
)
def test_an_unknown_method_is_answered_with_the_known_ones(objective, known):
    expected = f"no method 'newton' for objective '{objective}': {known}"
    with pytest.raises(ValueError, match=expected):
        solve(make_problem(CASES[0], 0), objective, "newton")


def test_a_method_is_a_function_and_a_line_in_the_table(monkeypatch):
    def stay(request):
        oracle = Oracle(request.problem, 0.0)
        losses = oracle.losses(request.first)
        return oracle.billed(with_status(request.first, float(losses.max()), 0.0, request.tol))

    monkeypatch.setitem(methods.METHODS, ("robust", "stay"), stay)
    problem = make_problem(CASES[0], 0)
    solution = solve(problem, "robust", "stay", start=[0.2, 0.3, 0.5])
    assert isinstance(solution, Solution)
    assert (solution.method, solution.status, solution.n_evaluations) == ("stay", "converged", 1)
    np.testing.assert_allclose(solution.z, [0.2, 0.3, 0.5], rtol=1e-15)
    with pytest.raises(ValueError, match="use 'auto', 'dca' or 'stay'"):
        solve(problem, "robust", "go")


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_method_answers_with_one_record(objective):
    problem = make_problem(CASES[1], seed=1)
    prior = simplex.uniform(3)
    asked = (problem, objective, Penalty(0.0, prior), None, 3, 1e-8, np.random.default_rng(0))
    of = {"gamma": problem.gamma, "robust": problem.robust_loss, "regret": problem.regret}
    for (named, method), function in methods.METHODS.items():
        if named != objective:
            continue
        found = function(methods.Request(*asked))
        assert isinstance(found, SolverResult), method
        assert found.value == pytest.approx(of[objective](found.z), abs=1e-12), method
        assert found.status in ("converged", "stationary"), method
        assert found.n_evaluations >= len(found.trace) > 0, method
        with pytest.raises(AttributeError):
            found.z = prior


def test_the_bill_counts_a_pass_over_part_of_the_points_as_that_part(monkeypatch):
    monkeypatch.setattr(methods, "MANY_POINTS", 500)
    monkeypatch.setattr(minimax, "FEW_POINTS", 300)
    seen = []

    class Counted(Bare):
        __slots__ = ()

        def evaluate_many(self, Z, multipliers=None):
            seen.append((self.n_points, len(Z)))
            return super().evaluate_many(Z, multipliers)

        def thin(self, n, rng):
            return Counted(self._problem.thin(n, rng))

    problem = synthetic.random_tables(3, 6000, np.random.default_rng(0))
    for objective, thinning in (("gamma", 10), ("regret", 20)):
        seen.clear()
        solution = solve(Counted(problem), objective)
        whole = [n for m, n in seen if m == 6000]
        part = sum(n for _, n in seen) - sum(whole)
        assert 0 < len(whole) < len(seen) == solution.n_rounds
        assert solution.n_evaluations == pytest.approx(sum(whole) + part / thinning)
        # The trace is that of the rounds over all points.
        assert len(solution.trace) == len(whole)


def test_no_number_is_without_a_name():
    """But 0, 1, 2 and 1/2 of formulas: each choice stands above the functions, with its reason."""
    unnamed = []
    for path in sorted(Path(methods.__file__).parent.glob("*.py")):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(function, ast.FunctionDef):
                continue
            skip = {k.value for k in ast.walk(function) if getattr(k, "arg", "") == "stacklevel"}
            unnamed += [
                f"{path.name}:{node.lineno}: {node.value}"
                for node in ast.walk(function)
                if isinstance(node, ast.Constant) and isinstance(node.value, int | float)
                if node not in skip and node.value not in (0, 0.5, 1, 2)
            ]
    assert not unnamed
