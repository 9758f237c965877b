"""Compare methods on target mixtures, with intervals, the worst mixture and privileged marks.

Everything is computed from a table of losses, one row per method and one column per point.
`compare` evaluates fitted models, `compare_tables` uses tables of the sources.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anymix._arrays import FloatArray
from anymix._cards import card, grid, paragraph
from anymix._parameters import check, share_rule
from anymix.core import Combination, CrossFittedCombination, Loss, Record, mix, unit_of
from anymix.estimators._mixture_losses import (
    check_mixtures,
    is_privileged,
    judge_for,
    losses_on_mixtures,
    said_of,
    versions_of,
)
from anymix.estimators._row_checks import check_complete_y, check_domains, check_order
from anymix.estimators._rows import Rows
from anymix.estimators._views import STARRED, load_pandas, plot_comparison
from anymix.estimators.rival_verdicts import Verdict
from anymix.exceptions import ParameterError
from anymix.sources import (
    NEEDS_LABELS,
    HeldOut,
    Measure,
    Tables,
    combined_predictions,
    judge_of,
    lay_out,
    number,
)
from anymix.tables import named_column

Method = Combination | CrossFittedCombination | HeldOut | int | FloatArray


@dataclass(frozen=True)
class Comparison(Record):
    """loss[a, t] of method a on mixture t, with an interval; worst[a] is over all mixtures.

    verdicts are there if the rows are new to the model and its sources were evaluated on them.
    measure is what is measured by, `unit` what that is in words; of an area under the ROC curve
    higher values are better, and worst[a] is the smallest that is shown.
    """

    methods: tuple[str, ...]
    privileged: tuple[bool, ...]
    sources: tuple[str, ...]
    mixtures: tuple[str, ...]
    mixture_weights: FloatArray
    loss: FloatArray
    lower: FloatArray
    upper: FloatArray
    worst: FloatArray
    worst_mixture: tuple[str, ...]
    measure: str
    verdicts: tuple[Verdict, ...] = ()
    confidence: float | None = None
    unit: str = field(init=False)
    higher_is_better: bool = field(init=False)

    def __post_init__(self) -> None:
        found = unit_of(self.measure)
        object.__setattr__(self, "unit", found.head)
        object.__setattr__(self, "higher_is_better", found.higher)

    def table(self, digits: int = 4, intervals: bool = False) -> str:
        """Return the numbers as a text table; * marks methods that use privileged information."""
        names = [m + "*" * p for m, p in zip(self.methods, self.privileged, strict=True)]
        cells = [[number(v, digits) for v in row] for row in self.loss]
        if intervals:
            ends = np.stack([self.lower, self.upper], axis=2)
            for row, told in zip(cells, ends, strict=True):
                for t, (low, high) in enumerate(told.tolist()):
                    row[t] += f" [{number(low, digits - 1)}, {number(high, digits - 1)}]"
        cells = [[*row, number(v, digits)] for row, v in zip(cells, self.worst, strict=True)]
        return lay_out(names, [*self.mixtures, "worst"], cells)

    def __str__(self) -> str:
        return self.said(intervals=False)

    def said(self, intervals: bool = True) -> str:
        """Return the text table with unit, direction and intervals."""
        unit = unit_of(self.measure)
        star = f"; {STARRED}" if any(self.privileged) else ""
        sure = "" if self.confidence is None else f"; [ ]: {100 * self.confidence:g} % intervals"
        told = f"({unit.head}, {unit.direction}{sure * intervals}{star})"
        note = "" if unit.mean or not unit.higher else f"\n{NO_MEAN}"
        return f"{self.table(intervals=intervals)}\n{told}{note}"

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
        pandas = load_pandas()
        parts = {"estimate": self.loss}
        if intervals:
            parts |= {"lower": self.lower, "upper": self.upper}
        columns = [(mixture, part) for mixture in self.mixtures for part in parts]
        # By mixture, then by part, as the columns are.
        values = np.stack(list(parts.values()), axis=2).reshape(len(self.methods), -1)
        columns, values = [*columns, ("worst", "estimate")], np.column_stack([values, self.worst])
        levels = ["mixture", "value"]
        frame = pandas.DataFrame(
            values,
            index=pandas.Index(list(self.methods), name="method"),
            columns=pandas.MultiIndex.from_tuples(columns, names=levels),
        )
        if not intervals:
            frame = frame.droplevel("value", axis=1)
        unit, told = unit_of(self.measure), zip(self.methods, self.privileged, strict=True)
        frame.attrs.update(
            measure=self.measure,
            unit=unit.head,
            better="higher" if unit.higher else "smaller",
            privileged=[method for method, starred in told if starred],
            worst_mixture=dict(zip(self.methods, self.worst_mixture, strict=True)),
        )
        return frame

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
        values = np.column_stack([self.loss, self.worst])
        best = values == (values.max(axis=0) if self.higher_is_better else values.min(axis=0))
        written = [[number(value, 4) for value in row] for row in values]
        cells = [
            [f"<b>{v}</b>" if bold else v for v, bold in zip(*row, strict=True)]
            for row in zip(written, best, strict=True)
        ]
        names = [m + "*" * p for m, p in zip(self.methods, self.privileged, strict=True)]
        star = f"; {STARRED}" if any(self.privileged) else ""
        rows = zip(names, cells, strict=True)
        unit = unit_of(self.measure)
        said = paragraph(f"{unit.head}, {unit.direction}{star}")
        return card("Comparison", grid([*self.mixtures, "worst"], rows), said)


NO_MEAN = (
    "An area under the ROC curve is no mean over rows: on other mixtures it may be below all of "
    "these, so that nothing is guaranteed of it."
)


def compare(
    models: Mapping[str, Any],
    X: Any,
    y: ArrayLike,
    sample_domain: ArrayLike,
    mixtures: Mapping[str, ArrayLike] | None = None,
    loss: str | Loss | None = None,
    confidence: float = 0.95,
    *,
    measure: str | Loss | None = None,
) -> Comparison:
    """Compare fitted models on mixtures of the test domains.

    Parameters
    ----------
    models : mapping of names to fitted models
    X, y, sample_domain : test rows, and the domain of each or the name of its column
    mixtures : mapping of names to λ, optional
        Shares of the domains in the order of their names, or by name, as {"north": 1.0}.  By
        default each domain alone and all in equal parts.  The loss on a mixture is
        Σ_k λ_k L_k, so the worst mixture of all is always a single domain.
    loss, measure : the name of a measure or loss, or a Loss, optional
        One of them: "accuracy", "error_rate", "auc", "log_loss", "brier"; "mae", "mse",
        "rmse"; or any loss.  By default the cross-entropy of classifiers, with probabilities of at
        least 1e-6, and the squared error of other models.
        The area under the ROC curve is no mean over rows, so that Σ_k λ_k L_k does not hold for
        it: on a mixture all rows are ranked against each other, each counting as it does there.
    confidence : float
        Of the intervals: Student's for means, Wilson's for accuracy and error rate, Newcombe's for
        areas.

    Returns
    -------
    Comparison
        `print` shows its table and what was measured; `table(digits)` is the table alone.

    Examples
    --------
    >>> from anymix import Source, compare
    >>> from anymix.estimators import SingleSource, Uniform
    >>> pair = [Source("a", lambda X: 0 * X[:, 0]), Source("b", lambda X: 0 * X[:, 0] + 1)]
    >>> X, y, d = [[0.0]] * 4, [0, 0, 1, 1], ["a", "a", "b", "b"]
    >>> fitted = {"a": SingleSource.from_sources(pair).fit(X, y, d),
    ...           "uniform": Uniform.from_sources(pair).fit(X, y, d)}
    >>> print(compare(fitted, X, y, d).table())
                      a           b         all       worst
    a            0.0000      1.0000      0.5000      1.0000
    uniform      0.2500      0.2500      0.2500      0.2500
    """
    if not isinstance(models, Mapping):
        raise TypeError(
            "models must be a mapping of names to fitted models, as {'uniform': uniform, 'anymix': "
            f"model}}; got {type(models).__name__}."
        )
    if isinstance(sample_domain, str):
        X, sample_domain = named_column(X, sample_domain, "sample_domain")
    check_order(X, y=y, sample_domain=sample_domain)
    if loss is not None and measure is not None:
        raise ParameterError("loss and measure name the same thing here; give one of them.")
    check(confidence, "confidence", share_rule)
    judge = judge_for(models, measure if loss is None else loss)
    target = np.asarray(y)
    check_complete_y(target)
    names, domain = check_domains(sample_domain, target.size, None)
    warn_of_seen(models, X, names[domain])
    domains = [str(name) for name in names]
    asked = check_mixtures(mixtures, domains)
    classes = target[:0]
    if judge.kind == "auc":
        known = [np.asarray(m.classes_) for m in models.values() if hasattr(m, "classes_")]
        classes = np.unique(np.concatenate([*known, target]))
    said = {
        name: [said_of(one, X, target, judge, classes) for one in versions_of(model, asked[1])]
        for name, model in models.items()
    }
    privileged = [is_privileged(model) for model in models.values()]
    labels = np.searchsorted(classes, target) if classes.size else target
    rows = Rows(None, labels, domain)
    return _compared((domains, *asked), said, privileged, rows, judge, confidence)


def compare_tables(
    tables: Tables,
    methods: Mapping[str, Method],
    names: Iterable[str],
    loss: str | Loss,
    mixtures: Mapping[str, ArrayLike] | None = None,
    confidence: float = 0.95,
    measure: str | Loss | None = None,
) -> Comparison:
    """Compare ways of combining the sources, from tables at labelled points.

    Parameters
    ----------
    tables : Tables
        With targets and the domain of each point.
    methods : mapping of names to a Combination, to the number of a source that is taken alone, to
        weights (p, m) of the sources at the points, or to `HeldOut` predictions
    names : of the sources
    loss : str or Loss
        That the combinations were learned with.  What is said at the label that occurred is
        enough, as they are averages.
    mixtures, confidence : see `compare`
    measure : str or Loss, optional
        The measure, if not the loss.

    Examples
    --------
    >>> from anymix import Tables
    >>> from anymix.core import Combination
    >>> log_masses = np.array([[0.0, 0.0, -9.0, -9.0], [-9.0, -9.0, 0.0, 0.0]])
    >>> tables = Tables(log_masses, np.array([[0.0] * 4, [1.0] * 4]))
    >>> tables = tables.labelled([0.0, 0.0, 1.0, 1.0], [0, 0, 1, 1])
    >>> methods = {"average": np.full((2, 4), 0.5), "weighed": Combination(np.full(2, 0.5), 0.0)}
    >>> print(compare_tables(tables, methods, ["a", "b"], "squared").table())
                      a           b         all       worst
    average      0.2500      0.2500      0.2500      0.2500
    weighed      0.0000      0.0000      0.0000      0.0000
    """
    if tables.targets is None or tables.sample_domain is None:
        raise ValueError("tables need targets and sample_domain to be compared on.")
    for method in methods.values():
        tables.check_loss(loss, getattr(method, "rule", "marginal"))
    judge = judge_of(measure, loss, tables.n_classes)
    if judge.kind == "auc" and tables.at_label:
        raise ValueError(NEEDS_LABELS)
    targets = np.asarray(tables.targets)
    said = {
        name: [judge.value(_predicted(method, tables), targets)] for name, method in methods.items()
    }
    domains = list(names)
    asked = domains, *check_mixtures(mixtures, domains)
    rows = Rows(None, targets, tables.domain, tables.sample_weight)
    return _compared(asked, said, [False] * len(said), rows, judge, confidence)


def usual_methods(tables: Tables, ours: Method, names: Iterable[str]) -> dict[str, Method]:
    """Return the methods that a comparison of tables shows, by name.

    These are each source, their average, the likeliest source of a point, and the combination.

    Examples
    --------
    >>> tables = Tables(np.log([[0.5], [0.25]]), np.ones((2, 1)))
    >>> list(usual_methods(tables, 0, ["north", "south"]))
    ['north', 'south', 'uniform', 'likeliest source', 'anymix']
    """
    p, m = tables.log_masses.shape
    methods: dict[str, Method] = {name: k for k, name in enumerate(names)}
    methods["uniform"] = np.full((p, m), 1.0 / p)
    methods["likeliest source"] = np.eye(p)[:, tables.log_masses.argmax(axis=0)]
    methods["anymix"] = ours
    return methods


def _predicted(method: Method, tables: Tables) -> FloatArray:
    if isinstance(method, HeldOut):
        return method.predictions
    if isinstance(method, Combination | CrossFittedCombination):
        return combined_predictions(tables, CrossFittedCombination.of(method))
    if isinstance(method, int):
        return np.asarray(tables.predictions[method])
    return mix(np.asarray(method, dtype=float), tables.predictions)


def _compared(
    asked: tuple[list[str], tuple[str, ...], FloatArray],
    said: Mapping[str, list[FloatArray]],
    privileged: list[bool],
    rows: Rows,
    judge: Measure,
    confidence: float,
) -> Comparison:
    """Judge what each version of each method has said on domains and mixtures, and lay it out."""
    domains, mixtures, weights = asked
    for k, name in enumerate(domains):
        y = rows.y[rows.domain == k]
        if not y.size:
            raise ValueError(f"there are no rows of the source {name!r} to compare on.")
        if judge.kind == "auc" and np.unique(y).size < 2:
            raise ValueError(
                f"the rows of {name!r} are of one label alone, so that there is no area under "
                "the ROC curve; add rows of another label, or choose another measure."
            )
    mixed, alone = losses_on_mixtures(list(said.values()), rows, judge, confidence, weights)
    # A mean is worst on a domain alone; an area can be smaller on a mixture than on each domain.
    places, every = [*domains, *mixtures], alone
    where = alone.argmax(axis=1)
    if judge.unit.higher:
        every = np.concatenate([alone, mixed.mean], axis=1)
        where = every.argmin(axis=1)
    return Comparison(
        methods=tuple(said),
        privileged=tuple(privileged),
        sources=tuple(domains),
        mixtures=mixtures,
        mixture_weights=weights,
        loss=mixed.mean,
        lower=mixed.lower,
        upper=mixed.upper,
        worst=every[np.arange(len(every)), where],
        worst_mixture=tuple(places[k] for k in where),
        measure=judge.key,
        confidence=confidence,
    )


def warn_of_seen(models: Mapping[str, Any], X: Any, domain: NDArray[Any]) -> None:
    """Warn of rows that a model was fitted on: results on them are too optimistic."""
    for name, model in models.items():
        seen = model.seen_domains(X, domain) if hasattr(model, "seen_domains") else []
        if seen:
            warnings.warn(
                f"the rows of {', '.join(seen)} are among those that {name!r} was fitted on, so "
                "this flatters it; compare on rows that no model has seen.",
                UserWarning,
                stacklevel=3,
            )
