"""What fitted models are asked in a comparison: by what they are judged, and what they say."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor

from anymix._arrays import FloatArray, positions
from anymix.core import Loss
from anymix.exceptions import ParameterError
from anymix.sources import Measure, is_of_labels, judge_of


def judge_for(models: Mapping[str, Any], measure: str | Loss | None) -> Measure:
    """Return what is asked for, else the usual loss; what is for labels must have labels."""
    if not models:
        raise ValueError("there are no models to compare.")
    if measure is None:
        measure = "cross_entropy" if all(map(is_classifier, models.values())) else "squared"
    found = judge_of(measure, "squared", 2 if is_of_labels(measure) else None)
    for name, model in models.items():
        if found.of_labels and hasattr(model, "__sklearn_tags__") and is_regressor(model):
            raise ParameterError(
                f"measure {measure!r} is for labels, and {name!r} predicts numbers, which have "
                "'mae', 'mse' or 'rmse'."
            )
    return found


def said_of(
    model: Any, X: Any, y: NDArray[Any], judge: Measure, classes: NDArray[Any]
) -> FloatArray:
    """Ask a fitted model about rows: its loss at each, or the probabilities of all classes."""
    if judge.binary:
        return np.asarray(model.predict(X) != y, dtype=float)
    if not judge.of_labels:
        return judge.value(_numbers(model.predict(X), judge), _numbers(y, judge))
    if not hasattr(model, "predict_proba"):
        raise TypeError(
            f"{type(model).__name__} gives no probabilities, which {judge.key} needs; choose the "
            "measure 'accuracy', or wrap the model in CalibratedClassifierCV."
        )
    proba = np.maximum(np.asarray(model.predict_proba(X)), judge.floor)
    labels = np.asarray(model.classes_)
    if judge.kind == "mean":
        return judge.value(proba, positions(y, labels))
    aligned = np.zeros((len(proba), classes.size))
    aligned[:, np.searchsorted(classes, labels)] = proba
    return aligned


def _numbers(values: Any, judge: Measure) -> FloatArray:
    """Return numbers as such; labels that are words cannot be judged as numbers are."""
    held = np.asarray(values)
    try:
        return held.astype(float)
    except ValueError:
        raise ParameterError(
            f"{judge.key!r} measures numbers, but {held.tolist()[0]!r:.60} is a label; compare "
            "classifiers alone, by 'accuracy', 'auc', 'log_loss' or 'brier'."
        ) from None


def all_labels(models: Mapping[str, Any], y: NDArray[Any]) -> NDArray[Any]:
    known = [np.asarray(model.classes_) for model in models.values() if hasattr(model, "classes_")]
    return np.unique(np.concatenate([*known, y]))


def warn_of_seen(models: Mapping[str, Any], X: Any, domain: NDArray[Any]) -> None:
    """Warn of rows that a model was fitted on: they flatter it."""
    for name, model in models.items():
        seen = model.seen_domains(X, domain) if hasattr(model, "seen_domains") else []
        if seen:
            warnings.warn(
                f"the rows of {', '.join(seen)} are among those that {name!r} was fitted on, so "
                "this flatters it; compare on rows that no model has seen.",
                UserWarning,
                stacklevel=3,
            )
