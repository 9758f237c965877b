"""anymix study: one of the paper's experiments."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from contextlib import nullcontext
from pathlib import Path

from anymix._json import plain_json
from anymix.cli.argument_types import count, name
from anymix.cli.console import Console
from anymix.cli.outputs import add_force, output
from anymix.studies import STUDIES, ProgressLine, render, run_study

HEADER = {"study", "command", "version", "python", "numpy", "date", "seconds"}
LONGEST_HEADER = 2**16


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
        "--out", type=name, metavar="FILE", help="file for the records, one JSON object per line"
    )
    parser.add_argument(
        "--style", choices=("text", "markdown", "latex"), default="text", help="style of the tables"
    )
    add_force(parser, "records of a study")


def is_study(path: Path) -> bool:
    """Whether a file begins with the header of a study's records."""
    try:
        with open(path, "rb") as file:
            first = plain_json(file.readline(LONGEST_HEADER))
    except ValueError:
        return False
    if (
        not isinstance(first, dict)
        or not set(first) >= HEADER
        or str(first["study"]) not in STUDIES
    ):
        return False
    return str(first["command"]).startswith(f"anymix study {first['study']} ")


def run(args: Namespace, console: Console) -> int:
    """Run the command."""
    progress = None if args.quiet else ProgressLine()
    given = [args.data] if args.data else []
    kept = nullcontext() if args.out is None else output(args.out, given, args.force, is_study)
    with kept as file:
        results = run_study(args.name, args.data, args.seeds, file, progress)
    tables = render(results, args.style).rstrip("\n")
    console.result(tables, [one.to_dict() for one in results], args.out)
    return 0
