"""anymix report: write one HTML page from a model folder."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from anymix.cli.argument_types import add_measure, name
from anymix.cli.console import Console
from anymix.cli.outputs import check_apart, check_suffix, output
from anymix.models import summarise_folder
from anymix.report import render


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command."""
    parser.add_argument("model", help="model folder")
    parser.add_argument(
        "--out", type=name, default="report.html", metavar="FILE", help="page to write"
    )
    parser.add_argument("--title", help="title of the page (default: the name of the folder)")
    parser.add_argument(
        "--verify",
        action="store_true",
        help="recompute the folder's evidence from its tables, and refuse it if they disagree",
    )
    add_measure(parser, "measure of the verdict and the comparison")
    parser.add_argument("--force", action="store_true", help="replace an existing page")


def run(args: Namespace, console: Console) -> int:
    """Run the command."""
    check_apart(args.out, [args.model])
    check_suffix(args.out, "an HTML page", (".html", ".htm"))
    with output(args.out, [args.model], args.force) as temporary:
        record = summarise_folder(args.model, args.title, args.measure, args.verify)
        render(record, temporary)
    console.result(f"wrote {args.out}", record, args.out)
    return 0
