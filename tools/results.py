"""docs/results.md, docs/evidence.md and their pictures from the records: `python tools/results.py`.

The text on a study is in results/NAME.md.  What is in braces there is replaced by what the records
say, e.g. ``{duels DW; clean}``: see `experiments.claim_lines`.
Words that compare methods on their own are refused: see `tools.words`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from experiments.claim_lines import SAY
from experiments.figures import curves, draw_curves, draw_domains
from experiments.runner import STUDIES, Result, clock, read_records
from experiments.synthetic import paper_classification_domains
from experiments.tables import render
from tools import evidence, words

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "results"
PAGE = ROOT / "docs" / "results.md"
PICTURES = ROOT / "docs" / "images"

HEAD = """# Results

Every table and figure of the paper with our values, written by `make docs` from the records in
`results/`; a test fails when page and records disagree. Numbers are mean ± standard deviation over
seeds, with the paper's in brackets; those of the pictures are in the records. A star marks a
privileged method, which uses the target's rows or mixture, or all rows pooled; it is compared like
the others. Protocols: *as published* follows the paper; *clean* is the paper's method with no test
row seen in training; *beyond* is our own.

Every sentence that compares two methods is made from the records. A gain is the mean over seeds of
their paired difference, positive where the method named first is the better one, and ± is its
standard error over seeds, s/√n. A column is *won* or *lost*, a method *better* or *worse*, if the
gain is beyond two standard errors; within them the two are *level*. Splits share rows, so these
errors are rather too small; by chance alone, two equal methods are told apart in about one case of
five with three seeds and one of thirteen with ten. A column in two tables counts once. The column
*mean* is not counted but reported as *the mean*; where a table has none, the mean is over all
columns.
"""


def sections() -> list[tuple[dict[str, Any], list[Result]]]:
    """Return header and records of each file, in the order of the studies.

    The evidence is not of the paper, and has a page of its own.
    """
    paths = [RECORDS / f"{name}.jsonl" for name in STUDIES if name != "evidence"]
    return [read_records(path) for path in paths if path.exists()]


def page() -> str:
    """Return the text of the page."""
    return "\n".join([HEAD, *(_section(*section) for section in sections())])


def _section(head: dict[str, Any], results: list[Result]) -> str:
    name = head["study"]
    made = f"`{head['command']}`, {_made(head)}, {len(results)} records.{_parts(head)}"
    prose = (RECORDS / f"{name}.md").read_text(encoding="utf-8")
    words.check(name, prose)
    drawn = curves(results)
    pictures = "\n".join(f"![{table}](images/{picture(name, table)})" for table in drawn)
    shown = [pictures + "\n"] if drawn else []
    parts = [f"## {name.replace('_', ' ').capitalize()}\n", f"{made}\n", fill(prose, results)]
    tables = [record for record in results if record.table not in drawn]
    return "\n".join([*parts, *shown, render(tables, "markdown")])


def fill(prose: str, results: list[Result]) -> str:
    """Put what the records say in the place of what stands in braces."""

    def say(found: re.Match[str]) -> str:
        if found[1] not in SAY:
            raise ValueError(f"{found[0]} is none of {', '.join(SAY)}; see claim_lines.py.")
        return SAY[found[1]](results, " ".join(found[2].split()))

    return re.sub(r"\{(\w+)\s([^}]+)\}", say, prose)


def _made(head: dict[str, Any]) -> str:
    return f"version {head['version']}, {head['date']}, {_time(head)}"


def _parts(head: dict[str, Any]) -> str:
    """Say which rows were run apart from the rest."""
    return "".join(
        f" The rows {' and '.join(f'*{m}*' for m in part['methods'])} were run apart, "
        f"{len(part['of_seeds'])} splits: {_made(part)}."
        for part in head.get("parts", [])
    )


def _time(head: dict[str, Any]) -> str:
    processor = head.get("processor_seconds")
    return clock(head["seconds"]) + (f" ({clock(processor)} of processor)" if processor else "")


def picture(study: str, table: str) -> str:
    """Return the file name of a table's picture."""
    return f"{study}-{re.sub(r'[^a-z0-9]+', '-', table.lower()).strip('-')}.png"


def main() -> None:
    """Write both pages and the pictures."""
    PICTURES.mkdir(exist_ok=True)
    for head, results in sections():
        for table in curves(results):
            draw_curves(results, table, PICTURES / picture(head["study"], table))
    domains = paper_classification_domains(np.random.default_rng(0))
    draw_domains(domains, 100, PICTURES / "artificial-fig-3-domains.png")
    PAGE.write_text(page(), encoding="utf-8")
    evidence.write()
    sys.stdout.write(f"wrote {PAGE} and {evidence.PAGE}\n")


if __name__ == "__main__":
    main()
