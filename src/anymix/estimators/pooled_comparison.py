"""Compare a model with the usual alternatives, in one call and on rows new to all."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import _safe_indexing

from anymix._arrays import FloatArray, n_rows
from anymix._parameters import Number, check
from anymix.core import Loss
from anymix.estimators._learner_choice import choose_estimator
from anymix.estimators._mixture_losses import Interval, judge_for, mean_interval, said_of
from anymix.estimators._row_checks import check_domains, groups_of, take_columns
from anymix.estimators._rows import Rows, folds_of
from anymix.estimators.baselines import Joint, SingleSource, Stacking, Uniform
from anymix.estimators.comparison import Comparison, compare
from anymix.exceptions import ParameterError
from anymix.sources import Source

OURS, POOLED, BEST = "anymix", "pooled", "best pooled"


@dataclass(frozen=True)
class PooledComparison(Comparison):
    """A comparison with paired differences: the model's loss less that of each other method.

    difference[a, t] is that to method a on mixture t, with its interval; below zero the model is
    better.  All methods were trained on the same rows, and evaluated on the same held-out rows.
    """

    difference: FloatArray | None = None
    difference_lower: FloatArray | None = None
    difference_upper: FloatArray | None = None

    def paired(self, method: str, mixture: str = "all") -> tuple[float, float, float]:
        """Return the model's loss less that of a method, and the ends of its interval."""
        a, t = self.methods.index(method), self.mixtures.index(mixture)
        ends = self.difference, self.difference_lower, self.difference_upper
        mean, low, high = (float(np.asarray(table)[a, t]) for table in ends)
        return mean, low, high

    def __str__(self) -> str:
        lines = [super().__str__(), "", f"{OURS} less, on all in equal parts (paired intervals):"]
        for method in self.methods:
            if method != OURS:
                mean, low, high = self.paired(method)
                lines.append(f"  {method:<16} {mean:+.4f} [{low:+.4f}, {high:+.4f}]")
        return "\n".join(lines)


def compare_with_pooled(
    model: Any,
    X: Any,
    y: ArrayLike,
    sample_domain: Any,
    *,
    groups: Any = None,
    folds: int = 3,
    measure: str | Loss | None = None,
    confidence: float = 0.95,
    random_state: Any = 0,
) -> PooledComparison:
    """Compare a model with pooled models, the plain average, each source and stacking.

    One of `folds` parts of the rows is held out; a clone of the model and all others are trained on
    the rest, and evaluated on it.

    Parameters
    ----------
    model : DistributionWeightedRegressor or DistributionWeightedClassifier
        Fitted or not: a clone is trained.
    X, y, sample_domain : rows, their labels or numbers, the source of each or its column's name
    groups : array (n,) or the name of a column of X, optional
        Rows of one group are held out together, as copies are.
    folds : int
    measure : str or Loss, optional
        As in `compare`; a mean over rows.
    confidence : float
        Of the intervals.
    random_state : int or None
        Deals the rows.

    Returns
    -------
    PooledComparison
        "pooled" is the learner of the model's sources, trained on all rows; "best pooled" the
        learner that cross-validation chooses for them.  Their "*" says that they need all rows in
        one place.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from anymix import DistributionWeightedRegressor, compare_with_pooled
    >>> rng = np.random.default_rng(0)
    >>> d = np.repeat(["north", "south"], 150)
    >>> X = rng.normal(size=(300, 1)) + 3.0 * (d == "north")[:, None]
    >>> y = np.where(d == "north", 1.0, -1.0) * X[:, 0]
    >>> found = compare_with_pooled(DistributionWeightedRegressor(Ridge()), X, y, d)
    >>> found.methods
    ('anymix', 'pooled', 'best pooled', 'average', 'north', 'south', 'stacking')
    >>> found.paired("pooled")[2] < 0
    True
    """
    check(folds, "folds", Number(2, whole=True))
    X, (sample_domain, groups), _ = take_columns(X, sample_domain=sample_domain, groups=groups)
    target = np.asarray(y)
    names, domain = check_domains(sample_domain, n_rows(X), None)
    rows = Rows(X, target, domain)
    labels = bool(model._classification)
    draws = Rows(X, target, domain, groups=groups_of(rows, groups, stacklevel=3))
    held = folds_of(draws, folds, labels, random_state) == 0
    train, test = np.flatnonzero(~held), np.flatnonzero(held)
    given = _safe_indexing(X, train), target[train], names[domain[train]]
    methods = _methods(model, given, None if draws.groups is None else draws.groups[train])
    new = _safe_indexing(X, test), target[test], names[domain[test]]
    return _judged(methods, new, measure, confidence)


