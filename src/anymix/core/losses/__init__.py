"""Convex losses ℓ(h, y), each a small class that declares what it takes; by name, or the user's."""

from anymix.core.losses.base import DCTerms, Loss
from anymix.core.losses.checking import check_loss
from anymix.core.losses.flat import Absolute, Hinge, Huber, Pinball
from anymix.core.losses.names import LOSSES, get_loss, loss_name
from anymix.core.losses.names import loss_from_dict as loss_from_dict
from anymix.core.losses.names import loss_to_dict as loss_to_dict
from anymix.core.losses.names import losses_at as losses_at
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
    "check_loss",
    "get_loss",
    "loss_name",
]
