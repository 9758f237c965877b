"""A linear model by sums over parts is that of all rows in one place."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import approx_fprime
from sklearn.linear_model import LogisticRegression, Ridge

from anymix.core import LinearPart, fit_linear
from anymix.core.linear_sums import MOST_ROUNDS, SKETCHED, signs

FOLDS = (-1, 0, 2)
STRENGTHS = (3.0, 30.0)


def drawn(seed, n=240, d=30, n_classes=0, X=None):
    """Rows in three parts, and the same rows in one."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.exponential(size=d) + 1.0 if X is None else X
    s = (X @ rng.normal(size=(X.shape[1], max(n_classes, 1)))) / np.sqrt(X.shape[1])
    s = s + rng.normal(size=s.shape)
    y = s[:, 0] + 20.0
    if n_classes:
        y = (s[:, 0] > s[:, 0].mean()).astype(int) if n_classes == 2 else s.argmax(axis=1)
    weight, fold = rng.exponential(size=n), rng.integers(4, size=n)
    whole = LinearPart(X, y, weight, fold, n_classes)
    place = rng.integers(3, size=n)
    rows = [np.flatnonzero(place == k) for k in range(3)]
    parts = [LinearPart(X[r], y[r], weight[r], fold[r], n_classes) for r in rows]
    return whole, parts


def total_of(parts, counted=None):
    """Add up over parts, and note what was asked."""

    def total(name, arrays):
        found = [part.answer(name, arrays) for part in parts]
        if counted is not None:
            counted.append(name)
        return {key: sum(one[key] for one in found) for key in found[0]}

    return total


def in_one_place(whole, fold, mu):
    """θ (c, D) and intercepts (c,), the intercepts of several labels around 0."""
    here = whole.fold != fold
    known = whole.X[here], whole.y[here]
    if not whole.n_classes:
        found = Ridge(mu, tol=1e-12).fit(*known, sample_weight=whole.weight[here])
        return found.coef_[None], np.array([found.intercept_])
    exact = {"tol": 1e-12, "max_iter": 10_000, "solver": "newton-cg"}
    found = LogisticRegression(C=1 / mu, **exact).fit(*known, sample_weight=whole.weight[here])
    b = found.intercept_
    return found.coef_, b - b.mean() if b.size > 1 else b


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_coefficients_are_those_of_rows_in_one_place(n_classes):
    whole, parts = drawn(0, n_classes=n_classes)
    asked = []
    found = fit_linear(total_of(parts, asked), n_classes, FOLDS, STRENGTHS)
    for i, fold in enumerate(FOLDS):
        for j, mu in enumerate(STRENGTHS):
            theta, b = found.theta[i, j][:, :-1], found.theta[i, j][:, -1]
            coef, intercept = in_one_place(whole, fold, mu)
            np.testing.assert_allclose(theta, coef, atol=1e-8 * np.abs(coef).max())
            b = b - b.mean() if b.size > 1 else b
            np.testing.assert_allclose(b, intercept, rtol=1e-8, atol=1e-8)
    assert found.n_rounds == len(asked) <= MOST_ROUNDS
    assert found.residual < 1e-9


@pytest.mark.parametrize("n_classes", [0, 2])
def test_many_sparse_columns_take_a_sketch(n_classes):
    rng = np.random.default_rng(1)
    places = rng.integers(40, size=(300, 20)) + 40 * np.arange(20)
    ones = np.full(places.size, 1 / np.sqrt(20))
    X = sparse.csr_matrix((ones, places.ravel(), np.arange(301) * 20), (300, 800))
    assert X.shape[1] > SKETCHED
    whole, parts = drawn(1, 300, n_classes=n_classes, X=X)
    found = fit_linear(total_of(parts), n_classes, (-1, 1), (0.3, 1.0))
    for i, fold in enumerate((-1, 1)):
        for j, mu in enumerate((0.3, 1.0)):
            coef, intercept = in_one_place(
                LinearPart(X.toarray(), whole.y, whole.weight, whole.fold, n_classes), fold, mu
            )
            theta = found.theta[i, j]
            np.testing.assert_allclose(theta[:, :-1], coef, atol=1e-8 * np.abs(coef).max())
            np.testing.assert_allclose(theta[:, -1], intercept, rtol=1e-8, atol=1e-8)
    assert found.n_rounds <= MOST_ROUNDS


@given(st.integers(0, 2**31), st.sampled_from([0, 2, 3]))
def test_parts_add_up_and_the_gradient_ends_at_zero(seed, n_classes):
    whole, parts = drawn(seed, 60, 4, n_classes)
    if n_classes and np.bincount(whole.y, minlength=n_classes).min() < 5:
        return
    found = fit_linear(total_of(parts), n_classes, [-1], [2.0])
    theta = found.theta[:, 0]
    slope = whole.slopes(theta, np.array([-1]))["gradient"]
    slope[:, :, :-1] += 2.0 * theta[:, :, :-1]
    first = np.abs(whole.slopes(0 * theta, np.array([-1]))["gradient"]).max()
    assert np.abs(slope).max() < 1e-8 * first


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_slopes_and_products_are_differences(n_classes):
    whole, _ = drawn(3, 40, 3, n_classes)
    c, rng = (n_classes if n_classes > 2 else 1), np.random.default_rng(0)
    theta, without = 0.3 * rng.normal(size=(1, c, 4)), np.array([1])

    def value(flat):
        return float(whole.slopes(flat.reshape(theta.shape), without)["value"][0])

    slope = whole.slopes(theta, without)["gradient"]
    np.testing.assert_allclose(approx_fprime(theta.ravel(), value), slope.ravel(), rtol=1e-4)
    v, h = rng.normal(size=theta.shape), 1e-5
    ends = [whole.slopes(theta + side * v, without)["gradient"] for side in (h, -h)]
    product = whole.products(theta, v, without)
    np.testing.assert_allclose((ends[0] - ends[1]) / (2 * h), product, rtol=1e-5, atol=1e-7)


def test_held_out_losses_are_of_the_fold_alone():
    whole, parts = drawn(4)
    theta = np.ones((1, 1, 31))
    found = total_of(parts)("losses", {"theta": theta, "fold": np.array([2])})
    inside = whole.fold == 2
    errors = whole.X[inside] @ np.ones(30) + 1.0 - whole.y[inside]
    np.testing.assert_allclose(found["losses"], 0.5 * whole.weight[inside] @ errors**2)
    np.testing.assert_allclose(found["weights"], whole.weight[inside].sum())


def test_rounds_end_where_they_must():
    _, parts = drawn(5)
    found = fit_linear(total_of(parts), 0, [-1], [1e-9], max_rounds=2)
    assert found.n_rounds == 2
    assert np.isfinite(found.theta).all()


def test_columns_of_signs_are_alike_everywhere_and_different():
    one = signs(500)
    np.testing.assert_array_equal(one, signs(500))
    assert set(np.unique(one)) == {-1.0, 1.0}
    assert np.abs(one.T @ one / 500 - np.eye(SKETCHED)).max() < 0.3
