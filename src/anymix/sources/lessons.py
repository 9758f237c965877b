"""What z is to achieve, and what learning it asks of rows, be they at hand or elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from anymix._arrays import FloatArray
from anymix.core import Certificate, Combination, CrossFittedCombination, Loss, Solution
from anymix.densities import CalibrationReport, TemperatureScaling
from anymix.sources.certifying import Grounds
from anymix.sources.consulting import Consulted, ConsultingGain
from anymix.sources.novelty import Novelty

Together = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


@dataclass(frozen=True)
class LearningSettings:
    """What z is to achieve, and how it is learned; the parameters are those of the estimators.

    set_aside are the sources, by number, whose rows choose neither z nor a calibration; `ways` is
    from how many such choices the rows themselves have chosen, which the certificate pays for.
    With `consult` the sources hear each other first.  `fresh` says that neither sources nor
    densities were trained on rows of the tables, be it on other folds; names are the sources'.
    """

    loss: str | Loss = "squared"
    eta: float = 1e-3
    rule: str = "marginal"
    objective: str = "regret"
    shrinkage: float | str = "auto"
    calibrate: bool = True
    confidence: float = 0.95
    set_aside: tuple[int, ...] = ()
    ways: int = 1
    consult: bool = False
    fresh: bool = True
    names: tuple[str, ...] = ()

    @property
    def grounds(self) -> Grounds:
        """What a certificate of this goal stands on."""
        return Grounds(self.confidence, self.fresh, self.ways, self.names)

    def value(self, losses: FloatArray) -> float:
        """Return what a calibration is judged by: the mean loss over sources, or the worst loss.

        For a given z the mean of the regrets is the mean loss up to a constant, and the mean is far
        less noisy than the largest, which picked a worse calibration on held-out real rows.
        """
        heard = np.delete(losses, list(self.set_aside))
        return float(heard.max() if self.objective == "robust" else heard.mean())


class Lesson(Protocol):
    """Labelled rows, wherever they are, as one combination learns from them."""

    @property
    def n_sources(self) -> int:
        """p."""

    @property
    def together(self) -> Together:
        """Like Python's map: for questions, of which none needs the answer to another."""

    def consulted(self, goal: LearningSettings) -> Consulted:
        """Let the sources hear each other if the goal says so.

        The tables after it are asked for `weighed(calibration).problem(loss, eta, rule)` alone.
        """

    def scalings(self, set_aside: Sequence[int]) -> list[TemperatureScaling]:
        """Fit own temperatures, and one that all share, by rows of all sources but some."""


class Part(NamedTuple):
    """What some of the rows have taught: a combination, and how it was found."""

    combination: Combination
    solution: Solution
    report: CalibrationReport | None
    said: Any


class Rows(Protocol):
    """Labelled rows, wherever they are: all that `learn_rows` asks of them."""

    @property
    def n_sources(self) -> int:
        """p."""

    @property
    def n_points(self) -> int:
        """m."""

    def check_loss(self, loss: str | Loss, rule: str) -> None:
        """Refuse a loss of another kind."""

    def lessons(self) -> Sequence[Lesson]:
        """Deal the rows out; all but those of each part, or one lesson of all where few."""

    @property
    def together(self) -> Together:
        """Like Python's map: for lessons, of which none needs another."""

    def certified(
        self, parts: Sequence[Part], used: CrossFittedCombination, goal: LearningSettings
    ) -> Certificate:
        """Certify an average by what each part says at rows that it was learned without."""

    def novelty(self) -> Novelty | None:
        """What is usual at home, where there are densities."""

    def cross_losses(self, goal: LearningSettings) -> tuple[FloatArray, FloatArray]:
        """Losses of each source's model on each domain, and their standard errors, (p, p)."""

    @property
    def sketched(self) -> tuple[str, ...]:
        """What was learned from a sample or a sketch of the rows, in sentences."""

    def advice(self, used: CrossFittedCombination, goal: LearningSettings) -> ConsultingGain | None:
        """What hearing each other has brought to the sources."""
