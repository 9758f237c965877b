"""The problem: losses, Jacobian and Hessian against brute force and finite differences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anymix.core import Problem, simplex
from tests.core.loss_cases import CASES, central_difference, every_loss, make_problem

both_measures = pytest.mark.parametrize("own", [False, True], ids=["pooled", "own"])


def brute_losses(D, h, y, loss, eta, P, U, z):
    """L_k(z) by the definition, point by point."""
    p, m = D.shape
    L = np.zeros(p)
    for i in range(m):
        K = sum(z[k] * D[k, i] for k in range(p)) + eta * U[i]
        J = sum((z[k] * D[k, i] + eta * U[i] / p) * h[k, i] for k in range(p))
        value = loss.value(np.array([J / K]), y[i : i + 1])[0]
        L += P[:, i] * value
    return L


@every_loss
def test_losses_by_brute_force(case):
    rng = np.random.default_rng(0)
    h, y = case.draw(rng, 3, 20)
    D, P, U = rng.random((3, 20)), rng.random((3, 20)), rng.random(20)
    problem = Problem(D, h, y, loss=case.loss, eta=0.3, weights=P, reference=U)
    for z in [*np.eye(3), *rng.dirichlet(np.ones(3), size=3)]:
        expected = brute_losses(D, h, y, case.loss, 0.3, P, U, z)
        np.testing.assert_allclose(problem.source_losses(z), expected, rtol=1e-12)


@every_loss
@both_measures
def test_jacobian_by_finite_differences(case, own):
    problem = make_problem(case, seed=1, own=own)
    z = np.array([0.2, 0.5, 0.3])
    L, G = problem.losses_and_jacobian(z)
    np.testing.assert_allclose(L, problem.source_losses(z), rtol=1e-13)
    expected = central_difference(problem.source_losses, z)
    np.testing.assert_allclose(G, expected, rtol=1e-5, atol=1e-7)


@every_loss
@both_measures
def test_hessian_by_finite_differences(case, own):
    problem = make_problem(case, seed=2, own=own)
    z, lam = np.array([0.6, 0.1, 0.3]), np.array([0.3, 1.1, -0.4])
    expected = central_difference(lambda x: lam @ problem.losses_and_jacobian(x)[1], z)
    found = problem.hessian(z, lam)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(found, found.T)


@pytest.mark.parametrize("case", [CASES[0], CASES[2]], ids=["scalar", "vector"])
@pytest.mark.parametrize("sizes", [(700, 300, 1), (1, 1, 999), (256, 256, 488), (300, 400, 301)])
@both_measures
def test_blocks_change_nothing(case, sizes, own, monkeypatch):
    rng = np.random.default_rng(3)
    m = sum(sizes)
    h, y = case.draw(rng, 3, m)
    domain = rng.permutation(np.repeat(np.arange(3), sizes)) if own else None
    problem = Problem.from_log_densities(
        rng.standard_normal((3, m)), h, y, loss=case.loss, sample_domain=domain
    )
    z, lam = np.array([0.1, 0.2, 0.7]), np.array([0.5, 0.1, 0.4])

    def everything():
        return [problem.source_losses(z), *problem.losses_and_jacobian(z), problem.hessian(z, lam)]

    whole = everything()
    monkeypatch.setattr("anymix.core.averaging.BLOCK_NUMBERS", 1)
    assert len(list(problem.measure.blocks())) == -(-m // 256)
    for one, other in zip(whole, everything(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-13)


@every_loss
def test_own_measure_equals_its_table_of_weights(case):
    rng = np.random.default_rng(4)
    p, m = 4, 37
    h, y = case.draw(rng, p, m)
    log_d = rng.standard_normal((p, m))
    domain = rng.permutation(np.arange(m) % p)
    weight = rng.random(m)
    own = Problem.from_log_densities(
        log_d, h, y, loss=case.loss, sample_domain=domain, sample_weight=weight
    )
    P = np.stack([np.where(domain == k, weight, 0.0) for k in range(p)])
    dense = Problem(np.exp(log_d), h, y, loss=case.loss, weights=P / P.sum(axis=1, keepdims=True))
    z, lam = simplex.random(p, rng), rng.random(p)
    np.testing.assert_allclose(own.source_losses(z), dense.source_losses(z), rtol=1e-11)
    np.testing.assert_allclose(own.own_losses, dense.own_losses, rtol=1e-11)
    np.testing.assert_allclose(own.combined(z), dense.combined(z), rtol=1e-11)
    np.testing.assert_allclose(own.hessian(z, lam), dense.hessian(z, lam), rtol=1e-8, atol=1e-12)
    for one, other in zip(own.losses_and_jacobian(z), dense.losses_and_jacobian(z), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_unweighted_own_measure_is_the_mean_over_own_points():
    rng = np.random.default_rng(5)
    h, y, domain = rng.random((3, 30)), rng.random(30), rng.permutation(np.arange(30) % 3)
    problem = Problem.from_log_densities(rng.random((3, 30)), h, y, sample_domain=domain)
    z = simplex.uniform(3)
    squares = (problem.combined(z) - y) ** 2
    expected = [squares[domain == k].mean() for k in range(3)]
    np.testing.assert_allclose(problem.source_losses(z), expected, rtol=1e-12)
    own = [((h[k] - y)[domain == k] ** 2).mean() for k in range(3)]
    np.testing.assert_allclose(problem.own_losses, own, rtol=1e-12)


@given(seed=st.integers(0, 10_000), exponent=st.integers(0, 200))
def test_a_scale_per_point_changes_nothing(seed, exponent):
    """With explicit weights, and U scaled alike; down to masses of 1e-200, derivatives too."""
    rng = np.random.default_rng(seed)
    p, m = 3, 12
    D, P = rng.random((p, m)), rng.random((p, m))
    h, y = rng.standard_normal((p, m)), rng.standard_normal(m)
    scale = 10.0 ** -rng.uniform(0, exponent, size=m)
    z = simplex.random(p, rng)
    one, other = (Problem(table, h, y, weights=P) for table in (D, D * scale))
    np.testing.assert_allclose(one.combined(z), other.combined(z), rtol=1e-10)
    for a, b in zip(one.losses_and_jacobian(z), other.losses_and_jacobian(z), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(one.hessian(z, z), other.hessian(z, z), rtol=1e-7, atol=1e-9)


def test_one_point_of_vanishing_mass_does_not_spoil_the_hessian():
    rng = np.random.default_rng(6)
    D, h, y = rng.random((2, 9)), rng.random((2, 9)), rng.random(9)
    D[:, 4] = 1e-170
    keep = np.arange(9) != 4
    z = np.array([0.3, 0.7])
    whole, part = Problem(D, h, y), Problem(D[:, keep], h[:, keep], y[keep])
    np.testing.assert_allclose(whole.hessian(z, z), part.hessian(z, z), rtol=1e-12)


def test_from_log_densities_gives_the_papers_pooled_measure():
    """D_k = p r_k/m normalised: expectations under D_k by importance sampling from the pool."""
    rng = np.random.default_rng(7)
    log_d = rng.standard_normal((3, 40)) - 700
    h, y = rng.random((3, 40)), rng.random(40)
    problem = Problem.from_log_densities(log_d, h, y)
    r = np.exp(log_d + 700)
    r /= r.sum(axis=0)
    np.testing.assert_allclose(problem.masses, r / r.sum(axis=1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(problem.masses.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(problem.reference, problem.masses.mean(axis=0), rtol=1e-12)
    assert problem.pooled
    ratio = np.exp(np.log(problem.masses) - log_d - problem.log_scale[:, None])
    np.testing.assert_allclose(ratio / ratio[0], 1, rtol=1e-10)


def test_the_pooled_measure_estimates_the_true_losses():
    """Two normal densities, known expectations; raw densities over the pool would count twice."""
    rng = np.random.default_rng(8)
    x = np.concatenate([rng.normal(-1, 1, 20_000), rng.normal(1, 1, 20_000)])
    log_d = np.stack([-((x + 1) ** 2) / 2, -((x - 1) ** 2) / 2])
    problem = Problem.from_log_densities(log_d, np.zeros((2, x.size)), x)
    # E x² = 1 + 1 under both.
    np.testing.assert_allclose(problem.source_losses([0.5, 0.5]), [2, 2], rtol=0.03)


def test_sample_weights_are_multiplicities():
    rng = np.random.default_rng(9)
    log_d, h, y = rng.standard_normal((2, 12)), rng.random((2, 12)), rng.random(12)
    counts = np.array([1, 2, 3] * 4)
    domain = np.arange(12) % 2
    for d, repeated in [(None, None), (domain, np.repeat(domain, counts))]:
        weighted = Problem.from_log_densities(
            log_d, h, y, sample_domain=d, sample_weight=counts.astype(float)
        )
        several = Problem.from_log_densities(
            np.repeat(log_d, counts, axis=1),
            np.repeat(h, counts, axis=1),
            np.repeat(y, counts),
            sample_domain=repeated,
        )
        z = [0.4, 0.6]
        np.testing.assert_allclose(weighted.source_losses(z), several.source_losses(z), rtol=1e-12)


def test_a_source_may_have_points_of_no_weight():
    rng = np.random.default_rng(10)
    weight = np.array([1.0, 0.0, 1.0, 1.0])
    problem = Problem.from_log_densities(
        rng.random((2, 4)), rng.random((2, 4)), rng.random(4), sample_weight=weight
    )
    assert np.isfinite(problem.losses_and_jacobian([0.5, 0.5])[1]).all()


@both_measures
def test_thin_keeps_h_and_averages_over_fewer_points(own):
    rng = np.random.default_rng(11)
    p, m = 3, 3000
    log_d, h, y = rng.standard_normal((p, m)), rng.random((p, m)), rng.random(m)
    domain = np.repeat(np.arange(p), [2900, 90, 10]) if own else None
    problem = Problem.from_log_densities(log_d, h, y, sample_domain=domain)
    small = problem.thin(600, rng)
    z = np.array([0.2, 0.3, 0.5])
    assert 400 <= small.n_points <= 606
    assert not small.pooled
    P = small.measure.rows()
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-12)
    kept = {tuple(column) for column in problem.masses.T}
    assert all(tuple(column) in kept for column in small.masses.T)
    whole = dict(zip(map(tuple, problem.masses.T), problem.ratio(z)[0], strict=True))
    for column, value in zip(small.masses.T, small.ratio(z)[0], strict=True):
        assert value == pytest.approx(whole[tuple(column)], rel=1e-12)
    # The first source keeps some hundred points, enough to compare the averages.
    assert small.source_losses(z)[0] == pytest.approx(problem.source_losses(z)[0], rel=0.2)


def test_baselines_bounds_and_objectives_agree_with_their_definitions():
    problem = make_problem(CASES[0], seed=12)
    z = np.array([0.1, 0.6, 0.3])
    L, own = problem.source_losses(z), problem.own_losses
    expected = [
        problem.masses[k] @ (problem.predictions[k] - problem.targets) ** 2 for k in range(3)
    ]
    np.testing.assert_allclose(own, expected, rtol=1e-12)
    assert problem.mixture_loss(z) == pytest.approx(z @ L)
    assert problem.gamma(z) == pytest.approx(L.max() - z @ L)
    assert problem.gamma(z, own) == pytest.approx((L - own).max() - z @ (L - own))
    assert problem.robust_loss(z) == L.max()
    assert problem.regret(z) == pytest.approx((L - own).max())
    everything = (problem.predictions - problem.targets) ** 2
    assert problem.loss_bound == pytest.approx(everything.max())


def test_a_corner_with_no_eta_left_is_the_source_itself():
    rng = np.random.default_rng(13)
    h, y = rng.random((2, 8)), rng.random(8)
    problem = Problem(rng.random((2, 8)), h, y, eta=1e-12)
    np.testing.assert_allclose(problem.combined([1.0, 0.0]), h[0], rtol=1e-9)


def test_cross_entropy_looks_up_the_label_that_occurred():
    rng = np.random.default_rng(14)
    full, labels = rng.dirichlet(np.ones(4), size=(2, 9)), rng.integers(4, size=9)
    picked = full[:, np.arange(9), labels]
    D = rng.random((2, 9))
    one = Problem(D, full, labels, loss="cross_entropy")
    other = Problem(D, picked, None, loss="cross_entropy")
    domain = np.arange(9) % 2
    third, fourth = (
        Problem.from_log_densities(np.log(D), h, y, loss="cross_entropy", sample_domain=domain)
        for h, y in [(full, labels), (picked, None)]
    )
    z = [0.3, 0.7]
    np.testing.assert_array_equal(one.source_losses(z), other.source_losses(z))
    np.testing.assert_array_equal(third.source_losses(z), fourth.source_losses(z))


def test_brier_takes_class_numbers_or_rows():
    rng = np.random.default_rng(15)
    h, labels, D = rng.dirichlet(np.ones(3), size=(2, 9)), rng.integers(3, size=9), np.ones((2, 9))
    one = Problem(D, h, labels, loss="brier")
    other = Problem(D, h, np.eye(3)[labels], loss="brier")
    np.testing.assert_array_equal(one.source_losses([0.5, 0.5]), other.source_losses([0.5, 0.5]))


def test_reference_moves_the_weights_towards_equal_shares():
    D, h, y = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.0, 0.0], [1.0, 1.0]]), np.zeros(2)
    none = Problem(D, h, y, eta=0.5)
    uniform = Problem(D, h, y, eta=0.5, reference="uniform")
    explicit = Problem(D, h, y, eta=0.5, reference=[2.0, 1.0])
    z = [0.5, 0.5]
    # weights of source 1 at the first point: (η/p) U / (z D + η U)
    np.testing.assert_allclose(none.combined(z)[0], 0.25 * 0.5 / (0.5 + 0.5 * 0.5))
    np.testing.assert_allclose(uniform.combined(z)[0], 0.25 * 0.5 / (0.5 + 0.5 * 0.5))
    np.testing.assert_allclose(explicit.combined(z)[0], 0.25 * 2.0 / (0.5 + 0.5 * 2.0))
