"""docs/evidence.md and its picture from the records: written by `python tools/results.py`.

The words stand in results/evidence.md; a line of them that is a name in braces is replaced by what
the records say: ``{made}``, ``{summary}``, ``{verdicts METHOD}``, ``{tally METHOD}``,
``{picture}``, ``{sets}``.
Words that compare methods on their own are refused: see `tools.words`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from experiments.claim_lines import listed
from experiments.claims import signed
from experiments.evidence_claims import by_split, domains, paired, regret, sets, shown
from experiments.evidence_figure import draw_evidence
from experiments.evidence_hero import draw_hero
from experiments.runner import Result, clock, read_records
from experiments.tables import number
from tools import words

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "results" / "evidence.jsonl"
WORDS = ROOT / "results" / "evidence.md"
PAGE = ROOT / "docs" / "evidence.md"
PICTURE = ROOT / "docs" / "images" / "evidence.png"
HERO = ROOT / "docs" / "images" / "evidence-hero.png"
MARKS = {"below": " ▼", "level": "", "above": " ▲"}
COLUMNS = ["mean loss", "− joint*", "− own*", "worst domain", "worst regret", "domains named, %"]


def page() -> str:
    """Return the text of the page."""
    head, results = read_records(RECORDS)
    say: dict[str, Callable[[str], str]] = {
        "made": lambda _: _made(head, results),
        "summary": lambda _: _summary(results),
        "verdicts": lambda method: _verdicts(results, method),
        "tally": lambda method: _tally(results, method),
        "picture": lambda _: f"![Losses relative to joint*](images/{PICTURE.name})",
        "sets": lambda _: "\n".join(_set(results, name) for name in sets(results)),
    }
    prose = WORDS.read_text(encoding="utf-8")
    words.check("evidence", prose)
    return re.sub(r"^\{(\w+) ?(.*)\}$", lambda m: say[m[1]](m[2]), prose, flags=re.MULTILINE)


def write() -> None:
    """Write page and picture."""
    results = read_records(RECORDS)[1]
    draw_evidence(results, PICTURE)
    draw_hero(results, HERO)
    PAGE.write_text(page(), encoding="utf-8")


def _made(head: dict[str, Any], results: Sequence[Result]) -> str:
    n = len({r.seed for r in results})
    return (
        f"`{head['command']}`, version {head['version']}, {head['date']}, "
        f"{clock(head['seconds'])}, {n} splits, {len(results)} records."
    )


def _loss(results: Sequence[Result], table: str, method: str, name: str) -> float:
    return mean(by_split(results, table, method, name).values())


def _star(method: str, privileged: bool) -> str:
    return method + ("*" if privileged else "")


def _lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))


def _summary(results: Sequence[Result]) -> str:
    """Methods × sets; the least loss of those that are not privileged stands out."""
    names = sets(results)
    stars = {m: p for name in names for m, p in shown(results, name).items()}
    least = {
        name: min(
            _loss(results, "Mean loss", m, name)
            for m, privileged in shown(results, name).items()
            if not privileged
        )
        for name in names
    }
    rows = []
    for method, privileged in stars.items():
        cells = []
        for name in names:
            if method not in shown(results, name):
                cells.append("")
                continue
            value = _loss(results, "Mean loss", method, name)
            text = f"**{number(value)}**" if value == least[name] else number(value)
            cells.append(text + MARKS[paired(results, name, method, "joint").verdict])
        rows.append([_star(method, privileged), *cells])
    return _lines(["method", *names], rows)


def _verdicts(results: Sequence[Result], method: str) -> str:
    lines = []
    for name in sets(results):
        pooled, alone = (paired(results, name, method, other) for other in ("joint", "own"))
        domain, worst = regret(results, name, method)
        lines.append(
            f"- {name}: {signed(pooled)} against joint*, {pooled.verdict}; {signed(alone)} against "
            f"own*, {alone.verdict}; at worst {signed(worst)}, at {domain}, {worst.verdict}."
        )
    return "\n".join([f"<!-- verdicts: {method} -->", "", *lines])


def _tally(results: Sequence[Result], method: str) -> str:
    """Count the sets where a method is below, level with or above its references."""
    known = {r.table.removeprefix("Standard error against ") for r in results if r.method == method}
    lines = [
        f"Against {other}*, {method} is {standing(results, method, other)}"
        for other in ("joint", "best pooled", "own")
        if other in known
    ]
    return "\n".join([*lines, f"<!-- tally: {method} -->"])


def standing(
    results: Sequence[Result], method: str, other: str, words: Sequence[str] = tuple(MARKS)
) -> str:
    """Name the sets where a method is below, level with or above another, in words of one's own."""
    found = {name: paired(results, name, method, other).verdict for name in sets(results)}
    groups = [[name for name in found if found[name] == verdict] for verdict in MARKS]
    said = [
        f"{word} on {listed(names) or 'none'}" for word, names in zip(words, groups, strict=True)
    ]
    return "; ".join(said) + "."


def _set(results: Sequence[Result], name: str) -> str:
    """One table: means, paired differences, the worst domain, and how well domains are told."""
    rows = []
    for method, privileged in shown(results, name).items():
        worst, right = (
            by_split(results, table, method, name) for table in ("Worst domain", "Right domain")
        )
        domain, gap = regret(results, name, method)
        rows.append(
            [
                _star(method, privileged),
                number(_loss(results, "Mean loss", method, name)),
                signed(paired(results, name, method, "joint")),
                signed(paired(results, name, method, "own")),
                number(mean(worst.values())),
                "0" if method == "own" else f"{signed(gap)} ({domain})",
                number(mean(right.values())) if right else "",
            ]
        )
    listed = ", ".join(domains(results, name))
    return f"### {name}\n\nDomains: {listed}.\n\n{_lines(['method', *COLUMNS], rows)}\n"
