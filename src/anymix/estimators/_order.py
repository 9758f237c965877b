"""Rows go by position, as in scikit-learn; a word where their labels suggest another order."""

from __future__ import annotations

import warnings
from typing import Any

from anymix.estimators._frames import index_of


def check_order(X: Any, **others: Any) -> None:
    """Warn if another argument has the labels of X in another order: nothing is aligned by them.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"u": [1.0, 2.0]}, index=["a", "b"])
    >>> check_order(X, y=pd.Series([1, 2], index=["a", "b"]))
    """
    mine = index_of(X)
    for name, given in others.items():
        theirs = index_of(given)
        if mine is not None and theirs is not None and _reordered(mine, theirs):
            warnings.warn(
                f"the index of {name} holds the labels of X in another order; rows are taken by "
                f"position, as in scikit-learn: give {name}.loc[X.index], or arrays, if its labels "
                "count.",
                UserWarning,
                stacklevel=3,
            )


def _reordered(mine: Any, theirs: Any) -> bool:
    if len(mine) != len(theirs) or mine.equals(theirs):
        return False
    return bool(mine.is_unique and theirs.is_unique and mine.isin(theirs).all())
