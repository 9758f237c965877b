"""What others would lose on the rows that certify: chance, the plain average, each source alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray
from anymix.core import ReferenceLoss
from anymix.sources.measures import Labels, Measure
from anymix.sources.parts import by_source
from anymix.sources.tables import Tables


def n_classes_of(tables: Tables) -> int | None:
    """How many classes there are, or None for numbers."""
    return None if tables.classes is None else len(tables.classes)


def targets_of(tables: Tables) -> Labels:
    """Numbers or positions of labels, (m,)."""
    return np.asarray(tables.targets)


def beside(
    tables: Tables, judge: Measure, clip: float | None = None, names: Sequence[str] = ()
) -> tuple[ReferenceLoss, ...]:
    """What chance or a constant, the plain average and each source alone lose where they are worst.

    Where a bound is on clipped losses they are told clipped alike, too.
    """
    losses, cap = ways_beside(tables, judge), np.inf if clip is None else clip
    plain = [by_source(one, tables) for one in losses]
    clipped = [by_source(np.minimum(one, cap), tables) for one in losses]
    return told_beside(tables, plain, clipped, names)


class Kind(Protocol):
    """What must be known of rows to say what ways there are beside: `Tables`, or rows in parts."""

    @property
    def classes(self) -> NDArray[Any] | None:
        """All labels, or None for numbers."""

    @property
    def at_label(self) -> bool:
        """Whether errors alone are told."""


def told_beside(
    kind: Kind, plain: Sequence[FloatArray], clipped: Sequence[FloatArray], names: Sequence[str]
) -> tuple[ReferenceLoss, ...]:
    """Name the ways of `ways_beside`, and what they lose where they are worst."""
    blind = [] if kind.classes is None and kind.at_label else ["a constant"]
    blind = blind if kind.classes is None else ["chance"]
    sources = range(len(plain) - len(blind) - 1)
    alone = [f"{names[k] if names else f'source {k + 1}'} alone" for k in sources]
    told = zip([*blind, "the plain average", *alone], plain, clipped, strict=True)
    return tuple(ReferenceLoss(name, float(one.max()), float(two.max())) for name, one, two in told)


def ways_beside(tables: Tables, judge: Measure, constant: float | None = None) -> list[FloatArray]:
    """Losses (m,) of chance or a constant, of the plain average, and of each source alone.

    The constant is the mean of all targets, unless these are but a part of them and it is given.
    """
    y = targets_of(tables)
    alone = [judge.value(one, y) for one in tables.predictions]
    average = judge.value(tables.predictions.mean(axis=0), y)
    return [*blind_values(tables, judge, constant).values(), average, *alone]


def blind_values(
    tables: Tables, judge: Measure, constant: float | None = None
) -> dict[str, FloatArray]:
    """Losses (m,) of a way that looks at no row: all classes alike, or the mean of all targets."""
    y, c = targets_of(tables), n_classes_of(tables)
    if judge.binary and c is not None:
        return {"chance": np.full(y.size, 1.0 - 1.0 / c)}
    if c is not None:
        told = tables.predictions.shape[2] if tables.predictions.ndim == 3 else 1
        return {"chance": judge.value(np.full((y.size, told), 1.0 / c), y)}
    # Sites that tell errors alone do not tell what was to be predicted.
    if tables.at_label:
        return {}
    mean = y.mean() if constant is None else constant
    return {"a constant": judge.value(np.full(y.size, mean), y)}
