"""Train a source for each domain, and the densities or classifier that weight them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from anymix._arrays import FloatArray, n_rows, positions
from anymix.densities import ContrastiveDensity, ask, fit_on
from anymix.estimators._row_checks import not_numbers
from anymix.estimators._rows import Rows
from anymix.estimators._running import side_by_side
from anymix.sources import (
    CodedLabels,
    FoldDensities,
    SecondRound,
    Source,
    Tables,
    bounds_of,
    made_to_fit,
    masses_of,
    pool_of_others,
)
from anymix.tables import Columns

# Fewer rows of a site cannot teach a second round.
FEWEST_FOR_SECOND = 30


def _last(model: Any) -> Any:
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def takes_weight(model: Any) -> bool:
    """Whether `fit`, of the last step of a pipeline, takes sample_weight."""
    return bool(has_fit_parameter(_last(model), "sample_weight"))


def fit_with_weight(model: Any, X: Any, y: Any, weight: Any) -> Any:
    """Fit a clone, with the weights if there are any; all steps of a pipeline that take them do.

    Weights are passed by the names of steps, with or without scikit-learn's metadata routing, so
    that the same model is trained.
    """
    with config_context(enable_metadata_routing=False):
        return _fit_clone(clone(model), X, y, weight)


def _fit_clone(model: Any, X: Any, y: Any, weight: Any) -> Any:
    takes, model = takes_weight(model), made_to_fit(model, X, y)
    given = () if y is None else (y,)
    if weight is None:
        return fit_on(model, X, *given)
    if not takes:
        raise TypeError(
            f"sample_weight was given, but {type(_last(model)).__name__}.fit does not take it: "
            "leave the weights out or choose another estimator or density."
        )
    inner = model.estimator if isinstance(model, CodedLabels) else model
    if not isinstance(inner, Pipeline):
        return model.fit(X, *given, sample_weight=weight)
    # A row of weight 2 counts as two rows to a scaler, too.
    weighted = [name for name, step in inner.steps if has_fit_parameter(step, "sample_weight")]
    return fit_on(model, X, *given, **{f"{name}__sample_weight": weight for name in weighted})


def check_part(part: Any, name: str, methods: tuple[str, ...], example: str) -> None:
    """Check an estimator or a density, with a clearer error than scikit-learn's."""
    # A stack has its methods once its parts are fitted.
    kinds = part, type(part)
    able = hasattr(part, "fit") and any(hasattr(it, m) for m in methods for it in kinds)
    if hasattr(part, "forward") and hasattr(part, "state_dict"):
        raise TypeError(
            f"{name} is a network of PyTorch, {type(part).__name__}; train it, and combine it as "
            "Source.from_torch(module, name=..., output=...), or wrap it as a scikit-learn "
            "estimator."
        )
    if isinstance(part, type) or not able:
        raise TypeError(
            f"{name} must be an object with fit and {' or '.join(methods)}, such as {example}; got "
            f"{part!r}."
        )


def no_estimator(needed: str) -> ValueError:
    """Return the error that names a learner for rows of any kind."""
    return ValueError(
        f"{needed}: anymix.estimators.default_estimator(X, classification=True) is the one that "
        "DistributionWeightedClassifier trains on such rows, and False that of the regressor."
    )


FOR_ESTIMATOR = (
    "put an encoder or imputer before it, as make_pipeline(preprocessing, estimator), or take "
    "anymix.estimators.default_estimator(X, classification=...), which reads categories and "
    "missing values"
)
FOR_DENSITY = (
    "leave density='auto', give a ContrastiveDensity(), or put the preprocessing in front of "
    "the whole model, as make_pipeline(preprocessing, model), and pass sample_domain under the "
    "name of its step, as distributionweightedclassifier__sample_domain"
)


def fit_part(
    remedy: str, model: Any, X: Any, y: Any, weight: Any, names: Sequence[str] = ()
) -> Any:
    """Fit a clone of a learner or density; an error about unsuitable X names a remedy.

    `names` are those of the columns, where X is an array of encoded ones.  A pipeline handles its
    own columns, so its own error is kept.
    """
    try:
        return fit_with_weight(model, X, y, weight)
    except ValueError as error:
        # What takes missing values cannot have failed by them.
        fault = not_numbers(X, names, missing=not takes_missing(model))
        if isinstance(model, Pipeline) or fault is None:
            raise
        name = "the density" if remedy is FOR_DENSITY else f"the estimator {type(model).__name__}"
        raise ValueError(f"{name} needs complete numbers, but {fault}: {remedy}.") from error


