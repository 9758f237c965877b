"""What solvers see of a problem without the claims of some sources."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from anymix.core import Problem, SetAside, solve
from anymix.core.mixtures import worst_mixture


def problem(seed=0, p=4, m=120):
    rng = np.random.default_rng(seed)
    domain = np.repeat(np.arange(p), m // p)
    log_d = 2.0 * rng.normal(size=(p, m)) + 2.0 * (np.arange(p)[:, None] == domain)
    return Problem.from_log_densities(
        log_d, rng.normal(size=(p, m)), rng.normal(size=m), sample_domain=domain
    )


def test_derivatives_are_those_of_the_losses():
    heard, z, step = SetAside(problem(), [1, 3]), np.array([0.4, 0.3, 0.2, 0.1]), 1e-6
    multipliers = np.array([0.1, 0.5, 0.2, 0.2])
    L, G, H = (part[0] for part in heard.evaluate_many(z[None], multipliers[None]))
    np.testing.assert_allclose(L, heard.source_losses(z))
    for j in range(4):
        d = step * np.eye(4)[j]
        slope = (heard.source_losses(z + d) - heard.source_losses(z - d)) / (2 * step)
        np.testing.assert_allclose(G[:, j], slope, atol=1e-7)
        ahead, behind = heard.evaluate_many(np.stack([z + d, z - d])).jacobians
        np.testing.assert_allclose(H[:, j], multipliers @ (ahead - behind) / (2 * step), atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_the_largest_regret_of_the_others_is_minimised(seed):
    """Another solver, which is told of the others alone, finds no lower regret."""
    whole = problem(seed)
    found = solve(SetAside(whole, [2]), "regret")
    kept = [0, 1, 3]

    def regrets(z):
        return (whole.source_losses(z) - whole.own_losses)[kept]

    rival = minimize(
        lambda x: x[-1],
        np.r_[found.z, regrets(found.z).max() + 0.1],
        method="SLSQP",
        bounds=[(0, 1)] * 4 + [(None, None)],
        constraints=[
            {"type": "eq", "fun": lambda x: x[:4].sum() - 1},
            {"type": "ineq", "fun": lambda x: x[-1] - regrets(x[:4])},
        ],
    )
    assert regrets(found.z).max() <= regrets(rival.x[:4]).max() + 1e-6


def test_some_rows_must_be_left():
    with pytest.raises(ValueError, match="all sites are set aside"):
        SetAside(problem(), range(4))


def test_few_points_stand_for_all():
    heard = SetAside(problem(m=4000), [0])
    few = heard.thin(400, np.random.default_rng(0))
    assert few.n_points < 500
    assert few.sites == heard.sites
    np.testing.assert_allclose(few.own_losses[0], few.own_losses[1:].mean())


@given(st.integers(0, 10_000))
def test_the_worst_mixture_is_that_of_a_linear_program(seed):
    rng = np.random.default_rng(seed)
    inside, losses = rng.dirichlet(np.ones(5)), rng.normal(size=5)
    lower, upper = inside * rng.random(5), inside + (1 - inside) * rng.random(5)
    found = worst_mixture(losses, lower, upper)
    best = linprog(-losses, A_eq=np.ones((1, 5)), b_eq=[1], bounds=np.stack([lower, upper], 1))
    assert found.sum() == pytest.approx(1)
    assert (found >= lower - 1e-12).all()
    assert (found <= upper + 1e-12).all()
    assert found @ losses == pytest.approx(-best.fun, abs=1e-9)


def test_a_box_without_a_mixture_is_refused():
    with pytest.raises(ValueError, match="no mixture lies between"):
        worst_mixture(np.ones(2), np.array([0.6, 0.6]), np.ones(2))


@pytest.mark.parametrize("seed", range(4))
def test_the_worst_of_a_box_is_minimised(seed):
    """Never worse than the robust z, and than SLSQP on all vertices of the box on the simplex."""
    whole, robust = problem(seed), solve(problem(seed), "robust").z
    lower, upper = np.array([0.3, 0.0, 0.05, 0.0]), np.array([0.7, 0.4, 0.2, 1.0])
    orders = np.random.default_rng(seed).normal(size=(200, 4))
    vertices = np.unique([worst_mixture(order, lower, upper).round(12) for order in orders], axis=0)

    def worst(z):
        return float((vertices @ whole.source_losses(z)).max())

    z = solve(whole, "robust", mixtures=(lower, upper), start=robust, n_starts=1).z
    assert worst(z) <= worst(robust) + 1e-12
    rival = minimize(
        lambda x: x[-1],
        np.r_[robust, worst(robust)],
        method="SLSQP",
        bounds=[(0, 1)] * 4 + [(None, None)],
        constraints=[
            {"type": "eq", "fun": lambda x: x[:4].sum() - 1},
            {"type": "ineq", "fun": lambda x: x[-1] - vertices @ whole.source_losses(x[:4])},
        ],
    )
    assert worst(z) <= worst(np.clip(rival.x[:4], 0, 1) / rival.x[:4].sum()) + 1e-6


def test_the_whole_simplex_is_the_robust_objective():
    whole = problem(1)
    robust = solve(whole, "robust")
    z = solve(whole, "robust", mixtures=(np.zeros(4), np.ones(4)), n_starts=1).z
    assert whole.robust_loss(z) <= robust.robust_loss + 1e-6
