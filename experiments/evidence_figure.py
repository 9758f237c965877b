"""The picture of the evidence: losses relative to one model trained on all rows pooled."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.claims import LEVEL
from experiments.evidence_claims import by_split, paired, sets, shown
from experiments.runner import Result

# Marks and colours differ in print, too; those of anymix stand out.
APART = "anymix, no rows pooled"
STYLES: dict[str, tuple[str, str]] = {
    "own": ("|", "#222222"),
    "uniform": ("v", "#9a9a9a"),
    "router": ("<", "#c9a227"),
    "stacking": ("^", "#5a8f5a"),
    "group DRO": ("s", "#8e6bbf"),
    "best pooled": ("P", "#444444"),
    "DW": ("D", "#e07b39"),
    APART: ("o", "#1b6ca8"),
    "anymix": ("o", "#1b6ca8"),
}
# Losses beyond are drawn at the edge, with an arrow: they would leave no room for the others.
FURTHEST = 60.0


def draw_evidence(results: Sequence[Result], path: Path) -> None:
    """Draw a row for each set, a mark for each method, and bars of two standard errors."""
    from matplotlib.figure import Figure

    names = sets(results)
    figure = Figure(figsize=(8.6, 1.4 + 1.0 * len(names)), layout="constrained")
    axes = figure.subplots()
    for i, name in enumerate(names):
        if i % 2:
            axes.axhspan(i - 0.5, i + 0.5, color="#f5f5f5", linewidth=0)
        _draw_set(axes, results, name, i)
    axes.axvline(0, color="#222222", linewidth=1)
    axes.text(0, -0.53, "joint*", ha="center", va="bottom", fontsize=9)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(None, FURTHEST + 4)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("mean test loss, per cent above (+) or below (−) one model of all rows pooled")
    axes.spines[["top", "right", "left"]].set_visible(False)
    handles, labels = axes.get_legend_handles_labels()
    first = dict(zip(labels, handles, strict=True))
    figure.legend(
        [first[label] for label in first],
        list(first),
        loc="outside upper left",
        ncols=-(-len(first) // 2),
        frameon=False,
        fontsize=9,
        columnspacing=1.2,
        handletextpad=0.3,
    )
    figure.savefig(path, dpi=110, metadata={"Software": None})


def _draw_set(axes: Any, results: Sequence[Result], name: str, row: int) -> None:
    pooled = by_split(results, "Mean loss", "joint", name).values()
    unit = 100 * len(pooled) / sum(pooled)
    drawn = [m for m in STYLES if m in shown(results, name)]
    for j, method in enumerate(drawn):
        mark, colour = STYLES[method]
        found = paired(results, name, method, "joint")
        height = row + 0.72 * ((j + 0.5) / len(drawn) - 0.5)
        privileged = shown(results, name)[method]
        label = method + ("*" if privileged else "")
        x, bar = unit * found.difference, LEVEL * unit * found.error
        if x > FURTHEST:
            axes.plot(FURTHEST, height, ">", color=colour, markersize=5)
            axes.annotate(
                f"{label} +{x:.0f} %",
                (FURTHEST, height),
                (-7, 0),
                textcoords="offset points",
                fontsize=7,
                color=colour,
                ha="right",
                va="center",
            )
            # For the legend.
            x, bar = float("nan"), 0.0
        axes.errorbar(
            x,
            height,
            xerr=bar,
            fmt=mark,
            color=colour,
            markersize=8 if method == "anymix" else 5.5,
            markerfacecolor="white" if method == APART else colour,
            elinewidth=2 if method == "anymix" else 1,
            label=label,
        )
