"""Run one of the experiments: `python -m experiments NAME --seeds 10 --out results/NAME.jsonl`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from contextlib import nullcontext

from anymix.storage import replacing
from experiments.runner import STUDIES, ProgressLine, run_study
from experiments.tables import render


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the arguments, run the study and print its tables."""
    parser = ArgumentParser(prog="python -m experiments", description=__doc__, allow_abbrev=False)
    parser.add_argument("name", choices=tuple(STUDIES), help="which experiment")
    parser.add_argument("--data", metavar="FOLDER", help="data folder; else ANYMIX_DATA")
    parser.add_argument("--seeds", type=int, help="number of splits; 10, or 3 for the digits")
    parser.add_argument("--out", metavar="FILE", help="records, one JSON object per line")
    parser.add_argument("--style", choices=("text", "markdown", "latex"), default="text")
    parser.add_argument("--quiet", action="store_true", help="no progress line")
    args = parser.parse_args(arguments)
    progress = None if args.quiet else ProgressLine()
    with nullcontext() if args.out is None else replacing(args.out) as file:
        results = run_study(args.name, args.data, args.seeds, file, progress)
    sys.stdout.write(render(results, args.style))
    return 0


if __name__ == "__main__":
    sys.exit(main())
