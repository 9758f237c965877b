"""Common preprocessing steps, made from those that each source has fitted on its own rows.

Fitted steps travel with the sources' models, so that no further message is needed.

    StandardScaler    means and variances of all rows: Σ n_k m_k / n, Σ n_k (v_k + (m_k − m)²) / n
    MaxAbsScaler      the largest of the sources' values
    SimpleImputer     the median of the sources' values
    others            as they are, where they are the same for all sources
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, Normalizer, OneHotEncoder, StandardScaler

# Attributes that must be the same for all sources.
SAME: dict[type, str] = {OneHotEncoder: "categories_", RBFSampler: "random_weights_"}


def agreed_step(fitted: Sequence[Any]) -> Any | None:
    """Merge the fitted steps of all sources into one; None if that is impossible.

    Examples
    --------
    >>> one = StandardScaler().fit([[0.0], [2.0]])
    >>> other = StandardScaler().fit([[4.0], [6.0]])
    >>> agreed_step([one, other]).mean_
    array([3.])
    """
    first = fitted[0]
    if any(type(step) is not type(first) for step in fitted):
        return None
    match first:
        case str():
            return first if all(step == first for step in fitted) else None
        case Pipeline():
            return _agreed_pipeline(fitted)
        case ColumnTransformer():
            return _agreed_columns(fitted)
        case StandardScaler():
            return _agreed_scaler(fitted)
        case MaxAbsScaler():
            out = deepcopy(first)
            out.max_abs_ = np.max([step.max_abs_ for step in fitted], axis=0)
            out.scale_ = np.where(out.max_abs_ == 0, 1.0, out.max_abs_)
            return out
        case SimpleImputer():
            out = deepcopy(first)
            out.statistics_ = np.nanmedian([step.statistics_ for step in fitted], axis=0)
            return out
        case MissingIndicator():
            return deepcopy(first) if first.features == "all" else None
        case Normalizer():
            return deepcopy(first)
        case OneHotEncoder() | RBFSampler():
            known = [getattr(step, SAME[type(first)]) for step in fitted]
            same = all(_are_same(known[0], other) for other in known[1:])
            return deepcopy(first) if same else None
    return None


def _are_same(one: Any, other: Any) -> bool:
    return len(one) == len(other) and all(map(np.array_equal, one, other))


def _agreed_pipeline(fitted: Sequence[Pipeline]) -> Pipeline | None:
    if len({len(pipeline) for pipeline in fitted}) > 1:
        return None
    steps = [agreed_step([one[i] for one in fitted]) for i in range(len(fitted[0]))]
    if any(step is None for step in steps):
        return None
    names = [name for name, _ in fitted[0].steps]
    return Pipeline(list(zip(names, steps, strict=True)))


def _agreed_columns(fitted: Sequence[ColumnTransformer]) -> ColumnTransformer | None:
    entries = [one.transformers_ for one in fitted]
    if len({len(each) for each in entries}) > 1:
        return None
    agreed = []
    for same in zip(*entries, strict=True):
        name, _, columns = same[0]
        step = agreed_step([step for _, step, _ in same])
        if step is None or any(other != name for other, _, _ in same):
            return None
        agreed.append((name, step, columns))
    out = deepcopy(fitted[0])
    out.transformers_ = agreed
    return out


def _agreed_scaler(fitted: Sequence[StandardScaler]) -> StandardScaler | None:
    first = fitted[0]
    if not (first.with_mean and first.with_std):
        return None
    n = np.array([np.broadcast_to(one.n_samples_seen_, one.mean_.shape) for one in fitted], float)
    means, variances = (np.array([getattr(s, a) for s in fitted]) for a in ("mean_", "var_"))
    out, total = deepcopy(first), n.sum(axis=0)
    out.mean_ = (n * means).sum(axis=0) / total
    out.var_ = (n * (variances + (means - out.mean_) ** 2)).sum(axis=0) / total
    out.scale_ = np.where(out.var_ > 0, np.sqrt(out.var_), 1.0)
    out.n_samples_seen_ = int(total.max())
    return out
