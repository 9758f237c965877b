import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from anymix.core.guarantees import nearest
from anymix.core.guarantees.divergence import renyi_ratio
from anymix.core.guarantees.nearest import nearest_mixture, sampled_nearest_mixture
from anymix.core.records import SolverWarning
from experiments.simplex_grid import simplex_grid

quick = settings(deadline=None)
orders = st.sampled_from([1.0, 1.001, 1.5, 2.0, 10.0, 200.0, np.inf])


def random_case(seed: int, p: int, m: int):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(m)), rng.dirichlet(np.full(m, 0.5), p) + 1e-9


@pytest.mark.parametrize("alpha", [1.0, 2.0, 30.0, np.inf])
@pytest.mark.parametrize("seed", range(3))
def test_no_mixture_of_a_fine_grid_is_nearer(seed, alpha):
    T, D = random_case(seed, 3, 7)
    D = D / D.sum(axis=1, keepdims=True)
    answer = nearest_mixture(T, D, alpha)
    best = min(renyi_ratio(T, mixture @ D, alpha) for mixture in simplex_grid(3, 40))
    assert answer.value <= best * (1 + 1e-10)
    assert answer.value >= best * 0.95
    assert answer.value == pytest.approx(renyi_ratio(T, answer.mixture @ D, alpha), rel=1e-10)


@quick
@given(seed=st.integers(0, 10_000), p=st.integers(1, 6), m=st.integers(1, 30), alpha=orders)
def test_the_first_order_condition_holds(seed, p, m, alpha):
    """No direction towards a source lowers the divergence."""
    T, D = random_case(seed, p, m)
    D = D / D.sum(axis=1, keepdims=True)
    answer = nearest_mixture(T, D, alpha)
    assert answer.value >= 1
    assert answer.mixture.sum() == pytest.approx(1.0)
    for k in range(p):
        ahead = 0.999 * answer.mixture + 0.001 * np.eye(p)[k]
        assert np.log(renyi_ratio(T, ahead @ D, alpha)) >= np.log(answer.value) - 1e-9


@quick
@given(seed=st.integers(0, 10_000), alpha=orders)
def test_a_mixture_of_the_sources_is_recognised(seed, alpha):
    rng = np.random.default_rng(seed)
    D = rng.dirichlet(np.full(12, 0.5), 4)
    mixture = rng.dirichlet(np.ones(4))
    answer = nearest_mixture(mixture @ D, D, alpha)
    assert answer.value == pytest.approx(1.0, abs=1e-8)
    np.testing.assert_allclose(answer.mixture, mixture, atol=2e-3)


def test_a_target_beyond_all_sources_is_infinitely_far():
    assert nearest_mixture([0.5, 0.5], [[1, 0], [1, 0]], 2.0).value == np.inf
    # The first source alone is not enough, the second must have a share.
    answer = nearest_mixture([0.5, 0.5], [[1, 0], [0, 1]], 2.0)
    np.testing.assert_allclose(answer.mixture, [0.5, 0.5], atol=1e-6)


def test_draws_find_the_mixture_that_made_them():
    rng = np.random.default_rng(0)
    sources = [stats.norm(-1, 1), stats.norm(1, 1), stats.norm(0, 3)]
    truth = np.array([0.6, 0.3, 0.1])
    x = np.concatenate(
        [s.rvs(int(20_000 * w), random_state=rng) for s, w in zip(sources, truth, strict=True)]
    )
    log_d = np.stack([s.logpdf(x) for s in sources])
    log_t = np.log(truth @ np.exp(log_d))
    answer = sampled_nearest_mixture(log_t - 9000, log_d - 9000, 2.0)
    assert answer.value == pytest.approx(1.0, abs=0.01)
    np.testing.assert_allclose(answer.mixture, truth, atol=0.06)


def test_a_search_that_is_cut_short_warns(monkeypatch):
    monkeypatch.setattr(nearest, "GAP", 0.1)
    T, D = random_case(0, 4, 20)
    with pytest.warns(SolverWarning, match="not found"):
        nearest_mixture(T, D, 2.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nearest_mixture([1, 1], [[1, 1]], 0.5), "1 or more"),
        (lambda: nearest_mixture([1, 1], [[1, 1, 1]], 2.0), "points"),
        (lambda: nearest_mixture([1, 1], [[1, 1], [0, 0]], 2.0), "source 1 has no mass"),
        (lambda: sampled_nearest_mixture([0, 0], [[0, 0]], np.inf), "draws"),
        (lambda: sampled_nearest_mixture([0, 0], [[0, 0, 0]], 2.0), "equal length"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
