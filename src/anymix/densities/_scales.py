"""Columns on scales so different that one bandwidth cannot serve them."""

import warnings

import numpy as np
from numpy.typing import ArrayLike

from anymix._arrays import FloatArray
from anymix.densities._kernel_sums import blocks

# Half of the columns have a hundredth of the variance or more in word counts, images and features
# of networks; with money beside ages, or areas beside ratios, they have about 1e-5 of it or less.
LEAST_SHARE = 1e-4
CONSTANT = 1e-12  # a spread of less, as a part of the mean or of the widest one, is rounding


def column_variances(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """Weighted variance of each column, (d,); zero where it is rounding alone.

    Examples
    --------
    >>> column_variances(np.array([[0.0, 5.0], [4.0, 5.0]]), np.ones(2)).tolist()
    [4.0, 0.0]
    """
    w, parts = weights / weights.sum(), blocks(len(rows))
    mean = rows[0] + sum(w[b] @ (rows[b] - rows[0]) for b in parts)
    variances = sum(w[b] @ (rows[b] - mean) ** 2 for b in parts)
    seen = CONSTANT**2 * np.maximum(mean**2, np.max(variances))
    return np.where(variances > seen, variances, 0.0)


def narrow_share(variances: FloatArray) -> float:
    """Share of the variance that the narrower half of the columns has; constant ones are left out.

    Examples
    --------
    >>> narrow_share(np.array([1.0, 0.0, 3.0])), narrow_share(np.array([2.0]))
    (0.25, 1.0)
    """
    varying = np.sort(variances[variances > 0])
    if varying.size < 2:
        return 1.0
    return float((varying[: varying.size // 2] / varying.sum()).sum())


def warn_of_scales(
    rows: FloatArray, weights: FloatArray, names: ArrayLike | None, stacklevel: int
) -> None:
    """Warn if one bandwidth cannot serve all columns.

    The sentence has no numbers of the rows in it, so that all folds say the same.
    """
    variances = column_variances(rows, weights)
    if narrow_share(variances) >= LEAST_SHARE:
        return
    widest = int(variances.argmax())
    column = widest if names is None else repr(str(np.asarray(names)[widest]))
    warnings.warn(
        f"One bandwidth cannot serve columns on such different scales: beside column {column}, the "
        "widest, half of the others hardly count; scale the columns first, alike for all sources, "
        "as make_pipeline(StandardScaler(), model) does.",
        UserWarning,
        stacklevel=stacklevel + 1,
    )
