"""Convex losses ℓ(h, y), each a small class that declares what it takes; by name, or the user's."""

from anymix.core.losses.base import DCTerms, Loss
from anymix.core.losses.flat import Absolute, Hinge, Huber, Pinball
from anymix.core.losses.names import LOSSES, get_loss, loss_name
from anymix.core.losses.smooth import Brier, CrossEntropy, Logistic, Poisson, PoissonLog, Squared

__all__ = [
    "LOSSES",
    "Absolute",
    "Brier",
    "CrossEntropy",
    "DCTerms",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "Pinball",
    "Poisson",
    "PoissonLog",
    "Squared",
    "get_loss",
    "loss_name",
]
