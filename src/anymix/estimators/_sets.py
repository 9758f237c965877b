"""Sets of labels and intervals of numbers that cover on every mixture of the sources."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from anymix._arrays import FloatArray, IntArray, n_rows
from anymix.core import Conformal, Coverage, check_alpha, crossed_bound, fewest, limits_without
from anymix.estimators._judging import Judged, Judges, Said, cross_fitted, plain_judges, split
from anymix.estimators._questions import Questions
from anymix.estimators._rows import check_domains, check_X
from anymix.estimators._warnings import names_checked
from anymix.sources import Tables, evaluate

# Numbers of one table that are held at a time: 32 MB.
CHUNK_NUMBERS = 2**22
ROUTES = "pass calibration=(X, y, sample_domain), rows that neither sources nor z have seen"


class _Covering(Questions):
    """What sets of labels and intervals of numbers share."""

    def coverage(self, alpha: float = 0.1, calibration: Any = None) -> Coverage:
        """Say what sets or intervals promise, on what ground, and what rows show.

        Parameters and promise are those of `predict_set` and `predict_interval`.  Each row is
        judged by the others, and by the part of the model that was learned without it.
        """
        judges = self._judges(alpha, calibration, warn=False)
        rows, p = judges.rows, len(self.source_names_)
        limits = limits_without(judges.scores, rows.domain, p, alpha)
        covered, sizes = np.empty((2, rows.domain.size))
        for t, by in enumerate(judges.yardsticks):
            some = rows.fold == t
            given = rows.taken(some)
            limit = (limits[:, some] + by.pull(given.log_r)).max(axis=0) * by.scale(given.log_r)
            covered[some], sizes[some] = _covered(given, np.maximum(limit, 0.0))
        n = np.bincount(rows.domain, minlength=p)
        with np.errstate(invalid="ignore"):
            share, size = (np.bincount(rows.domain, value, p) / n for value in (covered, sizes))
        ground, most, reason = self._ground(alpha, calibration, n)
        of = "labels" if self._classification() else "numbers"
        return Coverage(alpha, n.astype(float), share, size, ground, most, reason, of)

    def _ground(self, alpha: float, calibration: Any, n: IntArray) -> tuple[str, float, str]:
        """Say what "at most α" stands on, the most that can be missed, and why."""
        if calibration is not None:
            if self._seen_in(calibration):
                return "measured", 1.0, "rows that calibrate have taught the model"
            return "exact", alpha, ""
        members = vars(self).get("members_")
        certificate, K = self.certificate_, len(members or self.combination_.parts)
        if certificate is None:
            return "measured", 1.0, "z was adapted to traffic after these rows had judged it"
        if certificate.covers:
            return "measured", 1.0, f"the scores are of {certificate.covers}, refitted since"
        if vars(self).get("taught_"):
            return "measured", 1.0, "the rows that are scored have taught the yardstick"
        if K == 1:
            return "measured", 1.0, "so few rows have taught the model that judges them"
        # Folds of labels are dealt label by label, which the proof does not know.
        by_label = bool(members) and self._classification()
        most = 1.0 if by_label else float(crossed_bound(n, K, alpha).max())
        return "asymptotic", most, "each row is scored by the part that was learned without it"

    def _judges(self, alpha: float, calibration: Any, warn: bool = True) -> Judges:
        # A model that is read for its records alone has no sources.
        check_is_fitted(self, "source_names_")
        check_alpha(alpha)
        if warn and alpha > 0.5:
            _warn_of_most(alpha)
        if len(self.source_names_) == 1:
            raise ValueError(
                "sets that cover on every mixture need several sources, and this model has one; "
                "fit it with sample_domain, the source of each row."
            )
        members = vars(self).get("members_")
        judges = (
            self._judged_by_parts(alpha, calibration)
            if not members
            else self._judged_by_members(calibration)
        )
        if warn:
            self._warn_of_seen(calibration)
            p = len(self.source_names_)
            self._warn_of_few(np.bincount(judges.rows.domain, minlength=p), alpha)
        return judges

    def _judged_by_parts(self, alpha: float, calibration: Any) -> Judges:
        known: Tables | None = vars(self).get("tables_")
        if known is None or known.targets is None or known.sample_domain is None:
            raise ValueError("this model has no held-out rows to compare with; fit it anew.")
        held_out = vars(self).get("held_out_")
        said = None if held_out is None else held_out.predictions
        judges = cross_fitted(known, self.combination_, alpha, said)
        if calibration is None:
            return judges
        fresh = (
            calibration if isinstance(calibration, Tables) else self.evaluate(*_rows(calibration))
        )
        if fresh.targets is None or fresh.sample_domain is None:
            raise ValueError("calibration tables need targets and domains: evaluate(X, y, d).")
        return split(fresh, self.combination_, judges.rows.yardstick(alpha))

    def _judged_by_members(self, calibration: Any) -> Judges:
        """Models of folds are deployed, and each has judged the rows of its fold."""
        p, tables, held_out = len(self.source_names_), self.tables_, self.held_out_
        if calibration is None:
            return plain_judges(held_out.predictions, tables, held_out.fold)
        X, y, domain = _rows(calibration)
        h = self._combined(X)
        _, codes = check_domains(domain, len(h), [str(name) for name in self.source_names_])
        blank = Tables(np.zeros((p, len(h))), np.stack([h] * p), classes=self._labels)
        return plain_judges(h, blank.labelled(y, codes), np.zeros(len(h), dtype=np.intp))

    def _seen_in(self, calibration: Any) -> list[str]:
        """Name the sources whose rows in a calibration have taught the model."""
        if vars(self).get("members_") or calibration is None:
            return []
        if isinstance(calibration, Tables):
            return self.seen_among(calibration)
        X, _, domain = _rows(calibration)
        return self.seen_domains(X, domain)

    def _warn_of_seen(self, calibration: Any) -> None:
        seen = self._seen_in(calibration)
        if seen:
            warnings.warn(
                f"the rows of {', '.join(seen)} in calibration have taught the model, so nothing "
                "is promised; give rows that neither sources nor z have seen.",
                UserWarning,
                stacklevel=4,
            )

    def _warn_of_few(self, n: IntArray, alpha: float) -> None:
        few = [f"{self.source_names_[k]} ({n[k]})" for k in np.flatnonzero(n < fewest(alpha))]
        if few:
            warnings.warn(
                f"with alpha={alpha:.3g} every answer is in every set, because a source has too "
                f"few rows to refuse one: {', '.join(few)}; each needs {fewest(alpha)}, or alpha "
                "must be larger.",
                UserWarning,
                stacklevel=4,
            )

    def _asked_parts(self, X: Any, judges: Judges, width: int) -> Iterator[Said]:
        """h_t(x) and log r_kt(x) of each part, some rows at a time."""
        X = check_X(self, X)
        n, step = n_rows(X), max(1, CHUNK_NUMBERS // max(width, 1))
        with names_checked(self):
            for start in range(0, n, step):
                some = X if n <= step else _safe_indexing(X, slice(start, min(start + step, n)))
                yield self._asked_parts_at(some, judges)

    def _asked_parts_at(self, X: Any, judges: Judges) -> Said:
        members: Any = vars(self).get("members_")
        if not members:
            return judges.said(
                evaluate(self.sources_, X, self._labels, self.router_, reference=False)
            )
        alike = np.full((len(self.source_names_), n_rows(X)), -np.log(len(self.source_names_)))
        whole: Any = self
        if len(judges.yardsticks) == 1:
            return [self._combined(X)], [alike]
        said = [whole._aligned(member, member._combined(X)) for member in members]
        return said, [alike] * len(said)


def _rows(calibration: Any) -> tuple[Any, Any, Any]:
    if not isinstance(calibration, tuple) or len(calibration) != 3:
        raise TypeError(
            "calibration is (X, y, sample_domain), or the tables that evaluate makes of them."
        )
    return calibration


def _covered(given: Judged, limit: FloatArray) -> tuple[NDArray[Any], FloatArray]:
    """Whether rows lie in their sets, and how large these are, from the largest errors in them."""
    inside, h = given.errors <= limit, given.h
    if h.ndim == 1:
        return inside, 2.0 * limit
    if h.shape[1] == 1:
        return inside, np.full(len(h), np.nan)
    whole = _never_empty(1.0 - h <= limit[:, None], h)
    return whole[np.arange(len(h)), given.y.astype(np.intp)], whole.sum(axis=1).astype(float)


def _never_empty(inside: NDArray[np.bool_], h: FloatArray) -> NDArray[np.bool_]:
    """Put the likeliest label in: a set may always be larger."""
    inside[np.arange(len(h)), h.argmax(axis=1)] = True
    return inside


class Intervals(_Covering):
    """Intervals of a regression."""

    def predict_interval(
        self, X: Any, alpha: float = 0.1, *, calibration: Any = None
    ) -> FloatArray:
        """Lower and upper ends that miss at most α of each source, so of every mixture: (n, 2).

        y is inside where max_k p_k(x, y) > α, p_k being the conformal p-value of its score among
        the held-out rows of source k; see docs/sets.md.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame (n, d), or a list of documents
        alpha : float
            The share of rows that may be missed.
        calibration : (X, y, sample_domain) or Tables, optional
            New rows, which make the promise exact.  None takes the held-out rows of `fit`, each
            scored by the part of the model that never saw it: `coverage` says what that proves.
        """
        judges = self._judges(alpha, calibration)
        known = judges.conformal()
        width = len(self.sources_) + 3 * len(judges.yardsticks) * (1 + int(alpha * known.n.max()))
        found = [known.interval(*said, alpha) for said in self._asked_parts(X, judges, width)]
        return np.concatenate(found)


class Sets(_Covering):
    """Sets of labels of a classification."""

    def predict_set(
        self, X: Any, alpha: float = 0.1, *, calibration: Any = None, by_label: bool = False
    ) -> NDArray[np.bool_]:
        """Which labels to expect, missing at most α of each source, so of every mixture: (n, c).

        A label is in the set (True, in the order of `classes_`) where max_k p_k(x, y) > α, p_k
        being the conformal p-value of its score among the held-out rows of source k; see
        docs/sets.md.  The likeliest label is in every set.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame (n, d), or a list of documents
        alpha : float
            The share of rows that may be missed.
        calibration : (X, y, sample_domain) or Tables, optional
            New rows, which make the promise exact.  None takes the held-out rows of `fit`, each
            scored by the part of the model that never saw it: `coverage` says what that proves.
        by_label : bool
            Miss at most α of each label of each source: p_k is then found among rows of source k
            with that label.  Where a source has fewer than 1/α − 1 of them, all its rows speak for
            the label, and nothing is promised for it alone.
        """
        judges = self._judges(alpha, calibration)
        known = [judges.conformal()]
        if by_label:
            known += self._of_labels(judges)
        width = (len(self.sources_) + len(judges.yardsticks)) * (1 + len(self.classes_))
        found = [_sets(known, *said, alpha) for said in self._asked_parts(X, judges, width)]
        return np.concatenate(found)

    def _of_labels(self, judges: Judges) -> list[Conformal]:
        if len(self.classes_) != judges.rows.h.shape[1] or not judges.rows.y.any():
            raise ValueError(
                "by_label needs the label of each held-out row, but these tables hold what was "
                f"said at the label alone; {ROUTES}."
            )
        return [judges.conformal(judges.rows.y == c) for c in range(len(self.classes_))]


def _warn_of_most(alpha: float) -> None:
    warnings.warn(
        f"alpha={alpha:g} is the share of rows that may be missed, here most of them; write "
        f"{1 - alpha:.3g} for sets that hold the truth {100 * alpha:.3g} times in 100.",
        UserWarning,
        stacklevel=4,
    )


def _sets(
    known: list[Conformal], h: list[FloatArray], log_r: list[FloatArray], alpha: float
) -> NDArray[np.bool_]:
    """Sets at new points: by all rows of a source, or by those of one label where they suffice."""
    errors = [1.0 - one for one in h]
    covers = known[0].covers(errors, log_r, alpha)
    for c, own in enumerate(known[1:]):
        some = own.n >= fewest(alpha)
        covers[some, :, c] = own.covers([e[:, c] for e in errors], log_r, alpha)[some]
    return _never_empty(np.asarray(covers.any(axis=0)), np.mean(h, axis=0))
