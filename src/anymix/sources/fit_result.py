"""The result of a fit: what predicts, and the evidence for it.

`learn` produces it in one place; estimators keep it as `result_`, model folders save it, the report
renders it and the command prints it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from anymix.core import Certificate, CrossFittedCombination, Record, Solution
from anymix.densities import CalibrationReport
from anymix.sources.consultation import ConsultingGain
from anymix.sources.cross_fitting import HeldOut
from anymix.sources.cross_loss import CrossLoss
from anymix.sources.fold_scores import FoldScores
from anymix.sources.suspicious_rows import Seen
from anymix.sources.tables import Novelty, Tables


@dataclass(frozen=True)
class GeneralistRecord(Record):
    """How the generalist was learned, and how many numbers left the sites for it.

    Attributes
    ----------
    learned_from : "pooled rows", "sums over sites" or "given"
    n_rounds, n_numbers : int
        Of sums: how often sites were queried, and how many numbers they sent in all: sums over
        their rows, of one for each column and output, and counts.
    strength : float or None
        Of sums: the strength of the ridge, chosen by folds.

    Examples
    --------
    >>> print(GeneralistRecord("sums over sites", 30, 90_000, 1.0))
    A generalist was learned from sums over sites: 30 rounds, in which 90000 numbers left them.
    """

    learned_from: str
    n_rounds: int = 0
    n_numbers: int = 0
    strength: float | None = None

    def __str__(self) -> str:
        if self.learned_from == "given":
            return "The sources may consult a generalist that was given."
        said = f"A generalist was learned from {self.learned_from}"
        if not self.n_rounds:
            return f"{said}."
        return f"{said}: {self.n_rounds} rounds, in which {self.n_numbers} numbers left them."

    def check(self) -> None:
        """Raise a ValueError for an impossible result."""
        known = self.learned_from in ("pooled rows", "sums over sites", "given")
        if not known or min(self.n_rounds, self.n_numbers) < 0 or not (self.strength or 1.0) > 0:
            raise ValueError("the record of the generalist is not sound.")


@dataclass(frozen=True, eq=False)
class FitEvidence:
    """The evidence of held-out rows for a combination of several sources.

    Attributes
    ----------
    certificate : Certificate or None
        None once z was adapted to other traffic.
    solution : Solution or None
        The solver's result; None where fold models are deployed (refit=False).
    cross_loss : CrossLoss or None
        Each source's model on the rows of each source.
    calibration_report : CalibrationReport or None
        How well the densities separate the sources, before and after calibration.
    novelty : Novelty or None
        What is usual for each source, where there are densities.
    fold_scores : FoldScores or None
        Densities of the folds, where `fit` has trained densities: the monitor scores traffic by
        them, as they scored the held-out rows.
    held_out : HeldOut or None
        The combined prediction at each row of `tables`, by what was learned without the row.
    consulting_gain : ConsultingGain or None
        What consulting each other has brought to the sources.
    tables : Tables or None
        What all sources predict for the held-out rows; None where rows stayed at their sites.
    seen : Seen or None
        Digests by which rows of the fit are recognised.
    generalist : GeneralistRecord or None
        How the predictor that sources may consult was learned.
    density_choice : record or None
        Which density was chosen, and the losses it was chosen by.
    learner_choice : record or None
        By which learner the sources were trained, and the losses it was chosen by.
    set_aside : tuple of str
        Sources whose rows chose neither z nor a calibration.
    n_training : int or None
        How many rows z was learned from, where other rows evaluated it.
    sketched : tuple of str
        What was learned from a sample or a sketch of the rows, in sentences.
    verified : bool
        Whether the evidence was computed here; False if it is as a folder states it.
    """

    certificate: Certificate | None = None
    solution: Solution | None = None
    cross_loss: CrossLoss | None = None
    calibration_report: CalibrationReport | None = None
    novelty: Novelty | None = None
    fold_scores: FoldScores | None = None
    held_out: HeldOut | None = None
    consulting_gain: ConsultingGain | None = None
    tables: Tables | None = None
    seen: Seen | None = None
    generalist: GeneralistRecord | None = None
    density_choice: Any = None
    learner_choice: Any = None
    set_aside: tuple[str, ...] = ()
    n_training: int | None = None
    sketched: tuple[str, ...] = ()
    verified: bool = True


@dataclass(frozen=True, eq=False)
class FitResult:
    """The result of a fit: `combination` predicts, `evidence` says how well.

    evidence is None for a single source.  With refit=False there is no single combination:
    `members` are the models learned without each fold, whose average predicts.
    """

    combination: CrossFittedCombination | None
    evidence: FitEvidence | None = None
    members: tuple[Any, ...] = ()
