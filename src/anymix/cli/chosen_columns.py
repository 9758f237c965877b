"""Which columns of a table are features: --features, --drop and --id."""

from __future__ import annotations

import csv
import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from anymix.cli.table_options import add_format, format_of
from anymix.exceptions import InputError, UsageError, quoted
from anymix.exchange import ReceivedSource, table_columns
from anymix.tables import FEW, TableColumns

NAMED = re.compile(r"(.*[^a-z])?(id|ids|uid|uuid|guid|index|rowid)")
CAMEL = re.compile(r".*[a-z]I[dD]")


def check_choice(args: Namespace) -> None:
    """Refuse options that give one column two roles."""
    target = getattr(args, "target", None)
    for option, names in (("--features", args.features or ()), ("--drop", args.drop or ())):
        for name, other in ((target, "--target"), (args.id, "--id")):
            if name is not None and name in names:
                raise UsageError(f"{option} and {other} both name {quoted(name)}; choose one.")
        if len(set(names)) < len(names):
            raise UsageError(f"{option} names a column twice; name each once.")
    if target is not None and target == args.id:
        raise UsageError(f"--id and --target both name {quoted(target)}; choose one.")


def add_choice(parser: ArgumentParser, trains: bool = False) -> None:
    """Add the options; with sources that are already trained they only confirm the columns."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--features",
        type=names_of,
        action="extend",
        metavar="COL[,COL...]",
        help="columns to learn from, in this order; without it, all but the label"
        if trains
        else "check that these columns are the sources' features; other columns are ignored",
    )
    group.add_argument(
        "--drop",
        type=names_of,
        action="extend",
        metavar="COL[,COL...]",
        help="columns to leave out" if trains else "check that no source uses these columns",
    )
    if trains:
        group.add_argument(
            "--text",
            metavar="COL",
            help="learn from the texts in this column alone",
        )
    parser.add_argument("--id", metavar="COL", help="column with row ids, which is never a feature")
    if trains:
        add_categories(parser)
    add_format(parser)


def add_categories(parser: ArgumentParser) -> None:
    """Add the option for categorical columns of numbers."""
    parser.add_argument(
        "--categories",
        type=names_of,
        action="extend",
        metavar="COL[,COL...]",
        help="categorical columns, even if their values are numbers",
    )


def names_of(text: str) -> list[str]:
    """Read COL[,COL...]; a name with a comma is quoted, as in a CSV file."""
    names = next(csv.reader([text]), [])
    if not names or not all(name.strip() for name in names):
        raise ArgumentTypeError(f"it must be column names separated by commas, not {text!r}")
    return names


def columns_for(args: Namespace, received: Sequence[ReceivedSource]) -> TableColumns:
    """Return the feature columns of the sources, after checking them against the options."""
    check_choice(args)
    columns = table_columns([one.manifest for one in received], getattr(args, "target", None))
    columns = replace(columns, form=format_of(args))
    features = columns.features
    for option, names in (("--drop", args.drop or ()), ("--id", (args.id,))):
        for name in names:
            if name in features:
                raise InputError(
                    f"column {quoted(name)} of {option}",
                    "is a feature of the sources; leave the option out, or "
                    f"pack the sources again with {option}",
                )
    if args.features is not None and set(args.features) != set(features):
        shown = ", ".join(map(quoted, features[:8])) + (", ..." if len(features) > 8 else "")
        raise InputError(
            "--features",
            f"are not the features of the sources ({shown[:400]}); leave the option "
            "out, or pack the sources again with --features",
        )
    return columns


def look_like_ids(names: Sequence[str], X: Any) -> Iterator[str]:
    """Name numeric columns that look like row ids: integers, all different.

    They are either consecutive, as 1 to n, or named like an id.
    """
    for name, values in zip(names, np.asarray(X).T, strict=True):
        if len(values) < FEW or not np.isfinite(values).all() or (values % 1).any():
            continue
        if np.unique(values).size == len(values):
            named = NAMED.fullmatch(name.lower()) or CAMEL.fullmatch(name)
            if named or np.ptp(values) == len(values) - 1:
                yield name
