"""Summaries of fitted models for reports, as one plain dictionary."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from anymix._arrays import FloatArray
from anymix._version import __version__
from anymix.core import (
    Certificate,
    Combination,
    CrossFittedCombination,
    Loss,
    Record,
    log_responsibilities,
    plain,
)
from anymix.densities import CalibrationReport, balanced_weights
from anymix.estimators._weighting import DistributionWeighting
from anymix.estimators.comparison import Comparison
from anymix.estimators.rival_verdicts import verdicts
from anymix.sources import MOST_SOURCES, Tables

N_BINS = 10


def summarise(
    model: Any,
    comparison: Record | None = None,
    traffic: Record | None = None,
    *,
    name: str = "anymix",
    measure: str | Loss | None = None,
    certificate: Certificate | None = None,
) -> dict[str, Any]:
    """Return the record of a fitted model that `anymix.report.render` needs.

    Parameters
    ----------
    model : DistributionWeightedRegressor or DistributionWeightedClassifier
        Fitted, with several sources; or a pipeline that ends in one.
    comparison : Comparison, optional
        Of `compare`; call the model "anymix" in it.
    traffic : TrafficReport, optional
        Of a monitor.
    name : str
        Title of the page.
    measure : str or Loss, optional
        What the verdict leads with, and the table of `fit` where no comparison is given, in place
        of the loss: "accuracy", "mae", "auc", ...  The certificate stays in the loss.
    certificate : Certificate, optional
        Of new rows, as `model.certify(X, y, sample_domain)` returns it, in the loss of the model;
        by default that of `fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from anymix import DistributionWeightedRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = np.r_[rng.normal(-2, 1, (60, 1)), rng.normal(2, 1, (60, 1))]
    >>> y, d = np.abs(X[:, 0]), np.repeat(["north", "south"], 60)
    >>> model = DistributionWeightedRegressor(random_state=0).fit(X, y, sample_domain=d)
    >>> record = summarise(model)
    >>> record["sources"], record["rows"], np.sum(record["weights"], axis=0).round(6).tolist()
    (['north', 'south'], [60, 60], [1.0, 1.0])
    """
    if isinstance(model, Pipeline):
        model = model[-1]  # the report is on held-out tables, which earlier steps have seen
    _check_summarised(model, comparison, certificate)
    if comparison is None and measure is not None:
        comparison = model.compared(measure)
    found = _found_by_rows(model, measure)
    return plain(
        {
            "name": name,
            "sources": [str(source) for source in model.source_names_],
            "loss": model.loss if isinstance(model.loss, str) else type(model.loss).__name__,
            "objective": model.objective,
            "anymix": __version__,
            "z": model.z_,
            "certificate": model.certificate_ if certificate is None else certificate,
            "adapted": True if model.certificate_ is None and certificate is None else None,
            "cross_loss": model.cross_loss_,
            "comparison": comparison,
            "solution": model.solution_,
            "traffic": traffic,
            "sets": model.coverage(),
            **found,
            "set_aside": list(model.set_aside_) or None,
            **summarise_tables(model.tables_, model.combination_, model.calibration_report_),
        }
    )


def _check_summarised(model: Any, comparison: Any, certificate: Any) -> None:
    """Refuse what no report can be made of."""
    if not isinstance(model, DistributionWeighting):
        raise TypeError(
            "a report needs a DistributionWeightedRegressor or -Classifier; got "
            f"{type(model).__name__}, which goes into compare with one."
        )
    if comparison is not None and not isinstance(comparison, Comparison):
        raise TypeError(
            f"comparison must be what anymix.compare returns; got {type(comparison).__name__}."
        )
    if certificate is not None and not isinstance(certificate, Certificate):
        raise TypeError(
            f"certificate must be what certify returns; got {type(certificate).__name__}."
        )
    check_is_fitted(model, "z_")
    if not hasattr(model, "tables_"):
        raise ValueError("a report compares sources: fit the model with at least two of them.")


def _found_by_rows(model: Any, measure: str | Loss | None) -> dict[str, Any]:
    """Return verdicts, who consults whom, who moves whom, the density; None where there is none."""
    names = [str(source) for source in model.source_names_]
    choice = getattr(model, "density_choice_", None)
    learner = getattr(model, "learner_choice_", None)
    held, gain = model.held_out_, model.advice_
    verdict = consulting = influence = None
    if model.certificate_ is not None:  # z that was adapted since was not judged on these rows
        given = model.tables_, held.predictions, model.loss, model.confidence, held.crossed
        verdict = verdicts(*given, measure=measure)
    if model.combination_.consults:
        sentences = [] if gain is None else gain.sentences(names)
        p, pools = len(names), model.combination_.pool_weights
        consulting = {"weights": pools[:, :p], "sentences": sentences}
        if pools.shape[1] > p:
            consulting["generalist"] = pools[:, p]
    if len(names) <= MOST_SOURCES:
        influence = {**plain(model.influence_), "sentences": model.influence_.sentences()}
    return {
        "verdict": verdict,
        "consulting": consulting,
        "influence": influence,
        "density": None if choice is None else str(choice),
        "learner": None if learner is None else str(learner),
    }


def summarise_tables(
    tables: Tables,
    combination: Combination | CrossFittedCombination,
    report: CalibrationReport | None = None,
) -> dict[str, Any]:
    """Return rows, weights and calibration on held-out tables.

    tables have the densities as they came; `report` is that of the fit of the calibration.
    """
    domain, p = tables.domain, tables.n_sources
    used = CrossFittedCombination.of(combination)
    log_r = used.log_responsibilities(tables.log_masses)
    found = [part.calibration for part in used.parts if part.calibration is not None]
    return {
        "rows": np.bincount(domain, minlength=p),
        "weights": mean_weights(used.weights(tables.log_masses), domain),
        "calibration": {
            "report": report,
            "sharpness": float(np.mean([one.sharpness for one in found])) if found else None,
            "before": reliability(tables.log_masses, domain) if found else None,
            "after": reliability(log_r, domain),
        },
    }


def mean_weights(weights: FloatArray, domain: NDArray[np.intp]) -> FloatArray:
    """Average the weights (p, m) of the sources over the points of each domain: [k, j].

    Examples
    --------
    >>> mean_weights(np.array([[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]]), np.array([0, 0, 1]))
    array([[0.75, 0.  ],
           [0.25, 1.  ]])
    """
    p = len(weights)
    return np.stack([weights[:, domain == j].mean(axis=1) for j in range(p)], axis=1)


def reliability(
    log_masses: FloatArray, domain: NDArray[np.intp], n_bins: int = N_BINS
) -> list[dict[str, float]]:
    """Confidence and accuracy of the likeliest source, in bins of equal width.

    Sources count equally, however many points each has; empty bins are left out.

    Examples
    --------
    >>> log_r = np.log([[0.9, 0.9], [0.1, 0.1]])
    >>> [bin["accuracy"] for bin in reliability(log_r, np.array([0, 1]))]
    [0.5]
    """
    log_r = log_responsibilities(log_masses)
    weight = balanced_weights(domain, np.ones(domain.size), len(log_r))
    sure, right = np.exp(log_r.max(axis=0)), log_r.argmax(axis=0) == domain
    bins = np.minimum((sure * n_bins).astype(np.intp), n_bins - 1)
    found = []
    for b in np.unique(bins):
        w = np.where(bins == b, weight, 0.0)
        mean = {"confidence": sure @ w, "accuracy": right @ w}
        share = float(w.sum() / weight.sum())
        found.append({n: float(v / w.sum()) for n, v in mean.items()} | {"share": share})
    return found
