"""Who hears whom: the part of the page on sources that consult each other."""

from __future__ import annotations

from typing import Any

from anymix.report.diagnostics import heat_table
from anymix.report.markup import prose, section

Data = dict[str, Any]


def consulting(record: Data) -> str:
    """Show how each source takes what each model says, and what that has brought at home."""
    found = record.get("consulting")
    if found is None:
        return ""
    lead = (
        "Before it speaks, each source (columns) hears the models of all (rows), and takes each "
        "with the weight that it has learned on its own held-out rows. The loss at home is "
        "measured on rows that the weights have not seen."
    )
    heard = [list(column) for column in zip(*found["weights"], strict=True)]
    largest = max((abs(value) for line in heard for value in line), default=1.0) or 1.0
    shades = [[min(max(value / largest, 0.0), 1.0) for value in line] for line in heard]
    body = f'<p class="note">{prose(" ".join(found.get("sentences") or []))}</p>'
    body += heat_table(record, "Weight of each model for each source", heard, shades, None, 2)
    return section("consulting", "Who hears whom", lead, body)
