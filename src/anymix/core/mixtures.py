"""Sets of mixtures, given by bounds on the share of each source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from anymix._arrays import FloatArray


class ShareRange(NamedTuple):
    """The share of a source in a mixture lies between `lower` and `upper`."""

    name: str
    lower: float
    upper: float

    def __str__(self) -> str:
        low, high = (f"{100 * share:.3g} %" for share in self[1:])
        if self.lower == self.upper:
            return f"{low} of rows from {self.name}"
        if self.lower <= 0:
            return f"at most {high} of rows from {self.name}"
        if self.upper >= 1:
            return f"at least {low} of rows from {self.name}"
        return f"{low.removesuffix(' %')} to {high} of rows from {self.name}"


# Shares that add up to 1 but for rounding.
ROUNDING = 1e-9


def share_ranges(
    mixtures: Mapping[str, ArrayLike] | None, names: Sequence[str]
) -> tuple[ShareRange, ...]:
    """Check stated shares: {source: (least, most)}, or {source: share}.

    >>> share_ranges({"north": (0.4, 0.7)}, ["north", "south"])
    (ShareRange(name='north', lower=0.4, upper=0.7),)
    """
    found = []
    for name, stated in (mixtures or {}).items():
        if str(name) not in names:
            raise ValueError(f"mixtures names {name!r}; the sources are {', '.join(names)}.")
        try:
            ends = np.broadcast_to(np.asarray(stated, dtype=float), (2,)).tolist()
        except (TypeError, ValueError):
            ends = [np.nan, np.nan]
        if not 0 <= ends[0] <= ends[1] <= 1:
            raise ValueError(
                f"mixtures must give {name!r} its least and its largest share, with "
                f"0 <= least <= most <= 1; got {stated!r:.60}."
            )
        found.append(ShareRange(str(name), *ends))
    share_bounds(found, names)
    return tuple(found)


def share_bounds(
    ranges: Sequence[ShareRange], names: Sequence[str]
) -> tuple[FloatArray, FloatArray]:
    """Return the least and the largest share of each source, (p,) each.

    >>> share_bounds([ShareRange("north", 0.4, 0.7)], ["north", "south"])
    (array([0.4, 0. ]), array([0.7, 1. ]))
    """
    lower, upper = np.zeros(len(names)), np.ones(len(names))
    for one in ranges:
        k = list(names).index(one.name)
        lower[k], upper[k] = one.lower, one.upper
    if lower.sum() > 1 + ROUNDING or upper.sum() < 1 - ROUNDING:
        stated = ", ".join(map(str, ranges))
        raise ValueError(f"no mixture has {stated}: the shares of all sources add up to 1.")
    return lower, upper


def worst_mixture(values: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return argmax Σ_k λ_k v_k over lower ≤ λ ≤ upper on the simplex: the largest v_k first.

    Examples
    --------
    >>> worst_mixture(np.array([3.0, 1.0, 2.0]), np.array([0.0, 0.2, 0.0]), np.array([0.5, 1, 1]))
    array([0.5, 0.2, 0.3])
    """
    if (lower > upper).any() or lower.sum() > 1 + ROUNDING or upper.sum() < 1 - ROUNDING:
        raise ValueError(f"no mixture lies between {lower} and {upper}.")
    order, room = np.argsort(-values, kind="stable"), upper - lower
    before = np.cumsum(room[order]) - room[order]
    mixture = lower.copy()
    mixture[order] += np.clip(1.0 - lower.sum() - before, 0.0, room[order])
    return mixture


def worst_value(
    values: FloatArray, ranges: Sequence[ShareRange] = (), names: Sequence[str] = ()
) -> float:
    """Return max Σ_k λ_k v_k over the mixtures that are stated, or over all: max_k v_k.

    >>> worst_value(np.array([1.0, 3.0]), [ShareRange("north", 0.5, 1.0)], ["north", "south"])
    2.0
    """
    if not ranges:
        return float(values.max())
    return float(worst_mixture(values, *share_bounds(ranges, names)) @ values)
