"""What a fitted model can be asked: verbs on rows make tables, and those on tables do the work."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from anymix._arrays import FloatArray, n_rows
from anymix._parameters import Either, Number, Share, check
from anymix.core import Assumptions, Certificate, CrossFittedCombination, Loss
from anymix.estimators._advice import advice, said_aside, said_of_choices, suspicion
from anymix.estimators._ensemble import SourceEnsemble
from anymix.estimators._frames import labelled
from anymix.estimators._order import check_order
from anymix.estimators._rows import check_domains, check_every_source, check_X
from anymix.estimators._targets import check_complete_y
from anymix.estimators._warnings import names_checked
from anymix.estimators.comparison import Answers, Comparison, compare_tables, usual_methods
from anymix.sources import (
    ConsultingGain,
    HeldOut,
    Influence,
    LearningSettings,
    Novelty,
    Seen,
    Tables,
    certify_tables,
    evaluate,
    find_influence,
    log_reference,
    masses_of,
    measure_of,
    usual_clip,
    warn_of_training_rows,
    without_confidence,
)
from anymix.storage import content_of

CERTIFIED_ON_ALL = "a mixture may be all of it: add some of its rows to certify on"


class Questions(SourceEnsemble):
    """Questions to sources that a `Combination` weighs, with the tables it was learned from."""

    combination_: CrossFittedCombination
    certificate_: Certificate | None
    tables_: Tables
    advice_: ConsultingGain | None
    held_out_: HeldOut
    novelty_: Novelty | None
    set_aside_: tuple[str, ...]
    loss: str | Loss
    rule: str
    objective: str
    shrinkage: float | str
    eta: float
    calibrate: bool
    consult: bool
    confidence: float
    skip_below: float

    def _goal(self) -> LearningSettings:
        return LearningSettings(
            loss=self.loss,
            eta=self.eta,
            rule=self.rule,
            objective=self.objective,
            shrinkage=self.shrinkage,
            calibrate=self.calibrate,
            confidence=self.confidence,
            consult=self.consult,
        )

    @cached_property
    def influence_(self) -> Influence:
        """What the rows of each site, and each source as a whole, do to the losses of the others.

        Found when it is asked for: z is learned anew without each of them, on some thousand of
        the held-out rows.
        """
        names = [str(name) for name in self.source_names_]
        aside = tuple(k for k, name in enumerate(names) if name in self.set_aside_)
        return find_influence(self.tables_, replace(self._goal(), set_aside=aside), names)

    @property
    def comparison_(self) -> Comparison:
        """Each source alone, their average, the likeliest source and this model, on held-out rows.

        Each row is judged by the part of the model that was learned without it.
        """
        return self.compared()

    def compared(self, measure: str | Loss | None = None) -> Comparison:
        """Return `comparison_` by another measure: "accuracy", "auc", "mae", "rmse", ..."""
        names = [str(name) for name in self.source_names_]
        methods = usual_methods(self.tables_, Answers(self.held_out_.predictions), names)
        given = self.tables_, methods, names, self.loss
        return compare_tables(*given, confidence=self.confidence, measure=measure)

    def describe(self) -> str:
        """Say what was learned: the certificate, z, the model beside its rivals, and warnings.

        They are there if the plain average of the sources is better on held-out rows, and if a
        site or source moves the loss of another.
        """
        check_is_fitted(self, "combination_")
        comparison, certificate = self.comparison_, self.certificate_
        named = zip(self.source_names_, self.combination_.z, strict=True)
        sentence = "" if certificate is None else f"{certificate.sentence}\n"
        parts = (
            f"{sentence}{said_aside(self.set_aside_)}"
            f"z: {', '.join(f'{name} {weight:.3g}' for name, weight in named)}",
            *said_of_choices(self),
            str(comparison),
            advice(self, comparison),
            suspicion(self),
        )
        return "\n\n".join(filter(None, parts))

    def evaluate(self, X: Any, y: Any = None, sample_domain: Any = None) -> Tables:
        """Ask all sources about rows, once: the tables that every verb on tables takes.

        y and sample_domain, the label and the source of each row, are added where they are known.
        """
        check_is_fitted(self, "sources_")
        check_order(X, y=y, sample_domain=sample_domain)
        X = check_X(self, X)
        with names_checked(self):
            tables = evaluate(self.sources_, X, self._labels, self.router_)
        if y is None:
            return tables
        check_complete_y(y)
        _, domain = check_domains(sample_domain, n_rows(X), [str(n) for n in self.source_names_])
        return tables.labelled(y, domain)

    def model_weights(self, X: Any, *, frame: bool = False) -> Any:
        """How much each source's *model* counts at each row, through all who hear it: (n, p).

        Σ_k weight_k(x) a_kj, with a_kj how source k takes what the model of source j says.  Of
        labels these are weights of logarithms, which need not sum to 1.  What a second round of
        training has heard counts as the source's own.  frame=True is as in `source_weights`.
        """
        weights = self._model_weights(X)
        return labelled(weights, X, self.source_names_) if frame else weights

    def _model_weights(self, X: Any) -> FloatArray:
        check_is_fitted(self, "combination_")
        X = check_X(self, X)
        if len(self.sources_) == 1:
            return np.ones((n_rows(X), 1))
        with names_checked(self):
            return self.combination_.model_weights(self._log_masses(X)).T

    def model_evaluations(self, X: Any) -> dict[str, int]:
        """How many of the p·n model evaluations `predict` makes at these rows, and saves."""
        weights = self.source_weights(X)
        asked = weights >= self.skip_below / weights.shape[1]
        all_asked = self.rule != "marginal" or self.combination_.consults
        made = weights.size if all_asked else int(asked.sum())
        return {"made": made, "saved": weights.size - made}

    def certify(
        self,
        X: Any,
        y: ArrayLike,
        sample_domain: ArrayLike,
        *,
        confidence: float | None = 0.95,
        loss_bound: float | None = None,
        measure: str | Loss | None = None,
    ) -> Certificate:
        """State what new rows guarantee: rows that neither sources nor z have seen.

        Parameters
        ----------
        X, y, sample_domain : rows, their labels or numbers, the source of each
            Rows that `fit` has seen are recognised, and earn no confidence.
        confidence : float or None
        loss_bound : float, optional
            A bound M on the loss of any row; it makes the confidence exact.  Without it losses are
            certified clipped, where few own models lost more on the rows of `fit`: exact as well.
        measure : str or Loss, optional
            What to certify in place of the loss: "accuracy" for the share of wrong labels, "mae",
            "brier", ...
        """
        if confidence is not None:
            check(confidence, "confidence", Share())
        check(loss_bound, "loss_bound", Either(None, Number(above=0)))
        measure_of(measure, self.loss, len(self.classes_) if self._classification() else None)
        tables = self.evaluate(X, y, sample_domain)
        check_every_source(tables, self.source_names_, CERTIFIED_ON_ALL)
        warn_of_training_rows(tables, self.sources_)
        found = certify_tables(
            tables,
            self.combination_,
            self.loss,
            confidence=confidence,
            measure=measure,
            clip=usual_clip(self.tables_, self.loss, measure),
            assumptions=Assumptions(loss_bound=loss_bound),
        )
        return self.named(without_confidence(found, self.seen_among(tables, X)))

    def seen_among(self, tables: Tables, X: Any = None) -> list[str]:
        """Name the sources whose rows here were among those of `fit`, by what is said of them.

        X are the rows themselves, where they are at hand.
        """
        seen: Seen | None = vars(self).get("seen_")
        if seen is None:
            return []
        rows = None if X is None else check_X(self, X)
        return [str(self.source_names_[k]) for k in seen.sources(tables, rows)]

    def seen_domains(self, X: Any, sample_domain: ArrayLike) -> list[str]:
        """Name the domains whose rows here were among those of `fit`, by the rows themselves.

        They need not be the sources that it was fitted to.  A model that was fitted to tables has
        seen no rows: see `seen_among`.
        """
        seen: Seen | None = vars(self).get("seen_")
        if seen is None or seen.rows is None:
            return []
        content, domain = content_of(check_X(self, X)), np.asarray(sample_domain).astype(str)
        number = {str(name): k for k, name in enumerate(self.source_names_)}
        return [
            str(name)
            for name in np.unique(domain)
            if seen.rows.have_seen(content[domain == name], number.get(name))
        ]

    def named(self, certificate: Certificate) -> Certificate:
        """Call what stands beside a certificate by the names of the sources."""
        alone = {f"source {k + 1} alone": f"{n} alone" for k, n in enumerate(self.source_names_)}
        beside = (one._replace(name=alone.get(one.name, one.name)) for one in certificate.beside)
        return replace(certificate, beside=tuple(beside))

    def novelty(self, X: Any) -> FloatArray:
        """How far each row is from all sources: 0 is typical of one, near 1 is unlike any.

        1 − max_k of the share of source k's own held-out rows that are no likelier than the row.
        """
        check_is_fitted(self, "combination_")
        novelty: Novelty | None = getattr(self, "novelty_", None)
        if novelty is None:
            raise ValueError(
                "novelty needs a density for each of several sources; a DomainClassifier or a "
                "single source has none."
            )
        X = check_X(self, X)
        with names_checked(self):
            return novelty.score(self._log_densities(X))

    def _log_densities(self, X: Any) -> FloatArray:
        """log D_k(x), (p, n): of weights' densities, or of those that were kept for novelty."""
        return masses_of(self.sources_, X) + log_reference(self.sources_, X)

    def predict_or_abstain(self, X: Any, max_novelty: float = 0.95) -> tuple[Any, Any]:
        """Predictions, and which rows (True) are unlike all sources; 1 − max_novelty at home."""
        check(max_novelty, "max_novelty", Number(0, 1))
        answer = self.predict(X)
        with names_checked(self):
            return answer, self.novelty(X) > max_novelty
