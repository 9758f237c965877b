from pathlib import Path

import numpy as np
import pytest

from experiments.claims import duels
from experiments.digits import DOMAINS
from experiments.digits_small import study
from experiments.loaders import Images, load_small_digits
from experiments.runner import quiet, read_records
from tests.experiments.study_cases import rehearsal

RECORDS = Path(__file__).parents[2] / "results" / "digits_small.jsonl"
SINGLE = set(DOMAINS)
RIVALS = [(name, "as published") for name in ("s", "m", "u", "unif", "joint")]


@pytest.mark.xdist_group("digits_small")
def test_the_study_on_made_up_images():
    results = rehearsal("digits_small").alone
    sizes = [r for r in results if r.table == "Sizes, Table 2"]
    assert [r.value for r in sizes] == [80] * 3 + [30] * 3 + [32] * 3 + [1] * 3
    paper = [73_257, 60_000, 7_291, 26_032, 10_000, 2_007, 32, 28, 16, 3, 1, 1]
    assert [r.paper for r in sizes] == paper
    assert len(results) == 12 + 11 * 8
    value = {(r.method, r.protocol, r.target): r.value for r in results}
    own = [value["unif", "as published", d] for d in DOMAINS]
    pooled = np.average(own, weights=[26_032, 10_000, 2_007])
    assert value["unif", "as published", "smu"] == pytest.approx(pooled)
    assert value["joint", "as published", "mean"] >= 0


def test_a_still_smaller_real_study_keeps_the_order_of_the_methods(real_data):
    def part(images):
        return Images(*(a[:n] for a, n in zip(images, (700, 700, 250, 250), strict=True)))

    images = {name: part(images) for name, images in load_small_digits(real_data).items()}
    results = list(study(images, [0], quiet, n_pairs=70))
    value = {(r.method, r.protocol): r.value for r in results if r.target == "mean"}
    alone = max(value[name, "as published"] for name in "smu")
    assert alone < value["unif", "as published"] < value["DW", "clean"]
    assert value["DW, calibrated", "beyond"] > value["unif", "as published"] + 5


@pytest.fixture(scope="module")
def committed():
    return read_records(RECORDS)[1]


@pytest.mark.parametrize(
    "method", [("DW", "as published"), ("DW", "clean"), ("DW, calibrated", "beyond")]
)
def test_dw_beats_every_source_and_unif_on_all_mixtures_and_is_not_worse_than_joint(
    committed, method
):
    mine = [r for r in committed if r.table == "Table 3"]
    for duel in duels(mine, method, RIVALS):
        assert duel.mean.verdict != "below", duel.sentence
        if not duel.rival.startswith("joint"):
            assert duel.mean.verdict == "above", duel.sentence
            assert {*duel.on("level"), *duel.on("below")} <= SINGLE, duel.sentence


def test_beyond_is_not_worse_than_the_papers_way_on_the_mean(committed):
    ways = [("DW", "as published"), ("DW", "clean")]
    for duel in duels(committed, ("DW, calibrated", "beyond"), ways):
        assert duel.mean.verdict != "below", duel.sentence


def test_the_records_are_of_three_draws(committed):
    assert {r.seed for r in committed} == {0, 1, 2}
    rows = {(r.method, r.protocol) for r in committed if r.table == "Table 3"}
    assert len(committed) == 12 + 3 * len(rows) * 8
    assert len(rows) in (10, 11)
