"""The theorems as properties: true discrete distributions, any z, losses summed by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anymix.core import Problem, certify, solve
from anymix.core.guarantees.bounds import hoelder, paper_bounds
from anymix.core.guarantees.divergence import renyi_ratio
from anymix.core.guarantees.nearest import nearest_mixture
from anymix.core.guarantees.premises import Assumptions, Facts, gather
from anymix.core.losses import Loss, Squared
from experiments.synthetic import paper_regression

quick = settings(deadline=None)
seeds = st.integers(0, 100_000)
orders = st.sampled_from([1.2, 2.0, 5.0, np.inf])
PER_SOURCE = "Lemma 4, Cor. 2"


def random_problem(rng, loss: str | Loss = "squared", p: int = 3, m: int = 12) -> Problem:
    D = rng.dirichlet(np.full(m, 0.3), p) + 1e-12
    D /= D.sum(axis=1, keepdims=True)
    if loss == "cross_entropy":
        return Problem(D, rng.uniform(0.02, 1.0, (p, m)), None, loss, eta=rng.choice([1e-3, 0.3]))
    h, y = rng.normal(size=(p, m)), rng.normal(size=m)
    if loss == "poisson":
        h, y = np.exp(h), np.exp(y)
    return Problem(D, h, y, loss, eta=rng.choice([1e-3, 0.3]))


def target_loss(problem: Problem, z: np.ndarray, T: np.ndarray) -> float:
    return float(T @ problem.loss.value(problem.ratio(z)[0], problem.targets))


def bounds_of(problem: Problem, z, words: Assumptions | None = None):
    """Every bound, straight from what is measured."""
    words = words or Assumptions()
    return paper_bounds(gather(problem, np.asarray(z), words), words)


def named(bounds, paper: str):
    return next(bound for bound in bounds if bound.paper == paper)


def value(certificate, paper: str) -> float:
    return next(bound.value for bound in certificate.bounds if bound.paper == paper)


@pytest.mark.parametrize("loss", ["squared", "cross_entropy", "absolute", "poisson"])
@quick
@given(seed=seeds)
def test_mixtures_keep_the_bound_of_cor_2_and_the_per_source_one(loss, seed):
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, loss)
    z = rng.dirichlet(np.ones(3))
    certificate = certify(problem, z)
    assert certificate.robust_loss <= value(certificate, "Thm 1, Cor. 2") + 1e-12
    assert certificate.regret <= value(certificate, "Lemma 4, Cor. 2") + 1e-12
    mixture = rng.dirichlet(np.ones(3))
    loss_there = target_loss(problem, z, mixture @ problem.masses)
    assert loss_there <= mixture @ certificate.own_losses + certificate.regret + 1e-12
    assert all(bound.checked for bound in certificate.bounds)


@pytest.mark.parametrize("loss", ["squared", "cross_entropy"])
@pytest.mark.parametrize("seed", range(4))
def test_the_per_source_guarantee_is_reached(loss, seed):
    problem = random_problem(np.random.default_rng(seed), loss, p=4, m=40)
    certificate = certify(problem, solve(problem, "regret"))
    assert certificate.regret <= problem.eta * problem.loss_bound + 1e-9


@quick
@given(seed=seeds, alpha=orders)
def test_any_target_keeps_the_bounds_of_cor_10(seed, alpha):
    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    z, T = rng.dirichlet(np.ones(3)), rng.dirichlet(np.full(12, 0.5))
    d = nearest_mixture(T, problem.masses, alpha).value
    certificate = certify(problem, z, assumptions=Assumptions(alpha=alpha, target_divergence=d))
    got = target_loss(problem, z, T)
    assert got <= value(certificate, "Cor. 10, proof") * (1 + 1e-9)
    assert value(certificate, "Cor. 10, proof") <= value(certificate, "Cor. 10") * (1 + 1e-9)


@quick
@given(seed=seeds, alpha=orders)
def test_estimated_densities_keep_the_bounds_of_cor_11(seed, alpha):
    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    true = rng.dirichlet(np.full(12, 2.0), 3)
    T = rng.dirichlet(np.full(12, 0.5))
    estimated = problem.masses
    given_divergences = Assumptions(
        loss_bound=problem.loss_bound,
        alpha=alpha,
        target_divergence=nearest_mixture(T, estimated, alpha).value,
        density_divergence=[renyi_ratio(e, t, alpha) for e, t in zip(estimated, true, strict=True)],
    )
    z = rng.dirichlet(np.ones(3))
    got = target_loss(problem, z, T)
    # ε under the estimates is valid too, since the step from the truth is paid on top.
    assert got <= value(certify(problem, z, assumptions=given_divergences), "Cor. 11") + 1e-9
    # Losses under the truth, as held-out points would show them.
    measured = Problem(
        estimated, problem.predictions, problem.targets, eta=problem.eta, weights=true
    )
    certificate = certify(measured, z, assumptions=given_divergences)
    assert got <= value(certificate, "Cor. 11, proof") + 1e-9


@quick
@given(seed=seeds, alpha=orders)
def test_hoelder_carries_own_losses_to_estimated_densities(seed, alpha):
    """ε̂ of Cor. 11 is what it says: L(D̂_k, h_k) ≤ [ε d_α(D̂_k ‖ D_k)]^((α−1)/α) M^(1/α)."""
    rng = np.random.default_rng(seed)
    losses = rng.uniform(0, 3, 10) ** 4
    true, estimated = rng.dirichlet(np.ones(10), 2)
    d = renyi_ratio(estimated, true, alpha)
    assert estimated @ losses <= hoelder(true @ losses, d, alpha, losses.max()) * (1 + 1e-9)


def label_tables(rng, p: int = 3, n_inputs: int = 5, n_labels: int = 3):
    """Marginals (p, x), conditionals of each source (p, x, y) and of the target (x, y)."""
    marginals = rng.dirichlet(np.ones(n_inputs), p)
    conditionals = rng.dirichlet(np.ones(n_labels), (p, n_inputs))
    return marginals, conditionals, rng.dirichlet(np.ones(n_labels), n_inputs)


@quick
@given(seed=seeds, alpha=orders)
def test_other_conditionals_keep_the_bounds_for_this_z(seed, alpha):
    rng = np.random.default_rng(seed)
    marginals, conditionals, target = label_tables(rng)
    joint = (marginals[:, :, None] * conditionals).reshape(3, -1)
    relabelled = (marginals[:, :, None] * target).reshape(3, -1)
    h = np.repeat(rng.normal(size=(3, 5)), 3, axis=1)
    y = np.tile(rng.normal(size=3), 5)
    problem = Problem(np.repeat(marginals, 3, axis=1), h, y, eta=0.01, weights=joint)
    conditional = [renyi_ratio(a, b, alpha) for a, b in zip(relabelled, joint, strict=True)]
    z = rng.dirichlet(np.ones(3))
    words = Assumptions(alpha=alpha, conditional_divergence=conditional)
    certificate = certify(problem, z, assumptions=words)
    mixture = rng.dirichlet(np.ones(3)) @ relabelled
    assert target_loss(problem, z, mixture) <= value(certificate, "Thm 1, proof") * (1 + 1e-9)
    # ε_T, the part of Thm 1 that does not depend on z.
    own = [row @ problem.loss.value(h[k], y) for k, row in enumerate(relabelled)]
    epsilon_t = hoelder(certificate.epsilon, conditional, alpha, certificate.loss_bound)
    assert max(own) <= epsilon_t * (1 + 1e-9)
    # Any marginal: Thm 12.
    T = (rng.dirichlet(np.ones(5))[:, None] * target).ravel()
    d = nearest_mixture(T, relabelled, alpha).value
    words = Assumptions(alpha=alpha, conditional_divergence=conditional, target_divergence=d)
    certificate = certify(problem, z, assumptions=words)
    assert target_loss(problem, z, T) <= value(certificate, "Thm 12, proof") * (1 + 1e-9)


@quick
@given(seed=seeds, alpha=orders)
def test_estimated_densities_and_other_conditionals_keep_the_bounds_of_thm_13(seed, alpha):
    """D̂_k(x) in the rule, D_T(y|x) as labels, any target: two steps of Hölder's, then a third."""
    rng = np.random.default_rng(seed)
    marginals, conditionals, target = label_tables(rng)
    estimated = rng.dirichlet(np.ones(5), 3)
    joint = (marginals[:, :, None] * conditionals).reshape(3, -1)
    relabelled = (marginals[:, :, None] * target).reshape(3, -1)
    there = (estimated[:, :, None] * target).reshape(3, -1)
    h = rng.dirichlet(np.ones(3), (3, 5)) + 1e-3
    h = (h / h.sum(axis=2, keepdims=True)).reshape(3, -1)
    T = (rng.dirichlet(np.ones(5))[:, None] * target).ravel()
    pairs = zip(relabelled, joint, strict=True), zip(estimated, marginals, strict=True)
    words = Assumptions(
        alpha=alpha,
        target_divergence=nearest_mixture(T, there, alpha).value,
        conditional_divergence=[renyi_ratio(a, b, alpha) for a, b in pairs[0]],
        density_divergence=[renyi_ratio(a, b, alpha) for a, b in pairs[1]],
    )
    z, wide = rng.dirichlet(np.ones(3)), np.repeat(estimated, 3, axis=1)
    measured = Problem(wide, h, None, "cross_entropy", eta=0.01, weights=joint)
    bounds = bounds_of(measured, z, words)
    got = target_loss(measured, z, T)
    assert got <= named(bounds, "Thm 13, Cor. 11, proof").value * (1 + 1e-9)
    # The theorem's own number has the γ of the estimated inputs with the target's labels.
    unseen = Problem(wide, h, None, "cross_entropy", eta=0.01, weights=there)
    facts = gather(measured, z, words)._replace(gamma=unseen.gamma(z))
    bound = named(paper_bounds(facts, words), "Thm 13, Cor. 11")
    assert got <= bound.value * (1 + 1e-9)
    assert "not certified" in bound.assumptions


