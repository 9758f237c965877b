"""anymix site evaluate: what a site hands over in place of its rows."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np

from anymix.cli.argument_types import count, name, source_name, table
from anymix.cli.chosen_columns import add_choice, columns_for
from anymix.cli.console import Console
from anymix.cli.held_out import ask_sources
from anymix.cli.outputs import output
from anymix.exchange import MIN_ROWS, SiteTable, bits_for_a_spy, read_alike, read_home
from anymix.sources import warn_of_training_rows
from anymix.tables import read_rows


def add_evaluate_arguments(parser: ArgumentParser) -> None:
    """Describe the command."""
    parser.add_argument("sources", nargs="+", metavar="SOURCE", help="source folders of all sites")
    parser.add_argument(
        "--site", type=source_name, required=True, help="name of the source whose rows these are"
    )
    parser.add_argument(
        "--rows",
        type=table,
        required=True,
        metavar="TABLE",
        help="its held-out rows; with --home, its training rows",
    )
    parser.add_argument(
        "--home",
        type=table,
        metavar="FILE",
        help="what source pack --home kept: the training rows are evaluated by fold models",
    )
    parser.add_argument("--target", default="y", help="column with the label")
    add_choice(parser)
    parser.add_argument("--out", type=name, required=True, metavar="FILE", help="file to hand over")
    parser.add_argument(
        "--min-rows", type=count, default=MIN_ROWS, help="refuse to evaluate fewer rows than this"
    )
    parser.add_argument(
        "--responsibilities-only",
        action="store_true",
        help="leave out how likely each row is, which --exact writes too",
    )
    parser.add_argument(
        "--exact",
        action="store_true",
        help="do not round, and write how likely each row is, which novelty and "
        "monitoring need: the receiver can then compute features and labels",
    )
    parser.add_argument("--force", action="store_true", help="replace a site's file that exists")


def run_evaluate(args: Namespace, console: Console) -> int:
    """Run the command."""
    inputs = [*args.sources, args.rows, *filter(None, [args.home])]
    with output(args.out, inputs, args.force) as temporary:
        with console.working("asking the sources"):
            found = evaluate(args)
        found.write(temporary, exact=True)
    p, m = found.outcomes.shape[:2]
    numbers = p * (1 + found.n_told) + (found.log_total is not None)
    text = (
        f"wrote {args.out}: {numbers} numbers for each of {m} rows in random order, "
        f"{_can_be_inferred(found, args.exact)}"
    )
    record = {"site": args.site, "rows": m, "numbers_per_row": numbers, "exact": args.exact}
    console.result(text, record, args.out)
    return 0


def evaluate(args: Namespace) -> SiteTable:
    """Ask all sources about the site's rows, in random order."""
    received = read_alike(args.sources)
    X, y = read_rows(args.rows, columns_for(args, received))
    # Fresh entropy: an order that can be drawn again would be no shuffle.
    rng = np.random.default_rng()
    given: dict[str, Any] = {"rng": rng, "min_rows": args.min_rows}
    given["home"] = None if args.home is None else read_home(args.home)
    found = ask_sources(received, args.site, args.rows, (X, y), **given)
    if found.whole is not None:
        warn_of_training_rows(found.whole, [one.source for one in received])
    if args.responsibilities_only:
        found = replace(found, log_total=None)
    return found if args.exact else found.rounded()


def _can_be_inferred(table: SiteTable, exact: bool) -> str:
    """Say what someone who has the file and all source folders may learn of the rows."""
    if exact:
        return (
            "exact; who has the source folders too can compute features and labels from them, so "
            "hand the file only to those who may see the rows"
        )
    bits = bits_for_a_spy(table.loss, len(table.sources), table.n_told)
    return (
        "rounded; who has the source folders too can learn roughly where a row lies, and up to "
        f"{ceil(bits)} bits of each row for every source that was made to spy, and can test "
        "whether a row that they know may be among these"
    )
