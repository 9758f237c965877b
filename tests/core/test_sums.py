"""A stack of z in one pass, parts that add up, and kinks that are rounded."""

import numpy as np
import pytest

from anymix.core import Problem, Sums, add_sums, simplex
from anymix.core.losses import Absolute, Hinge, Pinball, Squared
from anymix.core.solvers.methods import paired_standard_errors
from tests.core.loss_cases import CASES, make_problem


@pytest.mark.parametrize("own", [False, True], ids=["pooled", "own"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case.loss))
def test_a_stack_is_its_members(case, own):
    problem = make_problem(case, seed=1, own=own)
    rng, p = np.random.default_rng(0), problem.n_sources
    Z, lam = rng.dirichlet(np.ones(p), 4), rng.dirichlet(np.ones(p), 4)
    many = problem.evaluate_many(Z, lam)
    assert problem.evaluate_many(Z).hessians is None
    for z, weights, L, G, H in zip(Z, lam, *many, strict=True):
        np.testing.assert_allclose(L, problem.source_losses(z), rtol=1e-12)
        np.testing.assert_allclose(G, problem.losses_and_jacobian(z)[1], rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(H, problem.hessian(z, weights), rtol=1e-10, atol=1e-12)


def test_a_stack_has_one_column_a_source():
    problem = make_problem(CASES[0], seed=0)
    with pytest.raises(ValueError, match=r"Z has shape \(2, 4\); a stack of z must be \(s, 3\)"):
        problem.evaluate_many(np.ones((2, 4)))


def parts_of(seed, case, weighted):
    """A whole problem, and the same in three parts, of which one lacks a source."""
    rng = np.random.default_rng(seed)
    p, m = 3, 120
    h, y = case.draw(rng, p, m)
    d = np.sort(rng.integers(p, size=m))
    w = rng.uniform(0.5, 2, size=m) if weighted else None
    log_d = rng.normal(size=(p, m))
    whole = Problem.from_log_densities(log_d, h, y, case.loss, sample_domain=d, sample_weight=w)
    totals = np.bincount(d, w, p)
    parts = []
    for rows in np.split(rng.permutation(m), [50, 80]):
        given = log_d[:, rows], h[:, rows], y[rows], case.loss, 1e-3, d[rows]
        some = None if w is None else w[rows]
        parts.append(Problem.from_log_densities(*given, some, totals=totals))
    lone = np.flatnonzero(d == 1)
    given = log_d[:, lone], h[:, lone], y[lone], case.loss, 1e-3, d[lone]
    one = Problem.from_log_densities(*given, None if w is None else w[lone], totals=totals)
    return whole, parts, one


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case.loss))
def test_parts_add_up(case, weighted):
    whole, parts, one = parts_of(3, case, weighted)
    Z = np.random.default_rng(1).dirichlet(np.ones(3), 3)
    summed = add_sums(part.evaluate_many(Z, Z) for part in parts)
    for ours, theirs in zip(summed, whole.evaluate_many(Z, Z), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(sum(part.own_losses for part in parts), whole.own_losses)
    moments = sum(part.paired_moments(Z[0]) for part in parts)
    np.testing.assert_allclose(moments, whole.paired_moments(Z[0]), rtol=1e-10, atol=1e-13)
    alone = one.evaluate_many(Z)
    np.testing.assert_allclose(alone.losses[:, 1], whole.evaluate_many(Z).losses[:, 1])
    assert not alone.losses[:, [0, 2]].any()


def test_a_part_thinned_keeps_its_share():
    whole, parts, one = parts_of(0, CASES[0], True)
    rng = np.random.default_rng(0)
    for problem in (whole, *parts, one):
        small = problem.thin(12, rng)
        assert small.n_points < problem.n_points
        ours, theirs = (p.measure.rows().sum(axis=1) for p in (small, problem))
        np.testing.assert_allclose(ours, theirs)


@pytest.mark.parametrize("totals", [[1.0, 2.0], [3.0, 0.5, 3.0], [0.0, 1.0, 1.0]])
def test_totals_are_of_all_parts(totals):
    given = np.zeros((3, 2)), np.zeros((3, 2)), np.zeros(2), "squared", 1e-3, [1, 1]
    with pytest.raises(ValueError, match=r"totals must be|zero"):
        Problem.from_log_densities(*given, totals=totals)


def test_sums_without_hessians_add_up():
    part = Sums(np.ones((1, 2)), np.ones((1, 2, 2)))
    assert add_sums([part, part, part]).hessians is None
    np.testing.assert_array_equal(add_sums([part]).jacobians, part.jacobians)


@pytest.mark.parametrize("seed", range(3))
def test_paired_errors_are_those_of_the_rows(seed):
    problem = make_problem(CASES[0], seed=seed, own=True)
    z = simplex.uniform(problem.n_sources)
    for k, error in enumerate(paired_standard_errors(problem, z)):
        points, w = problem.measure.take(k)
        h, y = problem.ratio(z)[0][points], problem.targets[points]
        d = problem.loss.value(h, y) - problem.loss.value(problem.predictions[k, points], y)
        expected = np.sqrt(np.sum((w * (d - w @ d)) ** 2))
        np.testing.assert_allclose(error, expected, rtol=1e-9)


def test_differences_that_are_all_alike_have_no_error():
    problem = Problem.from_log_densities(
        np.zeros((2, 6)), np.ones((2, 6)), np.zeros(6), sample_domain=[0, 0, 0, 1, 1, 1]
    )
    assert not paired_standard_errors(problem, simplex.uniform(2)).any()


@pytest.mark.parametrize("loss", [Absolute(), Pinball(0.2), Hinge()], ids=repr)
def test_a_rounded_kink(loss):
    rng = np.random.default_rng(0)
    y = rng.choice([-1.0, 1.0], size=40)
    h = y + rng.normal(size=40) * np.repeat([1e-3, 1.0], 20)
    for smooth, width in ((loss.smoothed(width), width) for width in (1.0, 1e-2)):
        excess = smooth.value(h, y) - loss.value(h, y)
        assert (excess >= 0).all()
        assert excess.max() <= loss.kink * width / 2
        step = 1e-4 * width
        slope = (smooth.value(h + step, y) - smooth.value(h - step, y)) / (2 * step)
        np.testing.assert_allclose(smooth.slope(h, y), slope, atol=1e-6)
        bend = (smooth.slope(h + step, y) - smooth.slope(h - step, y)) / (2 * step)
        np.testing.assert_allclose(smooth.curvature(h, y), bend, atol=1e-6 / width)
    # The jump is what was declared.
    near = loss.slope(y + 1e-9, y) - loss.slope(y - 1e-9, y)
    np.testing.assert_allclose(near, loss.kink)


def test_a_smooth_loss_stays_as_it_is():
    assert Squared().smoothed(1.0) == Squared()
    problem = make_problem(CASES[0], seed=0)
    np.testing.assert_array_equal(problem.smoothed(1.0).own_losses, problem.own_losses)
