"""A common vocabulary of sites, from published word counts; no documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from anymix.densities.density import refuse_unless
from anymix.densities.site_summary import LONGEST_NAME, MOST_ROWS
from anymix.densities.text_density import SharedVocabulary
from anymix.densities.tokens import MIN_DOCUMENTS
from anymix.exceptions import InputError, visible

MOST_SITES = 500


@dataclass(frozen=True)
class WordSummary:
    """How often each word occurs at one site.

    Words that occur in fewer documents than `min_count` are left out.

    Attributes
    ----------
    name : str
        The site.
    n_rows : int
        Its number of documents.
    min_count : int
        The least number of documents of each word.
    counts : dict of str to int
        How often each word occurs.

    Examples
    --------
    >>> north = WordSummary.of(["a good plot", "good plot", "bad"], name="north", min_count=2)
    >>> north.counts
    {'good': 2, 'plot': 2}
    >>> print(north.reveals())
    Of 3 documents of 'north': the counts of 2 words that occur in 2 documents or more each.
    """

    name: str
    n_rows: int
    min_count: int
    counts: Mapping[str, int]

    @classmethod
    def of(
        cls, documents: Sequence[str], *, name: str, min_count: int = MIN_DOCUMENTS
    ) -> WordSummary:
        """Count the words of a site's documents."""
        counts = SharedVocabulary(words="any").word_counts(documents, min_count)
        if not counts:
            raise InputError(
                f"the texts of {name!r}",
                f"have no word of the letters a to z in {min_count} documents or more; give more "
                "documents",
            )
        return cls(str(name), len(documents), min_count, counts)

    def reveals(self) -> str:
        """Describe in one sentence what it reveals about the documents."""
        return (
            f"Of {self.n_rows} documents of {visible(self.name)!r}: the counts of "
            f"{len(self.counts)} words that occur in {self.min_count} documents or more each."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        facts = {"name": self.name, "n_rows": self.n_rows, "min_count": self.min_count}
        return facts | {"counts": dict(self.counts)}

    @classmethod
    def from_dict(cls, data: Any) -> WordSummary:
        """Return what `to_dict` wrote, or say in a ValueError what is wrong."""
        parts = {"name", "n_rows", "min_count", "counts"}
        refuse_unless(
            isinstance(data, Mapping) and set(data) == parts, f"must have the parts {sorted(parts)}"
        )
        name = data["name"]
        named = isinstance(name, str) and 0 < len(name) <= LONGEST_NAME
        refuse_unless(named, f"must have a name of 1 to {LONGEST_NAME} letters")
        for n in (data["n_rows"], data["min_count"]):
            refuse_unless(type(n) is int and 0 < n <= MOST_ROWS, "must have a whole number of rows")
        _words([data["counts"]])
        return cls(name, data["n_rows"], data["min_count"], data["counts"])


@dataclass(frozen=True)
class WordReference:
    """The common vocabulary of all sites.

    Attributes
    ----------
    summaries : tuple of WordSummary
        What each site has counted.

    Examples
    --------
    >>> sites = {"north": ["good plot"] * 5, "south": ["good pan"] * 5}
    >>> counted = [WordSummary.of(texts, name=name) for name, texts in sites.items()]
    >>> WordReference.from_summaries(counted).words
    ['good', 'pan', 'plot']
    """

    summaries: tuple[WordSummary, ...]

    @classmethod
    def from_summaries(cls, summaries: Sequence[WordSummary]) -> WordReference:
        """Make a reference from summaries; the vocabulary is the union of all sites' words."""
        if not 0 < len(summaries) <= MOST_SITES:
            raise ValueError(f"A reference needs the counts of 1 to {MOST_SITES} sites.")
        names = [summary.name for summary in summaries]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"the site {twice!r}", "has two summaries; use the newer one")
        return cls(tuple(summaries))

    @cached_property
    def words(self) -> list[str]:
        """The vocabulary, sorted."""
        return _words([summary.counts for summary in self.summaries])

    def reveals(self) -> str:
        """Describe what it reveals about the documents of each site."""
        return " ".join(summary.reveals() for summary in self.summaries)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {"summaries": [summary.to_dict() for summary in self.summaries]}

    @classmethod
    def from_dict(cls, data: Any) -> WordReference:
        """Return what `to_dict` wrote, or say in a ValueError what is wrong."""
        sound = isinstance(data, Mapping) and set(data) == {"summaries"}
        refuse_unless(sound and isinstance(data["summaries"], list), "must have the part summaries")
        return cls.from_summaries([WordSummary.from_dict(item) for item in data["summaries"]])


def _words(counts: Sequence[Mapping[str, int]]) -> list[str]:
    return SharedVocabulary(words="any", min_count=1).fit_counts(counts).vocabulary_
