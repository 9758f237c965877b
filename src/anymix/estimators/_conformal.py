"""Conformal sets and intervals that cover on every mixture of the sources.

Each held-out row is scored by what was learned without it; new rows are compared with those scores.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from anymix._arrays import FloatArray, IntArray, n_rows
from anymix.core import (
    Conformal,
    Coverage,
    CrossFittedCombination,
    ErrorScale,
    check_alpha,
    crossed_bound,
    errors_at,
    fewest,
    learn_error_scale,
    limits_without,
)
from anymix.estimators._members import aligned
from anymix.estimators._row_checks import check_domains, check_groups, check_X
from anymix.estimators._running import names_checked
from anymix.sources import (
    HeldOut,
    Tables,
    assign_folds,
    combined_predictions,
    evaluate,
    held_out_predictions,
)

# Numbers of one table that are held at a time: 32 MB.
CHUNK_NUMBERS = 2**22
ROUTES = "pass calibration=(X, y, sample_domain), rows that neither sources nor z have seen"

# h_t(x), (n,) or (n, c), and log r_kt(x), (p, n), of each part.
Said = tuple[list[FloatArray], list[FloatArray]]


@dataclass(frozen=True)
class Judges:
    """The predicting parts, the error scale of each, and the calibration rows.

    The rows are labelled: h and log_r come from the part that was learned without fold's rows.
    """

    parts: tuple[CrossFittedCombination, ...]
    error_scales: tuple[ErrorScale, ...]
    h: FloatArray
    log_r: FloatArray
    y: NDArray[Any]
    domain: IntArray
    fold: IntArray

    @property
    def scores(self) -> FloatArray:
        """s of each row for its own source, (m,)."""
        found, errors = np.empty(self.domain.size), errors_at(self.h, self.y)
        for t, by in enumerate(self.error_scales):
            some = self.fold == t
            found[some] = by.scores(errors[some], self.log_r[:, some], self.domain[some])
        return found

    def conformal(self, rows: NDArray[Any] | None = None) -> Conformal:
        """Sort the scores, of all rows or of some."""
        some = slice(None) if rows is None else rows
        known = self.fold[some], self.domain[some]
        return Conformal.of(self.error_scales, self.scores[some], *known)

    def said(self, tables: Tables) -> Said:
        """h_t(x) and log r_kt(x) of each part at new points."""
        logs = [part.log_responsibilities(tables.log_masses) for part in self.parts]
        return [combined_predictions(tables, part) for part in self.parts], logs


def cross_fitted(
    tables: Tables, used: CrossFittedCombination, alpha: float, held_out: HeldOut | None = None
) -> Judges:
    """Score each row by the part of the model that was learned without it.

    Its error scale is learned from the other rows, its training rows.  A single part has seen all
    rows; `held_out` has its predictions for each row by pools that were learned without it, if
    known.
    """
    K, m = len(used.parts), tables.n_points
    fold = np.zeros(m, dtype=np.intp)
    if K > 1:
        fold = assign_folds(tables, K) if held_out is None else held_out.fold
    if K == 1 and held_out is not None:
        h = held_out.predictions
    else:
        h = held_out_predictions(tables, used, fold)
    log_r = np.empty_like(tables.log_masses)
    parts = tuple(CrossFittedCombination((part,)) for part in used.parts)
    scales = []
    for t, part in enumerate(parts):
        log_r[:, fold == t] = part.log_responsibilities(tables.log_masses[:, fold == t])
        taught = tables if K == 1 else tables.taken(np.flatnonzero(fold != t))
        scales.append(error_scale_of(split(taught, part, ()), alpha))
    return Judges(parts, tuple(scales), h, log_r, np.asarray(tables.targets), tables.domain, fold)


def split(fresh: Tables, used: CrossFittedCombination, scales: tuple[ErrorScale, ...]) -> Judges:
    """Score new rows by the deployed average; the error scale has not seen them either."""
    y, domain = np.asarray(fresh.targets), fresh.domain
    h, log_r = combined_predictions(fresh, used), used.log_responsibilities(fresh.log_masses)
    return Judges((used,), scales, h, log_r, y, domain, np.zeros(y.size, dtype=np.intp))


def error_scale_of(judges: Judges, alpha: float) -> ErrorScale:
    """Learn the error scale from these rows."""
    errors, labels = errors_at(judges.h, judges.y), None if judges.h.ndim == 1 else 1.0 - judges.h
    return learn_error_scale(errors, judges.log_r, judges.domain, alpha, labels)


def plain_judges(h: FloatArray, tables: Tables, fold: IntArray) -> Judges:
    """Use plain errors, where responsibilities are unknown."""
    p, m = tables.log_masses.shape
    scales = (ErrorScale(np.ones(p)),) * (int(fold.max()) + 1)
    alike = np.full((p, m), -np.log(p))
    return Judges((), scales, h, alike, np.asarray(tables.targets), tables.domain, fold)


def coverage(model: Any, alpha: float, calibration: Any) -> Coverage:
    """Return the guaranteed and the measured coverage of sets or intervals."""
    judges = judges_of(model, alpha, calibration, warn=False)
    domain, p = judges.domain, len(model.source_names_)
    limits = limits_without(judges.scores, domain, p, alpha)
    covered, sizes = np.empty((2, domain.size))
    for t, by in enumerate(judges.error_scales):
        some = judges.fold == t
        log_r = judges.log_r[:, some]
        limit = (limits[:, some] + by.pull(log_r)).max(axis=0) * by.scale(log_r)
        given = judges.h[some], judges.y[some]
        covered[some], sizes[some] = _covered(*given, np.maximum(limit, 0.0))
    n = np.bincount(domain, minlength=p)
    with np.errstate(invalid="ignore"):
        share, size = (np.bincount(domain, value, p) / n for value in (covered, sizes))
    ground, most, reason = _ground(model, alpha, calibration, n)
    of = "numbers" if model._labels is None else "labels"
    return Coverage(alpha, n.astype(float), share, size, ground, most, reason, of)


def _ground(model: Any, alpha: float, calibration: Any, n: IntArray) -> tuple[str, float, str]:
    """Return what "at most α" stands on, the most that can be missed, and why."""
    if calibration is not None:
        if _seen_in(model, calibration):
            return "measured", 1.0, "the model was fitted on the calibration rows"
        return "exact", alpha, ""
    certificate, members = model.certificate_, model._members()
    K = len(members or model.combination_.parts)
    if certificate is None:
        return "measured", 1.0, "z was adapted to traffic after these rows had judged it"
    if certificate.covers:
        return "measured", 1.0, f"the scores are of {certificate.covers}, refitted since"
    if getattr(model, "taught_", None):
        return "measured", 1.0, "the error scale was learned from the rows that are scored"
    if K == 1:
        return "measured", 1.0, "the model was fitted on these few rows, too"
    # Folds of labels are dealt label by label, which the proof does not know.
    by_label = bool(members) and model._labels is not None
    most = 1.0 if by_label else float(crossed_bound(n, K, alpha).max())
    return "asymptotic", most, "each row is scored by the part that was learned without it"


def judges_of(model: Any, alpha: float, calibration: Any, warn: bool = True) -> Judges:
    """Return the scores of calibration rows, or raise an error if there are none."""
    # A model that is read for its records alone has no sources.
    check_is_fitted(model, "source_names_")
    check_alpha(alpha)
    if warn and alpha > 0.5:
        _warn(
            f"alpha={alpha:g} is the share of rows that may be missed, here most of them; write "
            f"{1 - alpha:.3g} for sets that hold the truth {100 * alpha:.3g} times in 100."
        )
    p = len(model.source_names_)
    if p == 1:
        raise ValueError(
            "sets that cover on every mixture need several sources, and this model has one; "
            "fit it with sample_domain, the source of each row."
        )
    by_members = bool(model._members())
    judges = (_judged_by_members if by_members else _judged_by_parts)(model, alpha, calibration)
    judges = _one_of_each_group(model, calibration, judges)
    if warn:
        seen = _seen_in(model, calibration)
        if seen:
            _warn(
                f"the rows of {', '.join(seen)} in calibration were used by fit, so nothing "
                "is promised; give rows that neither sources nor z have seen."
            )
        n = np.bincount(judges.domain, minlength=p)
        few = [f"{model.source_names_[k]} ({n[k]})" for k in np.flatnonzero(n < fewest(alpha))]
        if few:
            _warn(
                f"with alpha={alpha:.3g} every answer is in every set, because a source has too "
                f"few rows to refuse one: {', '.join(few)}; each needs {fewest(alpha)}, or alpha "
                "must be larger."
            )
    return judges


def _warn(message: str) -> None:
    # _warn, judges_of, predict_..., the method of the model, its caller.
    warnings.warn(message, UserWarning, stacklevel=5)


def _judged_by_parts(model: Any, alpha: float, calibration: Any) -> Judges:
    known: Tables | None = getattr(model, "tables_", None)
    if known is None or known.targets is None or known.sample_domain is None:
        raise ValueError("this model has no held-out rows to compare with; fit it anew.")
    judges = cross_fitted(known, model.combination_, alpha, getattr(model, "held_out_", None))
    if calibration is None:
        return judges
    is_tables = isinstance(calibration, Tables)
    fresh = calibration if is_tables else model.evaluate(*_rows(calibration)[:3])
    if fresh.targets is None or fresh.sample_domain is None:
        raise ValueError("calibration tables need targets and domains: evaluate(X, y, d).")
    return split(fresh, model.combination_, (error_scale_of(judges, alpha),))


def _judged_by_members(model: Any, alpha: float, calibration: Any) -> Judges:
    """Models of folds are deployed, and each has judged the rows of its fold."""
    p, tables, held_out = len(model.source_names_), model.tables_, model.held_out_
    if calibration is None:
        return plain_judges(held_out.predictions, tables, held_out.fold)
    X, y, domain, _ = _rows(calibration)
    h = model._combined(X)
    _, codes = check_domains(domain, len(h), [str(name) for name in model.source_names_])
    blank = Tables(np.zeros((p, len(h))), np.stack([h] * p), classes=model._labels)
    return plain_judges(h, blank.labelled(y, codes), np.zeros(len(h), dtype=np.intp))


def _seen_in(model: Any, calibration: Any) -> list[str]:
    """Name the sources whose calibration rows the model was fitted on."""
    if calibration is None:
        return []
    if isinstance(calibration, Tables):
        found: list[str] = model.seen_among(calibration)
        return found
    X, _, domain, _ = _rows(calibration)
    known: list[str] = model.seen_domains(X, domain)
    return known


def _predictions_of_parts(model: Any, X: Any, judges: Judges, width: int) -> Iterator[Said]:
    """h_t(x) and log r_kt(x) of each part, some rows at a time."""
    X = check_X(model, X)
    n, step = n_rows(X), max(1, CHUNK_NUMBERS // max(width, 1))
    with names_checked(model):
        for start in range(0, n, step):
            some = X if n <= step else _safe_indexing(X, slice(start, min(start + step, n)))
            yield _predictions_at(model, some, judges)


def _predictions_at(model: Any, X: Any, judges: Judges) -> Said:
    members = model._members()
    if not members:
        known = {"reference": False, "generalist": model.generalist_}
        tables = evaluate(model.sources_, X, model._labels, model.router_, **known)
        return judges.said(tables)
    p = len(model.source_names_)
    alike = np.full((p, n_rows(X)), -np.log(p))
    if len(judges.error_scales) == 1:
        return [model._combined(X)], [alike]
    said = [aligned(model, member, member._combined(X)) for member in members]
    return said, [alike] * len(said)


def predict_interval(model: Any, X: Any, alpha: float, calibration: Any) -> FloatArray:
    """Return lower and upper ends (n, 2); see `DistributionWeightedRegressor`."""
    judges = judges_of(model, alpha, calibration)
    known = judges.conformal()
    width = len(model.sources_) + 3 * len(judges.error_scales) * (1 + int(alpha * known.n.max()))
    parts = _predictions_of_parts(model, X, judges, width)
    return np.concatenate([known.interval(*said, alpha) for said in parts])


def predict_set(
    model: Any, X: Any, alpha: float, calibration: Any, by_label: bool
) -> NDArray[np.bool_]:
    """Return the labels in the set of each row (n, c); see the classifier."""
    judges, n_classes = judges_of(model, alpha, calibration), len(model.classes_)
    known = [judges.conformal()]
    if by_label:
        if n_classes != judges.h.shape[1] or not judges.y.any():
            raise ValueError(
                "by_label needs the label of each held-out row, but these tables hold what was "
                f"said at the label alone; {ROUTES}."
            )
        known += [judges.conformal(judges.y == c) for c in range(n_classes)]
    width = (len(model.sources_) + len(judges.error_scales)) * (1 + n_classes)
    parts = _predictions_of_parts(model, X, judges, width)
    return np.concatenate([_sets(known, *said, alpha) for said in parts])


def _rows(calibration: Any) -> tuple[Any, Any, Any, Any]:
    if not isinstance(calibration, tuple) or len(calibration) not in (3, 4):
        raise TypeError(
            "calibration is (X, y, sample_domain), or (X, y, sample_domain, groups), or the tables "
            "that evaluate makes of them."
        )
    X, y, domain, *groups = calibration
    return X, y, domain, groups[0] if groups else None


def _one_of_each_group(model: Any, calibration: Any, judges: Judges) -> Judges:
    """Keep a row of each group of each source, by chance: those are independent draws."""
    if isinstance(calibration, tuple):
        given = _rows(calibration)[3]
        groups = None if given is None else check_groups(given, judges.y.size)
    else:
        groups = (model.tables_ if calibration is None else calibration).groups
    if groups is None:
        return judges
    order = np.random.default_rng(0).permutation(judges.y.size)
    pairs = groups[order] * (int(judges.domain.max()) + 1) + judges.domain[order]
    kept = np.sort(order[np.unique(pairs, return_index=True)[1]])
    names = ("h", "y", "domain", "fold")
    parts: dict[str, Any] = {name: getattr(judges, name)[kept] for name in names}
    return replace(judges, log_r=judges.log_r[:, kept], **parts)


def _covered(h: FloatArray, y: NDArray[Any], limit: FloatArray) -> tuple[NDArray[Any], FloatArray]:
    """Whether rows lie in their sets, and how large these are, from the largest errors in them."""
    inside = errors_at(h, y) <= limit
    if h.ndim == 1:
        return inside, 2.0 * limit
    if h.shape[1] == 1:
        return inside, np.full(len(h), np.nan)
    whole = _never_empty(1.0 - h <= limit[:, None], h)
    return whole[np.arange(len(h)), y.astype(np.intp)], whole.sum(axis=1).astype(float)


def _never_empty(inside: NDArray[np.bool_], h: FloatArray) -> NDArray[np.bool_]:
    """Put the likeliest label in: a set may always be larger."""
    inside[np.arange(len(h)), h.argmax(axis=1)] = True
    return inside


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
