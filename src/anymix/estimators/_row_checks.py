"""Checks of rows, labels and domains."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_array,
    column_or_1d,
    validate_data,
)

from anymix._arrays import FloatArray, n_rows, named_sources
from anymix._parameters import did_you_mean, is_automatic
from anymix.estimators._input_warnings import warn_of_strange_words
from anymix.estimators._rows import Rows, without_small
from anymix.exceptions import InputError
from anymix.sources import Source, Tables, copies, joined_groups
from anymix.tables import as_rows, is_missing, named_column, words_of

# The share of copies from which on they are worth a warning.
FEWEST_COPIES = 0.01


def is_text(X: Any) -> bool:
    """Whether X holds documents or lists of tokens, which are passed on unchanged."""
    if isinstance(X, Mapping) and not hasattr(X, "toarray"):
        raise InputError("X", "is a dictionary; give a DataFrame, an array or a list of texts")
    if hasattr(X, "columns") or hasattr(X, "toarray") or not hasattr(X, "__len__"):
        return False
    if isinstance(X, np.ndarray) and X.ndim != 1:
        return False
    if len(X) == 0:
        return False
    first = X.iloc[0] if hasattr(X, "iloc") else X[0]
    if np.ndim(first) == 0 and is_missing(first):
        first = next((value for value in X if np.ndim(value) or not is_missing(value)), first)
    if isinstance(first, str):
        return True
    if isinstance(first, Mapping):
        raise InputError("X", "is a list of dictionaries; give pandas.DataFrame(X)")
    return isinstance(first, list | tuple) and all(isinstance(token, str) for token in first)


def check_X(estimator: Any, X: Any, reset: bool = False) -> Any:
    """Validate numbers as scikit-learn does.

    Text passes untouched, and so do DataFrames once their names are checked: an estimator inside
    may need the columns by name.  Without rows there was nothing to remember: see `fit_tables`.
    """
    X = as_rows(X, vars(estimator).get("left_out_", ()))
    if not reset and vars(estimator).get("of_texts_") and hasattr(X, "columns"):
        X = X.iloc[:, 0] if len(X.columns) == 1 else X
    columns, texts = vars(estimator).get("columns_"), is_text(X)
    if texts and columns is not None:
        raise InputError("X", "holds texts, but the model learned from a table; give its columns")
    if texts:
        _check_texts(X)
    elif not reset and vars(estimator).get("of_texts_"):
        raise InputError("X", "holds no texts, which the model was fitted on; give a list of texts")
    if reset:
        estimator.of_texts_ = texts
    if texts or not (reset or "n_features_in_" in vars(estimator)):
        return X
    frame = hasattr(X, "columns")
    if frame and not getattr(X, "size", 1):
        raise ValueError(f"X has no values: its shape is {X.shape}.")
    if columns is not None and frame and not reset:
        found = _finite(columns.encode(X), columns)
        warn_of_strange_words(columns, X, found)
        return found
    # The default learner was trained on complete numbers; a user's own sees to more.
    default = is_automatic(getattr(estimator, "estimator", 0)) and not estimator.sources
    fault = not_numbers(X) if frame and default and not reset and columns is None else None
    if fault is not None:
        raise InputError("X", f"must be complete numbers, as the rows of fit were, but {fault}")
    options: dict[str, Any] = {} if frame else {"accept_sparse": ("csr", "csc")}
    if columns is not None and not frame:
        options = {"dtype": None, "ensure_all_finite": False}
    try:
        X = validate_data(estimator, X, reset=reset, skip_check_array=frame, **options)
        return X if columns is None else _finite(columns.encode(X), columns)
    except ValueError as error:
        fault = None if frame else not_numbers(X)
        if fault is None:
            raise
        raise ValueError(
            f"an array X must hold complete numbers, but {fault}: pass a DataFrame if the "
            "estimator sees to its columns, or put an imputer or encoder in front of the whole "
            "model, as make_pipeline(SimpleImputer(), model) does."
        ) from error


def _check_texts(X: Any) -> None:
    """Refuse a row without a text, or without tokens where the others are lists of tokens."""
    kinds = (str,) if any(isinstance(text, str) for text in X) else (list, tuple)
    wrong = next((i for i, text in enumerate(X) if not isinstance(text, kinds)), None)
    if wrong is not None:
        raise InputError(f"row {wrong} of X", "has no text; fill it in or leave the row out")


def _finite(X: FloatArray, columns: Any) -> FloatArray:
    """Refuse infinities in an encoded table, where NaN is a missing value."""
    infinite = np.isinf(X).any(axis=0)
    if infinite.any():
        name = columns.names[int(infinite.argmax())]
        raise InputError(
            f"column {name!r} of X", "contains infinity; give a number or a missing value"
        )
    return X


def not_numbers(X: Any, names: Sequence[str] = (), missing: bool = True) -> str | None:
    """Describe a column that holds text or missing values; None if all are complete numbers.

    `names` are those of the columns of an array; without `missing`, missing values are accepted.

    >>> not_numbers(np.array([[1.0, 2.0], [3.0, np.nan]]))
    'column 1 has missing values (NaN)'
    >>> not_numbers(np.array([[1.0, "no"]], dtype=object))
    "column 1 holds 'no'"
    """
    frame = hasattr(X, "columns")
    if not (frame or isinstance(X, np.ndarray)) or np.ndim(X) != 2:
        return None
    try:
        if not np.isnan(np.asarray(X, dtype=float)).any():
            return None
    except (TypeError, ValueError):
        pass
    named = list(X.columns) if frame else list(names) or range(X.shape[1])
    for name, column in zip(named, np.asarray(X, dtype=object).T, strict=True):
        for value in column.tolist():
            if value is None or str(value) in ("nan", "NaT", "<NA>"):
                if not missing:
                    continue
                return f"column {name!r} has missing values (NaN)"
            if isinstance(value, str) and not _is_number(value):
                return f"column {name!r} holds {value!r}"
    return None


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def one_column(values: Any, name: str) -> NDArray[Any]:
    """Return an argument of one value for each row as an array (n,)."""
    shape = np.shape(values)
    if len(shape) > 1 and (len(shape) > 2 or shape[1] != 1):
        raise InputError(name, f"has the shape {shape}, where one value for each row is needed")
    return np.asarray(column_or_1d(values))


def check_domains(
    sample_domain: ArrayLike | None, n: int, names: list[str] | None
) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the names of the domains and the number of each row's; None means a single domain."""
    if sample_domain is None:
        if names is not None and len(names) > 1:
            raise ValueError(f"sample_domain is needed to learn from {len(names)} sources.")
        return np.asarray(names or ["source"]), np.zeros(n, dtype=np.intp)
    if isinstance(sample_domain, str):
        raise InputError(
            f"sample_domain={sample_domain!r:.60}", "is a string; give the source of each row"
        )
    domain = one_column(sample_domain, "sample_domain")
    if domain.shape[0] != n:
        raise ValueError(f"sample_domain has {domain.shape[0]} entries for {n} rows.")
    missing = [i for i, d in enumerate(domain.tolist()) if is_missing(d)]
    if missing:
        raise ValueError(f"sample_domain is empty at row {missing[0]}; name every row's source.")
    if names is not None:
        return np.asarray(names), named_sources(domain, names)
    try:
        found, codes = np.unique(domain, return_inverse=True)
    except TypeError as error:
        raise InputError(
            "sample_domain", "mixes words and numbers; name all sources in one way"
        ) from error
    return found, codes.astype(np.intp)


