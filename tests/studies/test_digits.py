from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recognition_cases import made_up_images

from anymix.studies.claims import column_means, duels
from anymix.studies.digits import DOMAINS, coarsen, pairs, slopes, study
from anymix.studies.frame import quiet, read_records
from anymix.studies.loaders import Images, load_small_digits

RECORDS = Path(__file__).parents[2] / "results" / "digits_small.jsonl"
SINGLE = {("Table 3", name) for name in DOMAINS}
RIVALS = [(name, "as published") for name in ("s", "m", "u", "unif", "joint")]


def draw(seed, n=3, side=8, high=120):
    return np.random.default_rng(seed).integers(0, high, (n, side, side), dtype=np.uint8)


def test_slopes_are_a_sum_over_pixels():
    image = draw(0, n=1)[0]
    found = np.zeros((2, 2, 8))
    dy, dx = np.gradient(image.astype(float))
    for r, c, j in np.ndindex(8, 8, 8):
        g = np.hypot(dx[r, c], dy[r, c])
        cosine = np.cos(np.arctan2(dy[r, c], dx[r, c]) - 2 * np.pi * j / 8)
        found[r // 4, c // 4, j] += g * max(0.0, cosine) ** 4
    wanted = np.sqrt(found).ravel() / np.sqrt(found.sum())
    np.testing.assert_allclose(slopes(image[None])[0], wanted, atol=1e-5)


@given(st.integers(0, 10_000), st.integers(0, 15))
def test_slopes_have_length_one_and_know_neither_light_nor_contrast(seed, light):
    image = draw(seed)
    features = slopes(image)
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(slopes(2 * image + np.uint8(light)), features, atol=1e-5)


@given(st.integers(0, 10_000))
def test_a_mirror_turns_the_directions_and_swaps_the_cells(seed):
    image = draw(seed, n=1)
    there = slopes(image).reshape(2, 2, 8)
    back = slopes(image[:, :, ::-1]).reshape(2, 2, 8)[:, ::-1, (4 - np.arange(8)) % 8]
    np.testing.assert_allclose(there, back, atol=1e-5)


def test_an_even_image_has_no_slope_and_does_no_harm():
    assert not slopes(np.full((1, 8, 8), 7, dtype=np.uint8)).any()


def test_coarse_cells_hold_what_their_cells_held():
    features = slopes(draw(1, side=16))
    np.testing.assert_allclose(
        coarsen(features).reshape(3, 4, 8).sum(axis=1),
        features.reshape(3, 16, 8).sum(axis=1),
        rtol=1e-5,
    )
    top_left = features.reshape(3, 4, 4, 8)[:, :2, :2].sum(axis=(1, 2))
    np.testing.assert_allclose(coarsen(features)[:, :8], top_left, rtol=1e-5)


def test_pairs_are_drawn_alike_from_each_domain_and_anew_for_each_seed():
    domain = np.repeat([0, 1, 2], [30, 20, 10])
    one, two = pairs(domain, 5, 0), pairs(domain, 5, 1)
    assert np.bincount(domain[one]).tolist() == [5, 5, 5]
    assert not np.array_equal(one, two)


def test_the_study_on_made_up_images():
    images = made_up_images()
    results = list(study(images, [1], quiet, n_pairs=20))
    assert results == list(study(images, [1], quiet, n_pairs=20))
    sizes = [r for r in results if r.table == "Sizes, Table 2"]
    assert [r.value for r in sizes] == [80, 30] * 3
    assert [r.paper for r in sizes] == [73_257, 26_032, 60_000, 10_000, 7_291, 2_007]
    assert len(results) == 6 + 10 * 8
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
def test_dw_beats_every_source_and_unif_on_all_mixtures_and_joint_on_the_mean(committed, method):
    mine = [r for r in committed if r.table == "Table 3"]
    for duel in duels(mine, method, RIVALS, larger_is_better=True):
        assert duel.difference > 0, duel.sentence
        if not duel.rival.startswith("joint"):
            assert set(duel.lost) <= SINGLE, duel.sentence


def test_beyond_is_not_worse_than_the_papers_way_on_the_mean(committed):
    ways = [("DW", "as published"), ("DW", "clean"), ("DW, calibrated", "beyond")]
    published, clean, beyond = (column_means(committed, *w)["Table 3", "mean"] for w in ways)
    assert beyond >= max(published, clean)


def test_the_records_are_of_three_draws(committed):
    assert {r.seed for r in committed} == {0, 1, 2}
    assert len(committed) == 6 + 3 * 10 * 8
