"""anymix compare: the model against each source, their average and the likeliest source."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from anymix.cli.argument_types import add_measure, share
from anymix.cli.console import Console
from anymix.cli.held_out import add_held_out, held_out_sites
from anymix.cli.outputs import saving
from anymix.models import add_record, compare_sites, note_on, read_model


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command."""
    parser.add_argument("model", help="model folder")
    add_held_out(parser)
    parser.add_argument(
        "--confidence", type=share, default=0.95, help="confidence of the intervals"
    )
    add_measure(parser, "measure to compare by")
    parser.add_argument("--save", action="store_true", help="save the result in the model folder")


def run(args: Namespace, console: Console) -> int:
    """Run the command."""
    with saving(args.model, args.save):
        saved = read_model(args.model)
        sites = held_out_sites(args, saved.received, console)
        with console.working("comparing"):
            comparison, seen = compare_sites(saved, sites, args.confidence, args.measure)
        if args.save:
            add_record(args.model, "comparison", comparison, saved.sha256)
    console.result(comparison.said() + note_on(seen), comparison)
    return 0
