"""Props 5 and 6 letter by letter, eq. (6), and the artificial data of App. E.1."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from anymix.core import Problem, simplex, solve
from anymix.core.solvers.dca import decompose
from experiments import synthetic


def parts(loss, seed):
    rng = np.random.default_rng(seed)
    D, h, y = rng.random((3, 15)), rng.uniform(0.1, 1, (3, 15)), rng.random(15)
    D /= D.sum(axis=1, keepdims=True)
    problem = Problem(D, h, y, loss=loss, eta=0.1, reference="uniform")
    z = simplex.random(3, rng)
    U = np.full(15, 1 / 15)
    K = z @ D + 0.1 * U
    J = z @ (D * h) + 0.1 / 3 * U * h.sum(axis=0)
    return problem, z, D, U, J, K


@pytest.mark.parametrize("seed", range(3))
def test_prop_5_with_the_papers_constant(seed):
    problem, z, D, U, J, K = parts("squared", seed)
    squares = (J / K - problem.targets) ** 2
    logs = 2 * problem.loss_bound * (D + 0.1 * U) @ np.log(K)
    found = decompose(problem, "gamma", constant="global")
    np.testing.assert_allclose(found.u(z)[0], (D + 0.1 * U) @ squares - logs, rtol=1e-10)
    np.testing.assert_allclose(found.v(z)[0], (z @ D + 0.1 * U) @ squares - logs, rtol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_prop_6(seed):
    problem, z, D, U, J, K = parts("cross_entropy", seed)
    found = decompose(problem, "gamma")
    np.testing.assert_allclose(found.u(z)[0], -(D + 0.1 * U) @ np.log(J), rtol=1e-10)
    expected = K @ np.log(K / J) - (D + 0.1 * U) @ np.log(K)
    np.testing.assert_allclose(found.v(z)[0], expected, rtol=1e-10)


def test_prop_5_is_no_decomposition_under_distinct_conditionals():
    """v_k with Q ≠ K in the place of K is not convex, so the DCA must not be offered there."""
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(50):
        D, P = rng.random((2, 3)) ** 4, rng.random((2, 3)) ** 4
        h, y = rng.standard_normal((2, 3)), rng.standard_normal(3)
        C = 2 * ((h - y) ** 2).max(axis=0)

        def v(t, D=D, P=P, h=h, y=y, C=C):
            z = np.array([t, 1 - t])
            K = z @ D + 1e-3
            g = (z @ (D * h) + 1e-3 * h.mean(axis=0)) / K
            return (z @ P) @ (g - y) ** 2 - P[0] @ (C * np.log(K))

        t = np.linspace(0.05, 0.95, 19)
        bends = [v(s - 0.02) + v(s + 0.02) - 2 * v(s) for s in t]
        worst = min(worst, min(bends))
    assert worst < -1e-6


def test_the_densities_of_the_artificial_data():
    domains = synthetic.paper_regression_domains()
    X = np.random.default_rng(0).standard_normal((5, 2))
    means = [(1, 1), (-1, 1), (-1, -1), (1, -1)]
    for k, members in enumerate([means[:3], means[1:]]):
        expected = np.mean([multivariate_normal(mean).pdf(X) for mean in members], axis=0)
        np.testing.assert_allclose(np.exp(domains.log_density(X)[k]), expected, rtol=1e-10)
    turned = synthetic.paper_classification_domains(np.random.default_rng(1))
    np.testing.assert_array_equal(turned.variances, [0.05, 0.05, 0.3])
    # A turn keeps the distances between the class means.
    lengths = [np.linalg.norm(turned.means[k] @ turned.means[k].T) for k in range(3)]
    np.testing.assert_allclose(lengths, lengths[0], rtol=1e-10)


def test_draws_come_from_the_density_that_is_stated():
    domains = synthetic.paper_classification_domains(np.random.default_rng(2))
    X, c = domains.sample(2, 20_000, np.random.default_rng(3))
    for j in range(3):
        np.testing.assert_allclose(X[c == j].mean(axis=0), domains.means[2, j], atol=0.03)
        np.testing.assert_allclose(X[c == j].var(axis=0), 0.3, rtol=0.08)


@pytest.mark.parametrize("make", [synthetic.paper_regression, synthetic.paper_classification])
def test_the_global_objective_reaches_zero_from_any_start(make):
    """The paper's two figures: DCA and the default path, uniform and random starts."""
    problem = make(300, np.random.default_rng(4))
    rng = np.random.default_rng(5)
    p = problem.n_sources
    for start in [simplex.uniform(p), simplex.random(p, rng), simplex.random(p, rng)]:
        for method in ("dca", "auto"):
            solution = solve(problem, "gamma", method, start=start)
            assert solution.status == "converged"
            gammas = [step.gamma for step in solution.trace]
            assert gammas[-1] <= 1e-9 * solution.robust_loss
            if method == "dca":
                assert gammas == sorted(gammas, reverse=True)


def test_the_weighted_combination_beats_the_uniform_one_on_its_worst_mixture():
    for make in (synthetic.paper_regression, synthetic.paper_classification):
        problem = make(600, np.random.default_rng(6))
        average = problem.predictions.mean(axis=0)
        uniform = problem.masses @ problem.loss.value(average, problem.targets)
        best = solve(problem, "robust")
        assert best.robust_loss < uniform.max()
