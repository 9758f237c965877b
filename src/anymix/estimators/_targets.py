"""Labels and numbers to learn, or to be judged by: what is wrong with them, in a sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d

from anymix.exceptions import InputError
from anymix.tables import is_gap


def check_complete_y(y: Any) -> None:
    """Name the first row that has no label or number.

    Examples
    --------
    >>> check_complete_y(["ill", None])
    Traceback (most recent call last):
    ...
    anymix.exceptions.InputError: y is empty (None) at row 1; fill it in, or leave the row out.
    """
    held = np.asarray(y)
    if held.dtype.kind not in "fO" or held.ndim != 1:
        return
    for i, value in enumerate(held.tolist()):
        if not isinstance(value, str) and is_gap(value):
            said = f"is empty ({value!r}) at row {i}; fill it in, or leave the row out"
            raise InputError("y", said)


def check_y(y: Any, n: int, classification: bool) -> NDArray[Any]:
    """Return targets (n,): finite numbers, or labels that are not missing."""
    target = column_or_1d(y, warn=True)
    if target.shape[0] != n:
        raise ValueError(f"inconsistent numbers of samples: X has {n} rows and y {len(target)}.")
    check_complete_y(target)
    return _labels(target) if classification else _numbers(target)


def _labels(target: NDArray[Any]) -> NDArray[Any]:
    assert_all_finite(target, input_name="y")
    try:
        check_classification_targets(target)
    except ValueError as error:
        told = f"{error} DistributionWeightedRegressor learns such numbers."
        raise ValueError(told) from None
    return target


def _numbers(target: NDArray[Any]) -> NDArray[Any]:
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


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
