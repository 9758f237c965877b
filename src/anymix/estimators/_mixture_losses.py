"""Losses of methods on mixtures of test domains, with intervals."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.optimize import brentq
from sklearn.base import is_classifier, is_regressor
from sklearn.pipeline import Pipeline

from anymix._arrays import FloatArray, positions
from anymix._parameters import either
from anymix.core import Loss, mean_and_error, simplex
from anymix.estimators._rows import Rows
from anymix.exceptions import ParameterError
from anymix.sources import Measure, is_of_labels, judge_of


def check_mixtures(
    mixtures: Mapping[str, ArrayLike] | None, domains: list[str]
) -> tuple[tuple[str, ...], FloatArray]:
    """Return names and weights (t, p) of mixtures; by default domains alone, and all equally."""
    p = len(domains)
    if mixtures is None:
        return (*domains, "all"), np.vstack([np.eye(p), np.full(p, 1.0 / p)])
    if not isinstance(mixtures, Mapping) or not mixtures:
        raise TypeError(
            "mixtures must be a mapping of names to shares, as {'half': [0.5, 0.5]} or "
            f"{{'half': {{{domains[0]!r}: 1.0}}}}; got {mixtures!r:.60}."
        )
    listed = [_shares(lam, domains) for lam in mixtures.values()]
    weights = np.stack([simplex.check(lam, p, "mixture") for lam in listed])
    return tuple(mixtures), weights


def losses_on_mixtures(
    said: Sequence[Sequence[FloatArray]],
    rows: Rows,
    judge: Measure,
    confidence: float,
    weights: FloatArray,
) -> tuple[Interval, FloatArray]:
    """Evaluate each version of each method, from its losses (m,) or probabilities (m, c).

    A method has one version, or one for each domain and each mixture.  Returns the losses on the
    mixtures (a, t), and on the domains (a, p).
    """
    p = weights.shape[1]
    if judge.kind == "auc":
        # All rows of a mixture are ranked against each other, each counting as it does there.
        z = float(stats.norm.isf((1 - confidence) / 2))
        of_rows = np.concatenate([np.eye(p), weights]) @ rows.shares(p)
        each = [areas(list(versions), rows.y, of_rows, z) for versions in said]
        mean, lower, upper = (np.stack(table) for table in zip(*each, strict=True))
        return Interval(mean[:, p:], lower[:, p:], upper[:, p:]), mean[:, :p]
    found = np.empty((3, len(said), p + len(weights), p))
    for a, versions in enumerate(said):
        found[:, a] = _means(versions, rows, judge, confidence, p)
    alone = np.diagonal(found[0][:, :p], axis1=1, axis2=2)
    mixed = Interval(*found[:, :, p:]).mixed(weights)
    if judge.kind == "root":
        return Interval(*map(np.sqrt, mixed)), np.sqrt(alone)
    return mixed, alone


def _means(
    versions: Sequence[FloatArray], rows: Rows, judge: Measure, confidence: float, p: int
) -> FloatArray:
    """Return mean, lower and upper loss of each version on each domain: (3, v, p)."""
    kind: Kind = "share" if judge.binary else "number"
    found = np.empty((3, len(versions), p))
    for k, share in enumerate(rows.shares(p)):
        own = rows.domain == k
        for v, losses in enumerate(versions):
            found[:, v, k] = mean_interval(losses[own], share[own], 1 - confidence, kind)
    mean, lower, upper = found
    # Losses are not below zero, nor above what bounds them: no more are their means.
    if min(float(losses.min()) for losses in versions) >= 0:
        lower[:] = np.minimum(mean, np.maximum(lower, 0.0))
    if judge.bound is not None:
        upper[:] = np.maximum(mean, np.minimum(upper, judge.bound))
    return found


def _shares(mixture: ArrayLike | Mapping[str, float], domains: list[str]) -> ArrayLike:
    """Put shares that go by the names of domains in order; who is not named has none."""
    if not isinstance(mixture, Mapping):
        return mixture
    for name in mixture:
        if name not in domains:
            raise ParameterError(f"a mixture names {name!r}; the domains are {either(domains)}.")
    return [float(mixture.get(name, 0.0)) for name in domains]


Kind = Literal["number", "share", "difference"]


class Interval(NamedTuple):
    """Means with the ends of their intervals, of any one shape."""

    mean: FloatArray
    lower: FloatArray
    upper: FloatArray

    def mixed(self, mixture: FloatArray) -> Interval:
        """Return the interval of Σ_k λ_k m_k, k being the last axis."""
        mean = (self.mean * mixture).sum(axis=-1)
        below, above = (
            np.sqrt(((side * mixture) ** 2).sum(axis=-1))
            for side in (self.mean - self.lower, self.upper - self.mean)
        )
        return Interval(mean, mean - below, mean + above)


def mean_interval(
    values: FloatArray, share: FloatArray, alpha: float, kind: Kind = "number"
) -> tuple[float, float, float]:
    """Return mean, lower and upper of values (n,) with weights of sum 1; 1 − α is the confidence.

    Weights count as n = 1/Σ w² equal rows would.

    Examples
    --------
    >>> share = np.full(50, 0.02)
    >>> [round(end, 3) for end in mean_interval(np.zeros(50), share, 0.05, "share")]
    [0.0, 0.0, 0.071]
    """
    mean, n = float(share @ values), 1.0 / float(share @ share)
    if kind == "share":
        return (mean, *wilson(mean, n, alpha))
    if kind == "difference":
        low, high = _agresti_min(values, share, n, alpha)
        return mean, min(mean, low), max(mean, high)
    if n < 2.0 - 1e-9:
        return mean, -np.inf, np.inf
    half = float(stats.t.isf(alpha / 2, n - 1.0) * mean_and_error(values, share)[1])
    return mean, mean - half, mean + half


def wilson(mean: float, n: float, alpha: float) -> tuple[float, float]:
    """Ends of Wilson's interval, the m with |m − mean| ≤ z √(m (1 − m)/n)."""
    z = float(stats.norm.isf(alpha / 2))
    shrunk = 1.0 + z * z / n
    centre = (mean + z * z / (2 * n)) / shrunk
    half = z / shrunk * float(np.sqrt(mean * (1 - mean) / n + z * z / (4 * n * n)))
    # The ends of 0 and 1 are 0 and 1; rounding must not put the mean outside.
    return min(mean, max(centre - half, 0.0)), max(mean, min(centre + half, 1.0))


