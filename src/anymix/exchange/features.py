"""The columns that a manifest lists: numbers, documents, or a table with words and gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anymix.core import Record
from anymix.exceptions import InputError
from anymix.exchange.entries import check, exact, is_text
from anymix.exchange.kinds import NONE, takes_words
from anymix.sources import Source
from anymix.tables import MOST_CATEGORIES, Column, Columns

DTYPES = ("float32", "float64", "string")
# Entries that only the columns of a table with words or gaps have; then all of them do.
MARKS = {"categories", "gaps"}
MOST_FEATURES = 100_000
MOST_WORDS = 20_000  # of all columns: every reader holds them, and shows them


@dataclass(frozen=True)
class Feature(Record):
    """A column that predictor and density take."""

    name: str
    dtype: str


@dataclass(frozen=True)
class MixedFeature(Feature):
    """A column of a table that has words, booleans or gaps.

    With `categories` it holds words, coded 0, 1, ... in their order, and all other words are gaps;
    `gaps` says whether a cell may be empty.  A gap is NaN.
    """

    categories: tuple[str, ...] | None
    gaps: bool


def columns_of(features: Sequence[Feature]) -> Columns | None:
    """Return the coding of a table that has words or gaps; None if it is of complete numbers.

    Examples
    --------
    >>> columns_of([Feature("age", "float32")])
    >>> columns_of([MixedFeature("sex", "float32", ("f", "m"), True)]).columns
    (Column(name='sex', categories=('f', 'm')),)
    """
    mixed = [feature for feature in features if isinstance(feature, MixedFeature)]
    if not mixed:
        return None
    return Columns(tuple(Column(feature.name, feature.categories) for feature in mixed))


def gaps_of(features: Sequence[Feature]) -> list[bool]:
    """Tell of each column whether a cell of it may be empty.

    Examples
    --------
    >>> gaps_of([Feature("age", "float32")])
    [False]
    """
    return [isinstance(feature, MixedFeature) and feature.gaps for feature in features]


def same_codes(columns: Columns, density: Any) -> bool:
    """Tell whether a density that knows words has these; to others codes are numbers.

    Examples
    --------
    >>> same_codes(Columns((Column("sex", ("f", "m")),)), None)
    True
    """
    own = getattr(density, "columns_", None) or columns
    if len(own) != len(columns):
        return False
    return all(
        mine.categories is None or mine.categories == due.categories
        for mine, due in zip(own, columns, strict=True)
    )


def columns_taken(source: Source, density: Any, rows: Any) -> tuple[int, bool]:
    """Return how many columns the source takes, and whether the one column holds documents."""
    if density is not None:
        return (1, True) if density.takes != "numbers" else (density.n_features_in_, False)
    if rows is not None:
        return (1, True) if np.ndim(rows) == 1 else (int(np.shape(rows)[1]), False)
    n = getattr(source.predictor, "n_features_in_", None)
    if source.feature_names is not None:
        n = len(source.feature_names)
    if n is None:
        raise InputError(
            f"source {source.name!r}",
            "does not say how many columns it takes; give it feature_names, or pass rows",
        )
    return int(n), False


def parse_features(entries: Any, density: str) -> tuple[Feature, ...]:
    """Check the features of a manifest, whose density is of the kind given."""
    listed = isinstance(entries, list) and 1 <= len(entries) <= MOST_FEATURES
    check(listed, "lists no features")
    mixed = any(isinstance(entry, dict) and MARKS & entry.keys() for entry in entries)
    kind = MixedFeature if mixed else Feature
    found = tuple(_feature(entry, kind) for entry in entries)
    check(all(is_text(f.name) and f.dtype in DTYPES for f in found), "has an invalid feature")
    check(len({f.name for f in found}) == len(found), "has a feature twice")
    dtypes = {f.dtype for f in found}
    check(len(dtypes) == 1, "must have features of one dtype")
    texts = dtypes == {"string"}
    check(not (texts and mixed), "has categories or gaps in a column of documents")
    paired = density == NONE or texts == takes_words(density)
    check(paired, f"must have features of dtype string if and only if {density} takes words")
    check(not texts or len(found) == 1, "must have one column where that holds text")
    words = sum(len(f.categories or ()) for f in found if isinstance(f, MixedFeature))
    check(words <= MOST_WORDS, f"lists {words} categories, where {MOST_WORDS} are allowed")
    return found


def _feature(entry: Any, kind: type[Feature]) -> Feature:
    fields = exact(entry, kind)
    if kind is MixedFeature:
        check(isinstance(fields["gaps"], bool), "does not say of a feature whether it has gaps")
        fields["categories"] = _categories(fields["categories"])
    return kind(**fields)


def _categories(words: Any) -> tuple[str, ...] | None:
    if words is None:
        return None
    listed = isinstance(words, list) and len(words) <= MOST_CATEGORIES
    check(listed, f"must list at most {MOST_CATEGORIES} categories of a feature")
    check(all(map(is_text, words)), "has an invalid category")
    check(len(set(words)) == len(words), "has a category twice")
    return tuple(words)
