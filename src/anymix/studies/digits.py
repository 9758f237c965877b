"""Digits with the cross-entropy, small: SVHN, MNIST, USPS and their unions, without networks.

Of each domain 6000 training and 2000 test images are taken, grey, 32 × 32.  A shared, fixed
representation serves all: how steeply the image rises in each of eight directions, summed over
cells.  Nothing in it is learned, so the densities of all sources live in one space though no row
was pooled; the hidden layers of networks trained apart would not give that.  Predictors are
perceptrons with one hidden layer, of a few sizes the best on training rows held out; densities take
the same features over coarser cells.

Unions are weighed by the sizes of the full test sets, of which the test rows are a random part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from anymix.densities import GaussianKDE
from anymix.studies.frame import Progress, Result
from anymix.studies.loaders import Features, Images, load_small_digits
from anymix.studies.recognition import Setting, ask, fit, joint, methods, records, take

DOMAINS = ("svhn", "mnist", "usps")
# Training and test images of the full sets.
SIZES = {"svhn": (73_257, 26_032), "mnist": (60_000, 10_000), "usps": (7_291, 2_007)}
N_PAIRS = 200
N_DIRECTIONS = 8
CELL = 4

Array = NDArray[np.float32]


def run(data: Path | None, seeds: Sequence[int], progress: Progress) -> Iterator[Result]:
    """Run the study on the small sets in the folder."""
    yield from study(load_small_digits(data), seeds, progress)


def study(
    images: Mapping[str, Images], seeds: Sequence[int], progress: Progress, n_pairs: int = N_PAIRS
) -> Iterator[Result]:
    """Run the study on images; a seed draws the pairs for z, the other rows are trained on.

    Paper: Table 3.
    """
    yield from sizes(images)
    train = _rows([(images[d].x_train, images[d].y_train) for d in DOMAINS])
    test = _rows([(images[d].x_test, images[d].y_test) for d in DOMAINS])
    classes = np.unique(train.y)
    for i, seed in enumerate(seeds):
        out = pairs(train.domain, n_pairs, seed)
        rest, setting = take(train, ~out), recipe(seed)
        fitted = fit(setting, rest)
        held, found = (ask(fitted, rows, classes) for rows in (take(train, out), test))
        rows = [*methods(setting, fitted, held, found), joint(setting, rest, test)]
        yield from records(setting, rows, test, seed)
        progress(i + 1, len(seeds), f"seed {seed}")


def sizes(images: Mapping[str, Images]) -> Iterator[Result]:
    """Count the images, with the sizes of the full sets beside.

    Paper: Table 2.
    """
    for d in DOMAINS:
        found = len(images[d].y_train), len(images[d].y_test)
        for part, n, full in zip(("training", "test"), found, SIZES[d], strict=True):
            yield Result(
                "digits_small", "Sizes, Table 2", "clean", part, d, "images", 0, n, paper=full
            )


def recipe(seed: int) -> Setting:
    """What each source is made of.

    Paper: Sec. 5.2.
    """
    predictor = MLPClassifier(
        (128,),
        alpha=1e-3,
        learning_rate_init=0.005,
        early_stopping=True,
        n_iter_no_change=5,
        random_state=seed,
    )
    tested = tuple(SIZES[d][1] for d in DOMAINS)
    return Setting("digits_small", "Table 3", DOMAINS, tested, predictor, density(seed))


def density(seed: int) -> Pipeline:
    """A kernel density on features summed over 2 × 2 cells."""
    return make_pipeline(FunctionTransformer(coarsen), GaussianKDE(random_state=seed))


def pairs(domain: NDArray[np.intp], n: int, seed: int) -> NDArray[np.bool_]:
    """Draw n rows of each domain.

    >>> pairs(np.array([0, 0, 0, 1, 1]), 1, seed=0).sum()
    np.int64(2)
    """
    rng, chosen = np.random.default_rng(seed), np.zeros(len(domain), dtype=bool)
    for k in np.unique(domain):
        chosen[rng.choice(np.flatnonzero(domain == k), n, replace=False)] = True
    return chosen


def _rows(parts: Sequence[tuple[NDArray[np.uint8], NDArray[np.intp]]]) -> Features:
    X = np.vstack([slopes(x) for x, _ in parts])
    y = np.concatenate([y for _, y in parts])
    return Features(X, y, np.repeat(np.arange(len(parts)), [len(y) for _, y in parts]))


def slopes(images: NDArray[np.uint8]) -> Array:
    """Features (n, cells · cells · directions) of images (n, side, side), of length 1 each.

    Square root of the sum over a cell of |g| max(0, cos(g, θ))⁴, with g the slope at a pixel, for
    each direction θ: a histogram of slopes with soft bins.

    >>> slopes(np.tile(np.arange(8, dtype=np.uint8), (1, 8, 1))).round(2)[0, :8]
    array([0.41, 0.2 , 0.  , 0.  , 0.  , 0.  , 0.  , 0.2 ], dtype=float32)
    """
    n, side, _ = images.shape
    cells = side // CELL
    found = np.empty((n, cells, cells, N_DIRECTIONS), dtype=np.float32)
    angles = 2 * np.pi * np.arange(N_DIRECTIONS) / N_DIRECTIONS
    # Blocks stay in the cache.
    for block in (slice(start, start + 100) for start in range(0, n, 100)):
        dy, dx = np.gradient(images[block].astype(np.float32), axis=(1, 2))
        length = np.hypot(dx, dy).clip(1e-6)
        for j, angle in enumerate(angles):
            cosine = (dx * np.float32(np.cos(angle)) + dy * np.float32(np.sin(angle))) / length
            part = length * np.maximum(cosine, 0) ** 4
            found[block, ..., j] = part.reshape(-1, cells, CELL, cells, CELL).sum(axis=(2, 4))
    features = np.sqrt(found).reshape(n, -1)
    return np.asarray(features / np.linalg.norm(features, axis=1, keepdims=True).clip(1e-6))


def coarsen(features: Array) -> Array:
    """Sum features over 2 × 2 cells, (n, 4 d) to (n, d).

    >>> coarsen(np.ones((1, 32), dtype=np.float32))
    array([[4., 4., 4., 4., 4., 4., 4., 4.]], dtype=float32)
    """
    half = int(np.sqrt(features.shape[1] / N_DIRECTIONS)) // 2
    cells = features.reshape(-1, half, 2, half, 2, N_DIRECTIONS)
    return np.asarray(cells.sum(axis=(2, 4)).reshape(len(features), -1))
