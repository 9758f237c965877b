"""A problem in parts is the problem: same sums, same z, whichever map asks the parts."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from anymix.core import Problem, solve
from anymix.engines import PartitionedProblem

LOSSES = ["squared", "absolute", "pinball", "huber", "cross_entropy", "brier"]

KINKED = ["absolute", "pinball"]


def rows(loss, m=240, p=3, c=3, seed=0):
    rng = np.random.default_rng(seed)
    domain = rng.permutation(np.arange(m) % p)
    log_masses = 2.0 * rng.normal(size=(p, m))
    log_masses[domain, np.arange(m)] += 2.0
    if loss in ("cross_entropy", "brier"):
        said = rng.dirichlet(np.ones(c), size=(p, m))
        return log_masses, said, rng.integers(c, size=m), domain
    y = rng.normal(size=m)
    return log_masses, y + rng.normal(size=(p, m)) + np.arange(p)[:, None] / p, y, domain


def whole_and_parts(loss, cuts=(0, 20, 21, 130, 240), weight=None, **options):
    log_masses, said, y, domain = rows(loss, m=cuts[-1], **options)
    w = np.ones(y.size) if weight is None else weight
    totals = np.bincount(domain, w)
    whole = Problem.from_log_densities(log_masses, said, y, loss, 1e-3, domain, weight)
    parts = [
        Problem.from_log_densities(
            log_masses[:, i], said[:, i], y[i], loss, 1e-3, domain[i], w[i], totals=totals
        )
        for i in map(slice, cuts, cuts[1:])
    ]
    return whole, parts


@pytest.mark.parametrize("loss", LOSSES)
def test_sums_over_parts_are_those_of_all_points(loss):
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 240)
    whole, parts = whole_and_parts(loss, weight=weight)
    problem = PartitionedProblem(iter(parts))
    rng = np.random.default_rng(2)
    Z, multipliers = rng.dirichlet(np.ones(3), 4), rng.dirichlet(np.ones(3), 4)
    assert (problem.n_sources, problem.n_points) == (3, 240)
    assert problem.loss == whole.loss
    for mine, due in zip(
        problem.evaluate_many(Z, multipliers), whole.evaluate_many(Z, multipliers), strict=True
    ):
        np.testing.assert_allclose(mine, due, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(problem.own_losses, whole.own_losses, rtol=1e-12)
    np.testing.assert_allclose(problem.paired_moments(Z[0]), whole.paired_moments(Z[0]), rtol=1e-10)
    np.testing.assert_allclose(
        problem.smoothed(0.1).source_losses(Z[0]), whole.smoothed(0.1).source_losses(Z[0])
    )
    for name in ("gamma", "regret", "robust_loss"):
        assert getattr(problem, name)(Z[1]) == pytest.approx(getattr(whole, name)(Z[1]))


@pytest.mark.parametrize("objective", ["regret", "robust", "gamma"])
@pytest.mark.parametrize("loss", LOSSES)
def test_z_is_that_of_all_points(loss, objective):
    whole, parts = whole_and_parts(loss)
    shrinkage = 0.0 if objective == "gamma" else "auto"
    due = solve(whole, objective, shrinkage=shrinkage)
    with ThreadPoolExecutor(2) as pool:
        found = solve(PartitionedProblem(parts, pool.map), objective, shrinkage=shrinkage)
    assert found.status == due.status
    # Near a kink the last digits of a sum decide where a step ends.
    atol = 1e-6 if loss in KINKED else 1e-8
    np.testing.assert_allclose(found.z, due.z, atol=atol)
    assert found.shrinkage == pytest.approx(due.shrinkage)


def test_many_points_are_thinned_in_their_parts():
    cuts = (0, 30_000, 41_000, 60_000)
    whole, parts = whole_and_parts("squared", cuts)
    problem = PartitionedProblem(parts)
    few = problem.thin(6000, np.random.default_rng(0))
    assert few.n_points == pytest.approx(6000, rel=0.01)
    z = np.full(3, 1 / 3)
    np.testing.assert_allclose(few.source_losses(z), whole.source_losses(z), rtol=0.2)
    np.testing.assert_allclose(solve(problem).z, solve(whole).z, atol=1e-7)


def test_parts_that_hold_whole_sources_are_thinned_as_one():
    log_masses, said, y, domain = rows("squared", m=30_000)
    order = np.argsort(domain, kind="stable")
    log_masses, said, y, domain = log_masses[:, order], said[:, order], y[order], domain[order]
    whole = Problem.from_log_densities(log_masses, said, y, sample_domain=domain)
    totals, homes = np.bincount(domain), [domain == 0, domain > 0]
    parts = [
        Problem.from_log_densities(
            log_masses[:, i], said[:, i], y[i], sample_domain=domain[i], totals=totals
        )
        for i in homes
    ]
    z, rngs = np.array([0.2, 0.3, 0.5]), [np.random.default_rng(3) for _ in range(2)]
    few = PartitionedProblem(parts).thin(1000, rngs[0])
    np.testing.assert_allclose(
        few.source_losses(z), whole.thin(1000, rngs[1]).source_losses(z), rtol=1e-12
    )


def test_the_order_of_answers_does_not_change_a_digit():
    _, parts = whole_and_parts("squared")
    z = np.array([0.2, 0.3, 0.5])
    with ThreadPoolExecutor(4) as pool:
        threads = PartitionedProblem(parts, pool.map)
        due = PartitionedProblem(parts).source_losses(z)
        for _ in range(20):
            np.testing.assert_array_equal(threads.source_losses(z), due)


def test_questions_can_be_sent():
    _, parts = whole_and_parts("squared")

    def sent(function, things):
        return [pickle.loads(pickle.dumps(function))(part) for part in things]  # noqa: S301

    z = np.array([0.2, 0.3, 0.5])
    far = PartitionedProblem(parts, sent).smoothed(0.1).thin(100, np.random.default_rng(0))
    near = PartitionedProblem(parts).smoothed(0.1).thin(100, np.random.default_rng(0))
    np.testing.assert_array_equal(far.source_losses(z), near.source_losses(z))


def test_no_part_is_refused():
    with pytest.raises(ValueError, match="one part at least"):
        PartitionedProblem([])


def test_a_part_may_lack_a_source_and_its_mass():
    log_masses, said, y, domain = rows("squared")
    log_masses[2, domain != 2] -= 1e4
    order = np.argsort(domain, kind="stable")
    log_masses, said, y, domain = log_masses[:, order], said[:, order], y[order], domain[order]
    whole = Problem.from_log_densities(log_masses, said, y, sample_domain=domain)
    totals = np.bincount(domain)
    homes = [np.flatnonzero(domain == k) for k in range(3)]
    parts = [
        Problem.from_log_densities(
            log_masses[:, i], said[:, i], y[i], sample_domain=domain[i], totals=totals
        )
        for i in homes
    ]
    np.testing.assert_allclose(solve(PartitionedProblem(parts)).z, solve(whole).z, atol=1e-8)
