"""Small pieces of HTML.  Every string that came from outside passes through `esc`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from anymix.core import MetricUnit
from anymix.core import unit_of as measured


def esc(text: object) -> str:
    """Escape for element content and quoted attributes."""
    return escape(str(text), quote=True)


def prose(text: object) -> str:
    """Escape a sentence, and keep its numbers and their per cent signs on one line."""
    return esc(text).replace(" %", "\u00a0%")


def remark(text: object) -> str:
    """Return a sentence in small print."""
    return f'<p class="note">{prose(text)}</p>'


def decimals(values: Iterable[Any]) -> int:
    """How many decimals show three digits of a usual value: one choice for a whole table."""
    flat = np.abs(np.array([v for v in values if v], dtype=float))
    if not flat.size:
        return 3
    return int(np.clip(2 - np.floor(np.log10(np.median(flat))), 0, 8))


def number(value: float | None, digits: int, sign: bool = False) -> str:
    """Write a number with a true minus; a missing one is a dash."""
    if value is None:
        return "–"
    text = f"{value:{'+' if sign else ''}.{digits}f}"
    return text.replace("-", "−")


def significant(value: float | None, sign: bool = False) -> str:
    """Write four significant digits, as the sentence of a certificate does."""
    if value is None:
        return "–"
    return f"{value:{'+' if sign else ''}.4g}".replace("-", "−")


def percent(value: float) -> str:
    """Write a share."""
    return f"{100 * value:.0f} %"


def flat(table: Iterable[Iterable[Any]]) -> list[Any]:
    """Join the rows of a table."""
    return [value for row in table for value in row]


def table(caption: str, head: Sequence[str], rows: Iterable[str]) -> str:
    """Lay out rows under a head; wide tables scroll inside their own frame, also by keyboard."""
    columns = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{esc(caption)}">'
        f'<table><caption class="hidden">{esc(caption)}</caption>'
        f"<thead><tr>{columns}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
        '<p class="cue" aria-hidden="true">More columns: swipe or scroll sideways →</p>'
    )


def row(name: str, cells: Iterable[str], css: str = "") -> str:
    """Return a table row: its name, escaped, then cells that are HTML already."""
    mark = f' class="{css}"' if css else ""
    return f'<tr{mark}><th scope="row" title="{esc(name)}">{esc(name)}</th>{"".join(cells)}</tr>'


def cell(text: str, *, heat: float | None = None, note: str = "", css: str = "") -> str:
    """Return a table cell; heat in 0..1 shades it, a note is the small print under its number."""
    mark = f' class="{css}"' if css else ""
    style = "" if heat is None else f' style="--amount:{round(100 * heat)}%"'
    small = f"<small>{note}</small>" if note else ""
    return f"<td{mark}{style}>{text}{small}</td>"


def bar(share: float, css: str = "") -> str:
    """Return a table cell with a bar that fills a share of it."""
    kind = f"bar {css}".rstrip()
    return f'<td class="wide"><span class="{kind}" style="--size:{100 * share:.1f}%"></span></td>'


def heats(values: Sequence[float | None]) -> list[float]:
    """Scale to 0..1, for shades; equal values have none."""
    numbers = [v for v in values if v is not None]
    low, high = min(numbers, default=0.0), max(numbers, default=0.0)
    if high <= low:
        return [0.0] * len(values)
    return [0.0 if v is None else (v - low) / (high - low) for v in values]


def section(anchor: str, title: str, lead: str, body: str) -> str:
    """Return a titled part of the page; `lead` is plain text that says how to read it."""
    return (
        f'<section id="{anchor}" aria-labelledby="{anchor}-title"><h2 id="{anchor}-title">'
        f'{esc(title)}</h2><p class="lead">{prose(lead)}</p>{body}</section>'
    )


class Unit(MetricUnit):
    """A unit with formatting: shares are written in per cent, their differences in points."""

    @property
    def scale(self) -> float:
        """What a value is multiplied by to be shown."""
        return 100.0 if self.share else 1.0

    @property
    def gap_unit(self) -> str:
        """What a difference is in, for a sentence."""
        return "points" if self.share else self.short

    def digits(self, values: Iterable[Any]) -> int:
        """How many decimals serve all these values."""
        digits = decimals(values)
        return max(digits - 3, 1) if self.share else digits

    def text(self, value: float | None, digits: int, sign: bool = False) -> str:
        r"""Write a value for a cell of a table whose head tells the unit."""
        if value is None:
            return number(None, digits)
        return number(self.scale * value, digits, sign) + "\u00a0%" * self.share

    def gap(self, value: float | None, digits: int) -> str:
        """Write a difference for a cell: differences of shares are in percentage points."""
        return number(None if value is None else self.scale * value, digits, True)

    def said(self, value: float | None, digits: int) -> str:
        r"""Write a value with its unit, for a sentence."""
        return self.text(value, digits) + (f"\u00a0{self.short}" if self.short else "")


def unit_of(measure: str | None) -> Unit:
    """Return the unit of a measure or loss by its name; one of the user's own has none."""
    return Unit(*measured(measure))
