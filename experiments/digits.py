"""Digits with the cross-entropy: SVHN, MNIST, USPS at full size, and their unions.

One network for each domain, trained on it alone, and a joint one; all images grey, 32 × 32.  The
density of a source is a kernel density of its own training rows, on the outputs of the second fully
connected layers of all three networks, side by side.  Densities can be compared only in one space,
and the networks go to every site anyway; rows do not.  On the layer of its own network alone, as
one may also read the paper, a density knows little of what the others' images look like: the row
"own features".  The 200 pairs of each domain that z is learned from are kept out of the training.

Trained networks are kept in the cache folder: a second run takes them from there.  `digits_small`
is the same study on part of the images and without networks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from anymix._arrays import FloatArray
from anymix.densities import DomainClassifier, GaussianKDE
from anymix.sources import Source
from experiments.fetch import cache_folder
from experiments.loaders import Features, Images, load_mnist, load_svhn, load_usps
from experiments.made_up import made_up_images
from experiments.networks import SIDE, WIDTHS, ConvNet, need_torch
from experiments.recognition import (
    Fitted,
    Method,
    Setting,
    as_published,
    ask,
    methods,
    records,
    take,
)
from experiments.runner import Progress, Result

STUDY = "digits"
DOMAINS = ("svhn", "mnist", "usps")
# Training and test images of the full sets.
SIZES = {"svhn": (73_257, 26_032), "mnist": (60_000, 10_000), "usps": (7_291, 2_007)}
# Pixels a side, and colours.
SHAPES = {"svhn": (32, 3), "mnist": (28, 1), "usps": (16, 1)}
TEST_SIZES = tuple(test for _, test in SIZES.values())
N_PAIRS = 200
# As many as keep the whole study well below two hours on two cores.
EPOCHS = {"svhn": 8, "mnist": 4, "usps": 20, "joint": 6}
# For each test image, densities and z take about as long as training on so many images.
ASKING = 20


def run(data: Path | None, seeds: Sequence[int], progress: Progress) -> Iterator[Result]:
    """Run the study on the images in the folder."""
    need_torch()
    loaders = (load_svhn, load_mnist, load_usps)
    found = zip(DOMAINS, loaders, strict=True)
    # No name here keeps the coloured images in memory while networks are trained on the grey ones.
    yield from study(
        {name: load(data) for name, load in found}, seeds, progress, cache_folder() / "networks"
    )


def rehearse(seeds: Sequence[int], progress: Progress) -> Iterator[Result]:
    """Run the study on made-up images, with networks that see them once."""
    once = dict.fromkeys(EPOCHS, 1)
    with TemporaryDirectory() as cache:
        yield from study(made_up_images(), seeds, progress, Path(cache), n_pairs=15, epochs=once)


def study(
    images: Mapping[str, Images],
    seeds: Sequence[int],
    progress: Progress,
    cache: Path,
    n_pairs: int = N_PAIRS,
    epochs: Mapping[str, int] = EPOCHS,
) -> Iterator[Result]:
    """Run the study on images in their published form, of which grey ones are made.

    Each seed draws the pairs for z and trains new networks.

    Paper: Table 3.
    """
    yield from sizes(STUDY, images)
    images = {name: _grey(found) for name, found in images.items()}
    train = _rows([(images[d].x_train, images[d].y_train) for d in DOMAINS])
    test = _rows([(images[d].x_test, images[d].y_test) for d in DOMAINS])
    setting = Setting(STUDY, "Table 3", DOMAINS, TEST_SIZES)
    meter = Meter(progress, len(seeds) * _cost(train, test, n_pairs, epochs))
    for seed in seeds:
        out = pairs(train.domain, n_pairs, seed)
        networks = {
            name: trained(ConvNet(epochs[name], random_state=seed), part, cache, meter, name)
            for name, part in _parts(take(train, ~out))
        }
        meter.what = f"seed {seed}, densities and z"
        meter(0)
        found = [*rows_of_the_table(setting, networks, train, out, test, seed)]
        yield from records(setting, found, test, seed)
        meter(ASKING * len(test.y))


def rows_of_the_table(
    setting: Setting,
    networks: Mapping[str, ConvNet],
    train: Features,
    out: NDArray[np.bool_],
    test: Features,
    seed: int,
) -> Iterator[Method]:
    """Yield the answers of all methods at the test rows; z is learned from the rows `out`.

    Paper: Sec. 5.2.
    """
    single = [networks[d] for d in DOMAINS]
    known, asked = (_described(single, rows) for rows in (train, test))
    rest, held = take(known, ~out), take(known, out)
    classes = single[0].classes_
    fitted = Fitted(sources(single, rest, seed), DomainClassifier().fit(rest.X, rest.domain))
    # The recorded run, an hour of networks, is older than consulting.
    found = ask(fitted, held, classes), ask(fitted, asked, classes)
    yield from methods(setting, fitted, *found, consult=False)
    alone = Fitted(sources(single, rest, seed, own=True), fitted.router)
    tables = (ask(alone, rows, classes).tables for rows in (held, asked))
    yield Method("DW, own features", "as published", as_published(*tables))
    pooled = networks["joint"].predict_proba(test.X)
    yield Method("joint", "as published", pooled, privileged=True)


def sources(
    networks: Sequence[ConvNet], rows: Features, seed: int, own: bool = False
) -> list[Source]:
    """Give each network a kernel density of its own rows, on the layers of all or on its own.

    Paper: Sec. 5.2.
    """
    found = []
    for k, (name, network) in enumerate(zip(DOMAINS, networks, strict=True)):
        block = FunctionTransformer(_block, kw_args={"k": k})
        kernel = GaussianKDE(random_state=seed)
        density = make_pipeline(block, kernel) if own else kernel
        predictor = partial(_score_block, network, k)
        density.fit(rows.X[rows.domain == k])
        found.append(Source(name, predictor, density, classes=network.classes_.tolist()))
    return found


def _described(networks: Sequence[ConvNet], rows: Features) -> Features:
    """Second fully connected layers of all networks, side by side, in place of the pixels."""
    return rows._replace(X=np.hstack([network.transform(rows.X) for network in networks]))


def _block(X: NDArray[Any], k: int) -> NDArray[Any]:
    """What the layer of network k says."""
    return X[:, k * WIDTHS[1] : (k + 1) * WIDTHS[1]]


def _score_block(network: ConvNet, k: int, X: NDArray[Any]) -> FloatArray:
    return network.score_features(_block(X, k))


def sizes(study: str, images: Mapping[str, Images]) -> Iterator[Result]:
    """Count images, pixels and colours.

    Paper: Table 2.
    """
    paper = {d: (*SIZES[d], *SHAPES[d]) for d in DOMAINS}
    counted = ("training images", "test images", "pixels a side", "colours")
    for i, name in enumerate(counted):
        for d in DOMAINS:
            x = images[d].x_train
            found = len(x), len(images[d].x_test), x.shape[1], x.shape[3] if x.ndim == 4 else 1
            cell = Result(study, "Sizes, Table 2", "clean", name, d, "counts", 0, found[i])
            yield replace(cell, paper=paper[d][i])


def pairs(domain: NDArray[np.intp], n: int, seed: int) -> NDArray[np.bool_]:
    """Draw n rows of each domain.

    >>> pairs(np.array([0, 0, 0, 1, 1]), 1, seed=0).sum()
    np.int64(2)
    """
    rng, chosen = np.random.default_rng(seed), np.zeros(len(domain), dtype=bool)
    for k in np.unique(domain):
        chosen[rng.choice(np.flatnonzero(domain == k), n, replace=False)] = True
    return chosen


class Meter:
    """Counts images trained on, and reports them in thousands, about a thousand times in all."""

    def __init__(self, progress: Progress, total: int) -> None:
        self.progress, self.total = progress, total
        self.done, self.what = 0, ""

    def __call__(self, n: int) -> None:
        """Count n images more."""
        self.done += n
        step = max(1, self.total // 1000)
        if n == 0 or self.done // step > (self.done - n) // step:
            self.progress(self.done // 1000, self.total // 1000, self.what)


def trained(network: ConvNet, rows: Features, cache: Path, meter: Meter, name: str) -> ConvNet:
    """Take the network from the cache, or train it and put it there."""
    path = cache / f"{name}-{network.fingerprint(rows.X, rows.y)}.npz"
    if path.exists():
        meter.total -= network.n_epochs * len(rows.y)
        return network.load(path)
    meter.what = f"seed {network.random_state}, network {name}"
    network.set_params(report=meter).fit(rows.X, rows.y).set_params(report=None)
    network.save(path)
    return network


def _cost(train: Features, test: Features, n_pairs: int, epochs: Mapping[str, int]) -> int:
    """What a seed takes, counted in images trained on."""
    sizes = np.bincount(train.domain) - n_pairs
    counts = zip(epochs.values(), (*sizes, sizes.sum()), strict=True)
    return int(sum(n * size for n, size in counts)) + ASKING * len(test.y)


def _parts(train: Features) -> Iterator[tuple[str, Features]]:
    """Rows of each network."""
    for k, name in enumerate(DOMAINS):
        yield name, take(train, train.domain == k)
    yield "joint", train


def _rows(parts: Sequence[tuple[NDArray[np.uint8], NDArray[np.intp]]]) -> Features:
    X = np.concatenate([x.reshape(len(x), -1) for x, _ in parts])
    y = np.concatenate([y for _, y in parts])
    return Features(X, y, np.repeat(np.arange(len(parts)), [len(y) for _, y in parts]))


def _grey(images: Images) -> Images:
    return images._replace(x_train=grey(images.x_train), x_test=grey(images.x_test))


def grey(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Images (n, height, width[, 3]) as grey (n, 32, 32), by cubic interpolation; needs Pillow."""
    from PIL import Image

    found = np.empty((len(images), SIDE, SIDE), dtype=np.uint8)
    for one, image in zip(found, images, strict=True):
        small = Image.fromarray(image).convert("L").resize((SIDE, SIDE), Image.Resampling.BICUBIC)
        one[:] = np.asarray(small)
    return found
