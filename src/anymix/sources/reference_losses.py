"""Reference losses: what chance, the plain average and each source alone lose on some rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anymix._arrays import FloatArray
from anymix.core import ReferenceLoss
from anymix.sources.measures import Measure
from anymix.sources.tables import Tables


def own_values(tables: Tables, judge: Measure) -> FloatArray:
    """The measure of each row's own model there, (m,)."""
    return judge.value(tables.own_predictions(), np.asarray(tables.targets))


def reference_table(
    blind: Sequence[str],
    plain: Sequence[FloatArray],
    clipped: Sequence[FloatArray],
    names: Sequence[str],
) -> tuple[ReferenceLoss, ...]:
    """Name the references of `reference_point_losses`, with what they lose where they are worst."""
    sources = range(len(plain) - len(blind) - 1)
    alone = [f"{names[k] if names else f'source {k + 1}'} alone" for k in sources]
    told = zip([*blind, "the plain average", *alone], plain, clipped, strict=True)
    return tuple(ReferenceLoss(name, float(one.max()), float(two.max())) for name, one, two in told)


def reference_point_losses(
    tables: Tables, judge: Measure, constant: float | None = None
) -> list[FloatArray]:
    """Losses (m,) of chance or a constant, of the plain average, and of each source alone.

    The constant is the mean of all targets, unless these are but a part of them and it is given.
    """
    y = np.asarray(tables.targets)
    alone = [judge.value(one, y) for one in tables.predictions]
    average = judge.value(tables.predictions.mean(axis=0), y)
    return [*blind_values(tables, judge, constant).values(), average, *alone]


def blind_values(
    tables: Tables, judge: Measure, constant: float | None = None
) -> dict[str, FloatArray]:
    """Losses (m,) of a way that looks at no row: all classes alike, or the mean of all targets."""
    y, c = np.asarray(tables.targets), tables.n_classes
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
