"""Detect the column types of a training table: numbers or categories."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray
from anymix.exceptions import InputError, quoted
from anymix.storage import need
from anymix.tables.cells import EXACT, INFINITE, NO_NUMBER, NO_ROWS, fail, is_text, words_in
from anymix.tables.columns import MOST_CATEGORIES, Column
from anymix.tables.number_cells import (
    PLAIN,
    holds_text,
    numbers_in,
    parse_cells,
    positions_in,
)
from anymix.tables.table_columns import TableColumns, as_dictionary
from anymix.tables.table_format import TableFormat
from anymix.tables.table_reader import CHUNK_ROWS, files_in, read_cells

FEWEST_ROWS = 5  # that have a category, so that it reveals none of them
# A few words may well differ by chance.
FEW = 10
# Numbers of more different values are no codes of categories.
MOST_CODES = 20
SHOWN = 3
INFINITY = re.compile(r"\s*[+-]?inf(inity)?\s*", re.IGNORECASE)
# Words that say in many tables that a value is missing, without letters that hold one.
MARKER = re.compile(
    r"[-–—.*/_x]+|#.*|unk(nown)?|missing|not (available|known|applicable)|n\.a\.?|nil|void|empty|"
    r"keine? angaben?|k\.\s?a\.?|inconnue?|desconocido|sin dato|nd|n/d|n\.d\.?"
)
DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}( .*)?|"
    r"\d{1,2}:\d{2}(:\d{2}.*)?"
)
# Separators of decimals or of thousands.
COMMAS = re.compile(r"[+-]?\d[\d.,'’ \u00a0\u202f]*\d")
SUFFIX = re.compile(r"[+-]?\d[\d.,]*\s?([^\W\d_]{1,4}|[°µ][A-Za-z]?)")
PREFIX = re.compile(r"([A-Z]{3}) [+-]?\d[\d.,]*")
UNITS = re.compile(r"[$€£¥]\s?[+-]?[\d.,]*\d|[+-]?\d[\d.,]*\s?[%$€£¥]")
# What is refused if most words are such, or all of them: in words, and with a remedy.
UNREAD = (
    (
        DATE,
        False,
        "dates or times",
        "turn them into numbers, such as days since a day, or leave the column out with --drop",
    ),
    (
        COMMAS,
        True,
        "numbers with commas or blanks",
        "say with --decimal . or --decimal , which of comma and point is the decimal one, or name "
        "the column with --categories if these are codes",
    ),
    (
        UNITS,
        False,
        "numbers with a unit",
        "write the numbers alone, and the unit in the name of the column, or name the column by "
        "--categories or --drop",
    ),
)


class ColumnSurvey:
    """The content of one column: numbers, and other strings with their counts."""

    def __init__(self, path: Path, name: str, categorical: bool = False):
        self.path, self.name, self.categorical = path, name, categorical
        self.numbers = self.booleans = self.missing = 0
        self.words: Counter[str] = Counter()
        self.column = Column(name)
        self.minimum, self.maximum = np.inf, -np.inf
        self.examples: tuple[str, ...] = ()
        self._rare = ""
        # Some different numbers, and in which row some different words stand first.
        self._values: set[float] = set()
        self._rows: dict[str, int] = {}

    @property
    def is_id(self) -> bool:
        """Whether all values of the column are different."""
        return not self.numbers and len(self.words) == self.words.total() >= FEW

    def look(self, cells: Any, row: int, form: TableFormat) -> None:
        """Survey some cells, the first of which is in row `row`."""
        if isinstance(cells, np.ndarray):
            cells = need("pyarrow").array(cells, from_pandas=True)
        if len(self.examples) < SHOWN:
            head = words_in(cells.slice(0, 10 * SHOWN).to_pylist())
            shown = [word[:40] for word in head if word is not None]
            self.examples = tuple(dict.fromkeys((*self.examples, *shown)))[:SHOWN]
        if not holds_text(cells):
            self._add(numbers_in(self.path, self.name, cells, row, form=form))
            return
        coded = as_dictionary(cells)
        at, parsed = positions_in(coded), parse_cells(coded.dictionary, form)
        for i in np.flatnonzero(parsed.words).tolist():
            word = coded.dictionary[i].as_py()
            if (word not in self.words and len(self._rows) < SHOWN) or INFINITY.fullmatch(word):
                self._rows[word] = row + int(np.flatnonzero(at == i)[0])
            if INFINITY.fullmatch(word):
                fail(self.path, self._rows[word], self.name, INFINITE)
        counts = np.bincount(at, minlength=len(parsed.words) + 1)[:-1]
        spelt = coded.dictionary.filter(need("pyarrow").array(parsed.words)).to_pylist()
        self.words.update(dict(zip(spelt, counts[parsed.words].tolist(), strict=True)))
        self.booleans += int(counts[parsed.booleans].sum())
        if np.abs(parsed.numbers).max(initial=0, where=~np.isnan(parsed.numbers)) >= EXACT:
            numbers_in(self.path, self.name, _without(coded, parsed.words), row, form=form)
        self._add(np.append(parsed.numbers, np.nan)[at])
        self.missing -= int(counts[parsed.words].sum())

    def _add(self, numbers: FloatArray) -> None:
        there = numbers[~np.isnan(numbers)]
        self.numbers += there.size
        self.missing += numbers.size - there.size
        self.minimum = float(there.min(initial=self.minimum))
        self.maximum = float(there.max(initial=self.maximum))
        if len(self._values) <= MOST_CODES and there.size:
            self._values.update(np.unique(there)[: MOST_CODES + 1].tolist())

    def holds_words(self, least: int) -> bool:
        """Whether the column holds strings; a likely missing-value marker is refused."""
        where, total = f"{self.path}: column {quoted(self.name)}", self.words.total()
        if not total or self.categorical:
            if 0 < self.booleans < self.numbers and not self.categorical:
                raise InputError(
                    where, "holds true and false among numbers; write all of it in one way"
                )
            return self.categorical
        self._refuse_numbers_in_words(where)
        few = len(self.words) <= SHOWN and len(self._values) > MOST_CODES
        codes = len(self._values) <= MOST_CODES and max(self.words.values()) >= least
        marks = any(MARKER.fullmatch(word.strip().casefold()) for word in self.words)
        if self.numbers and (few or self.numbers >= total) and (marks or not codes):
            self._refuse_words_among_numbers()
        return True

    def _refuse_words_among_numbers(self) -> NoReturn:
        (word, row), *others = self._rows.items()
        n, rest = self.words.total(), len(self.words) - len(self._rows)
        also = [f"{quoted(other)} in row {at}" for other, at in others]
        also += [f"{rest} other word{'s' * (rest > 1)}"] * (rest > 0)
        more = f" (as {n} of {n + self.numbers} cells" * (n > 1)
        more += f", with {' and '.join(also)})" if also else ")" * (n > 1)
        markers = [] if rest else [w.strip() for w in self._rows if len(w) <= 20 and "," not in w]
        mark = f'mark missing values with --missing "{",".join(markers)}", ' if markers else ""
        cause = f"holds {quoted(word)}, {NO_NUMBER}{more}; {mark}correct the table, or name the "
        fail(self.path, row, self.name, f"{cause}column with --categories or --drop")

    def _refuse_numbers_in_words(self, where: str) -> None:
        """Refuse dates, and numbers that are written so that they could be read in two ways."""
        total = self.words.total()
        for pattern, whole, what, remedy in UNREAD:
            if pattern is UNITS and len(self.words) > MOST_CODES:
                pattern = self._letters_of_unit() or pattern
            found = [word for word in self.words if pattern.fullmatch(word.strip())]
            share = sum(self.words[word] for word in found)
            if share and (share == total if whole else 2 * share > total + self.numbers):
                rows = [f"{quoted(w)} in row {r}" for w, r in self._rows.items() if w in found]
                raise InputError(where, f"holds {what}, such as {', '.join(rows)}; {remedy}")

    def _letters_of_unit(self) -> re.Pattern[str] | None:
        """Return what matches if all words are numbers with the same letters, as 41y or EUR 5."""
        for pattern in (SUFFIX, PREFIX):
            found = [pattern.fullmatch(word.strip()) for word in self.words]
            if all(found) and len({each[1] for each in found if each is not None}) == 1:
                return pattern
        return None

    def list_categories(self, words: Counter[str], least: int) -> None:
        """List the categories: values of at least `least` rows, at most the most frequent ones."""
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

    def free_text(self) -> list[str]:
        """Return some cells if most values are unique and not listed as categories.

        A few rows may differ by chance, and columns named as categorical are exempt.
        """
        total = self.words.total()
        listed = sum(self.words[word] for word in self.column.categories or ())
        free = total >= 2 * FEW and 2 * len(self.words) > total and 2 * listed < total
        return list(self.words)[:SHOWN] if free and not self.categorical else []

    def notes(self, joined: bool = False) -> list[str]:
        """Describe an empty or constant column, or categories that are not listed.

        Where the columns of several sites are `joined`, another site may list them.
        """
        same = [f"column {quoted(self.name)} is {self.sameness}."] if self.sameness else []
        return [*same, *self.rare(joined)]

    @property
    def sameness(self) -> str:
        """The common value of a constant column; else an empty string."""
        n_different = len(self._values) + len(self.words)
        if n_different > 1:
            return ""
        return "the same in all rows that have it" if n_different else "empty in all rows"

    def rare(self, joined: bool = False) -> list[str]:
        """Describe categories that are not listed, if any."""
        unless = ", unless another site lists it" if joined else ""
        return [f"{self._rare}: read as missing{unless}."] if self._rare else []


def survey_columns(
    path: str | Path,
    names: Sequence[str],
    least: int = FEWEST_ROWS,
    form: TableFormat = PLAIN,
    categories: Sequence[str] = (),
) -> list[ColumnSurvey]:
    """Detect the types of the columns; dates, and strings among numbers, are refused.

    Strings of fewer than `least` rows are not listed: they would reveal these rows.  The
    columns in `categories` hold categories, whatever they look like.
    """
    path = Path(path)
    surveys = [ColumnSurvey(path, name, name in categories) for name in names]
    for file, row, cells, read_as in raw_columns(path, names, form):
        for survey in surveys:
            survey.path = file
            survey.look(cells[survey.name], row, read_as)
    of_words = {survey.name: survey for survey in surveys if survey.holds_words(least)}
    for name, words in count_words(path, list(of_words), form).items():
        of_words[name].list_categories(words, least)
    return surveys


def count_words(
    path: Path, names: Sequence[str], form: TableFormat = PLAIN
) -> dict[str, Counter[str]]:
    """Count the distinct strings of some columns, numbers included."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in names}
    for *_, cells, _ in raw_columns(path, names, form) if names else ():
        for name, words in counts.items():
            distinct = _counts(cells[name])
            for word, count in zip(words_in(distinct), distinct.values(), strict=True):
                words.update({} if word is None else {word: count})
    return counts


