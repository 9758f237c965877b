"""docs/results.md, docs/evidence.md and their pictures from the records: `python tools/results.py`.

The words on a study stand beside its records, in results/NAME.md; a line of them that begins with
``{duels`` is replaced by what the records say, e.g. ``{duels DW; clean}``.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from anymix.studies.claims import duels
from anymix.studies.figures import curves, draw_curves, draw_domains
from anymix.studies.runner import STUDIES, Result, clock, read_records
from anymix.studies.synthetic import paper_classification_domains
from anymix.studies.tables import render
from tools import evidence

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "results"
PAGE = ROOT / "docs" / "results.md"
PICTURES = ROOT / "docs" / "images"

HEAD = """# Results

Every table and figure of the paper with our value beside it; this page is written from the records
in `results/` by `make docs`, and a test fails when the two disagree.  Mean ± standard deviation
over seeds.  A star marks a privileged method: it sees the target's rows or mixture, or all rows
pooled.  Protocols: *as published* follows the paper; *clean* is the paper's method with no test row
seen in training; *beyond* is our own.
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
    made = (
        f"`{head['command']}`, version {head['version']}, {head['date']}, "
        f"{_time(head)}, {len(results)} records."
    )
    words = RECORDS / f"{name}.md"
    prose = words.read_text(encoding="utf-8") if words.exists() else ""
    prose = re.sub(r"^\{duels (.+)\}$", lambda m: _duels(m[1], results), prose, flags=re.MULTILINE)
    pictures = [f"![{table}](images/{picture(name, table)})\n" for table in curves(results)]
    parts = [f"## {name.replace('_', ' ').capitalize()}\n", f"{made}\n", prose, *pictures]
    return "\n".join([part for part in parts if part] + [render(results, "markdown")])


def _time(head: dict[str, Any]) -> str:
    processor = head.get("processor_seconds")
    return clock(head["seconds"]) + (f" ({clock(processor)} of processor)" if processor else "")


def _duels(given: str, results: list[Result]) -> str:
    """Compare "DW, calibrated; beyond" with all that is not privileged in its or another protocol.

    The form is `METHOD; PROTOCOL` or `METHOD; PROTOCOL; PROTOCOL OF THE RIVALS`.
    """
    method, protocol, *other = (part.strip() for part in given.split(";"))
    against = other[0] if other else protocol
    rivals = dict.fromkeys(
        (r.method, r.protocol)
        for r in results
        if r.protocol == against and r.table.startswith("Table") and r.method != "λ-comb"
    )
    rivals.pop((method, protocol), None)
    better = results[0].metric != "MSE"
    found = duels(results, (method, protocol), list(rivals), better)
    return "\n".join(f"- {duel.sentence}." for duel in found)


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
