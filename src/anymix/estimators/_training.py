"""Train a source for each domain, and tables in which no source is judged on rows it has seen."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from anymix.estimators._rows import Rows, folds_of
from anymix.sources import Source, Tables, evaluate


def fit_with_weight(model: Any, X: Any, y: Any, weight: Any) -> Any:
    """Fit a clone, with the weights if there are any."""
    model = clone(model)
    if weight is None:
        return model.fit(X) if y is None else model.fit(X, y)
    if not has_fit_parameter(model, "sample_weight"):
        raise TypeError(
            f"sample_weight was given, but {type(model).__name__}.fit does not take it: leave the "
            "weights out or choose another estimator or density."
        )
    return (
        model.fit(X, sample_weight=weight) if y is None else model.fit(X, y, sample_weight=weight)
    )


def is_domain_classifier(density: Any) -> bool:
    """A classifier of sources sees all of them at once; a density sees one."""
    return hasattr(density, "log_responsibilities")


def train_sources(
    rows: Rows, names: NDArray[Any], estimator: Any, density: Any
) -> tuple[list[Source], Any]:
    """Fit predictor and density on each domain; or one classifier of domains for all."""
    sources = []
    for k, name in enumerate(names):
        own = rows.of(k)
        predictor = fit_with_weight(estimator, own.X, own.y, own.weight)
        kept = None
        if density is not None and not is_domain_classifier(density):
            kept = fit_with_weight(density, own.X, None, own.weight)
        sources.append(Source(str(name), predictor, kept, n_rows=own.y.size))
    if density is not None and is_domain_classifier(density):
        return sources, fit_with_weight(density, rows.X, rows.domain, rows.weight)
    return sources, None


def cross_fitted_tables(
    rows: Rows,
    names: NDArray[Any],
    estimator: Any,
    density: Any,
    classes: NDArray[Any] | None,
    n_folds: int,
    seed: Any,
) -> Tables:
    """Tables at all rows, each row asked of sources that were trained without its fold."""
    fold = folds_of(rows, n_folds, classes is not None, seed)
    p, m = len(names), rows.y.size
    shape = (p, m) if classes is None else (p, m, len(classes))
    log_masses, predictions = np.zeros((p, m)), np.empty(shape)
    for number in range(int(fold.max()) + 1):
        held = np.flatnonzero(fold == number)
        sources, router = train_sources(
            rows.take(np.flatnonzero(fold != number)), names, estimator, density
        )
        asked = rows.take(held).X
        if density is None:
            part = evaluate(sources, asked, classes, _Indifferent(p))
        else:
            part = evaluate(sources, asked, classes, router)
        log_masses[:, held], predictions[:, held] = part.log_masses, part.predictions
    targets = rows.y if classes is None else np.searchsorted(classes, rows.y)
    return Tables(log_masses, predictions, targets, rows.domain, rows.weight, classes)


class _Indifferent:
    """Responsibilities for methods that need no density: all sources alike."""

    def __init__(self, p: int):
        self.p = p

    def log_responsibilities(self, X: Any) -> NDArray[np.float64]:
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        return np.full((self.p, n), -np.log(self.p))
