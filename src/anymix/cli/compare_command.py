"""anymix compare: the model against each source, their average, and a model of pooled rows."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix.cli.argument_types import add_measure, share
from anymix.cli.chosen_columns import columns_for
from anymix.cli.console import Console
from anymix.cli.held_out import add_held_out, held_out_sites, pairs
from anymix.cli.outputs import saving
from anymix.estimators import compare_fitted_with_pooled
from anymix.exceptions import UsageError
from anymix.models import add_record, compare_sites, note_on, read_model
from anymix.tables import read_rows


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command."""
    parser.add_argument("model", help="model folder")
    add_held_out(parser)
    parser.add_argument(
        "--confidence", type=share, default=0.95, help="confidence of the intervals"
    )
    add_measure(parser, "measure to compare by")
    parser.add_argument(
        "--pooled",
        nargs="+",
        action="extend",
        metavar="TABLE",
        help="training rows of all sources in one place: compare with a model trained on them, too",
    )
    parser.add_argument("--save", action="store_true", help="save the result in the model folder")


def run(args: Namespace, console: Console) -> int:
    """Run the command."""
    if args.pooled:
        return _with_pooled(args, console)
    with saving(args.model, args.save):
        saved = read_model(args.model)
        sites = held_out_sites(args, saved.received, console)
        with console.working("comparing"):
            comparison, seen = compare_sites(saved, sites, args.confidence, args.measure)
        if args.save:
            add_record(args.model, "comparison", comparison, saved.sha256)
    console.result(comparison.said() + note_on(seen), comparison)
    return 0


def _with_pooled(args: Namespace, console: Console) -> int:
    """Compare with a model of the rows of --pooled, which are all in one place."""
    if args.save or not args.held_out:
        raise UsageError("--pooled compares rows of --held-out; leave --save and --from-sites out.")
    saved = read_model(args.model)
    columns = columns_for(args, saved.received)
    given = pairs(args.held_out)
    with console.working("training the pooled model"):
        train = [read_rows(path, columns) for path in args.pooled]
        new = [read_rows(path, columns) for path in given.values()]
        domain = np.repeat(list(given), [len(y) for _, y in new])
        comparison = compare_fitted_with_pooled(
            saved.model, joined(train), (*joined(new), domain), args.measure, args.confidence
        )
    console.result(str(comparison), comparison)
    return 0


def joined(tables: Sequence[tuple[Any, Any]]) -> tuple[Any, NDArray[Any]]:
    """Join rows and labels of several tables."""
    X, y = zip(*tables, strict=True)
    return np.concatenate(X), np.concatenate(y)
