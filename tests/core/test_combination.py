"""Combination: the one body of h_z, with calibration, and through JSON."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax, softmax

from anymix.core import Calibration, Combination, combine, mix, plain
from anymix.densities import TemperatureScaling


def drawn(seed, p=3, n=9):
    rng = np.random.default_rng(seed)
    log_masses = rng.normal(scale=10.0 ** rng.integers(0, 3), size=(p, n))
    calibration = Calibration(
        rng.uniform(0.5, 20.0, p), rng.normal(size=p), -40.0, float(rng.choice([1.0, 2.0, 4.0]))
    )
    return (
        rng,
        log_masses,
        Combination(rng.dirichlet(np.ones(p)), 10.0 ** -rng.uniform(0, 6), calibration),
    )


@given(st.integers(0, 200))
def test_the_formula_by_hand(seed):
    rng, log_masses, used = drawn(seed)
    c = used.calibration
    log_r = np.maximum(log_softmax(log_masses, axis=0), c.floor)
    q = softmax(c.sharpness * (log_r / c.temperature[:, None] + c.offset[:, None]), axis=0)
    w = used.z[:, None] * q + used.eta / 9
    w /= w.sum(axis=0)
    np.testing.assert_allclose(np.exp(used.log_responsibilities(log_masses)), q, rtol=1e-12)
    np.testing.assert_allclose(used.weights(log_masses), w, rtol=1e-12)
    for h in (rng.normal(size=(3, 9)), rng.dirichlet(np.ones(4), (3, 9))):
        due = sum(w[k].reshape(-1, *[1] * (h.ndim - 2)) * h[k] for k in range(3))
        np.testing.assert_allclose(used.predict(log_masses, h), due, rtol=1e-12, atol=1e-14)


@given(st.integers(0, 200))
def test_it_is_combine_of_its_responsibilities(seed):
    rng, log_masses, used = drawn(seed)
    log_q, h = used.log_responsibilities(log_masses), rng.dirichlet(np.ones(4), (3, 9))
    due = combine(log_q, h, used.z, used.eta)
    np.testing.assert_allclose(used.predict(log_masses, h), due, rtol=1e-10)
    joint = log_q[:, :, None] + np.log(h)
    due = combine(joint, h, used.z, used.eta, "normalised")
    found = replace(used, rule="normalised").predict(log_masses, h)
    np.testing.assert_allclose(found, due, rtol=1e-10)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


@given(st.integers(0, 100), st.sampled_from(["own", "shared"]))
def test_the_calibration_is_that_of_the_fit(seed, temperature):
    rng, log_masses, _ = drawn(seed, n=30)
    scaling = TemperatureScaling(temperature).fit(log_masses, np.arange(30) % 3)
    learned = Calibration(scaling.temperature_, scaling.offset_, scaling.floor_)
    new = rng.normal(scale=30.0, size=(3, 8))
    found = Combination(np.full(3, 1 / 3), 0.0, learned).log_responsibilities(new)
    np.testing.assert_allclose(found, scaling.transform(new), rtol=1e-10, atol=1e-12)


@given(st.integers(0, 100), st.floats(0.0, 0.5))
def test_asking_seldom_is_the_same_within_its_bound(seed, skip_below):
    rng, log_masses, used = drawn(seed)
    h = rng.dirichlet(np.ones(4), (3, 9))
    asked = []

    def ask(k, points):
        asked.append((k, 9 if points is None else points.size))
        return h[k] if points is None else h[k, points]

    found = used.predict(log_masses, ask, skip_below)
    assert np.abs(found - used.predict(log_masses, h)).max() <= skip_below + 1e-12
    kept = used.weights(log_masses) >= skip_below / 3
    assert sum(n for _, n in asked) == kept.sum()


def test_a_source_without_weight_is_not_asked():
    weights = np.array([[1.0, 1.0, 0.5], [0.0, 0.0, 0.5]])

    def ask(k, points):
        assert k == 0 or points.tolist() == [2]
        return np.array([2.0, 3.0, 4.0]) if k == 0 else np.array([8.0])

    np.testing.assert_allclose(mix(weights, ask), [2.0, 3.0, 6.0])


@given(st.integers(0, 100))
def test_json_keeps_every_digit(seed):
    _, log_masses, used = drawn(seed)
    again = Combination.from_dict(json.loads(json.dumps(plain(used, exact=True))))
    np.testing.assert_array_equal(again.weights(log_masses), used.weights(log_masses))
    assert again.rule == used.rule
    raw = Combination(used.z, used.eta)
    assert Combination.from_dict(json.loads(raw.to_json())).calibration is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"z": np.array([0.5, 0.6])}, "on the simplex"),
        ({"eta": -0.5}, "eta must be finite and not negative"),
        ({"eta": np.inf}, "eta must be finite"),
        ({"rule": "joint"}, "rule must be"),
        ({"calibration": Calibration(np.ones(3), np.zeros(3), -9.0)}, "of 2 sources has 2"),
        ({"calibration": Calibration(np.array([1.0, 0.0]), np.zeros(2), -9.0)}, "not positive"),
        ({"calibration": Calibration(np.ones(2), np.zeros(2), -np.inf)}, "not finite"),
        ({"calibration": Calibration(np.ones(2), np.zeros(2), -9.0, -1.0)}, "not positive"),
    ],
)
def test_numbers_that_no_fit_can_have_found_are_refused(change, words):
    with pytest.raises(ValueError, match=words):
        replace(Combination(np.array([0.5, 0.5]), 1e-3), **change).check()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"eta": 1e-3}, "lacks 'z'"),
        ({"z": [1.0], "eta": 1e-3, "colour": 1}, "unknown entry 'colour'"),
        ({"z": [1.0], "eta": True}, "is not a number, which is expected"),
        ({"z": [1.0], "eta": 0.0, "rule": 3}, "of type str is expected"),
        ({"z": [1.0], "eta": 0.0, "calibration": [1]}, "is not a Calibration, which is expected"),
        ([1, 2], "is not a Combination, which is expected"),
    ],
)
def test_records_of_strangers_are_read_strictly(data, words):
    with pytest.raises(ValueError, match=words):
        Combination.from_dict(data)


@pytest.mark.parametrize("eta", [0.0, 1e-3])
def test_points_that_only_sources_without_weight_explain_are_shared(eta):
    log_masses, h = np.array([[-np.inf], [0.0]]), np.array([[1.0], [2.0]])
    used = Combination(np.array([1.0, 0.0]), eta)
    np.testing.assert_allclose(
        used.predict(log_masses, h), combine(log_masses, h, used.z, eta), rtol=1e-12
    )
    assert np.isfinite(used.predict(log_masses, h)).all()


@pytest.mark.parametrize("skip_below", [-0.1, 1.0, 3.0, np.nan])
def test_skipping_everything_is_refused(skip_below):
    with pytest.raises(ValueError, match="skip_below must be"):
        mix(np.full((2, 1), 0.5), np.ones((2, 1)), skip_below)
