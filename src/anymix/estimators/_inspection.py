"""What a fitted model says of rows and of itself: weights, novelty, certificates, sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from anymix._arrays import FloatArray, content_of, n_rows
from anymix._parameters import Either, Number, check, share_rule
from anymix.core import Assumptions, Certificate, Loss
from anymix.estimators._fitting import settings_of
from anymix.estimators._row_checks import (
    check_complete_y,
    check_domains,
    check_every_source,
    check_order,
    check_X,
)
from anymix.estimators._running import names_checked
from anymix.estimators.comparison import Comparison, compare_tables, usual_methods
from anymix.sources import (
    MOST_SOURCES,
    Influence,
    SecondRound,
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

CERTIFIED_ON_ALL = "a mixture may be all of it: add some of its rows to certify on"
# More would bury the rest; all are in `influence_` and in the report.
MOST_SENTENCES = 3
STATED = (
    "All numbers below are as the model folder states them; "
    "anymix.load(folder, verify=True) recomputes them."
)


def log_responsibilities(model: Any, X: Any) -> FloatArray:
    """Return log r_k(x), shape (p, n), as predictions use it."""
    check_is_fitted(model, "combination_")
    X = check_X(model, X)
    if len(model.sources_) == 1:
        return np.zeros((1, n_rows(X)))
    with names_checked(model):
        return np.asarray(model.combination_.log_responsibilities(model._log_masses(X)))


def model_weights(model: Any, X: Any) -> FloatArray:
    """Return how much each source's model counts at each row, through all who consult it."""
    check_is_fitted(model, "combination_")
    rows = check_X(model, X)
    if len(model.sources_) == 1:
        return np.ones((n_rows(rows), 1))
    with names_checked(model):
        return np.asarray(model.combination_.model_weights(model._log_masses(rows)).T)


def novelty(model: Any, X: Any) -> FloatArray:
    """Return how far each row is from all sources, as `novelty_` measures it."""
    check_is_fitted(model, "combination_")
    learned = getattr(model, "novelty_", None)
    if learned is None:
        raise ValueError(
            "novelty needs a density for each of several sources; a DomainClassifier or a "
            "single source has none."
        )
    X = check_X(model, X)
    with names_checked(model):
        # Of the densities that weigh sources, or of those that were kept for novelty.
        log_densities = masses_of(model.sources_, X) + log_reference(model.sources_, X)
        return np.asarray(learned.score(log_densities))


def influence(model: Any) -> Influence:
    """Learn z anew without the rows of each site, and without each source."""
    names = [str(name) for name in model.source_names_]
    aside = tuple(k for k, name in enumerate(names) if name in model.set_aside_)
    return find_influence(model.tables_, replace(settings_of(model), set_aside=aside), names)


def compared(model: Any, measure: str | Loss | None) -> Comparison:
    """Compare the model with the usual methods on its held-out rows."""
    names = [str(name) for name in model.source_names_]
    methods = usual_methods(model.tables_, model.held_out_, names)
    return compare_tables(
        model.tables_, methods, names, model.loss, confidence=model.confidence, measure=measure
    )


def evaluate_rows(model: Any, X: Any, y: Any, sample_domain: Any) -> Tables:
    """Evaluate all sources at rows, with labels and domains where they are known."""
    check_is_fitted(model, "sources_")
    check_order(X, y=y, sample_domain=sample_domain)
    X = check_X(model, X)
    with names_checked(model):
        tables = evaluate(model.sources_, X, model._labels, model.router_)
    if y is None:
        return tables
    check_complete_y(y)
    _, domain = check_domains(sample_domain, n_rows(X), [str(n) for n in model.source_names_])
    return tables.labelled(y, domain)


def certify_new_rows(
    model: Any,
    rows: tuple[Any, ArrayLike, ArrayLike],
    confidence: float | None,
    loss_bound: float | None,
    measure: str | Loss | None,
) -> Certificate:
    """State what new rows (X, y, sample_domain) guarantee; rows of `fit` earn no confidence."""
    if confidence is not None:
        check(confidence, "confidence", share_rule)
    check(loss_bound, "loss_bound", Either(None, Number(above=0)))
    measure_of(measure, model.loss, len(model.classes_) if model._classification() else None)
    tables = model.evaluate(*rows)
    check_every_source(tables, model.source_names_, CERTIFIED_ON_ALL)
    warn_of_training_rows(tables, model.sources_, stacklevel=3)
    certificate = certify_tables(
        tables,
        model.combination_,
        model.loss,
        confidence=confidence,
        measure=measure,
        clip=usual_clip(model.tables_, model.loss, measure),
        assumptions=Assumptions(loss_bound=loss_bound),
    )
    seen = seen_among(model, tables, rows[0])
    return name_references(model, without_confidence(certificate, seen))


def name_references(model: Any, certificate: Certificate) -> Certificate:
    """Call the reference losses of a certificate by the names of the model's sources."""
    alone = {f"source {k + 1} alone": f"{n} alone" for k, n in enumerate(model.source_names_)}
    named = (loss._replace(name=alone.get(loss.name, loss.name)) for loss in certificate.beside)
    return replace(certificate, beside=tuple(named))


