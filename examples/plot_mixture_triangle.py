"""Three organisations, every mixture: the loss of four methods over the triangle of mixtures.

Each corner is the traffic of one organisation alone, each point inside a mixture of the three.  The
loss on a mixture is Σ_k λ_k L_k, so the worst one is always a corner.  One organisation's model is
good at its own corner alone, the plain average nowhere, and one model trained on all rows is too
simple for all of them.  The distribution-weighted combination is good at every corner, and so
everywhere.  (The star: nobody may have all rows in one place.)
"""

from pathlib import Path
from typing import Any

import numpy as np
from drawing import INK, new_figure, run, write
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter
from matplotlib.tri import Triangulation, TriContourSet
from sklearn.linear_model import LogisticRegression

from anymix import DistributionWeightedClassifier, compare
from anymix.estimators import Joint, SingleSource, Uniform

NAMES = ("clinic", "phone", "shop")
LEVELS = np.linspace(0, 1, 21)
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])


def rows(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw n rows of each organisation: three classes around its own centre, turned its own way."""
    parts = []
    for centre, turn, spread in [((-2, 0), 0.0, 0.4), ((2, 0), 1.2, 0.55), ((0, 3), 2.6, 0.7)]:
        y = rng.integers(3, size=n)
        angle = 2 * np.pi * y / 3 + turn
        means = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        parts.append((centre + 1.2 * means + spread * rng.standard_normal((n, 2)), y))
    X, y = (np.concatenate(column) for column in zip(*parts, strict=True))
    return X, y, np.repeat(NAMES, n)


def fitted_models(X: np.ndarray, y: np.ndarray, domain: np.ndarray) -> dict[str, Any]:
    """Fit the rivals and the combination."""
    linear = LogisticRegression(max_iter=1000)
    models = {
        "clinic's own model": SingleSource(linear, "clinic"),
        "plain average": Uniform(linear),
        "one model, all rows*": Joint(linear),
        "distribution weighting": DistributionWeightedClassifier(linear, random_state=0),
    }
    return {name: model.fit(X, y, sample_domain=domain) for name, model in models.items()}


def draw_triangle(axes: Axes, name: str, at_corners: np.ndarray) -> TriContourSet:
    """Draw Σ_k λ_k L_k over the triangle, with the loss at each corner."""
    pairs = [(i, j) for i in range(41) for j in range(41 - i)]
    mixtures = np.array([(i, j, 40 - i - j) for i, j in pairs]) / 40
    places = Triangulation(*(mixtures @ CORNERS).T)
    patches = axes.tricontourf(places, mixtures @ at_corners, levels=LEVELS, cmap="cividis_r")
    axes.plot(*CORNERS[[0, 1, 2, 0]].T, color=INK, linewidth=1)
    for corner, place, loss in zip(NAMES, CORNERS, at_corners, strict=True):
        worst = loss == at_corners.max()
        top_corner = place[1] > 0.5
        axes.annotate(
            f"{corner}\n{100 * loss:.0f} %",
            place,
            (0, 6 if top_corner else -6),
            textcoords="offset points",
            ha="center",
            va="bottom" if top_corner else "top",
            fontsize=9,
            fontweight="bold" if worst else "normal",
        )
    axes.set_title(name, fontsize=10.5, pad=32, color=INK)
    axes.set_aspect("equal")
    axes.axis("off")
    return patches


def main(folder: str | Path = "examples-output", n: int = 300) -> Path:
    """Fit on n rows of each organisation, judge on 1000 new ones of each, draw."""
    rng = np.random.default_rng(0)
    models = fitted_models(*rows(n, rng))
    table = compare(models, *rows(1000, rng), measure="error_rate")
    losses = table.loss[:, : len(NAMES)]
    figure = new_figure("Wrong labels on every mixture of three organisations", 11.5, 3.7)
    panels = figure.subplots(1, len(models))
    for axes, name, at_corners in zip(panels, models, losses, strict=True):
        patches = draw_triangle(axes, name, at_corners)
    figure.colorbar(
        patches,
        ax=panels,
        shrink=0.75,
        ticks=LEVELS[::5],
        format=PercentFormatter(1, 0),
        label="wrong labels",
    )
    figure.supxlabel(
        "bold: the worst mixture, always a corner        *: needs all rows in one place",
        x=0.01,
        ha="left",
        fontsize=9,
    )
    return write(figure, folder, "mixture_triangle")


if __name__ == "__main__":
    run(main)
