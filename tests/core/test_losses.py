"""Every loss: slope, curvature, convexity, known values, kinks and the constant C."""

import numpy as np
import pytest
from scipy.special import expit, huber
from sklearn import metrics

from anymix.core import (
    LOSSES,
    Loss,
    canonical_name,
    get_loss,
    loss_from_dict,
    loss_to_dict,
    unit_of,
)
from anymix.core.losses import (
    Absolute,
    Brier,
    Hinge,
    Huber,
    Logistic,
    Pinball,
    Poisson,
    PoissonLog,
    Squared,
)
from anymix.core.losses import CrossEntropy as CE
from tests.core.loss_cases import CASES, every_loss, exported, found_case


def points(case, m=200, seed=0):
    """Predictions and targets away from the kinks, where derivatives exist."""
    h, y = case.draw(np.random.default_rng(seed), 1, m)
    h = h[0]
    for kink in case.kinks(y):
        keep = np.abs(h - kink) > 1e-4
        h, y = h[keep], y[keep]
    return h, y


@every_loss
def test_slope_is_the_derivative_of_the_value(case):
    h, y = points(case)
    step = 1e-6
    if case.loss.takes == "vector":
        moves = step * np.eye(h.shape[1])
        value = case.loss.value
        found = [(value(h + d, y) - value(h - d, y)) / (2 * step) for d in moves]
        expected = np.stack(found, axis=1)
    else:
        expected = (case.loss.value(h + step, y) - case.loss.value(h - step, y)) / (2 * step)
    np.testing.assert_allclose(case.loss.slope(h, y), expected, rtol=1e-5, atol=1e-8)


@every_loss
def test_curvature_is_the_derivative_of_the_slope(case):
    h, y = points(case)
    step = 1e-6
    expected = (case.loss.slope(h + step, y) - case.loss.slope(h - step, y)) / (2 * step)
    curvature = case.loss.curvature(h, y)
    assert curvature.shape == h.shape
    np.testing.assert_allclose(curvature, expected, rtol=1e-5, atol=1e-8)


@every_loss
def test_convex_along_chords(case):
    rng = np.random.default_rng(1)
    (a, b), y = case.draw(rng, 2, 500)
    t = rng.random(500)
    mixed = (t * a.T + (1 - t) * b.T).T
    chord = t * case.loss.value(a, y) + (1 - t) * case.loss.value(b, y)
    assert np.all(case.loss.value(mixed, y) <= chord + 1e-12)


@every_loss
def test_the_slope_is_a_subgradient_also_at_kinks(case):
    h, y = case.draw(np.random.default_rng(2), 1, 300)
    for at in [h[0], *case.kinks(y)]:
        move = h[0] - at
        rise = case.loss.slope(at, y) * move
        rise = rise.sum(axis=-1) if case.loss.takes == "vector" else rise
        assert np.all(case.loss.value(h[0], y) >= case.loss.value(at, y) + rise - 1e-12)


@every_loss
def test_curvature_jumps_or_slope_jumps_exactly_at_the_listed_kinks(case):
    y = case.draw(np.random.default_rng(3), 1, 50)[1]
    for kink in case.kinks(y):
        below = case.loss.slope(kink - 1e-9, y), case.loss.curvature(kink - 1e-9, y)
        above = case.loss.slope(kink + 1e-9, y), case.loss.curvature(kink + 1e-9, y)
        assert np.all(np.abs(np.subtract(below, above)).max(axis=0) > 0.5)


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.perfect], ids=lambda case: repr(case.loss)
)
def test_zero_and_least_at_the_perfect_prediction(case):
    y = case.draw(np.random.default_rng(4), 1, 50)[1]
    h = case.perfect(y)
    np.testing.assert_allclose(case.loss.value(h, y), 0.0, atol=1e-12)
    others = case.draw(np.random.default_rng(5), 1, 50)[0][0]
    assert np.all(case.loss.value(others, y) >= -1e-12)


@every_loss
def test_the_constant_of_the_decomposition_is_never_exceeded_in_the_hull(case):
    """(ℓ' + q')² ≤ C (ℓ'' + q'') and q'² ≤ C q'' for every h in the predictions' hull."""
    rng = np.random.default_rng(6)
    h, y = case.draw(rng, 3, 80)
    C, bend, centre = case.loss.dc_terms(h, y)
    for w in [*np.eye(3), *rng.dirichlet(np.ones(3), size=60)]:
        g = np.tensordot(w, h, axes=1)
        slope, curvature = case.loss.slope(g, y), case.loss.curvature(g, y)
        if case.loss.takes == "vector":
            ratio = np.sum(slope**2 / curvature, axis=1)
            assert np.all(ratio <= C * (1 + 1e-12))
            continue
        q_slope, q_curvature = 2 * bend * (g - centre), 2 * bend
        assert np.all((slope + q_slope) ** 2 <= C * (curvature + q_curvature) * (1 + 1e-9))
        assert np.all(q_slope**2 <= C * q_curvature * (1 + 1e-9))


