"""anymix monitor: which mixture of the sources is today's traffic, and is it one at all?"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

import numpy as np

from anymix.cli.argument_types import natural, share
from anymix.cli.console import Console
from anymix.cli.model_folder import FittedFolder, read_model
from anymix.cli.saving import add_save, save
from anymix.cli.table_reader import Columns, read_rows
from anymix.monitor import Scores, TrafficReport, describe, estimate_mixture, mixture_alarm


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command."""
    parser.add_argument("model", help="model folder")
    parser.add_argument("table", help="rows of today's traffic, without labels")
    parser.add_argument("--level", type=share, default=0.01, help="rate of false alarms")
    parser.add_argument("--confidence", type=share, default=0.95, help="of the intervals")
    parser.add_argument("--seed", type=natural, default=0, help="of the resampling")
    add_save(parser)


def run(args: Namespace, console: Console) -> int:
    """Run the command; 1 means that the alarm rings."""
    fitted = read_model(args.model)
    if not fitted.has_densities:
        raise ValueError(f"{args.model} was fitted from responsibilities alone: no monitoring.")
    X, _ = read_rows(args.table, Columns.of(fitted.audited[0].manifest))
    report = watch(fitted, X, args)
    save(args, "traffic.json", report)
    console.result(report.sentence, report)
    return int(report.alarm.rings)


def watch(fitted: FittedFolder, X: object, args: Namespace) -> TrafficReport:
    """Compare the rows with the held-out ones, of which the model folder has the tables."""
    model, tables = fitted.model, fitted.tables
    here = Scores(model.log_responsibilities(X), model.novelty(X))
    known = Scores(
        model.weighing_.transform(tables.log_masses), model.novelty_.score(tables.log_masses)
    )
    domain, rng = np.asarray(tables.sample_domain), np.random.default_rng(args.seed)
    estimate = estimate_mixture(
        here.log_r, known.log_r, domain, confidence=args.confidence, rng=rng
    )
    alarm = mixture_alarm(here, known, domain, args.level, rng=rng)
    names = tuple(str(name) for name in model.source_names_)
    return TrafficReport(estimate, alarm, names, describe(estimate, alarm, names))
