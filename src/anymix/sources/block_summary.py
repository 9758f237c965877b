"""Loss summaries for bounds, from queries to blocks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from anymix._arrays import FloatArray
from anymix.core import BoundKind, LossSummary, Method, clip_shares, largest_value
from anymix.sources.blocks import joined_moments, map_moments
from anymix.sources.queries import Arrays

# Thresholds of a round that counts losses below them; how near two of them end, of their size.
THRESHOLDS, NEAR = 256, 1e-13
# What bounds by moments ask about, at one clip.
KINDS: tuple[BoundKind, ...] = ("loss", "regret", "above")


# How responses of blocks are joined; all else is added up.
EXTREMES: dict[str, Any] = dict.fromkeys(("least", "lowest", "floor"), np.minimum)
EXTREMES |= dict.fromkeys(("largest", "disagreement", "uppers", "quantiles"), np.maximum)


def joined_responses(responses: Sequence[Arrays]) -> Arrays:
    """Join the responses of blocks, array by array."""
    return {
        name: reduce(EXTREMES.get(name, np.add), [one[name] for one in responses])
        for name in responses[0]
    }


class BlockLossSummary(LossSummary):
    """Loss summaries for bounds, from queries to blocks."""

    def __init__(self, average: Any):
        self.blocks, self.n_folds = average.blocks, average.n_folds
        self.options, self.arrays = average.options, average.arrays
        self._asked: dict[tuple[float, float], dict[str, list[Arrays]]] = {}
        self._quantiles: dict[float, FloatArray] = {}
        evidence, _ = self.blocks.at_once(
            lambda: self.blocks.ask("evidence", self.options, self.arrays),
            lambda: self.blocks.whole.all() and self.quantiles(),
        )
        joined = joined_responses(evidence)
        empty = np.flatnonzero(joined["weight"] == 0)
        if empty.size:
            raise ValueError(f"there are no rows of source {empty[0]} to evaluate.")
        self.source_losses = np.asarray(joined["losses"] / joined["weight"])
        self.own_losses = np.asarray(joined["own"] / joined["weight"])
        self.rows = np.asarray(joined["weight"] ** 2 / joined["squares"])
        self.least, self.largest = float(joined["least"].min()), float(joined["largest"].max())
        self.alike = self.blocks.alike

    def quantiles(self, share: float = 1.0) -> FloatArray:
        """Of each source's losses and own losses, which about ten of its rows exceed: (p,).

        A block that has all rows of a source responds with its quantile.
        """
        if not self.blocks.whole.all():
            return self._counted_quantiles(share)
        if share not in self._quantiles:
            given = self.arrays | {"part": np.array(share)}
            found = joined_responses(self.blocks.ask("quantiles", self.options, given))
            self._quantiles[share] = np.asarray(found["quantiles"])
        return self._quantiles[share]

    def _counted_quantiles(self, share: float) -> FloatArray:
        """Quantiles by counts of losses below thresholds, to 1e-13."""
        where = clip_shares(self.rows, share) * (self.blocks.by_fold["weighed"].sum(axis=0) - 1)
        places = np.stack([np.floor(where), np.ceil(where)], axis=-1)[:, None, :, None]
        shape = (len(where), 2, 2)
        low = np.full(shape, np.nextafter(self.least, -np.inf))
        high = np.full(shape, self.largest)
        for _ in range(40):
            steps = np.linspace(low, high, THRESHOLDS + 1, axis=-1)
            given = self.arrays | {"thresholds": steps}
            counts = self.blocks.total("below", self.options, given)["counts"]
            # The first threshold that more than `places` rows do not exceed.
            at = (counts <= places).sum(axis=-1, keepdims=True).clip(1, THRESHOLDS)
            low, high = (np.take_along_axis(steps, i, -1)[..., 0] for i in (at - 1, at))
            if (high - low <= NEAR * np.abs(high)).all():
                break
        part = (where - np.floor(where))[:, None]
        return np.asarray(((1 - part) * high[..., 0] + part * high[..., 1]).max(axis=1))

    def threshold(self, share: float, c: float) -> float:
        """t = 0: for rows that are elsewhere no threshold is chosen."""
        return 0.0

    def exact_uppers(
        self, kind: BoundKind, c: float, delta: float, method: Method, t: float = 0.0
    ) -> FloatArray:
        """Bounds (K, p): of each part the largest over the sources, each at δ/K.

        Blocks respond with the largest only, which bounds every mixture as well.
        """
        options = self.options | {"kind": kind, "method": method}
        given = self.arrays | {"c": np.array(c), "delta": np.array(delta / self.n_folds)}
        given["t"] = np.array(t)
        largest = joined_responses(self.blocks.ask("exact_upper", options, given))["uppers"]
        return np.repeat(largest[:, None], self.rows.size, axis=1)

    def asymptotic_uppers(
        self, kind: BoundKind, c: float, delta: float, t: float = 0.0
    ) -> FloatArray:
        """Asymptotic bounds (p,), each at δ."""
        found = self._moments(c, t)[kind]
        known = map_moments(joined_moments([one["moments"] for one in found]))
        tails = np.sum([one["tail"] for one in found], axis=0)
        most = largest_value(kind, c, t)
        pairs = zip(known, tails, strict=True)
        return np.array([one.upper(delta, most, tail) for one, tail in pairs])

    def _moments(self, c: float, t: float) -> dict[str, list[Arrays]]:
        """Moments of each kind at a clip and a threshold, in one round."""
        if (c, t) not in self._asked:
            given = self.arrays | {"c": np.array(c), "t": np.array(t)}
            kinds = KINDS if t == 0 else ("excess",)
            found = self.blocks.together(
                lambda kind: self.blocks.ask("moments", self.options | {"kind": kind}, given), kinds
            )
            self._asked[c, t] = dict(zip(kinds, found, strict=True))
        return self._asked[c, t]
