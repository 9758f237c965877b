"""Compare a model with the alternatives to it: better, level or worse, and by how much.

All are evaluated on the same rows, so differences are paired, with intervals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from anymix._arrays import FloatArray
from anymix.core import Loss, Record
from anymix.densities import balanced_weights
from anymix.estimators._mixture_losses import Interval, Kind, mean_interval
from anymix.sources import (
    Measure,
    Tables,
    judge_of,
    measure_of,
    reference_point_losses,
)


class Rival(NamedTuple):
    """An alternative, and the model's loss less its loss; see `Verdict` for the shapes.

    name is "average", of the sources' predictions; "own", each source's model on its own rows;
    "constant", the best constant prediction; or "chance", all labels alike, where labels are not
    known.
    """

    name: str
    loss: FloatArray
    difference: FloatArray
    lower: FloatArray
    upper: FloatArray


@dataclass(frozen=True, eq=False)
class Verdict(Record):
    """The losses of a model and of the alternatives on the same rows.

    Arrays are (p + 1,): each source, and then all of them in equal parts.  The intervals of the p
    sources hold together, those of all for themselves.

    Attributes
    ----------
    measure : str
        "error rate", or the name of the loss.
    confidence : float
    fresh : bool
        Whether no part of the model is evaluated on its training rows.
    rows : array (p,)
        The number of evaluation rows of each source.
    loss, lower, upper : array (p + 1,)
    rivals : tuple of Rival
    """

    measure: str
    confidence: float
    fresh: bool
    rows: FloatArray
    loss: FloatArray
    lower: FloatArray
    upper: FloatArray
    rivals: tuple[Rival, ...]


def verdicts(
    tables: Tables,
    said: FloatArray,
    loss: str | Loss,
    confidence: float = 0.95,
    fresh: bool = True,
    measure: str | Loss | None = None,
) -> tuple[Verdict, ...]:
    """Compare a model's predictions `said` at the points of tables, (m,) or (m, c), with others.

    Parameters
    ----------
    tables : Tables
        With targets and the domain of each point.
    said : array
    loss : str or Loss
        What the model was learned with.
    confidence : float
    fresh : bool
        Whether the predictions at the points were learned without them.
    measure : str or Loss, optional
        A further one, which comes first; one that is no mean over rows has no verdict.

    Returns
    -------
    tuple of Verdict
        By the loss; for labels first by the error rate, where the tables have it.

    Examples
    --------
    >>> tables = Tables(np.zeros((2, 4)), np.array([[0.0] * 4, [1.0] * 4]))
    >>> tables = tables.labelled([0.0, 0.0, 1.0, 1.0], [0, 0, 1, 1])
    >>> (found,) = verdicts(tables, np.array([0.0, 0.0, 1.0, 1.0]), "squared")
    >>> {rival.name: rival.difference.round(4).tolist() for rival in found.rivals}
    {'average': [-0.25, -0.25, -0.25], 'own': [0.0, 0.0, 0.0], 'constant': [-0.25, -0.25, -0.25]}
    """
    c = tables.n_classes
    judges = [measure_of(None, loss, c)]
    if c is not None and said.ndim == 2 and said.shape[1] > 1:
        judges.insert(0, measure_of("error_rate", loss, c))
    first = judge_of("error_rate" if measure == "accuracy" else measure, loss, c)
    if first.kind == "mean":
        judges = [first] * (measure is not None) + judges
    once = {judge.name: judge for judge in judges}.values()
    return tuple(_verdict(tables, said, judge, confidence, fresh) for judge in once)


def _verdict(
    tables: Tables, said: FloatArray, judge: Measure, confidence: float, fresh: bool
) -> Verdict:
    y, p = np.asarray(tables.targets), tables.n_sources
    ours, alpha = judge.value(said, y), 1.0 - confidence
    loss = _judged(tables, ours, alpha, "share" if judge.binary else "number")
    lower = np.maximum(loss.lower, 0.0) if ours.min() >= 0 else loss.lower
    rivals = []
    for name, theirs in _ways(tables, judge).items():
        kind: Kind = "difference" if judge.binary else "number"
        found = _judged(tables, ours - theirs, alpha, kind)
        rivals.append(Rival(name, loss.mean - found.mean, *found))
    rows = np.bincount(tables.domain, minlength=p).astype(float)
    return Verdict(judge.name, confidence, fresh, rows, loss.mean, lower, loss.upper, tuple(rivals))


def _judged(tables: Tables, values: FloatArray, alpha: float, kind: Kind) -> Interval:
    """Return intervals of each source, α shared by all, and of all in equal parts: (p + 1,)."""
    p, weight = tables.n_sources, tables.weights
    ends = np.empty((2, 3, p))
    for k in range(p):
        rows = tables.rows_of(k)
        share = weight[rows] / weight[rows].sum()
        for level, error in enumerate((alpha / p, alpha)):
            ends[level, :, k] = mean_interval(values[rows], share, error, kind)
    each, whole = ends[0], Interval(*ends[1]).mixed(np.full(p, 1.0 / p))
    return Interval(*(np.append(a, b) for a, b in zip(each, whole, strict=True)))


def _ways(tables: Tables, judge: Measure) -> dict[str, FloatArray]:
    """Losses (m,) of the plain average, of each row's own model, and of a guess."""
    p, losses = tables.n_sources, reference_point_losses(tables, judge)
    *blind, average = losses[:-p]
    own = np.stack(losses[-p:])[tables.domain, np.arange(tables.n_points)]
    ways = {"average": average, "own": own}
    if tables.at_label:
        return ways | dict(zip(("chance",), blind, strict=False))
    return ways | {"constant": _best_constant(tables, judge)}


def _best_constant(tables: Tables, judge: Measure) -> FloatArray:
    """Losses (m,) of the best answer that is the same at every row, sources counting alike."""
    y = np.asarray(tables.targets)
    share = balanced_weights(tables.domain, tables.weights, tables.n_sources)
    share /= share.sum()
    c = tables.n_classes
    if c is not None:
        return judge.value(np.tile(np.bincount(y, share, c), (y.size, 1)), y)

    def at(answer: float) -> FloatArray:
        return judge.value(np.full(y.size, answer), y)

    said = [float(end) for h in (y, tables.predictions) for end in (h.min(), h.max())]
    ends = min(said), max(said)
    if ends[0] == ends[1]:
        return at(ends[0])
    # The losses are convex in the answer.
    near = {"xatol": 1e-9 * (ends[1] - ends[0])}
    best = minimize_scalar(
        lambda answer: share @ at(answer), bounds=ends, method="bounded", options=near
    )
    return at(float(best.x))
