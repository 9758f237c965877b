"""Two line charts as inline SVG: convergence on a logarithmic scale, and reliability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anymix.report.markup import esc

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 560, 300, 66, 30, 40, 50
# A longer trace is thinned out: more dots would overlap.
MOST_DOTS = 400
# Differences below this are rounding, not progress.
TINY = 1e-16

Span = tuple[float, float]
Points = Sequence[tuple[float, float]]
Ticks = dict[float, str]


def place(points: Points, x: Span, y: Span) -> list[tuple[str, str]]:
    """Map data to the drawing, y upward."""
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    return [
        (
            f"{LEFT + wide * (a - x[0]) / (x[1] - x[0]):.5g}",
            f"{HEIGHT - BOTTOM - high * (b - y[0]) / (y[1] - y[0]):.5g}",
        )
        for a, b in points
    ]


def line(placed: Sequence[tuple[str, str]], css: str) -> str:
    """Join points by a line."""
    return f'<polyline class="{css}" points="{" ".join(",".join(point) for point in placed)}"/>'


def dots(placed: Sequence[tuple[str, str]], css: str, titles: Sequence[str]) -> str:
    """Draw each point, with its tooltip."""
    return "".join(
        f'<circle class="{css}" cx="{x}" cy="{y}" r="4"><title>{esc(title)}</title></circle>'
        for (x, y), title in zip(placed, titles, strict=True)
    )


def axes(x: Span, y: Span, ticks: tuple[Ticks, Ticks], labels: tuple[str, str]) -> str:
    """Draw grid lines with their numbers, and the names of both axes."""
    parts = []
    for at, text in ticks[1].items():
        (_, v), floor = place([(x[0], at)], x, y)[0], WIDTH - RIGHT
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{floor}" y1="{v}" y2="{v}"/>')
        parts.append(f'<text class="tick end" x="{LEFT - 8}" y="{v}" dy="4">{text}</text>')
    for at, text in ticks[0].items():
        u = place([(at, y[0])], x, y)[0][0]
        parts.append(f'<text class="tick mid" x="{u}" y="{HEIGHT - BOTTOM + 20}">{text}</text>')
    middle = (WIDTH + LEFT - RIGHT) / 2
    parts.append(f'<text class="axis mid" x="{middle}" y="{HEIGHT - 6}">{esc(labels[0])}</text>')
    parts.append(f'<text class="axis" x="4" y="18">{esc(labels[1])}</text>')
    return "".join(parts)


def frame(content: str, label: str) -> str:
    """Return the drawing with its text description."""
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{esc(label)}">{content}</svg>'
    )


SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def distances(trace: Sequence[dict[str, Any]], objective: str) -> Points:
    """The distance of each evaluation from the solution: γ, or max_k (L_k − b_k) from its end."""
    field = "gamma" if objective == "gamma" else "worst"
    end = 0.0 if field == "gamma" else trace[-1]["worst"]
    steps = [(float(step["n_evaluations"]), abs(step[field] - end)) for step in trace]
    return [(n, gap) for n, gap in steps if gap > TINY]


def convergence(trace: Sequence[dict[str, Any]], objective: str) -> str:
    """Draw each evaluation's distance from the answer, and the least so far, in powers of ten."""
    steps = distances(trace, objective)
    steps = steps[:: len(steps) // MOST_DOTS + 1]
    if len(steps) < 2 or steps[0][0] == steps[-1][0]:
        return ""
    points = [(n, float(np.log10(gap))) for n, gap in steps]
    x, exponents = (steps[0][0], steps[-1][0]), [v for _, v in points]
    low = int(np.floor(min(exponents)))
    high = max(int(np.ceil(max(exponents))), low + 1)
    y = (float(low), float(high))
    marked = range(high, low - 1, -max(1, round((high - low) / 5)))
    ticks_y = {float(e): f"10{str(e).translate(SUPERSCRIPT)}" for e in marked}
    ticks_x = {float(v): f"{v:.0f}" for v in np.unique(np.linspace(*x, 6).round())}
    best = np.minimum.accumulate(exponents).tolist()
    closest = place([(n, b) for (n, _), b in zip(points, best, strict=True)], x, y)
    titles = [f"{n:.0f}: {gap:.3g}" for n, gap in steps]
    label = "γ" if objective == "gamma" else "distance from the answer"
    return frame(
        axes(x, y, (ticks_x, ticks_y), ("evaluations of the losses", label))
        + line(closest, "ours")
        + dots(place(points, x, y), "faint", titles),
        f"{label}, from {steps[0][1]:.2g} to {steps[-1][1]:.2g}, over {len(trace)} evaluations",
    )


def reliability(curves: dict[str, Sequence[dict[str, float]]]) -> str:
    """Draw a reliability diagram of the likeliest source, before and after calibration."""
    unit = (0.0, 1.0)
    ticks = {t: f"{100 * t:.0f} %" for t in (0.0, 0.25, 0.5, 0.75, 1.0)}
    parts = [axes(unit, unit, (ticks, ticks), ("how sure", "how often right"))]
    parts.append(line(place([(0.0, 0.0), (1.0, 1.0)], unit, unit), "ideal"))
    for name, css in (("before", "other"), ("after", "ours")):
        bins = curves.get(name) or []
        placed = place([(b["confidence"], b["accuracy"]) for b in bins], unit, unit)
        titles = [
            f"{name}: {100 * b['confidence']:.1f} % sure, {100 * b['accuracy']:.1f} % right, "
            f"{100 * b['share']:.1f} % of rows"
            for b in bins
        ]
        parts += [line(placed, css), dots(placed, css, titles)]
    return frame("".join(parts), "Reliability of the likeliest source, before and after")