def raw_columns(
    path: Path, names: Sequence[str], form: TableFormat
) -> Iterator[tuple[Path, int, dict[str, Any], TableFormat]]:
    """Yield the file, the row of the first cells, the raw columns, and the table format."""
    d, empty = len(names), True
    # What a column of words is asked for where its categories are not known yet: its raw cells.
    wanted = TableColumns(tuple(names), categories=((),) * d, gaps=(True,) * d, form=form)
    for file in files_in(path):
        row = 1
        for cells, _, read_as in read_cells(file, wanted, CHUNK_ROWS):
            yield file, row, cells, read_as
            row += len(cells[names[0]])
            empty = False
    if empty:
        raise InputError(path, NO_ROWS)


def _without(coded: Any, words: NDArray[np.bool_]) -> Any:
    """Return cells with null in the place of words."""
    pyarrow, compute = need("pyarrow"), need("pyarrow.compute")
    null = pyarrow.scalar(None, coded.dictionary.type)
    kept = compute.if_else(pyarrow.array(words), null, coded.dictionary)
    return pyarrow.DictionaryArray.from_arrays(coded.indices, kept)


def _counts(cells: Any) -> Counter[Any]:
    """Count equal cells; a text that stands in the file once is unpacked once."""
    if isinstance(cells, np.ndarray) or not holds_text(cells):
        return Counter(cells.tolist())
    coded = as_dictionary(cells)
    counts = np.bincount(positions_in(coded), minlength=len(coded.dictionary) + 1)
    values = zip([*coded.dictionary.to_pylist(), None], counts.tolist(), strict=True)
    return Counter({value: count for value, count in values if count})
