"""What sets and intervals cover: the part of the page on answers that admit doubt."""

from __future__ import annotations

from typing import Any

from anymix.report.markup import cell, decimals, number, percent, prose, row, section, table

Data = dict[str, Any]


def coverage(record: Data) -> str:
    """Show what sets or intervals promise, and what they cover on each source."""
    found = record.get("sets")
    if found is None:
        return ""
    labels = found.get("of", "labels") == "labels"
    what = "a set of labels" if labels else "an interval"
    lead = (
        f"Instead of one answer the model can give {what} that holds the truth "
        f"{percent(1 - found['alpha'])} of the time, whatever the mixture. Each held-out row is "
        "judged by the others, and by the part of the model that was learned without it."
    )
    digits = 2 if labels else decimals(found["size"])
    rows = [
        row(name, [cell(f"{int(n)}"), cell(_share(covered)), cell(number(size, digits))])
        for name, n, covered, size in zip(
            record["sources"], found["rows"], found["coverage"], found["size"], strict=True
        )
    ]
    head = [
        "Source",
        "rows",
        "covered",
        "mean number of labels" if labels else "mean width, in the target’s unit",
    ]
    body = f'<p class="note">{prose(found["sentence"])}</p>'
    body += table("Coverage and size on each source", head, rows)
    return section("sets", "How sure is an answer?", lead, body)


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}\u00a0%"
