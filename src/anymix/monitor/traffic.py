"""Monitor the traffic of a fitted model: its mixture, novelty, expected loss, one sentence."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from anymix._arrays import FloatArray, IntArray, named_sources
from anymix._parameters import check, share_rule
from anymix.core import Record, get_loss, loss_name, losses_at
from anymix.monitor.adaptation import adapt_to_labels, adapt_z, with_z
from anymix.monitor.alarm import Alarm, Scores, check_level, mixture_alarm
from anymix.monitor.mixture import SETTINGS, MixtureEstimate, estimate_mixture
from anymix.monitor.unlabelled import (
    ExpectedLoss,
    checked_losses,
    expected_loss,
    for_refitted,
    with_sentence,
)
from anymix.sources import FoldScores, Tables, common_edges, levels_of, levels_of_rows


class Watched(Protocol):
    """The interface that monitoring needs of a fitted model."""

    source_names_: Sequence[Any]

    def log_responsibilities(self, X: Any) -> FloatArray:
        """Return log r_k(x), shape (p, n)."""

    def novelty(self, X: Any) -> FloatArray:
        """Return how far each row is from all sources, shape (n,)."""


@dataclass(frozen=True)
class TrafficReport(Record):
    """The mixture, alarm and expected loss of some traffic.

    Attributes
    ----------
    estimate : MixtureEstimate
        λ̂ with its intervals.
    alarm : Alarm
        Whether the traffic is not a mixture of the sources.
    source_names : tuple of str
        In the order of λ̂.
    sentence : str
        The same for a reader.
    expected_loss : ExpectedLoss or None
        What the model loses on it, where losses at the held-out rows are known.
    """

    estimate: MixtureEstimate
    alarm: Alarm
    source_names: tuple[str, ...]
    sentence: str
    expected_loss: ExpectedLoss | None = None

    def __str__(self) -> str:
        said = [] if self.expected_loss is None else [self.expected_loss.sentence]
        return "\n".join([self.sentence, *said])


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
    y_reference : array (m,), optional
        Labels of the held-out rows, for `expected_loss`: the model's own predictions are judged by
        them.  Neither the sources nor z may have been learned from these rows.
    losses : array (m,), optional
        The deployed model's loss at each held-out row, in place of labels, in any unit.
    method, confidence : see `estimate_mixture`
    level : float
        Rate of false alarms.
    n_bootstrap : int
        Resamples behind the p-value, and behind the intervals of "em".

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
    >>> monitor = Monitor(Model(), rows, domain, losses=np.where(domain == "left", 1.0, 2.0))
    >>> monitor.expected_loss(rng.normal(-1.0, 0.5, size=1000)).value < 1.1
    True
    >>> print(monitor.estimate(rng.normal(5.0, size=1000), look=1).sentence)
    These 1000 rows are not a mixture of the sources (p = ..., look 1; 1 % is the chance that any
    look ever rings falsely; 9... are more unusual than every held-out row): do not trust λ̂ or the
    model here.
    """

    def __init__(
        self,
        model: Watched,
        X_reference: Any,
        sample_domain: Any,
        y_reference: Any = None,
        *,
        losses: ArrayLike | None = None,
        method: str = "inversion",
        confidence: float = 0.95,
        level: float = 0.01,
        n_bootstrap: int = 500,
    ):
        self.model = model
        self.X_reference = X_reference
        self.sample_domain = sample_domain
        self.y_reference = y_reference
        self.losses = losses
        self.method = method
        self.confidence = confidence
        self.level = level
        self.n_bootstrap = n_bootstrap
        self.tested = True
        self.covers = ""
        self.folds: FoldScores | None = None
        self.edges: FloatArray | None = None

    def _check(self) -> None:
        """Say what is wrong with the settings before the model is asked about any row."""
        check(self.level, "level", share_rule)
        for name, rule in SETTINGS.items():
            check(getattr(self, name), name, rule)
        check_level(self.level, self.n_bootstrap)

    @classmethod
    def from_tables(
        cls,
        model: Any,
        tables: Tables | None = None,
        histograms: Sequence[FloatArray] = (),
        **settings: Any,
    ) -> Self:
        """Watch a fitted model by its sources' predictions for held-out rows.

        tables are those that the model was learned from, unless others are given; `settings` are
        losses, method, confidence, level and n_bootstrap.  Without losses, those for
        `expected_loss` come from `held_out_` of the model, what was predicted at each row without
        having learned from it, or from other tables' own targets.

        Where `fit` has trained the densities, on folds and then on all rows, those in use score
        traffic otherwise than those of the folds scored the held-out rows.  So for the alarm each
        row of traffic is scored by the densities of a random fold.  A folder of an older version
        does not hold them: then `alarm.tested` is False.

        Where sites have rounded their tables, `histograms` of log Σ_k D_k(x) at the rows of each
        site say how strange these rows are (see `SiteTable`), and traffic is rounded alike.
        """
        cls(model, None, None, **settings)._check()
        others, tables = tables, model.tables_ if tables is None else tables
        monitor = cls(model, None, None, **settings)
        monitor.domain = np.asarray(tables.sample_domain)
        log_masses, novelty = tables.log_masses, getattr(model, "novelty_", None)
        certificate = getattr(model, "certificate_", None)
        log_r = model.combination_.log_responsibilities(log_masses)
        evidence = getattr(getattr(model, "result_", None), "evidence", None)
        kept = None if others is not None else getattr(evidence, "fold_scores", None)
        given = others is not None or (certificate is not None and not certificate.covers)
        strange = np.zeros(len(monitor.domain))
        if others is None and novelty is not None:
            histograms = novelty.totals
        if kept is not None:
            monitor.folds = kept
        elif histograms:
            monitor.edges, monitor.tested = common_edges(histograms), given
            strange = -levels_of_rows(histograms, monitor.domain, np.random.default_rng(0))
        elif novelty is None or not given or not novelty.is_of(model.tables_):
            monitor.tested = False
        elif others is None:
            strange = novelty.of_each(log_masses, monitor.domain)
        else:
            strange = novelty.score(log_masses)
        monitor.reference = Scores(log_r, strange)
        held_out = getattr(model, "held_out_", None)
        if monitor.losses is not None:
            return monitor
        if others is None:
            # Each row is predicted by what had not seen it.
            monitor.covers = "" if certificate is None else certificate.covers
            monitor.reference_losses = None
            if held_out is not None:
                fresh = getattr(held_out, "crossed", True)
                monitor.reference_losses = _losses_at(model, tables, held_out.predictions, fresh)
        elif others.targets is not None:
            monitor.reference_losses = _losses_at(model, others)
        return monitor

    def scores(self, X: Any) -> Scores:
        """Return the scores of rows that monitoring uses."""
        if self.edges is not None:
            model: Any = self.model
            log_r, total = model.site_scores(X)
            return Scores(log_r, -levels_of(total, self.edges))
        log_r = self.model.log_responsibilities(X)
        needed = self.tested and self.folds is None
        return Scores(log_r, self.model.novelty(X) if needed else np.zeros(log_r.shape[1]))

    @cached_property
    def reference(self) -> Scores:
        """The held-out rows, evaluated once."""
        return self.scores(self.X_reference)

    @cached_property
    def domain(self) -> IntArray:
        """The source 0..p−1 of each held-out row."""
        return named_sources(self.sample_domain, self.model.source_names_)

    @cached_property
    def reference_losses(self) -> Losses | None:
        """The model's losses at the held-out rows and their name, if available."""
        if self.losses is not None:
            return checked_losses(self.losses, len(self.domain)), "", True
        if self.y_reference is None:
            return None
        if not hasattr(self.model, "evaluate"):
            raise ValueError(f"y_reference is of use only to models that evaluate rows; {REMEDY}.")
        names = np.array([str(name) for name in self.model.source_names_], dtype=object)
        tables = self.model.evaluate(self.X_reference, self.y_reference, names[self.domain])
        return _losses_at(self.model, tables)

    def estimate(
        self, X: Any, rng: int | np.random.Generator = 0, look: int | None = None
    ) -> TrafficReport:
        """Return the mixture of the rows X, the alarm, a sentence and, if known, the loss.

        If traffic is tested repeatedly, pass the number of the test as `look`: 1, 2, 3, … The
        probability of any false alarm is then at most the level; see `mixture_alarm`.
        """
        self._check()
        check_level(self.level, self.n_bootstrap, look)
        rng = np.random.default_rng(rng)
        names = tuple(str(name) for name in self.model.source_names_)
        traffic, domain = self.scores(X), self.domain
        estimate = _mixture(self, traffic, self.confidence, rng)
        alarm = _alarm(self, X, traffic, rng, look)
        said, lost = describe_traffic(estimate, alarm, names), None
        if self.reference_losses is not None:
            losses, name, fresh = self.reference_losses
            known = traffic.log_r, self.reference.log_r, domain, losses, name
            found = expected_loss(estimate, *known, trusted=not alarm.rings)
            if self.covers:
                found = for_refitted(found, 0.0 if losses.min() >= 0.0 else -np.inf)
            lost = with_sentence(replace(found, fresh=fresh, covers=self.covers))
        return TrafficReport(estimate, alarm, names, said, lost)

    def expected_loss(self, X: Any, rng: int | np.random.Generator = 0) -> ExpectedLoss:
        """Return what the deployed model loses on the rows X, without their labels.

        Σ_k λ̂_k L_k, with an interval; see `ExpectedLoss`.  `estimate` finds it, too, and once.
        """
        found = self.estimate(X, rng).expected_loss
        if found is None:
            raise ValueError(f"the model's losses at the held-out rows are not known; {REMEDY}.")
        return found

    def adapt(self, X: Any, y: ArrayLike | None = None, rng: int | np.random.Generator = 0) -> Any:
        """Return a copy of the model whose z suits the traffic X, with or without its labels.

        Without labels z minimises max_λ Σ_k λ_k L_k(z) on the held-out rows that the model carries,
        over all mixtures λ in joint intervals for the shares of the traffic (`with_mixtures`), and
        the copy has a certificate for these mixtures.  Intervals and bounds may each fail with half
        of what the confidence leaves.  If the alarm rings, as for rows that no source explains, or
        could not be tested, z stays, with a warning.  A model without tables moves z towards λ̂ by
        the width of its intervals (`adapt_z`).  With labels z is then learned from them, held near
        that (`adapt_labelled`).  Without such tables, or with labels, there is no certificate for
        the new z: `certificate_` is None.
        """
        report = self.estimate(X, rng)
        adapted: Any = self.model
        why = _untrusted(report.alarm)
        if why and y is None:
            warnings.warn(f"z stays as it is: {why}.", UserWarning, stacklevel=2)
            return copy.copy(adapted)
        known = getattr(getattr(adapted, "result_", None), "evidence", None)
        if known is None or known.tables is None or report.estimate.joint_lower is None:
            adapted = with_z(adapted, adapt_z(adapted.z_, report.estimate, report.alarm))
        elif not why:
            each = (1.0 + self.confidence) / 2.0
            found = _mixture(self, self.scores(X), each, np.random.default_rng(0))
            names = [str(name) for name in adapted.source_names_]
            mixtures = dict(zip(names, np.transpose(found.intervals(True)).tolist(), strict=True))
            settings = {"objective": "robust", "shrinkage": 0.0, "confidence": each}
            adapted = adapted.with_mixtures(mixtures, **settings)
        return adapted if y is None else adapt_to_labels(adapted, X, y)