def test_the_divergence_of_relabelled_sources_is_the_mean_of_the_papers():
    """d_α(D_k,T ‖ D_k)^(α−1) = E_{D_k(x)} d_α(D_T(·|x) ‖ D_k(·|x))^(α−1)."""
    marginals, conditionals, target = label_tables(np.random.default_rng(0))
    joint = marginals[0][:, None] * conditionals[0]
    relabelled = marginals[0][:, None] * target
    by_input = [renyi_ratio(t, c, 3.0) ** 2 for t, c in zip(target, conditionals[0], strict=True)]
    assert renyi_ratio(relabelled, joint, 3.0) ** 2 == pytest.approx(marginals[0] @ by_input)


def test_a_z_fitted_on_the_sources_can_break_thm_12_and_the_words_say_so():
    """The sources disagree about labels; γ = 0 on them says nothing about the target's labels."""
    problem = random_problem(np.random.default_rng(0))
    words = Assumptions(alpha=2.0, conditional_divergence=1.1, target_divergence=1.2)
    bounds = certify(problem, [0.2, 0.3, 0.5], assumptions=words).bounds
    text = {bound.paper: bound.assumptions for bound in bounds}
    assert "not certified" in text["Thm 12"]
    assert "this z" in text["Thm 12, proof"]


def test_cross_entropy_names_thm_13():
    problem = random_problem(np.random.default_rng(0), "cross_entropy")
    words = Assumptions(alpha=2.0, conditional_divergence=1.1, target_divergence=1.2)
    papers = [bound.paper for bound in bounds_of(problem, [0.2, 0.3, 0.5], words)]
    assert papers[-2:] == ["Thm 13", "Thm 13, proof"]


