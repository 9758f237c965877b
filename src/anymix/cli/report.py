"""anymix report: one HTML page from what stands in a model folder."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from anymix.cli.console import Console
from anymix.models import summarise_folder
from anymix.report import render


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command."""
    parser.add_argument("model", help="model folder")
    parser.add_argument("--out", default="report.html", metavar="FILE", help="page to write")
    parser.add_argument("--title", help="title of the page (default: the name of the folder)")


def run(args: Namespace, console: Console) -> int:
    """Run the command."""
    record = summarise_folder(args.model, args.title)
    Path(args.out).parent.mkdir(parents=True, exist_ok=True)
    path = render(record, args.out)
    console.result(f"wrote {path}", record)
    return 0
