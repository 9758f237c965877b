"""The picture of a verdict: what is lost at each source, on one scale that begins at nothing.

It is made of elements, not of a drawing, so that it fills any width and keeps its letters readable.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from anymix.report.markup import esc, number
from anymix.report.standing import GUESSES, Stand

Data = dict[str, Any]
ALL = "all, in equal parts"
# More sources than this would be a wall; those that lose most are drawn.
MOST_ROWS = 12
# A guess that loses so many times more than all else stands at the edge, lest it hide the rest.
FAR = 3.0
MARKS = {
    "own": "its own model at home",
    "average": "plain average of the models",
    "guess": "guessing, without a look at the row",
}


def picture(stand: Stand) -> str:
    """Draw what the model, the own models, the average and a guess lose at each source."""
    marks, end = _marks(stand), _end(stand)
    p = len(stand.sources)
    most = sorted(range(p), key=lambda k: -stand.found["loss"][k])[:MOST_ROWS]
    rows = [_row(stand, i, marks, end) for i in (p, *sorted(most))]
    hidden = p - len(most)
    note = f'<p class="note">The {hidden} sources that lose least are not drawn.</p>' * (hidden > 0)
    return (
        f'<div class="dots">{"".join(rows)}{_axis(stand, end)}</div>{_legend(stand, marks)}{note}'
    )


def _marks(stand: Stand) -> dict[str, list[float | None]]:
    named = {"own": ("own",), "average": ("average",), "guess": GUESSES}
    found = {css: stand.rival(*names) for css, names in named.items()}
    return {css: rival["loss"] for css, rival in found.items() if rival is not None}


def _end(stand: Stand) -> float:
    """Where the scale ends: beyond all that is drawn, unless a guess lies far away."""
    marks = _marks(stand)
    guess = [v for v in marks.pop("guess", []) if v is not None]
    known = [*stand.found["loss"], *stand.found["upper"], *(v for m in marks.values() for v in m)]
    near = max([v for v in known if v is not None and v > 0], default=1.0)
    far = max([near, *guess])
    return 1.04 * (far if far <= FAR * near else near)


def _row(stand: Stand, i: int, marks: dict[str, list[float | None]], end: float) -> str:
    found, unit, digits = stand.found, stand.unit, stand.digits
    name = stand.sources[i] if i < len(stand.sources) else ALL
    low, high = found["lower"][i], found["upper"][i]
    drawn = []
    if low is not None and high is not None:
        a, b = _at(low, end), _at(high, end)
        drawn.append(f'<i class="range" style="--at:{a:.2f}%;--size:{b - a:.2f}%"></i>')
    said = unit.said(found["loss"][i], digits)
    drawn.append(_mark("ours", found["loss"][i], end, f"this model: {said}"))
    for css, losses in marks.items():
        drawn.append(_mark(css, losses[i], end, f"{MARKS[css]}: {unit.said(losses[i], digits)}"))
    between = f"{number(_scaled(stand, low), digits)} to {unit.said(high, digits)}"
    css = " whole" if i == len(stand.sources) else ""
    return (
        f'<span class="name{css}" title="{esc(name)}">{esc(name)}</span>'
        f'<span class="value{css}">{said}<small>{between}</small></span>'
        f'<span class="track{css}">{"".join(drawn)}</span>'
    )


def _scaled(stand: Stand, value: float | None) -> float | None:
    return None if value is None else stand.unit.scale * value


def _at(value: float, end: float) -> float:
    return float(np.clip(100.0 * value / end, 0.0, 100.0))


def _mark(css: str, value: float | None, end: float, title: str) -> str:
    if value is None:
        return ""
    beyond = " beyond" if value > end else ""
    return (
        f'<i class="mark {css}{beyond}" style="--at:{_at(value, end):.2f}%" '
        f'title="{esc(title)}"></i>'
    )


def _axis(stand: Stand, end: float) -> str:
    """Number the scale in round steps, and name its unit."""
    steps = np.array([1.0, 2.0, 2.5, 5.0, 10.0])
    raw = stand.unit.scale * end / 4
    power = 10.0 ** np.floor(np.log10(raw))
    step = float(power * steps[np.searchsorted(steps, raw / power)])
    ticks = np.arange(0.0, stand.unit.scale * end, step)
    texts = "".join(
        f'<b style="--at:{_at(t / stand.unit.scale, end):.2f}%">'
        f"{f'{t:.10g}'}{chr(0xA0) + '%' if stand.unit.share else ''}</b>"
        for t in ticks
    )
    head = f"{stand.unit.head}, less is better"
    return (
        f'<span class="axis" aria-hidden="true">{texts}</span><span class="unit">{esc(head)}</span>'
    )


def _legend(stand: Stand, marks: dict[str, list[float | None]]) -> str:
    confidence = f"{100 * stand.found['confidence']:g}\u00a0%"
    items = [f'<li><i class="mark ours"></i>this model, with its {confidence} interval</li>']
    items += [f'<li><i class="mark {css}"></i>{MARKS[css]}</li>' for css in marks]
    return f'<ul class="legend marks">{"".join(items)}</ul>'