def test_the_reference_counts_with_its_total_mass():
    """U of mass 30 drowns the masses, and the bound pays for all of it."""
    D, h, y = np.eye(2), np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([0.0, 1.0])
    problem = Problem(D, h, y, eta=0.1, reference=[15.0, 15.0])
    certificate = certify(problem, [0.5, 0.5])
    # h_z is off by 0.75/2 at each point: weight 0.5 + 0.75 for the specialist, 0.75 for the other.
    assert certificate.robust_loss == pytest.approx((0.75 / 2.0) ** 2)
    assert value(certificate, "Thm 1, Cor. 2") == pytest.approx(0.1 * 30 * 1.0)


FACTS = Facts(
    epsilon=0.1,
    slack=0.05,
    gamma=0.02,
    own_gamma=0.03,
    loss_bound=4.0,
    worst=0.3,
    eta=0.01,
    checked=False,
    cross_entropy=True,
    cross_slack=0.008,
)


def step(loss: float, d: float, M: float = 4.0) -> float:
    """Hölder's step at α = 2."""
    return float(np.sqrt(d * loss * M))


@pytest.mark.parametrize(
    ("paper", "words", "expected"),
    [
        ("Thm 1, Cor. 2, proof", {}, 0.128),
        ("Lemma 4, Cor. 2", {}, 0.08),
        ("Cor. 10", {"target_divergence": 1.5}, step(0.128, 1.5)),
        # Cross-losses under the true densities say nothing about the estimated ones: ηM.
        ("Cor. 11", {"density_divergence": [1.0, 1.2]}, step(step(0.1, 1.2) + 0.07, 1)),
        ("Thm 1", {"conditional_divergence": 1.3}, step(0.1, 1.3) + 0.07),
        (
            "Thm 13, Cor. 11",
            # Source by source: 1.3 with 1.1, 1.2 with 1.4.
            {
                "conditional_divergence": [1.3, 1.2],
                "density_divergence": [1.1, 1.4],
                "target_divergence": 1.5,
            },
            step(max(step(step(0.1, 1.3), 1.1), step(step(0.1, 1.2), 1.4)) + 0.07, 1.5),
        ),
        ("Thm 3", {"mass_floor": 0.09}, 0.128 + np.log(1.1)),
        (
            "Thm 3, Cor. 10",
            {"mass_floor": 0.09, "target_divergence": 1.5},
            step(0.128 + np.log(1.1), 1.5, 4 + np.log(1.1)),
        ),
        (
            "Thm 3, Cor. 11",
            {"mass_floor": 0.09, "target_divergence": 1.5, "density_divergence": 1.2},
            step(step(0.1, 1.2, 4 + np.log(1.1)) + 0.07 + np.log(1.1), 1.5, 4 + np.log(1.1)),
        ),
    ],
)
def test_every_bound_by_hand(paper, words, expected):
    needs_order = any(name.endswith("divergence") for name in words)
    given_words = Assumptions(**words, alpha=2.0 if needs_order else None)
    assert named(paper_bounds(FACTS, given_words), paper).value == pytest.approx(expected)


