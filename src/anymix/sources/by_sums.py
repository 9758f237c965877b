"""A generalist learned by sums over all rows: a linear model of columns that all parts can compute.

    columns      made of                                       agreed on before, by sums
    leaves       the boosted trees of all sources              -
    numbers      standardised columns                          means, scales
    vectors      columns as they are                           -
    words        tf-idf of the words of all sources' models    in how many texts each word is
    others       the steps before linear models                -

`LinearRows` is a part: it keeps its rows, and responds with sums over them; see `core.linear_sums`
for the queries.  The result is an ordinary predictor: boosted trees with other values in the
leaves, or a linear model after the usual steps.
"""

from __future__ import annotations

from builtins import map as builtin_map
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from anymix._arrays import FloatArray, IntArray
from anymix.core import MOST_ROUNDS, LinearPart, fit_linear
from anymix.densities import BoostedTrees, joined_trees, leaf_columns
from anymix.exceptions import InputError
from anymix.sources.agreed_steps import agreed_step
from anymix.sources.bounded_ridge import BoundedRidge
from anymix.sources.model_source import SecondRound
from anymix.sources.partitioned import Map
from anymix.sources.queries import Arrays, Options, Query, numbers_in

# Rows of a part on either side of a split, and texts of a part that hold a word; of fewer it does
# not tell.
MIN_ROWS = 5
# Trees of each source: the later ones move predictions by less than other noise.
MOST_TREES = 50
# Strengths that are tried, of leaves for numbers and for labels, and of others as shares of the
# strength that the sources' own models have.
LEAF_STRENGTHS = {False: (0.3, 1.0, 3.0), True: (0.03, 0.1, 0.3, 1.0)}
SHARES = (0.3, 1.0, 3.0, 10.0)
BOOSTED = HistGradientBoostingClassifier, HistGradientBoostingRegressor
LINEAR = LogisticRegression, Ridge, BoundedRidge
# The least and the largest prediction of numbers.
Bounds = tuple[float, float]


