"""Which columns of a table are features: --features, --drop and --id."""

from __future__ import annotations

import csv
import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from anymix.exceptions import InputError, UsageError, quoted
from anymix.exchange import Manifest, ReceivedSource, gaps_of
from anymix.tables import FEW, TableColumns, check_there

NAMED = re.compile(r"(.*[^a-z])?(id|ids|uid|uuid|guid|index|rowid)")
CAMEL = re.compile(r".*[a-z]I[dD]")


@dataclass(frozen=True)
class Choice:
    """The columns that a command line names; None and nothing where it does not."""

    features: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    id: str | None = None

    @classmethod
    def of(cls, args: Namespace) -> Choice:
        """Take what the options say; a column cannot be two things."""
        features = None if args.features is None else tuple(args.features)
        found = cls(features, tuple(args.drop or ()), args.id)
        target = getattr(args, "target", None)
        for option, names in (("--features", features or ()), ("--drop", found.drop)):
            for name, other in ((target, "--target"), (args.id, "--id")):
                if name is not None and name in names:
                    raise UsageError(f"{option} and {other} both name {quoted(name)}; choose one.")
            if len(set(names)) < len(names):
                raise UsageError(f"{option} names a column twice; name each once.")
        if target is not None and target == args.id:
            raise UsageError(f"--id and --target both name {quoted(target)}; choose one.")
        return found

    @property
    def named(self) -> tuple[str, ...]:
        """All columns that are named."""
        return (*(self.features or ()), *self.drop, *([] if self.id is None else [self.id]))

    def among(self, path: Path, there: Sequence[str], target: str) -> list[str]:
        """Return the features of a table to train on, of which these columns are there."""
        check_there(path, [target, *self.named], there, target)
        if self.features is not None:
            return list(self.features)
        return [name for name in there if name not in (target, self.id, *self.drop)]


def add_choice(parser: ArgumentParser, trains: bool = False) -> None:
    """Add the options; where sources are trained already, they can only confirm the columns."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--features",
        type=names_of,
        action="extend",
        metavar="COL[,COL...]",
        help="columns to learn from, in this order; without it, all but the label"
        if trains
        else "columns that must be the sources' features; further columns are ignored anyway",
    )
    group.add_argument(
        "--drop",
        type=names_of,
        action="extend",
        metavar="COL[,COL...]",
        help="columns to leave out" if trains else "columns that must be no feature of the sources",
    )
    parser.add_argument(
        "--id", metavar="COL", help="column that names the rows, which is never a feature"
    )


def names_of(text: str) -> list[str]:
    """Read COL[,COL...]; a name with a comma is quoted, as in a CSV file.

    Examples
    --------
    >>> names_of('id,"height, cm"')
    ['id', 'height, cm']
    """
    names = next(csv.reader([text]), [])
    if not names or not all(name.strip() for name in names):
        raise ArgumentTypeError(f"it must be one name, or some with commas between, not {text!r}")
    return names


def table_columns(manifests: Sequence[Manifest], target: str | None = None) -> TableColumns:
    """Return the columns that sources which are alike take.

    A cell may be empty where all of them allow it.
    """
    first = manifests[0]
    whole = first.classes is not None and isinstance(first.classes[0], int)
    names = tuple(feature.name for feature in first.features)
    columns = TableColumns(names, target, first.is_text, first.classes is None or whole, whole)
    coded = next((m.columns for m in manifests if m.columns is not None), None)
    if coded is None:
        return columns
    allowed = zip(*(gaps_of(manifest.features) for manifest in manifests), strict=True)
    return replace(
        columns, categories=tuple(c.categories for c in coded), gaps=tuple(map(all, allowed))
    )


def columns_for(args: Namespace, received: Sequence[ReceivedSource]) -> TableColumns:
    """Return the columns that the sources take, which must agree with the options."""
    choice = Choice.of(args)
    columns = table_columns([one.manifest for one in received], getattr(args, "target", None))
    features = columns.features
    for option, names in (("--drop", choice.drop), ("--id", (choice.id,))):
        for name in names:
            if name in features:
                raise InputError(
                    f"column {quoted(name)} of {option}",
                    "is a feature that the sources were trained on; leave the option out, or "
                    f"pack the sources anew with {option}",
                )
    if choice.features is not None and set(choice.features) != set(features):
        shown = ", ".join(map(quoted, features[:8])) + (", ..." if len(features) > 8 else "")
        raise InputError(
            "--features",
            f"are not those that the sources were trained on ({shown[:400]}); leave the option "
            "out, or pack the sources anew with --features",
        )
    return columns


def look_like_ids(names: Sequence[str], X: Any) -> Iterator[str]:
    """Name the columns of numbers that seem to name the rows: whole numbers, all different.

    They either run without a gap, as 1 to n do, or have the name of an id.

    Examples
    --------
    >>> X = np.column_stack([np.arange(20), np.arange(20) ** 2, np.arange(20) ** 2, np.zeros(20)])
    >>> list(look_like_ids(["row", "patient_id", "area", "id"], X))
    ['row', 'patient_id']
    """
    for name, values in zip(names, np.asarray(X).T, strict=True):
        if len(values) < FEW or not np.isfinite(values).all() or (values % 1).any():
            continue
        if np.unique(values).size == len(values):
            named = NAMED.fullmatch(name.lower()) or CAMEL.fullmatch(name)
            if named or np.ptp(values) == len(values) - 1:
                yield name


def said_of_id(path: Path | str, name: str) -> str:
    """Say of a column that seems to name the rows what can be done."""
    return (
        f"{path}: column {quoted(name)} is another in every row, as an id is, and is learned from "
        "as a feature; name it by --id, leave it out by --drop, or name those to learn from by "
        "--features."
    )
