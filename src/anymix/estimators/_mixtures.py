"""Mixtures of test domains, and what methods come to on them, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm

from anymix._arrays import FloatArray, IntArray
from anymix._parameters import either
from anymix.core import simplex
from anymix.estimators._auc import areas
from anymix.estimators._intervals import Interval, Kind, mean_interval
from anymix.estimators._privilege import for_mixture, knows_mixture
from anymix.exceptions import ParameterError
from anymix.sources import Measure


class Judging(NamedTuple):
    """Labels or numbers, the number of each row's domain, and weights, where there are any."""

    y: NDArray[Any]
    domain: IntArray
    weight: FloatArray | None = None

    def shares(self, p: int) -> FloatArray:
        """What each row counts for among those of its domain: (p, m), rows of sum 1."""
        given = np.ones(self.domain.size) if self.weight is None else self.weight
        own = np.where(self.domain == np.arange(p)[:, None], given, 0.0)
        return np.asarray(own / own.sum(axis=1, keepdims=True))


class Found(NamedTuple):
    """What each method comes to: on mixtures (a, t), with ends, and on each domain alone (a, p)."""

    mixed: Interval
    alone: FloatArray


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

    def check(self, rows: Judging, judge: Measure) -> None:
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
        rows: Judging,
        judge: Measure,
        confidence: float,
    ) -> Found:
        """Judge what each version of each method says: its losses (m,), or probabilities (m, c)."""
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
        return Found(mixed, alone)

    def _means(
        self, versions: Sequence[FloatArray], rows: Judging, judge: Measure, confidence: float
    ) -> Interval:
        """Return the mean loss of each version on each domain, with its interval: (v, p) each."""
        p, kind = len(self.domains), kind_of(judge)
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
        self, said: Sequence[Sequence[FloatArray]], rows: Judging, confidence: float
    ) -> Found:
        """Rank all rows of a mixture against each other, each counting as it does there."""
        p, z = len(self.domains), float(norm.isf((1 - confidence) / 2))
        weights = self._all @ rows.shares(p)
        each = [areas(list(versions), rows.y, weights, z) for versions in said]
        mean, lower, upper = (np.stack(table) for table in zip(*each, strict=True))
        return Found(Interval(mean[:, p:], lower[:, p:], upper[:, p:]), mean[:, :p])

    def worst(self, found: Found, judge: Measure) -> tuple[FloatArray, tuple[str, ...]]:
        """Return where each method is worst: on a domain alone, if what is measured is a mean.

        An area can be smaller on a mixture than on each domain, so of those all that are shown.
        """
        if not judge.unit.higher:
            return found.alone.max(axis=1), self._named(found.alone.argmax(axis=1))
        every = np.concatenate([found.alone, found.mixed.mean], axis=1)
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


def kind_of(judge: Measure) -> Kind:
    """Say which interval the mean of a measure has."""
    return "share" if judge.binary else "number"
