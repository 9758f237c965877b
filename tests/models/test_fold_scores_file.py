"""The densities of folds travel with the model; a file that is not sound is refused."""

import json

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import anymix
from anymix.exceptions import AuditError
from anymix.exchange import part_of
from anymix.models.fold_scores_file import fold_scores_to_arrays
from anymix.monitor import Monitor


def world(n, seed=0):
    rng, domain = np.random.default_rng(seed), np.repeat([0, 1], n)
    X = rng.normal(2.0 * domain[:, None], 1.0, (2 * n, 2))
    return X, X.sum(axis=1) + 0.1 * rng.normal(size=2 * n), domain


def texts():
    """A model of documents that is weighed by their words."""
    rng, domain = np.random.default_rng(0), np.repeat([0, 1], 20)
    words = np.array([f"{a}{b}" for a in "kmprst" for b in ("ane", "ile", "ort", "une")])
    shares = np.arange(1.0, 25.0) / 300, np.arange(24.0, 0.0, -1.0) / 300
    documents = [" ".join(rng.choice(words, 12, p=shares[k])) for k in domain]
    model = anymix.DistributionWeightedRegressor(density=anymix.densities.TextDensity())
    return model.fit(documents, np.arange(40.0) % 5, sample_domain=domain), documents


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    X, y, domain = world(60)
    model = anymix.DistributionWeightedRegressor(Ridge(), random_state=0)
    model.fit(X, y, sample_domain=domain)
    place = tmp_path_factory.mktemp("folds") / "m"
    anymix.save(model, place)
    return model, place


def test_the_alarm_of_a_model_that_was_read_is_the_same(saved):
    model, place = saved
    again, today = anymix.load(place, in_process=True), world(50, seed=1)[0]
    reports = [Monitor.from_tables(one, n_bootstrap=50, level=0.05) for one in (model, again)]
    found, due = (monitor.estimate(today).alarm for monitor in reports)
    assert due.tested
    assert found == due


def test_texts_are_scored_after_reading(tmp_path):
    model, documents = texts()
    anymix.save(model, tmp_path / "m")
    again = anymix.load(tmp_path / "m")
    for found, due in zip(again.fold_scores(documents), model.fold_scores(documents), strict=True):
        np.testing.assert_allclose(found, due, rtol=1e-9, atol=1e-12)


def changed_layout(arrays, change):
    layout = json.loads(arrays["layout"].tobytes())
    change(layout)
    return np.frombuffer(json.dumps(layout).encode(), np.uint8).copy()


def swap(layout):
    layout[0][0], layout[0][1] = layout[0][1], layout[0][0]


CHANGES = {
    "a row beyond": lambda a: {"rows": a["rows"] + 10**6},
    "rows out of order": lambda a: {"rows": a["rows"][::-1].copy()},
    "another type": lambda a: {"rows": a["rows"].astype(float)},
    "too short": lambda a: {"fold": a["fold"][:-1]},
    "an unknown fold": lambda a: {"fold": a["fold"] + 1},
    "no share": lambda a: {"novelty": a["novelty"] + 2.0},
    "not a number": lambda a: {"novelty": a["novelty"] * np.nan},
    "no layout": lambda a: {"layout": np.zeros(0, np.uint8)},
    "no JSON": lambda a: {"layout": np.full(3, 200, np.uint8)},
    "no list": lambda a: {"layout": np.frombuffer(b"{}", np.uint8).copy()},
    "a density too few": lambda a: {"layout": changed_layout(a, lambda kinds: kinds[0].pop())},
    "a router for a density": lambda a: {"layout": changed_layout(a, swap)},
    "fewer folds": lambda a: {"layout": changed_layout(a, lambda kinds: kinds.pop())},
    "an unknown array": lambda a: {"0.0.spare": np.zeros(1)},
    "an unknown part": lambda a: {"spare": np.zeros(1)},
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_is_not_sound_is_refused(saved, change):
    model, place = saved
    arrays = fold_scores_to_arrays(model)
    part = part_of("fold_scores", arrays | CHANGES[change](arrays))
    record = json.loads((place / "model.json").read_text())
    before = json.dumps(record)
    record["fold_scores"] = {"file": part.name, **vars(part.facts)}
    try:
        (place / part.name).write_bytes(part.content)
        (place / "model.json").write_text(json.dumps(record))
        with pytest.raises(AuditError):
            anymix.load(place)
    finally:
        (place / part.name).unlink()
        (place / "model.json").write_text(before)


def test_a_folder_without_them_is_read(saved):
    place = saved[1]
    record = json.loads((place / "model.json").read_text())
    before = json.dumps(record)
    del record["fold_scores"]
    try:
        (place / "model.json").write_text(json.dumps(record))
        again = anymix.load(place, in_process=True)
    finally:
        (place / "model.json").write_text(before)
    report = Monitor.from_tables(again, n_bootstrap=50, level=0.05).estimate(world(30)[0])
    assert not report.alarm.tested
