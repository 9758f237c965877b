"""What the recognition studies share: sources fitted on rows, and all rows of Tables 3 and 4.

as published    raw kernel densities, η → 0, γ → 0 by the DC algorithm over the pooled rows
clean           raw kernel densities, z by regret, held nearer to 1/p the fewer rows there are;
                and z with γ = 0 exactly, to show what that costs
beyond          the same with calibrated responsibilities: the library's default; or with those of
                a classifier of domains, as DMSA has them; and anymix, where sources hear each other

The paper does not say whether the labelled pairs that z is learned from were also trained on; here
they never were, under any protocol.  The accuracy on a union of test sets is pooled by their sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from anymix._arrays import FloatArray
from anymix.core import Objective, Problem, combine, dca, solve
from anymix.densities import DomainClassifier
from anymix.estimators import DistributionWeightedClassifier
from anymix.sources import Source, Tables, evaluate
from experiments.loaders import Features
from experiments.paper_numbers import columns, published
from experiments.runner import Result, Setup, mean_rows

ETA = 1e-3
ETA_PUBLISHED = 1e-9
# A share of the losses: the paper asks for γ ≈ 0, and a few hundred rows tell losses no better.
GAMMA_TOLERANCE = 1e-3


class Setting(NamedTuple):
    """A table of the paper: its domains, their test set sizes, and what each source is made of.

    domains are the column titles; their first letters name sources and unions.
    """

    study: str
    table: str
    domains: tuple[str, ...]
    sizes: tuple[int, ...]
    predictor: Any = None
    density: Any = None

    @property
    def unions(self) -> dict[str, list[int]]:
        """Column -> positions of its domains, in the paper's order."""
        found = {}
        for column in columns(self.table)[:-1]:
            single = column in self.domains
            found[column] = [
                k
                for k, name in enumerate(self.domains)
                if (name == column if single else name[0] in column)
            ]
        return found


class Fitted(NamedTuple):
    """One source for each domain, and one classifier of domains."""

    sources: list[Source]
    router: DomainClassifier


class HeldOut(NamedTuple):
    """Labelled tables of the sources at some rows, and the classifier's log r_k, (p, m)."""

    tables: Tables
    log_router: FloatArray

    @property
    def routed(self) -> Tables:
        """The tables with the classifier in place of the densities."""
        return replace(self.tables, log_masses=self.log_router)


class Method(NamedTuple):
    """A row of the table: probabilities (m, c) at the test rows."""

    name: str
    protocol: Setup
    proba: FloatArray
    privileged: bool = False


def take(rows: Features, chosen: Any) -> Features:
    """Choose some rows."""
    return Features(rows.X[chosen], rows.y[chosen], rows.domain[chosen])


def fit(setting: Setting, train: Features) -> Fitted:
    """Fit predictor and density of each domain on its own rows, and the classifier on all.

    Paper: Sec. 5.2.
    """
    sources = []
    for k, name in enumerate(setting.domains):
        own = take(train, train.domain == k)
        predictor = clone(setting.predictor).fit(own.X, own.y)
        sources.append(Source(name, predictor, clone(setting.density).fit(own.X)))
    return Fitted(sources, DomainClassifier().fit(train.X, train.domain))


def ask(fitted: Fitted, rows: Features, classes: NDArray[np.intp]) -> HeldOut:
    """Ask sources and classifier about labelled rows."""
    tables = evaluate(fitted.sources, rows.X, classes).labelled(rows.y, rows.domain)
    return HeldOut(tables, fitted.router.log_responsibilities(rows.X))


def methods(
    setting: Setting, fitted: Fitted, held: HeldOut, test: HeldOut, consult: bool = True
) -> Iterator[Method]:
    """Yield all rows but joint; with `consult` also that of sources that hear each other.

    Paper: Sec. 5.2.
    """
    h = test.tables.predictions
    for k, name in enumerate(setting.domains):
        yield Method(name[0], "as published", h[k])
    yield Method("unif", "as published", h.mean(axis=0))
    yield Method("DW", "as published", as_published(held.tables, test.tables))
    yield Method("DW, γ = 0", "clean", _raw(held.tables, test.tables, "gamma"))
    yield Method("DW", "clean", _raw(held.tables, test.tables, "regret"))
    yield Method("DW, calibrated", "beyond", _default(fitted, held.tables, test.tables))
    yield Method("DW, domain classifier", "beyond", _default(fitted, held.routed, test.routed))
    if consult:
        heard = _default(fitted, held.tables, test.tables, consult=True)
        yield Method("anymix", "beyond", heard)


def joint(setting: Setting, train: Features, test: Features) -> Method:
    """Train one predictor on the rows of all domains.

    Paper: Sec. 5.2.
    """
    predictor = clone(setting.predictor).fit(train.X, train.y)
    return Method("joint", "as published", predictor.predict_proba(test.X), privileged=True)


def as_published(held: Tables, test: Tables) -> FloatArray:
    """Combine as the paper does, with the z at which the DC algorithm from 1/p comes to rest.

    Paper: Sec. 5.2, Eq. 6.
    """
    problem = Problem.from_log_densities(
        held.log_masses, held.predictions, held.targets, "cross_entropy", ETA_PUBLISHED
    )
    z = dca(problem, tol=GAMMA_TOLERANCE).z
    log_densities = test.log_masses + problem.log_scale[:, None]
    return combine(log_densities, test.predictions, z, ETA_PUBLISHED)


def _raw(held: Tables, test: Tables, objective: Objective) -> FloatArray:
    """Combine by raw densities, each held-out row counted at home when z is learned."""
    amount = 0.0 if objective == "gamma" else "auto"
    z = solve(held.problem("cross_entropy", ETA), objective, shrinkage=amount).z
    return combine(test.log_masses, test.predictions, z, ETA)


def _default(fitted: Fitted, held: Tables, test: Tables, consult: bool = False) -> FloatArray:
    """Combine as the estimator does by default, but for consulting, unless it is asked for."""
    model = DistributionWeightedClassifier.from_sources(fitted.sources, eta=ETA, consult=consult)
    model.fit_tables(held)
    return model.combination_.predict(test.log_masses, test.predictions)


def records(
    setting: Setting, found: Sequence[Method], test: Features, seed: int
) -> Iterator[Result]:
    """Yield the accuracy in percent of each method on every union, then the mean over these."""
    paper = published(setting.table)
    for method in found:
        right = method.proba.argmax(axis=1) == test.y
        own = np.array([right[test.domain == k].mean() for k in range(len(setting.domains))])
        cells = [
            Result(
                setting.study,
                setting.table,
                method.protocol,
                method.name,
                column,
                "accuracy, %",
                seed,
                100 * float(np.average(own[group], weights=np.take(setting.sizes, group))),
                method.privileged,
            )
            for column, group in setting.unions.items()
        ]
        name = method.name if method.name == "DW" else f"CNN-{method.name}"
        for cell in [*cells, *mean_rows(cells)]:
            value, sd = paper.get((name, cell.target), (None, None))
            yield replace(cell, paper=value, paper_sd=sd)
