"""Compare the columns of all sites, and find those that seem to differ in meaning."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from anymix.densities.site_summary import Summary
from anymix.exceptions import quoted

LOW, HIGH = 0.05, 0.95  # a few outliers, or zeros for missing values, do not hide another unit


class SiteColumn(NamedTuple):
    """One column at one site: its share of missing values, and its range or its categories."""

    column: str
    site: str
    missing: float
    low: float | None
    high: float | None
    categories: tuple[str, ...] | None


def site_columns(summaries: Sequence[Summary]) -> list[SiteColumn]:
    """Describe each column at each site; low and high are the 5 % and 95 % quantiles.

    Examples
    --------
    >>> import numpy as np
    >>> site = Summary.of(np.arange(101.0)[:, None], name="north")
    >>> site_columns([site])
    [SiteColumn(column='x0', site='north', missing=0.0, low=4.5, high=95.0, categories=None)]
    """
    columns = []
    for name in summaries[0].columns.names:
        for summary in summaries:
            j = summary.columns.names.index(name)
            column, marginal = summary.columns.columns[j], summary.marginals[j]
            low = high = None
            if column.categories is None and marginal.gaps < 1:
                low, high = marginal.quantile(LOW), marginal.quantile(HIGH)
            words = column.categories
            if words is not None:  # those that this site itself has
                words = tuple(words[int(v)] for v in marginal.values)
            columns.append(SiteColumn(name, summary.name, marginal.gaps, low, high, words))
    return columns


def likely_mistakes(summaries: Sequence[Summary]) -> list[str]:
    """Describe columns that sites seem to write in different ways, each in one sentence.

    Examples
    --------
    >>> import pandas as pd
    >>> sites = [pd.DataFrame({"sex": ["Male", "female"] * 9}), pd.DataFrame({"sex": ["male"] * 9})]
    >>> both = [Summary.of(X, name=name) for X, name in zip(sites, ("north", "south"))]
    >>> likely_mistakes(both)
    ["column 'sex': 'Male' at 'north' and 'male' at 'south' differ in capitals or blanks alone; \
write them alike at all sites"]
    """
    by_column: dict[str, list[SiteColumn]] = defaultdict(list)
    for column in site_columns(summaries):
        by_column[column.column].append(column)
    mistakes = []
    for name, sites in by_column.items():
        cause = _spellings(sites) or _no_common_category(sites) or _ranges(sites)
        if cause:
            mistakes.append(f"column {quoted(name)}: {cause}")
    return mistakes


def _spellings(sites: Sequence[SiteColumn]) -> str:
    met: dict[str, dict[str, str]] = defaultdict(dict)
    for site in sites:
        for word in site.categories or ():
            met["".join(word.split()).casefold()].setdefault(word, site.site)
    for spellings in met.values():
        if len(spellings) > 1:
            (a, at), (b, elsewhere), *_ = spellings.items()
            where = f" at {quoted(elsewhere)}" if at != elsewhere else ""
            return (
                f"{quoted(a)} at {quoted(at)} and {quoted(b)}{where} differ in capitals or blanks "
                "alone; write them alike at all sites"
            )
    return ""


def _no_common_category(sites: Sequence[SiteColumn]) -> str:
    for a, b in combinations([one for one in sites if one.categories], 2):
        if not set(a.categories or ()) & set(b.categories or ()):
            first, second = (one.categories[0] for one in (a, b) if one.categories)
            return (
                f"{quoted(a.site)} ({quoted(first)}, …) and {quoted(b.site)} ({quoted(second)}, …) "
                "have no category in common; check that both use one coding"
            )
    return ""


def _ranges(sites: Sequence[SiteColumn]) -> str:
    for a, b in combinations(sites, 2):
        if a.low is None or a.high is None or b.low is None or b.high is None:
            continue
        if a.high < b.low or b.high < a.low:
            return (
                f"{quoted(a.site)} ({a.low:.4g} to {a.high:.4g}) and {quoted(b.site)} ({b.low:.4g} "
                f"to {b.high:.4g}) do not overlap (5 to 95 % of the rows); check that both use one "
                "unit"
            )
    return ""
