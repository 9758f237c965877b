"""Digits with the cross-entropy, small: SVHN, MNIST, USPS and their unions, without networks.

There are 6000 training and 2000 test images of each domain, grey, 32 × 32.  A shared, fixed
representation serves all: how steeply the image rises in each of eight directions, summed over
cells.  Nothing in it is learned, so the densities of all sources live in one space though no row
was pooled; the hidden layers of networks trained apart would not give that.  Predictors are
perceptrons with one hidden layer, of a few sizes the best on held-out training rows; densities take
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
from experiments.digits import DOMAINS, N_PAIRS, TEST_SIZES, pairs, sizes
from experiments.loaders import Features, Images, load_small_digits
from experiments.made_up import made_up_images
from experiments.recognition import Setting, ask, fit, joint, methods, records, take
from experiments.runner import Progress, Result
from experiments.slopes import coarsen, slopes

STUDY = "digits_small"


def run(data: Path | None, seeds: Sequence[int], progress: Progress) -> Iterator[Result]:
    """Run the study on the small sets in the folder."""
    yield from study(load_small_digits(data), seeds, progress)


def rehearse(seeds: Sequence[int], progress: Progress) -> Iterator[Result]:
    """Run the study on made-up images."""
    yield from study(made_up_images(), seeds, progress, n_pairs=15)


def study(
    images: Mapping[str, Images], seeds: Sequence[int], progress: Progress, n_pairs: int = N_PAIRS
) -> Iterator[Result]:
    """Run the study on images; a seed draws the pairs for z, the other rows are trained on.

    Paper: Table 3.
    """
    yield from sizes(STUDY, images)
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
    return Setting(STUDY, "Table 3", DOMAINS, TEST_SIZES, predictor, density(seed))


def density(seed: int) -> Pipeline:
    """A kernel density on features summed over 2 × 2 cells."""
    return make_pipeline(FunctionTransformer(coarsen), GaussianKDE(random_state=seed))


def _rows(parts: Sequence[tuple[NDArray[np.uint8], NDArray[np.intp]]]) -> Features:
    X = np.vstack([slopes(x) for x, _ in parts])
    y = np.concatenate([y for _, y in parts])
    return Features(X, y, np.repeat(np.arange(len(parts)), [len(y) for _, y in parts]))
