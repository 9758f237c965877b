"""anymix site evaluate: what a site hands over in place of its rows."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import replace

import numpy as np

from anymix.cli.argument_types import count
from anymix.cli.console import Console
from anymix.cli.held_out import ask_sources
from anymix.cli.table_reader import Columns, read_rows
from anymix.exchange import MIN_ROWS, read_alike


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command."""
    parser.add_argument("sources", nargs="+", metavar="SOURCE", help="source folders of all sites")
    parser.add_argument("--site", required=True, help="name of the source whose rows these are")
    parser.add_argument("--rows", required=True, metavar="TABLE", help="its held-out rows")
    parser.add_argument("--target", default="y", help="column with the label")
    parser.add_argument("--out", required=True, metavar="FILE", help="file to hand over")
    parser.add_argument(
        "--min-rows", type=count, default=MIN_ROWS, help="refuse to evaluate fewer rows than this"
    )
    parser.add_argument(
        "--responsibilities-only",
        action="store_true",
        help="leave out how likely each row is, which novelty and monitoring need",
    )


def run(args: Namespace, console: Console) -> int:
    """Run the command."""
    received = read_alike(args.sources)
    X, y = read_rows(args.rows, Columns.of(received[0].manifest, args.target))
    # Fresh entropy: an order that can be drawn again would be no shuffle.
    rng = np.random.default_rng()
    table = ask_sources(received, args.site, args.rows, (X, y), rng=rng, min_rows=args.min_rows)
    if args.responsibilities_only:
        table = replace(table, log_total=None)
    table.write(args.out)
    p, m = table.outcomes.shape
    numbers = 2 * p + (table.log_total is not None)
    text = (
        f"wrote {args.out}: {numbers} numbers for each of {m} rows in random order; no features, "
        "no labels"
    )
    console.result(text, {"site": args.site, "rows": m, "numbers_per_row": numbers})
    return 0