@every_loss
def test_the_constant_is_not_far_from_the_least_that_serves(case):
    """A C ten thousand times too large would be valid, too, and the DCA would crawl."""
    rng = np.random.default_rng(7)
    h, y = case.draw(rng, 2, 300)
    C, bend, centre = case.loss.dc_terms(h, y)
    used = np.zeros_like(C)
    for t in np.linspace(0, 1, 101):
        g = t * h[0] + (1 - t) * h[1]
        slope, curvature = case.loss.slope(g, y), case.loss.curvature(g, y)
        if case.loss.takes == "vector":
            ratio = np.sum(slope**2 / curvature, axis=1)
        else:
            total = curvature + 2 * bend
            ratio = (slope + 2 * bend * (g - centre)) ** 2 / np.maximum(total, 1e-300)
        used = np.maximum(used, ratio)
    assert np.median(used / C) > 0.2
    if case.loss.lipschitz is None and not isinstance(case.loss, Logistic | Poisson):
        np.testing.assert_allclose(used, C, rtol=1e-6)


def test_logistic_takes_the_smaller_of_its_two_constants_and_never_overflows():
    h, y = np.array([[-900.0, -1.0], [900.0, 1.0]]), np.ones(2)
    C, bend, _ = Logistic().dc_terms(h, y)
    np.testing.assert_allclose(C, [4 * 900, np.e])
    np.testing.assert_allclose(bend, [1 / 1800, 0])


INDEPENDENT = {
    "squared": metrics.mean_squared_error,
    "absolute": metrics.mean_absolute_error,
    "hinge": metrics.hinge_loss,
    "logistic": lambda y, h: metrics.log_loss(y, expit(h), labels=[-1, 1]),
    "poisson": lambda y, h: 0.5 * metrics.mean_poisson_deviance(y, h),
    "poisson_log": lambda y, h: 0.5 * metrics.mean_poisson_deviance(y, np.exp(h)),
    "pinball": lambda y, h: metrics.mean_pinball_loss(y, h, alpha=0.5),
    "huber": lambda y, h: huber(1.0, h - y).mean(),
    "cross_entropy": lambda y, h: metrics.log_loss(y, np.c_[h, 1 - h], labels=[0, 1]),
    "brier": lambda y, h: metrics.brier_score_loss(y, h, scale_by_half=False),
}


@pytest.mark.parametrize("name", LOSSES)
def test_agrees_with_another_library(name):
    assert name in INDEPENDENT, "give the value of another library, or a closed form"
    draw = {type(case.loss): case.draw for case in CASES}[LOSSES[name]]
    h, y = draw(np.random.default_rng(8), 1, 100)
    value = get_loss(name).value(h[0], y).mean()
    assert value == pytest.approx(INDEPENDENT[name](y, h[0]), rel=1e-9)


@pytest.mark.parametrize(
    ("loss", "h", "y", "value", "slope"),
    [
        (Logistic(), 1e4, 1.0, 0.0, 0.0),
        (Logistic(), -1e4, 1.0, 1e4, -1.0),
        (Logistic(), 0.0, -1.0, np.log(2), 0.5),
        (Poisson(), 3.0, 0.0, 3.0, 1.0),
        (PoissonLog(), -800.0, 0.0, 0.0, 0.0),
        (CE(), 1e-300, 0.0, 300 * np.log(10), -1e300),
        (Huber(2.0), 1e8, 0.0, 2e8 - 2.0, 2.0),
        (Hinge(), 1.0, 1.0, 0.0, 0.0),
        (Hinge(), -3.0, 1.0, 4.0, -1.0),
        (Absolute(), 2.0, 2.0, 0.0, 0.0),
        (Pinball(0.9), 0.0, 10.0, 9.0, -0.9),
        (Pinball(0.9), 10.0, 0.0, 1.0, 0.1),
    ],
)
def test_known_values(loss, h, y, value, slope):
    h, y = np.array([h]), np.array([y])
    np.testing.assert_allclose(loss.value(h, y), [value], rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(loss.slope(h, y), [slope], rtol=1e-12, atol=1e-300)


def test_flat_losses_state_their_steepest_slope():
    for case in CASES:
        if case.loss.lipschitz is not None:
            h, y = case.draw(np.random.default_rng(9), 1, 400)
            steepest = np.abs(case.loss.slope(h[0], y)).max()
            assert steepest == pytest.approx(case.loss.lipschitz)


def test_sources_that_agree_need_no_constant():
    terms = Absolute().dc_terms(np.ones((3, 4)), np.zeros(4))
    np.testing.assert_array_equal(terms.C, 0)
    np.testing.assert_array_equal(terms.bend, 0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Pinball(0.0), "quantile"),
        (lambda: Pinball(1.0), "quantile"),
        (lambda: Huber(0.0), "delta"),
        (lambda: Huber(np.nan), "delta"),
        (lambda: get_loss("log-loss"), "unknown loss 'log-loss'; known are squared"),
    ],
)
def test_bad_parameters_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_loss_that_lacks_a_part_says_which():
    class Empty(Loss):
        pass

    h = y = np.zeros(2)
    for part in ("value", "slope", "curvature"):
        with pytest.raises(NotImplementedError, match=f"Empty must define {part}"):
            getattr(Empty(), part)(h, y)
    with pytest.raises(NotImplementedError, match="define curvature_ratio or lipschitz"):
        Empty().dc_terms(h[None], y)


