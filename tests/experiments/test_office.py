from pathlib import Path

import numpy as np
import pytest

from experiments import office
from experiments.claims import duels
from experiments.made_up import made_up_features
from experiments.office import PER_CLASS, held_out, split
from experiments.recognition import Setting
from experiments.runner import read_records
from tests.experiments.study_cases import rehearsal

RECORDS = Path(__file__).parents[2] / "results" / "office.jsonl"
SINGLE = {"amazon", "webcam", "dslr"}
RIVALS = [(name, "as published") for name in ("a", "w", "d", "unif", "joint")]


def test_a_split_has_so_many_rows_of_each_class_and_is_new_for_each_seed():
    rows = made_up_features()
    one, two = (split(rows, (6, 3, 2), seed) for seed in (0, 1))
    counts = np.zeros((3, 4), dtype=int)
    np.add.at(counts, (rows.domain[one], rows.y[one]), 1)
    np.testing.assert_array_equal(counts, np.repeat([[6], [3], [2]], 4, axis=1))
    assert not np.array_equal(one, two)
    assert PER_CLASS == (20, 8, 8)


@pytest.mark.xdist_group("office")
def test_the_study_on_made_up_features():
    results = rehearsal("office").alone
    assert len(results) == 11 * 8
    assert {r.method for r in results if r.privileged} == {"joint"}
    value = {(r.method, r.protocol, r.target): r.value for r in results}
    alone = max(value[name, "as published", "mean"] for name in "awd")
    for way in ("as published", "clean"):
        assert value["DW", way, "mean"] > alone + 10
    sizes = np.array([12, 14, 14])
    own = [value["unif", "as published", d] for d in ("amazon", "webcam", "dslr")]
    assert value["unif", "as published", "awd"] == pytest.approx(np.average(own, weights=sizes))


def test_every_training_row_is_judged_once_by_sources_that_have_not_seen_it(monkeypatch):
    rows = made_up_features(n_per_cell=6)
    seen, judged = [], []
    fit, ask = office.fit, office.ask

    def spy_fit(setting, train):
        seen.append({x.tobytes() for x in train.X})
        return fit(setting, train)

    def spy_ask(fitted, out, classes):
        judged.extend(x.tobytes() for x in out.X)
        assert not seen[-1] & {x.tobytes() for x in out.X}
        return ask(fitted, out, classes)

    monkeypatch.setattr(office, "fit", spy_fit)
    monkeypatch.setattr(office, "ask", spy_ask)
    density = office.GaussianKDE(random_state=0)
    setting = Setting("s", "Table 4", office.DOMAINS, (1, 1, 1), office.PREDICTOR, density)
    held = held_out(setting, rows, np.arange(4), seed=0)
    assert sorted(judged) == sorted(x.tobytes() for x in rows.X)
    assert held.tables.predictions.shape == (3, 72, 4)
    assert held.log_router.shape == (3, 72)


@pytest.fixture(scope="module")
def committed():
    return read_records(RECORDS)[1]


@pytest.mark.parametrize(
    "method", [("DW", "as published"), ("DW", "clean"), ("DW, calibrated", "beyond")]
)
def test_dw_beats_every_source_and_unif_on_all_mixtures_and_is_not_worse_than_joint(
    committed, method
):
    for duel in duels(committed, method, RIVALS):
        assert duel.mean.verdict != "below", duel.sentence
        if not duel.rival.startswith("joint"):
            assert duel.mean.verdict == "above", duel.sentence
            assert {*duel.on("level"), *duel.on("below")} <= SINGLE, duel.sentence


def test_calibration_is_not_worse_than_the_papers_way_on_the_mean(committed):
    ways = [("DW", "as published"), ("DW", "clean")]
    for duel in duels(committed, ("DW, calibrated", "beyond"), ways):
        assert duel.mean.verdict != "below", duel.sentence


def test_the_records_are_of_ten_splits(committed):
    assert {r.seed for r in committed} == set(range(10))
    rows = {(r.method, r.protocol) for r in committed}
    assert len(committed) == 10 * len(rows) * 8
    assert len(rows) in (10, 11)
