"""What rows have taught, as the attributes of a fitted estimator; the rows may be elsewhere."""

from __future__ import annotations

from typing import Any

from anymix.estimators.cross_loss import make_cross_loss
from anymix.sources import Learned


def take_up(model: Any, learned: Learned) -> None:
    """Set all that was learned but what only rows at hand can show."""
    model.combination_, model.certificate_ = learned.combination, learned.certificate
    model.solution_, model.calibration_report_ = learned.solution, learned.calibration_report
    model.novelty_, model.advice_ = learned.novelty, learned.advice
    model.cross_loss_ = make_cross_loss(
        *learned.cross_losses, model.source_names_, model.confidence, model.loss
    )