def test_only_bounds_whose_inputs_are_known_are_given():
    problem = random_problem(np.random.default_rng(0))
    for words in (Assumptions(), Assumptions(alpha=2.0)):
        assert [bound.paper for bound in bounds_of(problem, [0.2, 0.3, 0.5], words)] == [
            "Thm 1, Cor. 2, proof",
            "Thm 1, Cor. 2",
            "Lemma 4, Cor. 2, proof",
            "Lemma 4, Cor. 2",
        ]


def test_hoelder_never_promises_more_than_the_bound_on_the_loss():
    assert hoelder(0.0, np.inf, 2.0, 5.0) == 5.0
    assert hoelder(4.0, 100.0, 2.0, 5.0) == 5.0
    assert hoelder(1.0, [1.0, 4.0], 2.0, 25.0) == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"target_divergence": 1.5}, "needs alpha"),
        ({"alpha": 1.0}, "above 1"),
        ({"alpha": 2.0, "target_divergence": 0.5}, "≥ 1"),
        ({"alpha": 2.0, "density_divergence": [1.0, np.nan]}, "≥ 1"),
        ({"n_classes": 3}, "without mass_floor"),
        ({"mass_floor": -0.1, "n_classes": 2}, "positive"),
        ({"mass_floor": 0.1, "n_classes": 2}, "needs the cross-entropy"),
        ({"loss_bound": np.inf}, "positive and finite"),
    ],
)
def test_bad_assumptions_are_named(words, message):
    problem = random_problem(np.random.default_rng(0))
    with pytest.raises(ValueError, match=message):
        certify(problem, [0.2, 0.3, 0.5], assumptions=Assumptions(**words))


class Shifted(Squared):
    """(h − y)² − 1, as convex as the squared loss, but negative near the target."""

    def value(self, h, y):
        return super().value(h, y) - 1.0


