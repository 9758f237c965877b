"""A mean and how sure it is, from moments of rows that may lie in several parts."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from scipy import stats

from anymix._arrays import FloatArray


class Moments(NamedTuple):
    """Of values x with weights w: Σw, Σw², and moments about the mean x̄ = Σwx/Σw.

    second and third are Σw(x − x̄)² and Σw(x − x̄)³, noise is Σw²(x − x̄)² and lean Σw²(x − x̄).

    Examples
    --------
    >>> x, w = np.array([0.0, 1.0, 5.0, 2.0]), np.array([1.0, 2.0, 1.0, 1.0])
    >>> whole = Moments.of(x, w)
    >>> np.allclose(Moments.of(x[:1], w[:1]).plus(Moments.of(x[1:], w[1:])), whole)
    True
    """

    weight: float
    squares: float
    mean: float
    second: float
    third: float
    noise: float
    lean: float

    @classmethod
    def of(cls, x: FloatArray, w: FloatArray) -> Self:
        """Gather them; of no rows all are 0."""
        total = float(w.sum())
        if not total > 0:
            return cls(*np.zeros(7).tolist())
        mean = float(w @ x) / total
        away, ww = x - mean, w * w
        spreads = w @ away**2, w @ away**3, ww @ away**2, ww @ away
        return cls(total, float(ww.sum()), mean, *map(float, spreads))

    def about(self, mean: float) -> Self:
        """Move the point that they are taken about from x̄ to another one."""
        s = self.mean - mean
        return self._replace(
            mean=mean,
            second=self.second + self.weight * s**2,
            third=self.third + 3.0 * s * self.second + self.weight * s**3,
            noise=self.noise + 2.0 * s * self.lean + self.squares * s**2,
            lean=self.lean + self.squares * s,
        )

    def plus(self, other: Moments) -> Moments:
        """Those of both parts together."""
        if not (self.weight > 0 and other.weight > 0):
            return self if self.weight > 0 else other
        total = self.weight + other.weight
        mean = self.mean + (other.mean - self.mean) * other.weight / total
        pairs = zip(self.about(mean), other.about(mean), strict=True)
        return Moments(*(one + two for one, two in pairs))._replace(mean=mean)

    @property
    def n_rows(self) -> float:
        """(Σ w)²/Σ w²: as many rows of equal weight would tell as much."""
        return self.weight**2 / self.squares

    @property
    def standard_error(self) -> float:
        """√(n/(n−1) Σw²(x − x̄)²)/Σw: of equal weights the standard deviation over √n."""
        n = self.n_rows
        return float(np.sqrt(n / max(n - 1.0, 1.0) * self.noise) / self.weight)

    def upper(self, delta: float) -> float:
        """Student's bound, and what skewness g > 0 takes from it: (s/√n) g (2t² + 1)/(6√n).

        Losses have long tails above, so that a sample mean is too low more often than too high.
        That is the next term of Edgeworth's expansion (Hall 1992), and makes up for most of it.
        Where all rows tell the same nothing is known of those that differ: infinity.
        """
        n, spread = self.n_rows, self.second / self.weight
        if n < 2 - 1e-9 or not spread > 0:
            return np.inf
        t = float(stats.t.isf(delta, n - 1))
        g = self.third / self.weight / spread**1.5
        tail = max(0.0, g) * (2 * t**2 + 1) * np.sqrt(spread) / (6 * n)
        return float(self.mean + self.standard_error * t + tail)
