"""Measures of predictions: the training loss or another metric."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray
from anymix._parameters import Words, did_you_mean, either
from anymix.core import (
    ALIASES,
    LOSSES,
    Loss,
    MetricUnit,
    ReferenceLoss,
    get_loss,
    loss_name,
    losses_at,
    unit_of,
)
from anymix.exceptions import ParameterError
from anymix.sources.model_source import PROBABILITY_FLOOR
from anymix.sources.tables import Tables

Labels = NDArray[np.intp] | FloatArray
Kind = Literal["mean", "root", "auc"]
# What may be asked for by a name that is no loss's, of labels and of numbers.
OF_LABELS = ("accuracy", "error_rate", "auc", "log_loss", "brier")
OF_NUMBERS = ("mae", "mse", "rmse")
ERROR_RATE = unit_of("error_rate").name


class Measure(NamedTuple):
    """A measure: its name in words, its value at each row, and a bound on it, if there is one.

    The values of a binary one are 0 or 1.  key is its name in arguments.  Most are a
    mean over rows, and so of a mixture the mean over its sources; the root of one, and the area
    under a curve, are not: these are compared, and not certified.  Probabilities below `floor` are
    raised to it.
    """

    name: str
    value: Callable[[FloatArray, Labels], FloatArray]
    bound: float | None = None
    binary: bool = False
    key: str = ""
    kind: Kind = "mean"
    of_labels: bool = False
    floor: float = 0.0

    @property
    def unit(self) -> MetricUnit:
        """The unit of its values."""
        return unit_of(self.key or self.name)


NOT_CERTIFIED = {
    "auc": "the area under the ROC curve ranks rows of one source against those of another, so "
    "that no mixture's follows from its sources' and none is certified; certify 'error_rate', "
    "'log_loss' or 'brier', and see the area by compare.",
    "root": "rmse is the root of a mean, and a bound is on the mean: certify 'mse'; the root of "
    "its bound bounds the rmse on every mixture.",
}


def measure_of(measure: str | Loss | None, loss: str | Loss, n_classes: int | None) -> Measure:
    """Return the measure of that name, or the loss if no name is given; a mean over rows.

    A bound on the error rate is one on the accuracy, 1 − error rate, so "accuracy" means that.

    Examples
    --------
    >>> wrong = measure_of("error_rate", "cross_entropy", 2)
    >>> wrong.name, wrong.value(np.array([[0.9, 0.1], [0.6, 0.4]]), np.array([0, 1]))
    ('error rate', array([0., 1.]))
    >>> measure_of("mae", "squared", None).name
    'absolute'
    """
    found = judge_of("error_rate" if measure == "accuracy" else measure, loss, n_classes)
    if found.kind != "mean":
        raise ParameterError(NOT_CERTIFIED[found.kind])
    return found


def judge_of(measure: str | Loss | None, loss: str | Loss, n_classes: int | None) -> Measure:
    """Return the measure of that name, whether or not it is a mean over rows.

    Examples
    --------
    >>> judge_of("roc_auc", "cross_entropy", 2).unit.head
    'area under the ROC curve'
    """
    given = loss if measure is None else measure
    given = check_measure(given) if isinstance(given, str) else given
    if given in ("accuracy", "error_rate", "auc"):
        if n_classes is None:
            raise ParameterError(
                f"measure {measure!r} is for labels; numbers have {either(OF_NUMBERS)}."
            )
        if given != "auc":
            value = wrong_labels if given == "error_rate" else right_labels
            return Measure(unit_of(given).name, value, 1.0, True, given, of_labels=True)
        return Measure(unit_of("auc").name, label_scores, 1.0, False, "auc", "auc", True)
    root = given == "rmse"
    kind = get_loss("squared" if root else given)
    if (kind.takes != "number") != (n_classes is not None):
        numbers = n_classes is None
        fit = f"numbers: {either(OF_NUMBERS)}" if numbers else f"labels: {either(OF_LABELS)}"
        raise ParameterError(f"measure {measure!r} does not fit {fit}, or another loss of these.")
    name = "rmse" if root else loss_name(kind)
    key = given if isinstance(given, str) else name
    how: Kind = "root" if root else "mean"

    floor = PROBABILITY_FLOOR * (kind.takes == "label")
    value, bound = partial(losses_at, loss=kind), kind.bound(n_classes, floor)
    return Measure(name, value, bound, False, key, how, kind.takes != "number", floor)


def check_measure(measure: str) -> str:
    """Return the loss or measure of a name; refuse an unknown name.

    Examples
    --------
    >>> check_measure("log_loss"), check_measure("auc")
    ('cross_entropy', 'auc')
    >>> check_measure("acuracy")
    Traceback (most recent call last):
    ...
    anymix.exceptions.ParameterError: there is no measure 'acuracy'; did you mean 'accuracy'?
    """
    found = ALIASES.get(measure, measure)
    if found in LOSSES or found in (*OF_LABELS, *OF_NUMBERS):
        return found
    words = (*OF_LABELS, *OF_NUMBERS, *ALIASES, *LOSSES)
    meant = did_you_mean(measure, words)
    if not meant:
        meant = f"; of labels there are {either(OF_LABELS)}, of numbers {either(OF_NUMBERS)}."
    raise ParameterError(f"there is no measure {measure!r:.60}{meant}")


def check_learnable(loss: str | Loss, labels: bool) -> None:
    """Refuse a measure that is not a loss, and a loss for the other task.

    Examples
    --------
    >>> check_learnable("accuracy", True)
    Traceback (most recent call last):
    ...
    anymix.exceptions.ParameterError: loss 'accuracy' cannot be minimised; use
    'cross_entropy', and pass measure='accuracy' to compare and certify.
    """
    usual = "cross_entropy" if labels else "squared"
    known = {name: kind for name, kind in LOSSES.items() if (kind.takes != "number") == labels}
    if isinstance(loss, str) and loss not in LOSSES:
        other = ALIASES.get(loss, loss)
        if other in LOSSES:
            raise ParameterError(f"loss {loss!r} is called {other!r} here; write that.")
        if loss in (*OF_LABELS, *OF_NUMBERS) or other in (*OF_LABELS, *OF_NUMBERS):
            raise ParameterError(
                f"loss {loss!r} cannot be minimised; use {usual!r}, and pass "
                f"measure={loss!r} to compare and certify."
            )
        raise ParameterError(
            f"loss {Words(*known)(loss)}, or a Loss.".replace("?, or a Loss.", "?")
        )
    if not isinstance(loss, str) and not hasattr(loss, "takes"):
        raise ParameterError(f"loss must be {either(known)}, or a Loss, not {loss!r:.60}.")
    if (get_loss(loss).takes != "number") != labels:
        task = "a classification" if labels else "a regression"
        raise ParameterError(f"{task} needs {either(known)}, or a Loss of its kind; got {loss!r}.")


def is_of_labels(measure: str | Loss) -> bool:
    """Whether a measure is for labels, not numbers.

    >>> is_of_labels("auc"), is_of_labels("rmse")
    (True, False)
    """
    given = check_measure(measure) if isinstance(measure, str) else measure
    return given in OF_LABELS or (given not in OF_NUMBERS and get_loss(given).takes != "number")


def label_scores(h: FloatArray, y: Labels) -> FloatArray:
    """Return the probabilities of all classes (m, c), by which rows are ranked; y tells labels."""
    if h.ndim != 2 or h.shape[1] < 2:
        raise ValueError(NEEDS_LABELS)
    return h


NEEDS_LABELS = (
    "the area under the ROC curve is found from the label of each row and the probabilities of all "
    "classes, but these tables hold only that of the true label; give the rows themselves."
)


def wrong_labels(h: FloatArray, y: Labels) -> FloatArray:
    """1 where the likeliest class (m, c) is not the label (m,), else 0."""
    if h.ndim != 2 or h.shape[1] < 2:
        raise ValueError(
            "wrong labels are counted from the probabilities of all classes, but these tables hold "
            "that of the label alone; evaluate the rows anew."
        )
    return np.asarray(h.argmax(axis=1) != y, dtype=float)


def right_labels(h: FloatArray, y: Labels) -> FloatArray:
    """1 where the likeliest class (m, c) is the label (m,), else 0."""
    return 1.0 - wrong_labels(h, y)


def own_values(tables: Tables, judge: Measure) -> FloatArray:
    """The measure of each row's own model at this row, (m,)."""
    return judge.value(tables.own_predictions(), np.asarray(tables.targets))


