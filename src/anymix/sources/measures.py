"""What a row's answer is judged by: the loss that was learned with, or another measure of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray
from anymix.core import Loss, get_loss, loss_name, losses_at
from anymix.sources.source import PROBABILITY_FLOOR

Labels = NDArray[np.intp] | FloatArray
# Names that people use for losses of this library.
ALIASES = {"mae": "absolute", "mse": "squared", "log_loss": "cross_entropy"}
WRONG = "share of wrong labels"


class Measure(NamedTuple):
    """What is measured: its name in words, its value at each row, a bound on it if it has one.

    Of a binary one every value is 0 or 1.
    """

    name: str
    value: Callable[[FloatArray, Labels], FloatArray]
    bound: float | None = None
    binary: bool = False


def measure_of(measure: str | Loss | None, loss: str | Loss, n_classes: int | None) -> Measure:
    """Return the measure of that name, or the loss where none is named.

    Examples
    --------
    >>> wrong = measure_of("accuracy", "cross_entropy", 2)
    >>> wrong.name, wrong.value(np.array([[0.9, 0.1], [0.6, 0.4]]), np.array([0, 1]))
    ('share of wrong labels', array([0., 1.]))
    >>> measure_of("mae", "squared", None).name
    'absolute'
    """
    if measure == "accuracy":
        if n_classes is None:
            raise ValueError("measure 'accuracy' is for labels; numbers have 'mae' or 'mse'.")
        return Measure(WRONG, wrong_labels, 1.0, binary=True)
    given = loss if measure is None else measure
    kind = get_loss(ALIASES.get(given, given) if isinstance(given, str) else given)
    if kind.of_classes != (n_classes is not None):
        fit = "labels: 'accuracy', 'brier'" if n_classes is not None else "numbers: 'mae', 'mse'"
        raise ValueError(f"measure {measure!r} does not fit {fit} or another loss of these.")
    return Measure(
        loss_name(kind), lambda h, y: losses_at(h, y, kind), known_bound(kind, n_classes)
    )


def wrong_labels(h: FloatArray, y: Labels) -> FloatArray:
    """1 where the likeliest class (m, c) is not the label (m,), else 0."""
    if h.ndim != 2 or h.shape[1] < 2:
        raise ValueError(
            "wrong labels are counted from the probabilities of all classes, but these tables hold "
            "that of the label alone; evaluate the rows anew."
        )
    return np.asarray(h.argmax(axis=1) != y, dtype=float)


def known_bound(loss: str | Loss, n_classes: int | None) -> float | None:
    """M, where the loss has one: probabilities of labels have a floor, Brier's loss is below 2.

    >>> known_bound("brier", 2), known_bound("squared", None)
    (2.0, None)
    >>> round(known_bound("cross_entropy", 2), 3)
    13.816
    """
    kind = get_loss(loss)
    # A loss of the user's own, be it derived from one of these, has a name and bound of its own.
    if loss_name(kind) == "brier":
        return 2.0
    if loss_name(kind) == "cross-entropy" and n_classes is not None:
        return float(np.log1p(n_classes * PROBABILITY_FLOOR) - np.log(PROBABILITY_FLOOR))
    return None
