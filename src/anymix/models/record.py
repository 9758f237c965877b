"""A fitted model as one JSON object, and back: all that was learned, but sources and tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from anymix._version import __version__
from anymix.core import (
    Certificate,
    Combination,
    Solution,
    loss_from_dict,
    loss_to_dict,
    restored,
)
from anymix.densities import CalibrationReport
from anymix.estimators import (
    CrossLoss,
    DistributionWeightedClassifier,
    DistributionWeightedRegressor,
)

KIND, SCHEMA = "anymix model", 2
SETTINGS = ("objective", "shrinkage", "eta", "calibrate", "cv", "confidence", "skip_below")
TASKS = {
    "regression": DistributionWeightedRegressor,
    "classification": DistributionWeightedClassifier,
}
# What is recorded of a model with several sources, and the record that each attribute is.
LEARNED: dict[str, Any] = {
    "certificate": Certificate,
    "solution": Solution,
    "cross_loss": CrossLoss,
    "calibration_report": CalibrationReport,
}


def check_kind(model: Any) -> None:
    """Refuse what is not a model of this library, or a subclass that may answer otherwise.

    >>> check_kind(object())
    Traceback (most recent call last):
    ...
    ValueError: only a DistributionWeightedRegressor or -Classifier can be saved; got object.
    """
    if type(model) not in TASKS.values():
        last = "; save its last step, and keep the others" if hasattr(model, "steps") else ""
        raise ValueError(
            "only a DistributionWeightedRegressor or -Classifier can be saved; got "
            f"{type(model).__name__}{last}."
        )


def model_to_dict(model: Any) -> dict[str, Any]:
    """Name all that makes a fitted model; what cannot be written is refused in one sentence."""
    task = next(name for name, kind in TASKS.items() if isinstance(model, kind))
    if task == "classification" and model.classes_.dtype.kind not in "iuUO":
        raise ValueError(
            f"classes of the type {model.classes_.dtype} cannot be saved; label the rows by "
            "strings or whole numbers."
        )
    learned = {name: vars(model).get(f"{name}_") for name in LEARNED}
    return {
        "kind": KIND,
        "schema": SCHEMA,
        "anymix": __version__,
        "task": task,
        "loss": {"name": model.loss} if isinstance(model.loss, str) else loss_to_dict(model.loss),
        "settings": {name: getattr(model, name) for name in SETTINGS},
        "classes": model.classes_.tolist() if task == "classification" else None,
        "names": np.asarray(model.source_names_).tolist(),
        "features": _features(model),
        "combination": model.combination_,
        **learned,
        "comparison": model.comparison_ if "tables_" in vars(model) else None,
    }


def _features(model: Any) -> dict[str, Any]:
    names = vars(model).get("feature_names_in_")
    return {
        "n": vars(model).get("n_features_in_"),
        "names": None if names is None else [str(name) for name in names],
    }


def model_from_dict(record: dict[str, Any]) -> Any:
    """Return the model without its sources and tables; a ValueError says what is wrong."""
    if record["task"] not in TASKS:
        raise ValueError(f"the task {record['task']!r:.60} is not known.")
    combination = Combination.from_dict(record["combination"])
    settings = {name: record["settings"][name] for name in SETTINGS}
    _check_settings(settings)
    if record["task"] == "classification":
        settings["rule"] = combination.rule
    model = TASKS[record["task"]](loss=_loss(record["loss"]), **settings)
    model.combination_ = combination
    model.source_names_ = np.asarray(record["names"])
    if len(model.source_names_) != combination.z.size:
        raise ValueError("there are not as many sources as weights z.")
    if record["task"] == "classification":
        model.classes_ = _labels(record["classes"])
    if record["features"]["n"] is not None:
        model.n_features_in_ = int(record["features"]["n"])
    if record["features"]["names"] is not None:
        model.feature_names_in_ = np.asarray(record["features"]["names"], dtype=object)
    if combination.z.size > 1:
        _restore_learned(model, record)
    return model


def _loss(record: dict[str, Any]) -> Any:
    """Return the name of a loss that has no parameters, as it was given, or the loss."""
    loss = loss_from_dict(record)
    return record["name"] if len(record) == 1 else loss


def _restore_learned(model: Any, record: dict[str, Any]) -> None:
    for name, kind in LEARNED.items():
        told = record[name]
        if told is not None:
            told = restored(kind, told)
        setattr(model, f"{name}_", told)


def _check_settings(given: dict[str, Any]) -> None:
    """Settings are numbers within their ranges, or the words that may stand for them."""
    ranges = {"eta": (0.0, np.inf), "confidence": (0.0, 1.0), "skip_below": (0.0, 1.0)}
    for name, (least, most) in ranges.items():
        value = restored(float, given[name])
        if not least <= value < most:
            raise ValueError(f"the setting {name} is {value!r:.60}")
    if given["shrinkage"] != "auto" and not restored(float, given["shrinkage"]) >= 0:
        raise ValueError(f"the setting shrinkage is {given['shrinkage']!r:.60}")
    if given["objective"] not in ("regret", "robust", "gamma"):
        raise ValueError(f"the setting objective is {given['objective']!r:.60}")
    restored(int, given["cv"])
    restored(bool, given["calibrate"])


def _labels(given: Any) -> Any:
    """Classes are a list of different strings, or of different whole numbers."""
    sound = isinstance(given, list) and {type(label) for label in given} in ({str}, {int})
    if not sound or len(set(given)) < len(given):
        raise ValueError("the classes are not a list of different labels")
    return np.asarray(given)


def check_learned(model: Any) -> None:
    """Every record and table is of as many sources as the model."""
    p = len(model.source_names_)
    shapes = {
        "the tables": (model.tables_.log_masses.shape[0], p),
        "the solution": (model.solution_.z.shape, (p,)),
        "the cross losses": (
            {getattr(model.cross_loss_, name).shape for name in ("mean", "lower", "upper")},
            {(p, p)},
        ),
    }
    if model.certificate_ is not None:
        found = model.certificate_
        own = found.z.shape, found.source_losses.shape, found.own_losses.shape
        shapes["the certificate"] = (set(own), {(p,)})
    for what, (shape, expected) in shapes.items():
        if shape != expected:
            raise ValueError(f"{what} are not of {p} sources")
