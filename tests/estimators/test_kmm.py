"""Kernel mean matching: projection, quadratic program, estimator."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel
from sklearn.neighbors import KNeighborsRegressor
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import check_estimator

from anymix.estimators import KernelMeanMatching
from anymix.estimators._kmm_qp import (
    BoxAndBand,
    MeanMatching,
    accelerate,
    kernel_blocks,
    largest_eigenvalue,
    mean_matching_weights,
    solve_qp,
)
from benchmarks import kmm as benchmark


def shifted(rng, n, d, n_target=None):
    return rng.normal(size=(n, d)), 0.7 * rng.normal(size=(n_target or n, d)) + 0.5


def problem_of(X, X_target, bounds, gamma=None):
    kappa = len(X) * rbf_kernel(X, X_target, gamma=gamma).mean(axis=1)
    return MeanMatching(rbf_kernel(X, gamma=gamma).astype(np.float32), kappa, bounds)


# -- projection ----------------------------------------------------------------------------------


@given(seed=st.integers(0, 10_000), n=st.integers(1, 20), case=st.integers(0, 2))
def test_projection_is_feasible_and_nearest(seed, n, case):
    """The variational inequality (v - Pv)'(u - Pv) <= 0 holds for every feasible u."""
    rng = np.random.default_rng(seed)
    bounds = BoxAndBand(3.0, *[(0.0, 3.0 * n), (n * 0.9, n * 1.1), (float(n), float(n))][case])
    v = rng.normal(scale=5, size=n)
    x = bounds.project(v)
    assert x.min() >= 0
    assert x.max() <= 3
    assert bounds.low - 1e-9 <= x.sum() <= bounds.high + 1e-9
    for _ in range(5):
        u = bounds.project(rng.normal(scale=5, size=n))
        assert (v - x) @ (u - x) <= 1e-7 * n


def test_projection_agrees_with_a_general_solver():
    rng = np.random.default_rng(0)
    v, bounds = rng.normal(size=6), BoxAndBand(1.0, 2.0, 2.5)
    constraints = [
        {"type": "ineq", "fun": lambda x: x.sum() - 2.0},
        {"type": "ineq", "fun": lambda x: 2.5 - x.sum()},
    ]
    witness = minimize(
        lambda x: np.sum((x - v) ** 2),
        np.full(6, 0.4),
        bounds=[(0, 1)] * 6,
        constraints=constraints,
        options={"ftol": 1e-14},
    )
    np.testing.assert_allclose(bounds.project(v), witness.x, atol=1e-5)


# -- quadratic program ---------------------------------------------------------------------------


def test_gradient_by_finite_differences():
    rng = np.random.default_rng(1)
    problem = problem_of(*shifted(rng, 8, 2), BoxAndBand(5.0, 0.0, 40.0))
    b, step = rng.uniform(size=8), 1e-2
    numeric = [
        (problem.objective(b + e) - problem.objective(b - e)) / (2 * step) for e in step * np.eye(8)
    ]
    np.testing.assert_allclose(problem.gradient(b), numeric, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("upper", "eps"), [(1000.0, 0.9), (3.0, 0.9), (1000.0, 0.0), (2.0, 0.05)])
def test_answer_agrees_with_a_general_solver(upper, eps):
    rng = np.random.default_rng(2)
    n = 40
    X, X_target = shifted(rng, n, 2)
    bounds = BoxAndBand(upper, n * (1 - eps), n * (1 + eps))
    K, kappa = rbf_kernel(X), n * rbf_kernel(X, X_target).mean(axis=1)
    answer = mean_matching_weights(X, X_target, "rbf", None, bounds, 1e-5)
    witness = minimize(
        lambda b: 0.5 * b @ K @ b - kappa @ b,
        np.ones(n),
        jac=lambda b: K @ b - kappa,
        method="SLSQP",
        bounds=[(0, upper)] * n,
        constraints=[
            {"type": "ineq", "fun": lambda b: b.sum() - bounds.low, "jac": lambda b: np.ones(n)},
            {"type": "ineq", "fun": lambda b: bounds.high - b.sum(), "jac": lambda b: -np.ones(n)},
        ],
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    assert answer.objective == pytest.approx(witness.fun, rel=1e-5)
    assert answer.weights.max() <= upper
    assert abs(answer.weights.sum() - n) <= n * eps + 1e-6


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 80), d=st.integers(1, 5))
def test_no_feasible_neighbour_is_better(seed, n, d):
    rng = np.random.default_rng(seed)
    X, X_target = shifted(rng, n, d)
    bounds = BoxAndBand(10.0, 0.5 * n, 1.5 * n)
    answer = mean_matching_weights(X, X_target, "rbf", None, bounds, 1e-4)
    assert answer.residual <= 1e-4
    problem = problem_of(X, X_target, bounds)
    slack = 1e-4 * abs(answer.objective) + 1e-4
    for size in (1e-3, 0.1, 1.0):
        neighbour = bounds.project(answer.weights + size * rng.normal(size=n))
        assert problem.objective(neighbour) >= answer.objective - slack


def test_the_working_set_changes_nothing():
    """The whole problem, run long without a working set, ends at the same value."""
    rng = np.random.default_rng(3)
    problem = problem_of(*shifted(rng, 300, 5), BoxAndBand(1000.0, 10.0, 590.0))
    answer = solve_qp(problem, 1e-6)
    whole, _ = accelerate(problem, np.ones(300), 1e-7, 20_000)
    assert answer.objective == pytest.approx(problem.objective(whole), rel=1e-6)
    np.testing.assert_allclose(answer.weights, whole, atol=0.02)


