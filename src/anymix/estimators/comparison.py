"""Methods against target mixtures: one table, with intervals, the worst mixture, and who cheats.

Everything is made from a table of losses, one row per method and one column per point.  `compare`
asks fitted models for it, `compare_tables` what the sources have said already.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm
from sklearn.base import is_classifier

from anymix._arrays import FloatArray, IntArray, positions
from anymix.core import Averaged, Combination, Loss, Record, get_loss, losses_at, mix, simplex
from anymix.estimators._format import lay_out, number
from anymix.estimators._intervals import Interval, wilson
from anymix.estimators._order import check_order
from anymix.estimators._privilege import for_mixture, is_privileged, knows_mixture
from anymix.estimators._rows import check_domains
from anymix.estimators._views import ComparisonViews
from anymix.estimators.verdict import Verdict
from anymix.sources import PROBABILITY_FLOOR, Tables, answers


class Answers(NamedTuple):
    """What a method says at the points of tables, (m,) or (m, c), found beforehand."""

    values: FloatArray


Method = Combination | Averaged | Answers | int | FloatArray


@dataclass(frozen=True)
class Comparison(ComparisonViews, Record):
    """loss[a, t] of method a on mixture t, with an interval; worst[a] is over all mixtures.

    verdicts are there if the rows are new to the model and its sources have been asked about them.
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

    def table(self, digits: int = 4) -> str:
        """Lay the numbers out as text; * marks methods that use privileged information."""
        names = [m + "*" * p for m, p in zip(self.methods, self.privileged, strict=True)]
        values = np.column_stack([self.loss, self.worst])
        cells = [[number(v, digits) for v in row] for row in values]
        return lay_out(names, [*self.mixtures, "worst"], cells)

    def __str__(self) -> str:
        measure = "share of wrong labels" if self.measure == "accuracy" else self.measure
        star = "; * uses what the others must do without" if any(self.privileged) else ""
        return f"{self.table()}\n({measure}, smaller is better{star})"


def compare(
    models: Mapping[str, Any],
    X: Any,
    y: ArrayLike,
    sample_domain: ArrayLike,
    mixtures: Mapping[str, ArrayLike] | None = None,
    loss: str | Loss | None = None,
    confidence: float = 0.95,
) -> Comparison:
    """Judge fitted models on mixtures of the test domains.

    Parameters
    ----------
    models : mapping of names to fitted models
    X, y, sample_domain : test rows, and the domain of each
    mixtures : mapping of names to λ, optional
        By default each domain alone and all in equal parts.  The loss on a mixture is
        Σ_k λ_k L_k, so the worst mixture of all is always a single domain.
    loss : "accuracy", the name of a loss, or a Loss, optional
        With "accuracy" the table shows the share of wrong labels.  By default the cross-entropy of
        classifiers, with probabilities of at least 1e-6, and the squared error of other models.
    confidence : float
        Of the (normal) intervals.

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
    check_order(X, y=y, sample_domain=sample_domain)
    target = np.asarray(y)
    names, domain = check_domains(sample_domain, target.size, None)
    asked = _Mixtures.of(mixtures, [str(name) for name in names])
    measure = loss if loss is not None else _usual_loss(models)
    losses = {
        name: np.stack([_row_losses(one, X, target, measure) for one in asked.versions(model)])
        for name, model in models.items()
    }
    privileged = [is_privileged(model) for model in models.values()]
    return asked.compare(losses, domain, privileged, measure, confidence)


def compare_tables(
    tables: Tables,
    methods: Mapping[str, Method],
    names: Iterable[str],
    loss: str | Loss,
    mixtures: Mapping[str, ArrayLike] | None = None,
    confidence: float = 0.95,
) -> Comparison:
    """Judge ways of combining the sources, from what these say at labelled points.

    Parameters
    ----------
    tables : Tables
        With targets and the domain of each point.
    methods : mapping of names to a Combination, to the number of a source that is taken alone, to
        weights (p, m) of the sources at the points, or to `Answers`
    names : of the sources
    loss : str or Loss
        What is said at the label that occurred is enough, as combinations are averages.
    mixtures, confidence : see `compare`

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
    targets = np.asarray(tables.targets)
    losses = {
        name: losses_at(_predicted(method, tables), targets, loss)[None]
        for name, method in methods.items()
    }
    asked, domain = _Mixtures.of(mixtures, list(names)), np.asarray(tables.sample_domain)
    told = losses, domain, [False] * len(losses), loss, confidence
    return asked.compare(*told, weight=tables.sample_weight)


