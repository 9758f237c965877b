"""Views of comparisons and fitted models: frames, plots, notebook cards.

pandas and matplotlib are loaded when first needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from anymix._arrays import FloatArray, n_rows
from anymix._cards import bars, card, paragraph
from anymix.core import unit_of
from anymix.estimators._row_checks import check_domains, index_of
from anymix.exceptions import InputError, not_installed
from anymix.tables import like


def load_pandas() -> Any:
    """Import pandas, with an error that says how to install it."""
    try:
        import pandas
    except ImportError as error:
        raise not_installed("pandas", "notebook") from error
    return pandas


def labelled(weights: FloatArray, X: Any, sources: Iterable[Any]) -> Any:
    """Put weights (n, p) into a frame of the kind of X, with a column for each source."""
    pandas = load_pandas()
    columns = pandas.Index(list(sources), name="source")
    return like(pandas.DataFrame(weights, index=index_of(X), columns=columns), X)


# Height of a row of a picture, and room for the axis and what is above, in inches.
ROW, MARGIN, WIDTH = 0.32, 0.9, 6.4
# Rows are put into so many parts of equal size along a column, where others blur the picture.
N_BINS = 30
STARRED = "* uses information that others lack"


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
    """Next to the picture, where it hides nothing."""
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
    unit = unit_of(comparison.measure)
    ax.set_xlabel(f"{unit.head}, {unit.direction}{star}")
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
    """Draw stacked weights (n, p) over the values (n,) of a column."""
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
    """Mean values and weights in bins of equally many rows, in the order of the values.

    >>> values, weights = binned(np.array([3.0, 1.0, 2.0]), np.array([[1.0], [0.0], [0.5]]))
    >>> values, weights.ravel()
    (array([1., 2., 3.]), array([0. , 0.5, 1. ]))
    """
    order = np.argsort(values, kind="stable")
    parts = np.array_split(order, min(N_BINS, len(order)))
    means = [(values[part].mean(), weights[part].mean(axis=0)) for part in parts]
    return np.array([one for one, _ in means]), np.stack([one for _, one in means])


class ModelViews:
    """Plots of source weights, and a notebook card below scikit-learn's diagram."""

    source_names_: Any

    def source_weights(self, X: Any) -> FloatArray:
        """Return the weight of each source at each row: shape (n, p)."""
        raise NotImplementedError

    def plot_weights(
        self,
        X: Any,
        sample_domain: ArrayLike | None = None,
        *,
        along: str | int | None = None,
        ax: Any = None,
    ) -> Any:
        """Plot the weight of each source at rows, or its mean over rows.

        Parameters
        ----------
        X : rows, as `predict` takes them
        sample_domain : array (n,), optional
            Where each row comes from: a bar for each domain.
        along : str or int, optional
            A column of numbers, by its name or, of an array, its number: weights are drawn above
            its values, as means over rows of about the same value.  Where it is the only column it
            need not be named, and each row is drawn.
        ax : matplotlib Axes, optional
            New ones by default.

        Returns
        -------
        matplotlib Axes
        """
        weights = np.asarray(self.source_weights(X))
        sources = [str(name) for name in self.source_names_]
        if along is None and sample_domain is None:
            along = _only_column(X)
        if along is not None:
            return plot_along(*_line(X, along, weights), str(along), sources, ax)
        if sample_domain is None:
            return plot_bars(weights.mean(axis=0)[None], ["all"], sources, ax)
        names, domain = check_domains(sample_domain, n_rows(X), None)
        means = [weights[domain == k].mean(axis=0) for k in range(len(names))]
        return plot_bars(np.stack(means), [str(name) for name in names], sources, ax)

    def _learned_card(self) -> str:
        """What was learned, as HTML; nothing before `fit`."""
        known = vars(self)
        if "sources_" not in known or "source_names_" not in known:
            return ""
        names, parts = [str(name) for name in self.source_names_], []
        weights = getattr(self, "z_", known.get("alpha_"))
        if weights is not None:
            parts.append(bars("z" if hasattr(self, "z_") else "weight", names, weights))
        else:
            parts.append(paragraph(f"sources: {', '.join(names)}"))
        learned = ("certificate_", "learner_choice_", "density_choice_")
        said = (getattr(self, name, None) for name in learned)
        parts += [paragraph(one) for one in said if one is not None]
        return card("What was learned", *parts)

    def _repr_html_inner(self) -> str:
        return str(super()._repr_html_inner()) + self._learned_card()  # type: ignore[misc]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += self._learned_card()
        return bundle


def _only_column(X: Any) -> Any:
    """Return the name or number of the one column of numbers that a table has, else None."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if hasattr(X, "toarray") or len(shape) != 2 or shape[1] != 1:
        return None
    name = X.columns[0] if hasattr(X, "columns") else 0
    return name if np.asarray(X).dtype.kind in "biuf" else None


def _line(X: Any, along: str | int, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return values in order, and weights there; rows without a value are left out."""
    column = _column(X, along)
    try:
        values = np.asarray(column, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError("along", f"names {along!r}, which does not hold numbers") from error
    known = np.flatnonzero(np.isfinite(values))
    if not known.size:
        raise InputError("along", f"names {along!r}, which holds no values")
    order = known[np.argsort(values[known], kind="stable")]
    if _only_column(X) is not None:
        return values[order], weights[order]
    return binned(values[order], weights[order])


def _column(X: Any, along: str | int) -> Any:
    if hasattr(X, "columns"):
        if along not in list(X.columns):
            raise InputError("along", f"names {along!r}, which is not a column of X")
        return X[along]
    table = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
    n = table.shape[1] if table.ndim == 2 else 0
    if not isinstance(along, int) or not 0 <= along < n:
        raise InputError("along", f"is {along!r}, but X has {n} columns without names")
    return table[:, along]
