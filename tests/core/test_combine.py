"""h_z at new points: the four rules, extreme logarithms, and agreement with the problem."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anymix.core import Problem, combine, simplex, source_weights


@given(seed=st.integers(0, 10_000), eta=st.sampled_from([0.0, 1e-3, 0.5]), floor=st.booleans())
def test_weights_by_the_formula(seed, eta, floor):
    rng = np.random.default_rng(seed)
    p, n = int(rng.integers(1, 6)), 7
    D, z = rng.random((p, n)) + 1e-3, simplex.random(p, rng)
    U = np.full(n, 0.3) if floor else D.mean(axis=0)
    expected = z[:, None] * D + eta / p * U
    expected /= expected.sum(axis=0)
    found = source_weights(np.log(D), z, eta, np.log(0.3) if floor else None)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    np.testing.assert_allclose(found.sum(axis=0), 1, rtol=1e-12)
    h = rng.standard_normal((p, n))
    combined = combine(np.log(D), h, z, eta, log_reference=np.log(0.3) if floor else None)
    np.testing.assert_allclose(combined, (expected * h).sum(axis=0), rtol=1e-8, atol=1e-12)
    assert np.all(combined <= h.max(axis=0) + 1e-12)
    assert np.all(combined >= h.min(axis=0) - 1e-12)


@given(seed=st.integers(0, 10_000), shift=st.floats(-1e6, 1e6))
@settings(max_examples=20, deadline=None)
def test_a_common_factor_per_point_changes_nothing(seed, shift):
    rng = np.random.default_rng(seed)
    log_d, z = rng.standard_normal((3, 5)), simplex.random(3, rng)
    moved = source_weights(log_d + shift, z, 0.1)
    np.testing.assert_allclose(moved, source_weights(log_d, z, 0.1), rtol=1e-7)


@pytest.mark.parametrize("eta", [0.0, 1e-3])
def test_log_densities_of_minus_twenty_thousand(eta):
    log_d = np.array([[-20_000.0, -20_000.0, -19_000.0], [-20_001.0, -25_000.0, -20_000.0]])
    weights = source_weights(log_d, [0.5, 0.5], eta)
    near, far = 1 / (1 + np.exp(-1.0)), 1.0
    expected = np.array([near, far, far])
    share = eta / 2 * np.array([1.0, 1.0, 1.0])
    # U is the mean of the densities: (D_1 + D_2)/2, and so is D_z at equal weights.
    np.testing.assert_allclose(weights[0], (expected + share) / (1 + eta), rtol=1e-9)


def test_far_from_all_sources_a_floor_falls_back_to_equal_weights():
    log_d = np.array([[-1.0, -3000.0], [-2.0, -9000.0]])
    followed = source_weights(log_d, [0.9, 0.1], 1e-3)
    floored = source_weights(log_d, [0.9, 0.1], 1e-3, log_reference=-50.0)
    np.testing.assert_allclose(followed[:, 1], [1, 0], atol=1e-3)
    np.testing.assert_allclose(floored[:, 1], [0.5, 0.5], rtol=1e-12)
    # Where there is data the floor is not seen.
    np.testing.assert_allclose(floored[:, 0], source_weights(log_d, [0.9, 0.1])[:, 0], rtol=1e-12)


@pytest.mark.parametrize("eta", [0.0, 1e-3])
def test_points_that_no_source_can_have_produced_weigh_all_alike(eta):
    log_d = np.full((4, 2), -np.inf)
    np.testing.assert_array_equal(source_weights(log_d, [0.7, 0.1, 0.1, 0.1], eta), 0.25)
    h = np.arange(8.0).reshape(4, 2)
    np.testing.assert_allclose(combine(log_d, h, [0.7, 0.1, 0.1, 0.1], eta), h.mean(axis=0))


def test_a_source_of_no_weight_is_not_heard_unless_alone():
    log_d = np.array([[0.0, -np.inf], [0.0, 0.0]])
    np.testing.assert_array_equal(source_weights(log_d, [1.0, 0.0]), [[1, 0.5], [0, 0.5]])


def joint_example(seed=0, p=3, n=5, c=4):
    rng = np.random.default_rng(seed)
    D = rng.random((p, n, c)) + 0.05
    return D, rng.dirichlet(np.ones(c), size=(p, n)), simplex.random(p, rng)


def test_joint_and_normalised_rules_by_loops():
    D, h, z = joint_example()
    eta = 0.2
    p, n, c = D.shape
    joint = np.zeros((n, c))
    for i in range(n):
        for y in range(c):
            U = sum(D[k, i, y] for k in range(p)) / p
            K = sum(z[k] * D[k, i, y] for k in range(p)) + eta * U
            J = sum((z[k] * D[k, i, y] + eta / p * U) * h[k, i, y] for k in range(p))
            joint[i, y] = J / K
    np.testing.assert_allclose(combine(np.log(D), h, z, eta, "joint"), joint, rtol=1e-10)
    normalised = combine(np.log(D), h, z, eta, "normalised")
    np.testing.assert_allclose(normalised, joint / joint.sum(axis=1, keepdims=True), rtol=1e-10)
    np.testing.assert_allclose(normalised.sum(axis=1), 1, rtol=1e-12)


def test_the_marginal_rule_is_normalised_already_and_the_joint_is_not():
    D, h, z = joint_example(1)
    marginal = combine(np.log(D.sum(axis=2)), h, z, 1e-3, "marginal")
    np.testing.assert_allclose(marginal.sum(axis=1), 1, rtol=1e-12)
    assert np.abs(combine(np.log(D), h, z, 1e-3, "joint").sum(axis=1) - 1).max() > 1e-2


def test_regression_and_marginal_are_the_same_sum():
    D, h, z = joint_example(2)
    log_d = np.log(D[:, :, 0])
    one = combine(log_d, h[:, :, 0], z, rule="regression")
    np.testing.assert_array_equal(one, combine(log_d, h, z, rule="marginal")[:, 0])


def test_the_joint_rule_may_be_asked_at_the_label_alone():
    D, h, z = joint_example(3)
    everywhere = combine(np.log(D), h, z, 0.1, "joint")
    at_label = combine(np.log(D[:, :, 2]), h[:, :, 2], z, 0.1, "joint")
    np.testing.assert_allclose(everywhere[:, 2], at_label, rtol=1e-12)


@pytest.mark.parametrize("own", [False, True], ids=["pooled", "own"])
def test_agrees_with_the_problem_through_log_scale(own):
    rng = np.random.default_rng(4)
    log_d = 3 * rng.standard_normal((3, 20)) - 500 + np.array([[0.0], [4.0], [-2.0]])
    h, z, eta = rng.standard_normal((3, 20)), np.array([0.5, 0.2, 0.3]), 0.05
    domain = rng.permutation(np.arange(20) % 3) if own else None
    problem = Problem.from_log_densities(log_d, h, np.zeros(20), eta=eta, sample_domain=domain)
    combined = combine(log_d + problem.log_scale[:, None], h, z, eta)
    np.testing.assert_allclose(combined, problem.combined(z), rtol=1e-9)
    if not own:
        assert np.abs(combine(log_d, h, z, eta) - problem.combined(z)).max() > 1e-3


OK_D, OK_H = np.zeros((2, 3)), np.ones((2, 3))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rule": "sum"}, "rule must be one of marginal, regression, joint, normalised"),
        ({"log_densities": np.zeros((2, 4))}, r"needs log_densities of the shape \(sources"),
        ({"rule": "joint", "predictions": np.ones((2, 3, 2))}, "the shape of the predictions"),
        ({"rule": "normalised"}, r"predictions must be \(p, n, c\)"),
        ({"log_densities": np.full((2, 3), np.nan)}, "log_densities must not be NaN or"),
        ({"log_densities": np.full((2, 3), np.inf)}, "log_densities must not be NaN or"),
        ({"predictions": np.full((2, 3), np.nan)}, "predictions must be finite; found nan"),
        ({"eta": -1.0}, "eta must be finite and not negative"),
        ({"eta": 0.1, "log_reference": np.nan}, "log_reference must not be NaN"),
        ({"z": [0.5, 0.2, 0.3]}, r"z has shape \(3,\); with 2 sources"),
        ({"z": [0.5, 0.2]}, "z must be on the simplex"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(arguments, message):
    call = {"log_densities": OK_D, "predictions": OK_H, "z": [0.5, 0.5]} | arguments
    with pytest.raises(ValueError, match=message):
        combine(**call)


def test_a_point_without_any_class_cannot_be_normalised():
    log_d = np.array([[[0.0, -np.inf]], [[-np.inf, 0.0]]])
    h = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
    with pytest.raises(ValueError, match="no class has a probability at point 0"):
        combine(log_d, h, [0.5, 0.5], rule="normalised")
    np.testing.assert_allclose(
        combine(log_d, h, [0.5, 0.5], 0.1, "normalised", log_reference=0.0), 0.5
    )
