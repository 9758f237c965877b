"""anymix monitor: estimate the mixture of new rows, test that it is one, and its loss."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix.cli.argument_types import count, natural, share, table
from anymix.cli.chosen_columns import add_choice, columns_for
from anymix.cli.console import Console
from anymix.cli.held_out import pairs
from anymix.cli.outputs import saving
from anymix.exceptions import InputError, UsageError
from anymix.exchange import join_sites, read_site
from anymix.models import SavedModel, add_record, joined_novelty, read_model
from anymix.monitor import Monitor
from anymix.tables import TableColumns, read_rows

RESAMPLES = 500


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command."""
    parser.add_argument("model", help="model folder")
    parser.add_argument("table", type=table, help="new rows, without labels")
    parser.add_argument(
        "--reference",
        nargs="+",
        action="extend",
        metavar="NAME=TABLE",
        help="new rows of each source, not used for training, to compare with "
        "instead of the held-out rows of fit",
    )
    parser.add_argument(
        "--from-sites",
        nargs="+",
        action="extend",
        metavar="FILE",
        help="site files of such rows, instead of tables",
    )
    parser.add_argument(
        "--target", help="column of the --reference tables with the label, for the expected loss"
    )
    add_choice(parser)
    parser.add_argument("--level", type=share, default=0.01, help="rate of false alarms")
    parser.add_argument(
        "--look",
        type=count,
        help="number of this test of the traffic, 1, 2, 3, …; the level is for all tests",
    )
    parser.add_argument(
        "--confidence", type=share, default=0.95, help="confidence of the intervals"
    )
    parser.add_argument("--seed", type=natural, default=0, help="seed of the resampling")
    parser.add_argument("--save", action="store_true", help="save the result in the model folder")


def run(args: Namespace, console: Console) -> int:
    """Run the command; exit code 1 means that the alarm was raised."""
    if args.level * (RESAMPLES + 1) < 1:
        raise UsageError(
            f"--level must be 1/{RESAMPLES + 1} or more, as the alarm compares the rows with "
            f"{RESAMPLES} resamples; got {args.level:g}."
        )
    if args.reference and args.from_sites:
        raise UsageError("--reference and --from-sites exclude each other; give one of them.")
    with saving(args.model, args.save):
        saved = read_model(args.model)
        if len(saved.received) == 1:
            raise InputError(
                args.model,
                "has one source, so there is no mixture to estimate; fit two or more sources",
            )
        if args.reference and getattr(saved.model, "novelty_", None) is None:
            raise ValueError(
                f"{args.model} was fitted without densities (--responsibilities-only), which the "
                "alarm "
                "needs; leave --reference out to see the mixture, or fit the model from rows, "
                "or from site files written with --exact."
            )
        columns = columns_for(args, saved.received)
        X, _ = read_rows(args.table, replace(columns, target=None))
        settings = {"confidence": args.confidence, "level": args.level, "n_bootstrap": RESAMPLES}
        with console.working("estimating the mixture"):
            names = [str(name) for name in saved.model.source_names_]
            known = reference(args, names, columns)
            monitor = (
                Monitor(saved.model, *known, **settings)
                if known
                else Monitor.from_tables(saved.model, *reference_tables(args, saved), **settings)
            )
            report = monitor.estimate(X, rng=args.seed, look=args.look)
        if args.save:
            add_record(args.model, "traffic", report, saved.sha256)
    lost = report.expected_loss
    console.result("\n".join([report.sentence, *([lost.sentence] if lost else [])]), report)
    return int(report.alarm.rings)


def reference_tables(args: Namespace, saved: SavedModel) -> tuple[Any, ...]:
    """Return the tables of --from-sites and, for rounded files, their quantiles."""
    if not args.from_sites:
        return ()
    sites = [read_site(path) for path in args.from_sites]
    if trained := [site.site for site in sites if site.cross_fitted]:
        raise InputError(
            f"the file of {trained[0]!r}",
            "is of training rows (--home), which differ from new rows; evaluate held-out rows",
        )
    tables = join_sites(sites, saved.received)
    if tables.has_densities:
        return (tables,)
    novelty = joined_novelty(sites, [str(name) for name in saved.model.source_names_])
    if novelty is None:
        raise InputError(
            "--from-sites",
            "has files without quantiles; evaluate the rows again without --responsibilities-only",
        )
    return tables, novelty.totals


def reference(
    args: Namespace, names: Sequence[str], columns: TableColumns
) -> tuple[Any, NDArray[Any], Any] | None:
    """Return the rows of --reference, their sources and, with --target, their labels."""
    if not args.reference:
        if args.target:
            raise UsageError("--target is for the rows of --reference; give them, or leave it out.")
        return None
    given = pairs(args.reference, "--reference")
    if sorted(given) != sorted(names):
        raise UsageError(
            f"--reference takes rows of {', '.join(names)}, each once; got {', '.join(given)}."
        )
    parts = [read_rows(given[name], columns) for name in names]
    X = [row for part, _ in parts for row in part]
    sizes = [len(part) for part, _ in parts]
    y = np.concatenate([labels for _, labels in parts]) if args.target else None
    return X if columns.text else np.asarray(X), np.repeat(names, sizes), y
