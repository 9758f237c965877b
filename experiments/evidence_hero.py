"""The picture of the README: anymix, the plain average and a router against pooled rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.claims import LEVEL, Paired
from experiments.evidence_claims import by_split, paired, sets, shown
from experiments.runner import Result

# A few words on each data set for readers who know none of them.
KINDS = {
    "heart": "patients of 4 hospitals",
    "housing": "4 zones of California",
    "cars": "used cars of 9 makes",
    "airline": "tweets on 6 airlines",
    "reviews": "4 kinds of product",
    "office": "photos of 3 cameras",
    "surf": "photos of 4 cameras",
    "digits": "3 ways of writing",
}
RIVALS = {"uniform": ("plain average", "s", "#9a9a9a"), "router": ("router", "<", "#c9a227")}
OURS, POOLED, GREY = "#1b6ca8", "#222222", "#6b6b6b"
FURTHEST = 60.0
NOT_SIGNIFICANT = "not significant"
APART = "anymix, no rows pooled"
LABEL, LABEL_APART = "anymix, with two standard errors", "anymix, rows stay at the sites"


def draw_hero(results: Sequence[Result], path: Path) -> None:
    """Draw a line for each set: marks in per cent of the pooled model's loss, and the verdict."""
    from matplotlib.figure import Figure

    names = sets(results)
    figure = Figure(figsize=(9.6, 1.3 + 0.46 * len(names)), layout="constrained")
    axes = figure.subplots()
    for row, name in enumerate(names):
        _draw_set(axes, results, name, row)
    axes.axvline(0, color=POOLED, linewidth=1.2, zorder=1)
    axes.text(0, -0.75, "one model on all rows", ha="center", fontsize=9.5, color=POOLED)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(min(-30, axes.get_xlim()[0]), FURTHEST + 3)
    axes.set_yticks([])
    axes.set_xticks(range(-20, 61, 20), ["−20 %", "0", "+20 %", "+40 %", "+60 %"], color=GREY)
    axes.tick_params(axis="x", length=0)
    axes.set_xlabel(
        "loss on new rows, relative to one model trained on all rows in one place", color=GREY
    )
    axes.spines[:].set_visible(False)
    _legend(axes, figure)
    figure.savefig(path, dpi=120, metadata={"Software": None})


def verdict(found: Paired, unit: float) -> str:
    """Describe a difference in units of the pooled loss; within two errors it is not significant.

    >>> verdict(Paired(-0.2, 0.05), 100.0), verdict(Paired(0.01, 0.05), 100.0)
    ('20 % less', 'not significant')
    """
    if found.verdict == "level":
        return NOT_SIGNIFICANT
    word = "less" if found.verdict == "below" else "more"
    return f"{abs(unit * found.difference):.0f} % {word}"


def _draw_set(axes: Any, results: Sequence[Result], name: str, row: int) -> None:
    pooled = by_split(results, "Mean loss", "joint", name).values()
    unit = 100 * len(pooled) / sum(pooled)
    axes.axhline(row, color="#ececec", linewidth=1, zorder=0)
    for method, (label, mark, colour) in RIVALS.items():
        x = unit * paired(results, name, method, "joint").difference
        _draw_rival(axes, x, row, (label, mark, colour))
    ours = paired(results, name, "anymix", "joint")
    x, bar = unit * ours.difference, LEVEL * unit * ours.error
    axes.errorbar(x, row, xerr=bar, fmt="o", color=OURS, markersize=9, elinewidth=2.6, label=LABEL)
    if APART in shown(results, name):
        x = unit * paired(results, name, APART, "joint").difference
        axes.plot(
            x, row, "o", markersize=6, mfc="white", mec=OURS, mew=1.8, label=LABEL_APART, zorder=4
        )
    text = verdict(ours, unit)
    edge = axes.get_yaxis_transform()
    axes.text(-0.01, row - 0.1, name, transform=edge, ha="right", va="center", fontsize=10.5)
    kind = KINDS.get(name, "")
    axes.text(
        -0.01, row + 0.26, kind, transform=edge, ha="right", va="center", fontsize=8, color=GREY
    )
    weight = "normal" if text == NOT_SIGNIFICANT else "bold"
    axes.text(
        1.01, row, text, transform=edge, va="center", fontsize=10.5, color=OURS, weight=weight
    )


def _draw_rival(axes: Any, x: float, row: int, style: tuple[str, str, str]) -> None:
    """Draw a rival's mark; losses outside the axis are printed at its edge."""
    label, mark, colour = style
    if x <= FURTHEST:
        axes.plot(x, row, mark, color=colour, markersize=6.5, label=label, zorder=3)
        return
    # Two rivals may both be at the edge: print the average above the router.
    height = row + (0.17 if label == "router" else -0.17)
    axes.plot(FURTHEST + 2, height, ">", color=colour, markersize=5)
    axes.annotate(
        f"{label} +{x:.0f} %",
        (FURTHEST + 1, height),
        (-5, 0),
        textcoords="offset points",
        ha="right",
        va="center",
        fontsize=8,
        color=GREY,
    )


def _legend(axes: Any, figure: Any) -> None:
    handles, labels = axes.get_legend_handles_labels()
    first = dict(zip(labels, handles, strict=True))
    wanted = [LABEL, LABEL_APART, *(label for label, _, _ in RIVALS.values())]
    order = [label for label in wanted if label in first]
    figure.legend(
        [first[label] for label in order],
        order,
        loc="outside upper left",
        ncols=len(order),
        frameon=False,
        fontsize=10,
        handletextpad=0.3,
        columnspacing=1.6,
    )
