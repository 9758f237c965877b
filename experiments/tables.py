"""Records as tables: mean ± standard deviation over seeds, with the paper's values."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, stdev
from typing import Literal, NamedTuple

from experiments.runner import Result

Style = Literal["text", "markdown", "latex"]


class Row(NamedTuple):
    """One method under one protocol: a cell for each column, then the same of the paper."""

    method: str
    protocol: str
    ours: list[str]
    paper: list[str]


class Table(NamedTuple):
    """A table of the paper, or of ours."""

    name: str
    metric: str
    columns: list[str]
    rows: list[Row]


def tables(results: Sequence[Result]) -> list[Table]:
    """Gather the records by table; rows and columns keep the order of the records.

    Examples
    --------
    >>> cells = [Result("s", "Table 1", "clean", "DW", "K", "MSE", i, 1.0 + i, paper=1.45,
    ...                 paper_sd=0.08) for i in range(3)]
    >>> print(render(cells))
    Table 1 (MSE)
    <BLANKLINE>
    method  protocol  K
    DW      clean     2.00±1.00
            paper     1.45±0.08
    <BLANKLINE>
    """
    names = dict.fromkeys((r.table, r.metric) for r in results)
    return [_table(name, metric, results) for name, metric in names]


def _table(name: str, metric: str, results: Sequence[Result]) -> Table:
    here = [r for r in results if (r.table, r.metric) == (name, metric)]
    columns = list(dict.fromkeys(r.target for r in here))
    cells: dict[tuple[str, str, bool], dict[str, list[Result]]] = {}
    for r in here:
        row = cells.setdefault((r.method, r.protocol, r.privileged), {})
        row.setdefault(r.target, []).append(r)
    rows = [
        Row(
            method + ("*" if privileged else ""),
            protocol,
            [_ours(row.get(column, [])) for column in columns],
            [_paper(row.get(column, [])) for column in columns],
        )
        for (method, protocol, privileged), row in cells.items()
    ]
    return Table(name, metric, columns, rows)


def number(value: float) -> str:
    """Write a value with three significant digits at least, a count as it is.

    >>> number(1.456), number(94.66), number(0.01234), number(0.0), number(28)
    ('1.46', '94.7', '0.0123', '0', '28')
    """
    size = abs(value)
    if size == 0 or isinstance(value, int):
        return f"{value:.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 0.995 else f"{value:.3g}"


def _spread(value: float, sd: float | None) -> str:
    if sd is None:
        return number(value)
    size = abs(value)
    digits = ".1f" if size >= 10 else ".2f" if size >= 0.1 else ".1g"
    return f"{number(value)}±{sd:{digits}}"


def _ours(cell: list[Result]) -> str:
    values = [r.value for r in cell]
    if not values:
        return ""
    return _spread(mean(values), stdev(values) if len(values) > 1 else None)


def _paper(cell: list[Result]) -> str:
    if not cell or cell[0].paper is None:
        return ""
    return _spread(cell[0].paper, cell[0].paper_sd)


def lines(table: Table, in_brackets: bool = False) -> list[list[str]]:
    """Lay a table out as lines of cells, with the paper's values once for each method.

    They are a row under the method's first, or in brackets next to our values.
    """
    laid, shown = [["method", "protocol", *table.columns]], set()
    for row in table.rows:
        ours, first = row.ours, any(row.paper) and row.method not in shown
        shown.add(row.method)
        if first and in_brackets:
            pairs = zip(row.ours, row.paper, strict=True)
            ours = [f"{our} ({paper})".strip() if paper else our for our, paper in pairs]
        laid.append([row.method, row.protocol, *ours])
        if first and not in_brackets:
            laid.append(["", "paper", *row.paper])
    return laid


def render(results: Sequence[Result], style: Style = "text") -> str:
    """Return all tables of the records for a terminal, in Markdown or in LaTeX."""
    write = {"text": _text, "markdown": _markdown, "latex": _latex}[style]
    return "\n".join(write(table) for table in tables(results))


def _text(table: Table) -> str:
    laid = lines(table)
    widths = [max(len(line[c]) for line in laid) for c in range(len(laid[0]))]
    body = [
        "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip()
        for line in laid
    ]
    return "\n".join([f"{table.name} ({table.metric})", "", *body, ""])


def _markdown(table: Table) -> str:
    head, *body = lines(table, in_brackets=True)
    rule = ["---", "---", *["---:"] * len(table.columns)]
    rows = [f"| {' | '.join(line)} |" for line in (head, rule, *body)]
    return "\n".join([f"**{table.name}** ({table.metric})", "", *rows, ""])


def _latex(table: Table) -> str:
    head, *body = lines(table)
    rows = [" & ".join(line) + r" \\" for line in (head, *body)]
    rows = [row.replace("±", r"$\pm$").replace("%", r"\%").replace("_", r"\_") for row in rows]
    shape = "ll" + "r" * len(table.columns)
    return "\n".join(
        [
            f"% {table.name} ({table.metric})",
            rf"\begin{{tabular}}{{{shape}}}",
            r"\toprule",
            rows[0],
            r"\midrule",
            *rows[1:],
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )
