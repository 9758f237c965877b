"""`check_loss` passes every loss of the house, and names the slip of each that has one."""

import numpy as np
import pytest

from anymix.core import Loss
from anymix.core.losses import Brier, Hinge, Squared, check_loss
from tests.core.loss_cases import CASES


@pytest.mark.parametrize("case", CASES, ids=lambda case: type(case.loss).__name__)
@pytest.mark.parametrize("seed", range(5))
def test_losses_of_the_house_pass(case, seed):
    check_loss(case.loss, rng=seed)
    check_loss(case.loss, *case.draw(np.random.default_rng(seed), 4, 100))


class Fourth(Loss):
    """(h − y)⁴, right in every part."""

    def value(self, h, y):
        return (h - y) ** 4

    def slope(self, h, y):
        return 4 * (h - y) ** 3

    def curvature(self, h, y):
        return 12 * (h - y) ** 2

    def curvature_ratio(self, predictions, targets):
        return 4 / 3 * ((predictions - targets) ** 4).max(axis=0)


def overwriting(self, h, y):
    h -= y
    return h**4


SLIPS = {
    "half a slope": ({"slope": lambda s, h, y: 2 * (h - y) ** 3}, "slope is"),
    "slope of another sign": ({"slope": lambda s, h, y: -4 * (h - y) ** 3}, "wrong sign"),
    "half a curvature": ({"curvature": lambda s, h, y: 6 * (h - y) ** 2}, "curvature"),
    "no curvature": ({"curvature": lambda s, h, y: np.zeros_like(h)}, "curvature"),
    "a ratio of one source": (
        {"curvature_ratio": lambda s, H, y: 4 / 3 * ((H - y) ** 4).min(axis=0)},
        "curvature_ratio is .* largest value",
    ),
    "a ratio for each source": ({"curvature_ratio": lambda s, H, y: (H - y) ** 4}, "has shape"),
    "one value for all": ({"value": lambda s, h, y: ((h - y) ** 4).sum()}, "has shape"),
    "not finite": ({"slope": lambda s, h, y: np.full_like(h, np.nan)}, "not finite"),
    "writes into h": ({"value": overwriting}, "writes into h"),
    "too small a bound": ({"lipschitz": 0.5}, "lipschitz is 0.5"),
    "nothing is accepted": (
        {"check": lambda s, H, y: (_ for _ in ()).throw(ValueError("never"))},
        "never.*pass predictions",
    ),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_named(slip):
    changed, words = SLIPS[slip]
    check_loss(Fourth())
    with pytest.raises(ValueError, match=words):
        check_loss(type("Slipped", (Fourth,), changed)())


def test_a_loss_that_is_not_convex_is_named():
    class Bump(Squared):
        def value(self, h, y):
            return -((h - y) ** 2)

        def slope(self, h, y):
            return -2 * (h - y)

        def curvature(self, h, y):
            return np.full_like(h, -2.0)

    with pytest.raises(ValueError, match="not convex"):
        check_loss(Bump())


def test_slips_of_vectors_and_of_kinks_are_named():
    class HalfBrier(Brier):
        def slope(self, h, y):
            return h - y

    class LateHinge(Hinge):
        def slope(self, h, y):
            return np.where(y * h < 2, -y, 0.0)

    for loss in (HalfBrier(), LateHinge()):
        with pytest.raises(ValueError, match=r"slope|curvature"):
            check_loss(loss)


def test_points_without_targets_are_refused():
    with pytest.raises(ValueError, match="or neither"):
        check_loss(Squared(), predictions=np.zeros((2, 3)))
