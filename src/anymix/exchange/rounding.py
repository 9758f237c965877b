"""Round the numbers of a site file to a coarse grid, so that they reveal few bits of each row.

A number a ≥ 0 becomes 0 or the nearest power of two between two bounds:

    log-responsibilities    a = −log r_k        1/32 to 4096; then scaled to sum to one
    cross-entropy           a = −log h_k(x, y)  1/64 to 16
    other classes           a = −log h_k(x, ·)  1/4 to 16; then scaled to what the label leaves;
                                                of more than four classes powers of four
    squared loss            a = |h_k(x) − y|    with its sign; 12 powers up to the source's largest

How likely a row is, log_total, is left out; quantiles of all rows stand in its place.

The grid is fixed: rounding the same rows again gives the same numbers, so that asking twice tells
no more, and rows can be recognised that a model has learned from.
"""

from __future__ import annotations

from math import comb

import numpy as np

from anymix._arrays import FloatArray
from anymix.sources import BOUNDS_R, on_grid, power_of_two

BOUNDS_LOSS = 2.0**-6, 2.0**4  # nats: e^-16 is one in nine million
BOUNDS_OTHERS = 2.0**-2, 2.0**4
FEW_CLASSES = 4  # of more there are more numbers, each of which must tell less
# A label that is rounded to be certain leaves the other classes at most this, and each at least so.
MOST_LEFT, FLOOR = 0.01, 1e-6
POWERS = 12  # of the size of an error


def round_outcomes(outcomes: FloatArray, loss: str) -> FloatArray:
    """Round outcomes (p, m), or class probabilities (p, m, c), the true label's first.

    Examples
    --------
    >>> round_outcomes(np.array([[0.9, 0.2, 1e-9]]), "cross_entropy").round(3).tolist()
    [[0.882, 0.135, 0.0]]
    >>> round_outcomes(np.array([[0.9, -0.2, 1e-9]]), "squared").round(3).tolist()
    [[1.0, -0.25, 0.0]]
    """
    if outcomes.ndim == 3:
        return _round_classes(outcomes)
    if loss == "cross_entropy":
        return _round_probabilities(outcomes, BOUNDS_LOSS)
    sizes = np.abs(outcomes)
    # Each source has its own bounds, so that one of wild errors does not coarsen the others.
    largest = power_of_two(np.maximum(sizes.max(axis=1, keepdims=True), 1e-300))
    return np.asarray(np.sign(outcomes) * on_grid(sizes, largest / 2.0 ** (POWERS - 1), largest))


def _round_probabilities(
    h: FloatArray, bounds: tuple[float, float], power: float = 1.0
) -> FloatArray:
    """Round −log h to powers of 2^power."""
    losses = -np.log(np.clip(h, np.exp(-bounds[1]), 1.0))
    least, largest = (bound ** (1 / power) for bound in bounds)
    return np.asarray(np.exp(-(on_grid(losses ** (1 / power), least, largest) ** power)))


def _round_classes(h: FloatArray) -> FloatArray:
    """Round the label as if it stood alone; the other classes share what it leaves."""
    label = _round_probabilities(h[..., :1], BOUNDS_LOSS)
    others = _round_probabilities(h[..., 1:], BOUNDS_OTHERS, _power(h.shape[-1]))
    total = others.sum(axis=-1, keepdims=True)
    left = np.where(label < 1, 1 - label, np.minimum(total, MOST_LEFT))
    others = np.maximum(others * (left / total), FLOOR)
    return np.concatenate([np.where(label < 1, label, 1 - left), others], axis=-1)


def _power(n_classes: int) -> float:
    return 1.0 if n_classes <= FEW_CLASSES else 2.0


def bits_for_a_spy(loss: str, n_sources: int, n_classes: int = 1) -> float:
    """The number of bits of a row that a malicious source can write into its numbers.

    Its predictor chooses one outcome, or one for each class, where those other than the
    label have no order; its density moves the p responsibilities, each through all its levels at
    most once.

    Examples
    --------
    >>> [round(bits_for_a_spy("cross_entropy", 3, n_classes), 1) for n_classes in (1, 2, 4)]
    [9.4, 10.1, 16.3]
    """
    outcomes = _n_levels(*BOUNDS_LOSS) if loss == "cross_entropy" else 2 * POWERS + 1
    if n_classes > 1:
        levels = _n_levels(*(bound ** (1 / _power(n_classes)) for bound in BOUNDS_OTHERS))
        unordered = comb(levels + n_classes - 2, n_classes - 1)
        # One other class has what the label leaves, unless that is next to nothing.
        outcomes = (outcomes - 1) * (unordered if n_classes > 2 else 1) + unordered
    return float(np.log2(outcomes * n_sources * _n_levels(*BOUNDS_R)))


def _n_levels(least: float, largest: float) -> int:
    return int(np.log2(largest / least)) + 2


def is_rounded(outcomes: FloatArray, loss: str) -> bool:
    """Whether outcomes (p, m) lie on the grid already."""
    found = round_outcomes(outcomes, loss)
    # A label that is nearly certain leaves the other classes something.
    near = (found == 1) if loss == "cross_entropy" else np.zeros_like(found, dtype=bool)
    return bool(np.allclose(np.where(near, 1.0, outcomes), found, rtol=1e-9, atol=0.0))
