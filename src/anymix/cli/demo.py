"""anymix demo: the paper's two artificial studies, small."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from anymix.cli.console import Console
from anymix.studies.demo import run as run_demo


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command."""
    parser.add_argument("--out", default="demo-output", metavar="FOLDER", help="for the pictures")


def run(args: Namespace, console: Console) -> int:
    """Run the command."""
    # The studies print their tables as they go; machines and quiet users get the paths alone.
    with redirect_stdout(StringIO() if args.json or args.quiet else sys.stdout):
        paths = run_demo(Path(args.out))
    text = "\n".join(f"wrote {path}" for path in paths)
    console.result(text, [str(path) for path in paths])
    return 0