class _Leaves(BaseEstimator):
    """Boosted trees with values of their own in the leaves."""

    def __init__(self, trees: Any = None, classes: Any = None):
        self.trees, self.classes = trees, classes

    def fit(self, X: Any, y: Any = None) -> Any:
        """Learn nothing: the values of the leaves were learned by sums."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def n_features_in_(self) -> int:
        """How many columns rows have."""
        return int(self.trees.n_features)


class LeafRegressor(RegressorMixin, _Leaves):
    """Numbers by boosted trees whose leaves have values that were learned by sums.

    Parameters
    ----------
    trees : BoostedTrees
    classes : None
    """

    def predict(self, X: ArrayLike) -> FloatArray:
        """Numbers, (n,)."""
        return np.asarray(self.trees.raw_predict(X)[:, 0])


class LeafClassifier(ClassifierMixin, _Leaves):
    """Labels by boosted trees whose leaves have values that were learned by sums.

    Parameters
    ----------
    trees : BoostedTrees
        Of one score for two labels, or one for each.
    classes : array
        The labels.
    """

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels."""
        return np.asarray(self.classes)

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Probabilities of the labels, (n, c)."""
        raw = self.trees.raw_predict(X)
        if raw.shape[1] > 1:
            return np.asarray(softmax(raw, axis=1))
        second = expit(raw[:, 0])
        return np.stack([1.0 - second, second], axis=1)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The likeliest labels, (n,)."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


@dataclass(frozen=True)
class LeafColumns:
    """Leaves of boosted trees; see `leaf_columns`."""

    models: tuple[BoostedTrees, ...]
    agreed = ""

    def strengths(self, labels: bool) -> tuple[float, ...]:
        """What is tried."""
        return LEAF_STRENGTHS[labels]

    def matrix(self, X: Any, given: Arrays, min_rows: int) -> Any:
        """The columns of rows, (n, D)."""
        return leaf_columns(self.models, X, min_rows)

    def predictor(self, theta: FloatArray, classes: NDArray[Any] | None, given: Arrays) -> Any:
        """The trees with the values θ (c, D + 1)."""
        scale = 1.0 / np.sqrt(sum(trees.n_trees for trees in self.models))
        trees = joined_trees(self.models, theta[:, :-1] * scale, theta[:, -1])
        return LeafRegressor(trees) if classes is None else LeafClassifier(trees, classes)


@dataclass(frozen=True)
class NumberColumns:
    """Columns of numbers, standardised by the rows of all parts, or as they are."""

    strength: float
    standardised: bool
    bounds: Bounds | None = field(default=None, repr=False)

    @property
    def agreed(self) -> str:
        """The query that finds means and scales."""
        return "scales" if self.standardised else ""

    def strengths(self, labels: bool) -> tuple[float, ...]:
        """What is tried."""
        return tuple(self.strength * share for share in SHARES)

    def matrix(self, X: Any, given: Arrays, min_rows: int) -> Any:
        """The columns of rows, (n, D)."""
        if not self.standardised:
            return X.tocsr() if hasattr(X, "tocsr") else np.asarray(X, dtype=float)
        return (np.asarray(X, dtype=float) - given["mean"]) / given["scale"]

    def predictor(self, theta: FloatArray, classes: NDArray[Any] | None, given: Arrays) -> Any:
        """A linear model, behind a scaler if columns are standardised."""
        linear = _linear(theta, classes, self.strength, self.bounds)
        if not self.standardised:
            return linear
        scaler = StandardScaler()
        scaler.mean_, scaler.scale_ = given["mean"], given["scale"]
        scaler.var_, scaler.n_features_in_ = given["scale"] ** 2, given["mean"].size
        return make_pipeline(scaler, linear)


@dataclass(frozen=True)
class WordColumns:
    """Tf-idf of documents by the words of all sources' models."""

    strength: float
    vectorizer: TfidfVectorizer
    bounds: Bounds | None = None
    agreed = "words"

    def strengths(self, labels: bool) -> tuple[float, ...]:
        """What is tried."""
        return tuple(self.strength * share for share in SHARES)

    def fitted(self, given: Arrays) -> TfidfVectorizer:
        """The vectorizer with log((1 + n)/(1 + n_w)) + 1 for a word in n_w of n texts."""
        vectorizer = clone(self.vectorizer)
        vectorizer.idf_ = given["idf"]
        return vectorizer

    def matrix(self, X: Any, given: Arrays, min_rows: int) -> Any:
        """The columns of documents, (n, D)."""
        return self.fitted(given).transform(X)

    def predictor(self, theta: FloatArray, classes: NDArray[Any] | None, given: Arrays) -> Any:
        """A linear model behind the vectorizer."""
        linear = _linear(theta, classes, self.strength, self.bounds)
        return make_pipeline(self.fitted(given), linear)


@dataclass(frozen=True)
class PreparedColumns:
    """Columns that the agreed steps of all sources' models make; see `agreed_step`."""

    strength: float
    steps: Pipeline
    bounds: Bounds | None = None
    agreed = ""

    def strengths(self, labels: bool) -> tuple[float, ...]:
        """What is tried."""
        return tuple(self.strength * share for share in SHARES)

    def matrix(self, X: Any, given: Arrays, min_rows: int) -> Any:
        """The columns of rows, (n, D)."""
        found = self.steps.transform(X)
        return found.tocsr() if hasattr(found, "tocsr") else np.asarray(found, dtype=float)

    def predictor(self, theta: FloatArray, classes: NDArray[Any] | None, given: Arrays) -> Any:
        """A linear model behind the steps."""
        linear = _linear(theta, classes, self.strength, self.bounds)
        return make_pipeline(*(step for _, step in self.steps.steps), linear)


Columns = LeafColumns | NumberColumns | WordColumns | PreparedColumns


def _linear(
    theta: FloatArray, classes: NDArray[Any] | None, strength: float, bounds: Bounds | None
) -> Any:
    """A linear model of scikit-learn with these numbers, or one of bounded predictions."""
    model: Any
    if classes is None and bounds is not None:
        model = BoundedRidge((strength,))
        model.model_ = _linear(theta, None, strength, None)
        model.coef_, model.intercept_ = model.model_.coef_, model.model_.intercept_
        model.alpha_, (model.lower_, model.upper_) = strength, bounds
    elif classes is None:
        model = Ridge(strength)
        model.coef_, model.intercept_ = theta[0, :-1].copy(), float(theta[0, -1])
    else:
        model = LogisticRegression(C=1.0 / strength, max_iter=1000)
        model.coef_, model.intercept_ = theta[:, :-1].copy(), theta[:, -1].copy()
        model.classes_ = np.asarray(classes)
    model.n_features_in_ = theta.shape[1] - 1
    return model


