import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from anymix.core import Problem, combine
from anymix.monitor import Alarm, MixtureEstimate, adapt_labelled, adapt_z, estimate_mixture
from anymix.monitor.adaptation import label_noise
from experiments.simplex_grid import simplex_grid

shares = st.lists(st.floats(0.01, 1), min_size=3, max_size=3).map(lambda v: np.array(v) / sum(v))


def an_estimate(mixture, width):
    lower = np.maximum(mixture - width / 2, 0)
    return MixtureEstimate(
        mixture=mixture,
        lower=lower,
        upper=np.minimum(lower + width, 1),
        condition_number=1.0,
        method="inversion",
        n=100,
        confidence=0.95,
    )


@given(shares, shares, st.floats(0, 1), st.floats(0, 1))
def test_a_narrower_interval_is_trusted_more(z, mixture, a, b):
    narrow, wide = (adapt_z(z, an_estimate(mixture, w)) for w in sorted([a, b]))
    assert narrow.sum() == pytest.approx(1.0)
    assert np.abs(narrow - mixture).sum() <= np.abs(wide - mixture).sum() + 1e-9
    assert narrow.min() >= 0


@given(shares, shares)
def test_the_ends_of_the_blend(z, mixture):
    np.testing.assert_allclose(adapt_z(z, an_estimate(mixture, 0.0)), mixture)
    blind = an_estimate(mixture, 0.0).__class__(mixture, 0 * z, 0 * z + 1, 1.0, "em", 5, 0.95)
    np.testing.assert_allclose(adapt_z(z, blind), z)
    rings, quiet = (Alarm(flag, 0.1, 0.01, 0.2) for flag in (True, False))
    np.testing.assert_allclose(adapt_z(z, an_estimate(mixture, 0.0), rings), z)
    np.testing.assert_allclose(adapt_z(z, an_estimate(mixture, 0.0), quiet), mixture)


def test_adapting_to_skewed_traffic_lowers_its_loss(planar):
    """Each source knows its own conditional; the z of the mixture then predicts best."""
    rng = np.random.default_rng(0)
    domain, robust = np.repeat([0, 1, 2], 300), np.full(3, 1 / 3)
    traffic = rng.choice(3, 3000, p=[0.9, 0.05, 0.05])
    X, X_reference = planar.rows(traffic, rng), planar.rows(domain, rng)
    log_r = planar.log_responsibilities(X)
    z = adapt_z(robust, estimate_mixture(log_r, planar.log_responsibilities(X_reference), domain))
    levels = np.array([0.0, 4.0, -4.0])
    predictions = np.repeat(levels[:, None], 3000, axis=1)
    before, after = (
        np.mean((combine(log_r, predictions, w) - levels[traffic]) ** 2) for w in (robust, z)
    )
    assert after < 0.85 * before


def test_a_z_of_another_length_gets_a_sentence():
    with pytest.raises(ValueError, match="z_robust has shape"):
        adapt_z([0.5, 0.5], an_estimate(np.full(3, 1 / 3), 0.1))


def target_rows(rng, n, p=3):
    """Source 0 predicts the target rows well, the others do not."""
    score = rng.normal(size=(p, n))
    y = rng.normal(size=n)
    h = y + rng.normal(size=(p, n)) * np.array([0.1, 1.0, 2.0])[:, None]
    return score - np.logaddexp.reduce(score, axis=0), h, y


def penalised(z, log_r, h, y, prior, rho, eta=1e-3):
    loss = np.mean((combine(log_r, h, z, eta=eta) - y) ** 2)
    return loss + rho * prior @ np.log(prior / z)


