"""Bad input: one clear sentence and the fitting exception, naming points as the user does."""

import numpy as np
import pytest

from anymix.core import Problem

P, M = 2, 4
MASSES = np.array([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]])
PREDICTIONS = np.array([[0.1, 0.9, 0.5, 0.2], [0.3, 0.6, 0.4, 0.8]])
TARGETS = np.array([0.0, 1.0, 0.5, 0.5])


def changed(table, index, value):
    table = np.array(table, dtype=float)
    table[index] = value
    return table


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        # shapes that disagree
        ({"masses": MASSES[0]}, r"masses must have shape \(sources, points\)"),
        ({"masses": np.ones((0, 4))}, "masses must have shape"),
        ({"masses": MASSES[:, :3]}, r"predictions have shape \(2, 4\); with masses \(2, 3\)"),
        ({"predictions": PREDICTIONS[:1]}, r"predictions have shape \(1, 4\)"),
        ({"predictions": PREDICTIONS[:, :, None]}, r"they must have shape \(2, 4\)"),
        ({"predictions": PREDICTIONS, "loss": "brier"}, r"must have shape \(2, 4, 'classes'\)"),
        ({"targets": TARGETS[:3]}, r"targets have shape \(3,\); they must have shape \(4,\)"),
        ({"targets": None}, "targets are needed for the loss Squared"),
        ({"weights": MASSES[:, :2]}, r"weights \(2, 2\) and masses \(2, 4\) must agree"),
        ({"reference": [1.0]}, "reference must be 4 numbers ≥ 0"),
        # NaN and infinity
        (
            {"masses": changed(MASSES, (1, 2), np.nan)},
            r"masses must be finite; found nan at index \(1, 2\)",
        ),
        ({"predictions": changed(PREDICTIONS, (0, 3), np.inf)}, r"found inf at index \(0, 3\)"),
        (
            {"targets": changed(TARGETS, 1, np.nan)},
            r"targets must be finite; found nan at index \(1,\)",
        ),
        ({"weights": changed(MASSES, (0, 0), np.nan)}, "weights must be finite"),
        ({"reference": changed(TARGETS, 0, np.inf)}, "reference must be finite"),
        # masses
        ({"masses": changed(MASSES, (1, 3), -0.5)}, "source 1 has -0.5 at point 3"),
        ({"masses": changed(MASSES, 0, 0.0)}, "source 0 has no mass at any point next to source 1"),
        ({"weights": changed(MASSES, 1, 0.0)}, "source 1 has no mass at any point"),
        ({"reference": [0.0, -1.0, 1.0, 1.0]}, "reference must be 4 numbers ≥ 0"),
        ({"reference": "pooled"}, "reference must be 'uniform', an array or None"),
        (
            {"masses": [[1, 0, 1, 1], [0, 1, 1, 1]], "reference": [0, 1, 1, 1]},
            "point 0 counts for a source but the reference has no mass there.*reference='uniform'",
        ),
        # eta
        ({"eta": 0.0}, "eta must be positive and finite; got 0.0"),
        ({"eta": -1e-3}, "eta must be positive"),
        ({"eta": np.nan}, "eta must be positive and finite"),
        ({"eta": np.inf}, "eta must be positive and finite"),
        # losses
        ({"loss": "mse"}, "unknown loss 'mse'; known are squared, cross_entropy"),
        (
            {"loss": "cross_entropy", "predictions": changed(PREDICTIONS, (1, 2), 0.0)},
            "infinite at a probability ≤ 0: source 1 gives 0 to the true label of point 2; clip",
        ),
        (
            {"loss": "cross_entropy", "predictions": changed(PREDICTIONS, (0, 1), 1.5)},
            "source 0 gives 1.5 > 1 at point 1; pass the probability",
        ),
        ({"loss": "logistic"}, "targets of −1 and 1; map the labels first"),
        ({"loss": "hinge"}, "targets of −1 and 1; map the labels first"),
        ({"loss": "poisson", "targets": TARGETS - 1}, "needs targets ≥ 0; got -1"),
        ({"loss": "poisson_log", "targets": TARGETS - 1}, "needs targets ≥ 0; got -1"),
        (
            {"loss": "poisson", "predictions": PREDICTIONS - 0.1},
            "predicted means > 0; use loss='po",
        ),
        (
            {"loss": "brier", "predictions": np.full((2, 4, 3), 1 / 3), "targets": [0, 1, 2, 3]},
            "targets must be 4 class numbers from 0 to 2",
        ),
        (
            {"loss": "cross_entropy", "predictions": np.full((2, 4, 3), 1 / 3), "targets": None},
            "targets must be 4 class numbers from 0 to 2",
        ),
    ],
)
def test_problem_refuses(arguments, message):
    call = {"masses": MASSES, "predictions": PREDICTIONS, "targets": TARGETS} | arguments
    with pytest.raises(ValueError, match=message):
        Problem(**call)


@pytest.mark.parametrize("eta", ["0.1", None, [0.1, 0.2]])
def test_eta_of_the_wrong_type(eta):
    with pytest.raises(TypeError, match="eta must be a number; got"):
        Problem(MASSES, PREDICTIONS, TARGETS, eta=eta)


