"""Who moves whom: the part of the page that names a site or source which harms others."""

from __future__ import annotations

from typing import Any

from anymix.report.diagnostics import heat_table
from anymix.report.markup import decimals, prose, section
from anymix.report.units import unit_of

Data = dict[str, Any]
KINDS = {"rows": "the rows of", "sources": "the source"}


def influence(record: Data) -> str:
    """Show what the loss of each source owes to each other one, and say what stands out."""
    found = record.get("influence")
    if found is None:
        return ""
    said = found.get("sentences") or []
    words = " ".join(said) or "No site and no source moves the loss of another by much."
    css = "alarm" if said else "calm"
    body = f'<p class="status {css}" role="status">{prose(words)}</p>'
    for kind, who in KINDS.items():
        body += f'<p class="note">Loss (columns) owed to {who} (rows):</p>{_table(record, kind)}'
    lead = (
        f"How much of the loss ({unit_of(record.get('loss')).head}) on the rows of each source "
        "(columns) is owed to another one (rows): "
        "z and the calibration are learned once more without its rows, and without it altogether. "
        "Positive is harm."
    )
    return section("influence", "Who moves whom", lead, body)


def _table(record: Data, kind: str) -> str:
    harm, losses = record["influence"][kind], record["influence"]["losses"]
    shades = [
        [min(max(value / (losses[k] or 1.0), 0.0), 1.0) for k, value in enumerate(line)]
        for line in harm
    ]
    return heat_table(
        record, f"Loss owed to {KINDS[kind]}", harm, shades, None, decimals(losses) + 1
    )