def _alarm(
    monitor: Monitor, X: Any, traffic: Scores, rng: np.random.Generator, look: int | None
) -> Alarm:
    """Test the traffic, scored by densities that have learned from no row of the reference."""
    if not monitor.tested:
        return Alarm(False, 1.0, monitor.level, 0.0, look, tested=False)
    reference, domain, kept = monitor.reference, monitor.domain, monitor.folds
    if kept is not None:
        model: Any = monitor.model
        traffic = Scores(*model.fold_scores(X, rng))
        log_r = np.asarray(reference.log_r)[:, kept.rows]
        reference, domain = Scores(log_r, kept.novelty), domain[kept.rows]
    settings = monitor.level, monitor.n_bootstrap, rng, look
    return mixture_alarm(traffic, reference, domain, *settings)


def _mixture(
    monitor: Monitor, traffic: Scores, confidence: float, rng: np.random.Generator
) -> MixtureEstimate:
    """Estimate the shares of the sources in the traffic, with the settings of a monitor."""
    return estimate_mixture(
        traffic.log_r,
        monitor.reference.log_r,
        monitor.domain,
        method=monitor.method,
        n_bootstrap=monitor.n_bootstrap,
        confidence=confidence,
        rng=rng,
    )


def _untrusted(alarm: Alarm) -> str:
    """Say why λ̂ may describe no real mixture; empty if it does."""
    if not alarm.tested:
        return "whether these rows are a mixture of the sources was not tested"
    if not alarm.rings:
        return ""
    strange = f"; {alarm.n_outliers} are more unusual than every held-out row"
    return (
        f"these rows are not a mixture of the sources (p = {alarm.p_value:.2g}"
        f"{strange if alarm.n_outliers else ''})"
    )


