"""A training table: its column types and rows."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from anymix.cli.chosen_columns import check_choice, look_like_ids
from anymix.cli.streams import caution
from anymix.cli.table_options import format_of
from anymix.exceptions import InputError, quoted
from anymix.exchange import is_label
from anymix.tables import (
    FEW,
    FEWEST_ROWS,
    Column,
    ColumnSurvey,
    Encoder,
    TableColumns,
    TableFormat,
    check_once,
    check_there,
    is_text,
    kind_of,
    names_in,
    read_rows,
    survey_columns,
    whole_labels,
)
from anymix.tables import Columns as Coding

NO_FORMAT = TableFormat()
SHOWN = 3  # columns that a note names


def column_names(args: Namespace, form: TableFormat = NO_FORMAT) -> list[str]:
    """Return the feature names: the chosen columns, or all but the target.

    A manifest must be able to hold them.
    """
    path, target = Path(args.rows), args.target
    check_choice(args)
    names = names_in(path, form)
    ids = [] if args.id is None else [args.id]
    texts = [args.text] if args.text else []
    chosen = [*(args.features or ()), *(args.drop or ()), *texts, *ids, *(args.categories or ())]
    if not path.is_dir() and kind_of(path) == ".npz":
        if chosen:
            raise InputError(
                path,
                "has no column names, so --features, --drop, --text, --id and --categories "
                "cannot name any; write it as CSV or Parquet",
            )
        return [name for name in names if name != target]
    check_there(path, [target, *chosen], names, target)
    left_out = (target, *(args.drop or ()), *ids)
    features = texts or args.features or [name for name in names if name not in left_out]
    for i, name in enumerate(names, 1):
        if name not in features:
            continue
        if not name.strip() or name.startswith("__index_level_"):
            raise InputError(
                f"{path}: column {i}",
                "has no name; name it, or leave it out (in pandas, to_csv(index=False))",
            )
        if not is_text(name):
            raise InputError(
                f"{path}: the name of column {i}",
                "is longer than 200 characters or unprintable; rename the column",
            )
    check_once(path, [name for name in names if name in features])
    if not features:
        raise InputError(path, f"has only the column {target!r}; a source needs features")
    return features


NO_CATEGORIES = (
    "leave the column out with --drop, name it with --id if it holds row ids, or learn from it "
    "alone "
    "with --text"
)


@dataclass(frozen=True)
class TrainingTable:
    """Rows X, targets y, column names, their coding or None, and notes for the user.

    A table of complete numbers has no coding; `ids` are columns whose values are all different.
    With `text`, X is a list of documents.
    """

    X: Any
    y: Any
    names: list[str]
    coding: Coding | None = None
    notes: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    text: bool = False

    @property
    def columns(self) -> Coding:
        """The coding, also for complete numbers."""
        return self.coding or Coding(tuple(map(Column, self.names)))

    @property
    def filled(self) -> Any:
        """X with a constant in each empty column, which not all estimators accept."""
        return self.X if self.text else np.where(np.isnan(self.X).all(axis=0), 0.0, self.X)

    @property
    def is_mixed(self) -> bool:
        """Whether the table holds categories or missing values."""
        return not self.text and (self.first_of_words or self.first_with_gaps) is not None

    @property
    def first_of_words(self) -> str | None:
        """The first categorical column, if any."""
        return next((c.name for c in self.coding or () if c.categories is not None), None)

    @property
    def first_with_gaps(self) -> str | None:
        """The first column with missing values, if any."""
        return next((self.names[j] for j in np.flatnonzero(np.isnan(self.X).any(axis=0))), None)


def read_training_table(
    args: Namespace,
    task: str | None,
    reference: Coding | None = None,
    least: int = FEWEST_ROWS,
) -> TrainingTable:
    """Read a mixed table, with the columns of the reference if there is one.

    Without a task, targets are not read; values in at least `least` rows are categories.  A warning
    names columns that look like row ids, unless the features were chosen by name.
    """
    request = training_request(args, task)
    names = column_names(args, request.form)
    if request.text:
        X, y = request.rows(names)
        return TrainingTable(X, y, names, text=True)
    table = _read(request, names, reference, least)
    for name in (*look_like_ids(table.names, table.X), *table.ids) if not args.features else ():
        caution(
            f"{args.rows}: column {quoted(name)} has a different value in every row, like an id, "
            "and is "
            "used as a feature; name it with --id, leave it out with --drop, or choose the "
            "features "
            "with --features."
        )
    return table


@dataclass(frozen=True)
class TrainingRequest:
    """How a table is read: its file, target, task and format.

    Without a task, targets are not read; `categories` names categorical columns, and with `text`
    the rows are documents.
    """

    path: str
    target: str
    task: str | None
    form: TableFormat
    categories: tuple[str, ...] = ()
    text: bool = False

    def rows(
        self, names: list[str], coding: Coding | None = None, encoder: Encoder | None = None
    ) -> tuple[Any, Any]:
        """Return rows and labels; labels that are all whole numbers become integers.

        With a coding there may be categories and missing values.
        """
        columns = TableColumns(
            tuple(names),
            None if self.task is None else self.target,
            self.text,
            numeric_target=self.task == "regression",
            form=self.form,
        )
        columns = columns if coding is None else with_coding(columns, coding)
        X, y = read_rows(self.path, columns, encoder)
        if self.task != "classification":
            return X, y
        # A manifest must be able to hold the labels.
        for label in np.unique(y).tolist():
            if not is_label(label):
                raise InputError(
                    f"{self.path}, row {np.flatnonzero(y == label)[0] + 1}: column {self.target!r}",
                    "holds a label of over 200 characters, or one that is unprintable or that "
                    "a spreadsheet would run as a formula; rename it",
                )
        return X, whole_labels(y)


def training_request(args: Namespace, task: str | None) -> TrainingRequest:
    """Return the request that the options describe."""
    categories = tuple(args.categories or ())
    text = bool(args.text)
    return TrainingRequest(args.rows, args.target, task, format_of(args), categories, text)


def _read(
    request: TrainingRequest, names: list[str], reference: Coding | None, least: int
) -> TrainingTable:
    path = request.path
    if reference is not None:
        for name in (n for n in reference.names if n not in names):
            raise InputError(
                path, f"has no column {quoted(name)}, which is in the reference; all must agree"
            )
        for name in (n for n in names if n not in reference.names):
            raise InputError(
                f"{path}: column {quoted(name)}",
                "is not in the reference; leave it out with --drop, name it with --id if it holds "
                "row "
                "ids, or make a new reference",
            )
        names = list(reference.names)
    if not request.categories and (reference is None or not reference.categorical.any()):
        # Complete numbers are read directly; other tables are read again to find the fault.
        with suppress(InputError):
            X, y = request.rows(names)
            same = [names[j] for j in np.flatnonzero(np.ptp(X, axis=0) == 0)]
            return TrainingTable(X, y, names, None, about_columns(same, "the same in all rows"))
    if reference is not None:
        return _in_columns_of(request, reference)
    surveys = survey_columns(path, names, least, request.form, request.categories)
    _refuse_free_text(path, surveys)
    coding = Coding(tuple(survey.column for survey in surveys))
    # The notes name categories that are not listed.
    silent = Encoder(Path(path), with_coding(TableColumns(tuple(names)), coding))
    X, y = request.rows(names, coding, silent)
    booleans = any(survey.booleans for survey in surveys)
    plain = not (coding.categorical.any() or booleans or np.isnan(X).any())
    notes: tuple[str, ...] = ()
    for what in dict.fromkeys(survey.sameness for survey in surveys if survey.sameness):
        notes += about_columns([s.name for s in surveys if s.sameness == what], what)
    rare = [note for survey in surveys for note in survey.rare(joined=request.task is None)]
    if more := rare[SHOWN:]:
        several = "columns have" if len(more) > 1 else "column has"
        rare = [*rare[:SHOWN], f"{len(more)} more {several} categories that are not listed."]
    notes += tuple(rare)
    ids = tuple(survey.name for survey in surveys if survey.is_id)
    return TrainingTable(X, y, names, None if plain else coding, notes, ids)


def _refuse_free_text(path: str, surveys: Sequence[ColumnSurvey]) -> None:
    for survey in surveys:
        if cells := survey.free_text():
            raise InputError(
                f"{path}: column {quoted(survey.name)}",
                f"has a different text in most rows, such as {', '.join(map(quoted, cells))}, "
                "which "
                f"would be read as missing values; {NO_CATEGORIES}",
            )


def _in_columns_of(request: TrainingRequest, reference: Coding) -> TrainingTable:
    path = request.path
    names = list(reference.names)
    encoder = Encoder(Path(path), with_coding(TableColumns(tuple(names)), reference))
    X, y = request.rows(names, reference, encoder)
    for column, values in zip(reference, X.T, strict=True):
        unknown, known = encoder.unseen[column.name], int((~np.isnan(values)).sum())
        if unknown and (not known or (unknown > known and unknown >= FEW)):
            listed = ", ".join(map(quoted, (column.categories or ())[:5])) or "none"
            raise InputError(
                f"{path}: column {quoted(column.name)}",
                f"holds {quoted(encoder.example[column.name])}, and no category of the reference "
                f"({listed}) in {unknown} rows; use the categories of the other sites, make a new "
                f"reference, or {NO_CATEGORIES}",
            )
    encoder.warn()
    empty = [names[j] for j in np.flatnonzero(np.isnan(X).all(axis=0))]
    return TrainingTable(X, y, names, reference, about_columns(empty, "empty in all rows"))


def about_columns(names: Sequence[str], what: str) -> tuple[str, ...]:
    """State one fact about several columns in one line; return nothing for no columns.

    Examples
    --------
    >>> about_columns(list("abcde"), "empty")
    ("columns 'a', 'b', 'c' and 2 more are empty.",)
    """
    if not names:
        return ()
    if len(names) == 1:
        return (f"column {quoted(names[0])} is {what}.",)
    first, rest = list(map(quoted, names[:SHOWN])), len(names) - SHOWN
    last = [f"{rest} more"] if rest > 0 else [first.pop()]
    return (
        f"columns {', '.join(first)} and {last[0]} are {what.replace('have it', 'have them')}.",
    )


def with_coding(columns: TableColumns, coding: Coding) -> TableColumns:
    """Add the categories of a coding, and allow missing values in all columns."""
    categories = tuple(column.categories for column in coding)
    return replace(columns, categories=categories, gaps=(True,) * len(categories))
