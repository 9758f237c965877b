import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from anymix.core.guarantees.confidence import mean_upper_bound, worst_mean_upper_bound

EXACT = ["betting", "bernstein", "hoeffding"]
METHODS = [*EXACT, "student"]
quick = settings(deadline=None)


def samples(low: float = 0.0, high: float = 1.0):
    return st.lists(st.floats(low, high), min_size=2, max_size=40).map(np.array)


def one_order_betting(x: np.ndarray, delta: float, b: float, span: float) -> float:
    """The betting bound in the given order, by scanning m upwards with a plain loop."""
    for m in np.linspace(x.mean(), b, 20_001)[:-1]:
        capital, richest, deviations = 1.0, 1.0, span**2 / 4
        for i, value in enumerate(x):
            bet = np.sqrt(2 * np.log(1 / delta) / (x.size * deviations / (i + 1)))
            capital *= 1 + min(bet, 0.75 / (b - m)) * (m - value)
            richest = max(richest, capital)
            deviations += (value - x[: i + 1].mean()) ** 2
        if richest >= 1 / delta:
            return m
    return b


@pytest.mark.parametrize("seed", [0, 1])
def test_betting_is_the_least_mean_that_a_plain_loop_refutes(seed):
    x = np.random.default_rng(seed).beta(1, 5, 25)
    order = np.random.default_rng(7).permutation(x)
    expected = one_order_betting(order, 0.1, 1.0, 1.0)
    assert mean_upper_bound(x, 0.1, limits=(0, 1), rng=7) == pytest.approx(expected, abs=1e-4)


def test_closed_forms_by_hand():
    x = np.array([0.0, 1.0, 0.0, 0.0, 1.0])
    hoeffding = 0.4 + np.sqrt(np.log(20) / 10)
    assert mean_upper_bound(x, 0.05, "hoeffding", (0, 1)) == pytest.approx(hoeffding)
    wide = np.tile(x, 40)
    log = np.log(40)
    bernstein = 0.4 + np.sqrt(2 * wide.var(ddof=1) * log / 200) + 7 * log / (3 * 199)
    assert mean_upper_bound(wide, 0.05, "bernstein", (0, 1)) == pytest.approx(bernstein)


def test_student_is_scipys_interval():
    x = np.random.default_rng(0).normal(size=30)
    high = stats.ttest_1samp(x, 0, alternative="less").confidence_interval(0.9).high
    assert mean_upper_bound(x, 0.1, "student") == pytest.approx(high, rel=1e-12)
    repeated = mean_upper_bound(x, 0.1, "student", weights=np.full(30, 3.0))
    assert repeated == pytest.approx(high, rel=1e-12)


@pytest.mark.parametrize("method", METHODS)
@quick
@given(x=samples(), delta=st.floats(1e-6, 0.4))
def test_a_bound_lies_above_the_sample_mean_and_falls_with_delta(method, x, delta):
    bound = mean_upper_bound(x, delta, method, (0, 1))
    assert bound >= x.mean() - 1e-9
    assert mean_upper_bound(x, delta / 10, method, (0, 1)) >= bound - 1e-9


@pytest.mark.parametrize("method", METHODS)
@quick
@given(x=samples(), shift=st.floats(-5, 5), scale=st.floats(0.1, 10))
def test_bounds_follow_a_change_of_units(method, x, shift, scale):
    bound = mean_upper_bound(x, 0.05, method, (0, 1))
    moved = shift + scale * x
    limits = (min(shift, moved.min()), max(shift + scale, moved.max()))
    assert mean_upper_bound(moved, 0.05, method, limits) == pytest.approx(
        shift + scale * bound, abs=1e-6 * scale
    )


@quick
@given(x=samples(), y=samples())
def test_the_worst_mean_is_at_least_each(x, y):
    worst = worst_mean_upper_bound([x, y], 0.05, "bernstein", (0, 1))
    assert worst == max(mean_upper_bound(v, 0.05, "bernstein", (0, 1)) for v in (x, y))


POPULATIONS = {
    "rare": (lambda rng, n: (rng.random(n) < 0.02).astype(float), 0.02),
    "skewed": (lambda rng, n: rng.beta(0.2, 2.0, n), 0.2 / 2.2),
    "even": (lambda rng, n: rng.random(n), 0.5),
}


@pytest.mark.parametrize("population", POPULATIONS)
@pytest.mark.parametrize("method", EXACT)
def test_exact_bounds_fail_no_more_often_than_allowed(method, population):
    draw, mean = POPULATIONS[population]
    rng = np.random.default_rng(3)
    delta, runs = 0.2, 400
    failures = sum(
        mean_upper_bound(draw(rng, 60), delta, method, (0, 1), rng=rng) < mean for _ in range(runs)
    )
    # Five standard errors above δ; a bound at the sample mean would fail in half of the runs.
    assert failures <= runs * delta + 5 * np.sqrt(runs * delta * (1 - delta))


def test_student_misses_rare_losses_and_betting_does_not():
    """The reason for the default: with 1 % of losses at the bound, most samples show none."""
    rng = np.random.default_rng(0)
    draws = [(rng.random(50) < 0.01).astype(float) for _ in range(200)]
    failures = {
        method: np.mean([mean_upper_bound(x, 0.05, method, (0, 1)) < 0.01 for x in draws])
        for method in ("student", "betting")
    }
    assert failures["student"] > 0.4
    assert failures["betting"] <= 0.05


@pytest.mark.parametrize("n", [50, 500])
def test_betting_is_tighter_than_the_other_exact_bounds(n):
    x = np.random.default_rng(1).beta(1, 15, n)
    bounds = {method: mean_upper_bound(x, 0.025, method, (0, 1)) for method in EXACT}
    assert bounds["betting"] - x.mean() < 0.6 * (
        min(bounds["bernstein"], bounds["hoeffding"]) - x.mean()
    )


def test_the_worst_of_many_equal_means_is_covered_without_a_correction():
    rng = np.random.default_rng(5)
    runs, misses = 200, 0
    for _ in range(runs):
        sources = rng.random((6, 40)) * np.array([1, 1, 1, 1, 1, 0.2])[:, None]
        misses += worst_mean_upper_bound(list(sources), 0.1, limits=(0, 1), rng=rng) < 0.5
    assert misses <= 0.1 * runs


def test_small_samples_are_answered_honestly():
    assert mean_upper_bound([0.3], 0.05, "student") == np.inf
    assert mean_upper_bound([0.3], 0.05, "bernstein", (0, 1)) == 1.0
    assert 0.3 < mean_upper_bound([0.3], 0.05, "betting", (0, 1)) <= 1.0
    assert mean_upper_bound(np.full(5, 1.0), 0.05, "betting", (0, 1)) == 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"values": []}, "at least one"),
        ({"values": [[0.1]]}, "one row"),
        ({"values": [np.nan]}, "finite"),
        ({"values": [2.0]}, "outside the limits"),
        ({"delta": 0.0}, "strictly between"),
        ({"method": "guess"}, "method must be"),
        ({"limits": None}, "needs limits"),
        ({"limits": (1, 0)}, "a < b"),
        ({"weights": [1.0, 2.0]}, "equal weights"),
        ({"weights": [0.0, 0.0]}, "zero"),
        ({"weights": [1.0]}, "2 numbers"),
    ],
)
def test_bad_input_is_named(change, message):
    arguments = {"values": [0.1, 0.2], "limits": (0, 1)} | change
    with pytest.raises(ValueError, match=message):
        mean_upper_bound(**arguments)


def test_no_samples():
    with pytest.raises(ValueError, match="at least one source"):
        worst_mean_upper_bound([])