def _agresti_min(
    values: FloatArray, share: FloatArray, n: float, alpha: float
) -> tuple[float, float]:
    more, less = ((n * float(share @ (sign * values > 0)) + 0.5) / (n + 2) for sign in (1, -1))
    centre, z = more - less, float(stats.norm.isf(alpha / 2))
    half = z * float(np.sqrt((more + less - centre**2) / (n + 2)))
    return max(centre - half, -1.0), min(centre + half, 1.0)


NEAR = 1e-9


def area(scores: FloatArray, positive: NDArray[np.bool_], weight: FloatArray) -> float:
    """Return the area for scores (n,) of rows that have a label, or not.

    Examples
    --------
    >>> scores, positive = np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True])
    >>> area(scores, positive, np.ones(4))
    0.75
    """
    levels, where = np.unique(scores, return_inverse=True)
    with_it, without = (
        np.bincount(where, np.where(rows, weight, 0.0), levels.size)
        for rows in (positive, ~positive)
    )
    below = np.cumsum(without) - without
    total = float(with_it.sum() * without.sum())
    return float(with_it @ (below + without / 2)) / total


def area_ends(value: float, m: float, n: float, z: float) -> tuple[float, float]:
    """Return the ends of Newcombe's interval for m rows with the label and n without."""
    more = max((m + n) / 2 - 1.0, 0.0)

    def beyond(A: float) -> float:
        spread = 1.0 + more * ((1 - A) / (2 - A) + A / (1 + A))
        return (A - value) ** 2 - z * z * A * (1 - A) * spread / (m * n)

    # At 0 and at 1 the standard error vanishes, and they would be taken for the other end.
    low = 0.0 if value <= NEAR else float(brentq(beyond, 0.0, min(value, 1 - NEAR)))
    high = 1.0 if value >= 1 - NEAR else float(brentq(beyond, max(value, NEAR), 1.0))
    return low, high


def area_interval(
    h: FloatArray, y: NDArray[Any], weight: FloatArray, z: float
) -> tuple[float, float, float]:
    """Return area, lower and upper for probabilities (n, c) at rows of labels 0..c−1."""
    c = h.shape[1]
    labels = [1] if c == 2 else [k for k in range(c) if 0 < np.count_nonzero(y == k) < y.size]
    found = []
    for k in labels:
        has = y == k
        value = area(h[:, k], has, weight)
        found.append((value, *area_ends(value, _rows(weight[has]), _rows(weight[~has]), z)))
    mean, low, high = np.mean(found, axis=0).tolist()
    return mean, low, high


def _rows(weight: FloatArray) -> float:
    """As how many equal rows weights count."""
    return float(weight.sum() ** 2 / (weight @ weight))


