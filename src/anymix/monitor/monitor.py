"""Watch the traffic of a fitted model: its mixture, its strangeness, and one sentence."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anymix._arrays import FloatArray
from anymix.core import Record
from anymix.monitor.adapt import adapt_labelled, adapt_z
from anymix.monitor.alarm import Alarm, Scores, mixture_alarm
from anymix.monitor.estimate import MixtureEstimate, estimate_mixture
from anymix.sources import evaluate


class Watched(Protocol):
    """What monitoring asks of a fitted model."""

    source_names_: Sequence[Any]

    def log_responsibilities(self, X: Any) -> FloatArray:
        """Return log r_k(x), shape (p, n)."""

    def novelty(self, X: Any) -> FloatArray:
        """Return how far each row is from all sources, shape (n,)."""


@dataclass(frozen=True)
class TrafficReport(Record):
    """What today's traffic is.

    Attributes
    ----------
    estimate : MixtureEstimate
        λ̂ with its intervals.
    alarm : Alarm
        Whether the traffic is no mixture of the sources.
    source_names : tuple of str
        In the order of λ̂.
    sentence : str
        The same for a reader.
    """

    estimate: MixtureEstimate
    alarm: Alarm
    source_names: tuple[str, ...]
    sentence: str


class Monitor:
    """Compare traffic with held-out rows of known source.

    Parameters
    ----------
    model : Watched
        A fitted model: `log_responsibilities`, `novelty`, `source_names_`.
    X_reference : rows as the model takes them
        Held-out rows of all sources, on which no density was trained.
    sample_domain : array (m,)
        The source of each held-out row: a name out of `source_names_`, or its position 0..p−1.
    method, confidence : see `estimate_mixture`
    level : float
        Rate of false alarms.
    n_bootstrap : int
        Resamples behind intervals and p-value.

    Examples
    --------
    >>> class Model:
    ...     source_names_ = ["left", "right"]
    ...     def log_responsibilities(self, X):
    ...         return -np.logaddexp(0.0, [8.0 * X, -8.0 * X])
    ...     def novelty(self, X):
    ...         return np.minimum(abs(X - 1.0), abs(X + 1.0))
    >>> rng = np.random.default_rng(0)
    >>> domain = np.repeat(["left", "right"], 300)
    >>> rows = rng.normal(np.where(domain == "left", -1.0, 1.0), 0.5)
    >>> monitor = Monitor(Model(), rows, domain)
    >>> report = monitor.estimate(rng.normal(rng.choice([-1.0, 1.0], 1000, p=[0.2, 0.8]), 0.5))
    >>> report.estimate.mixture.round(1), report.alarm.rings
    (array([0.2, 0.8]), False)
    >>> monitor.estimate(rng.normal(5.0, size=1000)).sentence
    'These 1000 rows are no mixture of the sources (p = 0.002): do not trust λ̂ or the model here.'
    """

    def __init__(
        self,
        model: Watched,
        X_reference: Any,
        sample_domain: ArrayLike,
        *,
        method: str = "inversion",
        confidence: float = 0.95,
        level: float = 0.01,
        n_bootstrap: int = 500,
    ):
        self.model = model
        self.X_reference = X_reference
        self.sample_domain = sample_domain
        self.method = method
        self.confidence = confidence
        self.level = level
        self.n_bootstrap = n_bootstrap

    def scores(self, X: Any) -> Scores:
        """Return what monitoring sees of some rows."""
        return Scores(self.model.log_responsibilities(X), self.model.novelty(X))

    @cached_property
    def reference(self) -> Scores:
        """The held-out rows, evaluated once."""
        return self.scores(self.X_reference)

    def estimate(self, X: Any, rng: int | np.random.Generator = 0) -> TrafficReport:
        """Return the mixture of the rows X, the alarm, and a sentence."""
        rng = np.random.default_rng(rng)
        traffic, domain = (
            self.scores(X),
            domain_codes(self.sample_domain, self.model.source_names_),
        )
        estimate = estimate_mixture(
            traffic.log_r,
            self.reference.log_r,
            domain,
            method=self.method,
            n_bootstrap=self.n_bootstrap,
            confidence=self.confidence,
            rng=rng,
        )
        alarm = mixture_alarm(traffic, self.reference, domain, self.level, self.n_bootstrap, rng)
        names = tuple(str(name) for name in self.model.source_names_)
        return TrafficReport(estimate, alarm, names, describe(estimate, alarm, names))

    def adapt(self, X: Any, y: ArrayLike | None = None, rng: int | np.random.Generator = 0) -> Any:
        """Return a copy of the model whose z suits the traffic X, with or without its labels.

        Without labels z moves to λ̂ as far as its interval is narrow (`adapt_z`); with labels it is
        then learned from them, held near that (`adapt_labelled`).  The certificate is for the old z
        and does not go with it.
        """
        report = self.estimate(X, rng)
        adapted: Any = copy.copy(self.model)
        adapted.z_ = adapt_z(adapted.z_, report.estimate, report.alarm)
        adapted.certificate_ = None
        if y is not None:
            predictions, targets = _judged(adapted, X, y)
            adapted.z_ = adapt_labelled(
                adapted.log_responsibilities(X),
                predictions,
                targets,
                adapted.z_,
                adapted.loss,
                eta=adapted.eta,
            )
        return adapted


def _judged(model: Any, X: Any, y: ArrayLike) -> tuple[FloatArray, NDArray[Any]]:
    """What each source says of the rows, and what they really are."""
    classes = getattr(model, "classes_", None)
    predictions = evaluate(model.sources_, X, classes, model.router_).predictions
    labels = np.asarray(y)
    if classes is None:
        return predictions, labels
    unknown = np.setdiff1d(labels, classes)
    if unknown.size:
        raise ValueError(f"y has the label {unknown.tolist()[0]!r}, unknown to the model.")
    return predictions, np.searchsorted(classes, labels)


def domain_codes(sample_domain: ArrayLike, names: Sequence[Any]) -> NDArray[np.intp]:
    """Turn names of sources into their positions; positions stay as they are.

    Examples
    --------
    >>> domain_codes(["b", "a", "b"], ["a", "b"])
    array([1, 0, 1])
    """
    domain, known = np.asarray(sample_domain), list(names)
    if all(label in known for label in domain.tolist()):
        position = {name: k for k, name in enumerate(known)}
        return np.array([position[label] for label in domain.tolist()], dtype=np.intp)
    if domain.dtype.kind not in "iu":
        unknown = next(label for label in domain.tolist() if label not in known)
        raise ValueError(
            f"sample_domain names the source {unknown!r}, which the model does not have; its "
            f"sources are {', '.join(map(repr, known))}."
        )
    return domain.astype(np.intp)


def describe(estimate: MixtureEstimate, alarm: Alarm, names: Sequence[str]) -> str:
    """Say in one sentence what the traffic is.

    Examples
    --------
    >>> estimate = MixtureEstimate(
    ...     mixture=np.array([0.9, 0.1]), lower=np.array([0.8, 0.0]), upper=np.array([1.0, 0.2]),
    ...     condition_number=1.5, method="inversion", n=200, confidence=0.95)
    >>> print(describe(estimate, Alarm(False, 0.4, 0.01, 0.05), ["a", "b"]))
    These 200 rows are a mixture of 90 % a (80 to 100), 10 % b (0 to 20); nothing strange (p = 0.4).
    """
    if alarm.rings:
        return (
            f"These {estimate.n} rows are no mixture of the sources (p = {alarm.p_value:.2g}): do "
            "not trust λ̂ or the model here."
        )
    order = np.argsort(-estimate.mixture, kind="stable")
    shares = ", ".join(
        f"{100 * estimate.mixture[k]:.0f} % {names[k]} "
        f"({100 * estimate.lower[k]:.0f} to {100 * estimate.upper[k]:.0f})"
        for k in order
    )
    return (
        f"These {estimate.n} rows are a mixture of {shares}; nothing strange "
        f"(p = {alarm.p_value:.2g})."
    )
