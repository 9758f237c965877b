"""refit=False: the models of the folds are deployed, so that what is certified is what is used.

Without each fold of the rows everything is learned: models, densities, their choice, second rounds,
consulting, calibration and z.  Each member is judged by the fold that it has not seen, and the
average of all members predicts: by Jensen its loss is at most the mean of theirs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from anymix._arrays import FloatArray, IntArray, positions
from anymix.estimators._choices import Choices
from anymix.estimators._rows import Rows, folds_of
from anymix.estimators.cross_loss import make_cross_loss
from anymix.sources import PROBABILITY_FLOOR, Blocks, Grounds, HeldOut, Tables, certify_predictions


class Members(Choices):
    """What a model of several members answers: the mean of what they do."""

    members_: list[Any]
    refit: bool
    cv: int

    def _has_members(self) -> bool:
        return bool(vars(self).get("members_"))

    def _deploys_folds(self) -> bool:
        return not self.refit and not self.sources and len(self.source_names_) > 1

    @property
    def z_(self) -> FloatArray:
        """The weights of the sources, shape (p,)."""
        if self._has_members():
            return np.mean([member.z_ for member in self.members_], axis=0)
        return self.combination_.z

    def _fit_members(self, given: tuple[Any, Any, Any, Any], rows: Rows) -> None:
        """Learn a member without each fold, and certify their average by the folds.

        given are X, y, sample_domain and sample_weight as they were handed to `fit`.
        """
        X, y, domain, weight = given
        fold = folds_of(rows, self.cv, self._classification(), self.random_state)
        members, parts, said = [], [], None
        y, domain = np.asarray(y), np.asarray(domain)
        for t in range(int(fold.max()) + 1):
            rest, held = np.flatnonzero(fold != t), np.flatnonzero(fold == t)
            heavy = None if weight is None else np.asarray(weight)[rest]
            member = clone(self).set_params(refit=True)
            member.fit(_safe_indexing(X, rest), y[rest], domain[rest], heavy)
            asked = _safe_indexing(X, held)
            answer = self._aligned(member, member._combined(asked))
            said = np.empty((fold.size, *answer.shape[1:])) if said is None else said
            said[held] = answer
            members.append(member)
            parts.append(self._told(member, asked))
        assert said is not None
        tables = _joined(parts, fold, rows, self._labels)
        self.members_, self.tables_, self.held_out_ = members, tables, HeldOut(said, fold)
        self.sources_ = [source for member in members for source in member.sources_]
        names = tuple(str(name) for name in self.source_names_)
        z, grounds = self.z_, Grounds(self.confidence, names=names)
        judged = tables, self.held_out_, self.loss
        self.certificate_ = certify_predictions(*judged, z, self.eta, grounds)
        crossed = Blocks.of(tables).cross_losses(self.loss)
        self.cross_loss_ = make_cross_loss(*crossed, self.source_names_, self.confidence, self.loss)

    def _told(self, member: Any, X: Any) -> FloatArray:
        """What each source of a member says, (p, n[, c])."""
        told: Tables = member.evaluate(X)
        return np.stack([self._aligned(member, one) for one in told.predictions])

    def _aligned(self, member: Any, answer: FloatArray) -> FloatArray:
        """Put the classes of a member, which may lack a rare one, in the order of all."""
        if not self._classification() or len(member.classes_) == len(self.classes_):
            return answer
        found = np.full((len(answer), len(self.classes_)), PROBABILITY_FLOOR)
        found[:, np.searchsorted(self.classes_, member.classes_)] = answer
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def _combined(self, X: Any) -> FloatArray:
        if not self._has_members():
            return super()._combined(X)
        said = [self._aligned(member, member._combined(X)) for member in self.members_]
        return np.asarray(np.mean(said, axis=0))

    def _row_weights(self, X: Any) -> FloatArray:
        if not self._has_members():
            return super()._row_weights(X)
        return np.asarray(np.mean([one.source_weights(X) for one in self.members_], axis=0))

    def novelty(self, X: Any) -> FloatArray:
        """How far each row is from all sources: 0 is typical of one, near 1 is unlike any."""
        if not self._has_members():
            return super().novelty(X)
        return np.asarray(np.mean([one.novelty(X) for one in self.members_], axis=0))


def _joined(
    parts: list[FloatArray], fold: IntArray, rows: Rows, classes: NDArray[Any] | None
) -> Tables:
    """Tables of all rows, each as the member told that has not seen it; they weigh nothing."""
    shape = parts[0].shape
    told = np.empty((shape[0], fold.size, *shape[2:]))
    for t, part in enumerate(parts):
        told[:, fold == t] = part
    targets = rows.y if classes is None else positions(rows.y, classes)
    alike = np.zeros(told.shape[:2])
    return Tables(alike, told, targets, rows.domain, rows.weight, classes, has_densities=False)
