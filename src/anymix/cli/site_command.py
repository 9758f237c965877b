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
from anymix.cli.streams import caution
from anymix.exceptions import UsageError
from anymix.exchange import (
    MIN_ROWS,
    TELLS,
    SiteTable,
    bits_for_a_spy,
    commonest,
    groups_of_rows,
    labels_named,
    mean_of_rows,
    read_alike,
    read_home,
)
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
    _add_protection(parser)
    parser.add_argument("--force", action="store_true", help="replace a site's file that exists")


def _add_protection(parser: ArgumentParser) -> None:
    """Describe what the file may tell."""
    parser.add_argument(
        "--min-rows", type=count, default=MIN_ROWS, help="refuse to evaluate fewer rows than this"
    )
    parser.add_argument(
        "--responsibilities-only",
        action="store_true",
        help="leave out how likely rows are, which novelty and monitoring need",
    )
    parser.add_argument(
        "--exact",
        action="store_true",
        help="do not round, and write how likely each row is: the receiver can then compute "
        "features and labels",
    )
    parser.add_argument(
        "--mean-of",
        type=count,
        metavar="N",
        help="labels: write means over groups of N rows or more with equal shares of all labels, "
        "so that the file tells no row's label; z can be learned by it, and nothing certified",
    )


def run_evaluate(args: Namespace, console: Console) -> int:
    """Run the command."""
    inputs = [*args.sources, args.rows, *filter(None, [args.home])]
    with output(args.out, inputs, args.force) as temporary:
        with console.working("asking the sources"):
            found, named = evaluate(args)
        found.write(temporary, exact=True)
    p, m = found.outcomes.shape[:2]
    numbers = p * (1 + found.n_told) + (found.log_total is not None)
    rows = f"{m} groups of rows" if found.means else f"{m} rows"
    text = (
        f"wrote {args.out}: {numbers} numbers for each of {rows} in random order, "
        f"{_can_be_inferred(found, args.exact)}"
    )
    if found.own_quantiles is not None and found.total_histogram is not None:
        text += (
            f"; of all rows together {found.own_quantiles.size} quantiles and "
            f"{found.total_histogram.shape[1] - 1} counts of how likely they are"
        )
    if named is not None:
        text += (
            f"; one of its numbers names the label of {100 * named[0]:.0f} % of the rows, where "
            f"the commonest label has {100 * named[1]:.0f} %"
        )
        if named[0] > named[1] + TELLS:
            caution(
                f"the file tells labels: whoever has the source folders can name "
                f"{100 * named[0]:.0f} % of them; write means over rows by --mean-of 10, or "
                "exchange sums by anymix federate, unless the receiver may know the labels"
            )
    record: dict[str, Any] = {
        "site": args.site,
        "rows": m,
        "numbers_per_row": numbers,
        "exact": args.exact,
    }
    if named is not None:
        record |= {"labels_named": named[0], "commonest_label": named[1]}
    console.result(text, record, args.out)
    return 0


def evaluate(args: Namespace) -> tuple[SiteTable, tuple[float, float] | None]:
    """Ask all sources about the site's rows, in random order.

    Returns the share of labels that the file names and that of the commonest, None for numbers.
    """
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
    if args.mean_of is not None and args.exact:
        raise UsageError("--mean-of hides what --exact tells; leave one of them out.")
    group = None if args.mean_of is None else groups_of_rows(found, args.mean_of, rng)
    written = found if group is None else mean_of_rows(found, group)
    written = written if args.exact else written.rounded()
    if args.exact or found.loss != "cross_entropy" or found.whole is None:
        return written, None
    labels, outcomes = np.asarray(found.whole.targets), written.at_label().outcomes
    # Whose group is known to the attacker can be known no better.
    outcomes = outcomes if group is None else outcomes[:, group]
    return written, (labels_named(outcomes, labels), commonest(labels))


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
