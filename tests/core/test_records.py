"""Records are frozen and can be written as JSON; the simplex checks and cleans."""

import dataclasses
import json
from types import GenericAlias, SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anymix.core import Problem, simplex, solve
from anymix.core.records import Step, plain, restored
from experiments.simplex_grid import simplex_grid


@pytest.fixture
def solution():
    return solve(Problem([[0.9, 0.1], [0.2, 0.8]], [[0.0, 0.5], [0.5, 1.0]], [0.0, 1.0]))


def test_a_solution_survives_json(solution):
    read = json.loads(solution.to_json())
    assert set(read) == {field.name for field in dataclasses.fields(solution)}
    np.testing.assert_array_equal(read["z"], solution.z)
    assert read["status"] == "stationary"
    assert read["trace"][0] == solution.trace[0]._asdict()


def test_arrays_are_arrays_where_numpy_declares_them_by_an_alias():
    """As numpy 2.5 does; without looking through it every list stayed a list."""
    alias = GenericAlias(SimpleNamespace(__value__=np.ndarray[tuple, np.dtype]), (np.float64,))
    np.testing.assert_array_equal(restored(alias, [1.0, "inf"]), [1.0, np.inf])


def test_a_solution_is_frozen(solution):
    with pytest.raises(dataclasses.FrozenInstanceError):
        solution.z = np.ones(2)


def test_a_solution_can_be_compared_and_kept_in_a_set(solution):
    other = dataclasses.replace(solution, z=solution.z.copy())
    assert solution != other
    assert len({solution, other, solution}) == 2


def test_numbers_that_json_does_not_know_become_null(solution):
    odd = dataclasses.replace(solution, gamma=np.nan, regret=-np.inf)
    read = json.loads(odd.to_json())
    assert read["gamma"] is None
    assert read["regret"] is None


def test_plain_reaches_every_depth():
    value = {"a": (np.int64(1), [np.float32(0.5), np.bool_(True)]), 2: Step(1.0, np.nan, 2.0)}
    expected = {
        "a": [1, [0.5, True]],
        "2": {"n_evaluations": 1.0, "gamma": None, "worst": 2.0},
    }
    assert plain(value) == expected
    assert plain(np.eye(2)) == [[1.0, 0.0], [0.0, 1.0]]


@given(p=st.integers(1, 5), steps=st.integers(1, 6))
@settings(max_examples=20, deadline=None)
def test_the_grid_has_every_mixture_once(p, steps):
    grid = simplex_grid(p, steps)
    np.testing.assert_allclose(grid.sum(axis=1), 1)
    assert grid.min() >= 0
    assert len({tuple(np.round(row * steps).astype(int)) for row in grid}) == len(grid)
    np.testing.assert_allclose(grid * steps, np.round(grid * steps), atol=1e-9)
    corners = {tuple(row) for row in grid if row.max() == 1}
    assert len(corners) == p


def test_points_that_are_apart_come_in_their_order():
    points = [np.array(z) for z in ([1.0, 0.0], [0.99, 0.01], [0.0, 1.0])]
    np.testing.assert_array_equal(simplex.apart(points, 0.1, 5), np.eye(2))
    np.testing.assert_array_equal(simplex.apart(points, 0.1, 1), np.eye(2)[:1])


def test_random_points_are_inside_and_uniform_on_average():
    rng = np.random.default_rng(0)
    draws = np.stack([simplex.random(3, rng) for _ in range(4000)])
    np.testing.assert_allclose(draws.sum(axis=1), 1)
    assert draws.min() > 0
    np.testing.assert_allclose(draws.mean(axis=0), 1 / 3, atol=0.02)
    # A coordinate of a uniform point of the simplex has variance (p − 1)/(p²(p + 1)).
    np.testing.assert_allclose(draws.var(axis=0), 2 / 36, rtol=0.1)


def test_check_cleans_rounding_and_refuses_the_rest():
    np.testing.assert_array_equal(simplex.check([1 + 1e-10, -1e-10], 2), [1, 0])
    for bad in ([0.5, 0.4], [1.5, -0.5], [np.nan, 1.0], [np.inf, 0.0]):
        with pytest.raises(ValueError, match="must be on the simplex"):
            simplex.check(bad, 2)
    with pytest.raises(ValueError, match=r"mixture has shape \(2, 1\)"):
        simplex.check([[0.5], [0.5]], 2, "mixture")