@pytest.mark.parametrize("rho", [0.01, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_labels_give_what_a_general_solver_finds(seed, rho):
    log_r, h, y = target_rows(np.random.default_rng(seed), 40)
    prior = np.array([0.2, 0.3, 0.5])
    z = adapt_labelled(log_r, h, y, prior, shrinkage=rho)
    logits = minimize(
        lambda t: penalised(np.exp(t) / np.exp(t).sum(), log_r, h, y, prior, rho), np.log(prior)
    ).x
    best = np.exp(logits) / np.exp(logits).sum()
    np.testing.assert_allclose(z, best, atol=1e-4)
    assert penalised(z, log_r, h, y, prior, rho) <= penalised(best, log_r, h, y, prior, rho) + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_more_labels_move_z_further_and_one_hardly(seed):
    rng = np.random.default_rng(seed)
    prior = np.full(3, 1 / 3)
    moved = [adapt_labelled(*target_rows(rng, n), prior)[0] - 1 / 3 for n in (1, 600)]
    assert moved[1] > 0.3
    assert abs(moved[0]) < 0.35 * moved[1]


def test_labels_lower_the_loss_on_further_rows_of_the_target():
    rng = np.random.default_rng(0)
    prior = np.full(3, 1 / 3)
    z = adapt_labelled(*target_rows(rng, 30), prior)
    log_r, h, y = target_rows(rng, 3000)
    before, after = (np.mean((combine(log_r, h, w, eta=1e-3) - y) ** 2) for w in (prior, z))
    assert after < 0.9 * before


def test_class_probabilities_with_the_cross_entropy():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=60)
    right = 0.8 * np.eye(3)[y] + 0.2 / 3
    predictions = np.stack([right, np.full((60, 3), 1 / 3)])
    even = np.full((2, 60), np.log(0.5))
    assert adapt_labelled(even, predictions, y, [0.5, 0.5], "cross_entropy")[0] > 0.7


def test_without_shrinkage_labels_may_leave_a_source_out():
    """Against brute force: no mixture of a fine grid has a smaller loss."""
    log_r, h, y = target_rows(np.random.default_rng(0), 50)
    z = adapt_labelled(log_r, h, y, np.full(3, 1 / 3), shrinkage=0.0)
    losses = [np.mean((combine(log_r, h, w, eta=1e-3) - y) ** 2) for w in (z, *simplex_grid(3, 40))]
    assert losses[0] <= min(losses[1:]) + 1e-6


def test_a_prior_without_a_source_and_much_shrinkage_keep_to_the_prior():
    log_r, h, y = target_rows(np.random.default_rng(0), 50)
    z = adapt_labelled(log_r, h, y, [0.6, 0.4, 0.0], shrinkage=1e6)
    np.testing.assert_allclose(z, [0.6, 0.4, 0.0], atol=1e-2)


@pytest.mark.parametrize("shrinkage", ["some", -1.0, np.inf])
def test_a_senseless_shrinkage_gets_a_sentence(shrinkage):
    log_r, h, y = target_rows(np.random.default_rng(0), 5)
    with pytest.raises(ValueError, match="shrinkage must be 'auto' or a number"):
        adapt_labelled(log_r, h, y, np.full(3, 1 / 3), shrinkage=shrinkage)


@pytest.mark.parametrize("other", [0.0, 5.0])
def test_a_source_far_from_all_target_rows_leaves_z_alone(other):
    log_r = np.stack([np.zeros(5), np.full(5, -np.inf)])
    predictions = np.stack([np.zeros(5), np.full(5, other)])
    z = adapt_labelled(log_r, predictions, np.ones(5), [0.7, 0.3], eta=1e-6)
    np.testing.assert_allclose(z, [0.7, 0.3], atol=1e-4)


def test_label_noise_is_the_standard_error_or_one_row():
    rng = np.random.default_rng(0)
    log_r, h, y = target_rows(rng, 500)
    problem = Problem(np.exp(log_r), h, y, weights=np.full((3, 500), 1 / 500))
    z = np.full(3, 1 / 3)
    d = (problem.combined(z) - y) ** 2 - (h - y) ** 2
    expected = max(np.std(row) / np.sqrt(500) for row in d)
    assert label_noise(problem, z) == pytest.approx(expected)
    one = Problem(np.exp(log_r[:, :1]), h[:, :1], y[:1], weights=np.ones((3, 1)))
    assert label_noise(one, z) == pytest.approx(np.abs(d[:, 0]).max())
