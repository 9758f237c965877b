"""Pools of what all models say: derivatives, other libraries, caution."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from anymix.core import Consulting, PoolRows, choose_candidates, get_loss, losses_at
from anymix.core import pool_learning as inside
from anymix.core.pool_learning import LabelPools, NumberPools

NUMBERS = ("squared", "absolute", "pinball", "huber", "poisson_log")


def learn_pool(h, y, k, loss, weight, **more):
    """The pool of one source that has nobody to choose with; None: its own model."""
    rows = PoolRows(h, y, k, loss, weight, **more)
    found = rows.candidates()
    given = found.doubted[None], found.errors[None], np.array([found.n_rows])
    choice = int(choose_candidates(*given)[0])
    return rows.pool(found, choice) if choice else None


def probabilities(rng, p, n, c):
    return np.maximum(rng.dirichlet(np.ones(c), size=(p, n)), 1e-6)


def test_labels_are_pooled_by_the_formula():
    rng = np.random.default_rng(0)
    h, a = probabilities(rng, 3, 5, 4), rng.normal(size=(3, 3))
    b = rng.normal(size=(3, 4))
    said = Consulting(a, b, np.zeros(3), "labels").heard(h)
    for k in range(3):
        scores = sum(a[k, j] * np.log(h[j]) for j in range(3)) + b[k]
        plain = np.maximum(softmax(scores, axis=1), 1e-6)
        assert np.allclose(said[k], plain / plain.sum(axis=1, keepdims=True))


def test_numbers_are_moved_no_further_than_their_reach():
    h = np.array([[0.0, 0.0, 0.0], [1.0, 10.0, -1e30]])
    pair = Consulting(np.array([[0.5, 0.5], [0.0, 1.0]]), np.zeros(2), np.full(2, 2.0), "numbers")
    assert pair.heard(h)[0].tolist() == [0.5, 2.0, -2.0]
    assert (pair.heard(h)[1] == h[1]).all()


def test_positive_numbers_stay_positive():
    rng = np.random.default_rng(0)
    h, a = np.exp(rng.normal(size=(3, 50))), rng.normal(size=(3, 3))
    said = Consulting(a, rng.normal(size=3), np.full(3, 3.0), "positive").heard(h)
    assert (said > 0).all()


def test_who_hears_nobody_says_what_the_own_model_says():
    h = np.random.default_rng(0).normal(size=(3, 7))
    none = Consulting(np.eye(3), np.zeros(3), np.zeros(3), "numbers")
    assert np.array_equal(none.heard(h), h)
    assert not none.consults.any()


def test_it_is_written_and_read():
    told = Consulting(np.eye(2) + 0.1, np.ones(2), np.ones(2), "numbers")
    back = Consulting.from_dict(json.loads(json.dumps(told.to_dict())))
    assert np.array_equal(back.weights, told.weights)
    assert back.form == told.form


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"weights": np.eye(3)}, "shapes"),
        ({"form": "words"}, "form"),
        ({"offset": np.array([0.0, np.nan])}, "finite"),
        ({"reach": np.array([0.0, -1.0])}, "reach"),
        ({"weights": np.full((2, 2), 1e9)}, "bounds"),
    ],
)
def test_what_nobody_can_have_learned_is_refused(change, complaint):
    parts = {"weights": np.eye(2), "offset": np.zeros(2), "reach": np.zeros(2), "form": "numbers"}
    with pytest.raises(ValueError, match=complaint):
        Consulting(**{**parts, **change}).check(2)


def pools_of(name, errors=False, n=40):
    rng = np.random.default_rng(3)
    if name == "cross_entropy":
        h, y = probabilities(rng, 3, n, 4), rng.integers(4, size=n)
        return LabelPools(h, y, 1).taken(np.arange(n))
    h = rng.normal(size=(3, n))
    y = rng.poisson(2.0, size=n).astype(float) if "poisson" in name else rng.normal(size=n)
    h = np.exp(h) if name == "poisson" else h
    share = np.full(n, 1 / n)
    return NumberPools(h, y, 1, errors, get_loss(name), share).taken(np.arange(n))


@pytest.mark.parametrize("name", ["cross_entropy", "squared", "huber", "poisson", "poisson_log"])
@pytest.mark.parametrize("errors", [False, True])
def test_slopes_are_those_of_finite_differences(name, errors):
    pools, rng = pools_of(name, errors), np.random.default_rng(0)
    theta = pools.centre + 0.3 * rng.normal(size=(2, pools.centre.size))
    mass = rng.random((2, 40))
    gradient, hessian = pools.slopes(theta, mass)
    step = 1e-6
    for j, e in enumerate(np.eye(pools.centre.size) * step):
        value = (pools.values(theta + e, mass) - pools.values(theta - e, mass)) / (2 * step)
        assert np.allclose(gradient[:, j], value, rtol=1e-5, atol=1e-6)
        if name != "huber":  # whose parabola lies above the loss
            up, down = pools.slopes(theta + e, mass)[0], pools.slopes(theta - e, mass)[0]
            assert np.allclose(hessian[:, j], (up - down) / (2 * step), rtol=1e-4, atol=1e-5)


def test_a_pool_of_numbers_is_a_ridge_regression():
    rng = np.random.default_rng(1)
    h = rng.normal(size=(3, 200))
    y = h[0] + 0.5 * h[2] + 2.0 + 0.1 * rng.normal(size=200)
    pools = NumberPools(h, y, 0, False, get_loss("squared"), np.full(200, 1 / 200))
    pools = pools.taken(np.arange(200))
    theta = inside._newton(pools, np.ones((1, 200)))
    for strength, (found,) in zip(inside.STRENGTHS, theta, strict=True):
        own = np.mean((h[0] - y) ** 2)
        F = np.column_stack([(h - h.mean(axis=1, keepdims=True)).T, np.ones(200)])
        ridge = np.diag([strength] * 3 + [1e-6 * strength])
        expected = np.linalg.solve(2 * F.T @ F / own + ridge, 2 * F.T @ (y - h[0]) / own)
        assert np.allclose(found, expected, atol=1e-7)


def test_a_pool_of_labels_is_what_another_solver_finds():
    rng = np.random.default_rng(2)
    h, y = probabilities(rng, 3, 150, 4), rng.integers(4, size=150)
    pools = LabelPools(h, y, 2).taken(np.arange(150))
    theta = inside._newton(pools, np.ones((1, 150)))

    def objective(a, strength):
        scores = np.einsum("j,jnc->nc", a[:3], np.log(h)) + a[3:]
        told = -log_softmax(scores, axis=1)[np.arange(150), y].sum()
        return told + 0.5 * strength * np.sum((a - np.eye(7)[2]) ** 2)

    for strength, (found,) in zip(inside.STRENGTHS, theta, strict=True):
        best = minimize(objective, np.eye(7)[2], (strength,), tol=1e-12).fun
        assert objective(found, strength) <= best + 1e-7 * abs(best)


@given(st.integers(0, 10**6), st.sampled_from((*NUMBERS, "cross_entropy")), st.integers(10, 60))
def test_no_pool_is_kept_that_loses_by_folds(seed, name, n):
    rng = np.random.default_rng(seed)
    if name == "cross_entropy":
        h, y = probabilities(rng, 3, n, 3), rng.integers(3, size=n)
    else:
        h, y = rng.normal(size=(3, n)), np.abs(rng.normal(size=n))
    loss = get_loss(name)
    pool = learn_pool(h, y, 0, loss, np.ones(n))
    if pool is not None:
        gains = losses_at(h[0], y, loss) - losses_at(pool.crossed, y, loss)
        assert np.isclose(gains.mean(), pool.gain)
        assert pool.gain > 0


@pytest.mark.parametrize("n", [3, 9])
def test_few_rows_keep_the_own_model(n):
    h = np.random.default_rng(0).normal(size=(2, n))
    assert learn_pool(h, h[1], 0, get_loss("squared"), np.ones(n)) is None


def test_errors_are_pooled_as_numbers_are():
    rng = np.random.default_rng(0)
    y = 5 + rng.normal(size=300)
    h = y + rng.normal(size=(3, 300))
    pool = learn_pool(h - y, 0 * y, 0, get_loss("squared"), np.ones(300), errors=True)
    assert np.isclose(pool.weights.sum(), 1)
    consulting = Consulting(
        np.vstack([pool.weights, np.eye(3)[1:]]), np.zeros(3), np.full(3, 99.0), "numbers"
    )
    assert consulting.takes_errors
    assert np.allclose(consulting.heard(h) - y, consulting.heard(h - y))


def test_of_many_rows_some_are_drawn(monkeypatch):
    rng = np.random.default_rng(0)
    y = rng.normal(size=3000)
    h = y + rng.normal(size=(3, 3000))
    whole = learn_pool(h, y, 0, get_loss("squared"), np.ones(3000))
    monkeypatch.setattr(inside, "MOST_NUMBERS", 48 * 1000)
    drawn = learn_pool(h, y, 0, get_loss("squared"), np.ones(3000))
    assert not np.allclose(whole.weights, drawn.weights, atol=1e-9)
    assert np.allclose(whole.weights, drawn.weights, atol=0.05)


def test_sharpening_by_few_good_rows_is_doubted():
    """Ten rows without a mistake do not prove that there are none."""
    rng, harm = np.random.default_rng(0), []
    for _ in range(60):
        p = rng.uniform(0.6, 0.95, size=15)
        own = np.column_stack([p, 1 - p])
        y = np.where(rng.random(15) < p, 0, 1)
        h = np.stack([own, probabilities(rng, 1, 15, 2)[0]])
        pool = learn_pool(h, y, 0, get_loss("cross_entropy"), np.ones(15))
        if pool is not None:
            said = inside.pooled_labels(np.tensordot(pool.weights, np.log(h), 1) + pool.offset)
            # p are the true probabilities, so that the harm is a divergence.
            harm.append((own * (np.log(own) - np.log(said))).sum(axis=1).mean())
    assert sum(harm) / 60 < 0.05


def test_rows_count_by_their_weight():
    rng = np.random.default_rng(0)
    y = rng.normal(size=200)
    h = np.stack([y + rng.normal(size=200), y + 0.1 * rng.normal(size=200)])
    weight = np.r_[np.ones(100), np.zeros(100)]
    y[100:] = 1e6
    spoilt = learn_pool(h, y, 0, get_loss("squared"), weight)
    clean = learn_pool(h[:, :100], y[:100], 0, get_loss("squared"), np.ones(100))
    assert np.allclose(spoilt.weights, clean.weights, atol=0.05)
    few = np.r_[np.ones(5), np.full(195, 1e-9)]
    assert learn_pool(h, y, 0, get_loss("squared"), few) is None
