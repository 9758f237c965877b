"""anymix study: one of the paper's experiments."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from contextlib import nullcontext

from anymix.cli.argument_types import count
from anymix.cli.console import Console
from anymix.cli.outputs import add_force, is_study, output
from anymix.studies import STUDIES, ProgressLine, render, run_study


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command."""
    parser.add_argument("name", choices=tuple(STUDIES), help="which experiment")
    parser.add_argument(
        "--data", metavar="FOLDER", help="folder of the data; else ANYMIX_DATA, else downloads"
    )
    parser.add_argument(
        "--seeds", type=count, help="number of splits; 10 by default, 3 for the digits"
    )
    parser.add_argument(
        "--out", metavar="FILE", help="file for the records, one JSON object per line"
    )
    parser.add_argument(
        "--style", choices=("text", "markdown", "latex"), default="text", help="style of the tables"
    )
    add_force(parser, "records of a study")


def run(args: Namespace, console: Console) -> int:
    """Run the command."""
    progress = None if args.quiet else ProgressLine()
    given = [args.data] if args.data else []
    kept = nullcontext() if args.out is None else output(args.out, given, args.force, is_study)
    with kept as file:
        results = run_study(args.name, args.data, args.seeds, file, progress)
    console.result(render(results, args.style).rstrip("\n"), [one.to_dict() for one in results])
    return 0