def test_gaussian_shift_gives_the_density_ratio():
    """With many rows the weights estimate D_target / D_source, known in closed form here."""
    rng = np.random.default_rng(4)
    X, X_target = rng.normal(size=(1500, 1)), rng.normal(0.5, 1, size=(1500, 1))
    bounds = BoxAndBand(1000.0, 0.0, 3000.0)
    weights = mean_matching_weights(X, X_target, "rbf", 0.5, bounds, 1e-4).weights
    for low in (-1.5, -0.5, 0.5, 1.5):
        inside = (X[:, 0] > low - 0.5) & (X[:, 0] < low + 0.5)
        true = np.exp(0.5 * X[inside, 0] - 0.125).mean()
        assert weights[inside].mean() == pytest.approx(true, rel=0.25, abs=0.1)


def test_a_solver_that_stops_early_says_so():
    rng = np.random.default_rng(5)
    problem = problem_of(*shifted(rng, 50, 3), BoxAndBand(1000.0, 5.0, 95.0))
    with pytest.warns(ConvergenceWarning, match="feasible but not optimal"):
        solve_qp(problem, 1e-9, max_rounds=1)


@pytest.mark.parametrize("n", [1, 2, 29, 30, 200])
def test_largest_eigenvalue(n):
    X = np.random.default_rng(n).normal(size=(n, 3))
    true = np.linalg.eigvalsh(rbf_kernel(X)).max()
    assert true <= largest_eigenvalue(rbf_kernel(X).astype(np.float32)) <= 1.06 * true


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear", lambda x, y: float(x @ y) ** 2])
def test_kernel_blocks_against_scikit_learn(kernel):
    rng = np.random.default_rng(6)
    X, Y = 100 + rng.normal(size=(600, 4)), 100 + rng.normal(size=(7, 4))
    blocks = np.concatenate([block for _, block in kernel_blocks(X, Y, kernel, None)])
    np.testing.assert_allclose(blocks, pairwise_kernels(X, Y, metric=kernel), rtol=1e-5, atol=1e-6)


# -- estimator -----------------------------------------------------------------------------------


def test_check_estimator_without_probabilities():
    check_estimator(KernelMeanMatching(SVC()), on_skip=None)


def test_the_type_is_that_of_the_inner_estimator():
    assert is_classifier(KernelMeanMatching(LogisticRegression()))
    assert is_regressor(KernelMeanMatching(Ridge()))
    assert not hasattr(KernelMeanMatching(Ridge()), "predict_proba")


def test_weights_help_under_covariate_shift():
    rng = np.random.default_rng(7)
    X, X_target = rng.normal(size=(400, 1)), rng.normal(1.5, 0.3, size=(200, 1))
    plain = LinearRegression().fit(X, np.sin(X[:, 0]))
    matched = KernelMeanMatching(LinearRegression()).fit(X, np.sin(X[:, 0]), X_target=X_target)
    errors = [
        np.mean((m.predict(X_target) - np.sin(X_target[:, 0])) ** 2) for m in (plain, matched)
    ]
    assert errors[1] < 0.2 * errors[0]
    expected = LinearRegression().fit(X, np.sin(X[:, 0]), sample_weight=matched.weights_)
    np.testing.assert_allclose(matched.predict(X_target), expected.predict(X_target))
    assert matched.residual_ <= 1e-4


def test_sparse_rows_and_string_labels():
    rng = np.random.default_rng(8)
    X, X_target = shifted(rng, 60, 3)
    y = np.where(X[:, 0] > 0, "yes", "no")
    dense = KernelMeanMatching(LogisticRegression()).fit(X, y, X_target=X_target)
    from_sparse = KernelMeanMatching(LogisticRegression()).fit(
        sparse.csr_array(X), y, X_target=sparse.csr_array(X_target), sample_domain=np.zeros(60)
    )
    np.testing.assert_allclose(dense.weights_, from_sparse.weights_, atol=0.05)
    assert list(dense.classes_) == ["no", "yes"]
    assert dense.predict_proba(X).shape == (60, 2)
    assert dense.score(X, y) > 0.9


def test_without_target_it_is_the_plain_estimator():
    rng = np.random.default_rng(9)
    X, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    model = KernelMeanMatching(KNeighborsRegressor()).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), KNeighborsRegressor().fit(X, y).predict(X))
    np.testing.assert_array_equal(model.weights_, np.ones(20))


def test_bad_input_speaks():
    X, y = np.arange(6.0)[:, None], np.arange(6.0)
    with pytest.raises(TypeError, match="takes sample_weight, which KNeighborsRegressor"):
        KernelMeanMatching(KNeighborsRegressor()).fit(X, y, X_target=X)
    with pytest.raises(ValueError, match=r"at least 1 - eps"):
        KernelMeanMatching(Ridge(), B=0.5, eps=0.1).fit(X, y, X_target=X)
    with pytest.raises(ValueError, match="features"):
        KernelMeanMatching(Ridge()).fit(X, y, X_target=np.ones((3, 2)))
    with pytest.raises(ValueError, match="NaN"):
        KernelMeanMatching(Ridge()).fit(X, y, X_target=[[np.nan]])


def test_clone_keeps_parameters():
    model = clone(KernelMeanMatching(Ridge(alpha=3.0), B=5.0))
    assert (model.B, model.estimator.alpha) == (5.0, 3.0)


def test_benchmark_measures_feasible_weights_below_the_unit_ones():
    row = benchmark.measure("anymix", benchmark.ours, 200)
    unit = benchmark.measure("unit", lambda X, X_target: np.ones(len(X)), 200)
    assert row["objective"] < unit["objective"]
    assert row["off"] <= 1e-9
