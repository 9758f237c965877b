"""A hundred certificates against the truth: how far above it are they, and how often below?

Three clinics, each with a model of its own.  A hundred times 200 patients of each are drawn, one
model is learned from them, and certified by the same rows; as the world is made up, what the model
loses in truth is known.  With 95 % confidence about five of a hundred may be wrong.
"""

from pathlib import Path

import numpy as np
from drawing import BLUE, GREY, INK, ORANGE, new_figure, quiet, run, write
from matplotlib.axes import Axes

from anymix import DistributionWeightedRegressor, Source

CENTRES, SPREAD, NOISE = np.array([-2.0, 0.0, 2.0]), 1.0, 0.4


class Bell:
    """A density that everybody knows."""

    def __init__(self, centre: float):
        self.centre = centre

    def score_samples(self, X: np.ndarray) -> np.ndarray:
        """Return the logarithm of a normal density."""
        return -(((X[:, 0] - self.centre) / SPREAD) ** 2) / 2


class Line:
    """A clinic's own model: the tangent of the truth at home."""

    def __init__(self, centre: float):
        self.centre = centre

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return numbers on a line."""
        return np.sin(self.centre) + np.cos(self.centre) * (X[:, 0] - self.centre)


SOURCES = [Source(f"clinic {k + 1}", Line(c), Bell(c)) for k, c in enumerate(CENTRES)]


def draw(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw n patients of each clinic."""
    domain = np.repeat(np.arange(3), n)
    X = rng.normal(CENTRES[domain], SPREAD)[:, None]
    return X, np.sin(X[:, 0]) + NOISE * rng.normal(size=3 * n), domain


def one(n: int, seed: int, fresh: tuple[np.ndarray, ...]) -> tuple[float, float, float, float]:
    """Return the certified and the true regret, and the certified and the true loss."""
    X, y, domain = fresh
    model = DistributionWeightedRegressor.from_sources(SOURCES)
    found = model.fit(*draw(n, np.random.default_rng(seed))).certificate_
    losses = (model.predict(X) - y) ** 2
    own = (np.stack([s.predict(X) for s in SOURCES])[domain, np.arange(len(y))] - y) ** 2
    if found.clip is not None:
        losses, own = np.minimum(losses, found.clip), np.minimum(own, found.clip)
    worst = [values.reshape(3, -1).mean(axis=1).max() for values in (losses - own, losses)]
    return found.regret_upper, worst[0], found.loss_upper, worst[1]


def draw_half(axes: Axes, bound: np.ndarray, truth: np.ndarray, title: str, what: str) -> None:
    """Draw certificates from the lowest to the highest, each above its truth."""
    order = np.argsort(bound)
    bound, truth, place = bound[order], truth[order], np.arange(len(bound))
    wrong = bound < truth
    axes.vlines(place, truth, bound, color=GREY, linewidth=0.8)
    axes.plot(place, truth, ".", color=INK, markersize=4, label="in truth")
    axes.plot(place[~wrong], bound[~wrong], "_", color=BLUE, markersize=5, label="certified")
    axes.plot(place[wrong], bound[wrong], "x", color=ORANGE, markersize=7, label="wrong")
    quiet(axes, f"{title}: {int(wrong.sum())} of {len(bound)} wrong", "certificate", what)
    axes.legend(frameon=False, fontsize=8, loc="upper left")


def main(folder: str | Path = "examples-output", n: int = 200, runs: int = 100) -> Path:
    """Draw both halves of the certificates."""
    fresh = draw(20_000, np.random.default_rng(10**6))
    found = np.array([one(n, seed, fresh) for seed in range(runs)])
    figure = new_figure(f"{runs} certificates at 95 % confidence, {n} rows a clinic")
    left, right = figure.subplots(1, 2)
    draw_half(left, found[:, 0], found[:, 1], "more than the own model", "squared loss")
    draw_half(right, found[:, 2], found[:, 3], "in all", "squared loss")
    return write(figure, folder, "certificates")


if __name__ == "__main__":
    run(main)