def test_every_name_gives_its_loss_and_a_loss_is_passed_through():
    for name, loss in LOSSES.items():
        assert isinstance(get_loss(name), loss)
    assert get_loss(Huber(3.0)) == Huber(3.0)


def test_every_exported_loss_has_a_case_and_a_name():
    assert {type(case.loss) for case in CASES} >= set(exported())
    assert set(LOSSES.values()) == set(exported())


@pytest.mark.parametrize("kind", exported())
def test_a_case_is_found_from_what_the_loss_takes(kind):
    """So a new loss is tested though nobody lists it."""
    case = found_case(kind())
    for test in SHARED:
        if test is not test_curvature_jumps_or_slope_jumps_exactly_at_the_listed_kinks:
            test(case)


class WrongSlope(Squared):
    """Half of the slope, as if the loss were (h − y)²/2."""

    def slope(self, h, y):
        return h - y


class WrongCurvature(Poisson):
    """y/h in place of y/h²."""

    def curvature(self, h, y):
        return y / h


class WrongConstant(Squared):
    """The paper's 2M with a mean in place of the maximum."""

    def curvature_ratio(self, predictions, targets):
        return 2.0 * ((predictions - targets) ** 2).mean(axis=0)


class WrongVectorSlope(Brier):
    """Only the first class counts."""

    def slope(self, h, y):
        return 2.0 * (h - y) * np.arange(h.shape[-1])


class WastefulConstant(CE):
    """Valid, and so large that the DCA would crawl."""

    def curvature_ratio(self, predictions, targets):
        return np.full(predictions.shape[1], 1e4)


class TooFlat(Absolute):
    """States a slope of at most 0.1 and has one of 1."""

    lipschitz = 0.1

    def __post_init__(self):
        pass


class Concave(Squared):
    """√|h − y|, with its right slope."""

    def value(self, h, y):
        return np.sqrt(np.abs(h - y))

    def slope(self, h, y):
        return np.sign(h - y) / (2 * np.sqrt(np.abs(h - y)))


SHARED = [
    test_slope_is_the_derivative_of_the_value,
    test_curvature_is_the_derivative_of_the_slope,
    test_convex_along_chords,
    test_the_slope_is_a_subgradient_also_at_kinks,
    test_curvature_jumps_or_slope_jumps_exactly_at_the_listed_kinks,
    test_the_constant_of_the_decomposition_is_never_exceeded_in_the_hull,
    test_the_constant_is_not_far_from_the_least_that_serves,
]
WRONG = {
    WrongSlope: test_slope_is_the_derivative_of_the_value,
    WrongVectorSlope: test_slope_is_the_derivative_of_the_value,
    WrongCurvature: test_curvature_is_the_derivative_of_the_slope,
    WrongConstant: test_the_constant_of_the_decomposition_is_never_exceeded_in_the_hull,
    TooFlat: test_the_constant_of_the_decomposition_is_never_exceeded_in_the_hull,
    WastefulConstant: test_the_constant_is_not_far_from_the_least_that_serves,
    Concave: test_convex_along_chords,
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_loss_fails_the_shared_test(kind):
    with pytest.raises(AssertionError):
        WRONG[kind](found_case(kind()))


def test_a_loss_that_accepts_nothing_asks_for_its_case():
    class Picky(Squared):
        def check(self, predictions, targets):
            raise ValueError("no.")

    with pytest.raises(AssertionError, match="accepts no draw: name its case"):
        found_case(Picky())


def test_names_are_read_written_and_measured():
    names = ["cross-entropy", "log_loss", "error rate", "MyLoss"]
    keys = ["cross_entropy", "cross_entropy", "error_rate", "MyLoss"]
    assert [canonical_name(name) for name in names] == keys
    assert loss_to_dict(Pinball(0.3)) == {"name": "pinball", "quantile": 0.3}
    assert loss_from_dict({"name": "pinball", "quantile": 0.3}) == Pinball(0.3)
    heads = [unit_of(name).head for name in ("cross-entropy", "error_rate", "mae", "MyLoss", None)]
    error = "absolute error in units of the target"
    assert heads == ["cross-entropy in nats", "error rate", error, "MyLoss", "loss"]
    assert unit_of("auc").direction == "higher is better"
    assert unit_of("hinge").direction == "smaller is better"
