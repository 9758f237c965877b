"""Lemma 4, Cor. 2 and the guarantee per source, as properties of random problems."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anymix.core import Problem, combine, simplex, solve
from anymix.core.losses import LOSSES
from anymix.core.solvers.equilibrium import brouwer_map

TARGETS = {
    "squared": lambda rng, m: rng.standard_normal(m),
    "absolute": lambda rng, m: rng.standard_normal(m),
    "huber": lambda rng, m: rng.standard_normal(m),
    "pinball": lambda rng, m: rng.standard_normal(m),
    "logistic": lambda rng, m: rng.choice([-1.0, 1.0], m),
    "hinge": lambda rng, m: rng.choice([-1.0, 1.0], m),
    "poisson": lambda rng, m: rng.poisson(2.0, m).astype(float),
    "poisson_log": lambda rng, m: rng.poisson(2.0, m).astype(float),
    "cross_entropy": lambda rng, m: np.zeros(m),
}


def random_problem(seed: int, loss: str, eta: float) -> Problem:
    """Masses that sum to 1, sources of very different worth, on the pooled measure."""
    rng = np.random.default_rng(seed)
    p, m = int(rng.integers(1, 6)), int(rng.integers(1, 40))
    D = rng.random((p, m)) ** rng.uniform(1, 8)
    y = TARGETS[loss](rng, m)
    h = rng.standard_normal((p, m)) * rng.uniform(0.1, 3, size=(p, 1))
    if loss == "cross_entropy":
        h = rng.uniform(0.01, 1, size=(p, m))
    elif loss == "poisson":
        h = np.exp(h)
    return Problem(D / D.sum(axis=1, keepdims=True), h, y, loss=loss, eta=eta)


problems = st.builds(
    random_problem,
    seed=st.integers(0, 100_000),
    loss=st.sampled_from(sorted(TARGETS)),
    eta=st.sampled_from([1e-4, 1e-2, 0.3]),
)
# Newton's methods need slopes that do not jump.
smooth_problems = st.builds(
    random_problem,
    seed=st.integers(0, 100_000),
    loss=st.sampled_from(["squared", "cross_entropy", "logistic", "poisson"]),
    eta=st.sampled_from([1e-4, 1e-2, 0.3]),
)


def test_every_scalar_loss_is_here():
    assert set(TARGETS) == set(LOSSES) - {"brier"}


@given(problem=problems, seed=st.integers(0, 1000))
def test_cor_2_the_mixture_of_z_itself(problem, seed):
    """L(D_z, h_z) ≤ Σ_k z_k ε_k + ηM for every z: the inequality in the middle of the proof."""
    z = simplex.random(problem.n_sources, np.random.default_rng(seed))
    bound = z @ problem.own_losses + problem.eta * problem.loss_bound
    assert problem.mixture_loss(z) <= bound * (1 + 1e-12) + 1e-12


@given(problem=problems, seed=st.integers(0, 1000))
def test_cor_2_every_mixture(problem, seed):
    """L(D_λ, h_z) ≤ ε + ηM + γ(z) for every λ and every z."""
    rng = np.random.default_rng(seed)
    p = problem.n_sources
    z, mixture = simplex.random(p, rng), simplex.random(p, rng)
    bound = problem.own_losses.max() + problem.eta * problem.loss_bound + problem.gamma(z)
    assert mixture @ problem.source_losses(z) <= bound * (1 + 1e-12) + 1e-12


@given(problem=smooth_problems)
@settings(max_examples=20, deadline=None, derandomize=True)
def test_cor_2_with_the_solvers_z(problem):
    """γ → 0 is reached, and the worst mixture pays at most ε + ηM; robust is never above that."""
    epsilon = problem.own_losses.max()
    level, robust = solve(problem, "gamma"), solve(problem, "robust", tol=1e-7)
    assert level.gamma <= 1e-8 * level.robust_loss
    bound = epsilon + problem.eta * problem.loss_bound
    assert level.robust_loss <= bound * (1 + 1e-8)
    assert robust.robust_loss <= level.robust_loss * (1 + 1e-6)


@given(problem=smooth_problems)
@settings(max_examples=20, deadline=None, derandomize=True)
def test_per_source_guarantee(problem):
    """One z with L(D_k, h_z) ≤ ε_k + ηM for every k: stronger than Cor. 2, by the same proof."""
    solution = solve(problem, "regret", tol=1e-7)
    allowed = problem.own_losses + problem.eta * problem.loss_bound
    assert np.all(problem.source_losses(solution.z) <= allowed * (1 + 1e-9) + 1e-12)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("eta_prime", [0.05, 0.5])
def test_lemma_4_a_fixed_point_of_the_map_bounds_every_loss(seed, eta_prime):
    """Φ(z) = z gives L_k = L_z + η' − η'/(p z_k) ≤ L_z + η', with z_k > 0."""
    problem = random_problem(seed, "squared", 1e-2)
    p = problem.n_sources
    z = simplex.uniform(p)
    for _ in range(20_000):
        # Half steps have the same fixed points and do not overshoot.
        moved = 0.5 * z + 0.5 * brouwer_map(z, problem.source_losses(z), eta_prime)
        if np.abs(moved - z).max() < 1e-13:
            break
        z = moved
    L = problem.source_losses(z)
    assert z.min() > 0
    np.testing.assert_allclose(L, z @ L + eta_prime - eta_prime / (p * z), rtol=1e-6, atol=1e-8)
    assert np.all(z @ L + eta_prime >= L - 1e-9)


@given(seed=st.integers(0, 10_000))
def test_thm_3_the_normalised_rule_keeps_what_is_exact(seed):
    """With one conditional P(y|x) for all, D_k(x, y) = D_k(x) P(y|x), and h_k = P: h̄ = h = P."""
    rng = np.random.default_rng(seed)
    p, n, c = 3, 6, 4
    conditional = rng.dirichlet(np.ones(c), size=n)
    marginal = rng.random((p, n))
    log_joint = np.log(marginal[:, :, None] * conditional)
    h = np.broadcast_to(conditional, (p, n, c))
    z = simplex.random(p, rng)
    for rule in ("joint", "normalised"):
        found = combine(log_joint, h, z, 0.1, rule)
        np.testing.assert_allclose(found, conditional, rtol=1e-9)
    other = combine(log_joint, rng.dirichlet(np.ones(c), size=(p, n)), z, 0.1, "normalised")
    np.testing.assert_allclose(other.sum(axis=1), 1, rtol=1e-12)
