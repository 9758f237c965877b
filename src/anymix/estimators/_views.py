"""How a comparison and a fitted model are looked at: frames, pictures, cards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from anymix._arrays import FloatArray, n_rows
from anymix._cards import bars, card, grid, paragraph
from anymix.estimators._display import (
    STARRED,
    binned,
    caption,
    comparison_frame,
    plot_along,
    plot_bars,
    plot_comparison,
)
from anymix.estimators._row_checks import check_domains
from anymix.exceptions import InputError
from anymix.sources import number


class ComparisonViews:
    """A comparison as a DataFrame, as a picture, and in a notebook."""

    def to_frame(self, intervals: bool = False) -> Any:
        """Return a DataFrame with a row for each method and a column for each mixture and "worst".

        Parameters
        ----------
        intervals : bool
            With True the columns have two levels, (mixture, "estimate" | "lower" | "upper");
            `frame.stack("mixture")` then has a row for each method and mixture.

        Returns
        -------
        DataFrame
            `attrs` tell the measure, its unit, the privileged methods and where each is worst.

        Examples
        --------
        >>> from anymix.estimators import Comparison
        >>> loss = np.array([[0.25, 0.5]])
        >>> found = Comparison(("mean",), (False,), ("a", "b"), ("a", "b"), np.eye(2), loss,
        ...                    loss - 0.1, loss + 0.1, np.array([0.5]), ("b",), "squared")
        >>> found.to_frame()
        mixture     a    b  worst
        method
        mean     0.25  0.5    0.5
        >>> found.to_frame(intervals=True)["a"]
        value   estimate  lower  upper
        method
        mean        0.25   0.15   0.35
        """
        return comparison_frame(self, intervals)

    def plot(self, ax: Any = None, mixtures: Sequence[str] | None = None) -> Any:
        """Draw a dot with its interval for each method on each mixture, privileged ones hollow.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            New ones by default.
        mixtures : list of str, optional
            Which to draw; all by default.

        Returns
        -------
        matplotlib Axes
        """
        return plot_comparison(self, ax, mixtures)

    def _repr_html_(self) -> str:
        told: Any = self
        values = np.column_stack([told.loss, told.worst])
        best = values == (values.max(axis=0) if told.higher_is_better else values.min(axis=0))
        written = [[number(value, 4) for value in row] for row in values]
        cells = [
            [f"<b>{v}</b>" if bold else v for v, bold in zip(*row, strict=True)]
            for row in zip(written, best, strict=True)
        ]
        names = [m + "*" * p for m, p in zip(told.methods, told.privileged, strict=True)]
        star = f"; {STARRED}" if any(told.privileged) else ""
        rows = zip(names, cells, strict=True)
        said = paragraph(f"{caption(told)}{star}")
        return card("Comparison", grid([*told.mixtures, "worst"], rows), said)


class ModelViews:
    """Who answers where, as a picture, and what was learned, below scikit-learn's diagram."""

    source_names_: Any

    def source_weights(self, X: Any) -> FloatArray:
        """Which source counts how much at each row: shape (n, p)."""
        raise NotImplementedError

    def plot_weights(
        self,
        X: Any,
        sample_domain: ArrayLike | None = None,
        *,
        along: str | int | None = None,
        ax: Any = None,
    ) -> Any:
        """Draw who answers: the weight of each source at rows, or its mean over rows.

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
        certificate, choice = (getattr(self, n, None) for n in ("certificate_", "density_choice_"))
        parts += [paragraph(said) for said in (certificate, choice) if said is not None]
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
            raise InputError("along", f"names {along!r}, which is no column of X")
        return X[along]
    table = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
    n = table.shape[1] if table.ndim == 2 else 0
    if not isinstance(along, int) or not 0 <= along < n:
        raise InputError("along", f"is {along!r}, but X has {n} columns without names")
    return table[:, along]
