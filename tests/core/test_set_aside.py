"""What solvers see of a problem without the claims of some sources."""

import numpy as np
import pytest
from scipy.optimize import minimize

from anymix.core import Problem, SetAside, solve


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
