"""Train a source for each domain, and tables in which no source is judged on rows it has seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from anymix._arrays import FloatArray, n_rows, positions
from anymix.estimators._rows import Rows, folds_of, not_numbers
from anymix.sources import Source, Tables, evaluate


def _last(model: Any) -> Any:
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def takes_weight(model: Any) -> bool:
    """Whether `fit`, of the last step of a pipeline, takes sample_weight."""
    return bool(has_fit_parameter(_last(model), "sample_weight"))


def fit_with_weight(model: Any, X: Any, y: Any, weight: Any) -> Any:
    """Fit a clone, with the weights if there are any; a pipeline's last step gets them."""
    model = clone(model)
    given = () if y is None else (y,)
    if weight is None:
        return model.fit(X, *given)
    if not takes_weight(model):
        raise TypeError(
            f"sample_weight was given, but {type(_last(model)).__name__}.fit does not take it: "
            "leave the weights out or choose another estimator or density."
        )
    name = "sample_weight" if _last(model) is model else f"{model.steps[-1][0]}__sample_weight"
    return model.fit(X, *given, **{name: weight})


def check_part(part: Any, name: str, methods: tuple[str, ...], example: str) -> None:
    """Say what an estimator or a density must be, before scikit-learn trips over its insides."""
    if part is None:
        return
    able = hasattr(part, "fit") and any(hasattr(part, method) for method in methods)
    if isinstance(part, type) or not able:
        raise TypeError(
            f"{name} must be an object with fit and {' or '.join(methods)}, such as {example}; got "
            f"{part!r}."
        )


def fit_density(density: Any, X: Any, y: Any, weight: Any) -> Any:
    """Fit a clone of the density; if X is more than numbers, say so and what helps.

    A pipeline sees to its own columns, so what it says stands.
    """
    try:
        return fit_with_weight(density, X, y, weight)
    except ValueError as error:
        fault = not_numbers(X)
        if isinstance(density, Pipeline) or fault is None:
            raise
        raise ValueError(
            f"the density needs complete numbers, but {fault}: put the preprocessing in front of "
            "the whole model, as make_pipeline(preprocessing, model), and pass sample_domain under "
            "the name of its step, as distributionweightedclassifier__sample_domain; or give "
            "density=make_pipeline(FrozenEstimator(preprocessing.fit(X)), GaussianKDE())."
        ) from error


def is_domain_classifier(density: Any) -> bool:
    """A classifier of sources sees all of them at once; a density sees one."""
    return hasattr(density, "log_responsibilities")


class Indifferent:
    """Responsibilities for methods that need no density: all sources alike."""

    def __init__(self, p: int):
        self.p = p

    def log_responsibilities(self, X: Any) -> FloatArray:
        """log(1/p), shape (p, n)."""
        return np.full((self.p, n_rows(X)), -np.log(self.p))


@dataclass(frozen=True)
class SourceTrainer:
    """How sources come about: predictors are trained here or given, densities likewise.

    Without `weighs` no density is needed: all sources count alike everywhere.
    """

    names: NDArray[Any]
    estimator: Any = None
    density: Any = None
    sources: Sequence[Source] | None = None
    weighs: bool = True

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to train."""
        if not self.sources:
            return False
        return self.density is None or all(s.density is not None for s in self.sources)

    def train(self, rows: Rows) -> tuple[list[Source], Any]:
        """Return a source for each domain, and one classifier of domains for all, or None."""
        sources = [self._source(k, rows.of(k)) for k in range(len(self.names))]
        if not self.weighs:
            return sources, Indifferent(len(sources))
        if self.finished or not is_domain_classifier(self.density):
            return sources, None
        return sources, fit_density(self.density, rows.X, rows.domain, rows.weight)

    def _source(self, k: int, own: Rows) -> Source:
        if self.sources:
            source = self.sources[k]
        else:
            predictor = fit_with_weight(self.estimator, own.X, own.y, own.weight)
            source = Source(str(self.names[k]), predictor, n_rows=own.y.size)
        if self.density is None or source.density is not None:
            return source
        if is_domain_classifier(self.density):
            return source
        return replace(source, density=fit_density(self.density, own.X, None, own.weight))

    def held_out_tables(
        self, rows: Rows, classes: NDArray[Any] | None, n_folds: int, seed: Any
    ) -> Tables:
        """Tables at all rows, each row asked of what was trained without its fold."""
        p, m = len(self.names), rows.y.size
        fold = np.zeros(m, dtype=np.intp)
        if not self.finished:
            fold = folds_of(rows, n_folds, classes is not None, seed)
        shape = (p, m) if classes is None else (p, m, len(classes))
        log_masses, predictions = np.empty((p, m)), np.empty(shape)
        for number in range(int(fold.max()) + 1):
            held = np.flatnonzero(fold == number)
            rest = rows if self.finished else rows.take(np.flatnonzero(fold != number))
            sources, router = self.train(rest)
            part = evaluate(sources, rows.take(held).X, classes, router)
            log_masses[:, held], predictions[:, held] = part.log_masses, part.predictions
        targets = rows.y if classes is None else positions(rows.y, classes)
        known = rows.domain, rows.weight, classes, router is None
        return Tables(log_masses, predictions, targets, *known)
