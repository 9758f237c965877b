"""Mixtures of test domains, and what methods come to on them, with intervals."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.optimize import brentq
from scipy.stats import norm
from sklearn.pipeline import Pipeline

from anymix._arrays import FloatArray
from anymix._parameters import either
from anymix.core import mean_and_error, simplex
from anymix.estimators._row_checks import Rows
from anymix.exceptions import ParameterError
from anymix.sources import Measure


@dataclass(frozen=True)
class Mixtures:
    """Mixtures of named domains: weights (t, p), which need not include each domain alone."""

    names: tuple[str, ...]
    weights: FloatArray
    domains: tuple[str, ...]

    @classmethod
    def of(cls, mixtures: Mapping[str, ArrayLike] | None, domains: list[str]) -> Mixtures:
        """Check mixtures; by default each domain alone, and all in equal parts."""
        p = len(domains)
        if mixtures is None:
            each_and_all = np.vstack([np.eye(p), np.full(p, 1.0 / p)])
            return cls((*domains, "all"), each_and_all, tuple(domains))
        if not isinstance(mixtures, Mapping) or not mixtures:
            raise TypeError(
                "mixtures must be a mapping of names to shares, as {'half': [0.5, 0.5]} or "
                f"{{'half': {{{domains[0]!r}: 1.0}}}}; got {mixtures!r:.60}."
            )
        listed = [_shares(lam, domains) for lam in mixtures.values()]
        weights = np.stack([simplex.check(lam, p, "mixture") for lam in listed])
        return cls(tuple(mixtures), weights, tuple(domains))

    @property
    def _all(self) -> FloatArray:
        """Each domain alone, and then the mixtures."""
        return np.concatenate([np.eye(len(self.domains)), self.weights])

    def versions(self, model: Any) -> list[Any]:
        """Return the model, or its versions for each domain alone and each mixture."""
        if not knows_mixture(model):
            return [model]
        return [for_mixture(model, lam) for lam in self._all]

    def check(self, rows: Rows, judge: Measure) -> None:
        """Refuse domains without rows and, of areas, those with rows of one label alone."""
        for k, name in enumerate(self.domains):
            y = rows.y[rows.domain == k]
            if not y.size:
                raise ValueError(f"there are no rows of the source {name!r} to compare on.")
            if judge.kind == "auc" and np.unique(y).size < 2:
                raise ValueError(
                    f"the rows of {name!r} are of one label alone, so that there is no area under "
                    "the ROC curve; add rows of another label, or choose another measure."
                )

    def found(
        self,
        said: Sequence[Sequence[FloatArray]],
        rows: Rows,
        judge: Measure,
        confidence: float,
    ) -> tuple[Interval, FloatArray]:
        """Judge what each version of each method says: its losses (m,), or probabilities (m, c).

        Returns what each comes to on the mixtures (a, t), and on each domain alone (a, p).
        """
        self.check(rows, judge)
        if judge.kind == "auc":
            return self._areas(said, rows, confidence)
        p, lam = len(self.domains), self.weights
        each = Interval(*np.empty((3, len(said), p + len(lam), p)))
        for a, versions in enumerate(said):
            for table, ends in zip(
                each, self._means(versions, rows, judge, confidence), strict=True
            ):
                table[a] = ends
        alone = np.diagonal(each.mean[:, :p], axis1=1, axis2=2)
        mixed = Interval(*(table[:, p:] for table in each)).mixed(lam)
        if judge.kind == "root":
            mixed, alone = Interval(*map(np.sqrt, mixed)), np.sqrt(alone)
        return mixed, alone

    def _means(
        self, versions: Sequence[FloatArray], rows: Rows, judge: Measure, confidence: float
    ) -> Interval:
        """Return the mean loss of each version on each domain, with its interval: (v, p) each."""
        p = len(self.domains)
        kind: Kind = "share" if judge.binary else "number"
        found = np.empty((3, len(versions), p))
        for k, share in enumerate(rows.shares(p)):
            own = rows.domain == k
            for v, losses in enumerate(versions):
                found[:, v, k] = mean_interval(losses[own], share[own], 1 - confidence, kind)
        least, most = min(0.0, *(float(one.min()) for one in versions)), judge.bound
        mean, lower, upper = found
        # Losses are not below zero, nor above what bounds them: no more are their means.
        lower = np.minimum(mean, np.maximum(lower, 0.0)) if least >= 0 else lower
        upper = upper if most is None else np.maximum(mean, np.minimum(upper, most))
        return Interval(mean, lower, upper)

    def _areas(
        self, said: Sequence[Sequence[FloatArray]], rows: Rows, confidence: float
    ) -> tuple[Interval, FloatArray]:
        """Rank all rows of a mixture against each other, each counting as it does there."""
        p, z = len(self.domains), float(norm.isf((1 - confidence) / 2))
        weights = self._all @ rows.shares(p)
        each = [areas(list(versions), rows.y, weights, z) for versions in said]
        mean, lower, upper = (np.stack(table) for table in zip(*each, strict=True))
        return Interval(mean[:, p:], lower[:, p:], upper[:, p:]), mean[:, :p]

    def worst(
        self, mixed: Interval, alone: FloatArray, judge: Measure
    ) -> tuple[FloatArray, tuple[str, ...]]:
        """Return where each method is worst: on a domain alone, if what is measured is a mean.

        An area can be smaller on a mixture than on each domain, so of those all that are shown.
        """
        if not judge.unit.higher:
            return alone.max(axis=1), self._named(alone.argmax(axis=1))
        every = np.concatenate([alone, mixed.mean], axis=1)
        return every.min(axis=1), self._named(every.argmin(axis=1))

    def _named(self, places: NDArray[np.intp]) -> tuple[str, ...]:
        names = (*self.domains, *self.names)
        return tuple(names[k] for k in places)


def _shares(mixture: ArrayLike | Mapping[str, float], domains: list[str]) -> ArrayLike:
    """Put shares that go by the names of domains in order; who is not named has none.

    >>> _shares({"b": 1.0}, ["a", "b"])
    [0.0, 1.0]
    """
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
    """Ends of the shares m that a test does not refute: |m − mean| ≤ z √(m (1 − m)/n)."""
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
    """Return the ends of the interval for m rows with the label and n without.

    Examples
    --------
    >>> low, high = area_ends(1.0, 20, 20, 1.96)
    >>> round(low, 3), high
    (0.899, 1.0)
    """
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
    """Whether a model, or one that it is made of, uses privileged information.

    A model that states `privileged` is taken at its word; of a search the best counts, of any other
    estimator the estimators among its parameters.

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


def knows_mixture(model: Any) -> bool:
    """Whether a model, or the last step of a pipeline, has a version for each mixture."""
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    return hasattr(last, "for_mixture")


def for_mixture(model: Any, mixture: ArrayLike) -> Any:
    """Return the version of a fitted model for a mixture; earlier steps stay as they are."""
    if not isinstance(model, Pipeline):
        return model.for_mixture(mixture)
    other = copy.copy(model)
    name, last = model.steps[-1]
    other.steps = [*model.steps[:-1], (name, last.for_mixture(mixture))]
    return other