def usual_methods(tables: Tables, ours: Method, names: Iterable[str]) -> dict[str, Method]:
    """Name each source alone, their average, the likeliest source, and the combination."""
    p, m = tables.log_masses.shape
    methods: dict[str, Method] = {name: k for k, name in enumerate(names)}
    methods["uniform"] = np.full((p, m), 1.0 / p)
    methods["likeliest source"] = np.eye(p)[:, tables.log_masses.argmax(axis=0)]
    methods["anymix"] = ours
    return methods


def _predicted(method: Method, tables: Tables) -> FloatArray:
    if isinstance(method, Answers):
        return method.values
    if isinstance(method, Combination | Averaged):
        return answers(tables, Averaged.of(method))
    if isinstance(method, int):
        return np.asarray(tables.predictions[method])
    return mix(np.asarray(method, dtype=float), tables.predictions)


def _usual_loss(models: Mapping[str, Any]) -> str:
    if not models:
        raise ValueError("there are no models to compare.")
    return "cross_entropy" if all(map(is_classifier, models.values())) else "squared"


@dataclass(frozen=True)
class _Mixtures:
    """Mixtures of named domains: weights (t, p), which need not include each domain alone."""

    names: tuple[str, ...]
    weights: FloatArray
    domains: tuple[str, ...]

    @classmethod
    def of(cls, mixtures: Mapping[str, ArrayLike] | None, domains: list[str]) -> _Mixtures:
        p = len(domains)
        if mixtures is None:
            each_and_all = np.vstack([np.eye(p), np.full(p, 1.0 / p)])
            return cls((*domains, "all"), each_and_all, tuple(domains))
        weights = np.stack([simplex.check(lam, p, "mixture") for lam in mixtures.values()])
        return cls(tuple(mixtures), weights, tuple(domains))

    def versions(self, model: Any) -> list[Any]:
        """Return the model, or its versions for each domain alone and each mixture."""
        if not knows_mixture(model):
            return [model]
        corners = np.eye(len(self.domains))
        return [for_mixture(model, lam) for lam in np.concatenate([corners, self.weights])]

    def compare(
        self,
        losses: Mapping[str, FloatArray],
        domain: IntArray,
        privileged: list[bool],
        measure: str | Loss,
        confidence: float,
        weight: FloatArray | None = None,
    ) -> Comparison:
        """Average losses (versions, m) of each method over domains, and these over mixtures."""
        lam, p = self.weights, len(self.domains)
        shape, z = (len(losses), p + len(lam), p), float(norm.ppf(0.5 + confidence / 2))
        found = Interval(*np.empty((3, *shape)))
        for a, values in enumerate(losses.values()):
            for k, name in enumerate(self.domains):
                own = values[:, domain == k]
                if not own.shape[1]:
                    raise ValueError(f"there are no rows of the source {name!r} to compare on.")
                told = _interval(own, weight, domain == k, z, shares=measure == "accuracy")
                for table, one in zip(found, told, strict=True):
                    table[a, :, k] = one
        alone = np.diagonal(found.mean[:, :p], axis1=1, axis2=2)
        mixed = Interval(*(table[:, p:] for table in found)).mixed(lam)
        return Comparison(
            methods=tuple(losses),
            privileged=tuple(privileged),
            sources=self.domains,
            mixtures=self.names,
            mixture_weights=lam,
            loss=mixed.mean,
            lower=mixed.lower,
            upper=mixed.upper,
            worst=alone.max(axis=1),
            worst_mixture=tuple(self.domains[k] for k in alone.argmax(axis=1)),
            measure=measure if isinstance(measure, str) else type(measure).__name__,
        )


def _interval(
    losses: FloatArray, weight: FloatArray | None, rows: NDArray[np.bool_], z: float, shares: bool
) -> Interval:
    """Mean of losses (versions, n) over the rows of a domain, ± z errors; shares stay in [0, 1]."""
    given = np.ones(losses.shape[1]) if weight is None else weight[rows]
    share = given / given.sum()
    mean, n = losses @ share, 1.0 / float(share @ share)
    if shares:
        return Interval(mean, *wilson(mean, n, z))
    spread = ((share * (losses - mean[:, None])) ** 2).sum(axis=1)
    half = z * np.sqrt(spread * n / max(n - 1.0, 1.0))
    return Interval(mean, mean - half, mean + half)


def _row_losses(model: Any, X: Any, y: NDArray[Any], measure: str | Loss) -> FloatArray:
    """Ask a fitted model about rows, and return its loss at each of them."""
    if measure == "accuracy":
        return np.asarray(model.predict(X) != y, dtype=float)
    loss = get_loss(measure)
    if not loss.of_classes:
        return loss.value(np.asarray(model.predict(X), dtype=float), y.astype(float))
    proba, classes = np.asarray(model.predict_proba(X)), np.asarray(model.classes_)
    if loss.takes == "label":
        proba = np.maximum(proba, PROBABILITY_FLOOR)
    return losses_at(proba, positions(y, classes), loss)
