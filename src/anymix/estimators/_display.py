"""Results as DataFrames and pictures; pandas and matplotlib are loaded when first needed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from anymix._arrays import FloatArray
from anymix.core import unit_of
from anymix.exceptions import InputError, not_installed


def load_pandas() -> Any:
    """Return pandas, or say what brings it."""
    try:
        import pandas
    except ImportError as error:
        raise not_installed("pandas", "notebook") from error
    return pandas


def index_of(rows: Any) -> Any:
    """Return the labels of rows that have some, else None; a list's `index` is a method.

    >>> index_of([[1.0]]) is None
    True
    """
    index = getattr(rows, "index", None)
    return None if callable(index) else index


def labelled(weights: FloatArray, X: Any, sources: Iterable[Any]) -> Any:
    """Put weights (n, p) into a DataFrame with the index of X and a column for each source."""
    pandas = load_pandas()
    columns = pandas.Index(list(sources), name="source")
    return pandas.DataFrame(weights, index=index_of(X), columns=columns)


def comparison_frame(comparison: Any, intervals: bool) -> Any:
    """Return the table of a comparison, methods by mixtures; see `Comparison.to_frame`."""
    pandas = load_pandas()
    parts = {"estimate": comparison.loss}
    if intervals:
        parts |= {"lower": comparison.lower, "upper": comparison.upper}
    columns = [(mixture, part) for mixture in comparison.mixtures for part in parts]
    # By mixture, then by part, as the columns are.
    values = np.stack(list(parts.values()), axis=2).reshape(len(comparison.methods), -1)
    columns, values = [*columns, ("worst", "estimate")], np.column_stack([values, comparison.worst])
    levels = ["mixture", "value"]
    frame = pandas.DataFrame(
        values,
        index=pandas.Index(list(comparison.methods), name="method"),
        columns=pandas.MultiIndex.from_tuples(columns, names=levels),
    )
    if not intervals:
        frame = frame.droplevel("value", axis=1)
    frame.attrs.update(about(comparison))
    return frame


def about(comparison: Any) -> dict[str, Any]:
    """What the numbers of a comparison are: their unit, which are better, who is privileged."""
    named = zip(comparison.methods, comparison.privileged, strict=True)
    return {
        "measure": comparison.measure,
        "unit": unit_of(comparison.measure).head,
        "better": "higher" if comparison.higher_is_better else "smaller",
        "privileged": [method for method, starred in named if starred],
        "worst_mixture": dict(zip(comparison.methods, comparison.worst_mixture, strict=True)),
    }


def caption(comparison: Any) -> str:
    """Name the unit, and which numbers are better."""
    unit = unit_of(comparison.measure)
    return f"{unit.head}, {unit.direction}"


# Height of a row of a picture, and room for the axis and what is above, in inches.
ROW, MARGIN, WIDTH = 0.32, 0.9, 6.4
# Rows are put into so many parts of equal size along a column, where others blur the picture.
N_BINS = 30
STARRED = "* uses what the others must do without"


def axes_of(ax: Any, height: float) -> Any:
    """Return the given axes, or new ones of that height."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise not_installed("matplotlib", "plot") from error
    if ax is not None:
        return ax
    return pyplot.subplots(figsize=(WIDTH, height), layout="constrained")[1]


def _legend(ax: Any, title: str) -> None:
    """Beside the picture, where it can hide nothing."""
    ax.legend(title=title, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _tidy(ax: Any) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_axisbelow(True)


def plot_comparison(comparison: Any, ax: Any, mixtures: Sequence[str] | None) -> Any:
    """Draw a dot and an interval for each method and mixture; see `Comparison.plot`."""
    known = list(comparison.mixtures)
    wanted = known if mixtures is None else list(mixtures)
    for name in wanted:
        if name not in known:
            raise InputError("mixtures", f"names {name!r}; there are {', '.join(known)}")
    n, t = len(comparison.methods), len(wanted)
    each = 0.7 / max(t, 1)
    ax = axes_of(ax, MARGIN + n * max(ROW, 0.15 * t))
    for j, name in enumerate(wanted):
        column = known.index(name)
        mean, low, high = (
            table[:, column] for table in (comparison.loss, comparison.lower, comparison.upper)
        )
        places = np.arange(n) + each * (j - (t - 1) / 2)
        ax.hlines(places, low, high, color=f"C{j}", linewidth=1.5, alpha=0.7)
        for starred, fill in ((False, f"C{j}"), (True, ax.get_facecolor())):
            here = np.asarray(comparison.privileged) == starred
            label = name if not starred or here.all() else None
            look = {"s": 26, "facecolor": fill, "edgecolor": f"C{j}", "zorder": 3}
            ax.scatter(mean[here], places[here], label=label, **look)
    _name_methods(ax, comparison)
    if t > 1:
        _legend(ax, "rows of")
    return ax


def _name_methods(ax: Any, comparison: Any) -> None:
    """Methods from the top down, lines between them, and the unit on the axis."""
    named = zip(comparison.methods, comparison.privileged, strict=True)
    n = len(comparison.methods)
    ax.set_yticks(range(n), [method + "*" * starred for method, starred in named])
    ax.set_ylim(n - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    for between in range(1, n):
        ax.axhline(between - 0.5, color="0.85", linewidth=0.8, zorder=0)
    star = f"\n{STARRED}" if any(comparison.privileged) else ""
    ax.set_xlabel(f"{caption(comparison)}{star}")
    ax.grid(axis="x", color="0.9", linewidth=0.8)
    _tidy(ax)


def plot_bars(weights: FloatArray, groups: Sequence[str], sources: Sequence[str], ax: Any) -> Any:
    """Draw mean weights (groups, p) as a bar for each group of rows."""
    ax = axes_of(ax, MARGIN + len(groups) * 1.2 * ROW)
    left = np.zeros(len(groups))
    for k, name in enumerate(sources):
        ax.barh(range(len(groups)), weights[:, k], 0.75, left=left, label=name, color=f"C{k}")
        left += weights[:, k]
    ax.set_yticks(range(len(groups)), groups)
    ax.set_ylim(len(groups) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.set_xlim(0, 1)
    ax.set_xlabel("mean weight of each source")
    ax.set_ylabel("rows of")
    _tidy(ax)
    _legend(ax, "source")
    return ax


def plot_along(
    values: FloatArray, weights: FloatArray, name: str, sources: Sequence[str], ax: Any
) -> Any:
    """Draw weights (n, p) above values (n,) of a column, one on top of the other."""
    ax = axes_of(ax, 3.2)
    colours = [f"C{k}" for k in range(len(sources))]
    ax.stackplot(values, weights.T, labels=sources, colors=colours, alpha=0.85)
    ax.set_xlim(values.min(), values.max())
    ax.set_ylim(0, 1)
    ax.set_xlabel(name)
    ax.set_ylabel("weight of each source")
    _tidy(ax)
    _legend(ax, "source")
    return ax


def binned(values: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean values and weights of parts of the rows, of equal size, in the order of the values.

    >>> values, weights = binned(np.array([3.0, 1.0, 2.0]), np.array([[1.0], [0.0], [0.5]]))
    >>> values, weights.ravel()
    (array([1., 2., 3.]), array([0. , 0.5, 1. ]))
    """
    order = np.argsort(values, kind="stable")
    parts = np.array_split(order, min(N_BINS, len(order)))
    means = [(values[part].mean(), weights[part].mean(axis=0)) for part in parts]
    return np.array([one for one, _ in means]), np.stack([one for _, one in means])
