"""Lemmas 7 and 8, App. C: what averages must pay, and what the normalised rule must."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anymix.core import Problem, combine, one_input_example, simplex, solve


def lemma_7(eta=1e-4):
    """X = {a, b}: D_0 sits on (a, 0) with h_0 = 0, D_1 on (b, 1) with h_1 = 1."""
    return Problem([[1, 0], [0, 1]], [[0, 0], [1, 1]], [0, 1], eta=eta)


def lemma_8(p, eta=1e-4):
    """D_k sits on (x_k, y_k), h_k gives label y_k probability 1."""
    full = np.repeat(np.eye(p)[:, None, :], p, axis=1)
    # Cross-entropy forbids the zeros of the example; 1e-12 stands for them.
    h = np.clip(full, 1e-12, 1)
    return Problem(np.eye(p), h, np.arange(p), loss="cross_entropy", eta=eta)


@given(alpha=st.floats(0, 1))
def test_lemma_7_convex_combinations_pay_a_quarter(alpha):
    problem = lemma_7()
    g = alpha * problem.predictions[0] + (1 - alpha) * problem.predictions[1]
    losses = problem.masses @ (g - problem.targets) ** 2
    assert losses.mean() >= 0.25 - 1e-12


@pytest.mark.parametrize("objective", ["gamma", "robust", "regret"])
def test_lemma_7_the_weighted_combination_pays_nothing(objective):
    problem = lemma_7()
    solution = solve(problem, objective)
    np.testing.assert_array_equal(problem.own_losses, 0)
    assert solution.robust_loss <= problem.eta * problem.loss_bound
    assert solution.robust_loss < 1e-7


@given(p=st.integers(2, 7), seed=st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_lemma_8_convex_combinations_pay_log_p(p, seed):
    alpha = simplex.random(p, np.random.default_rng(seed))
    problem = lemma_8(p)
    losses = problem.masses @ -np.log(alpha @ problem.predictions)
    assert losses.max() >= np.log(p) - 1e-9
    uniform = problem.masses @ -np.log(simplex.uniform(p) @ problem.predictions)
    assert uniform.max() == pytest.approx(np.log(p), abs=1e-9)


@pytest.mark.parametrize("p", [2, 3, 10])
@pytest.mark.parametrize("objective", ["gamma", "robust", "regret"])
def test_lemma_8_the_weighted_combination_pays_nothing(p, objective):
    problem = lemma_8(p)
    solution = solve(problem, objective)
    assert solution.robust_loss < 1e-3 * np.log(p)
    np.testing.assert_allclose(solution.z, 1 / p, atol=1e-3)


def test_lemma_8_the_unnormalised_rule_is_no_probability_there():
    """Weights all alike where no source has mass: Σ_y h = 1 + (p − 1)/p; Thm 3 normalises it."""
    p = 4
    log_joint = np.full((p, p, p), -np.inf)
    log_joint[np.arange(p), np.arange(p), np.arange(p)] = 0.0
    h = np.repeat(np.eye(p)[:, None, :], p, axis=1)
    z = simplex.uniform(p)
    joint = combine(log_joint, h, z, rule="joint")
    np.testing.assert_allclose(joint.sum(axis=1), 1 + (p - 1) / p)
    np.testing.assert_allclose(np.diag(joint), 1)
    normalised = combine(log_joint, h, z, rule="normalised")
    np.testing.assert_allclose(normalised.sum(axis=1), 1)


@given(p=st.integers(2, 7), seed=st.integers(0, 10_000), eta=st.sampled_from([1e-6, 1e-3, 0.5]))
def test_app_c_the_normalised_rule_pays_log_p_under_distinct_conditionals(p, seed, eta):
    example, z = one_input_example(p, eta), simplex.random(p, np.random.default_rng(seed))
    assert example.own_losses.max() < 1e-10
    assert example.robust_loss(z) >= np.log(p) - 1e-9
    # By hand, U the mean of the D_k: h_z(x, y_k) = (z_k + η/p²)/(z_k + η/p), then normalised.
    joint = (z + eta / p**2) / (z + eta / p)
    expected = -np.log(joint / joint.sum())
    np.testing.assert_allclose(example.source_losses(z), expected, rtol=1e-6)


@pytest.mark.parametrize("p", [2, 3, 10])
def test_app_c_the_bound_is_reached_as_eta_falls_and_the_joint_rule_pays_nothing(p):
    example, z = one_input_example(p, eta=1e-9), simplex.random(p, np.random.default_rng(p))
    np.testing.assert_allclose(example.source_losses(z), np.log(p), rtol=1e-5)
    joint = combine(example.log_joint, example.proba, z, 1e-9, "joint")
    np.testing.assert_allclose(np.diag(joint), 1, atol=1e-6)
    assert example.largest_log_total == pytest.approx(np.log(p))
    np.testing.assert_allclose(example.log_totals(z), np.log(p), rtol=1e-5)


@pytest.mark.parametrize(("p", "floor"), [(1, 1e-3), (3, 0.5), (3, 0.0)])
def test_app_c_needs_two_sources_and_a_small_floor(p, floor):
    with pytest.raises(ValueError, match="floor"):
        one_input_example(p, floor=floor)
