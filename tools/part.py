"""Run some rows of a study alone and put them into its records.

python tools/part.py run sentiment part.jsonl --methods KMM --seeds 0 1 --data FOLDER
python tools/part.py merge results/sentiment.jsonl part.jsonl
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence

from experiments import ProgressLine
from experiments.parts import merge, run_part


def main(given: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = ArgumentParser(description="Some rows of a study, alone.")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run some rows of a study")
    run.add_argument("study")
    run.add_argument("out")
    run.add_argument("--methods", nargs="+", required=True)
    run.add_argument("--seeds", nargs="+", type=int, required=True)
    run.add_argument("--data")
    join = commands.add_parser("merge", help="put them into the records")
    join.add_argument("records")
    join.add_argument("parts", nargs="+")
    args = parser.parse_args(given)
    if args.command == "run":
        run_part(args.study, args.methods, args.seeds, args.data, args.out, ProgressLine())
        return
    merge(args.records, args.parts)


if __name__ == "__main__":
    main()
