"""What parameters of the distribution-weighted models may be, before anything is trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from sklearn.base import is_classifier, is_regressor

from anymix._parameters import Either, Flag, Number, Rule, Seed, Share, Words, check
from anymix.estimators._members import Members
from anymix.estimators._rows import FOLDS
from anymix.estimators._set_aside import check_set_aside
from anymix.exceptions import ParameterError
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
        "n_jobs": Either(None, Number(1, whole=True), Number(most=-1, whole=True)),
    }

    def _check_sources_named(self) -> None:
        # A single source is neither cut into folds nor set aside.
        if len(self.source_names_) > 1:
            check(self.cv, "cv", FOLDS)
            check_set_aside(self.set_aside, self.source_names_)

    def _check_kind(self) -> None:
        """Refuse an estimator that learns numbers where labels are due, and the other way round."""
        wrong = is_regressor if self._classification() else is_classifier
        if self.estimator is None or not wrong(self.estimator):
            return
        own, other = "DistributionWeightedClassifier", "DistributionWeightedRegressor"
        due, example = ("labels", "LogisticRegression()")
        if not self._classification():
            own, other, due, example = other, own, "numbers", "Ridge()"
        raise ParameterError(
            f"estimator {type(self.estimator).__name__} does not learn {due}, as {own} needs it "
            f"to; give one that does, such as {example}, or take {other}."
        )

    def _check_parts(self) -> None:
        super()._check_parts()
        self._check_kind()
        check_learnable(self.loss, self._classification())
        if self.objective == "gamma" and self.shrinkage not in ("auto", 0):
            raise ParameterError(
                "shrinkage is for the objectives 'regret' and 'robust'; leave it at 'auto' with "
                "'gamma', which has one answer."
            )
