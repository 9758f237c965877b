"""What every room needs of numpy: names of types, numbers of rows, positions of labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


def n_rows(X: Any) -> int:
    """Return the number of rows of an array, a sparse matrix, a frame or a list.

    >>> n_rows(np.zeros((3, 2))), n_rows(["a", "b"])
    (3, 2)
    """
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def positions(labels: NDArray[Any], classes: NDArray[Any]) -> IntArray:
    """Find each label among the classes, which may be in any order.

    >>> positions(np.array(["b", "a"]), np.array(["b", "c", "a"]))
    array([0, 2])
    """
    unknown = np.setdiff1d(labels, classes)
    if unknown.size:
        raise ValueError(
            f"y has the label {unknown.tolist()[0]!r}, which is not one of the classes "
            f"{classes.tolist()}."
        )
    order = np.argsort(classes)
    return np.asarray(order[np.searchsorted(classes, labels, sorter=order)])


def source_numbers(sample_domain: ArrayLike, p: int, m: int, least: int = 1) -> IntArray:
    """Return the source 0..p−1 of each of m points; each source needs `least` of them.

    >>> source_numbers([0, 1, 1], 2, 3)
    array([0, 1, 1])
    """
    domain = np.asarray(sample_domain)
    if domain.shape != (m,) or domain.dtype.kind not in "iu":
        raise ValueError(
            f"sample_domain must hold {m} whole numbers, the source of each point; got "
            f"{domain.dtype} of shape {domain.shape}."
        )
    if m and (domain.min() < 0 or domain.max() >= p):
        raise ValueError(f"sample_domain must lie in 0..{p - 1}, one number for each source.")
    counts = np.bincount(domain, minlength=p)
    if counts.min() < least:
        raise ValueError(
            f"source {int(counts.argmin())} has {counts.min()} point(s); each source needs "
            f"{least} or more."
        )
    return domain.astype(np.intp)


def named_sources(sample_domain: ArrayLike, names: Sequence[Any]) -> IntArray:
    """Find the source of each point by its name or, unless whole numbers are names, by position.

    >>> named_sources(["b", "a"], ["a", "b"]), named_sources([1, 0], ["a", "b"])
    (array([1, 0]), array([1, 0]))
    """
    found, codes = np.unique(np.asarray(sample_domain), return_inverse=True)
    known = [str(name) for name in names]
    position = {name: k for k, name in enumerate(known)}
    if found.dtype.kind in "iu" and not any(name.lstrip("-").isdigit() for name in known):
        position = {str(k): k for k in range(len(known))}
    unknown = [str(d) for d in found.astype(str) if d not in position]
    if unknown:
        raise ValueError(f"sample_domain names {unknown[0]!r}, but the sources are {known}.")
    return np.array([position[d] for d in found.astype(str)], dtype=np.intp)[codes]
