"""Summaries of a site's columns, from which a common reference is made; no rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from anymix._arrays import FloatArray, n_rows
from anymix.densities.centres import (
    Kernels,
    cluster,
    kernels_from_dict,
    kernels_to_dict,
)
from anymix.densities.density import RandomState, refuse_unless
from anymix.densities.marginals import Marginal, centre_and_scale
from anymix.exceptions import InputError, visible
from anymix.tables import MOST_CATEGORIES, Column, Columns

KINDS = ("marginals", "centres", "both")
PARTS = {"name", "n_rows", "min_count", "columns", "marginals", "centres"}
MOST_COLUMNS, LONGEST_NAME, MOST_ROWS = 5000, 200, 10**12
LEAST_VARIANCE = 1e-3  # in units of the columns' own
MOST_CLUSTERED = 4000  # rows of a domain: more of them move a centre but little
MOST_CENTRES = 100  # of a domain


@dataclass(frozen=True, repr=False)
class Summary:
    """The columns of one site: quantiles, shares of frequent values and of missing ones.

    It has no value or category of fewer than `min_count` rows, and every other number is the mean
    of at least `min_count` values (of all values, if there are fewer rows).

    Attributes
    ----------
    name : str
        The site.
    n_rows : int
        Its number of rows: the weight of the site among the others.
    min_count : int
        The least number of rows behind every number.
    columns : Columns
        Names and kinds of the columns, and the words of each.
    marginals : tuple of Marginal
        One for each column.
    centres : Kernels or None
        Means of groups of at least five distinct rows, in the columns of numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"age": range(20, 40), "sex": ["f", "m"] * 10})
    >>> north = Summary.of(table, name="north")
    >>> north.columns.names, north.marginals[1].shares
    (('age', 'sex'), (0.5, 0.5))
    >>> Summary.from_dict(north.to_dict()) == north
    True
    >>> print(north.reveals())
    Of 20 rows of 'north': ...
    """

    name: str
    n_rows: int
    min_count: int
    columns: Columns
    marginals: tuple[Marginal, ...]
    centres: Kernels | None = None

    def __repr__(self) -> str:
        return f"<Summary of {self.name!r}: {self.n_rows} rows, {len(self.columns)} columns>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Summary) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.name, self.n_rows, self.marginals))

    @classmethod
    def of(
        cls,
        X: Any,
        *,
        name: str,
        min_count: int = 5,
        columns: Columns | None = None,
        kind: str = "marginals",
        random_state: RandomState = None,
    ) -> Summary:
        """Describe the rows of a table; with centres unless `kind` is "marginals".

        Parameters
        ----------
        X : DataFrame or array of shape (n, d)
            The rows of the site.
        name : str
            The site.
        min_count : int, default=5
            Values and words of fewer rows are left out.
        columns : Columns, optional
            Columns and words that the sites have agreed on; by default those of X.  Words that
            fewer than `min_count` rows of X have are left out.
        kind : {"marginals", "centres", "both"}, default="marginals"
            Whether centres of rows are included as well.
        random_state : int, RandomState instance or None, default=None
            Draws the first centres.
        """
        check_kind(kind)
        if min_count < 1:
            raise ValueError(f"min_count must be at least 1; got {min_count}.")
        if not n_rows(X):
            raise InputError(f"the table of {name!r}", "has no rows")
        columns = Columns.of(X, least=min(min_count, n_rows(X))) if columns is None else columns
        encoded = columns.encode(X)
        infinite = np.isinf(encoded).any(axis=0)
        if infinite.any():
            raise InputError(
                f"column {columns.names[int(infinite.argmax())]!r} of {name!r}",
                "holds an infinite number; leave it empty, or leave the row out",
            )
        marginals = tuple(
            Marginal.of(values, min_count)
            if column.categories is None
            else Marginal.of_codes(values, len(column.categories), min_count)
            for column, values in zip(columns, encoded.T, strict=True)
        )
        common = tuple(
            column
            if column.categories is None
            else Column(column.name, tuple(column.categories[int(i)] for i in marginal.values))
            for column, marginal in zip(columns, marginals, strict=True)
        )
        summary = cls(str(name), len(encoded), min_count, columns, marginals)
        summary = summary.recoded(Columns(common))
        if kind == "marginals" or summary.columns.categorical.all():  # words have no means
            return summary
        return summary.with_centres([encoded], check_random_state(random_state))

    def with_centres(self, groups: Sequence[FloatArray], rng: np.random.RandomState) -> Summary:
        """Return the summary with centres of encoded rows, computed separately for each group."""
        medians, scales = standard([self], np.ones(1))
        numbers = ~self.columns.categorical
        total, parts = sum(len(rows) for rows in groups), []
        median, scale = medians[numbers], scales[numbers]
        for rows in groups:
            some = rows
            if len(rows) > MOST_CLUSTERED:
                some = rows[rng.choice(len(rows), MOST_CLUSTERED, replace=False)]
            x = some[:, numbers]
            z = np.where(np.isnan(x), 0.0, (x - median) / scale)  # missing values are medians
            n_centres = min(MOST_CENTRES, max(1, len(np.unique(z, axis=0)) // 10))
            centres, weights, variances = cluster(z, np.ones(len(z)), n_centres, rng)
            share, variances = len(rows) / total, np.maximum(variances, LEAST_VARIANCE)
            parts.append(Kernels(centres * scale + median, share * weights, variances))
        return replace(self, centres=Kernels(*map(np.concatenate, zip(*parts, strict=True))))

    def reveals(self) -> str:
        """Describe in one sentence what it reveals about the rows."""
        return all_told([self])

    def in_order(self, names: Sequence[str]) -> Summary:
        """Return the summary with its columns in this order."""
        if self.columns.names == tuple(names):
            return self
        places = [self.columns.names.index(name) for name in names]
        columns = Columns(tuple(self.columns.columns[j] for j in places))
        kernels, numbers = self.centres, np.flatnonzero(~self.columns.categorical).tolist()
        if kernels is not None:
            moved = [numbers.index(j) for j in places if j in numbers]
            kernels = kernels._replace(centres=kernels.centres[:, moved])
        marginals = tuple(self.marginals[j] for j in places)
        return replace(self, columns=columns, marginals=marginals, centres=kernels)

    def recoded(self, columns: Columns) -> Summary:
        """Return the summary with the columns in this order, and with their categories.

        Categories that they lack are missing values.
        """
        if self.columns.names != columns.names:
            return self.in_order(columns.names).recoded(columns)
        marginals = []
        for old, new, marginal in zip(self.columns, columns, self.marginals, strict=True):
            if new.categories is not None and old.categories != new.categories:
                code = {word: i for i, word in enumerate(new.categories)}
                marginal = marginal.recoded([code.get(w, -1) for w in old.categories or ()])
            marginals.append(marginal)
        kernels, words = self.centres, self.columns.categorical
        if kernels is not None and not np.array_equal(columns.categorical, words):
            # In the columns of numbers: what is empty here may be one elsewhere.
            means = np.zeros((len(kernels.weights), len(columns)))
            means[:, ~words] = kernels.centres
            kernels = kernels._replace(centres=means[:, ~columns.categorical])
        return replace(self, columns=columns, marginals=tuple(marginals), centres=kernels)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {
            "name": self.name,
            "n_rows": self.n_rows,
            "min_count": self.min_count,
            "columns": self.columns.to_dict(),
            "marginals": [marginal.to_dict() for marginal in self.marginals],
            "centres": None if self.centres is None else kernels_to_dict(self.centres),
        }

    @classmethod
    def from_dict(cls, data: Any) -> Summary:
        """Read the output of `to_dict`; a ValueError says what is invalid."""
        sound = isinstance(data, Mapping) and set(data) == PARTS
        refuse_unless(sound, f"must have the parts {sorted(PARTS)}")
        name = data["name"]
        named = isinstance(name, str) and 0 < len(name) <= LONGEST_NAME
        refuse_unless(named, f"must have a name of 1 to {LONGEST_NAME} letters")
        for n in (data["n_rows"], data["min_count"]):
            whole = isinstance(n, int) and not isinstance(n, bool) and 0 < n <= MOST_ROWS
            refuse_unless(whole, "must have a whole number of rows, and of rows behind a number")
        columns = _columns(data["columns"])
        listed = data["marginals"]
        refuse_unless(
            isinstance(listed, list) and len(listed) == len(columns),
            "does not have one marginal for each column",
        )
        marginals = tuple(
            Marginal.from_dict(item, None if c.categories is None else len(c.categories))
            for item, c in zip(listed, columns, strict=True)
        )
        numeric = int((~columns.categorical).sum())
        centres = data["centres"]
        kernels = None if centres is None else kernels_from_dict(centres, numeric)
        return cls(name, data["n_rows"], data["min_count"], columns, marginals, kernels)


def check_kind(kind: Any) -> None:
    """Check the kind of a reference."""
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r} is not known; use {', '.join(map(repr, KINDS))}.")


def _columns(data: Any) -> Columns:
    sound = isinstance(data, Mapping) and set(data) == {"names", "categories"}
    sound = sound and all(isinstance(data[part], list) for part in data)
    refuse_unless(sound, "must have columns with names and categories")
    names, listed = data["names"], data["categories"]
    refuse_unless(0 < len(names) <= MOST_COLUMNS, f"must have 1 to {MOST_COLUMNS} columns")
    for words in listed:
        few = words is None or (isinstance(words, list) and len(words) <= MOST_CATEGORIES)
        refuse_unless(few, f"has a column of more than {MOST_CATEGORIES} words")
    for word in (*names, *(word for words in listed for word in words or ())):
        short = isinstance(word, str) and len(word) <= LONGEST_NAME
        refuse_unless(short, f"has a name that is not text of at most {LONGEST_NAME} letters")
    return Columns.from_dict(data)


def standard(summaries: Sequence[Summary], weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Median and scale of each column of weighted sites, (d,) twice; 0 and 1 for categories."""
    parts = [
        (0.0, 1.0) if word else centre_and_scale([s.marginals[j] for s in summaries], weights)
        for j, word in enumerate(summaries[0].columns.categorical)
    ]
    medians, scales = np.array(parts).reshape(-1, 2).T
    return medians, scales


