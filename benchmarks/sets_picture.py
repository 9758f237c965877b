"""Draw intervals of a quiet and a noisy source, the plain way's and ours: docs/images/sets.png.

python -m benchmarks.sets_picture [FILE]
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.linear_model import Ridge

from anymix import DistributionWeightedRegressor

COLOURS = {"quiet": "#0072b2", "noisy": "#d55e00"}
PLACES = {"quiet": (0.02, "left"), "noisy": (0.98, "right")}


def rows(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw n rows of each source: |x|, with noise of 0.15 on the left and 0.8 on the right."""
    x = np.r_[rng.normal(-2, 0.9, n), rng.normal(2, 0.9, n)]
    noise = np.repeat([0.15, 0.8], n) * rng.standard_normal(2 * n)
    return x[:, None], np.abs(x) + noise, np.repeat(["quiet", "noisy"], n)


def main(path: str = "docs/images/sets.png") -> Path:
    """Fit, draw both intervals over x, and say what each covers on new rows."""
    rng = np.random.default_rng(0)
    X, y, domain = rows(300, rng)
    model = DistributionWeightedRegressor(Ridge(), random_state=0).fit(X, y, sample_domain=domain)
    # The plain way: one width for all, that of the source which needs most.
    errors = np.abs(model.held_out_.predictions - model.tables_.targets)
    half = max(np.sort(errors[model.tables_.sample_domain == k])[-30] for k in (0, 1))
    X, y, domain = rows(2000, rng)
    low, high = model.predict_interval(X).T
    ours, plain = (low <= y) & (y <= high), np.abs(y - model.predict(X)) <= half
    figure = Figure(figsize=(7.5, 3.8), layout="constrained")
    axes = figure.subplots()
    grid = np.linspace(-4.5, 4.5, 400)
    at = model.predict(grid[:, None])
    axes.fill_between(grid, at - half, at + half, color="#e8e8e8", lw=0)
    axes.plot(grid, model.predict_interval(grid[:, None]), color="#222222", lw=1.4)
    for name, colour in COLOURS.items():
        of = domain == name
        axes.plot(X[of][:250, 0], y[of][:250], ".", color=colour, ms=3)
        width = (high - low)[of].mean()
        text = f"{name}: covers {100 * ours[of].mean():.0f} % at a mean width of {width:.2f}\n"
        text += f"(grey: {100 * plain[of].mean():.0f} % at {2 * half:.2f})"
        x, side = PLACES[name]
        axes.text(x, 0.97, text, transform=axes.transAxes, ha=side, va="top", color=colour)
    axes.set(xlabel="x", ylabel="y", xlim=(-4.5, 4.5), ylim=(-2, 9))
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    return Path(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
