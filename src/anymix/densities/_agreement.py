"""Whether sites speak of the same columns: their names, kinds and words."""

from __future__ import annotations

from collections.abc import Sequence

from anymix.densities.summary import Summary
from anymix.exceptions import InputError
from anymix.tables import MOST_CATEGORIES, Column, Columns


def agreed_columns(summaries: Sequence[Summary]) -> Columns:
    """Return the columns of all sites with the words of any, or name the first that disagrees.

    A column that is empty at a site fits every kind.
    """
    first, found = summaries[0], []
    for other in summaries[1:]:
        _check_names(first, other)
    for j, name in enumerate(first.columns.names):
        told = [s for s in summaries if s.marginals[j].gaps < 1] or summaries
        kinds = [s.columns.columns[j].kind for s in told]
        if len(set(kinds)) > 1:
            one, two = kinds.index("number"), kinds.index("category")
            raise InputError(
                f"column {name!r}",
                f"holds numbers in {told[one].name!r} and words in {told[two].name!r}; "
                "give it one kind in all",
            )
        words = None if "category" not in kinds else _words(told, j)
        found.append(Column(name, words))
    return Columns(tuple(found))


def _check_names(first: Summary, other: Summary) -> None:
    ours, theirs = first.columns.names, other.columns.names
    missing = [name for name in ours if name not in theirs]
    extra = [name for name in theirs if name not in ours]
    if missing or extra:
        has, lacks = (first, other) if missing else (other, first)
        raise InputError(
            f"the summary of {lacks.name!r}",
            f"has no column {(missing or extra)[0]!r}, which {has.name!r} has; all must agree",
        )
    if ours != theirs:
        wrong = next(b for a, b in zip(ours, theirs, strict=True) if a != b)
        raise InputError(
            f"the summary of {other.name!r}",
            f"has the column {wrong!r} in another place than {first.name!r}; use one order",
        )


def _words(told: Sequence[Summary], j: int) -> tuple[str, ...]:
    """Return the most frequent words of a column in all sites, sorted."""
    counts: dict[str, float] = {}
    for s in told:
        words, marginal = s.columns.columns[j].categories or (), s.marginals[j]
        counts = dict.fromkeys(words, 0.0) | counts
        for code, share in zip(marginal.values, marginal.shares, strict=True):
            counts[words[int(code)]] += share * s.n_rows
    # By name where equal, so that the order of the sites does not matter.
    often = sorted(counts, key=lambda word: (-counts[word], word))[:MOST_CATEGORIES]
    return tuple(sorted(often))
