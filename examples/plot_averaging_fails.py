"""Averaging fails, distribution weighting does not: the problem of Lemma 7, drawn.

Two places, a and b.  Source 0 lives at a, where every outcome is 0, and always predicts 0.  Source
1 lives at b, where every outcome is 1, and always predicts 1.  Both are perfect at home.  Every
average of the two pays at least 1/4 on the even mixture; weighing each by its density pays nothing.
"""

from pathlib import Path

import numpy as np
from drawing import BLUE, GREY, INK, ORANGE, PURPLE, legend_beside, new_figure, quiet, run, write
from matplotlib.axes import Axes

from anymix.core import Problem

TARGETS = np.array([0.0, 1.0])
PREDICTIONS = np.array([[0.0, 0.0], [1.0, 1.0]])
PROBLEM = Problem(np.eye(2), PREDICTIONS, TARGETS, loss="squared", eta=1e-3)


def losses_of_average(alpha: float) -> np.ndarray:
    """Return the loss of (1 − α) h_0 + α h_1 at home of each source."""
    average = (1 - alpha) * PREDICTIONS[0] + alpha * PREDICTIONS[1]
    return PROBLEM.masses @ (average - TARGETS) ** 2


def draw_weights(axes: Axes, shares: np.ndarray) -> None:
    """Draw the loss on the even mixture for every weight that one could choose."""
    even = np.array([0.5, 0.5])
    average = [even @ losses_of_average(a) for a in shares]
    weighted = [even @ PROBLEM.source_losses([1 - a, a]) for a in shares]
    axes.plot(shares, average, color=ORANGE, linewidth=2.2)
    axes.plot(shares[1:-1], weighted[1:-1], color=BLUE, linewidth=2.6)
    axes.axhline(0.25, color=GREY, linewidth=1, linestyle=":")
    axes.annotate(
        "no average is below 1/4", (0.5, 0.25), (0.5, 0.19), ha="center", color=ORANGE, fontsize=9
    )
    axes.annotate("distribution weighting", (0.5, 0), (0.5, 0.03), ha="center", color=BLUE)
    axes.annotate("average", (0.9, average[90]), (0.86, 0.42), ha="right", color=ORANGE)
    quiet(axes, "on the even mixture, for each weight", "weight of source 1", "squared loss")


def draw_mixtures(axes: Axes, shares: np.ndarray) -> None:
    """Draw the loss of each method as the traffic moves from source 0 to source 1."""
    mixtures = np.stack([1 - shares, shares], axis=1)
    rows = {
        "source 0": (losses_of_average(0.0), PURPLE, "--"),
        "source 1": (losses_of_average(1.0), GREY, "--"),
        "even average": (losses_of_average(0.5), ORANGE, "-"),
    }
    for name, (losses, colour, style) in rows.items():
        axes.plot(shares, mixtures @ losses, color=colour, linestyle=style, label=name)
    informed = [lam @ losses_of_average(share) for lam, share in zip(mixtures, shares, strict=True)]
    axes.plot(shares, informed, color=INK, linestyle=":", label="average that\nknows the mixture")
    weighted = mixtures @ PROBLEM.source_losses([0.5, 0.5])
    axes.plot(shares, weighted, color=BLUE, linewidth=2.6, label="distribution\nweighting")
    quiet(axes, "on each mixture", "share of source 1 in the traffic")
    legend_beside(axes)


def main(folder: str | Path = "examples-output") -> Path:
    """Draw both panels."""
    figure = new_figure("Two sources, each perfect at home: every average fails")
    left, right = figure.subplots(1, 2)
    shares = np.linspace(0, 1, 101)
    draw_weights(left, shares)
    draw_mixtures(right, shares)
    return write(figure, folder, "averaging_fails")


if __name__ == "__main__":
    run(main)
