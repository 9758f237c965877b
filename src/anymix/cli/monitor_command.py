"""anymix monitor: which mixture is today's traffic, is it one at all, what does it cost?"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from anymix.cli.argument_types import count, natural, share, table
from anymix.cli.chosen_columns import add_choice, columns_for
from anymix.cli.console import Console
from anymix.cli.outputs import saving
from anymix.exceptions import InputError, UsageError
from anymix.models import add_record, read_model
from anymix.monitor import Monitor
from anymix.tables import read_rows

RESAMPLES = 500


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command."""
    parser.add_argument("model", help="model folder")
    parser.add_argument("table", type=table, help="rows of today's traffic, without labels")
    add_choice(parser)
    parser.add_argument("--level", type=share, default=0.01, help="rate of false alarms")
    parser.add_argument(
        "--look",
        type=count,
        help="which look at traffic it is, 1, 2, 3, …; all looks together keep the level",
    )
    parser.add_argument(
        "--confidence", type=share, default=0.95, help="confidence of the intervals"
    )
    parser.add_argument("--seed", type=natural, default=0, help="seed of the resampling")
    parser.add_argument("--save", action="store_true", help="keep the record in the model folder")


def run(args: Namespace, console: Console) -> int:
    """Run the command; 1 means that the alarm rings."""
    if args.level * (RESAMPLES + 1) < 1:
        raise UsageError(
            f"--level must be 1/{RESAMPLES + 1} or more, as the alarm compares the rows with "
            f"{RESAMPLES} resamples; got {args.level:g}."
        )
    with saving(args.model, args.save):
        saved = read_model(args.model)
        if len(saved.received) == 1:
            raise InputError(
                args.model,
                "is of one source, so there is no mixture to estimate; fit two sources or more",
            )
        if getattr(saved.model, "novelty_", None) is None:
            raise ValueError(
                f"{args.model} was fitted from responsibilities alone, and monitoring needs "
                "densities; fit it from rows, or from sites' files that were written with --exact."
            )
        X, _ = read_rows(args.table, columns_for(args, saved.received))
        settings = {"confidence": args.confidence, "level": args.level, "n_bootstrap": RESAMPLES}
        with console.working("estimating the mixture"):
            report = Monitor.from_tables(saved.model, **settings).estimate(
                X, rng=args.seed, look=args.look
            )
        if args.save:
            add_record(args.model, "traffic", report, saved.sha256)
    lost = report.expected_loss
    console.result("\n".join([report.sentence, *([lost.sentence] if lost else [])]), report)
    return int(report.alarm.rings)
