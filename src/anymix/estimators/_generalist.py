"""The generalist: one more predictor, learned from the rows of all sources, that each may consult.

rows in one place    the learner of the sources, or another estimator, trained on all rows
rows at their sites  a linear model of columns that all sites can compute, by sums over sites
trained elsewhere    a `Source` that was passed

It is cross-fitted by the folds of the sources' own models.  A model by sums is learned for several
strengths of its ridge, of which the folds choose one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import Pipeline

from anymix._arrays import FloatArray, IntArray, positions
from anymix.core import Loss, losses_at
from anymix.estimators._rows import Rows
from anymix.estimators._source_training import check_part, train_source
from anymix.exceptions import ParameterError
from anymix.sources import (
    GeneralistRecord,
    LinearRows,
    Source,
    SumsFit,
    Tables,
    fit_by_sums,
    predictions_of,
    shared_columns,
)
from anymix.tables import Columns

NAME = "generalist"


def check_generalist(model: Any) -> None:
    """Check the parameter `generalist`: "auto", None, an estimator or a source."""
    given, density = model.generalist, model.density
    if not model.share_rows and getattr(density, "estimator", None) is not None:
        raise ParameterError(
            "density takes no classifier of sources with an estimator of its own with "
            "share_rows=False, as rows of several sources are never in one place; give "
            "DomainClassifier(), which is learned by sums, or a density."
        )
    if given is None or isinstance(given, Source) or (isinstance(given, str) and given == "auto"):
        return
    check_part(given, "generalist", ("predict",), "'auto', None, or an estimator such as Ridge()")
    if not model.share_rows:
        raise ParameterError(
            "generalist takes 'auto' or None with share_rows=False, as rows of several sources are "
            "never in one place; leave it at 'auto' for a linear model that is learned by sums."
        )


@dataclass
class GeneralistTrainer:
    """Trains the generalist.

    Attributes
    ----------
    estimator : estimator, Source or None
        A source is taken as it is; None learns by sums.
    columns : Columns or None
        Those that the rows were encoded by.
    held_out : array (S, m[, c])
        Predictions for rows of the folds that were left out, by strength of the ridge.
    fits : list of SumsFit
        What was learned by sums, without each fold and by all rows.
    trained : dict
        Models without some of the folds, by the first row of the fold, if they were trained before.
    """

    estimator: Any
    columns: Columns | None = None
    held_out: FloatArray | None = field(default=None, repr=False)
    fits: list[SumsFit] = field(default_factory=list, repr=False)
    trained: Mapping[int, Sequence[Source]] = field(default_factory=dict, repr=False)

    def cross_fit(
        self, sources: Sequence[Source], rows: Rows, held: IntArray, rest: Rows, tables: Tables
    ) -> None:
        """Learn it without a fold, and predict the rows of the fold."""
        models, X = self.trained.get(int(held[0])), rows.take(held).X
        if models is None:
            models = self.versions(sources, rest)
        if self.held_out is None:
            self.held_out = np.empty((len(models), *tables.predictions.shape[1:]))
        for s, model in enumerate(models):
            self.held_out[s, held] = predictions_of(model, X, tables.classes)

    def learned(
        self, sources: Sequence[Source], rows: Rows, tables: Tables, loss: str | Loss
    ) -> tuple[Source, FloatArray, GeneralistRecord]:
        """Learn it from all rows; also return its held-out predictions and its record."""
        assert self.held_out is not None
        y, best = np.asarray(tables.targets), 0
        if len(self.held_out) > 1:
            losses = [tables.by_source(losses_at(h, y, loss)).mean() for h in self.held_out]
            best = int(np.argmin(losses))
        model = self.versions(sources, rows)[best]
        return model, self.held_out[best], self.record(best)

    def record(self, best: int) -> GeneralistRecord:
        """Return how it was learned, and how many numbers left the sites for it."""
        if isinstance(self.estimator, Source):
            return GeneralistRecord("given")
        if self.estimator is not None:
            return GeneralistRecord("pooled rows")
        # What is learned without each fold and by all rows asks in the same rounds.
        return GeneralistRecord(
            "sums over sites",
            n_rounds=max((fit.n_rounds for fit in self.fits), default=0),
            n_numbers=sum(fit.n_numbers for fit in self.fits),
            strength=self.fits[-1].strengths[best] if self.fits else None,
        )

    def versions(self, sources: Sequence[Source], rows: Rows) -> list[Source]:
        """Learn it from rows of all sources, whose models are `sources`: by strength."""
        if isinstance(self.estimator, Source):
            return [self.estimator]
        if self.estimator is not None:
            return [replace(train_source(self.estimator, rows, NAME), columns=self.columns)]
        models = self._by_sums([source.predictor for source in sources], rows)
        known: dict[str, Any] = {"n_rows": rows.y.size, "columns": self.columns}
        return [Source(NAME, model, **known) for model in models]

    def _by_sums(self, predictors: Sequence[Any], rows: Rows) -> list[Any]:
        """Learn a linear model of the columns that the sources' models share."""
        columns, classes, y = shared_columns(predictors), None, rows.y
        assert columns is not None
        labels = any(hasattr(one, "predict_proba") for one in predictors)
        if labels:
            classes = np.unique(y)
            if classes.size < 2:
                constant = DummyClassifier(strategy="prior")
                return [constant.fit(np.zeros((y.size, 1)), y)] * len(columns.strengths(True))
            y = positions(y, classes)
        parts = _parts_of(columns, replace(rows, y=y), 0 if classes is None else classes.size)
        fit = fit_by_sums(columns, parts, classes)
        self.fits.append(fit)
        for model in fit.predictors[0]:
            _name_features(model, predictors[0])
        return fit.predictors[0]


def _parts_of(columns: Any, rows: Rows, n_classes: int) -> list[LinearRows]:
    """The rows of each source, as a part that answers by sums."""
    parts = []
    for k in np.unique(rows.domain).tolist():
        own = rows.of(k)
        weight = np.ones(own.y.size) if own.weight is None else own.weight
        fold = np.zeros(own.y.size, dtype=np.intp)
        parts.append(LinearRows(columns, own.X, own.y, weight, fold, n_classes))
    return parts


def _name_features(model: Any, like: Any) -> None:
    """Give a model the names of features that another one was trained with."""
    first = model[0] if isinstance(model, Pipeline) else model
    names: NDArray[Any] | None = getattr(like, "feature_names_in_", None)
    if names is not None and not hasattr(model, "feature_names_in_"):
        first.feature_names_in_ = names


def trainer_of(model: Any) -> GeneralistTrainer | None:
    """Return how a model's generalist is learned, once its sources are there; None: it has none.

    For given sources only their models are known, so that "auto" trains nothing. By sums there is
    none if the sources' models have no columns in common.
    """
    wanted = model.generalist
    if not model.consult or len(model.source_names_) < 2 or wanted is None:
        return None
    if not isinstance(wanted, str):
        return GeneralistTrainer(wanted, model.columns_)
    if model.sources:
        return None
    if model.share_rows:
        return GeneralistTrainer(model.estimator_, model.columns_)
    if shared_columns([source.predictor for source in model.sources_]) is None:
        return None
    return GeneralistTrainer(None, model.columns_)
