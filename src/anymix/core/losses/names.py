"""Look up, describe and save losses and metrics by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray
from anymix.core.losses.base import Loss, MetricUnit
from anymix.core.losses.library import LOSSES

# Names that people use, of scikit-learn and elsewhere, and the loss or metric that each is here.
ALIASES = {
    "mae": "absolute",
    "mse": "squared",
    "log_loss": "cross_entropy",
    "mean_absolute_error": "absolute",
    "mean_squared_error": "squared",
    "root_mean_squared_error": "rmse",
    "roc_auc": "auc",
    "zero_one_loss": "error_rate",
    # As versions before 0.4 wrote it.
    "share of wrong labels": "error_rate",
}
# What is learned with where no loss is named.
TASK_LOSSES = {"classification": "cross_entropy", "regression": "squared"}
# What is measured and is no loss to learn with.
METRICS = {
    "accuracy": MetricUnit("accuracy", share=True, higher=True),
    "error_rate": MetricUnit("error rate", share=True),
    "auc": MetricUnit("area under the ROC curve", higher=True, mean=False),
    "rmse": MetricUnit(
        "root of the mean squared error", "units of the target", "units", mean=False
    ),
}


def get_loss(loss: str | Loss) -> Loss:
    """Return the loss of that name, or the object itself."""
    if isinstance(loss, Loss):
        return loss
    if loss not in LOSSES:
        raise ValueError(f"unknown loss {loss!r}; known are {', '.join(LOSSES)}, or pass a Loss.")
    return LOSSES[loss]()


def loss_name(loss: Loss) -> str:
    """Return a loss's name in words; that of its class if it is the user's own."""
    names = (name for name, kind in LOSSES.items() if type(loss) is kind)
    return next(names, type(loss).__name__).replace("_", "-")


def canonical_name(name: str) -> str:
    """Return the key of `LOSSES` or `METRICS` for a name; an unknown name is returned unchanged."""
    for key, unit in METRICS.items():
        if name == unit.name:
            return key
    key = name.replace("-", "_")
    key = ALIASES.get(key, key)
    return key if key in LOSSES or key in METRICS else name


def unit_of(name: str | None) -> MetricUnit:
    """Return the unit of a loss or metric by its name; that of a user's loss if it states one."""
    if name is None:
        return MetricUnit("loss")
    key = canonical_name(str(name))
    stated = LOSSES[key].unit if key in LOSSES else Loss.stated_units.get(key)
    return METRICS.get(key) or stated or MetricUnit(str(name))


def losses_at(h: FloatArray, y: NDArray[Any], loss: str | Loss) -> FloatArray:
    """ℓ(h, y) at each point of predictions (m,) or (m, c), y being numbers or labels 0..c−1."""
    loss = get_loss(loss)
    if loss.takes == "label" and h.ndim == 2:
        h = h[np.arange(len(h)), y]
    if loss.takes == "vector":
        y = np.eye(h.shape[1])[y]
    return loss.value(h, y)


def loss_to_dict(loss: str | Loss) -> dict[str, Any]:
    """Write a loss of the library as its name and parameters; a user's loss is refused."""
    known_loss = get_loss(loss)
    for name, kind in LOSSES.items():
        if type(known_loss) is kind:
            record: dict[str, Any] = {"name": name}
            if dataclasses.is_dataclass(known_loss):
                stated = [field.name for field in dataclasses.fields(known_loss) if field.init]
                record |= {field: getattr(known_loss, field) for field in stated}
            return record
    raise ValueError(
        f"the loss {type(known_loss).__name__} is your own Python class, which cannot be saved; "
        f"use one of {', '.join(LOSSES)}."
    )


def loss_from_dict(record: Mapping[str, Any]) -> Loss:
    """Return the loss that `loss_to_dict` wrote."""
    parameters = dict(record)
    name = parameters.pop("name", None)
    if name not in LOSSES:
        raise ValueError(f"unknown loss {name!r:.60}; known are {', '.join(LOSSES)}.")
    try:
        return LOSSES[name](**{field: float(value) for field, value in parameters.items()})
    except TypeError as error:
        raise ValueError(f"the loss {name} does not take {sorted(parameters)}.") from error
