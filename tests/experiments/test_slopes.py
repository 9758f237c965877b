import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from experiments.slopes import coarsen, slopes


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
