"""Half a year of traffic: which mixture is it, and when does it stop being one?

Three warehouses trained models.  Their shares in the traffic drift from week to week; in the last
weeks a fourth, which nobody has trained on, comes in.  No label is used: the monitor sees rows
only.  The upper panel shows the estimated shares with their intervals beside the true ones, the
lower panel the p-value of "this is a mixture of the sources", and when the alarm rings.
"""

from pathlib import Path

import numpy as np
from drawing import BLUE, GREEN, GREY, INK, ORANGE, legend_beside, new_figure, quiet, run, write
from matplotlib.axes import Axes

from anymix import DistributionWeightedRegressor
from anymix.monitor import Monitor, TrafficReport

NAMES = ("east", "north", "west")
COLOURS = (BLUE, ORANGE, GREEN)
CENTRES = np.array([[0.0, 0.0], [2.2, 0.5], [0.8, 2.4], [-2.0, 2.5]])


def rows(origin: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw one row and its outcome from each origin."""
    X = CENTRES[origin] + 0.7 * rng.standard_normal((origin.size, 2))
    return X, np.sin(X[:, 0]) + X[:, 1] ** 2 / 4 + 0.1 * rng.standard_normal(origin.size)


def true_shares(weeks: int, weeks_with_new: int) -> np.ndarray:
    """Return the shares of the three sources and of the new one in each week: (weeks, 4)."""
    t = np.linspace(0, 1, weeks)
    known = np.stack([0.7 - 0.5 * t, 0.1 + 0.5 * t, np.full(weeks, 0.2)], axis=1)
    new = np.where(np.arange(weeks) >= weeks - weeks_with_new, 0.2, 0.0)
    return np.column_stack([known * (1 - new)[:, None], new])


def watched(n: int, rng: np.random.Generator) -> Monitor:
    """Fit a model on n rows of each warehouse, and watch it with n held-out rows of each."""
    origin = np.repeat([0, 1, 2], n)
    X, y = rows(origin, rng)
    domain = np.asarray(NAMES)[origin]
    model = DistributionWeightedRegressor(random_state=0).fit(X, y, sample_domain=domain)
    return Monitor(model, rows(origin, rng)[0], domain)


def draw_shares(
    axes: Axes, truth: np.ndarray, reports: list[TrafficReport], first_new: int
) -> None:
    """Draw the estimated shares with intervals, and the true ones."""
    week = np.arange(1, len(reports) + 1)
    for k, (name, colour) in enumerate(zip(NAMES, COLOURS, strict=True)):
        estimates = [report.estimate for report in reports]
        lower, upper = ([getattr(e, end)[k] for e in estimates] for end in ("lower", "upper"))
        axes.fill_between(week, lower, upper, color=colour, alpha=0.2, linewidth=0)
        share = [e.mixture[k] for e in estimates]
        axes.plot(week, share, "o-", color=colour, markersize=3.5, linewidth=1, label=name)
        axes.plot(week, truth[:, k], color=colour, linestyle=":", linewidth=1.8)
    axes.plot([], [], color=INK, linestyle=":", linewidth=1.8, label="true share")
    axes.axvspan(first_new + 0.5, len(reports) + 0.5, color=GREY, alpha=0.12, linewidth=0)
    axes.set_ylim(0, 1)
    quiet(axes, "shares in the traffic, with 95 % intervals", ylabel="share")
    legend_beside(axes)


def draw_alarm(axes: Axes, reports: list[TrafficReport], first_new: int) -> None:
    """Draw the p-value of each week and mark the weeks in which the alarm rings."""
    week = np.arange(1, len(reports) + 1)
    p_value = np.array([report.alarm.p_value for report in reports])
    rings = np.array([report.alarm.rings for report in reports])
    axes.semilogy(week[~rings], p_value[~rings], "o", color=INK, markersize=4, label="quiet")
    axes.semilogy(week[rings], p_value[rings], "X", color=ORANGE, markersize=7, label="alarm rings")
    axes.axhline(reports[0].alarm.level, color=GREY, linestyle="--", linewidth=1, label="level")
    axes.axvspan(
        first_new + 0.5,
        len(reports) + 0.5,
        color=GREY,
        alpha=0.12,
        linewidth=0,
        label="a fourth warehouse,\n20 % of the rows",
    )
    axes.set_ylim(1e-3, 2)
    axes.set_xlim(0.5, len(reports) + 0.5)
    quiet(axes, "is it a mixture of the three at all?", "week", "p-value")
    legend_beside(axes)


def main(
    folder: str | Path = "examples-output", n: int = 400, weeks: int = 26, n_week: int = 400
) -> Path:
    """Fit once, look at every week, draw."""
    rng, weeks_with_new = np.random.default_rng(0), max(1, weeks // 5)
    monitor, truth = watched(n, rng), true_shares(weeks, weeks_with_new)
    traffic = [rows(rng.choice(4, n_week, p=share), rng)[0] for share in truth]
    reports = [monitor.estimate(X, rng) for X in traffic]
    figure = new_figure("Half a year of traffic, without labels", height=5.6)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    draw_shares(upper, truth, reports, weeks - weeks_with_new)
    draw_alarm(lower, reports, weeks - weeks_with_new)
    return write(figure, folder, "drift")


if __name__ == "__main__":
    run(main)