def chance_loss(judge: Measure, n_classes: int, n_told: int) -> float:
    """The largest loss where all classes are alike; n_told of their probabilities count."""
    if judge.binary:
        return 1.0 - 1.0 / n_classes
    h = np.full((n_told, n_told), 1.0 / n_classes)
    return float(judge.value(h, np.arange(n_told)).max())


def reference_table(
    blind: Sequence[str],
    plain: Sequence[FloatArray],
    clipped: Sequence[FloatArray],
    names: Sequence[str],
    worst: Callable[[FloatArray], float] = np.max,
) -> tuple[ReferenceLoss, ...]:
    """Return the baselines of `reference_point_losses` with their worst losses."""
    sources = range(len(plain) - len(blind) - 1)
    alone = [f"{names[k] if names else f'source {k + 1}'} alone" for k in sources]
    told = zip([*blind, "the plain average", *alone], plain, clipped, strict=True)
    return tuple(
        ReferenceLoss(name, float(worst(one)), float(worst(two))) for name, one, two in told
    )


def reference_point_losses(
    tables: Tables, judge: Measure, constant: float | None = None
) -> list[FloatArray]:
    """Losses (m,) of chance or a constant, of the plain average, and of each source alone.

    Chance predicts equal class probabilities.  The constant is the mean of all targets, unless it
    is passed.
    """
    y, c = np.asarray(tables.targets), tables.n_classes
    losses = [judge.value(h, y) for h in (tables.predictions.mean(axis=0), *tables.predictions)]
    if judge.binary and c is not None:
        return [np.full(y.size, 1.0 - 1.0 / c), *losses]
    if c is not None:
        told = tables.predictions.shape[2] if tables.predictions.ndim == 3 else 1
        return [judge.value(np.full((y.size, told), 1.0 / c), y), *losses]
    # Sites that send errors alone do not tell what was to be predicted.
    if tables.at_label:
        return losses
    mean = y.mean() if constant is None else constant
    return [judge.value(np.full(y.size, mean), y), *losses]
