"""What the columns of a table to train on are: numbers or categories, found from their cells."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from anymix.exceptions import InputError, quoted
from anymix.tables.cells import BOOLEANS, NO_ROWS, fail, is_text, number_in, words_in
from anymix.tables.columns import MOST_CATEGORIES, Column
from anymix.tables.table_columns import TableColumns, as_dictionary
from anymix.tables.table_files import kind_of
from anymix.tables.table_reader import CHUNK_ROWS, READERS

FEWEST_ROWS = 5  # that have a word, so that it tells of none of them
# A few words may well differ by chance.
FEW = 10
DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}( .*)?|"
    r"\d{1,2}:\d{2}(:\d{2}.*)?"
)
# As other languages write numbers, and as thousands are set apart.
COMMAS = re.compile(r"[+-]?\d+(,\d+)+")


class ColumnSurvey:
    """What was met in one column: numbers, and words that are none, with their counts."""

    def __init__(self, path: Path, name: str):
        self.path, self.name = path, name
        self.numbers = self.booleans = 0
        self.words: Counter[str] = Counter()
        self.column = Column(name)
        self._some: set[float | str] = set()
        self._rare = ""
        self._fault: tuple[int, str] | None = None

    @property
    def is_id(self) -> bool:
        """Whether the column has another word in every row."""
        return not self.numbers and len(self.words) == self.words.total() >= FEW

    def look(self, cells: Any, row: int) -> None:
        """Look at some cells, the first of which stands in row `row`."""
        for value, count in _counts(cells).items():
            try:
                meaning: float | str = number_in(value)
            except ValueError as error:
                at = row + cells.tolist().index(value)
                if not isinstance(value, str) or "not a number" not in str(error):
                    fail(self.path, at, self.name, str(error))
                self._fault = self._fault or (at, str(error))
                meaning = value
            if isinstance(meaning, str):
                self.words[meaning] += count
            elif not np.isnan(meaning):
                self.numbers += count
                boolean = isinstance(value, str) and value.strip().lower() in BOOLEANS
                self.booleans += count * boolean
            # Two different values are enough to know that it is no constant.
            if len(self._some) < 2 and meaning == meaning:
                self._some.add(meaning)

    def holds_words(self, least: int) -> bool:
        """Whether the column holds words; a slip of the pen among numbers is refused."""
        where, total = f"{self.path}: column {quoted(self.name)}", self.words.total()
        if not total:
            if 0 < self.booleans < self.numbers:
                raise InputError(
                    where, "holds true and false among numbers; write all of it in one way"
                )
            return False
        dates = [word for word in self.words if DATE.fullmatch(word.strip())]
        if 2 * sum(self.words[word] for word in dates) > total + self.numbers:
            raise InputError(
                where,
                f"holds dates or times, such as {quoted(dates[0])}; turn them into numbers, such "
                "as days since a day, or leave the column out by --drop",
            )
        commas = [word for word in self.words if COMMAS.fullmatch(word.strip())]
        if sum(self.words[word] for word in commas) == total:
            raise InputError(
                where,
                f"holds numbers with commas, such as {quoted(commas[0])}; write them with a point, "
                "and nothing between thousands",
            )
        if self.numbers >= total and max(self.words.values()) < least and self._fault:
            fail(self.path, self._fault[0], self.name, self._fault[1])
        return True

    def list_categories(self, words: Counter[str], least: int) -> None:
        """Make categories of the words that `least` rows have, at most the most frequent ones."""
        # By name where equal, so that the order of the rows does not matter.
        often = sorted((-n, word) for word, n in words.items() if n >= least and is_text(word))
        listed = tuple(sorted(word for _, word in often[:MOST_CATEGORIES]))
        self.column = Column(self.name, listed)
        if rare := len(words) - len(listed):
            several = rare > 1
            self._rare = (
                f"column {quoted(self.name)} has {rare} categor{'ies' if several else 'y'} of "
                f"fewer than {least} rows, which {'are' if several else 'is'} not listed"
            )

    def notes(self, joined: bool = False) -> list[str]:
        """Say if the column says nothing, or has categories that are not listed.

        Where the columns of several sites are `joined`, another site may list them.
        """
        unless = ", unless another site lists it" if joined else ""
        notes = [f"{self._rare}: read as missing{unless}."] if self._rare else []
        if len(self._some) < 2:
            what = "the same in all rows that have it" if self._some else "empty in all rows"
            notes.insert(0, f"column {quoted(self.name)} is {what}.")
        return notes


def survey_columns(
    path: str | Path, names: Sequence[str], least: int = FEWEST_ROWS
) -> list[ColumnSurvey]:
    """Find out what the columns are; dates, and words among numbers, are refused in a sentence.

    Words that fewer than `least` rows have are not listed: they would tell of these rows.
    """
    path = Path(path)
    surveys = [ColumnSurvey(path, name) for name in names]
    for row, cells in _raw(path, names):
        for survey in surveys:
            survey.look(cells[survey.name], row)
    of_words = {survey.name: survey for survey in surveys if survey.holds_words(least)}
    counts: dict[str, Counter[str]] = {name: Counter() for name in of_words}
    for _, cells in _raw(path, list(of_words)) if of_words else ():
        for name, words in counts.items():
            distinct = _counts(cells[name])
            for word, count in zip(words_in(distinct), distinct.values(), strict=True):
                words.update({} if word is None else {word: count})
    for name, survey in of_words.items():
        survey.list_categories(counts[name], least)
    return surveys


def _raw(path: Path, names: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the columns as they are written, and the row of their first cells."""
    d, row = len(names), 1
    # What a column of words is asked for where its categories are not known yet: its raw cells.
    wanted = TableColumns(tuple(names), categories=((),) * d, gaps=(True,) * d)
    for cells, _ in READERS[kind_of(path)](path, wanted, CHUNK_ROWS):
        yield row, cells
        row += len(cells[names[0]])
    if row == 1:
        raise InputError(path, NO_ROWS)


def _counts(cells: Any) -> Counter[Any]:
    """Count equal cells; a text that stands in the file once is unpacked once."""
    if isinstance(cells, np.ndarray) or "string" not in str(cells.type):
        return Counter(cells.tolist())
    coded = as_dictionary(cells)
    n = len(coded.dictionary)
    counts = np.bincount(coded.indices.fill_null(n).to_numpy(zero_copy_only=False), minlength=n + 1)
    values = zip([*coded.dictionary.to_pylist(), None], counts.tolist(), strict=True)
    return Counter({value: count for value, count in values if count})
