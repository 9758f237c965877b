"""Columns on scales so different that one bandwidth cannot serve them, and one scale for all."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anymix._arrays import FloatArray
from anymix.densities._base import Arrays, check_arrays, check_shapes, refuse_unless
from anymix.densities._kernel_sums import blocks

# Half of the columns have a hundredth of the variance or more in word counts, images and features
# of networks; with money beside ages, or areas beside ratios, they have about 1e-5 of it or less.
LEAST_SHARE = 1e-4
CONSTANT = 1e-12  # a spread of less, as a part of the mean or of the widest one, is rounding

LEAST_SCALE = 1e-100  # of a column: its square is not zero
Scale = ArrayLike | str | None


def spreads(rows: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Weighted standard deviation of each column, (d,); 1 for a constant one.

    Examples
    --------
    >>> spreads(np.array([[0.0, 5.0], [4.0, 5.0]])).tolist()
    [2.0, 1.0]
    """
    weights = np.ones(len(rows)) if weights is None else weights
    deviations = np.sqrt(column_variances(rows, weights))
    return np.where(deviations > LEAST_SCALE, deviations, 1.0)


def checked_scale(scale: Scale, rows: FloatArray, weights: FloatArray) -> FloatArray | None:
    """Return what columns are divided by, (d,); None to take them as they are.

    Examples
    --------
    >>> checked_scale([2, 1], np.zeros((3, 2)), np.ones(3))
    array([2., 1.])
    """
    if scale is None:
        return None
    if isinstance(scale, str):
        if scale != "shared":
            raise ValueError(f"scale={scale!r} is not known; use 'shared', an array or None.")
        return spreads(rows, weights)
    found = np.asarray(scale, dtype=np.float64)
    d = rows.shape[1]
    if found.shape != (d,):
        raise ValueError(f"scale has the shape {found.shape}; {d} columns need ({d},).")
    if not np.all((found >= LEAST_SCALE) & (found <= 1 / LEAST_SCALE)):
        raise ValueError("scale must hold positive, finite numbers, one for each column.")
    return found


def packed_scale(arrays: Arrays, n_features: int) -> tuple[FloatArray, dict[str, NDArray[Any]]]:
    """Return the scale that a stranger wrote, and the other arrays with centres divided by it.

    Examples
    --------
    >>> packed_scale({"scale": np.array([2.0]), "centres": np.array([[6.0]])}, 1)
    (array([2.]), {'centres': array([[3.]])})
    """
    scale = arrays["scale"]
    check_arrays({"scale": scale}, {"scale"})
    check_shapes(arrays, scale=(n_features,))
    refuse_unless(not scale.size or scale.min() >= LEAST_SCALE, "has a scale of zero or less")
    rest = {name: array for name, array in arrays.items() if name != "scale"}
    if (centres := rest.get("centres")) is not None:
        fits = centres.ndim == 2 and centres.shape[1] == n_features and centres.dtype == np.float64
        refuse_unless(fits, f"has centres of shape {centres.shape}")
        rest["centres"] = centres / scale
    return scale, rest


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


class ScaleWarning(UserWarning):
    """One bandwidth cannot serve all columns: `column` is the place of the widest."""

    def __init__(self, message: str, column: int):
        super().__init__(message)
        self.column = column


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
    said = (
        f"One bandwidth cannot serve columns on such different scales: beside column {column}, the "
        "widest, half of the others hardly count; scale the columns first, alike for all sources, "
        "as make_pipeline(StandardScaler(), model) does."
    )
    warnings.warn(ScaleWarning(said, widest), stacklevel=stacklevel + 1)