def takes_missing(model: Any) -> bool:
    """Whether an estimator says that it takes missing values.

    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> takes_missing(HistGradientBoostingRegressor()), takes_missing(object())
    (True, False)
    """
    return hasattr(model, "__sklearn_tags__") and bool(get_tags(model).input_tags.allow_nan)


def train_source(estimator: Any, rows: Rows, name: str) -> Source:
    """Train a clone on rows; the source keeps labels and column names if the model does not."""
    y, classes = rows.y, None
    if is_classifier(estimator) and takes_codes(estimator):
        classes, y = np.unique(y, return_inverse=True)
    try:
        model = fit_part(FOR_ESTIMATOR, estimator, without_empty(rows.X), y, rows.weight)
    except Exception as error:
        error.add_note(f"This happened while a model was trained on the rows of {name!r}.")
        raise
    names = [str(column) for column in rows.X.columns] if hasattr(rows.X, "columns") else None
    labels = None if classes is None else classes.tolist()
    return Source(name, model, classes=labels, feature_names=names, n_rows=rows.y.size)


def with_each_label(rows: Rows, k: int) -> Rows:
    """Return the rows of a domain and, if they have one label, its first row with each other one.

    >>> rows = Rows(np.array([[0.0], [1.0]]), np.array(["ill", "well"]), np.array([0, 1]))
    >>> with_each_label(rows, 0).y.tolist()
    ['ill', 'well']
    """
    own = np.flatnonzero(rows.domain == k)
    known = np.unique(rows.y[own])
    if rows.y.dtype.kind == "f" or known.size > 1 or not own.size:
        return rows.of(k)
    missing = np.setdiff1d(rows.y, known)
    some = rows.take(np.r_[own, np.repeat(own[0], missing.size)])
    return replace(some, y=np.r_[rows.y[own], missing])


def takes_codes(estimator: Any) -> bool:
    """Whether a classifier, or a part of it, accepts only labels 0, 1, ..., as XGBoost's does.

    >>> from sklearn.linear_model import LogisticRegression
    >>> takes_codes(LogisticRegression())
    False
    """
    parts = estimator.get_params().values() if hasattr(estimator, "get_params") else ()
    return any(type(part).__module__.startswith("xgboost") for part in (estimator, *parts))


class Indifferent:
    """Equal responsibilities, for methods that need no density."""

    def __init__(self, p: int):
        self.p = p

    def log_responsibilities(self, X: Any) -> FloatArray:
        """log(1/p), shape (p, n)."""
        return np.full((self.p, n_rows(X)), -np.log(self.p))


def without_empty(X: Any) -> Any:
    """Fill empty columns with zeros: trees cannot be trained on them."""
    if hasattr(X, "columns"):
        void = [name for name in X.columns[X.isna().all()] if X[name].dtype.kind == "f"]
        return X.assign(**dict.fromkeys(void, 0.0)) if void else X
    if not isinstance(X, np.ndarray) or X.dtype.kind != "f" or not np.isnan(X[:1]).any():
        return X
    empty = np.isnan(X).all(axis=0)
    return np.where(empty, 0.0, X) if empty.any() else X


