"""Mixtures whose shares are stated: z for them, and bounds for them alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anymix.core import (
    BoundOptions,
    LossSummary,
    Problem,
    ShareRange,
    certify_rows,
    share_ranges,
    solve,
    worst_value,
)

NAMES = ("a", "b", "c")
STATED = (ShareRange("a", 0.4, 0.7), ShareRange("c", 0.0, 0.2))


def mixtures_of(ranges, steps=20):
    """All mixtures of three sources on a grid that have the shares stated."""
    i, j = (index.ravel() for index in np.indices((steps + 1, steps + 1)))
    grid = np.column_stack([i, j, steps - i - j])[i + j <= steps] / steps
    for one in ranges:
        share = grid[:, NAMES.index(one.name)]
        grid = grid[(share >= one.lower - 1e-9) & (share <= one.upper + 1e-9)]
    return grid


@given(st.lists(st.floats(-5, 5), min_size=3, max_size=3))
def test_the_worst_value_is_that_of_the_worst_mixture(values):
    values = np.array(values)
    assert worst_value(values) == values.max()
    assert worst_value(values, STATED, NAMES) == pytest.approx((mixtures_of(STATED) @ values).max())


@pytest.mark.parametrize(
    ("mixtures", "why"),
    [
        ({"d": (0.1, 0.2)}, "mixtures names 'd'; the sources are a, b, c"),
        ({"a": (0.7, 0.4)}, "its least and its largest share"),
        ({"a": "half"}, "its least and its largest share"),
        (
            {"a": 0.6, "b": (0.5, 0.8)},
            "no mixture has 60 % of rows from a, 50 to 80 % of rows from",
        ),
        ({"a": (0, 0.3), "b": (0, 0.3), "c": (0, 0.3)}, "no mixture has at most 30 %"),
    ],
)
def test_shares_that_no_mixture_has_are_refused(mixtures, why):
    with pytest.raises(ValueError, match=why):
        share_ranges(mixtures, NAMES)


@pytest.mark.parametrize("objective", ["regret", "robust"])
@pytest.mark.parametrize("seed", range(3))
def test_z_is_best_on_the_worst_of_the_mixtures(objective, seed):
    """No z on a grid is better there; and z of all mixtures is not."""
    rng = np.random.default_rng(seed)
    masses, y = rng.dirichlet(np.ones(40), 3), rng.normal(size=40)
    problem = Problem(masses, rng.normal(size=(3, 40)), y, weights=rng.dirichlet(np.ones(40), 3))
    lower, upper = np.array([0.4, 0.0, 0.0]), np.array([0.7, 1.0, 0.2])
    own = problem.own_losses if objective == "regret" else 0.0

    def worst(z):
        return worst_value(problem.source_losses(z) - own, STATED, NAMES)

    found = solve(problem, objective, mixtures=(lower, upper))
    assert worst(found.z) <= min(worst(z) for z in mixtures_of((), steps=40)) + 1e-9
    assert worst(found.z) <= worst(solve(problem, objective).z) + 1e-9
    np.testing.assert_allclose(found.source_losses, problem.source_losses(found.z))
    assert found.robust_loss == pytest.approx(found.source_losses.max())


def test_gamma_has_no_mixtures():
    problem = Problem(np.eye(2), np.eye(2), [0.0, 1.0])
    with pytest.raises(ValueError, match="mixtures are for the objectives"):
        solve(problem, "gamma", mixtures=(np.zeros(2), np.ones(2)))


@pytest.mark.parametrize("new", [True, False])
def test_bounds_hold_on_the_mixtures_and_are_lower_than_on_all(new):
    """5 % of 300 certificates may fail, and three standard errors more."""
    means, failed, lower = np.array([1.0, 2.0, 3.0]), 0, 0
    domain = np.repeat(np.arange(3), 300)
    known = {"z": np.full(3, 1 / 3), "eta": 1e-3, "loss": "squared"}
    fold = None if new else np.arange(900) % 5
    for seed in range(300):
        rng = np.random.default_rng(seed)
        losses, own = means[domain] * rng.exponential(size=900), rng.exponential(size=900)
        rows = LossSummary.of_rows(losses, own, domain, fold=fold)
        options = BoundOptions.at(0.95, clip=9.0 if new else None, names=NAMES)
        one = certify_rows(rows, options._replace(mixtures=STATED), **known)
        c = one.clip
        loss, regret = means * -np.expm1(-c / means), -np.expm1(-c)
        truth = [worst_value(loss - less, STATED, NAMES) for less in (0.0, regret)]
        failed += one.loss_upper < truth[0] or one.regret_upper < truth[1]
        assert one.robust_loss == pytest.approx(worst_value(one.source_losses, STATED, NAMES))
        if seed < 20:
            lower += one.loss_upper < certify_rows(rows, options, **known).loss_upper
    assert failed <= 0.05 * 300 + 3 * np.sqrt(0.05 * 0.95 * 300)
    assert lower == 20
    assert one.loss_ground == ("exact" if new else "asymptotic")
    assert "sources with 40 to 70 % of rows from a and at most 20 % of rows from c" in one.sentence
