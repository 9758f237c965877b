"""Kernel mean matching's programs: against another library, by optimality, and against solve_qp."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from anymix.estimators import BoxAndBand, MeanMatching, solve_qp
from experiments.kmm_programs import JITTER, solve_exactly, solve_together

FREE = BoxAndBand(1e9, -1.0, 1e9)


def made_up(seed, n, m=6, width=0.1):
    """A program of n rows in the plane and m target rows."""
    rng = np.random.default_rng(seed)
    X, T = rng.normal(size=(n, 2)), rng.normal(0.5, 0.8, size=(m, 2))
    K = np.exp(-width * ((X[:, None] - X) ** 2).sum(axis=2)).astype(np.float32)
    kappa = n * np.exp(-width * ((X[:, None] - T) ** 2).sum(axis=2)).mean(axis=1)
    return MeanMatching(K, kappa, FREE)


@settings(deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 25), st.booleans())
def test_the_exact_answer_is_that_of_nonnegative_least_squares(seed, n, full):
    program = made_up(seed, n, width=2.0)
    start = np.full(n, full)
    start[0] = True
    b = solve_exactly(program, start)
    A = program.K.astype(np.float64) + JITTER * np.eye(n)
    root = np.linalg.cholesky(A).T
    expected, _ = nnls(root, np.linalg.solve(root.T, program.kappa), maxiter=100 * n)
    value, best = (0.5 * x @ A @ x - program.kappa @ x for x in (b, expected))
    assert (b >= 0).all()
    assert value <= best + 1e-6 * abs(best)


def test_at_the_exact_answer_no_row_may_be_moved():
    program = made_up(3, 200, width=1.0)
    b = solve_exactly(program, np.ones(200, dtype=bool))
    slope = program.K.astype(np.float64) @ b - program.kappa
    assert 0 < (b > 0).sum() < 200
    assert np.abs(slope[b > 0]).max() <= 2e-5 * b.max()
    assert slope[b == 0].min() >= -1e-6 * program.scale


def test_any_start_gives_the_same_answer():
    program = made_up(4, 120, width=3.0)
    answers = [
        solve_exactly(program, start)
        for start in (np.ones(120, dtype=bool), np.arange(120) % 7 == 0)
    ]
    np.testing.assert_allclose(*answers, atol=1e-3)


def test_copies_of_a_row_share_their_weight():
    program = made_up(5, 30, width=3.0)
    twice = np.r_[np.arange(30), 0]
    both = MeanMatching(program.K[np.ix_(twice, twice)], program.kappa[twice], FREE)
    b, alone = (
        solve_exactly(both, np.ones(31, dtype=bool)),
        solve_exactly(program, np.ones(30, bool)),
    )
    assert b[0] + b[30] == pytest.approx(alone[0], abs=1e-3)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10_000), st.integers(5, 40))
def test_programs_solved_together_are_as_good_as_one_by_one(seed, n):
    first = made_up(seed, n)
    second = MeanMatching(first.K, made_up(seed + 1, n).kappa, FREE)
    for program, b in zip((first, second), solve_together([first, second], 1e-4), strict=True):
        alone = solve_qp(program, 1e-4)
        assert (b >= 0).all()
        assert program.step(b)[1] <= 3e-4
        assert program.objective(b) == pytest.approx(alone.objective, rel=1e-4)


@pytest.mark.parametrize("bounds", [BoxAndBand(0.01, -1.0, 1e9), BoxAndBand(1e9, -1.0, 1.0)])
def test_a_bound_that_binds_is_told_and_not_passed_over(bounds):
    program = made_up(0, 20)
    program = MeanMatching(program.K, program.kappa, bounds)
    with pytest.raises(RuntimeError, match="binds"):
        solve_exactly(program, np.ones(20, dtype=bool))


def test_solvers_that_get_no_steps_say_so():
    program = made_up(0, 20)
    with pytest.raises(RuntimeError, match="rows are still wrong"):
        solve_exactly(program, np.ones(20, dtype=bool), max_iter=1)
    with pytest.raises(RuntimeError, match="not solved to"):
        solve_together([program], 1e-9, max_iter=2)
