from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from experiments.runner import quiet
from experiments.synthetic import random_tables
from experiments.theory import (
    BEST,
    CROSS,
    ORDERS,
    SHARES,
    SIZES,
    estimated_bound,
    mixtures_bound,
    outside_bound,
    run,
)

pytestmark = pytest.mark.xdist_group("theory")


@pytest.fixture(scope="module")
def results():
    """The one whole run of the study."""
    return list(run(None, [0], quiet))


def rows(cells):
    table = {}
    for method, column, value, paper in cells:
        table.setdefault(method, {})[column] = (value, paper)
    return table


@pytest.mark.parametrize(
    ("lemma", "lower"), [("Lemma 7", lambda p: 0.25), ("Lemma 8", lambda p: np.log(p))]
)
def test_the_best_average_pays_the_lower_bound_and_dw_does_not(results, lemma, lower):
    here = [r for r in results if r.table == f"{lemma}, number of sources"]
    cell = {(r.method, int(r.target)): r for r in here}
    for p in SIZES:
        assert cell["best average", p].value == pytest.approx(lower(p), rel=1e-6)
        assert cell["best average", p].paper == pytest.approx(lower(p))
        assert cell["DW", p].value < 1e-5


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
    problem = random_tables(3, 20, rng)
    outside = partial(outside_bound, shares=SHARES[::2])
    for part in (mixtures_bound, outside, estimated_bound):
        truth, *bounds = rows(part(problem, np.random.default_rng(seed))).values()
        for bound in bounds:
            assert all(truth[c][0] <= bound[c][0] * (1 + 1e-9) for c in truth)


def test_the_normalised_rule_pays_log_p_and_the_joint_rule_nothing(results):
    here = [r for r in results if r.table == "App. C, number of sources"]
    cell = {(r.method, int(r.target)): r for r in here}
    for p in SIZES:
        assert cell["normalised rule", p].value == pytest.approx(np.log(p), rel=1e-3)
        assert cell["normalised rule", p].paper == pytest.approx(np.log(p))
        assert cell["joint rule, not normalised", p].value < 1e-3


def test_the_bounds_beyond_the_paper_are_the_lower_ones(results):
    value = {(r.method, r.table, r.target): r.value for r in results}
    for r in results:
        if r.method == CROSS:
            assert r.value <= value["bound ε + ηM + γ", r.table, r.target]
        if r.method == BEST:
            fixed = [value[f"bound, {name}", r.table, r.target] for name in ORDERS]
            assert r.value <= min(fixed) * (1 + 1e-9)
    assert {r.protocol for r in results if r.method in (CROSS, BEST)} == {"beyond"}


def test_the_study_has_six_tables(results):
    assert {r.table.split(",")[0] for r in results} == {
        "Lemma 7",
        "Lemma 8",
        "App. C",
        "Cor. 2",
        "Cor. 10",
        "Cor. 11",
    }
