"""One column of a table in a few numbers: spikes, quantiles and the share of missing values.

Values that many rows share, and codes of categories, are atoms.  What is left is spread evenly
between quantiles, with an exponential tail beyond either end.  Missing values have their own share.
Every number is the value of `min_count` rows or the mean of `min_count` values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anymix._arrays import FloatArray, IntArray, winsorised_means
from anymix.densities.density import LARGEST, ROUNDED, refuse_unless

LEVELS = 65
MOST_ATOMS = 64  # of a column of numbers
CODES = 0.95  # share of the rows whose values are atoms, from where on the others are strays
STEP = 1e-3  # of an even spacing, between quantiles that are equal
MOST_QUANTILES, MOST_VALUES = 1000, 1000  # most that are accepted from a file


@dataclass(frozen=True)
class Marginal:
    """The distribution of one column; `gaps`, `shares` and `body` sum to 1.

    A part `tail` of `body` lies beyond each end of `quantiles`, the rest evenly between them.
    """

    gaps: float = 0.0
    values: tuple[float, ...] = ()
    shares: tuple[float, ...] = ()
    body: float = 0.0
    quantiles: tuple[float, ...] = ()
    tail: float = 0.0

    @classmethod
    def of(cls, column: FloatArray, min_count: int) -> Marginal:
        """Describe a column of numbers, NaN where missing."""
        least = max(1, min(min_count, len(column)))
        values_in = np.sort(column[~np.isnan(column)])
        values, counts = np.unique(values_in, return_counts=True)
        few, left = len(counts) <= MOST_ATOMS, int(counts.sum())
        common = []
        for i in np.argsort(-counts, kind="stable")[:MOST_ATOMS]:
            if counts[i] < max(least, 0 if few else left / (LEVELS - 1)):
                break
            common.append(i)
            left -= int(counts[i])
        chosen = np.array(sorted(common), dtype=np.intp)
        rest = np.repeat(np.delete(values, chosen), np.delete(counts, chosen))
        strays = few and counts[chosen].sum() > CODES * len(values_in)
        if len(rest) < least or strays:
            rest = rest[:0]
        n, n_gaps = len(rest), len(column) - len(values_in)
        atoms = values[chosen], counts[chosen]
        if not n:
            return cls._counted(n_gaps, atoms, least)
        m = max(2, min(LEVELS, n // least))
        starts = np.linspace(0, n - least, m).astype(np.intp)
        # Quartered first, so that the largest numbers do not overflow.
        windows = rest[starts[:, None] + np.arange(least)] / 4
        q = 4 * np.mean(windows, axis=1)
        # Beyond either end may be one far value, which a mean would tell.
        q[[0, -1]] = 4 * winsorised_means(windows[[0, -1]])
        q.sort()
        # Equal quantiles are pulled apart a little.
        step = STEP * max((q[-1] - q[0]) / (m - 1), 1e-6 * float(np.abs(q).max()), 1e-9)
        if np.diff(q).min() < step:
            q = q[0] + np.append(0.0, np.cumsum(np.maximum(np.diff(q), step)))
        tail = min(0.25, least / (2 * n))
        return cls._counted(n_gaps, atoms, least, n, tuple(q.tolist()), tail)

    @classmethod
    def of_codes(cls, column: FloatArray, n_categories: int, min_count: int) -> Marginal:
        """Describe a column of categories by their codes; rare ones count as missing."""
        least = max(1, min(min_count, len(column)))
        codes_in = column[np.isin(column, np.arange(n_categories))].astype(np.intp)
        counts = np.bincount(codes_in, minlength=n_categories)
        chosen = np.flatnonzero(counts >= least)
        atoms = chosen.astype(np.float64), counts[chosen]
        return cls._counted(len(column) - counts[chosen].sum(), atoms, least)

    @classmethod
    def _counted(
        cls,
        n_gaps: int,
        atoms: tuple[FloatArray, IntArray],
        least: int,
        n_body: int = 0,
        quantiles: tuple[float, ...] = (),
        tail: float = 0.0,
    ) -> Marginal:
        total = atoms[1].sum() + n_body
        n_gaps = n_gaps if n_gaps >= least else 0
        if total == 0:
            return cls(gaps=1.0)
        total = float(total + n_gaps)
        shares = tuple((atoms[1] / total).tolist())
        return cls(
            n_gaps / total, tuple(atoms[0].tolist()), shares, n_body / total, quantiles, tail
        )

    def sample(self, n: int, rng: np.random.RandomState) -> FloatArray:
        """Draw values, NaN where missing, (n,)."""
        choices = [np.nan, *self.values, np.inf]
        shares = np.array([self.gaps, *self.shares, self.body])
        drawn = np.take(choices, rng.choice(len(choices), n, p=shares / shares.sum()))
        spread = np.isinf(drawn)
        if spread.any():
            u, q = rng.random_sample(int(spread.sum())), np.array(self.quantiles)
            inner = np.interp(u, np.linspace(self.tail, 1 - self.tail, len(q)), q)
            # u is even within a tail as well: its share of it gives an exponential distance, on
            # average half of the last interval.
            left, right = u < self.tail, u > 1 - self.tail
            inner[left] += (q[1] - q[0]) / 2 * np.log((u[left] + 1e-300) / self.tail)
            inner[right] -= (q[-1] - q[-2]) / 2 * np.log((1 - u[right]) / self.tail + 1e-300)
            drawn[spread] = inner
        return drawn

    def quantile(self, level: float) -> float:
        """Return about the number below which this share of the numbers lies.

        >>> Marginal.of(np.arange(1001.0), min_count=1).quantile(0.25)
        242.0
        """
        values, shares = self._spread(1.0)
        order = np.argsort(values, kind="stable")
        place = np.searchsorted(np.cumsum(shares[order]), level * shares.sum())
        return float(values[order][min(int(place), len(values) - 1)])

    def _spread(self, weight: float) -> tuple[FloatArray, FloatArray]:
        """Return numbers that stand for the column, and their shares times a weight."""
        q = np.array(self.quantiles)
        middles = (q[1:] + q[:-1]) / 2  # each stands for as much of the body
        even = np.full(len(middles), self.body / max(1, len(middles)))
        return np.append(self.values, middles), weight * np.append(self.shares, even)

    def log_body_density(self, x: FloatArray) -> FloatArray:
        """log (body · f(x)) of the part between and beyond the quantiles, (n,)."""
        if not self.body:
            return np.full(len(x), -np.inf)
        q = np.array(self.quantiles)
        low, high = (q[1] - q[0]) / 2, (q[-1] - q[-2]) / 2
        heights = (1 - 2 * self.tail) / (len(q) - 1) / np.diff(q)
        at = np.clip(np.searchsorted(q, x, side="right") - 1, 0, len(q) - 2)
        left = np.log(self.tail / low) + (x - q[0]) / low
        right = np.log(self.tail / high) + (q[-1] - x) / high
        inside = np.where(x < q[0], left, np.where(x > q[-1], right, np.log(heights[at])))
        return np.asarray(np.log(self.body) + inside)

    def recoded(self, codes: Sequence[int]) -> Marginal:
        """Return the marginal with code i as codes[i], missing where that is below 0."""
        pairs = [(codes[int(v)], s) for v, s in zip(self.values, self.shares, strict=True)]
        kept = sorted((float(c), s) for c, s in pairs if c >= 0)
        gaps = self.gaps + sum(s for c, s in pairs if c < 0)
        return Marginal(gaps, tuple(c for c, _ in kept), tuple(s for _, s in kept))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        record: dict[str, Any] = {"gaps": self.gaps}
        if self.values:
            record |= {"values": list(self.values), "shares": list(self.shares)}
        if self.body:
            record |= {"body": self.body, "quantiles": list(self.quantiles), "tail": self.tail}
        return record

    @classmethod
    def from_dict(cls, data: Any, n_categories: int | None) -> Marginal:
        """Read the output of `to_dict`; a ValueError says what is invalid."""
        allowed = ({"gaps"}, {"values", "shares"}, {"body", "quantiles", "tail"})
        refuse_unless(isinstance(data, Mapping), "has a column that is not an object")
        parts = [names for names in allowed if names & set(data)]
        refuse_unless(set(data) == set().union(*parts) >= {"gaps"}, "has a column of other parts")
        values, shares = (_numbers(data.get(k, []), MOST_VALUES) for k in ("values", "shares"))
        quantiles = _numbers(data.get("quantiles", []), MOST_QUANTILES)
        gaps, body, tail = (_numbers([data.get(k, 0.0)], 1)[0] for k in ("gaps", "body", "tail"))
        refuse_unless(len(values) == len(shares), "has a column with a value but no share of it")
        refuse_unless(min(*shares, gaps, body, 1.0) >= 0, "has a column with a share below 0")
        total = gaps + body + sum(shares)
        refuse_unless(abs(total - 1) < 1e-6, "has a column whose shares do not sum to 1")
        rising = np.all(np.diff(values) > 0) and np.all(np.diff(quantiles) > 0)
        refuse_unless(rising, "has a column whose values or quantiles do not increase")
        if body:
            refuse_unless(len(quantiles) >= 2, "has a column of fewer than 2 quantiles")
            refuse_unless(
                0 < tail <= 0.25, "has a column whose tail is not above 0 and at most 1/4"
            )
            # Heights are finite, and a step of the last digit is no interval.
            width, size = np.diff(quantiles).min(), np.abs(quantiles).max()
            distinct = width > 1e-14 * size and width > 1e-100
            refuse_unless(distinct, "has quantiles that hardly differ")
        if n_categories is not None:
            sound = not body and all(v.is_integer() and 0 <= v < n_categories for v in values)
            refuse_unless(sound, "has a category that its column does not list")
        if abs(total - 1) > ROUNDED:
            gaps, body, shares = gaps / total, body / total, tuple(s / total for s in shares)
        return cls(gaps, values, shares, body, quantiles, tail)


def _numbers(given: Any, most: int) -> tuple[float, ...]:
    refuse_unless(isinstance(given, list), "has a column whose numbers are not a list")
    refuse_unless(len(given) <= most, f"has a column of more than {most} numbers")
    for number in given:
        plain = isinstance(number, int | float) and not isinstance(number, bool)
        refuse_unless(plain and abs(number) < LARGEST, "has a column with non-numeric values")
    return tuple(float(number) for number in given)


# In place of zero, for what was never seen: novelty compares logarithms.
LEAST_SHARE = 1e-9


def pooled_log_density(parts: Sequence[Marginal], weights: FloatArray, x: FloatArray) -> FloatArray:
    """Logarithm of Σ_s w_s M_s(x), (n,); unseen values have the share 1e-9."""
    missing = np.isnan(x)
    at = np.where(missing, 0.0, x)
    values, shares = atoms_of(parts, weights)
    place = np.searchsorted(values, at)
    met = np.append(values, np.nan)[place] == at
    with np.errstate(divide="ignore"):
        logs = [np.log(w) + m.log_body_density(at) for w, m in zip(weights, parts, strict=True)]
        spread = np.logaddexp.reduce(logs, axis=0)
        atoms = np.log(np.append(shares, 0.0))[place]
        gap = np.log(weights @ [part.gaps for part in parts])
    log_density = np.where(missing, gap, np.where(met, atoms, spread))
    # A body says itself how unlikely a far number is.
    unseen = missing | met | (not any(part.body for part in parts))
    return np.where(unseen, np.maximum(log_density, np.log(LEAST_SHARE)), log_density)


def atoms_of(parts: Sequence[Marginal], weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Values that are atoms of any part, sorted, and their total shares, both (a,)."""
    values = np.concatenate([np.array(part.values) for part in parts])
    shares = np.concatenate([w * np.array(m.shares) for w, m in zip(weights, parts, strict=True)])
    distinct, place = np.unique(values, return_inverse=True)
    return distinct, np.asarray(np.bincount(place, shares, minlength=len(distinct)), dtype=float)


def centre_and_scale(parts: Sequence[Marginal], weights: FloatArray) -> tuple[float, float]:
    """Median and standard deviation of the numbers; 0 and 1 where there are none, or 1 of one."""
    every = [part._spread(weight) for weight, part in zip(weights, parts, strict=True)]
    values, shares = map(np.concatenate, zip(*every, strict=True))
    if not shares.sum() > 0:
        return 0.0, 1.0
    order, shares = np.argsort(values, kind="stable"), shares / shares.sum()
    middle = int(np.searchsorted(np.cumsum(shares[order]), 0.5))
    median = float(values[order][min(middle, len(values) - 1)])
    scale = float(np.sqrt(shares @ (values - shares @ values) ** 2))
    return median, scale if scale > 1e-12 * max(abs(median), 1e-100) else 1.0
