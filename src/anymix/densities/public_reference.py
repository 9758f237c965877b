"""A public distribution U, relative to which all sources describe their densities.

U cancels in the ratios that weight the sources.  It is made from summaries and contains no row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from anymix._arrays import FloatArray, n_rows
from anymix.densities.centres import PooledKernels
from anymix.densities.density import RandomState, check_cost, domain_codes, refuse_unless
from anymix.densities.marginals import (
    LEAST_SHARE,
    atoms_of,
    pooled_log_density,
)
from anymix.densities.site_summary import (
    KINDS,
    Summary,
    agreed_columns,
    all_told,
    check_kind,
    standard,
)
from anymix.exceptions import InputError
from anymix.tables import Columns

MOST_SITES = 500


@dataclass(frozen=True, repr=False, eq=False)
class Reference:
    """A distribution U of rows, made from the summaries of all sites.

    "marginals" draws each column independently, from the mixture of the sites' marginals:

        U(x) = Π_c Σ_s w_s M_sc(x_c),    w_s the share of the rows that site s has.

    "centres" draws rows near centres of rows, with missing values and categories of the marginals:

        U(x) = Π_{c words} Σ_s w_s M_sc(x_c) · Σ_j w_j Π_{c numbers} N(x_c; m_jc, s_jc^2).

    "both" is half of each.  Marginals suit few, mixed columns; centres suit many columns that
    depend on each other, such as pixels or sensors.

    Attributes
    ----------
    kind : {"marginals", "centres", "both"}
        How rows are drawn.
    summaries : tuple of Summary
        What each site says, in the same columns and with the same codes.

    Examples
    --------
    >>> import pandas as pd
    >>> north = pd.DataFrame({"age": range(20, 40), "sex": ["f", "m"] * 10})
    >>> south = pd.DataFrame({"age": range(50, 70), "sex": ["m", "x"] * 10})
    >>> sites = [Summary.of(north, name="north"), Summary.of(south, name="south")]
    >>> U = Reference.from_summaries(sites)
    >>> U
    Reference(kind='marginals', 2 columns of 2 summaries)
    >>> U.columns.columns[1].categories
    ('f', 'm', 'x')
    >>> U.sample(3, random_state=0).shape
    (3, 2)
    >>> Reference.from_dict(U.to_dict()).log_density([[25.0, 1.0]]).round(2)
    array([-4.38])
    """

    kind: str
    summaries: tuple[Summary, ...]

    def __repr__(self) -> str:
        d, n = len(self.columns), len(self.summaries)
        return f"Reference(kind={self.kind!r}, {d} columns of {n} summar{'ies' if n > 1 else 'y'})"

    def __deepcopy__(self, memo: Any) -> Reference:
        # It never changes, and every copy of a density has one.
        return self

    @classmethod
    def of(
        cls,
        X: Any,
        kind: str = "marginals",
        sample_domain: Any = None,
        min_count: int = 5,
        random_state: RandomState = None,
        columns: Columns | None = None,
    ) -> Reference:
        """Make a reference from rows in one place; each domain counts by its number of rows.

        Parameters
        ----------
        X : DataFrame or array of shape (n, d)
            Rows of all sources.
        kind : {"marginals", "centres", "both"}, default="marginals"
            How rows are drawn.
        sample_domain : array of shape (n,), optional
            The domain of each row: centres are then found for each domain on its own.
        min_count : int, default=5
            Values and words of fewer rows are left out.
        random_state : int, RandomState instance or None, default=None
            Draws the first centres.
        columns : Columns, optional
            What the columns are; by default what X shows.
        """
        check_kind(kind)
        summary = Summary.of(X, name="all rows", min_count=min_count, columns=columns)
        # Centres are of numbers: words alone have none.
        kind = "marginals" if summary.columns.categorical.all() else kind
        if kind != "marginals":
            encoded = summary.columns.encode(X)
            codes = domain_codes(sample_domain, n_rows(X))
            groups = [encoded[codes == k] for k in range(codes.max() + 1)]
            summary = summary.with_centres(groups, check_random_state(random_state))
        return cls(kind, (summary,))

    @classmethod
    def from_summaries(cls, summaries: Sequence[Summary], kind: str | None = None) -> Reference:
        """Make a reference from summaries; by default of both kinds if all have centres.

        The sites must have the same column names and types; the order is that of the first site.
        Categories are those of any site.
        """
        if not summaries:
            raise ValueError("A reference needs the summary of at least one site; got none.")
        names = [summary.name for summary in summaries]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"the site {twice!r}", "has two summaries; use the newer one")
        without = next((s.name for s in summaries if s.centres is None), None)
        kind = kind or ("marginals" if without is not None else "both")
        check_kind(kind)
        if kind != "marginals" and without is not None:
            raise InputError(
                f"the summary of {without!r}", f"has no centres; make it with kind={kind!r}"
            )
        columns = agreed_columns(summaries)
        return cls(kind, tuple(summary.recoded(columns) for summary in summaries))

    @property
    def columns(self) -> Columns:
        """Names, types and categories of the columns; `columns.encode` encodes a table."""
        return self.summaries[0].columns

    @cached_property
    def weights(self) -> FloatArray:
        """Share of all rows that each site has, (s,)."""
        rows = np.array([summary.n_rows for summary in self.summaries], dtype=np.float64)
        return np.asarray(rows / rows.sum())

    def sample(self, n: int = 1, random_state: RandomState = None) -> FloatArray:
        """Draw encoded rows, NaN where missing, in random order, (n, d)."""
        rng, words = check_random_state(random_state), self.columns.categorical
        n_columns = {"marginals": n, "centres": 0, "both": n // 2}[self.kind]
        drawn = self._sample_columns(n_columns, range(len(words)), rng)
        if self.kind == "marginals":
            return drawn
        near = self._sample_columns(n - n_columns, np.flatnonzero(words).tolist(), rng)
        if not words.all():
            rows = self._kernels.sample(len(near), rng)
            gaps = self.weights @ [[m.gaps for m in s.marginals] for s in self.summaries]
            rows[rng.random_sample(rows.shape) < gaps[~words]] = np.nan
            near[:, ~words] = rows
        return near if self.kind == "centres" else np.concatenate([drawn, near])[rng.permutation(n)]

    def _sample_columns(
        self, n: int, wanted: Sequence[int], rng: np.random.RandomState
    ) -> FloatArray:
        drawn = np.empty((n, len(self.columns)))
        for j in wanted:
            chosen = rng.choice(len(self.summaries), n, p=self.weights)
            for s, summary in enumerate(self.summaries):
                mine = chosen == s
                drawn[mine, j] = summary.marginals[j].sample(int(mine.sum()), rng)
        return drawn

    def log_density(self, encoded: Any) -> FloatArray:
        """log U(x) of encoded rows, (n,): a density in the columns that vary without steps.

        A number, category or missing value that no site has seen counts with a share of 1e-9.
        """
        rows, words = self.columns.encode(encoded), self.columns.categorical
        if self.kind == "marginals":
            return self._log_columns(rows, range(len(words)))
        near = self._log_columns(rows, np.flatnonzero(words).tolist())
        if not words.all():
            numbers = rows[:, ~words]
            gaps = (self.weights @ [[m.gaps for m in s.marginals] for s in self.summaries])[~words]
            with np.errstate(divide="ignore"):
                log_shares = np.where(np.isnan(numbers), np.log(gaps), np.log1p(-gaps))
            near += np.maximum(log_shares, np.log(LEAST_SHARE)).sum(axis=1)
            near += self._kernels.log_density(numbers)
        if self.kind == "centres":
            return near
        columns = self._log_columns(rows, range(len(words)))
        return np.asarray(np.logaddexp(columns, near) - np.log(2))

    def _log_columns(self, rows: FloatArray, wanted: Sequence[int]) -> FloatArray:
        logs = np.zeros(len(rows))
        for j in wanted:
            parts = [s.marginals[j] for s in self.summaries]
            logs += pooled_log_density(parts, self.weights, rows[:, j])
        return logs

    @cached_property
    def _kernels(self) -> PooledKernels:
        """Kernels of all sites; a column that is empty at a site is as wide as that of all."""
        numbers = np.flatnonzero(~self.columns.categorical).tolist()
        grids: list[FloatArray | None] = []
        for j in numbers:
            parts = [summary.marginals[j] for summary in self.summaries]
            # The numbers of a column that has few alone.
            values = atoms_of(parts, self.weights)[0]
            grids.append(None if any(p.body for p in parts) or not values.size else values)
        medians, common = standard(self.summaries, self.weights)
        means, deviations, weights = [], [], []
        for share, summary in zip(self.weights, self.summaries, strict=True):
            assert summary.centres is not None
            centres, own_weights, variances = summary.centres
            empty = np.array([summary.marginals[j].gaps == 1 for j in numbers])
            own = standard([summary], np.ones(1))[1]
            scales = np.where(empty, common[numbers], own[numbers])
            means.append(np.where(empty, medians[numbers], centres))
            deviations.append(np.sqrt(variances)[:, None] * scales)
            weights.append(share * own_weights)
        joined, deviation, weight = map(np.concatenate, (means, deviations, weights))
        return PooledKernels(joined, deviation, weight / weight.sum(), grids)

    def reveals(self) -> str:
        """Describe what it reveals about the rows of each site."""
        return all_told(self.summaries)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {"kind": self.kind, "summaries": [s.to_dict() for s in self.summaries]}

    @classmethod
    def from_dict(cls, data: Any) -> Reference:
        """Read the output of `to_dict`; a ValueError says what is invalid."""
        sound = isinstance(data, Mapping) and set(data) == {"kind", "summaries"}
        refuse_unless(sound, "must have the parts ['kind', 'summaries']")
        refuse_unless(data["kind"] in KINDS, f"must be of one of the kinds {KINDS}")
        listed = data["summaries"]
        few = isinstance(listed, list) and 0 < len(listed) <= MOST_SITES
        refuse_unless(few, f"must have 1 to {MOST_SITES} summaries")
        summaries = [Summary.from_dict(item) for item in listed]
        n = sum(len(s.centres.weights) for s in summaries if s.centres is not None)
        check_cost(n * (2 * len(summaries[0].columns) + 1000), f"{n} centres")
        reference = cls.from_summaries(summaries, data["kind"])
        aligned = all(s.columns == reference.columns for s in summaries)
        refuse_unless(aligned, "has summaries that do not list the same words")
        return cls(data["kind"], tuple(summaries))
