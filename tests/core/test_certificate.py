import json

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from anymix.core import Problem, solve
from anymix.core.guarantees import Assumptions, Certificate, ReferenceLoss, certify, certify_rows
from anymix.core.guarantees.certificate import (
    LOG_STEP,
    N_LEVELS,
    n_rounded,
    rounded,
)
from anymix.core.guarantees.confidence import mean_upper_bound
from anymix.core.guarantees.loss_summary import LossSummary
from anymix.core.guarantees.sentence import rounded_up
from anymix.core.guarantees.upper_bounds import BoundOptions

Z = np.array([0.3, 0.7])
KNOWN = Assumptions(loss_bound=4.0)


class World:
    """Two sources on six points whose true losses are known; predictions and labels in [−1, 1]."""

    def __init__(self, seed: int):
        rng = np.random.default_rng(seed)
        self.D = rng.dirichlet(np.ones(6), 2)
        self.h, self.y = rng.uniform(-1, 1, (2, 6)), rng.uniform(-1, 1, 6)

    def truth(self) -> Problem:
        """The same h_z as a problem on draws has: masses are responsibilities there."""
        r = self.D / self.D.sum(axis=0)
        return Problem(r, self.h, self.y, weights=self.D)

    def draw(self, rng: np.random.Generator, n: int, **options) -> Problem:
        i = np.concatenate([rng.choice(6, n, p=row) for row in self.D])
        domain = np.repeat([0, 1], n)
        log_d = np.log(self.D[:, i])
        return Problem.from_log_densities(
            log_d, self.h[:, i], self.y[i], sample_domain=domain, **options
        )


@pytest.fixture
def problem() -> Problem:
    return World(0).draw(np.random.default_rng(0), 80)


def test_what_is_measured_is_what_the_problem_says(problem):
    certificate = certify(problem, Z)
    np.testing.assert_allclose(certificate.source_losses, problem.source_losses(Z))
    np.testing.assert_allclose(certificate.own_losses, problem.own_losses)
    assert certificate.epsilon == pytest.approx(problem.own_losses.max())
    assert certificate.robust_loss == pytest.approx(problem.robust_loss(Z))
    assert certificate.regret == pytest.approx(problem.regret(Z))
    assert certificate.gamma == pytest.approx(problem.gamma(Z))
    assert (certificate.eta, certificate.loss_bound) == (problem.eta, problem.loss_bound)


