"""Rows with labels and domains: subsets, folds, and small domains."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from anymix._arrays import FloatArray
from anymix._parameters import Either, Number, check
from anymix.densities import taken
from anymix.exceptions import InputError
from anymix.sources import FEWEST_SITES, deal_groups


def _is_splitter(value: Any) -> str | None:
    fine = hasattr(value, "split") and hasattr(value, "get_n_splits") and not isinstance(value, str)
    return None if fine else f"must be a splitter such as StratifiedKFold(5), not {value!r:.60}"


FOLDS = Either(Number(2, whole=True), _is_splitter)


# Sources of fewer rows do not choose for all where the others have several times as many.
SMALL_SOURCE, SMALL_SHARE = 10, 4


@dataclass(frozen=True)
class Rows:
    """X that can be indexed by row, y (n,), domain 0..p−1 (n,), weight (n,) or None, kind of X.

    Rows of one of the groups (n,) are one draw, and never in two folds; None: each row is one.
    Where some of the rows of `fit` were left out, `kept` says which are here.
    """

    X: Any
    y: NDArray[Any]
    domain: NDArray[np.intp]
    weight: FloatArray | None = None
    kind: str = ""
    groups: NDArray[np.intp] | None = None
    kept: NDArray[np.intp] | None = None

    def take(self, rows: NDArray[np.intp]) -> Rows:
        """Return some of the rows."""
        return Rows(
            taken(self.X, rows),
            self.y[rows],
            self.domain[rows],
            None if self.weight is None else self.weight[rows],
            self.kind,
            None if self.groups is None else self.groups[rows],
        )

    def shares(self, p: int) -> FloatArray:
        """The normalised weight of each row within its domain: (p, n), rows sum to 1."""
        weight = np.ones(self.domain.size) if self.weight is None else self.weight
        own = np.where(self.domain == np.arange(p)[:, None], weight, 0.0)
        return np.asarray(own / own.sum(axis=1, keepdims=True))

    def of(self, k: int) -> Rows:
        """Return the rows of one domain."""
        everything = self.domain.size and bool((self.domain == k).all())
        return self if everything else self.take(np.flatnonzero(self.domain == k))


def folds_of(rows: Rows, n_folds: int, classification: bool, seed: Any) -> NDArray[np.intp]:
    """Assign the rows of each domain to folds, stratified by class, at random.

    Each class of two rows or more is then in the training rows of every fold.  Groups stay whole.
    A splitter of scikit-learn assigns the rows, except that groups still stay whole.
    """
    check(n_folds, "cv", FOLDS)
    if not isinstance(n_folds, Integral):
        return _folds_by(n_folds, rows)
    rng, groups = check_random_state(seed), rows.groups
    fold = np.empty(rows.domain.size, dtype=np.intp)
    known = None if groups is None else np.full(int(groups.max()) + 1, -1)
    for k in np.unique(rows.domain):
        own = rng.permutation(np.flatnonzero(rows.domain == k))
        if groups is not None and known is not None:
            for label in np.unique(rows.y[own]) if classification else [None]:
                some = own if label is None else own[rows.y[own] == label]
                deal_groups(groups[some], n_folds, known)
            continue
        if classification:
            own = own[np.argsort(rows.y[own], kind="stable")]
        fold[own] = np.arange(own.size) % n_folds
    return fold if groups is None or known is None else known[groups]


def _folds_by(splitter: Any, rows: Rows) -> NDArray[np.intp]:
    """Return the test set that each row is in; a group is in that of its first row."""
    fold = np.full(rows.y.size, -1)
    places = np.zeros((rows.y.size, 1))
    for t, (_, held) in enumerate(splitter.split(places, rows.y, rows.groups)):
        if (fold[held] >= 0).any():
            raise InputError("cv", "puts a row into several test sets; give a splitter as KFold")
        fold[held] = t
    if (fold < 0).any() or fold.max() < 1:
        raise InputError("cv", "must put each row into one of two or more test sets, as KFold does")
    if rows.groups is None:
        return np.asarray(fold, dtype=np.intp)
    _, first, place = np.unique(rows.groups, return_index=True, return_inverse=True)
    return np.asarray(fold[first][place], dtype=np.intp)


def draws_of(rows: Rows, k: int, by_class: bool) -> NDArray[np.intp]:
    """Return one row of each draw of a domain; by class, one for each class that a draw has."""
    own = np.flatnonzero(rows.domain == k)
    if rows.groups is None:
        return own
    labels = np.unique(rows.y[own], return_inverse=True)[1] if by_class else 0 * own
    pairs = np.stack([rows.groups[own], labels])
    return np.asarray(own[np.unique(pairs, axis=1, return_index=True)[1]])


def without_small(model: Any, rows: Rows) -> Rows:
    """Leave domains out that have too few rows to be a source, and warn of all small ones at once.

    A source needs a training row and an evaluation row; with refit=False, it needs two to
    learn from without each fold.  Rows of one group count as one.  The model of a source that is
    left with one class, or one row, is trained on all rows, see `SourceTrainer.predictors`.  Rows
    of one class favour whoever names it, and few rows say little: such sources are set aside, see
    `set_aside_of`.
    """
    classification, names = model._classification, model.source_names_.tolist()
    if classification and np.unique(rows.y).size == 1:
        raise ValueError(
            f"y has the one class {rows.y.tolist()[0]!r} in all rows; a classifier needs two: look "
            "at how the labels were made."
        )
    check_weights_of(rows, names)
    sizes = [draws_of(rows, k, by_class=False).size for k in range(len(names))]
    few, least = few_rows(sizes), 2
    folds = model.cv if isinstance(getattr(model, "cv", None), Integral) else 2
    while not getattr(model, "refit", True) and least - -(-least // folds) < 2:
        least += 1
    small = [k for k, size in enumerate(sizes) if size < least]
    pooled = []
    for k in range(len(names)) if classification else ():
        counts = np.unique(rows.y[draws_of(rows, k, by_class=True)], return_counts=True)[1]
        if k not in small and np.sum(counts > 1) < 2:
            pooled.append(k)
    kept = np.flatnonzero(~np.isin(rows.domain, small))
    if not kept.size:
        raise InputError(
            "sample_domain",
            f"names {len(names)} sources of fewer than {least} rows each; merge some, so that each "
            "has training rows and evaluation rows",
        )
    aside = [k for k, n in enumerate(sizes) if n < few and k not in [*small, *pooled]]
    named = [[names[k] for k in some] for some in (pooled, aside, small)]
    warn_of_small(named[0], named[1], named[2], few, least)
    model.too_small_ = tuple(str(names[k]) for k in small)
    model.too_small_to_choose_ = tuple(str(names[k]) for k in sorted([*pooled, *aside]))
    if not small:
        return rows
    order, codes = np.unique(rows.domain[kept], return_inverse=True)
    model.source_names_ = model.source_names_[order]
    return replace(rows.take(kept), domain=codes.astype(np.intp), kept=kept)


def set_aside_of(model: Any) -> Any:
    """Return the sources set aside: those that the user named, else small sources."""
    small = vars(model).get("too_small_to_choose_", ())
    if model.set_aside is not None or len(model.source_names_) - len(small) < FEWEST_SITES:
        return model.set_aside
    return list(small) or None


def few_rows(sizes: Sequence[int]) -> int:
    """Return the number of rows below which a source is small: 10, or a quarter of the median.

    >>> few_rows([5, 100, 200]), few_rows([14] * 40)
    (10, 4)
    """
    return max(2, min(SMALL_SOURCE, -(-int(np.median(sizes)) // SMALL_SHARE)))


def warn_of_small(
    pooled: list[Any], aside: list[Any], small: list[Any], few: int, least: int
) -> None:
    """Warn of domains that share a model, and of those that are no source."""
    said = []
    if pooled:
        has = "have" if len(pooled) > 1 else "has"
        said.append(
            f"{_listed(pooled)} {has} too few rows of a second class for a model of their own: "
            "their model is trained on the rows of all sources where it cannot be on their own, "
            "and their rows do not choose what weights the sources"
        )
    if aside:
        has = "have" if len(aside) > 1 else "has"
        said.append(
            f"{_listed(aside)} {has} fewer than {few} rows, which do not choose what weights the "
            "sources"
        )
    if small:
        has, are = ("have", "are") if len(small) > 1 else ("has", "is")
        said.append(
            f"{_listed(small)} {has} fewer than {least} rows and {are} left out: such rows are "
            "predicted as those of an unknown source"
        )
    if said:
        warnings.warn("; ".join(said) + ".", UserWarning, stacklevel=6)


def _listed(names: list[Any]) -> str:
    return f"domain{'s' * (len(names) > 1)} {', '.join(map(repr, names))}"


def check_weights_of(rows: Rows, names: list[Any]) -> None:
    """Refuse weights that are zero in all rows of a domain."""
    if rows.weight is None:
        return
    totals = np.bincount(rows.domain, rows.weight, minlength=len(names))
    empty = [name for name, total in zip(names, totals.tolist(), strict=True) if total == 0]
    if empty:
        raise InputError(
            "sample_weight", f"is 0 in all rows of {_listed(empty)}; leave these rows out"
        )
