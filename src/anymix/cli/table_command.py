"""anymix table show: show how the columns of a table are read."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from anymix.cli.argument_types import count, table
from anymix.cli.chosen_columns import add_categories
from anymix.cli.console import Console
from anymix.cli.table_options import add_format, format_of
from anymix.tables import FEWEST_ROWS, preview_table


def add_show_arguments(parser: ArgumentParser) -> None:
    """Describe `table show`."""
    parser.add_argument("table", type=table, help="table to read, or - for standard input")
    add_categories(parser)
    parser.add_argument(
        "--min-count",
        type=count,
        default=FEWEST_ROWS,
        help="list values as categories if they occur in at least this many rows",
    )
    add_format(parser)


def run_show(args: Namespace, console: Console) -> int:
    """Run `table show`; a column that training would refuse is shown with the reason."""
    with console.working("reading the table"):
        preview = preview_table(
            args.table, format_of(args), args.min_count, tuple(args.categories or ())
        )
    console.result(preview.text, preview)
    return 0
