"""Data in: column types, categories and missing values."""

from anymix.tables.columns import (
    MISSING_WORDS,
    MOST_CATEGORIES,
    Column,
    Columns,
    is_gap,
    numbers_of,
    words_of,
)

__all__ = [
    "MISSING_WORDS",
    "MOST_CATEGORIES",
    "Column",
    "Columns",
    "is_gap",
    "numbers_of",
    "words_of",
]
