from pathlib import Path

import numpy as np
import pytest

from experiments import digits
from experiments.claims import duels
from experiments.digits import DOMAINS, EPOCHS, Meter, grey, pairs, sizes, study
from experiments.fetch import cache_folder
from experiments.loaders import Images, load_mnist, load_small_digits, load_usps
from experiments.made_up import made_up_images
from experiments.networks import ConvNet
from experiments.runner import quiet, read_records
from tests.experiments.study_cases import rehearsal

RECORDS = Path(__file__).parents[2] / "results" / "digits.jsonl"
OURS = [("DW, calibrated", "beyond"), ("DW, domain classifier", "beyond")]


def test_pairs_are_drawn_alike_from_each_domain_and_anew_for_each_seed():
    domain = np.repeat([0, 1, 2], [30, 20, 10])
    one, two = pairs(domain, 5, 0), pairs(domain, 5, 1)
    assert np.bincount(domain[one]).tolist() == [5, 5, 5]
    assert not np.array_equal(one, two)


def test_sizes_of_images_in_their_published_form():
    def blank(n, *shape):
        return Images(*(part for n in (n, 3) for part in (np.zeros((n, *shape)), np.zeros(n))))

    images = {"svhn": blank(5, 32, 32, 3), "mnist": blank(4, 28, 28), "usps": blank(2, 16, 16)}
    found = [*sizes("digits", images)]
    assert [r.value for r in found] == [5, 4, 2, 3, 3, 3, 32, 28, 16, 3, 1, 1]
    assert [r.paper for r in found[6:]] == [r.value for r in found[6:]]


@pytest.mark.xdist_group("digits")
def test_every_row_and_column_of_the_table_is_there():
    results = rehearsal("digits").alone
    table = [r for r in results if r.table == "Table 3"]
    assert len(results) == 12 + len(table)
    assert len(table) == len({(r.method, r.protocol) for r in table}) * 8
    assert {r.method for r in table} >= {"s", "m", "u", "unif", "DW", "joint"}
    paper = [r for r in table if r.protocol == "as published"]
    assert len([r for r in paper if r.paper is not None]) == 6 * 8
    value = {(r.method, r.target): r.value for r in paper}
    own = [value["unif", d] for d in DOMAINS]
    pooled = np.average(own, weights=[26_032, 10_000, 2_007])
    assert value["unif", "smu"] == pytest.approx(pooled)


@pytest.mark.xdist_group("digits")
def test_progress_names_the_network():
    told = {what for _, _, what in rehearsal("digits").told}
    assert told >= {f"seed {seed}, network {name}" for seed in (0, 1) for name in EPOCHS}


@pytest.fixture
def networks_of(monkeypatch, tmp_path):
    """Train for a study, or take from the cache, and leave its table empty."""
    pytest.importorskip("torch")
    images, seen = made_up_images(n_train=20, n_test=10), []
    monkeypatch.setattr(
        digits, "rows_of_the_table", lambda setting, networks, *_: seen.append(networks) or []
    )

    def run(seed=1, n_epochs=1):
        epochs = dict.fromkeys(EPOCHS, n_epochs)
        list(study(images, [seed], quiet, tmp_path, n_pairs=2, epochs=epochs))
        return seen[-1]

    return run


def test_a_second_run_takes_the_networks_from_the_cache(networks_of, monkeypatch, tmp_path):
    first = networks_of()
    assert len([*tmp_path.iterdir()]) == 4
    monkeypatch.setattr(ConvNet, "fit", lambda *_: pytest.fail("a network was trained again"))
    second = networks_of()
    for name in EPOCHS:
        for part, weights in first[name].weights_.items():
            np.testing.assert_array_equal(second[name].weights_[part], weights)


@pytest.mark.parametrize("change", [{"seed": 2}, {"n_epochs": 2}])
def test_another_draw_or_another_recipe_is_not_in_the_cache(networks_of, monkeypatch, change):
    networks_of()
    monkeypatch.setattr(ConvNet, "fit", lambda *_: pytest.fail("asked to train"))
    with pytest.raises(pytest.fail.Exception, match="asked to train"):
        networks_of(**change)


def test_a_meter_reports_no_more_than_a_thousand_times():
    told = []
    meter = Meter(lambda *step: told.append(step), 1_000_000)
    for _ in range(10_000):
        meter(100)
    assert len(told) == 1000
    assert told[-1] == (1000, 1000, "")


def test_grey_images_are_those_of_the_small_set(real_data):
    with np.load(real_data / "digits" / "digits_small_gray32.npz") as arrays:
        chosen = {name: arrays[f"{name}_idx_test"][:20] for name in ("mnist", "usps")}
    small = load_small_digits(real_data)
    for name, load in (("mnist", load_mnist), ("usps", load_usps)):
        found = grey(load(real_data).x_test[chosen[name]])
        np.testing.assert_array_equal(found, small[name].x_test[:20])


def test_colour_is_weighed_as_the_eye_does():
    colours = np.zeros((3, 4, 4, 3), dtype=np.uint8)
    for i in range(3):
        colours[i, ..., i] = 255
    assert grey(colours)[:, 0, 0].tolist() == [76, 150, 29]


def test_the_cache_can_be_placed(monkeypatch, tmp_path):
    monkeypatch.setenv("ANYMIX_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("ANYMIX_CACHE")
    assert cache_folder().name == "anymix"


@pytest.fixture(scope="module")
def committed():
    return [r for r in read_records(RECORDS)[1] if r.table == "Table 3"]


def test_the_sets_are_those_of_the_paper():
    found = [r for r in read_records(RECORDS)[1] if r.table == "Sizes, Table 2"]
    assert len(found) == 12
    assert all(r.value == r.paper for r in found)


def test_the_records_are_of_three_draws_and_fill_every_cell_of_the_table(committed):
    assert {r.seed for r in committed} == {0, 1, 2}
    paper = {(r.method, r.target) for r in committed if r.paper is not None}
    assert len(paper) == 6 * 8
    rows = {(r.method, r.protocol) for r in committed}
    assert len(committed) == 3 * len(rows) * 8
    assert len(rows) in (11, 12)


@pytest.mark.parametrize("method", [("DW", "as published"), *OURS])
def test_dw_beats_every_source_and_unif_on_the_mean_and_on_every_union(committed, method):
    rivals = [(name, "as published") for name in ("s", "m", "u", "unif")]
    for duel in duels(committed, method, rivals):
        assert duel.mean.verdict == "above", duel.sentence
        assert {*duel.on("level"), *duel.on("below")} <= set(DOMAINS), duel.sentence


@pytest.mark.parametrize("method", OURS)
@pytest.mark.parametrize("rival", ["DW", "joint"])
def test_beyond_is_not_worse_than_the_papers_way_nor_the_joint_network_on_the_mean(
    committed, method, rival
):
    (duel,) = duels(committed, method, [(rival, "as published")])
    assert duel.mean.verdict != "below", duel.sentence


def test_dw_is_level_with_the_joint_network_and_on_own_features_worse_than_it(committed):
    joint = [("joint", "as published")]
    (shared,) = duels(committed, ("DW", "as published"), joint)
    assert shared.mean.verdict == "level", shared.sentence
    (own,) = duels(committed, ("DW, own features", "as published"), joint)
    assert len(own.on("below")) == len(own.gains) == 7, own.sentence
    assert own.mean.verdict == "below", own.sentence
