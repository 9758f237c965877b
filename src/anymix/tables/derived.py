"""Columns of numbers derived from dates and texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray
from anymix.exceptions import InputError
from anymix.tables.cells import is_missing

# Dates and times, and spans of time, by the letter of their numpy type.
DATES, SPANS = "M", "m"
ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?)?")
DATE_PARTS = ("days", "year", "month", "weekday", "hour")
WORD = re.compile(r"[^\W\d_]{2,}")
# Of the words of a text column the most frequent count, unless more than half of the texts have
# them: these tell little.
MOST_WORDS, OFTEN = 100, 0.5
LENGTH, A_WORD = "length", "word "
PART = re.compile(rf"(.+) \[({'|'.join(DATE_PARTS)}|{LENGTH}|{A_WORD}[^]]+)\]", re.DOTALL)


def split_name(name: str) -> tuple[str, str]:
    """Split the name of a part of a date or text into the column's name and what it is of it.

    >>> split_name("note [word good]"), split_name("age")
    (('note', 'word good'), ('', ''))
    """
    found = PART.fullmatch(name)
    return ("", "") if found is None else (found[1], found[2])


def parts_of(values: Any, parts: Sequence[str], name: str) -> FloatArray:
    """Return parts of a column of dates or of texts, (n, d)."""
    if parts[0] not in DATE_PARTS:
        return text_parts(np.asarray(values, dtype=object), parts)
    dates = dates_of(values)
    if dates is None:
        known = [cell for cell in np.asarray(values, dtype=object) if not is_missing(cell)]
        if known:
            cause = f"holds {known[0]!r:.60}, where dates were learned from"
            raise InputError(f"column {name!r}", cause)
        return np.full((len(values), len(parts)), np.nan)
    return np.stack([date_part(dates, part) for part in parts], axis=1)


def dates_of(values: Any) -> NDArray[np.datetime64] | None:
    """Return a column of dates as numpy has them, NaT where missing; None if it holds others.

    Texts count as dates if all are written as 2024-01-31 or 2024-01-31 10:00.

    Examples
    --------
    >>> dates_of(np.array(["2024-01-31", None], dtype=object))
    array(['2024-01-31T00:00:00',                 'NaT'], dtype='datetime64[s]')
    >>> dates_of(np.array(["north"]))
    """
    dtype = values.dtype
    if "period" in str(dtype):
        values = values.dt.to_timestamp()
    elif getattr(dtype, "tz", None) is not None:
        values = values.dt.tz_localize(None)
    if getattr(values.dtype, "kind", "O") == DATES:
        return np.asarray(values).astype("datetime64[s]")
    if getattr(values.dtype, "kind", "O") not in "OUT" or hasattr(dtype, "categories"):
        return None
    cells = np.asarray(values, dtype=object)
    known = np.flatnonzero([not is_missing(cell) for cell in cells])
    if not known.size or not all(map(_is_date, cells[known])):
        return None
    found = np.full(len(cells), np.datetime64("NaT"), dtype="datetime64[s]")
    try:
        found[known] = [np.datetime64(_without_zone(cell), "s") for cell in cells[known]]
    except ValueError:  # the 31st of June is a word
        return None
    return found


def _is_date(cell: Any) -> bool:
    if isinstance(cell, str):
        return ISO_DATE.fullmatch(cell.strip()) is not None
    return hasattr(cell, "isoformat") and hasattr(cell, "year")


def _without_zone(cell: Any) -> Any:
    if isinstance(cell, str):
        return cell.strip()
    return cell.replace(tzinfo=None) if getattr(cell, "tzinfo", None) is not None else cell


def parts_of_dates(dates: NDArray[np.datetime64]) -> tuple[str, ...]:
    """Name the columns made of dates; the hour where some have one.

    >>> parts_of_dates(np.array(["2024-01-31"], dtype="datetime64[s]"))
    ('days', 'year', 'month', 'weekday')
    """
    known = dates[~np.isnat(dates)]
    timed = bool((known != known.astype("datetime64[D]")).any())
    return DATE_PARTS if timed else DATE_PARTS[:-1]


def date_part(dates: NDArray[np.datetime64], part: str) -> FloatArray:
    """Return a part of dates: days since 1970, the year, the month, the weekday (Monday 0), hour.

    >>> dates = np.array(["1970-02-01T12:00"], dtype="datetime64[s]")
    >>> [float(date_part(dates, part)[0]) for part in DATE_PARTS]
    [31.5, 1970.0, 2.0, 6.0, 12.0]
    """
    missing = np.isnat(dates)
    safe = np.where(missing, np.datetime64(0, "s"), dates)
    day = safe.astype("datetime64[D]")
    seconds, days = safe.astype("int64").astype(float), day.astype("int64")
    found = {
        "days": lambda: seconds / 86_400.0,
        "year": lambda: day.astype("datetime64[Y]").astype("int64") + 1970.0,
        "month": lambda: day.astype("datetime64[M]").astype("int64") % 12 + 1.0,
        "weekday": lambda: (days + 3) % 7.0,
        "hour": lambda: np.floor(seconds / 3600.0) % 24.0,
    }[part]()
    return np.where(missing, np.nan, found)


def parts_of_texts(texts: Any, least: int) -> tuple[str, ...]:
    """Name the columns made of texts: their length, and their most frequent words.

    >>> parts_of_texts(["good book", "bad book", "a good film"], least=1)
    ('length', 'word bad', 'word film')
    """
    known = [_words(text) for text in texts if not is_missing(text)]
    counts = Counter(word for words in known for word in words)
    told = [word for word, n in counts.items() if least <= n <= OFTEN * len(known)]
    often = sorted(told, key=lambda word: (-counts[word], word))[:MOST_WORDS]
    return (LENGTH, *(A_WORD + word for word in sorted(often)))


def text_parts(texts: Any, parts: Sequence[str]) -> FloatArray:
    """Return parts of texts (n, d): the number of words, and whether a word is in it; else NaN.

    >>> text_parts(["a good book", None], ("length", "word good"))
    array([[ 3.,  1.],
           [nan, nan]])
    """
    found = np.zeros((len(texts), len(parts)))
    place = {part.removeprefix(A_WORD): j for j, part in enumerate(parts) if part != LENGTH}
    for i, text in enumerate(texts):
        if is_missing(text):
            found[i] = np.nan
            continue
        found[i, [place[word] for word in _words(str(text)) if word in place]] = 1.0
        if LENGTH in parts:
            found[i, list(parts).index(LENGTH)] = len(str(text).split())
    return found


def _words(text: str) -> set[str]:
    return set(WORD.findall(text.lower()))
