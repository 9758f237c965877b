"""anymix compare: the model beside each source, their average and the likeliest source."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from anymix.cli.argument_types import share
from anymix.cli.console import Console
from anymix.cli.judging import add_held_out, compare_tables, held_out_tables
from anymix.cli.model_folder import read_model
from anymix.cli.saving import add_save, save
from anymix.cli.seen_rows import note_on, seen_sources


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command."""
    parser.add_argument("model", help="model folder")
    add_held_out(parser)
    parser.add_argument("--confidence", type=share, default=0.95, help="of the intervals")
    add_save(parser)


def run(args: Namespace, console: Console) -> int:
    """Run the command."""
    fitted = read_model(args.model)
    tables = held_out_tables(args, fitted.audited, console)
    comparison = compare_tables(tables, fitted.model, args.confidence)
    save(args, "comparison.json", comparison)
    console.result(comparison.table() + note_on(seen_sources(tables, fitted)), comparison)
    return 0
