"""What a certificate claims, on which ground, and what others would get."""

from __future__ import annotations

from typing import Any

from anymix.report.markup import cell, decimals, number, row, significant, table

Data = dict[str, Any]

FIGURES = (
    ("Largest excess over a source’s own model, measured", "regret", True),
    ("Worst loss, measured", "loss", False),
)
MEASURED = {"regret": "regret", "loss": "robust_loss"}


def figures(found: Data) -> list[str]:
    """Set what was measured above what is guaranteed, and say what that stands on."""
    parts = []
    for title, half, sign in FIGURES:
        value = significant(found.get(MEASURED[half]), sign)
        note = _claim(found, half, sign)
        parts.append(f"<div><dt>{title}</dt><dd>{value}<small>{note}</small></dd></div>")
    return parts


def _claim(found: Data, half: str, sign: bool) -> str:
    upper, confidence = found.get(f"{half}_upper"), found.get("confidence")
    if upper is None or confidence is None:
        return "no confidence is claimed" if found.get(f"{half}_ground") == "measured" else ""
    ground = found.get(f"{half}_ground") or ""
    how = f" ({ground})" if ground else ""
    clip = found.get("clip")
    cut = "" if clip is None else f", no row counted above {significant(clip)}"
    return f"at most {significant(upper, sign)} with {100 * confidence:g} % confidence{how}{cut}"


def beside(found: Data) -> str:
    """Lay out what chance, the plain average and each source alone lose where they are worst."""
    others = found.get("beside") or []
    if not others:
        return ""
    values = [found["robust_loss"], *(one["loss"] for one in others)]
    digits = decimals(values)
    rows = [row("anymix", [cell(number(values[0], digits), css="ours")], "ours")]
    rows += [row(one["name"], [cell(number(one["loss"], digits))]) for one in others]
    return table("On its worst source", ["On its worst source", "loss"], rows)