LOG = np.log(MASSES)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"log_densities": LOG[0]}, r"log_densities must have shape \(sources, points\)"),
        ({"log_densities": changed(LOG, (0, 0), np.nan)}, "must not be NaN or"),
        ({"log_densities": changed(LOG, (0, 0), np.inf)}, "must not be NaN or"),
        (
            {"log_densities": changed(LOG, np.s_[:, 2], -np.inf)},
            "every source gives point 2 the density 0",
        ),
        ({"log_densities": changed(LOG, 1, -np.inf)}, "source 1 has no mass at any point"),
        (
            {"log_densities": changed(LOG, 1, -np.inf), "sample_domain": [0, 1, 0, 1]},
            "source 1 has no mass",
        ),
        ({"sample_domain": [0, 1, 0]}, "sample_domain must hold 4 whole numbers"),
        (
            {"sample_domain": [0.0, 1.0, 0.0, 1.0]},
            "sample_domain must hold 4 whole numbers",
        ),
        ({"sample_domain": [0, 1, 2, 1]}, r"sample_domain must lie in 0\.\.1"),
        ({"sample_domain": [0, 1, -1, 1]}, r"sample_domain must lie in 0\.\.1"),
        ({"sample_domain": [0, 0, 0, 0]}, "source 1 has 0 point"),
        ({"sample_weight": [1.0, 1.0]}, "sample_weight must be 4 numbers ≥ 0"),
        ({"sample_weight": [1.0, 1.0, -1.0, 1.0]}, "sample_weight must be 4 numbers ≥ 0"),
        ({"sample_weight": [1.0, 1.0, np.nan, 1.0]}, "sample_weight must be finite"),
        ({"sample_weight": [0.0] * 4}, "source 0 has no mass at any point"),
        (
            {"sample_domain": [0, 1, 0, 1], "sample_weight": [1.0, 0.0, 1.0, 0.0]},
            "all sample weights of source 1 are zero",
        ),
        (
            {"predictions": PREDICTIONS[:, :3], "sample_domain": [0, 1, 0, 1]},
            "predictions have shape",
        ),
        ({"targets": TARGETS[:3], "sample_domain": [0, 1, 0, 1]}, r"targets have shape \(3,\)"),
        ({"targets": None, "sample_domain": [0, 1, 0, 1]}, "targets are needed"),
    ],
)
def test_from_log_densities_refuses(arguments, message):
    call = {"log_densities": LOG, "predictions": PREDICTIONS, "targets": TARGETS} | arguments
    with pytest.raises(ValueError, match=message):
        Problem.from_log_densities(**call)


def test_points_are_named_in_the_users_order_though_they_are_sorted_inside():
    with pytest.raises(ValueError, match="source 0 gives 0 to the true label of point 1"):
        Problem.from_log_densities(
            LOG,
            changed(PREDICTIONS, (0, 1), 0.0),
            None,
            loss="cross_entropy",
            sample_domain=[1, 0, 1, 0],
        )


def test_whole_numbers_of_any_kind_name_the_domain():
    for kind in (np.int8, np.uint8, np.int64, np.uint64):
        domain = np.array([0, 1, 0, 1], dtype=kind)
        problem = Problem.from_log_densities(LOG, PREDICTIONS, TARGETS, sample_domain=domain)
        assert problem.source_losses([0.5, 0.5]).shape == (2,)


def test_shares_that_cannot_be_seen_are_zero_and_never_denormal():
    log_d = np.array([[0.0, -400.0, 0.0], [-300.0, 0.0, 0.0]])
    problem = Problem.from_log_densities(log_d, np.zeros((2, 3)), np.zeros(3))
    assert problem.masses[1, 0] == 0
    assert problem.masses[problem.masses > 0].min() > 1e-100


def test_inputs_are_not_changed():
    tables = [MASSES.copy(), PREDICTIONS.copy(), TARGETS.copy()]
    problem = Problem(*tables)
    problem.losses_and_jacobian([0.5, 0.5])
    problem.hessian([0.5, 0.5], np.ones(2))
    for table, before in zip(tables, [MASSES, PREDICTIONS, TARGETS], strict=True):
        np.testing.assert_array_equal(table, before)


@pytest.mark.parametrize("masses", [[[1, 2], [1]], [["a", "b"], ["c", "d"]]])
def test_masses_that_are_no_table_of_numbers(masses):
    with pytest.raises(ValueError, match="masses must be numbers, in rows of one length"):
        Problem(masses, [[0, 0], [1, 1]], [0, 1])


def test_a_z_of_the_wrong_length_is_named_by_every_evaluation():
    problem = Problem([[0.9, 0.1], [0.2, 0.8]], [[0.0, 0.5], [0.5, 1.0]], [0.0, 1.0])
    z = np.full(3, 1 / 3)
    for evaluate in (
        problem.source_losses,
        problem.losses_and_jacobian,
        lambda z: problem.hessian(z, np.ones(2)),
    ):
        with pytest.raises(ValueError, match=r"z has shape \(3,\); it must be \(2,\)"):
            evaluate(z)
