"""HTML cards for notebooks: they load nothing, use the page's colours and escape all text.

A part of a card is made by `paragraph`, `block`, `grid`, `bars` or `folded`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from anymix.exceptions import visible

# Grey at half strength is seen on white and on black.
LINE = "1px solid rgba(128,128,128,.5)"
BOX = (
    f"border:{LINE};border-radius:6px;padding:8px 12px;margin:4px 0;max-width:60em;overflow-x:auto"
)
CELL = "padding:2px 10px;text-align:right;color:inherit;background:transparent"
NAME = "padding:2px 10px 2px 0;text-align:left;color:inherit;background:transparent"
BAR = "display:inline-block;height:.7em;margin-right:6px;background:#2a6fbb;border-radius:2px"
# Longer vectors, and tables, are for those who ask for them.
MOST_NUMBERS, LONGEST_BAR = 12, 120


def word(value: object) -> str:
    """Escape a name or a sentence.

    >>> word("<b>north</b> & co")
    '&lt;b&gt;north&lt;/b&gt; &amp; co'
    """
    return escape(visible(value))


def card(title: object, *parts: str) -> str:
    """Frame parts, below a title."""
    return f'<div style="{BOX}"><strong>{word(title)}</strong>{"".join(parts)}</div>'


def paragraph(sentence: object) -> str:
    """Return text that may be broken into lines."""
    return f'<p style="margin:4px 0">{word(sentence)}</p>'


def block(text: object) -> str:
    """Return lines as they are, in columns."""
    lines = "\n".join(map(word, str(text).splitlines()))
    look = "margin:4px 0;white-space:pre;overflow-x:auto;color:inherit;background:transparent"
    return f'<pre style="{look}">{lines}</pre>'


def grid(head: Sequence[object], rows: Iterable[tuple[object, Sequence[str]]]) -> str:
    """Return a table: column heads, and rows of a name and cells that are already HTML."""
    top = "".join(f'<th style="{CELL}">{word(name)}</th>' for name in head)
    top = f'<tr style="border-bottom:{LINE}"><th></th>{top}</tr>' if head else ""
    body = "".join(
        f'<tr style="background:transparent"><th scope="row" style="{NAME}">{word(name)}</th>'
        + "".join(f'<td style="{CELL}">{cell}</td>' for cell in cells)
        + "</tr>"
        for name, cells in rows
    )
    return f'<table style="border-collapse:collapse;margin:4px 0">{top}{body}</table>'


def bars(head: str, names: Iterable[object], shares: Iterable[float]) -> str:
    """Return a bar for each share of 1, with its number."""
    drawn = (
        (name, [f'<span style="{BAR};width:{LONGEST_BAR * share:.0f}px"></span>{share:.3f}'])
        for name, share in zip(names, shares, strict=True)
    )
    return _left(grid([head], drawn))


def _left(table: str) -> str:
    return table.replace("text-align:right", "text-align:left")


def folded(label: str, *parts: str) -> str:
    """Return parts that are shown on a click."""
    return f"<details><summary>{word(label)}</summary>{''.join(parts)}</details>"


def record_card(record: Any) -> str:
    """Show a record: its sentence and its numbers.

    >>> @dataclasses.dataclass
    ... class Found:
    ...     where: str
    ...     z: list
    >>> "&lt;i&gt;" in record_card(Found("<i>", np.array([0.5, 0.5])))
    True
    """
    kind = type(record)
    shown = [(f.name, _value(getattr(record, f.name))) for f in dataclasses.fields(record)]
    numbers = _left(grid([], [(name, [word(value)]) for name, value in shown if value]))
    if kind.__str__ is object.__str__ and not hasattr(record, "sentence"):
        return card(kind.__name__, numbers)
    said = str(getattr(record, "sentence", record))
    told = block(said) if "\n" in said else paragraph(said)
    return card(kind.__name__, told, folded("numbers", numbers))


def _value(value: Any) -> str:
    """Write a number, a word or a short list of them; else nothing."""
    if not isinstance(value, tuple) and np.ndim(value) != 1:
        return _one(value)
    parts = [_one(one) for one in value[: MOST_NUMBERS + 1]]
    return ", ".join(parts) if all(parts) and len(parts) <= MOST_NUMBERS else ""


def _one(value: Any) -> str:
    if isinstance(value, bool | str | np.bool_):
        return str(value)
    return f"{value:.4g}" if isinstance(value, int | float | np.number) else ""