@dataclass(frozen=True)
class SourceTrainer:
    """Trains the sources of a model, or uses those that were passed.

    Without `weighs` no density is needed: all sources have equal weight everywhere.  `columns` are
    those that the rows were encoded by, which no longer show which of them hold categories.  A
    source whose rows cannot train a model has one of all rows or, without `share_rows`, one of its
    own rows and of a copy of one of them for each label that it lacks.
    """

    names: NDArray[Any]
    estimator: Any = None
    density: Any = None
    sources: Sequence[Source] | None = None
    weighs: bool = True
    n_jobs: int | None = None
    columns: Columns | None = None
    share_rows: bool = True

    @property
    def weighed(self) -> bool:
        """Whether the sources already have densities, or need none."""
        if not self.weighs or not self.sources:
            return not self.weighs
        return self.density is None or all(s.density is not None for s in self.sources)

    def predictors(self, rows: Rows) -> list[Source]:
        """Return a source for each domain, without a density unless one was passed."""
        if self.sources:
            return list(self.sources)
        names = [str(name) for name in self.names]
        able = [k for k in range(len(names)) if not self.share_rows or self._can_learn(rows, k)]
        own = rows.of if self.share_rows else partial(with_each_label, rows)
        jobs = [(self.estimator, own(k), names[k]) for k in able]
        if self.share_rows and len(able) < len(names):
            jobs.append((self.estimator, rows, "all sources"))
        trained = side_by_side(train_source, jobs, self.n_jobs)
        of_each = dict(zip(able, trained, strict=False))
        sizes = np.bincount(rows.domain, minlength=len(names)).tolist()
        named = enumerate(zip(names, sizes, strict=True))
        pooled = trained[-1]
        return [replace(of_each.get(k, pooled), name=name, n_rows=n) for k, (name, n) in named]

    def _can_learn(self, rows: Rows, k: int) -> bool:
        """Whether a domain has rows of its own to train on: two, and two classes of labels."""
        y = rows.y[rows.domain == k]
        return y.size > 1 and not (is_classifier(self.estimator) and np.unique(y).size < 2)

    def with_densities(self, sources: list[Source], rows: Rows) -> tuple[list[Source], Any]:
        """Add a density to each source, or one classifier of all."""
        if not self.weighs:
            return sources, Indifferent(len(sources))
        if self.weighed or self.density is None:
            return sources, None
        density = self.density
        if isinstance(density, ContrastiveDensity):
            density = density.with_shared(rows.X, rows.domain, self.columns)
        elif hasattr(density, "with_shared"):
            density = density.with_shared(rows.X, rows.domain)
        names = self.columns.names if self.columns is not None else ()
        # A classifier of sources sees all of them at once; a density sees one.
        if hasattr(density, "log_responsibilities"):
            data = without_empty(rows.X), rows.domain, rows.weight, names
            return sources, fit_part(FOR_DENSITY, density, *data)
        bare = [k for k, source in enumerate(sources) if source.density is None]
        own = map(rows.of, bare)
        jobs = ((FOR_DENSITY, density, each.X, None, each.weight, names) for each in own)
        found = list(sources)
        for k, fitted in zip(bare, side_by_side(fit_part, jobs, self.n_jobs), strict=True):
            found[k] = replace(sources[k], density=fitted)
        return found, None

    def second_round(
        self, sources: list[Source], rows: Rows, wanted: Sequence[int]
    ) -> list[Source]:
        """Train some sources again, on the residuals of the others' pool; see `SecondRound`."""
        able = [k for k in wanted if int((rows.domain == k).sum()) >= FEWEST_FOR_SECOND]
        jobs, pools = [], []
        for k in able:
            own = rows.of(k)
            others = [s.predictor for j, s in enumerate(sources) if j != k]
            said = np.stack(
                [np.asarray(ask(other, "predict", own.X), dtype=float) for other in others]
            )
            weights, offset = pool_of_others(said, own.y, own.weight)
            left = own.y - weights @ said - offset
            jobs.append((self.estimator, without_empty(own.X), left, own.weight))
            pools.append((others, weights, offset, bounds_of(own.y, own.weight)))
        found = list(sources)
        rests = side_by_side(fit_with_weight, jobs, self.n_jobs)
        for k, pool, rest in zip(able, pools, rests, strict=True):
            found[k] = replace(sources[k], predictor=SecondRound(*pool[:3], rest, pool[3]))
        return found

    def held_out_masses(
        self,
        rows: Rows,
        fold: NDArray[np.intp],
        numbers: Iterable[int] | None = None,
        learned: dict[int, FoldDensities] | None = None,
    ) -> FloatArray:
        """log D_k or log r_k (p, m) at the rows of some folds; NaN at all others.

        What was learned without each of several folds is added to `learned`.
        """
        out = np.full((len(self.names), rows.y.size), np.nan)
        for held, rest in folds_in_turn(rows, fold, numbers):
            blank = self.sources or [Source(str(name), None) for name in self.names]
            sources, router = self.with_densities(list(blank), rest)
            out[:, held] = masses_of(sources, rows.take(held).X, router)
            if learned is not None and held.size < fold.size:
                densities = tuple(source.density for source in sources)
                learned[int(fold[held[0]])] = FoldDensities(densities, router)
        return out

    def blank(self, rows: Rows, classes: NDArray[Any] | None) -> Tables:
        """Tables of the right shape, filled only with what is known of the rows."""
        p, m = len(self.names), rows.y.size
        shape = (p, m) if classes is None else (p, m, len(classes))
        targets = rows.y if classes is None else positions(rows.y, classes)
        known = targets, rows.domain, rows.weight, classes
        return Tables(np.zeros((p, m)), np.empty(shape), *known, groups=rows.groups)


def folds_in_turn(
    rows: Rows, fold: NDArray[np.intp], numbers: Iterable[int] | None = None
) -> Iterator[tuple[NDArray[np.intp], Rows]]:
    """Yield the row numbers of each fold, and the other rows; of a single fold, all rows twice."""
    for number in range(int(fold.max()) + 1) if numbers is None else numbers:
        held = np.flatnonzero(fold == number)
        yield held, rows if held.size == fold.size else rows.take(np.flatnonzero(fold != number))