def seen_among(model: Any, tables: Tables, X: Any = None) -> list[str]:
    """Name the sources whose rows here were among those of `fit`, by their predictions.

    X are the rows themselves, where they are at hand.
    """
    seen = getattr(model, "seen_", None)
    if seen is None:
        return []
    rows = None if X is None else check_X(model, X)
    return [str(model.source_names_[k]) for k in seen.sources(tables, rows)]


def seen_domains(model: Any, X: Any, sample_domain: ArrayLike) -> list[str]:
    """Name the domains whose rows here were among those of `fit`, by the rows themselves.

    They need not be the sources that it was fitted to.  A model that was fitted to tables has
    seen no rows: see `seen_among`.
    """
    seen = getattr(model, "seen_", None)
    if seen is None or seen.rows is None:
        return []
    content, domain = content_of(check_X(model, X)), np.asarray(sample_domain).astype(str)
    number = {str(name): k for k, name in enumerate(model.source_names_)}
    return [
        str(name)
        for name in np.unique(domain)
        if seen.rows.have_seen(content[domain == name], number.get(name))
    ]


def describe(model: Any) -> str:
    """Say what was learned; see `DistributionWeightedRegressor.describe`."""
    comparison, certificate = model.comparison_, model.certificate_
    named = zip(model.source_names_, model.combination_.z, strict=True)
    sentence = "" if certificate is None else f"{certificate.sentence}\n"
    if not model.result_.evidence.verified:
        sentence = f"{STATED}\n{sentence}"
    parts = (
        f"{sentence}{said_aside(model.set_aside_)}"
        f"z: {', '.join(f'{name} {weight:.3g}' for name, weight in named)}",
        *said_of_choices(model),
        str(comparison),
        advice(model, comparison),
        suspicion(model),
    )
    return "\n\n".join(filter(None, parts))


def advice(model: Any, comparison: Comparison) -> str:
    """Say when the average is better on the worst mixture, where, and what may help; else nothing.

    comparison is `model.comparison_`.  The source to look at is the one whose part in the loss
    there is largest: its mean weight on these rows times its own loss on them.
    """
    worst = dict(zip(comparison.methods, comparison.worst.tolist(), strict=True))
    if worst["uniform"] >= worst["anymix"]:
        return ""
    where = comparison.worst_mixture[comparison.methods.index("anymix")]
    names, tables = list(comparison.sources), model.tables_
    k = names.index(where)
    rows = tables.domain == k
    share = model.combination_.weights(tables.log_masses)[:, rows].mean(axis=1)
    blamed = int((share * comparison.loss[: len(names), k]).argmax())
    robust = "" if model.objective == "robust" else "try the objective robust, or "
    return (
        f"The plain average is better on the worst mixture: its loss is {worst['uniform']:.4g}, "
        f"the model's {worst['anymix']:.4g}, on the rows of {where}, where it follows "
        f"{names[blamed]} to {100 * share[blamed]:.0f} %; {robust}look at the predictor and the "
        f"density of {names[blamed]}."
    )


def said_of_choices(model: Any) -> list[str]:
    """Say what the sources are weighed by, and which of them hear the others."""
    told, choice = model.advice_, getattr(model, "density_choice_", None)
    names = [str(name) for name in model.source_names_]
    again = [isinstance(source.predictor, SecondRound) for source in model.sources_]
    said = [""] * len(names) if told is None else told.sentences(names)
    for k in np.flatnonzero(again):
        own = "" if told is None or not told.gains[k] else f"{said[k]} "
        said[k] = f"{own}{names[k]} was trained again, on what the pool of the others leaves."
    return ["" if choice is None else str(choice), "\n".join(filter(None, said))]


def said_aside(names: Sequence[str]) -> str:
    r"""Say whose rows were set aside, in a line of its own, if any were.

    >>> said_aside(["west"])
    'The rows of west did not choose z; the certificate covers them all the same.\n'
    """
    if not names:
        return ""
    return (
        f"The rows of {' and '.join(names)} did not choose z; the certificate covers them all the "
        "same.\n"
    )


def suspicion(model: Any) -> str:
    """Say which site or source raises the loss of another, and what can be done; else nothing."""
    p = len(model.source_names_)
    if p > MOST_SOURCES:
        return (
            f"Whether a site harms others was not looked at: that is done for {MOST_SOURCES} "
            "sources at most."
        )
    found: Influence = model.influence_
    said, asked = found.sentences(), found.least_known()
    if asked is None:
        return ""
    more = len(said) - MOST_SENTENCES
    rest = [f"So it is {more} times more; the report names all."] if more > 0 else []
    name, share = found.names[asked], 100 * float(found.recognised[asked])
    remedy = (
        "Wrong rows do that, and so do sources that disagree where their rows overlap: look first "
        f"at the rows of {name}, of which its own density claims {share:.0f} %, and set them aside "
        "(set_aside; --set-aside of anymix fit) or leave the source out if they are not to be "
        "trusted."
    )
    return " ".join([*said[:MOST_SENTENCES], *rest, remedy])