def compare_fitted_with_pooled(
    model: Any,
    train: tuple[Any, ArrayLike],
    new: tuple[Any, ArrayLike, ArrayLike],
    measure: str | Loss | None = None,
    confidence: float = 0.95,
    random_state: Any = 0,
) -> PooledComparison:
    """Compare a fitted model with one that is trained on rows of all sources in one place.

    Parameters
    ----------
    model : a fitted DistributionWeightedRegressor or DistributionWeightedClassifier
        Its rows are those of `train` and `new`: encoded, if it was loaded.
    train : (X, y)
        Training rows of all sources; cross-validation chooses the learner of the pooled model.
    new : (X, y, sample_domain)
        Rows that no model has seen.
    measure, confidence : see `compare_with_pooled`
    random_state : int or None
        Of the pooled model.

    Returns
    -------
    PooledComparison
        Of the model, the pooled one, the plain average of the sources, and each source.

    Examples
    --------
    >>> from anymix import Source, DistributionWeightedRegressor
    >>> rng = np.random.default_rng(0)
    >>> d = np.repeat(["a", "b"], 100)
    >>> X = rng.normal(size=(200, 1)) + 3.0 * (d == "b")[:, None]
    >>> y = np.where(d == "a", 1.0, -1.0) * X[:, 0]
    >>> model = DistributionWeightedRegressor(random_state=0).fit(X[::2], y[::2], d[::2])
    >>> found = compare_fitted_with_pooled(model, (X[::2], y[::2]), (X[1::2], y[1::2], d[1::2]))
    >>> found.methods
    ('anymix', 'pooled', 'average', 'a', 'b')
    """
    X, y = train[0], np.asarray(train[1])
    by = {"classification": bool(model._classification), "random_state": random_state}
    best, _ = choose_estimator(X, y, columns=model.columns_, **by)
    classes, sources = getattr(model, "classes_", None), model.sources_
    mean = _SourceAverage if classes is None else _LabelAverage
    methods = {
        OURS: model,
        POOLED: mean([Source(POOLED, clone(best).fit(X, y))], classes, privileged=True),
        "average": mean(sources, classes),
        **{_name(source): mean([source], classes) for source in sources},
    }
    new = new[0], np.asarray(new[1]), np.asarray(new[2])
    usual = "squared" if classes is None else "cross_entropy"
    return _judged(methods, new, measure or usual, confidence)


class _SourceAverage:
    """The plain average of sources that are trained; their rows may have missing values."""

    def __init__(
        self, sources: Sequence[Source], classes: NDArray[Any] | None, privileged: bool = False
    ):
        self.sources, self.classes_, self.privileged = sources, classes, privileged

    def predict(self, X: Any) -> Any:
        return np.mean([source.predict(X) for source in self.sources], axis=0)


class _LabelAverage(_SourceAverage):
    def predict_proba(self, X: Any) -> FloatArray:
        said = [source.predict_proba(X, np.asarray(self.classes_)) for source in self.sources]
        return np.asarray(np.mean(said, axis=0))

    def predict(self, X: Any) -> Any:
        return np.asarray(self.classes_)[self.predict_proba(X).argmax(axis=1)]


