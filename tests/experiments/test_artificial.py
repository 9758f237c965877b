import numpy as np
import pytest

from experiments.artificial import convergence, loss_table
from experiments.simplex_grid import simplex_grid
from experiments.synthetic import paper_classification, paper_regression

PROBLEMS = [paper_regression, paper_classification]


@pytest.mark.parametrize("make", PROBLEMS)
def test_the_objective_reaches_zero_from_the_uniform_start(make):
    curves = convergence(make(600, np.random.default_rng(0)), 1, np.random.default_rng(0))
    assert {c.method for c in curves} == {"DCA", "anymix"}
    for curve in curves:
        if curve.start == "uniform":
            assert curve.gamma[-1] < 1e-7
    ours, dca = (
        sum(c.n_evaluations[-1] for c in curves if c.method == m) for m in ("anymix", "DCA")
    )
    assert ours < dca / 5


@pytest.mark.parametrize("make", PROBLEMS)
def test_dw_beats_every_source_and_the_average_on_the_worst_mixture(make):
    problem = make(1500, np.random.default_rng(0))
    table = loss_table(problem, simplex_grid(problem.n_sources, 4))
    worst = dict(zip(table.methods, table.worst, strict=True))
    dw = worst.pop("DW, anymix (regret)")
    assert dw < min(worst.values())
    regret = dict(zip(table.methods, table.regret, strict=True))
    assert regret["DW, anymix (regret)"] <= problem.eta * problem.loss_bound