@pytest.mark.parametrize("method", ["betting", "bernstein", "hoeffding", "student"])
def test_upper_bounds_are_the_largest_of_the_sources_each_at_half_the_error(problem, method):
    certificate = certify(problem, Z, confidence=0.9, method=method, assumptions=KNOWN)
    h = problem.ratio(Z)[0]
    losses, regrets, c = [], [], np.inf
    if method == "student":
        # Ten of 80 rows would be above the quantile that is asked for: it is .95.
        own = [(problem.predictions[i // 80, i] - problem.targets[i]) ** 2 for i in range(160)]
        each = np.reshape([own, (h - problem.targets) ** 2], (4, 80))
        c = np.quantile(each, 0.95, axis=1).max()
        assert certificate.clip == pytest.approx(c)
    for k, points in enumerate((slice(0, 80), slice(80, 160))):
        x = (h[points] - problem.targets[points]) ** 2
        d = x - (problem.predictions[k, points] - problem.targets[points]) ** 2
        losses.append(mean_upper_bound(np.minimum(x, c), 0.05, method, (0, 4), rng=0))
        regrets.append(mean_upper_bound(d, 0.05, method, (-4, 4), rng=0))
    if method == "student":
        # What skewness adds, and what clipping takes away, is worked out in test_statements.
        assert max(losses) <= certificate.loss_upper <= c
    else:
        assert certificate.loss_upper == pytest.approx(max(losses), rel=1e-9)
        assert certificate.regret_upper == pytest.approx(max(regrets), rel=1e-9)
    assert certificate.loss_ground == ("asymptotic" if method == "student" else "exact")
    assert method == "student" or certificate.regret_upper > certificate.regret


def test_the_default_bets_only_on_a_stated_bound_and_claims_little_of_few_rows(problem):
    few = certify(problem, Z)
    assert few.loss_upper is few.regret_upper is few.confidence is few.method is None
    assert few.sentence.startswith("Measured, not guaranteed: on every mixture")
    many = World(0).draw(np.random.default_rng(0), 200)
    assert certify(many, Z).method == "student"
    assert certify(many, Z).loss_ground == certify(many, Z).regret_ground == "asymptotic"
    assert certify(problem, Z, assumptions=KNOWN).method == "betting"
    assert certify(problem, Z, clip=4.0).loss_ground == "exact"
    weighted = World(0).draw(np.random.default_rng(0), 400, sample_weight=np.linspace(1, 2, 800))
    assert certify(weighted, Z, assumptions=KNOWN).method == "student"
    with pytest.raises(ValueError, match="equal weights"):
        certify(weighted, Z, method="betting", assumptions=KNOWN)


def test_weights_of_zero_leave_points_out():
    full = World(0).draw(np.random.default_rng(0), 80)
    keep = np.tile([1.0, 0.0], 80)
    part = World(0).draw(np.random.default_rng(0), 80, sample_weight=keep)
    certificate = certify(part, Z, assumptions=KNOWN)
    assert certificate.method == "betting"
    assert certificate.loss_upper > certify(full, Z, assumptions=KNOWN).loss_upper


def test_tables_taken_as_the_truth_need_no_confidence():
    world = World(0)
    exact = Problem(world.D, world.h, world.y)
    for certificate in (
        certify(exact, Z),
        certify(world.draw(np.random.default_rng(0), 9), Z, confidence=None),
    ):
        assert certificate.confidence is certificate.loss_upper is certificate.method is None
        assert certificate.sentence.startswith("Guaranteed if the tables are the true distri")


@pytest.mark.parametrize("seed", range(2))
def test_both_bounds_hold_together_as_often_as_promised(seed):
    world = World(seed)
    truth, rng = world.truth(), np.random.default_rng(seed)
    loss, regret = truth.robust_loss(Z), truth.regret(Z)
    runs, failures = 150, 0
    for _ in range(runs):
        certificate = certify(world.draw(rng, 40), Z, confidence=0.8, assumptions=KNOWN)
        failures += certificate.loss_upper < loss or certificate.regret_upper < regret
    assert failures <= 0.2 * runs


def test_a_z_fitted_on_the_points_is_certified_all_the_same():
    """Fitted on 12 points a source, the bound over all candidates fails as seldom as it says."""
    failures = {True: 0, False: 0}
    runs = 30
    for seed in range(runs):
        world = World(seed)
        truth, rng = world.truth(), np.random.default_rng(seed)
        problem = world.draw(rng, 12)
        solution = solve(problem, "regret")
        for held_out in failures:
            certificate = certify(
                problem, solution, confidence=0.6, method="student", held_out=held_out
            )
            failures[held_out] += certificate.regret_upper < truth.regret(certificate.z)
    assert failures[False] <= 0.2 * runs
    assert failures[False] <= failures[True]


def test_a_solution_of_this_very_problem_is_recognised(problem):
    solution = solve(problem, "regret")
    fitted = certify(problem, solution, method="student")
    assert fitted.n_candidates == 2 * (N_LEVELS + 1)
    assert "for every z that these points may choose)" in fitted.sentence
    np.testing.assert_array_equal(fitted.z, rounded(solution.z))
    new_points = World(0).draw(np.random.default_rng(9), 80)
    held_out = certify(new_points, solution)
    assert held_out.n_candidates == 1
    np.testing.assert_allclose(held_out.z, solution.z)
    naive = certify(problem, solution, method="student", held_out=True)
    assert naive.regret_upper < fitted.regret_upper
    assert certify(problem, solution.z, held_out=False).n_candidates == fitted.n_candidates


@given(seed=st.integers(0, 10_000), p=st.integers(1, 6), spread=st.floats(0.05, 5))
def test_rounding_is_small_idempotent_and_on_the_levels(seed, p, spread):
    z = np.random.default_rng(seed).dirichlet(np.full(p, spread))
    got = rounded(z)
    assert got.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(rounded(got), got, rtol=1e-12)
    kept = got > 0
    odds = np.log(got[kept] / got.max()) - np.log(z[kept] / z.max())
    assert np.abs(odds).max() <= LOG_STEP / 2 + 1e-9
    steps = -np.log(got[kept] / got.max()) / LOG_STEP
    np.testing.assert_allclose(steps, np.rint(steps), atol=1e-6)
    assert np.all(z[~kept] < np.exp(-LOG_STEP * (N_LEVELS - 1)) * z.max())


def test_the_candidates_are_counted():
    """Every rounded z of two sources, listed: one of the two is the largest."""
    levels = np.r_[np.exp(-LOG_STEP * np.arange(N_LEVELS)), 0.0]
    all_pairs = {tuple(rounded(np.array([1.0, v])).round(12)) for v in levels}
    all_pairs |= {(b, a) for a, b in all_pairs}
    assert n_rounded(2) - 1 == len(all_pairs)  # (1/2, 1/2) is counted twice
    drawn = np.random.default_rng(0).dirichlet([0.5, 0.5], 500)
    assert {tuple(rounded(z).round(12)) for z in drawn} <= all_pairs


def test_sentences():
    shared = dict.fromkeys(
        ["own_losses", "source_losses", "epsilon", "gamma", "eta", "loss_bound", "bounds"], 0.0
    ) | {"assumptions": Assumptions(), "loss": "brier"}
    certificate = Certificate(
        z=np.full(3, 1 / 3),
        robust_loss=0.3,
        regret=0.01,
        confidence=0.95,
        method="betting",
        loss_upper=0.41,
        regret_upper=0.02,
        n_candidates=1.0,
        **shared,
    )
    assert certificate.sentence == (
        "Guaranteed with 95 % confidence (exact): on every mixture of the 3 sources the expected "
        "loss is at most 0.02 above that of each source's own model on its own data, and at most "
        "0.41 in absolute terms (Brier score, 0 to 2)."
    )
    assert str(certificate) == certificate.sentence
    better = Certificate(
        z=np.ones(1),
        robust_loss=0.3,
        regret=0.01,
        confidence=0.9,
        method="student",
        loss_upper=0.41,
        regret_upper=-0.02,
        n_candidates=1.0,
        loss_ground="measured",
        regret_ground="asymptotic",
        clip=1.5,
        share_above=0.032,
        n_rows=120.0,
        beside=(ReferenceLoss("chance", 0.5, 0.4),),
        **shared,
    )
    assert better.sentence == (
        "Guaranteed with 90 % confidence (asymptotic, though a source has 120 rows): on the source "
        "the expected loss is at least 0.02 below that of its own model (Brier score, 0 to 2, "
        "clipped at 1.5; at most 3.2 % of any source's rows lose more). Measured, not guaranteed: "
        "it is at most 0.3 in absolute terms (Brier score, 0 to 2, not clipped). "
        "The bound is vacuous: chance does as well."
    )


@given(st.floats(-1e6, 1e6), st.integers(-9, 3))
@example(5e-324, 0)
@example(-5e-324, 0)
def test_bounds_are_rounded_up_to_three_digits(value, power):
    value *= 10.0**power
    shown = rounded_up(value)
    digits = shown.lstrip("-").split("e")[0].replace(".", "").strip("0")
    assert len(digits) <= 3
    assert float(shown) >= value * (1 - 1e-11 * np.sign(value))
    assert abs(float(shown) - value) <= 0.0101 * abs(value) + 1e-300


def test_a_measured_loss_above_a_clipped_bound_says_so():
    """A bound of 14.9 below a measured 18.5 is of losses clipped at c, in the sentence itself."""
    rng = np.random.default_rng(0)
    losses = np.where(rng.random(600) < 0.02, 500.0, rng.gamma(4.0, 1.0, 600))
    found = certify_rows(
        LossSummary.of_rows(losses, losses + 0.1, np.repeat([0, 1], 300)),
        BoundOptions.at(0.95),
        z=np.full(2, 0.5),
        eta=1e-3,
        loss="squared",
    )
    assert found.loss_upper < found.robust_loss
    assert f"clipped at {found.clip:.3g}; at most" in found.sentence


def test_a_certificate_can_be_written_down(problem):
    words = Assumptions(4.0, np.inf, 1.2, conditional_divergence=[1.0, 1.5])
    record = json.loads(certify(problem, Z, assumptions=words).to_json())
    assert record["z"] == pytest.approx(list(Z))
    assert record["bounds"][0]["paper"].startswith("Thm 1, Cor. 2")
    assert record["assumptions"]["conditional_divergence"] == [1.0, 1.5]
    assert record["assumptions"]["alpha"] is None


def test_one_source_and_one_point_work():
    single = Problem.from_log_densities(
        [[0.0, 0.0]], [[0.1, 0.2]], [0.0, 0.0], sample_domain=[0, 0]
    )
    assert certify(single, [1.0]).regret == pytest.approx(0.0)
    assert certify(Problem([[1.0]], [[0.5]], [0.0]), [1.0]).robust_loss == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence": 1.5}, "strictly between"),
        ({"method": "betting"}, "loss_bound=M"),
        ({"method": "guess", "assumptions": KNOWN}, "method must be"),
        ({"assumptions": Assumptions(loss_bound=1e-6)}, "state at least that"),
    ],
)
def test_bad_options_are_named(problem, options, message):
    with pytest.raises(ValueError, match=message):
        certify(problem, Z, **options)


def test_bad_z_is_named(problem):
    with pytest.raises(ValueError, match="simplex"):
        certify(problem, [0.5, 0.6])
    with pytest.raises(ValueError, match="shape"):
        certify(problem, [1.0])


def test_too_many_sources_to_certify_on_the_same_points():
    p = 160
    many = Problem.from_log_densities(
        np.zeros((p, p)), np.zeros((p, p)), np.zeros(p), sample_domain=np.arange(p)
    )
    with pytest.raises(ValueError, match="held-out"):
        certify(many, np.full(p, 1 / p), held_out=False)


@given(seed=st.integers(0, 10_000), stated=st.booleans())
def test_the_regret_is_never_said_to_be_above_the_loss(seed, stated):
    """With few rows and unlike errors the bound on the difference alone would be."""
    rng = np.random.default_rng(seed)
    masses, y = rng.uniform(0.1, 1, (2, 8)), rng.normal(size=8)
    h = y + rng.standard_t(2, (2, 8))
    problem = Problem.from_log_densities(
        np.log(masses), h, y, "squared", 1e-3, sample_domain=np.arange(8) % 2
    )
    given = Assumptions(loss_bound=2 * problem.loss_bound) if stated else None
    found = certify(problem, [0.5, 0.5], assumptions=given)
    if stated:
        assert found.regret_upper <= found.loss_upper
    assert found.regret <= found.robust_loss


def test_rows_that_a_solution_was_found_on_are_known_whatever_is_done_to_them(problem):
    """A part of them, in another order, with another η, beside as many new ones."""
    world, rng = World(0), np.random.default_rng(3)
    y, h = rng.normal(size=600), rng.normal(size=(2, 600))
    domain = np.arange(600) % 2
    log_d = rng.normal(size=(2, 600))

    def rows(points, eta=1e-3):
        return Problem.from_log_densities(
            log_d[:, points], h[:, points], y[points], eta=eta, sample_domain=domain[points]
        )

    solution = solve(rows(np.arange(400)))
    for points in (np.arange(300)[::-1], np.arange(0, 400, 7), np.arange(200, 600)):
        for eta in (1e-3, 0.1):
            assert certify(rows(points, eta), solution, method="student").n_candidates > 1
    assert certify(rows(np.arange(400, 600)), solution, method="student").n_candidates == 1
    # Six different rows are known by chance, so that it takes the same rows, and all of them.
    again = world.draw(np.random.default_rng(9), 80)
    assert certify(again, solve(problem), method="student").n_candidates == 1