def take_columns(X: Any, **named: Any) -> tuple[Any, list[Any], tuple[str, ...]]:
    """Extract arguments that name a column of the rows; return the names of these columns.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"age": [41], "site": ["a"]})
    >>> rows, (site, groups), names = take_columns(X, sample_domain="site", groups=None)
    >>> list(rows.columns), site.tolist(), names
    (['age'], ['a'], ('site',))
    """
    X, found, names = as_rows(X), [], []
    for argument, value in named.items():
        if isinstance(value, str):
            names.append(value)
            X, value = named_column(X, value, argument)
        found.append(value)
    return X, found, tuple(names)


def known_sources(
    sample_domain: Any, n: int, names: NDArray[Any], too_small: Sequence[str] = ()
) -> NDArray[np.intp]:
    """Return the number of the source of each of n rows, −1 where it is not known.

    Domains that were too small to be a source are not known, either.

    Examples
    --------
    >>> known_sources(["b", None, "", "a"], 4, np.array(["a", "b"]))
    array([ 1, -1, -1,  0])
    >>> known_sources([2.0, np.nan], 2, np.array([1, 2]))
    array([ 1, -1])
    """
    domain = one_column(np.asarray(sample_domain, dtype=object), "sample_domain")
    if domain.shape[0] != n:
        raise ValueError(f"sample_domain has {domain.shape[0]} entries for {n} rows.")
    words = words_of(domain, "sample_domain")
    position = {word: k for k, word in enumerate(words_of(np.asarray(names, dtype=object)))}
    words = [None if word in too_small else word for word in words]
    unknown = [word for word in dict.fromkeys(words) if word is not None and word not in position]
    if unknown:
        known = list(map(str, position))
        raise InputError(
            "sample_domain",
            f"names {unknown[0]!r:.60}, which is not a source of the model; give one of "
            f"{', '.join(known)}, or None where the source is not known"
            f"{did_you_mean(unknown[0], known)}",
        )
    return np.array([-1 if w is None else position[w] for w in words], dtype=np.intp)