def shared_columns(predictors: Sequence[Any]) -> Columns | None:
    """Return the columns that the models of all sources have in common, or None.

    Examples
    --------
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> shared_columns([make_pipeline(StandardScaler(), Ridge(3.0)).fit(X, X[:, 0])])
    NumberColumns(strength=3.0, standardised=True)
    """
    models = [one.rest if isinstance(one, SecondRound) else one for one in predictors]
    boosted = [one for one in models if isinstance(one, BOOSTED)]
    if boosted:
        return LeafColumns(tuple(BoostedTrees.of(one).first(MOST_TREES) for one in boosted))
    steps = [list(one) if isinstance(one, Pipeline) else [one] for one in models]
    if not all(isinstance(each[-1], LINEAR) for each in steps):
        return None
    lasts = [each[-1] for each in steps]
    strength, bounds = float(np.median([_strength(last) for last in lasts])), None
    if all(isinstance(last, BoundedRidge) for last in lasts):
        bounds = min(last.lower_ for last in lasts), max(last.upper_ for last in lasts)
    kinds = {tuple(type(step) for step in each[:-1]) for each in steps}
    if kinds == {()}:
        return NumberColumns(strength, False, bounds)
    if kinds == {(StandardScaler,)}:
        return NumberColumns(strength, True, bounds)
    if kinds == {(TfidfVectorizer,)}:
        words = sorted(set().union(*(each[0].vocabulary_ for each in steps)))
        vectorizer = clone(steps[0][0]).set_params(vocabulary=words)
        return WordColumns(strength, vectorizer, bounds)
    agreed = agreed_step([make_pipeline(*each[:-1]) for each in steps])
    return None if agreed is None else PreparedColumns(strength, agreed, bounds)


def _strength(last: Any) -> float:
    """Of the ridge of a linear model that was fitted."""
    if isinstance(last, LogisticRegression):
        return 1.0 / last.C
    return float(last.alpha if isinstance(last, Ridge) else last.alpha_)


@dataclass
class LinearRows:
    """The rows of one part, which respond with sums.

    y are numbers, or places among `n_classes` labels; `fold` is that of each row.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0]])
    >>> part = LinearRows(NumberColumns(1.0, True), X, X[:, 0], np.ones(2), np.zeros(2, np.intp))
    >>> part.answer("scales", {}, {})["mean"]
    array([0.5])
    """

    columns: Columns
    X: Any
    y: NDArray[Any]
    weight: FloatArray
    fold: IntArray
    n_classes: int = 0
    min_rows: int = MIN_ROWS
    _part: LinearPart | None = field(default=None, repr=False)

    def answer(self, verb: str, options: Options, arrays: Arrays) -> Arrays:
        """Answer "scales" or "words", and then "sketch", "step" and "losses"."""
        if verb == "scales":
            return self._scales()
        if verb == "words" and isinstance(self.columns, WordColumns):
            counts = _counted(self.columns.vectorizer, self.X)
            few = np.where(counts < self.min_rows, 0, counts)
            return {"texts": np.array(float(len(self.X))), "with": few.astype(float)}
        if verb not in ("sketch", "step", "losses"):
            raise InputError(f"the query {verb!r}", "is not one for linear models")
        if self._part is None:
            matrix = self.columns.matrix(self.X, arrays, self.min_rows)
            known = self.y, self.weight, self.fold, self.n_classes
            self._part = LinearPart(matrix, *known)
        return self._part.answer(verb, arrays)

    def _scales(self) -> Arrays:
        X, w = np.asarray(self.X, dtype=float), self.weight
        if X.ndim != 2 or not np.isfinite(X).all():
            raise InputError(
                "the rows", "must be a table of finite numbers; impute missing values first"
            )
        mean = w @ X / max(float(w.sum()), np.finfo(float).tiny)
        return {"weights": w.sum()[None], "mean": mean, "second": w @ (X - mean) ** 2}