@quick
@given(seed=seeds)
def test_a_loss_that_can_be_negative_is_shifted(seed):
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, Shifted())
    z = rng.dirichlet(np.ones(3))
    bounds = bounds_of(problem, z)
    for paper, got in (("Thm 1, Cor. 2", problem.robust_loss(z)), (PER_SOURCE, problem.regret(z))):
        assert got <= named(bounds, f"{paper}, proof").value + 1e-12
        assert named(bounds, f"{paper}, proof").value <= named(bounds, paper).value + 1e-12


def test_hoelder_needs_losses_that_are_not_negative():
    problem = Problem([[1.0], [1.0]], [[3.0], [5.0]], [4.0], Shifted())
    with pytest.raises(ValueError, match="negative"):
        bounds_of(problem, [0.5, 0.5], Assumptions(alpha=2.0))


# -- cross-losses in the place of M --------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared", "cross_entropy", "absolute", "poisson"])
@quick
@given(seed=seeds, reference=st.sampled_from([None, "uniform"]))
def test_cross_losses_are_the_tighter_slack_and_hold(loss, seed, reference):
    """L(D_z, h_z) ≤ Σ_k z_k ε_k + η [(1/p) Σ_k L(U, h_k) − L(U, h_z)], for losses of any sign."""
    rng = np.random.default_rng(seed)
    made = random_problem(rng, loss)
    problem = Problem(
        made.masses, made.predictions, made.targets, loss, made.eta, reference=reference
    )
    z = rng.dirichlet(np.ones(3))
    facts, U, y = gather(problem, z, Assumptions()), problem.reference, problem.targets
    away = np.mean([U @ problem.loss.value(h, y) for h in problem.predictions])
    slack = problem.eta * (away - U @ problem.loss.value(problem.ratio(z)[0], y))
    assert facts.cross_slack == pytest.approx(slack, rel=1e-9, abs=1e-12)
    assert facts.cross_slack <= facts.slack + 1e-12
    assert problem.mixture_loss(z) <= z @ problem.own_losses + slack + 1e-12
    bounds = bounds_of(problem, z)
    for paper, got in (("Thm 1, Cor. 2", facts.worst), ("Lemma 4, Cor. 2", problem.regret(z))):
        tight, loose = named(bounds, f"{paper}, proof"), named(bounds, paper)
        assert got <= tight.value + 1e-9
        assert tight.value <= loose.value + 1e-12
    assert not any(bound.contradicted for bound in bounds)


def test_with_the_mean_density_the_slack_is_the_mean_of_the_cross_losses():
    rng = np.random.default_rng(0)
    problem, z = random_problem(rng), rng.dirichlet(np.ones(3))
    D, h, y = problem.masses, problem.predictions, problem.targets
    matrix = np.array([[d @ (row - y) ** 2 for d in D] for row in h])
    got = gather(problem, z, Assumptions()).cross_slack
    expected = problem.eta * (matrix.mean() - problem.source_losses(z).mean())
    assert got == pytest.approx(expected, rel=1e-12)
    # With weights of one's own the masses are known up to a factor per point, and this is the same.
    scaled = Problem(D * rng.uniform(1, 9, 12), h, y, eta=problem.eta, weights=D)
    assert gather(scaled, z, Assumptions()).cross_slack == pytest.approx(expected, rel=1e-12)
    # A reference that is no mean of what is measured leaves ηM alone.
    other = Problem(D, h, y, eta=problem.eta, weights=D, reference="uniform")
    assert gather(other, z, Assumptions()).cross_slack is None
    assert len(bounds_of(other, z)) == 2


def test_the_papers_regression_is_bounded_near_its_loss():
    """η = .1: ηM is half a hundred, the cross-losses leave less than a tenth above the loss."""
    problem = paper_regression(1000, np.random.default_rng(0))
    problem = Problem(problem.masses, problem.predictions, problem.targets, eta=0.1)
    found = solve(problem, "gamma")
    bounds = bounds_of(problem, found.z)
    tight = named(bounds, "Thm 1, Cor. 2, proof").value
    assert found.robust_loss <= tight < 1.1 * found.robust_loss
    assert named(bounds, "Thm 1, Cor. 2").value > 4 * found.robust_loss
