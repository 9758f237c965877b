"""Rows and documents in the forms in which the parts of an estimator are given them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils.validation import check_is_fitted

from anymix._arrays import FloatArray
from anymix.exchange.contents import FEW, parts_of
from anymix.exchange.matches import Rows


def forms_of(model: Any, rows: Any) -> Iterator[Any]:
    """Yield the rows as each step of the pipelines in an estimator, and each of a bag, gets them.

    Parameters
    ----------
    model : estimator
    rows : array (n, d), data frame, sparse matrix, or array (n,) of documents

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import MaxAbsScaler
    >>> model = make_pipeline(MaxAbsScaler(), Ridge()).fit([[2.0], [4.0]], [0.0, 1.0])
    >>> [form.tolist() for form in forms_of(model, np.array([[2.0], [4.0]]))]
    [[[0.5], [1.0]]]
    """
    steps = [step for _, step in getattr(model, "steps", ())]
    for step in steps[:-1]:
        yield from forms_of(step, rows)
        if hasattr(step, "transform"):
            rows = step.transform(rows)
            yield rows
    if steps:
        yield from forms_of(steps[-1], rows)
    elif hasattr(model, "estimators_features_"):
        yield from _of_bag(model, rows)
    else:
        for part in parts_of(model):
            if _takes(part, rows):
                yield from forms_of(part, rows)


def _of_bag(model: Any, rows: Any) -> Iterator[Any]:
    """Yield the columns that each estimator of a bag is given."""
    rows = np.asarray(rows) if hasattr(rows, "iloc") else rows
    for part, columns in zip(model.estimators_, model.estimators_features_, strict=True):
        given = rows
        if not np.array_equal(columns, np.arange(rows.shape[1])):
            given = rows[:, columns]
            yield given
        yield from forms_of(part, given)


def _takes(part: Any, rows: Any) -> bool:
    """Whether a part of an estimator was fitted on rows of this kind."""
    if len(rows.shape) == 2:
        return bool(getattr(part, "n_features_in_", None) == rows.shape[1])
    try:
        check_is_fitted(part)
    except (NotFittedError, TypeError):
        return False
    return not hasattr(part, "n_features_in_")


def rare_entries(model: Any, documents: Any) -> int | None:
    """How many words or groups of words of an estimator stand in one to four documents?

    Counted as the estimator itself takes documents apart; None if it has no vectoriser.

    Examples
    --------
    >>> documents = ["a@b.de x"] + ["x y"] * 5
    >>> rare_entries(CountVectorizer(token_pattern=r"[^ ]+").fit(documents), documents)
    1
    """
    found = list(_vectorisers(model, set()))
    tables = (vectoriser.transform(documents) for vectoriser in found)
    counts = [np.bincount((table > 0).indices) for table in tables]
    return sum(int(((n > 0) & (n < FEW)).sum()) for n in counts) if found else None


def _vectorisers(model: Any, seen: set[int]) -> Iterator[Any]:
    if id(model) in seen:
        return
    seen.add(id(model))
    if isinstance(model, CountVectorizer) and hasattr(model, "vocabulary_"):
        yield model
    for part in parts_of(model):
        yield from _vectorisers(part, seen)


def documents_of(rows: Any) -> Any:
    """Documents, in whatever they come, as one array (n,)."""
    return np.asarray(list(rows), dtype=object).ravel()


def dense(rows: Any, most: int) -> FloatArray | None:
    """Rows as plain numbers; None if they are sparse and have more cells than `most`."""
    if hasattr(rows, "toarray"):
        if np.prod(rows.shape) > most:
            return None
        rows = rows.toarray()
    return np.asarray(rows, dtype=float)


def comparable(rows: Any, most: int) -> Iterator[Rows]:
    """Yield what rows are looked for as: sparse ones as they are, and dense unless too large."""
    if hasattr(rows, "tocsr"):
        yield rows.tocsr()
    plain = dense(rows, most)
    if plain is not None:
        yield plain
