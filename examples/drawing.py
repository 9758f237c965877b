"""What all pictures share: colours for colour-blind readers too, quiet axes, a folder."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

# Okabe and Ito's palette, without the yellow that white paper swallows.
BLUE, ORANGE, GREEN, PURPLE = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
INK, GREY, PALE = "#222222", "#7f7f7f", "#e8e8e8"


def new_figure(title: str, width: float = 9.0, height: float = 4.2) -> Figure:
    """Return an empty figure whose title says what the picture shows."""
    layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.08)
    figure = Figure(figsize=(width, height), layout=layout)
    figure.suptitle(title, x=0.01, ha="left", fontsize=13, color=INK)
    return figure


def quiet(axes: Any, title: str = "", xlabel: str = "", ylabel: str = "") -> None:
    """Label the axes and take away what carries no information."""
    axes.set_title(title, loc="left", fontsize=10.5, color=INK)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=PALE, linewidth=0.8)
    axes.set_axisbelow(True)


def legend_beside(axes: Any) -> None:
    """Put the legend to the right of the axes, where it hides nothing."""
    axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))


def write(figure: Figure, folder: str | Path, name: str) -> Path:
    """Write the picture and return its path."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    path = Path(folder) / f"{name}.png"
    figure.savefig(path, dpi=130)
    return path


def run(main: Callable[..., Path]) -> None:
    """Draw into the folder that the command line names, and say where the picture is."""
    sys.stdout.write(f"wrote {main(*sys.argv[1:2])}\n")
