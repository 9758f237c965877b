"""Descents in lockstep: what a round asks, who goes on, and where they end."""

import numpy as np
import pytest

from anymix.core import SetAside, simplex, solve
from anymix.core.solvers import minimax
from anymix.core.solvers.minimax import descend
from anymix.core.solvers.oracle import Oracle, Penalty
from experiments import synthetic
from tests.core.loss_cases import CASES, make_problem

NO_PENALTY = Penalty(0.0, simplex.uniform(3))


class Rounds:
    """A problem that remembers how many z each round asked about."""

    def __init__(self, problem):
        self._problem, self.asked = problem, []

    def __getattr__(self, name):
        return getattr(self._problem, name)

    def evaluate_many(self, Z, multipliers=None):
        self.asked.append(len(Z))
        return self._problem.evaluate_many(Z, multipliers)


def starts(p):
    return np.stack([simplex.uniform(p), *(0.1 / p + 0.9 * np.eye(p))])


@pytest.mark.parametrize("seed", range(4))
def test_all_starts_share_rounds(seed):
    problem = Rounds(synthetic.random_classification(3, 400, np.random.default_rng(seed)))
    oracle = Oracle(problem, problem.own_losses)
    ends = descend(oracle, starts(3), NO_PENALTY)
    assert problem.asked[0] == 4
    assert max(problem.asked) <= 8
    assert oracle.n_rounds == len(problem.asked) == len(oracle.trace) <= 20
    assert oracle.n_evaluations == sum(problem.asked)
    assert ends[0].converged
    assert [end.value for end in ends] == sorted(end.value for end in ends)
    assert ends[0].value == pytest.approx(problem.regret(ends[0].z), abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_together_they_end_as_low_as_each_alone(seed):
    problem = synthetic.random_regression(3, 300, np.random.default_rng(seed))
    together = descend(Oracle(problem, 0.0), starts(3), NO_PENALTY)[0]
    alone = min(
        descend(Oracle(problem, 0.0), start[None], NO_PENALTY)[0].value for start in starts(3)
    )
    assert together.value <= alone + 1e-8 * abs(alone)


def test_a_last_step_makes_z_independent_of_the_way():
    problem = synthetic.random_tables(3, 2000, np.random.default_rng(1))
    polished = [
        descend(Oracle(problem, problem.own_losses), start[None], NO_PENALTY, 1e-8, polish=True)[0]
        for start in starts(3)
    ]
    for one in polished[1:]:
        np.testing.assert_allclose(one.z, polished[0].z, atol=1e-7)


def test_a_penalty_keeps_every_share_that_the_prior_has():
    problem = make_problem(CASES[0], seed=1)
    for prior in (np.array([0.8, 0.1, 0.1]), np.array([0.5, 0.5, 0.0])):
        found = descend(Oracle(problem, 0.0), prior[None], Penalty(5.0, prior))[0]
        assert found.converged
        assert (found.z[prior > 0] > 0).all()


@pytest.mark.parametrize("case", [c for c in CASES if c.loss.kink], ids=lambda c: repr(c.loss))
@pytest.mark.parametrize("seed", range(3))
def test_kinked_losses_end_as_low_as_a_fine_grid(case, seed):
    problem = make_problem(case, seed=seed, p=2, m=60)
    found = solve(problem, "robust")
    grid = np.linspace(0, 1, 20_001)
    best = problem.evaluate_many(np.column_stack([grid, 1 - grid])).losses.max(axis=1).min()
    assert found.robust_loss <= best * (1 + 1e-6)
    assert found.status == "stationary"


def test_perfect_sources_have_no_kinks_to_round():
    problem = make_problem(next(c for c in CASES if c.loss.kink), seed=0)
    perfect = type(problem)(
        problem.masses, np.tile(problem.targets, (3, 1)), problem.targets, problem.loss
    )
    found = solve(perfect, "robust")
    assert found.robust_loss < 1e-12


def test_the_equilibrium_is_a_start_where_descents_end_above_it(monkeypatch):
    problem = make_problem(CASES[0], seed=3)
    wanted, asked = solve(problem, "regret").regret, []
    level = minimax.find_equilibrium
    monkeypatch.setattr(minimax, "_reachable", lambda request, oracle: -np.inf)
    monkeypatch.setattr(minimax, "find_equilibrium", lambda *args: asked.append(1) or level(*args))
    assert solve(problem, "regret").regret <= wanted + 1e-12
    assert asked == [1]


def test_rows_set_aside_have_a_face_of_kinks_and_moments_too():
    problem = make_problem(next(c for c in CASES if c.loss.kink), seed=0, own=True)
    heard = SetAside(problem, [2])
    assert heard.loss is problem.loss
    assert heard.smoothed(0.1).problem.loss.width == 0.1
    assert heard.paired_moments(simplex.uniform(3)).shape == (5, 3)
    assert solve(heard, "robust").status == "stationary"
