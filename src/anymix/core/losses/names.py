"""Every loss by its name, and how one is written down."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray
from anymix.core.losses.base import Loss
from anymix.core.losses.flat import Absolute, Hinge, Huber, Pinball
from anymix.core.losses.smooth import Brier, CrossEntropy, Logistic, Poisson, PoissonLog, Squared

LOSSES: dict[str, type[Loss]] = {
    "squared": Squared,
    "cross_entropy": CrossEntropy,
    "brier": Brier,
    "logistic": Logistic,
    "poisson": Poisson,
    "poisson_log": PoissonLog,
    "absolute": Absolute,
    "pinball": Pinball,
    "huber": Huber,
    "hinge": Hinge,
}


def get_loss(loss: str | Loss) -> Loss:
    """Return the loss of that name, or the object itself.

    >>> get_loss("huber")
    Huber(delta=1.0)
    """
    if isinstance(loss, Loss):
        return loss
    if loss not in LOSSES:
        raise ValueError(f"unknown loss {loss!r}; known are {', '.join(LOSSES)}, or pass a Loss.")
    return LOSSES[loss]()


def loss_name(loss: Loss) -> str:
    """Return a loss's name in words; that of its class if it is the user's own.

    >>> loss_name(CrossEntropy())
    'cross-entropy'
    """
    known = (name for name, kind in LOSSES.items() if type(loss) is kind)
    return next(known, type(loss).__name__).replace("_", "-")


def losses_at(h: FloatArray, y: NDArray[Any], loss: str | Loss) -> FloatArray:
    """ℓ(h, y) at each point of predictions (m,) or (m, c), y being numbers or labels 0..c−1.

    >>> losses_at(np.array([[0.5, 0.5], [0.1, 0.9]]), np.array([0, 1]), "brier").round(2)
    array([0.5 , 0.02])
    """
    loss = get_loss(loss)
    if loss.takes == "label" and h.ndim == 2:
        h = h[np.arange(len(h)), y]
    if loss.takes == "vector":
        y = np.eye(h.shape[1])[y]
    return loss.value(h, y)


def loss_to_dict(loss: str | Loss) -> dict[str, Any]:
    """Write a loss of the library by its name and parameters; the user's own has no name here.

    >>> loss_to_dict(Pinball(0.3))
    {'name': 'pinball', 'quantile': 0.3}
    """
    known = get_loss(loss)
    for name, kind in LOSSES.items():
        if type(known) is kind:
            given = [f.name for f in dataclasses.fields(known) if f.init]  # type: ignore[arg-type]
            return {"name": name} | {field: getattr(known, field) for field in given}
    raise ValueError(
        f"the loss {type(known).__name__} is your own Python class, which cannot be written down; "
        f"use one of {', '.join(LOSSES)}."
    )


def loss_from_dict(record: Mapping[str, Any]) -> Loss:
    """Return the loss that `loss_to_dict` wrote.

    >>> loss_from_dict({"name": "pinball", "quantile": 0.3})
    Pinball(quantile=0.3)
    """
    given = dict(record)
    name = given.pop("name", None)
    if name not in LOSSES:
        raise ValueError(f"unknown loss {name!r:.60}; known are {', '.join(LOSSES)}.")
    try:
        return LOSSES[name](**{field: float(value) for field, value in given.items()})
    except TypeError as error:
        raise ValueError(f"the loss {name} does not take {sorted(given)}.") from error