def check_sources(sources: Sequence[Source]) -> None:
    """Check that sources are `Source` objects with different names."""
    if not len(sources):
        raise ValueError("sources is empty; give one Source or more, or leave it out to train.")
    for source in sources:
        if not isinstance(source, Source):
            raise TypeError(f"sources must hold Source objects; got {type(source).__name__}.")
    names = [source.name for source in sources]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(f"two sources are called {twice[0]!r}; give each a name of its own.")


def check_every_source(tables: Tables, names: NDArray[Any], purpose: str) -> None:
    """Check that every source has a held-out row."""
    missing = np.setdiff1d(np.arange(len(names)), tables.domain)
    if missing.size:
        raise ValueError(f"there are no rows of the source {str(names[missing[0]])!r}; {purpose}.")


def check_weight(sample_weight: ArrayLike | None, n: int) -> FloatArray | None:
    """Return n weights ≥ 0, or None."""
    if sample_weight is None:
        return None
    rows = np.empty((n, 1))
    return np.asarray(_check_sample_weight(sample_weight, rows, ensure_non_negative=True))


def check_groups(groups: ArrayLike, n: int) -> NDArray[np.intp]:
    """Number the groups of n rows."""
    if isinstance(groups, str):
        raise InputError(f"groups={groups!r:.60}", "is a string; give the group of each row")
    known = one_column(groups, "groups")
    if known.shape[0] != n:
        raise ValueError(f"groups has {known.shape[0]} entries for {n} rows.")
    missing = [i for i, group in enumerate(known.tolist()) if is_missing(group)]
    if missing:
        raise ValueError(f"groups is empty at row {missing[0]}; name every row's group.")
    try:
        return np.unique(known, return_inverse=True)[1].astype(np.intp)
    except TypeError as error:
        raise InputError("groups", "mixes words and numbers; name all in one way") from error


def check_tables(tables: Tables, sources: Sequence[Source] | None) -> None:
    """Check that tables are of these sources, at labelled rows."""
    if not sources:
        raise ValueError("fit_tables needs sources: use from_sources([...]).fit_tables(tables).")
    if not isinstance(tables, Tables):
        raise TypeError(f"fit_tables takes Tables, as evaluate gives; got {type(tables)}.")
    check_sources(sources)
    p = len(sources)
    if tables.n_sources != p:
        raise ValueError(f"the tables are of {tables.n_sources} sources, not of {p}.")
    if tables.targets is None or tables.sample_domain is None:
        raise ValueError(
            "z is learned from held-out rows: add their targets and domains to the tables with "
            "tables.labelled(y, sample_domain)."
        )


def check_complete_y(y: Any) -> None:
    """Name the first row that has no label or number."""
    held = np.asarray(y)
    if held.dtype.kind not in "fO" or held.ndim != 1:
        return
    for i, value in enumerate(held.tolist()):
        if not isinstance(value, str) and is_missing(value):
            said = f"is empty ({value!r}) at row {i}; fill it in, or leave the row out"
            raise InputError("y", said)