def _judged(
    methods: dict[str, Any], new: tuple[Any, Any, Any], measure: Any, confidence: float
) -> PooledComparison:
    """Judge methods on the same rows, and the model against each of them."""
    found = compare(methods, *new, measure=measure, confidence=confidence)
    differences = _differences(methods, found, *new, measure, 1.0 - confidence)
    known: dict[str, Any] = {name: getattr(found, name) for name in _FIELDS}
    return PooledComparison(**known | differences)


_FIELDS = (
    *("methods", "privileged", "sources", "mixtures", "mixture_weights", "loss", "lower", "upper"),
    *("worst", "worst_mixture", "measure", "verdicts", "confidence"),
)


def _methods(model: Any, given: tuple[Any, Any, Any], groups: Any) -> dict[str, Any]:
    """Train all methods on the same rows, by name."""
    X, y, domain = given
    ours = clone(model).fit(X, y, sample_domain=domain, groups=groups)
    columns, seed = ours.columns_, model.random_state
    encoded = X if columns is None else columns.encode(X)
    best, _ = choose_estimator(
        encoded, y, classification=model._classification, columns=columns, random_state=seed
    )
    learner = ours.estimator_
    if columns is not None:
        # Pooled models and averages get the table as it is.
        encode = FunctionTransformer(columns.encode)
        learner, best = (make_pipeline(encode, clone(one)) for one in (learner, best))
    with warnings.catch_warnings():
        # The model has warned of these rows already.
        warnings.simplefilter("ignore", UserWarning)
        average = Uniform(learner).fit(X, y, sample_domain=domain)
        alone = {
            _name(source): SingleSource.from_sources(average.sources_, source=source.name).fit(
                X, y, sample_domain=_known(domain, average)
            )
            for source in average.sources_
        }
        return {
            OURS: ours,
            POOLED: Joint(learner).fit(X, y),
            BEST: Joint(best).fit(X, y),
            "average": average,
            **alone,
            "stacking": Stacking(learner, random_state=seed).fit(X, y, sample_domain=domain),
        }


_TAKEN = (OURS, POOLED, BEST, "average", "stacking")


def _name(source: Source) -> str:
    """Name a source alone as no other method is named."""
    return source.name if source.name not in _TAKEN else f"source {source.name}"


def _known(domain: NDArray[Any], average: Any) -> NDArray[Any]:
    """Put rows of domains that are no source to the first one: a single source learns nothing."""
    names = average.source_names_
    return np.where(np.isin(domain, names), domain, names[0])


def _differences(
    methods: dict[str, Any],
    found: Comparison,
    X: Any,
    y: NDArray[Any],
    domain: NDArray[Any],
    measure: str | Loss | None,
    alpha: float,
) -> dict[str, FloatArray]:
    """Return the model's loss less that of each method on each mixture, with intervals."""
    judge = judge_for(methods, measure)
    if judge.kind != "mean":
        raise ParameterError(
            f"measure {judge.key!r} is no mean over rows, which has no paired differences here; "
            "take 'mse' in place of 'rmse', and 'log_loss' in place of 'auc'."
        )
    losses = {name: said_of(method, X, y, judge, y[:0]) for name, method in methods.items()}
    names, codes = check_domains(domain, y.size, None)
    ends = np.empty((3, len(methods), len(names)))
    for a, other in enumerate(losses.values()):
        for k, share in enumerate(Rows(None, y, codes).shares(len(names))):
            own = codes == k
            values = (losses[OURS] - other)[own]
            kind = "difference" if judge.binary else "number"
            ends[:, a, k] = mean_interval(values, share[own], alpha, kind)  # type: ignore[arg-type]
    tables = [Interval(*ends).mixed(weights) for weights in found.mixture_weights]
    mean, lower, upper = (np.stack(part, axis=1) for part in zip(*tables, strict=True))
    return {"difference": mean, "difference_lower": lower, "difference_upper": upper}
