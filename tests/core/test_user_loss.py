"""A loss of the user's own is one small class: every solver takes it as one of the house's."""

import numpy as np
import pytest

from anymix.core import Loss, MetricUnit, Problem, loss_name, solve, unit_of
from anymix.core.losses import Brier, Squared
from experiments.simplex_grid import simplex_grid


class LogCosh(Loss):
    """log cosh(h − y): a user's loss, flat far away and curved nearby."""

    lipschitz = 1.0

    def value(self, h, y):
        return np.logaddexp(h - y, y - h) - np.log(2)

    def slope(self, h, y):
        return np.tanh(h - y)

    def curvature(self, h, y):
        return 1 - np.tanh(h - y) ** 2


class HalfSquare(Loss):
    """h²/2: its slope is h itself, which nobody may overwrite."""

    def value(self, h, y):
        return h * h / 2

    def slope(self, h, y):
        return h

    def curvature(self, h, y):
        return np.ones_like(h)

    def curvature_ratio(self, predictions, targets):
        return (predictions**2).max(axis=0)


class Sign(Loss):
    """|h − y| with a slope of whole numbers."""

    lipschitz = 1.0

    def value(self, h, y):
        return np.abs(h - y)

    def slope(self, h, y):
        return np.where(h > y, 1, -1)

    def curvature(self, h, y):
        return np.zeros(h.shape)


@pytest.mark.parametrize("loss", [LogCosh(), HalfSquare()])
def test_a_users_loss_in_one_small_class(loss):
    rng = np.random.default_rng(11)
    y = 3 * rng.standard_normal(80)
    problem = Problem(rng.random((3, 80)) ** 3, y + rng.standard_normal((3, 80)), y, loss=loss)
    auto = solve(problem, "robust")
    dca = solve(problem, "robust", "dca", start=0.999 * auto.z + 0.001 / 3)
    assert auto.status == "stationary"
    assert dca.robust_loss == pytest.approx(auto.robust_loss, rel=1e-6)
    least = min(map(problem.robust_loss, simplex_grid(3, 25)))
    assert auto.robust_loss <= least * (1 + 1e-9)


def test_a_users_slope_may_be_of_whole_numbers():
    rng = np.random.default_rng(12)
    D, h, y = rng.random((2, 30)), rng.random((2, 30)), rng.random(30)
    mine, ours = (Problem(D, h, y, loss=loss) for loss in (Sign(), "absolute"))
    z = [0.3, 0.7]
    for one, other in zip(mine.losses_and_jacobian(z), ours.losses_and_jacobian(z), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_a_loss_of_the_users_states_its_unit_and_bound():
    class Capped(Squared):
        unit = MetricUnit("capped error", "euros", "€")

        def bound(self, n_classes=None, floor=0.0):
            return 4.0

    assert unit_of(loss_name(Capped())).head == "capped error in euros"
    assert Capped().bound() == 4.0


def test_a_loss_with_values_of_its_own_inherits_neither_unit_nor_bound():
    class Half(Brier):
        def value(self, h, y):
            return super().value(h, y) / 2

    class Same(Brier):
        pass

    assert Half.unit is None
    assert Half().bound(2) is None
    assert Same.unit == Brier.unit
    assert Same().bound(2) == 2.0
