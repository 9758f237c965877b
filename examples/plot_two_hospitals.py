"""Two hospitals, one curve: the sources, the combination, and who counts where.

North sees the young, South the old.  Each fits a line to its own patients, and is wrong about the
other's.  The combination follows North among the young and South among the old, and the lower panel
shows the weights that make it do so.
"""

from pathlib import Path

import numpy as np
from drawing import BLUE, GREY, INK, ORANGE, legend_beside, new_figure, quiet, run, write
from matplotlib.axes import Axes

from anymix import DistributionWeightedRegressor

Patients = tuple[np.ndarray, np.ndarray, np.ndarray]
COLOURS = {"north": BLUE, "south": ORANGE}
CENTRES = {"north": 32.0, "south": 62.0}


def truth(age: np.ndarray) -> np.ndarray:
    """Return what both would like to know."""
    return 1.0 + 3.0 * np.exp(-((age - 48) ** 2) / 300)


def patients(n: int, rng: np.random.Generator) -> Patients:
    """Draw ages, outcomes and hospitals, n patients at each."""
    hospital = np.repeat(list(CENTRES), n)
    age = np.concatenate([rng.normal(centre, 7, n) for centre in CENTRES.values()])
    return age, truth(age) + rng.normal(0, 0.25, 2 * n), hospital


def draw_curves(
    axes: Axes, model: DistributionWeightedRegressor, data: Patients, grid: np.ndarray
) -> None:
    """Draw the patients, each hospital's line, the combination and the truth."""
    age, y, hospital = data
    for source in model.sources_:
        mine, colour = hospital == source.name, COLOURS[source.name]
        axes.scatter(age[mine], y[mine], s=7, color=colour, alpha=0.3, linewidths=0)
        line = source.predict(grid[:, None])
        axes.plot(grid, line, color=colour, linestyle="--", label=f"{source.name}'s own model")
    axes.plot(grid, truth(grid), color=GREY, linewidth=1.5, linestyle=":", label="truth")
    axes.plot(grid, model.predict(grid[:, None]), color=INK, linewidth=2.4, label="combination")
    axes.set_ylim(y.min() - 0.3, y.max() + 0.3)
    quiet(axes, model_sentence(model), ylabel="outcome")
    legend_beside(axes)


def model_sentence(model: DistributionWeightedRegressor) -> str:
    """Say what is certified, short enough for a title."""
    certificate = model.certificate_
    return (
        f"loss at home: north {certificate.own_losses[0]:.3f} → {certificate.source_losses[0]:.3f}"
        f", south {certificate.own_losses[1]:.3f} → {certificate.source_losses[1]:.3f}"
        f" (own model → combination)"
    )


def draw_weights(axes: Axes, model: DistributionWeightedRegressor, grid: np.ndarray) -> None:
    """Draw the weight of each hospital at each age."""
    weights = model.source_weights(grid[:, None])
    names = [str(name) for name in model.source_names_]
    axes.stackplot(
        grid, weights.T, colors=[COLOURS[name] for name in names], labels=names, alpha=0.75
    )
    axes.margins(x=0, y=0)
    axes.set_yticks([0, 0.5, 1])
    quiet(axes, "", "age", "weight")
    legend_beside(axes)


def main(folder: str | Path = "examples-output", n: int = 400) -> Path:
    """Fit on n patients of each hospital and draw."""
    data = patients(n, np.random.default_rng(1))
    age, y, hospital = data
    model = DistributionWeightedRegressor(random_state=0)
    model.fit(age[:, None], y, sample_domain=hospital)
    grid = np.linspace(12, 82, 300)
    figure = new_figure("Two hospitals, one curve", height=5.2)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    draw_curves(upper, model, data, grid)
    draw_weights(lower, model, grid)
    return write(figure, folder, "two_hospitals")


if __name__ == "__main__":
    run(main)