def _counted(vectorizer: TfidfVectorizer, texts: Any) -> FloatArray:
    """In how many texts each word is, (D,)."""
    plain = clone(vectorizer).set_params(use_idf=False, norm=None)
    return np.asarray((plain.fit_transform(texts) != 0).sum(axis=0), dtype=float).ravel()


def joined_scales(found: Sequence[Arrays]) -> Arrays:
    """Weights of the sources, and mean and standard deviation of each column, of all parts."""
    weights = np.sum([one["weights"] for one in found], axis=0)
    each = np.array([one["weights"].sum() for one in found])
    means, total = np.array([one["mean"] for one in found]), each.sum()
    mean = each @ means / total
    second = np.sum([one["second"] for one in found], axis=0) + each @ (means - mean) ** 2
    variance, tiny = second / total, total * np.finfo(float).eps
    # As scikit-learn tells a constant column.
    constant = variance <= tiny * variance + (tiny * mean) ** 2
    scale = np.where(constant, 1.0, np.sqrt(variance))
    return {"weights": weights, "mean": mean, "scale": scale}


@dataclass(frozen=True)
class SumsFit:
    """Predictors by fold and strength, a list for each fold, θ, and the cost.

    `n_numbers` is how many numbers left all parts together, and `residual` the largest remaining
    gradient, relative to the first one.
    """

    predictors: list[list[Any]]
    strengths: tuple[float, ...]
    theta: FloatArray
    n_rounds: int
    residual: float
    n_numbers: int
    agreed: Arrays


def fit_by_sums(
    columns: Columns,
    parts: Iterable[Any],
    classes: NDArray[Any] | None = None,
    folds: Sequence[int] = (-1,),
    map: Map = builtin_map,
    strengths: Sequence[float] | None = None,
) -> SumsFit:
    """Fit one linear model to the rows of all parts, for each fold left out and each strength.

    Parameters
    ----------
    columns : see `shared_columns`
    parts : iterable of LinearRows, or of what stands for one
    classes : labels, or None for numbers
    folds : which are left out, one at a time; −1 leaves out none
    map : callable
        See `PartitionedProblem`; each call is one round.
    strengths : tried strengths; by default those of the columns

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> columns, y, fold = NumberColumns(1.0, True), X @ [1.0, 2.0], np.zeros(30, np.intp)
    >>> parts = [LinearRows(columns, X[i::2], y[i::2], np.ones(30), fold) for i in range(2)]
    >>> found = fit_by_sums(columns, parts, strengths=[1e-9])
    >>> found.predictors[0][0].predict([[1.0, 1.0]]).round(3)
    array([3.])
    """
    parts, given, sent = list(parts), {}, []
    if columns.agreed:
        said = list(map(Query(columns.agreed), parts))
        sent.append(sum(numbers_in(one) for one in said))
        if columns.agreed == "scales":
            given = {name: joined_scales(said)[name] for name in ("mean", "scale")}
        else:
            n, counts = (reduce(add, (one[name] for one in said)) for name in ("texts", "with"))
            given = {"idf": np.log((1.0 + n) / (1.0 + counts)) + 1.0}

    def total(verb: str, arrays: Arrays) -> Arrays:
        found = list(map(Query(verb, {}, given | arrays), parts))
        sent.append(sum(numbers_in(one) for one in found))
        return {name: reduce(add, (one[name] for one in found)) for name in found[0]}

    labels = 0 if classes is None else len(classes)
    tried = tuple(columns.strengths(classes is not None) if strengths is None else strengths)
    # The round in which columns are agreed on is one of them.
    fit = fit_linear(total, labels, folds, tried, MOST_ROUNDS - bool(columns.agreed))
    predictors = [[columns.predictor(one, classes, given) for one in each] for each in fit.theta]
    n_rounds = fit.n_rounds + bool(columns.agreed)
    return SumsFit(predictors, tried, fit.theta, n_rounds, fit.residual, sum(sent), given)
