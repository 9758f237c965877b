"""What every density promises; each check takes a case and raises where the promise is broken."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.integrate import cumulative_trapezoid, trapezoid
from scipy.spatial.distance import cdist
from sklearn.base import clone

from tests.densities.density_cases import Case, takes, training_rows, true_log_density

N_DRAWN = 8000
DEVIATIONS = 4.5  # of a mean that a test allows: it fails once in 100 000 by chance
LEARNED = 0.35  # how far a ratio that a classifier has learned may be from what it should be
LONGEST = 12  # words of the documents that are summed up
GRID = np.linspace(-12, 12, 601)


def integrates_to_one(case: Case) -> None:
    if case.is_ratio:
        # With U as measure; a classifier that was learned is as near to 1 as it is calibrated.
        for d in (1, 2):
            density = case.fitted(d)
            drawn = density.reference_.sample(N_DRAWN, random_state=1)
            assert np.exp(density.score_samples(drawn)).mean() == pytest.approx(1, abs=LEARNED)
        return
    if case.takes == "numbers":
        assert _integral(case.fitted(1), 1) == pytest.approx(1, abs=1e-3)
        # The plane has a coarser grid, which a kink of the density shows.
        assert _integral(case.fitted(2), 2) == pytest.approx(1, abs=5e-3)
        return
    sums = _sums_by_length(case.fitted())
    # Beyond the longest the sums go on as a geometric series.
    ratio = sums[-1] / sums[-2]
    assert sums.sum() + sums[-1] * ratio / (1 - ratio) == pytest.approx(1, abs=1e-6)


def _integral(density: Any, d: int) -> float:
    if d == 1:
        return float(trapezoid(np.exp(density.score_samples(GRID[:, None])), GRID))
    side = GRID[::3]
    points = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    values = np.exp(density.score_samples(points)).reshape(side.size, side.size)
    return float(trapezoid(trapezoid(values, side), side))


def _sums_by_length(density: Any) -> np.ndarray:
    by_length = ([list(d) for d in product("ab", repeat=n)] for n in range(LONGEST + 1))
    return np.array([np.exp(density.score_samples(documents)).sum() for documents in by_length])


def samples_agree(case: Case) -> None:
    """Kolmogorov's distance for numbers, frequencies for documents; a seed repeats a sample."""
    density = case.fitted()
    drawn, again = (density.sample(N_DRAWN, random_state=0) for _ in range(2))
    assert len(drawn) == N_DRAWN
    assert np.array_equal(np.asarray(drawn, dtype=object), np.asarray(again, dtype=object))
    if case.takes == "numbers":
        # Trees have steps, which need a finer grid.
        grid = np.linspace(-12, 12, 48_001) if case.is_ratio else GRID
        values = np.exp(case.log_density(grid[:, None]))
        masses = cumulative_trapezoid(values, grid, initial=0)
        masses = masses / (masses[-1] if case.is_ratio else 1.0)
        below = np.interp(np.sort(drawn[:, 0]), grid, masses)
        steps = np.arange(N_DRAWN + 1) / N_DRAWN
        distance = max(np.abs(below - steps[1:]).max(), np.abs(below - steps[:-1]).max())
        # Once in 50 000 by chance; rows of a ratio are drawn twice now and then.
        assert distance < (3.5 if case.is_ratio else 2.3) / np.sqrt(N_DRAWN)
        return
    for document in ([], ["a"], ["b"], ["a", "b"], ["b", "a"], ["a", "a"]):
        p = float(np.exp(density.score_samples([document])[0]))
        share = np.mean([list(other) == document for other in drawn])
        assert abs(share - p) < DEVIATIONS * np.sqrt(p * (1 - p) / N_DRAWN)


def comes_near_the_truth(case: Case) -> None:
    """Fitted on many draws, it is the density they were drawn from: an independent value."""
    for d in (1, 2) if case.takes == "numbers" else (1,):
        test = training_rows(case.takes, d, seed=1)
        true = true_log_density(case.takes, test)
        allowed = LEARNED if case.is_ratio else 0.1
        assert np.mean(true - case.log_density(test, d)) == pytest.approx(0, abs=allowed)


