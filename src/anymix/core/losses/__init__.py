"""Convex losses ℓ(h, y), small classes that can be selected by name or written by the user."""

from anymix.core.losses.base import DCTerms, Loss, MetricUnit
from anymix.core.losses.checking import check_loss
from anymix.core.losses.library import (
    LOSSES,
    Absolute,
    Brier,
    CrossEntropy,
    Hinge,
    Huber,
    Logistic,
    Pinball,
    Poisson,
    PoissonLog,
    Squared,
)
from anymix.core.losses.names import (
    ALIASES,
    METRICS,
    TASK_LOSSES,
    canonical_name,
    get_loss,
    loss_from_dict,
    loss_name,
    loss_to_dict,
    losses_at,
    unit_of,
)

__all__ = [
    "ALIASES",
    "LOSSES",
    "METRICS",
    "TASK_LOSSES",
    "Absolute",
    "Brier",
    "CrossEntropy",
    "DCTerms",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "MetricUnit",
    "Pinball",
    "Poisson",
    "PoissonLog",
    "Squared",
    "canonical_name",
    "check_loss",
    "get_loss",
    "loss_from_dict",
    "loss_name",
    "loss_to_dict",
    "losses_at",
    "unit_of",
]
