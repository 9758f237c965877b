"""Format of a command's tables: --sep, --decimal, --encoding and --missing."""

from __future__ import annotations

import csv
from argparse import ArgumentParser, ArgumentTypeError, Namespace

from anymix.cli.streams import note
from anymix.tables import TableFormat

TAB = ("tab", "\\t")


def add_format(parser: ArgumentParser) -> None:
    """Add the options; what is not given is detected and reported in one line."""
    group = parser.add_argument_group("format of tables, if detection fails")
    group.add_argument("--sep", metavar="CHAR", help="column separator: , ; | or tab")
    group.add_argument(
        "--decimal",
        choices=(".", ","),
        metavar="CHAR",
        help="decimal separator, . or ,; the other one, blanks and apostrophes then separate "
        "thousands",
    )
    group.add_argument("--encoding", metavar="NAME", help="such as utf-8, latin-1 or utf-16")
    group.add_argument("--sheet", metavar="NAME", help="sheet of an Excel workbook (the first)")
    group.add_argument(
        "--missing",
        type=markers_of,
        action="extend",
        metavar="MARK[,MARK...]",
        help="values that mean missing, besides empty cells and NA, null, none, nan and ?",
    )


def markers_of(text: str) -> list[str]:
    """Read MARK[,MARK...]; a marker with a comma is quoted, as in a CSV file."""
    markers = [marker.strip() for marker in next(csv.reader([text]), [])]
    if not markers or not all(markers):
        raise ArgumentTypeError(f"it must be markers separated by commas, not {text!r}")
    return markers


def format_of(args: Namespace) -> TableFormat:
    """Return the checked options; detected formats are reported once for each file."""
    seen: set[str] = set()

    def report(line: str) -> None:
        if line not in seen:
            seen.add(line)
            note(line)

    form = TableFormat(
        "\t" if args.sep in TAB else args.sep,
        args.decimal,
        args.encoding,
        tuple(args.missing or ()),
        args.sheet,
        report=None if args.quiet else report,
    )
    form.check()
    return form
