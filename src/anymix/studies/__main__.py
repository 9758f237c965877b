"""`python -m anymix.studies NAME`: run a study, print its tables, keep its records."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from anymix.studies.fetch import DataNotFoundError
from anymix.studies.frame import STUDIES, ProgressLine, run_study
from anymix.studies.tables import render


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse, run, print."""
    parser = argparse.ArgumentParser(prog="python -m anymix.studies", description=__doc__)
    parser.add_argument("name", choices=STUDIES, help="which study")
    parser.add_argument("--data", help="folder of the data (default: ANYMIX_DATA, else download)")
    parser.add_argument("--seeds", type=int, default=10, help="how many splits (default: 10)")
    parser.add_argument("--out", help="file for the records, one JSON object a line")
    parser.add_argument("--style", choices=("text", "markdown", "latex"), default="text")
    given = parser.parse_args(arguments)
    try:
        results = run_study(given.name, given.data, given.seeds, given.out, ProgressLine())
    except DataNotFoundError as error:
        raise SystemExit(str(error)) from None
    sys.stdout.write(render(results, given.style))


if __name__ == "__main__":
    main()
