"""What a certificate claims, on which ground, and what others would get."""

from __future__ import annotations

from typing import Any

from anymix.report.markup import bar, cell, esc, prose, row, significant, table
from anymix.report.units import Unit, unit_of

Data = dict[str, Any]

FIGURES = (
    ("Largest excess over a source’s own model, measured", "regret", True),
    ("Worst loss, measured", "loss", False),
)
MEASURED = {"regret": "regret", "loss": "robust_loss"}


def certified_unit(record: Data) -> Unit:
    """Return what the certificate is measured in: its own measure, or the model's loss."""
    return unit_of(record["certificate"].get("loss") or record.get("loss"))


def figures(record: Data) -> list[str]:
    """Set what was measured above what is guaranteed, and say what that stands on."""
    found, unit, parts = record["certificate"], certified_unit(record), []
    for title, half, sign in FIGURES:
        value = _written(found.get(MEASURED[half]), unit, sign)
        note, head = _claim(found, half, sign, unit), f"{title}: {unit.head}"
        parts.append(f"<div><dt>{esc(head)}</dt><dd>{value}<small>{note}</small></dd></div>")
    return parts


def _written(value: float | None, unit: Unit, sign: bool = False) -> str:
    if value is None:
        return significant(None)
    return significant(unit.scale * value, sign) + "\u00a0%" * unit.share


def _claim(found: Data, half: str, sign: bool, unit: Unit) -> str:
    upper, confidence = found.get(f"{half}_upper"), found.get("confidence")
    if upper is None or confidence is None:
        return "no confidence is claimed" if found.get(f"{half}_ground") == "measured" else ""
    ground = found.get(f"{half}_ground") or ""
    how = f" ({ground})" if ground else ""
    clip = found.get("clip")
    cut = "" if clip is None else f", no row counted above {_written(clip, unit)}"
    most = _written(upper, unit, sign)
    return f"at most {most} with {100 * confidence:g} % confidence{how}{cut}"


def clipped_note(record: Data) -> str:
    """Say why what was measured may stand above what is guaranteed: it counts every row whole."""
    found, unit = record["certificate"], certified_unit(record)
    clip = found.get("clip")
    both = [(found.get(MEASURED[half]), found.get(f"{half}_upper")) for half in MEASURED]
    if clip is None or not any(None not in one and one[0] > one[1] for one in both):
        return ""
    said = (
        "What was measured stands above what is guaranteed, and both are right: the measured loss "
        f"counts every row in full, the bound no row for more than {_written(clip, unit)}. The few "
        "rows that lose more make the difference; how rare such rows are, no bound can tell."
    )
    return f'<p class="aside">{prose(said)}</p>'


def beside(record: Data) -> str:
    """Lay out what chance, the plain average and each source alone lose where they are worst."""
    found = record["certificate"]
    others = found.get("beside") or []
    if not others:
        return ""
    unit, values = certified_unit(record), [found["robust_loss"], *(o["loss"] for o in others)]
    digits = unit.digits(values)
    names, most = ["anymix", *(one["name"] for one in others)], max(values) or 1.0
    rows = []
    for name, value in zip(names, values, strict=True):
        css = "ours" if name == "anymix" else ""
        cells = [cell(unit.text(value, digits), css=css), bar(value / most, css or "other")]
        rows.append(row(name, cells, css))
    return table("On its worst source", ["On its worst source", esc(unit.head), ""], rows)
