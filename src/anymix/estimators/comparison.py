"""Methods against target mixtures: one table, with intervals, the worst mixture, and who cheats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm
from sklearn.base import is_classifier

from anymix._arrays import FloatArray, positions
from anymix.core import CrossEntropy, Loss, Record, get_loss, simplex
from anymix.estimators._format import lay_out, number
from anymix.estimators._rows import check_domains
from anymix.sources import PROBABILITY_FLOOR


@dataclass(frozen=True)
class Comparison(Record):
    """loss[a, t] of method a on mixture t, with an interval; worst[a] is over all mixtures."""

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
    target = np.asarray(y)
    names, domain = check_domains(sample_domain, target.size, None)
    p = len(names)
    if mixtures is None:
        mixtures = {str(n): np.eye(p)[k] for k, n in enumerate(names)} | {"all": simplex.uniform(p)}
    weights = np.stack([simplex.check(lam, p, "mixture") for lam in mixtures.values()])
    measure = loss if loss is not None else _usual_loss(models)
    test = _Test(X, target, domain, measure)
    corners = np.eye(p)
    mean, error = np.empty((len(models), len(weights))), np.empty((len(models), len(weights)))
    alone = np.empty((len(models), p))
    for a, model in enumerate(models.values()):
        L, se = test.losses(model, np.concatenate([corners, weights]))
        alone[a] = np.diag(L[:p])
        mean[a] = (weights * L[p:]).sum(axis=1)
        error[a] = np.sqrt(((weights * se[p:]) ** 2).sum(axis=1))
    width = float(norm.ppf(0.5 + confidence / 2)) * error
    return Comparison(
        methods=tuple(models),
        privileged=tuple(bool(getattr(m, "privileged", False)) for m in models.values()),
        sources=tuple(map(str, names)),
        mixtures=tuple(mixtures),
        mixture_weights=weights,
        loss=mean,
        lower=mean - width,
        upper=mean + width,
        worst=alone.max(axis=1),
        worst_mixture=tuple(str(names[k]) for k in alone.argmax(axis=1)),
        measure=measure if isinstance(measure, str) else type(measure).__name__,
    )


def _usual_loss(models: Mapping[str, Any]) -> str:
    if not models:
        raise ValueError("there are no models to compare.")
    return "cross_entropy" if all(map(is_classifier, models.values())) else "squared"


@dataclass(frozen=True)
class _Test:
    """Test rows, and how models are judged on them."""

    X: Any
    y: NDArray[Any]
    domain: NDArray[np.intp]
    loss: str | Loss

    def losses(self, model: Any, mixtures: FloatArray) -> tuple[FloatArray, FloatArray]:
        """L_k and its standard error for each mixture (t, p); most models do not look at it."""
        informed = hasattr(model, "for_mixture")
        versions = [model.for_mixture(lam) for lam in mixtures] if informed else [model]
        p = mixtures.shape[1]
        L, se = np.empty((len(versions), p)), np.empty((len(versions), p))
        for t, version in enumerate(versions):
            values = self.at_rows(version)
            for k in range(p):
                own = values[self.domain == k]
                L[t, k], se[t, k] = own.mean(), own.std() / np.sqrt(max(own.size - 1, 1))
        shape = (len(mixtures), p)
        return np.broadcast_to(L, shape), np.broadcast_to(se, shape)

    def at_rows(self, model: Any) -> FloatArray:
        """Return the loss at each row."""
        if self.loss == "accuracy":
            return np.asarray(model.predict(self.X) != self.y, dtype=float)
        loss = get_loss(self.loss)
        if not (isinstance(loss, CrossEntropy) or loss.vector):
            return loss.value(np.asarray(model.predict(self.X), dtype=float), self.y.astype(float))
        proba, classes = model.predict_proba(self.X), model.classes_
        label = positions(self.y, classes)
        if loss.vector:
            return loss.value(proba, np.eye(len(classes))[label])
        own = proba[np.arange(self.y.size), label]
        return loss.value(np.maximum(own, PROBABILITY_FLOOR), self.y)
