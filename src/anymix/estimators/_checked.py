"""What parameters of the distribution-weighted models may be, before anything is trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from anymix._errors import ParameterError
from anymix._parameters import Either, Flag, Number, Rule, Seed, Share, Words, check
from anymix.estimators._members import Members
from anymix.estimators._rows import FOLDS
from anymix.estimators._set_aside import check_set_aside
from anymix.sources import check_learnable


class Checked(Members):
    """Parameters with a rule each, and those that must fit each other or the sources."""

    _takes: ClassVar[Mapping[str, Rule]] = {
        "objective": Words("regret", "robust", "gamma"),
        "shrinkage": Either(Words("auto"), Number(0)),
        "eta": Number(above=0),
        "calibrate": Flag(),
        "confidence": Share(),
        "skip_below": Number(0),
        "random_state": Seed(),
        "consult": Flag(),
        "refit": Flag(),
        "rule": Words("marginal", "normalised"),
    }

    def _check_sources_named(self) -> None:
        # A single source is neither cut into folds nor set aside.
        if len(self.source_names_) > 1:
            check(self.cv, "cv", FOLDS)
            check_set_aside(self.set_aside, self.source_names_)

    def _check_parts(self) -> None:
        super()._check_parts()
        check_learnable(self.loss, self._classification())
        if self.objective == "gamma" and self.shrinkage not in ("auto", 0):
            raise ParameterError(
                "shrinkage is for the objectives 'regret' and 'robust'; leave it at 'auto' with "
                "'gamma', which has one answer."
            )
