"""h = (1/K) Σ_t h_t: the average of combinations that were each learned without a part of the rows.

The loss is convex, so that by Jensen's inequality, on every distribution,

    L(D, h) ≤ (1/K) Σ_t L(D, h_t),

and the rows of part t are new to h_t.  So one model is deployed, all rows have taught it, and each
of them judges it as if it were new: see `anymix.core.guarantees`.  Densities and models are asked
once; only the weights are computed K times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from anymix._arrays import FloatArray
from anymix.core.combination import Ask, Combination, mix
from anymix.core.records import Record

# Of what is read from files.
MOST_PARTS = 100


@dataclass(frozen=True, eq=False)
class CrossFittedCombination(Record):
    """Combinations of the same sources, of which the average predicts.

    Attributes
    ----------
    parts : tuple of Combination
        One at least, of one rule and one η.

    Examples
    --------
    >>> pair = [Combination(np.array(z), 0.0) for z in ([0.5, 0.5], [1.0, 0.0])]
    >>> average = CrossFittedCombination(tuple(pair))
    >>> average.predict(np.zeros((2, 1)), np.array([[0.0], [1.0]]))
    array([0.25])
    >>> average.z
    array([0.75, 0.25])
    """

    parts: tuple[Combination, ...]

    def check(self) -> None:
        """Raise a ValueError, in one sentence, for parts that do not go together."""
        if not 0 < len(self.parts) <= MOST_PARTS:
            raise ValueError(f"an average has 1 to {MOST_PARTS} parts; got {len(self.parts)}.")
        for part in self.parts:
            part.check()
        first = self.parts[0]
        for part in self.parts[1:]:
            if (part.z.size, part.eta, part.rule) != (first.z.size, first.eta, first.rule):
                raise ValueError("the parts of an average have one number of sources, η and rule.")

    @classmethod
    def of(cls, combination: Combination | CrossFittedCombination) -> CrossFittedCombination:
        """Return an average as it is, and one combination as an average of itself."""
        return (
            combination
            if isinstance(combination, CrossFittedCombination)
            else CrossFittedCombination((combination,))
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the average that `to_dict` wrote, or say what is wrong with it."""
        found = super().from_dict(data)
        found.check()
        return found

    @property
    def z(self) -> FloatArray:
        """The mean of the parts' z, (p,)."""
        return self._mean(lambda part: part.z)

    @property
    def eta(self) -> float:
        """η, of all parts."""
        return self.parts[0].eta

    @property
    def rule(self) -> str:
        """The rule, of all parts."""
        return self.parts[0].rule

    @property
    def consults(self) -> bool:
        """Whether any source hears another, in any part."""
        return any(part.consulting is not None for part in self.parts)

    @property
    def calibrated(self) -> bool:
        """Whether the densities are calibrated."""
        return self.parts[0].calibration is not None

    @property
    def ears(self) -> FloatArray:
        """a_kj, how source k takes the model of source j, (p, p), on average; see `Consulting`."""
        p = self.parts[0].z.size

        def weights(part: Combination) -> FloatArray:
            return np.eye(p) if part.consulting is None else part.consulting.weights

        return self._mean(weights)

    def heard(self, predictions: FloatArray) -> FloatArray:
        """What each source says after it heard the others, on average over the parts."""

        def said(part: Combination) -> FloatArray:
            return predictions if part.consulting is None else part.consulting.heard(predictions)

        return self._mean(said)

    def with_z(self, z: FloatArray) -> CrossFittedCombination:
        """Put one z in the place of all."""
        return CrossFittedCombination(tuple(replace(part, z=z) for part in self.parts))

    def _mean(self, ask: Callable[[Combination], FloatArray]) -> FloatArray:
        """(1/K) Σ_t of what the parts say; one part alone is not rounded."""
        return mean([ask(part) for part in self.parts])

    def responsibilities(self, log_masses: FloatArray) -> FloatArray:
        """q_k, (p, n), which sum to 1 over the sources; see `Combination`."""
        return self._mean(lambda part: part.responsibilities(log_masses))

    def log_responsibilities(self, log_masses: FloatArray) -> FloatArray:
        """log q_k from log D_k or log r_k, both (p, n): of several parts, of their mean q_k."""
        if len(self.parts) == 1:
            return self.parts[0].log_responsibilities(log_masses)
        logs = np.stack([part.log_responsibilities(log_masses) for part in self.parts])
        return np.asarray(np.logaddexp.reduce(logs, axis=0) - np.log(len(self.parts)))

    def weights(self, log_masses: FloatArray) -> FloatArray:
        """The mean weights of the sources, (p, n), which sum to 1; see `Combination`."""
        return self._mean(lambda part: part.weights(log_masses))

    def model_weights(self, log_masses: FloatArray) -> FloatArray:
        """How much each *model* counts, (p, n), others' ears included; see `Combination`."""
        return self._mean(lambda part: part.model_weights(log_masses))

    def predict(
        self, log_masses: FloatArray, predictions: FloatArray | Ask, skip_below: float = 0.0
    ) -> FloatArray:
        """(1/K) Σ_t h_t, (n,) or (n, c); parameters are those of `Combination.predict`.

        Without consulting the marginal rule is linear in the weights, so that one sum serves all
        parts.
        """
        if not self.consults and self.rule == "marginal":
            return mix(self.weights(log_masses), predictions, skip_below)
        if callable(predictions):
            ask = predictions
            predictions = np.stack([ask(k, None) for k in range(self.parts[0].z.size)])
        said = predictions
        return self._mean(lambda part: part.predict(log_masses, said))


def mean(tables: Sequence[FloatArray]) -> FloatArray:
    """Average arrays of one shape; a single one is returned as it is."""
    if len(tables) == 1:
        return tables[0]
    total = tables[0].copy()
    for table in tables[1:]:
        total += table
    return np.asarray(total / len(tables))