def areas(versions: list[FloatArray], y: NDArray[Any], weights: FloatArray, z: float) -> Interval:
    """Return the areas (t,) on mixtures, of which each gives the rows weights (t, n).

    versions are a method's probabilities, one for each mixture or one for all.
    """
    found = []
    for t, weight in enumerate(weights):
        rows = weight > 0
        h = versions[t if len(versions) > 1 else 0]
        found.append(area_interval(h[rows], y[rows], weight[rows], z))
    return Interval(*np.array(found).T)


def is_privileged(model: Any) -> bool:
    """Whether a model, or a part of it, uses privileged information.

    The attribute `privileged` of a model decides; for a search that of the best estimator, for any
    other estimator those of the estimators among its parameters.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from anymix.estimators import Joint
    >>> is_privileged(make_pipeline(StandardScaler(), Joint(Ridge())))
    True
    """
    if hasattr(model, "privileged"):
        return bool(model.privileged)
    if hasattr(model, "best_estimator_"):
        return is_privileged(model.best_estimator_)
    return any(is_privileged(part) for part in _parts(model))


def _parts(model: Any) -> list[Any]:
    """Return the estimators among the parameters, those of a pipeline's steps too."""
    given = model.get_params(deep=True).values() if hasattr(model, "get_params") else ()
    return [p for p in given if hasattr(p, "get_params") and not isinstance(p, type)]


def versions_of(model: Any, weights: FloatArray) -> list[Any]:
    """Return the model, or its versions for each domain alone and each mixture."""
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if not hasattr(last, "for_mixture"):
        return [model]
    return [_for_mixture(model, lam) for lam in (*np.eye(weights.shape[1]), *weights)]


def _for_mixture(model: Any, mixture: FloatArray) -> Any:
    """Return the version of a fitted model for a mixture; earlier steps stay as they are."""
    if not isinstance(model, Pipeline):
        return model.for_mixture(mixture)
    other = copy.copy(model)
    name, last = model.steps[-1]
    other.steps = [*model.steps[:-1], (name, last.for_mixture(mixture))]
    return other


def has_tags(model: Any) -> bool:
    """Whether a model has tags, as scikit-learn's estimators do; others just predict."""
    return hasattr(model, "__sklearn_tags__")


def judge_for(models: Mapping[str, Any], measure: str | Loss | None) -> Measure:
    """Return the requested measure, else the usual loss; measures of labels need labels."""
    if not models:
        raise ValueError("there are no models to compare.")
    if measure is None:
        labels = [has_tags(model) and is_classifier(model) for model in models.values()]
        measure = "cross_entropy" if all(labels) else "squared"
    found = judge_of(measure, "squared", 2 if is_of_labels(measure) else None)
    for name, model in models.items():
        if found.of_labels and has_tags(model) and is_regressor(model):
            raise ParameterError(
                f"measure {measure!r} is for labels, and {name!r} predicts numbers, which have "
                "'mae', 'mse' or 'rmse'."
            )
    return found


def said_of(
    model: Any, X: Any, y: NDArray[Any], judge: Measure, classes: NDArray[Any]
) -> FloatArray:
    """Evaluate a fitted model on rows: its losses, or the probabilities of all classes."""
    if judge.binary:
        wrong = np.asarray(model.predict(X) != y, dtype=float)
        return 1.0 - wrong if judge.unit.higher else wrong
    if not judge.of_labels:
        return judge.value(_numbers(model.predict(X), judge), _numbers(y, judge))
    if not hasattr(model, "predict_proba"):
        raise TypeError(
            f"{type(model).__name__} gives no probabilities, which {judge.key} needs; choose the "
            "measure 'error_rate', or wrap the model in CalibratedClassifierCV."
        )
    proba = np.maximum(np.asarray(model.predict_proba(X)), judge.floor)
    labels = np.asarray(model.classes_)
    if judge.kind == "mean":
        return judge.value(proba, positions(y, labels))
    aligned = np.zeros((len(proba), classes.size))
    aligned[:, np.searchsorted(classes, labels)] = proba
    return aligned


def _numbers(values: Any, judge: Measure) -> FloatArray:
    """Return numbers as such; labels that are words cannot be judged as numbers are."""
    held = np.asarray(values)
    try:
        return held.astype(float)
    except ValueError:
        raise ParameterError(
            f"{judge.key!r} measures numbers, but {held.tolist()[0]!r:.60} is a label; compare "
            "classifiers alone, by 'error_rate', 'auc', 'log_loss' or 'brier'."
        ) from None
