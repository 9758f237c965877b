"""Array utilities that every package uses: types, row counts, label positions, row hashes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
# Rows count as seen where chance knows as many of them with less than this probability.
SEEN_LEVEL = 1e-3
# Steps of the generator SplitMix64 (Steele, Lea, Flood 2014), whose output passes for random.
_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def n_rows(X: Any) -> int:
    """Return the number of rows of an array, a sparse matrix, a frame or a list.

    >>> n_rows(np.zeros((3, 2))), n_rows(["a", "b"])
    (3, 2)
    """
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def some_rows(X: Any, most: int) -> Any:
    """Return at most `most` rows of an array, a sparse matrix or a frame, evenly spread.

    >>> some_rows(np.arange(9), 3)
    array([0, 4, 8])
    """
    chosen = np.unique(np.linspace(0, n_rows(X) - 1, most).astype(np.intp))
    return X.iloc[chosen] if hasattr(X, "iloc") else X[chosen]


def shares(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """log q_k = s_k − log Σ_j exp(s_j) along the first axis, and q; −inf is allowed, but not alone.

    >>> shares(np.log([[1.0], [3.0]]))[1]
    array([[0.25],
           [0.75]])
    """
    log_q = scores - scores.max(axis=0)
    q = np.exp(log_q)
    total = q.sum(axis=0)
    q /= total
    log_q -= np.log(total)
    return log_q, q


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


def as_bits(rows: NDArray[Any]) -> NDArray[np.uint64]:
    """Return the bytes of rows (n, q) of numbers as whole numbers, which are left as they are."""
    if rows.dtype == np.uint64:
        return np.ascontiguousarray(rows)
    # Adding 0 turns -0 into 0, which is the same number and has other bytes.
    return np.ascontiguousarray(np.asarray(rows, dtype=float) + 0.0).view(np.uint64)


def digest(row: NDArray[Any], salt: str) -> str:
    """Return a keyed digest of one row (q,), 64 bits as hexadecimal digits.

    >>> digest(np.array([1.0, 2.0]), "00") == digest(np.array([1.0, 2.0]), "01")
    False
    """
    content = as_bits(np.atleast_1d(row)).tobytes()
    return hashlib.blake2b(content, digest_size=8, key=salt.encode()).hexdigest()


class Twins(NamedTuple):
    """Count the remembered rows that equal another remembered row, their twin.

    By leave-one-out, this estimates how likely a new row of the same kind is to have a twin.
    """

    n_rows: int
    n_twins: int

    @property
    def share(self) -> float:
        """The share of rows that have one.

        >>> Twins(8, 6).share
        0.75
        """
        return self.n_twins / max(self.n_rows, 1)


def more_than_chance(share: float, n: int, twins: Twins, blur: float = 0.0) -> bool:
    """Whether that share of n rows is known by more than chance, by a binomial test.

    Rows of few values are known where they are new, too: by chance as large a share of them as has
    a twin among those that were remembered.  Of t twins there, t + 2√t and a third are assumed; of
    the others the share `blur` seems known.

    >>> more_than_chance(0.5, 40, Twins(40, 0)), more_than_chance(0.6, 40, Twins(40, 20))
    (True, False)
    >>> more_than_chance(0.02, 200, Twins(200, 0)), more_than_chance(0.01, 200, Twins(200, 0))
    (True, False)
    """
    from scipy.special import bdtrc

    t = twins.n_twins
    chance = min(1.0, (t + 2.0 * t**0.5 + 1 / 3) / (twins.n_rows + 1))
    chance += (1.0 - chance) * blur
    return bool(bdtrc(round(share * n) - 1, n, chance) < SEEN_LEVEL)


def mixed(rows: NDArray[Any], salt: int = 0) -> NDArray[np.uint64]:
    """Hash each row (n, q) to a number; different rows rarely have the same.

    >>> a, b, c = mixed(np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]]))
    >>> bool(a == c), bool(a == b)
    (True, False)
    """
    bits = as_bits(rows)
    found = np.full(len(bits), np.uint64(salt & (2**64 - 1)))
    with np.errstate(over="ignore"):  # products are meant modulo 2**64
        for column in bits.T:
            values = (found ^ column) + np.uint64(_STEP)
            values = (values ^ (values >> np.uint64(30))) * np.uint64(_FIRST)
            values = (values ^ (values >> np.uint64(27))) * np.uint64(_SECOND)
            found = values ^ (values >> np.uint64(31))
    return found


def content_of(X: Any) -> NDArray[np.uint64]:
    """Return rows of any kind as whole numbers (n, q) that are equal where the rows are equal.

    Numbers are their bytes; of texts, and of rows that hold words, these are digests.

    >>> content_of(["a text", "a text", "another"]).shape
    (3, 2)
    """
    if hasattr(X, "tocsr"):
        rows = X.tocsr().sorted_indices()
        ends = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
        return _digests([(rows.indices[a:b].tolist(), rows.data[a:b].tolist()) for a, b in ends])
    if isinstance(X, np.ndarray) and X.dtype.kind in "fiub":
        return as_bits(X.reshape(len(X), -1))
    if hasattr(X, "itertuples"):
        return _digests(list(X.itertuples(index=False, name=None)))
    return _digests(list(X))


def _digests(rows: list[Any]) -> NDArray[np.uint64]:
    found = [hashlib.blake2b(repr(row).encode(), digest_size=16).digest() for row in rows]
    return np.frombuffer(b"".join(found), dtype=np.uint64).reshape(-1, 2)


def winsorised_means(windows: FloatArray) -> FloatArray:
    """Return winsorised means of sorted rows (w, k), which no single value dominates.

    Values count as no further from the median than twice the median distance to it.

    >>> winsorised_means(np.array([[60.0, 61.0, 62.0, 63.0, 64.0], [60.0, 61.0, 62.0, 63.0, 9e6]]))
    array([62., 62.])
    """
    middle = windows[:, windows.shape[1] // 2, None]
    away = windows - middle
    most = 2.0 * np.median(np.abs(away), axis=1, keepdims=True)
    return np.asarray((middle + np.clip(away, -most, most)).mean(axis=1))