def check_y(y: Any, n: int, classification: bool) -> NDArray[Any]:
    """Return targets (n,): finite numbers, or labels that are not missing."""
    target = column_or_1d(y, warn=True)
    if target.shape[0] != n:
        raise ValueError(f"inconsistent numbers of samples: X has {n} rows and y {len(target)}.")
    check_complete_y(target)
    if classification:
        assert_all_finite(target, input_name="y")
        try:
            check_classification_targets(target)
        except ValueError as error:
            told = f"{error} DistributionWeightedRegressor learns such numbers."
            raise ValueError(told) from None
        return target
    try:
        target = np.asarray(target, dtype=np.float64) if target.dtype.kind in "OTU" else target
    except (TypeError, ValueError):
        word = next(value for value in target.tolist() if not _is_number(value))
        raise InputError(
            "y",
            f"holds {word!r:.60}, which is not a number; DistributionWeightedClassifier learns "
            "labels",
        ) from None
    return check_array(target, ensure_2d=False, dtype=np.float64, input_name="y")


def index_of(rows: Any) -> Any:
    """Return the labels of rows that have some, else None; a list's `index` is a method."""
    index = getattr(rows, "index", None)
    return None if callable(index) else index


def check_order(X: Any, **others: Any) -> None:
    """Warn if another argument has the labels of X in another order: nothing is aligned by them."""
    mine = index_of(X)
    if mine is None:
        return
    for name, given in others.items():
        theirs = index_of(given)
        if theirs is None or len(mine) != len(theirs) or mine.equals(theirs):
            continue
        if mine.is_unique and theirs.is_unique and mine.isin(theirs).all():
            warnings.warn(
                f"the index of {name} holds the labels of X in another order; rows are taken by "
                f"position, as in scikit-learn: give {name}.loc[X.index], or arrays, if its labels "
                "count.",
                UserWarning,
                stacklevel=3,
            )


def groups_of(rows: Rows, groups: Any, stacklevel: int = 6) -> NDArray[np.intp] | None:
    """Number the draws of the rows: groups and copies; None if each row is a draw."""
    given = None if groups is None else check_groups(groups, rows.y.size)
    draws = copies(rows.X, rows.y, rows.domain)
    if draws is not None:
        # Where groups were given, copies within them are known.
        news = given is None or joined_groups(given, draws).max() < given.max()
        n = rows.y.size - np.unique(draws).size
        if news and n >= FEWEST_COPIES * rows.y.size:
            said = f"{n:,} of {rows.y.size:,} rows are copies of another row: copies count as one"
            said += " row in folds and in the certificate."
            warnings.warn(said, UserWarning, stacklevel=stacklevel)
    return draws if given is None else joined_groups(given, draws)


def check_rows(
    model: Any,
    X: Any,
    y: Any,
    sample_domain: Any,
    sample_weight: Any,
    kind: str = "",
    groups: Any = None,
) -> Rows:
    """Check the arguments of `fit` before training; keep the names and the classes."""
    if y is None:
        raise ValueError(
            f"This {type(model).__name__} estimator requires y to be passed, but the target y "
            "is None."
        )
    check_order(X, y=y, sample_domain=sample_domain, sample_weight=sample_weight, groups=groups)
    X = check_X(model, X, reset=True)
    n, classification, sources = n_rows(X), model._classification, model.sources
    target = check_y(y, n, classification)
    names = [source.name for source in sources] if sources else None
    model.source_names_, domain = check_domains(sample_domain, n, names)
    weight = None if sample_weight is None else check_weight(sample_weight, n)
    rows = Rows(X, target, domain, weight, kind)
    if classification:
        labels = [source.labels for source in sources] if sources else [target]
        model.classes_ = np.unique(np.concatenate(labels))
        unknown = np.setdiff1d(target, model.classes_)
        if unknown.size:
            raise ValueError(f"y has the label {unknown.tolist()[0]!r}, which no source knows.")
    if len(model.source_names_) > 1 and hasattr(model, "cv"):
        rows = replace(rows, groups=groups_of(rows, groups))
    if len(model.source_names_) > 1 and not sources:
        rows = without_small(model, rows)
    return rows
