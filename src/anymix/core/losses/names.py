"""Every loss by its name."""

from __future__ import annotations

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
