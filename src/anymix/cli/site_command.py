"""anymix site evaluate: write the file that a site sends instead of its rows."""

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
        "--site", type=source_name, required=True, help="name of the source that the rows belong to"
    )
    parser.add_argument(
        "--rows",
        type=table,
        required=True,
        metavar="TABLE",
        help="held-out rows of the site; with --home, its training rows",
    )
    parser.add_argument(
        "--home",
        type=table,
        metavar="FILE",
        help="file written by source pack --home, to evaluate training rows with fold models",
    )
    parser.add_argument("--target", default="y", help="column with the label")
    add_choice(parser)
    parser.add_argument("--out", type=name, required=True, metavar="FILE", help="file to send")
    _add_protection(parser)
    parser.add_argument("--force", action="store_true", help="replace an existing site file")


def _add_protection(parser: ArgumentParser) -> None:
    """Add the options that limit what the file reveals."""
    parser.add_argument(
        "--min-rows", type=count, default=MIN_ROWS, help="refuse to evaluate fewer rows than this"
    )
    parser.add_argument(
        "--responsibilities-only",
        action="store_true",
        help="leave out the densities, which novelty and monitoring need",
    )
    parser.add_argument(
        "--exact",
        action="store_true",
        help="do not round, and write the densities: the receiver can then compute "
        "features and labels",
    )
    parser.add_argument(
        "--mean-of",
        type=count,
        metavar="N",
        help="classification: write means over groups of N rows or more with equal shares of all "
        "labels, so that no row's label is revealed; z can be learned from it, but not certified",
    )


def run_evaluate(args: Namespace, console: Console) -> int:
    """Run the command."""
    inputs = [*args.sources, args.rows, *filter(None, [args.home])]
    with output(args.out, inputs, args.force) as temporary:
        with console.working("evaluating the sources"):
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
            f"; over all rows {found.own_quantiles.size} quantiles and "
            f"{found.total_histogram.shape[1] - 1} counts of log-densities"
        )
    if named is not None:
        text += (
            f"; one of its numbers names the label of {100 * named[0]:.0f} % of the rows, where "
            f"the most frequent label has {100 * named[1]:.0f} %"
        )
        if named[0] > named[1] + TELLS:
            caution(
                f"the file reveals labels: anyone with the source folders can name "
                f"{100 * named[0]:.0f} % of them; write means over rows with --mean-of 10, or "
                "exchange sums with anymix federate, unless the receiver may know the labels"
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
    """Evaluate all sources on the site's rows, in random order.

    Also returns the share of labels that the file reveals, and that of the most frequent label;
    None for regression.
    """
    received = read_alike(args.sources)
    X, y = read_rows(args.rows, columns_for(args, received))
    # Fresh entropy: a reproducible order could be undone.
    rng = np.random.default_rng()
    given: dict[str, Any] = {"rng": rng, "min_rows": args.min_rows}
    given["home"] = None if args.home is None else read_home(args.home)
    found = ask_sources(received, args.site, args.rows, (X, y), **given)
    if found.whole is not None:
        warn_of_training_rows(found.whole, [one.source for one in received])
    if args.responsibilities_only:
        found = replace(found, log_total=None)
    if args.mean_of is not None and args.exact:
        raise UsageError("--mean-of hides what --exact reveals; leave one of them out.")
    group = None if args.mean_of is None else groups_of_rows(found, args.mean_of, rng)
    written = found if group is None else mean_of_rows(found, group)
    written = written if args.exact else written.rounded()
    if args.exact or found.loss != "cross_entropy" or found.whole is None:
        return written, None
    labels, outcomes = np.asarray(found.whole.targets), written.at_label().outcomes
    # An attacker who knows the group cannot do better.
    outcomes = outcomes if group is None else outcomes[:, group]
    return written, (labels_named(outcomes, labels), commonest(labels))


def _can_be_inferred(table: SiteTable, exact: bool) -> str:
    """State what someone with the file and all source folders may infer about the rows."""
    if exact:
        return (
            "exact; anyone with the source folders can compute features and labels from them, so "
            "send the file only to recipients who may see the rows"
        )
    bits = bits_for_a_spy(table.loss, len(table.sources), table.n_told)
    return (
        "rounded; anyone with the source folders can infer roughly where a row lies, and up to "
        f"{ceil(bits)} bits of each row for every malicious source, and can test "
        "whether a known row may be among these"
    )
