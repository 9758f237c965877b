"""anymix monitor: which mixture of the sources is today's traffic, and is it one at all?"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from anymix.cli.argument_types import natural, share
from anymix.cli.console import Console
from anymix.cli.outputs import saving
from anymix.cli.table_reader import Columns, read_rows
from anymix.models import add_record, read_model
from anymix.monitor import Monitor, TrafficReport


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command."""
    parser.add_argument("model", help="model folder")
    parser.add_argument("table", help="rows of today's traffic, without labels")
    parser.add_argument("--level", type=share, default=0.01, help="rate of false alarms")
    parser.add_argument(
        "--confidence", type=share, default=0.95, help="confidence of the intervals"
    )
    parser.add_argument("--seed", type=natural, default=0, help="seed of the resampling")
    parser.add_argument("--save", action="store_true", help="keep the record in the model folder")


def run(args: Namespace, console: Console) -> int:
    """Run the command; 1 means that the alarm rings."""
    with saving(args.model, args.save):
        report = watch(args)
    console.result(report.sentence, report)
    return int(report.alarm.rings)


def watch(args: Namespace) -> TrafficReport:
    """Look at the rows, and keep what was found if that is asked for."""
    saved = read_model(args.model)
    if getattr(saved.model, "novelty_", None) is None:
        raise ValueError(
            f"{args.model} was fitted from responsibilities alone; monitoring needs densities."
        )
    X, _ = read_rows(args.table, Columns.of(saved.received[0].manifest))
    monitor = Monitor.from_tables(saved.model, confidence=args.confidence, level=args.level)
    report = monitor.estimate(X, rng=args.seed)
    if args.save:
        add_record(args.model, "traffic", report, saved.sha256)
    return report
