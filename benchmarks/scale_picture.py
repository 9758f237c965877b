"""Draw how time and memory grow with the rows: docs/images/scale.png.

python -m benchmarks.scale_picture [results/scale.json] [FILE]
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.scale import exponent

COLOURS = {"fit": "#0072b2", "predict": "#d55e00", "memory": "#777777"}
NAMES = {"fit": "fit from parts", "predict": "predict", "memory": "fit in memory"}
LIMIT = 2048


def drawn(axes: Any, rows: list[dict[str, Any]], of: str) -> None:
    """Draw a curve for each role; of time, with the power of m that it grows as."""
    for role, colour in COLOURS.items():
        some = [row for row in rows if role in row]
        m, values = [row["m"] for row in some], [row[role][of] for row in some]
        name = NAMES[role]
        if of == "cpu" and len(some) > 2:
            name += f": m to the power of {exponent(some, role):.2f}"
        axes.loglog(m, values, "o-", color=colour, ms=4, lw=1.4, label=name)


def main(record: str = "results/scale.json", path: str = "docs/images/scale.png") -> Path:
    """Draw both growth curves from what `benchmarks.scale` has measured."""
    rows = json.loads(Path(record).read_text("utf-8"))
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    drawn(left, rows, "cpu")
    drawn(right, rows, "peak")
    m = np.array([rows[0]["m"], rows[-1]["m"]])
    right.axhline(LIMIT, color="#222222", lw=0.8, ls=":")
    right.text(m[0], LIMIT * 1.06, "2 GB", va="bottom")
    left.set(xlabel="rows m", ylabel="seconds of the processor", title="Time")
    right.set(xlabel="rows m", ylabel="peak memory, MB", ylim=(100, 5000), title="Memory")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    left.legend(frameon=False)
    figure.savefig(path, dpi=130)
    return Path(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