def describe_traffic(estimate: MixtureEstimate, alarm: Alarm, names: Sequence[str]) -> str:
    """Describe the traffic in one sentence.

    Examples
    --------
    >>> estimate = MixtureEstimate(
    ...     mixture=np.array([0.9, 0.1]), lower=np.array([0.8, 0.0]), upper=np.array([1.0, 0.2]),
    ...     condition_number=1.5, method="inversion", n=200, confidence=0.95)
    >>> print(describe_traffic(estimate, Alarm(False, 0.4, 0.01, 0.05), ["a", "b"]))
    These 200 rows are a mixture of 90 % a (80 to 100), 10 % b (0 to 20), each range by itself with
    95 % confidence; nothing strange (p = 0.4, one look).
    """
    looks = (
        "one look"
        if alarm.look is None
        else f"look {alarm.look}; {100 * alarm.level:g} % is the chance that any look ever rings "
        "falsely"
    )
    strange = f"nothing strange (p = {alarm.p_value:.2g}, {looks})" if alarm.tested else UNTESTED
    if alarm.rings:
        if alarm.n_outliers:
            looks += f"; {alarm.n_outliers} are more unusual than every held-out row"
        return (
            f"These {estimate.n} rows are not a mixture of the sources (p = {alarm.p_value:.2g}, "
            f"{looks}): do not trust λ̂ or the model here."
        )
    order = np.argsort(-estimate.mixture, kind="stable")
    shares = ", ".join(
        f"{100 * estimate.mixture[k]:.0f} % {names[k]} "
        f"({100 * estimate.lower[k]:.0f} to {100 * estimate.upper[k]:.0f})"
        for k in order
    )
    return (
        f"These {estimate.n} rows are a mixture of {shares}, each range by itself with "
        f"{100 * estimate.confidence:g} % confidence; {strange}."
    )


# Where the densities in use have scored no held-out rows.
UNTESTED = (
    "if they are one, which only new rows of each source can tell: give them, as "
    "Monitor(model, X_reference, sample_domain) or with --reference"
)
# What to do where there are none.
REMEDY = (
    "give losses, the deployed model's loss at each held-out row, or y_reference, the labels of "
    "X_reference, to Monitor(model, X_reference, sample_domain)"
)


# Losses at the held-out rows (m,), the name of the loss, and whether z never saw these rows.
Losses = tuple[FloatArray, str, bool]


def _losses_at(
    model: Any, tables: Tables, h: FloatArray | None = None, fresh: bool = True
) -> Losses:
    """Losses of the model's predictions h, by default those at rows that all sources answered."""
    if h is None:
        h = model.combination_.predict(tables.log_masses, tables.all_predictions)
    values = losses_at(np.asarray(h), np.asarray(tables.targets), model.loss)
    return np.asarray(values), loss_name(get_loss(model.loss)), fresh
