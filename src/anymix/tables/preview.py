"""Preview how a table is read: the type, missing values and content of each column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from anymix.exceptions import InputError, quoted
from anymix.tables.cells import check_once
from anymix.tables.column_types import FEWEST_ROWS, ColumnSurvey, count_words, raw_columns
from anymix.tables.number_cells import PLAIN
from anymix.tables.table_format import TableFormat
from anymix.tables.table_reader import names_in

# Numbers below all others that often stand for a missing value.
SENTINELS = (-9.0, -99.0, -999.0, -9999.0, -99999.0)


@dataclass(frozen=True)
class ColumnPreview:
    """How a column is read: its type, the share of missing values, examples, warnings.

    `type` is "number", "category", "empty" or "refused"; `minimum` and `maximum` are those of
    numbers.  `categories` are the listed ones, `examples` some values as they are written.
    """

    name: str
    type: str
    missing: float
    examples: tuple[str, ...]
    categories: tuple[str, ...] | None = None
    minimum: float | None = None
    maximum: float | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class TablePreview:
    """How many rows a table has, and its columns."""

    n_rows: int
    columns: tuple[ColumnPreview, ...]

    def text(self, widest: int = 30) -> str:
        """Return one line for each column, and its warnings below.

        Examples
        --------
        >>> age = ColumnPreview("age", "number", 0.25, ("41", "7"), minimum=7.0, maximum=41.0)
        >>> print(TablePreview(4, (age,)).text())
        4 rows, 1 column
        column  type    missing  values
        age     number     25 %  7 to 41, such as 41; 7
        """
        n = len(self.columns)
        rows = [("column", "type", "missing", "values")]
        rows += [
            (c.name[:widest] or "(no name)", c.type, _percent(c.missing), _values(c))
            for c in self.columns
        ]
        widths = [max(len(row[j]) for row in rows) for j in range(3)]
        lines = [f"{self.n_rows} row{'s' * (self.n_rows != 1)}, {n} column{'s' * (n != 1)}"]
        for row, column in zip(rows, (None, *self.columns), strict=True):
            name, kind, missing = (
                f"{row[j]:{'>' if j == 2 else '<'}{widths[j]}}" for j in range(3)
            )
            lines.append(f"{name}  {kind}  {missing}  {row[3]}".rstrip())
            lines += [f"  warning: {each}" for each in (column.warnings if column else ())]
        return "\n".join(lines)


def _percent(share: float) -> str:
    return f"{100 * share:.{0 if share == 0 or share > 0.0995 else 1}f} %"


def _values(column: ColumnPreview) -> str:
    # Examples stand as they are written, so that a comma may be a decimal one.
    shown = "; ".join(column.examples)
    if column.type == "number" and column.minimum is not None:
        return f"{column.minimum:.6g} to {column.maximum:.6g}, such as {shown}"
    if column.categories is not None:
        n = len(column.categories)
        listed = (*column.categories[:6], *["..."] * (n > 6))
        return f"{n} categor{'y' if n == 1 else 'ies'}{': ' * (n > 0)}{', '.join(listed)}"
    return shown


def preview_table(
    path: str | Path,
    form: TableFormat = PLAIN,
    least: int = FEWEST_ROWS,
    categories: Sequence[str] = (),
) -> TablePreview:
    """Read a table once, or twice if it has strings, and describe how each column is read.

    A column that training would refuse is shown with the error message.
    """
    path = Path(path)
    names = names_in(path, form)
    check_once(path, names)
    surveys = {name: ColumnSurvey(path, name, name in categories) for name in names}
    faults: dict[str, str] = {}
    n_rows = 0
    for file, row, cells, read_as in raw_columns(path, names, form):
        n_rows += len(cells[names[0]])
        for name in (name for name in names if name not in faults):
            surveys[name].path = file
            try:
                surveys[name].look(cells[name], row, read_as)
            except InputError as error:
                faults[name] = str(error)
    of_words = []
    for name, survey in surveys.items():
        try:
            of_words += [name] * (name not in faults and survey.holds_words(least))
        except InputError as error:
            faults[name] = str(error)
    for name, words in count_words(path, of_words, form).items():
        surveys[name].list_categories(words, least)
    columns = tuple(
        _previewed(survey, n_rows, faults.get(name)) for name, survey in surveys.items()
    )
    return TablePreview(n_rows, columns)


def _advice(survey: ColumnSurvey, categories: tuple[str, ...] | None) -> tuple[str, ...]:
    """Name what is read as it is written, and may be meant otherwise."""
    name, advice = quoted(survey.name), []
    if categories is None and survey.minimum in SENTINELS:
        mark = f"{survey.minimum:g}"
        advice.append(
            f"column {name}: {mark} may mark missing values; if so, add --missing={mark}."
        )
    codes = [
        word for word in survey.examples if len(word) > 1 and word.isdigit() and word[0] == "0"
    ]
    if categories is None and codes:
        what = f"{quoted(codes[0])} may be a code; name the column with --categories if it is"
        advice.append(f"column {name}: {what}.")
    spelt: dict[str, list[str]] = {}
    for word in categories or ():
        spelt.setdefault(" ".join(word.split()).casefold(), []).append(word)
    if several := next((words for words in spelt.values() if len(words) > 1), None):
        alike = ", ".join(map(quoted, several))
        advice.append(f"column {name}: {alike} differ in capitals or blanks alone.")
    return tuple(advice)


def _previewed(survey: ColumnSurvey, n_rows: int, fault: str | None) -> ColumnPreview:
    categories = survey.column.categories
    kind = "number" if categories is None else "category"
    if fault is not None:
        kind = "refused"
    elif not survey.numbers and not survey.words:
        kind = "empty"
    notes = (fault,) if fault is not None else tuple(survey.notes())
    if survey.is_id and fault is None:
        notes = (*notes, f"column {quoted(survey.name)} differs in every row, as an id does.")
    low, high = (None, None) if not survey.numbers else (survey.minimum, survey.maximum)
    notes = (*notes, *_advice(survey, categories) * (fault is None))
    missing = survey.missing / max(n_rows, 1)
    return ColumnPreview(survey.name, kind, missing, survey.examples, categories, low, high, notes)
