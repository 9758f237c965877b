import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from anymix.studies.runner import quiet
from anymix.studies.synthetic import random_tables
from anymix.studies.theory import (
    SIZES,
    averages_cross_entropy,
    averages_squared,
    estimated_bound,
    mixtures_bound,
    outside_bound,
    run,
)


def rows(cells):
    table = {}
    for method, column, value, paper in cells:
        table.setdefault(method, {})[column] = (value, paper)
    return table


@pytest.mark.parametrize("part", [averages_squared, averages_cross_entropy])
def test_the_best_average_pays_the_lower_bound_and_dw_does_not(part):
    table = rows(part())
    for p in SIZES:
        value, lower = table["best average"][p]
        assert value == pytest.approx(lower, rel=1e-6)
        assert table["DW"][p][0] < 1e-5


@pytest.mark.parametrize("p", [2, 5])
def test_lemma_8_by_linear_programming(p):
    # min_α max_k −log α_k: maximise t with t ≤ α_k over the simplex.
    A = np.hstack([-np.eye(p), np.ones((p, 1))])
    found = linprog(
        [0.0] * p + [-1.0], A, np.zeros(p), [[1.0] * p + [0.0]], [1.0], bounds=(0, None)
    )
    assert -np.log(-found.fun) == pytest.approx(np.log(p))


@settings(max_examples=4, deadline=None)
@given(st.integers(0, 10_000))
@pytest.mark.filterwarnings("ignore::anymix.core.SolverWarning")
def test_no_truth_exceeds_its_bound(seed):
    rng = np.random.default_rng(seed)
    problem = random_tables(3, 60, rng)
    for part in (mixtures_bound, outside_bound, estimated_bound):
        truth, *bounds = rows(part(problem, np.random.default_rng(seed))).values()
        for bound in bounds:
            assert all(truth[c][0] <= bound[c][0] * (1 + 1e-9) for c in truth)


def test_the_study_has_five_tables():
    results = list(run(None, [0], quiet))
    assert {r.table.split(",")[0] for r in results} == {
        "Lemma 7",
        "Lemma 8",
        "Cor. 2",
        "Cor. 10",
        "Cor. 11",
    }