def all_told(summaries: Sequence[Summary]) -> str:
    """Describe what summaries reveal about the rows of each site, without repetition."""
    contents: dict[str, list[str]] = {}
    for summary in summaries:
        words = sum(len(c.categories or ()) for c in summary.columns)
        few = min(summary.min_count, summary.n_rows)
        centres = (
            "" if summary.centres is None else f" {len(summary.centres.weights)} means of rows;"
        )
        n = len(summary.columns)
        what = (
            f"names of {n} column{'s' * (n != 1)}, shares of missing values, of {words} words and "
            f"of the numbers that {few} rows or more have, quantiles that are means of {few} "
            f"values;{centres} no value of fewer rows."
        )
        contents.setdefault(what, []).append(f"{summary.n_rows} rows of {visible(summary.name)!r}")
    return " ".join(f"Of {', '.join(whose)}: {what}" for what, whose in contents.items())


def agreed_columns(summaries: Sequence[Summary]) -> Columns:
    """Return the common columns with the categories of all sites; empty columns fit any type."""
    first, found = summaries[0], []
    for other in summaries[1:]:
        ours, theirs = first.columns.names, other.columns.names
        missing = [name for name in ours if name not in theirs]
        extra = [name for name in theirs if name not in ours]
        if missing or extra:
            has, lacks = (first, other) if missing else (other, first)
            raise InputError(
                f"the summary of {lacks.name!r}",
                f"has no column {(missing or extra)[0]!r}, which {has.name!r} has; all must agree",
            )
    summaries = [summary.in_order(first.columns.names) for summary in summaries]
    for j, name in enumerate(first.columns.names):
        known = [s for s in summaries if s.marginals[j].gaps < 1] or summaries
        kinds = [s.columns.columns[j].kind for s in known]
        if len(set(kinds)) > 1:
            one, two = kinds.index("number"), kinds.index("category")
            raise InputError(
                f"column {name!r}",
                f"holds numbers in {known[one].name!r} and words in {known[two].name!r}; "
                "give it the same type in all",
            )
        words = None if "category" not in kinds else _words(known, j)
        found.append(Column(name, words))
    return Columns(tuple(found))


def _words(known: Sequence[Summary], j: int) -> tuple[str, ...]:
    """Return the most frequent words of a column in all sites, sorted."""
    counts: dict[str, float] = {}
    for s in known:
        words, marginal = s.columns.columns[j].categories or (), s.marginals[j]
        counts = dict.fromkeys(words, 0.0) | counts
        for code, share in zip(marginal.values, marginal.shares, strict=True):
            counts[words[int(code)]] += share * s.n_rows
    # By name where equal, so that the order of the sites does not matter.
    often = sorted(counts, key=lambda word: (-counts[word], word))[:MOST_CATEGORIES]
    return tuple(sorted(often))