def far_points_are_very_unlikely(case: Case) -> None:
    near: Any = np.zeros((1, 2))
    far: Any = np.array([[1e6, 0.0], [-1e3, 1e3]])
    if case.takes != "numbers":
        near, far = [[]], [["a"] * 3000, ["a", "b"] * 1500]
    scores = case.log_density(far, 2)
    assert not np.isnan(scores).any()
    assert (scores < case.log_density(near, 2) - 500).all()


def scores_are_one_number_a_row(case: Case) -> None:
    density, rows = case.fitted(2), training_rows(case.takes, 2, n=20, seed=1)
    scores = density.score_samples(rows)
    assert scores.shape == (20,)
    assert scores.dtype == np.float64
    np.testing.assert_allclose(density.score_samples(rows[:1]), scores[:1], rtol=1e-5)


def is_cloned_without_what_it_learned(case: Case) -> None:
    density = case.make(1)
    parameters = density.get_params(deep=False)
    assert density.fit(training_rows(takes(density), n=50)) is density
    assert density.get_params(deep=False) == parameters
    twin = clone(density)
    assert {k: repr(v) for k, v in twin.get_params().items()} == {
        k: repr(v) for k, v in density.get_params().items()
    }
    learned = {name for name in vars(density) if name.endswith("_") and name not in parameters}
    assert not learned & set(vars(twin))


def comes_back_from_its_arrays(case: Case) -> None:
    """To the last digit, and with the same arrays."""
    density, rows = case.fitted(2), training_rows(case.takes, 2, n=200, seed=1)
    arrays, d = density.to_arrays(), _n_features(case)
    assert {a.dtype for a in arrays.values()} <= {np.dtype(t) for t in ("f8", "i8", "u1")}
    again = type(density).from_arrays(arrays, d)
    np.testing.assert_array_equal(again.score_samples(rows), density.score_samples(rows))
    for name, array in again.to_arrays().items():
        np.testing.assert_array_equal(array, arrays[name])
    assert len(again.sample(3, random_state=0)) == 3
    assert density.reveals().endswith(".")


def refuses_arrays_that_are_not_sound(case: Case) -> None:
    density = case.fitted(2)
    for what, arrays in damaged(density.to_arrays()):
        with pytest.raises(ValueError, match=r"\w") as caught:
            type(density).from_arrays(arrays, _n_features(case))
        assert "\n" not in str(caught.value), what
    if case.takes == "numbers":
        with pytest.raises(ValueError, match=r"\w"):
            type(density).from_arrays(density.to_arrays(), 3)


def damaged(arrays: dict[str, Any]) -> Any:
    """Yield arrays that lack something, have too much, or have it in another type or shape."""
    other = {"f": np.float32, "i": np.float64, "u": np.int64}
    yield "extra", arrays | {"extra": np.zeros(1)}
    for name, array in arrays.items():
        yield f"no {name}", {key: value for key, value in arrays.items() if key != name}
        yield f"{name} of another type", arrays | {name: array.astype(other[array.dtype.kind])}
        yield f"{name} with one more axis", arrays | {name: array[None]}
        if array.size:
            yield f"{name} cut short", arrays | {name: array[:-1]}
        if array.size and array.dtype.kind == "f":
            broken = array.copy()
            broken.flat[0] = np.nan
            yield f"{name} with NaN", arrays | {name: broken}


def hands_over_no_row(case: Case) -> None:
    """What may be handed over is of the same kind, near the density, and holds no training row."""
    density, rows = case.fitted(2), training_rows(case.takes, 2)
    shared = density.shareable()
    assert shared.kind == density.kind
    apart = shared.score_samples(rows) - density.score_samples(rows)
    assert abs(apart.mean()) < 0.2
    for array in shared.to_arrays().values():
        if case.takes == "numbers" and array.ndim == 2 and array.shape[1] == 2:
            assert cdist(array, rows).min() > 1e-9


def _n_features(case: Case) -> int:
    return 2 if case.takes == "numbers" else 1


CHECKS = (
    integrates_to_one,
    samples_agree,
    comes_near_the_truth,
    far_points_are_very_unlikely,
    scores_are_one_number_a_row,
    is_cloned_without_what_it_learned,
)
# For those that can travel.
TRAVEL_CHECKS = (
    comes_back_from_its_arrays,
    refuses_arrays_that_are_not_sound,
    hands_over_no_row,
)
