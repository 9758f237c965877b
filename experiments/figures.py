"""Pictures of studies; matplotlib is loaded when the first one is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from experiments.runner import Result
from experiments.synthetic import MixtureDomains


def _axes(title: str, xlabel: str, ylabel: str) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.6, 4.0), layout="constrained")
    axes = figure.subplots()
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)
    return figure, axes


def _legend(axes: Any) -> None:
    """Beside the picture, where it can hide nothing."""
    axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))


def draw_domains(domains: MixtureDomains, n: int, path: Path, seed: int = 0) -> None:
    """Draw n points of each domain of the plane: a colour per domain, a mark per class.

    Paper: Fig. 3.
    """
    figure, axes = _axes("Three domains, three classes", "x₁", "x₂")
    rng = np.random.default_rng(seed)
    for k, colour in enumerate(("#d1495b", "#3a9d5d", "#2a6fbb")):
        X, label = domains.sample(k, n, rng)
        for c, mark in enumerate("^so"):
            x = X[label == c]
            name = f"domain {k + 1}" if c == 0 else None
            axes.scatter(x[:, 0], x[:, 1], s=14, marker=mark, color=colour, alpha=0.6, label=name)
    _legend(axes)
    figure.savefig(path, dpi=110, metadata={"Software": None})


def curves(results: Sequence[Result]) -> list[str]:
    """Return the tables whose columns are all numbers, which are curves.

    >>> cells = [Result("s", "Fig. 1", "clean", "DW", x, "MSE", 0, 1.0) for x in ("0.0", "0.5")]
    >>> curves([*cells, Result("s", "Table 1", "clean", "DW", "K", "MSE", 0, 1.0)])
    ['Fig. 1']
    """
    named = {
        r.table for r in results if not r.target.replace(".", "", 1).replace("e-", "").isdigit()
    }
    return list(dict.fromkeys(r.table for r in results if r.table not in named))


def draw_curves(results: Sequence[Result], table: str, path: Path) -> None:
    """Draw a table of numbers: a line for each method, DW strong, privileged dotted.

    With both protocols in the records the clean one is drawn, and what goes beyond it.
    """
    here = [r for r in results if r.table == table]
    if any(r.protocol == "clean" for r in here):
        here = [r for r in here if r.protocol != "as published"]
    title, _, xlabel = table.partition(", ")
    figure, axes = _axes(f"{here[0].study}: {title}", xlabel, here[0].metric)
    for method in dict.fromkeys(r.method for r in here):
        cells: dict[float, list[float]] = {}
        for r in here:
            if r.method == method:
                cells.setdefault(float(r.target), []).append(r.value)
        strong = method.startswith("DW")
        privileged = any(r.privileged for r in here if r.method == method)
        axes.plot(
            list(cells),
            [mean(values) for values in cells.values()],
            linewidth=2.2 if strong else 1.4,
            linestyle="-" if strong else ":" if privileged else "--",
            label=method + ("*" if privileged else ""),
        )
    _scale(axes, [float(r.target) for r in here], [r.value for r in here])
    _legend(axes)
    figure.savefig(path, dpi=110, metadata={"Software": None})


def _scale(axes: Any, x: Sequence[float], y: Sequence[float]) -> None:
    """Take logarithms of an axis whose numbers span more than two decades."""
    if min(x) > 0 and max(x) > 15 * min(x):
        axes.set_xscale("log")
    positive = [value for value in y if value > 0]
    if min(y) >= 0 and positive and max(y) > 100 * min(positive):
        axes.set_yscale("log")
