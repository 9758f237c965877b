"""u_k − v_k for every loss and measure: the difference, convexity, and both derivatives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anymix.core import Problem, simplex
from anymix.core.losses import CrossEntropy
from anymix.core.solvers.dca import decompose
from tests.core.loss_cases import CASES, central_difference, make_problem

# Distinct conditionals (the own measure) have a decomposition of γ for the cross-entropy only.
KINDS = [
    pytest.param(case, objective, own, id=f"{case.loss}-{objective}-{'own' if own else 'pooled'}")
    for case in CASES
    for objective, own in [("gamma", False), ("robust", False), ("robust", True), ("gamma", True)]
    if objective == "robust" or not own or isinstance(case.loss, CrossEntropy)
]
every_kind = pytest.mark.parametrize(("case", "objective", "own"), KINDS)
Z = np.array([0.25, 0.6, 0.15])


def parts_of(case, objective, own, seed=0):
    problem = make_problem(case, seed, own=own)
    return problem, decompose(problem, objective)


@every_kind
def test_u_minus_v_is_the_objective(case, objective, own):
    problem, parts = parts_of(case, objective, own)
    for z in [Z, simplex.uniform(3), np.array([1.0, 0.0, 0.0])]:
        L = problem.source_losses(z)
        expected = L - z @ L if objective == "gamma" else L
        np.testing.assert_allclose(parts.u(z)[0] - parts.v(z)[0], expected, rtol=1e-9, atol=1e-11)


@every_kind
def test_gradients_by_finite_differences(case, objective, own):
    _, parts = parts_of(case, objective, own)
    for f in (lambda z: parts.u(z)[:2], parts.v):
        expected = central_difference(lambda z, f=f: f(z)[0], Z)
        np.testing.assert_allclose(f(Z)[1], expected, rtol=1e-5, atol=1e-6)


@every_kind
def test_hessian_of_u_by_finite_differences(case, objective, own):
    _, parts = parts_of(case, objective, own)
    lam = np.array([0.2, 0.7, 0.1])
    expected = central_difference(lambda z: lam @ parts.u(z)[1], Z)
    np.testing.assert_allclose(parts.u(Z)[2](lam), expected, rtol=1e-4, atol=1e-5)


@every_kind
def test_no_negative_eigenvalue(case, objective, own):
    _, parts = parts_of(case, objective, own, seed=1)
    rng = np.random.default_rng(1)
    for z in [simplex.random(3, rng) for _ in range(4)]:
        for k in range(3):
            lam = np.eye(3)[k]
            of_u = parts.u(z)[2](lam)
            of_v = central_difference(lambda x, k=k: parts.v(x)[1][k], z)
            for H in (of_u, (of_v + of_v.T) / 2):
                values = np.linalg.eigvalsh(H)
                assert values[0] >= -1e-6 * max(1.0, values[-1])


@every_kind
def test_convex_along_random_chords(case, objective, own):
    """Kinks included, which no Hessian sees."""
    _, parts = parts_of(case, objective, own, seed=2)
    rng = np.random.default_rng(2)
    for _ in range(20):
        a, b = rng.dirichlet(np.full(3, 0.5), size=2)
        t = rng.random()
        for f in (parts.u, parts.v):
            chord = t * f(a)[0] + (1 - t) * f(b)[0]
            assert np.all(f(t * a + (1 - t) * b)[0] <= chord + 1e-10 * np.abs(chord).max())


@given(seed=st.integers(0, 10_000), index=st.integers(0, len(CASES) - 1), own=st.booleans())
def test_convex_on_random_problems(seed, index, own):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(2, 6))
    problem = make_problem(CASES[index], seed, own=own, p=p, m=4 * p)
    kinds = ["robust"] + ([] if own else ["gamma"])
    for parts in [decompose(problem, kind) for kind in kinds]:
        a, b = rng.dirichlet(np.full(p, 0.7), size=2)
        middle = (a + b) / 2
        for f in (parts.u, parts.v):
            chord = (f(a)[0] + f(b)[0]) / 2
            assert np.all(f(middle)[0] <= chord + 1e-10 * np.abs(chord).max())


def test_the_constant_cannot_be_halved():
    """The test of convexity has teeth: with C/2 some chord is violated, for the squared loss."""
    violated = False
    for seed in range(20):
        problem = make_problem(CASES[0], seed, p=2, m=2)
        parts = decompose(problem, "robust")
        parts.terms = parts.terms._replace(C=parts.terms.C / 2)
        H = [parts.u(np.array([t, 1 - t]))[2](np.eye(2)[0]) for t in (0.05, 0.5, 0.95)]
        violated |= any(np.linalg.eigvalsh(h)[0] < -1e-6 for h in H)
    assert violated


def test_global_constant_is_larger_but_has_the_same_difference():
    problem = make_problem(CASES[0], 3)
    near, far = (decompose(problem, "gamma", constant) for constant in ("pointwise", "global"))
    assert set(far.terms.C) == {near.terms.C.max()}
    np.testing.assert_allclose(
        near.u(Z)[0] - near.v(Z)[0], far.u(Z)[0] - far.v(Z)[0], rtol=1e-9, atol=1e-10
    )


def test_a_loss_of_another_value_is_not_taken_for_the_cross_entropy():
    """Distinct conditionals are decomposed for −log h itself, not for whatever derives from it."""

    class Doubled(CrossEntropy):
        def value(self, h, y):
            return 2 * super().value(h, y)

        def slope(self, h, y):
            return 2 * super().slope(h, y)

        def curvature(self, h, y):
            return 2 * super().curvature(h, y)

    problem = make_problem(CASES[1]._replace(loss=Doubled()), 0, own=True)
    with pytest.raises(ValueError, match="known for the cross-entropy only"):
        decompose(problem, "gamma")


def test_tiny_masses_leave_the_hessian_finite():
    rng = np.random.default_rng(4)
    D, h, y = rng.random((2, 6)), rng.uniform(0.1, 0.9, (2, 6)), rng.random(6)
    D[:, 2] = 1e-180
    for loss, weights in [("squared", None), ("cross_entropy", rng.random((2, 6)))]:
        parts = decompose(Problem(D, h, y, loss=loss, weights=weights), "gamma")
        assert np.isfinite(parts.u(np.array([0.5, 0.5]))[2](np.ones(2))).all()


@pytest.mark.parametrize(
    ("loss", "objective", "constant", "own", "message"),
    [
        ("squared", "gamma", "pointwise", True, "known for the cross-entropy only; use method="),
        ("squared", "gamma", "local", False, "constant must be 'pointwise' or 'global'"),
        ("squared", "worst", "pointwise", False, "objective must be 'regret', 'robust' or 'gamma'"),
    ],
)
def test_what_cannot_be_decomposed_is_said(loss, objective, constant, own, message):
    case = next(case for case in CASES if type(case.loss).__name__.lower() == loss)
    with pytest.raises(ValueError, match=message):
        decompose(make_problem(case, 0, own=own), objective, constant)
