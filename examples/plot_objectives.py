"""Three objectives, one problem: who pays for what.

Four sources; the last is hard, overlaps with the third, and measures everything a little higher.
γ = 0, the paper's answer, equalises the losses of all sources that z listens to, so easy ones pay
for the hard one.  "robust" serves the worst source alone, at its neighbours' cost.  "regret" holds
every source as near as it can to the loss that its own model has at home.
"""

from pathlib import Path

import numpy as np
from drawing import BLUE, GREEN, INK, ORANGE, PALE, legend_beside, new_figure, quiet, run, write
from matplotlib.axes import Axes

from anymix.core import Objective, Problem, Solution, solve

STYLES: dict[Objective, tuple[str, str, str]] = {
    "gamma": ("γ = 0, the paper's", ORANGE, "s"),
    "robust": ("robust", GREEN, "^"),
    "regret": ("regret, the default", BLUE, "o"),
}
CENTRES = np.array([-2.5, -1.0, 1.2, 2.4])


def overlapping_sources(n: int, rng: np.random.Generator) -> Problem:
    """Fit a line to n rows of each source; the last is noisy and measures everything higher."""
    origin = np.repeat(np.arange(CENTRES.size), n)
    hard = origin == CENTRES.size - 1

    def draw() -> tuple[np.ndarray, np.ndarray]:
        x = rng.normal(CENTRES[origin], 1.0)
        noise = np.where(hard, 0.8, 0.3) * rng.standard_normal(x.size)
        return x, np.abs(x) + np.where(hard, 0.6, 0.0) + noise

    x, y = draw()
    lines = [np.polyfit(x[origin == k], y[origin == k], 1) for k in range(CENTRES.size)]
    x, y = draw()
    log_densities = -((x - CENTRES[:, None]) ** 2) / 2
    h = np.stack([np.polyval(line, x) for line in lines])
    return Problem.from_log_densities(log_densities, h, y, sample_domain=origin)


def draw_losses(axes: Axes, problem: Problem, solutions: dict[Objective, Solution]) -> None:
    """Draw each source's loss under each objective beside the loss of its own model."""
    place = np.arange(problem.n_sources)
    for k, own in enumerate(problem.own_losses):
        axes.axvspan(k - 0.4, k + 0.4, color=PALE, alpha=0.5, linewidth=0)
        axes.plot([k - 0.4, k + 0.4], [own, own], color=INK, linewidth=2)
    axes.plot([], [], color=INK, linewidth=2, label="own model at home")
    for offset, (objective, found) in zip((-0.2, 0.0, 0.2), solutions.items(), strict=True):
        name, colour, marker = STYLES[objective]
        label = f"{name}\n   worst {found.robust_loss:.2f}, regret {found.regret:+.2f}"
        axes.plot(
            place + offset, found.source_losses, marker, color=colour, markersize=8, label=label
        )
    axes.set_xticks(place, [f"source {k + 1}" for k in place])
    axes.tick_params(axis="x", length=0)
    axes.set_ylim(0, None)
    quiet(axes, "loss on each source", ylabel="squared loss")
    legend_beside(axes)


def main(folder: str | Path = "examples-output", n: int = 2000) -> Path:
    """Solve one problem three times and draw."""
    problem = overlapping_sources(n, np.random.default_rng(0))
    solutions = {objective: solve(problem, objective) for objective in STYLES}
    figure = new_figure("Three objectives, one problem: who pays for what")
    draw_losses(figure.subplots(), problem, solutions)
    return write(figure, folder, "objectives")


if __name__ == "__main__":
    run(main)
