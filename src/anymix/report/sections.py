"""The parts of the page: each takes the whole record and returns HTML, or nothing."""

from __future__ import annotations

from typing import Any

from anymix.report import charts
from anymix.report.markup import (
    cell,
    decimals,
    esc,
    flat,
    heats,
    number,
    percent,
    prose,
    row,
    section,
    table,
)
from anymix.report.record import OURS, corner_losses

Data = dict[str, Any]


def facts(record: Data) -> str:
    """Say in one line what the page is about."""
    parts = [f"{len(record['sources'])} sources"]
    if "loss" in record:
        parts.append(f"{record['loss'].replace('_', '-')} loss")
    if "rows" in record:
        parts.append(f"{sum(record['rows']):,} held-out rows".replace(",", "\u202f"))
    if "objective" in record:
        parts.append(f"objective: {record['objective']}")
    if "anymix" in record:
        parts.append(f"anymix {record['anymix']}")
    return " · ".join(map(esc, parts))


def certificate(record: Data) -> str:
    """State what is guaranteed, in a sentence, then source by source."""
    found = record.get("certificate")
    if found is None:
        return ""
    body = (
        f'<blockquote class="sentence">{prose(found.get("sentence", ""))}</blockquote>'
        f'<dl class="figures">{"".join(_figures(found))}</dl>{_at_home(record, found)}'
    )
    lead = "What holds for every mixture of the sources, whichever one the future brings."
    return section("certificate", "Certificate", lead, body)


def _figures(found: Data) -> list[str]:
    loss, regret = found.get("loss_upper"), found.get("regret_upper")
    known = [found.get("robust_loss"), found.get("regret"), loss, regret]
    digits = decimals(known)
    figures = [
        ("Worst loss, measured", number(found.get("robust_loss"), digits), ""),
        (
            "Most above a source’s own model, measured",
            number(found.get("regret"), digits, True),
            "",
        ),
    ]
    if loss is not None and found.get("confidence") is not None:
        ground = f"with {100 * found['confidence']:g} % confidence"
        figures[0] = (*figures[0][:2], f"at most {number(loss, digits)} {ground}")
        figures[1] = (*figures[1][:2], f"at most {number(regret, digits, True)} {ground}")
    return [
        f"<div><dt>{esc(name)}</dt><dd>{value}<small>{esc(note)}</small></dd></div>"
        for name, value, note in figures
    ]


def _at_home(record: Data, found: Data) -> str:
    """Set each source's own model beside the combined one, on its own rows."""
    own, ours = found["own_losses"], found["source_losses"]
    digits = decimals([*own, *ours])
    extra = [name for name in ("rows", "z") if name in record]
    rows = []
    for k, name in enumerate(record["sources"]):
        gap = ours[k] - own[k]
        cells = [cell(number(own[k], digits)), cell(number(ours[k], digits), css="ours")]
        cells.append(cell(number(gap, digits, True), css="good" if gap <= 0 else "bad"))
        cells += [cell(f"{record['rows'][k]}")] if "rows" in extra else []
        cells += [cell(number(record["z"][k], 3))] if "z" in extra else []
        rows.append(row(name, cells))
    head = ["At home", "own model", "anymix", "difference"]
    head += [{"rows": "held-out rows", "z": "z"}[name] for name in extra]
    return table("Each source at home", head, rows)


def explorer(record: Data) -> str:
    """Leave room for the mixture explorer, which the script of the page fills."""
    if len(corner_losses(record)) < 2 or len(record["sources"]) < 2:
        return ""
    how = "Drag the point, use the arrow keys on it, or move a slider."
    if len(record["sources"]) != 3:
        how = "Move a slider; the others make room."
    body = (
        '<div class="explorer" id="explorer"><div class="controls"></div>'
        '<div class="losses"><p class="verdict" id="verdict" role="status"></p>'
        '<div class="bars"></div></div></div>'
        "<noscript><p>The explorer needs JavaScript; the tables below do not.</p></noscript>"
    )
    lead = f"Choose a mixture of the sources and see what each method would lose on it. {how}"
    return section("explore", "Mixture explorer", lead, body)


def comparison(record: Data) -> str:
    """Lay out every method on every mixture, the lowest loss of each marked."""
    found = record.get("comparison")
    if found is None:
        return ""
    digits = decimals(flat(found["loss"]))
    allowed = [not cheats for cheats in found["privileged"]]
    best = [_lowest(column, allowed) for column in zip(*found["loss"], strict=True)]
    best.append(_lowest(found["worst"], allowed))
    rows = [_method_row(found, a, best, digits) for a in range(len(found["methods"]))]
    head = ["Method", *map(esc, found["mixtures"]), "worst domain"]
    note = ""
    if any(found["privileged"]):
        note = (
            '<p class="note">* uses what a deployed model must do without: the mixture itself, or '
            "the rows of all sources in one place. It is not ranked.</p>"
        )
    lead = (
        "Loss of each method on each mixture, with its interval; the lowest is bold. The worst "
        "domain is the worst of all mixtures for a model that is the same on each."
    )
    title = "anymix beside the alternatives"
    return section("comparison", title, lead, table(title, head, rows) + note)


def _lowest(values: Any, allowed: list[bool]) -> float | None:
    known = [v for v, fair in zip(values, allowed, strict=True) if fair and v is not None]
    return min(known, default=None)


def _method_row(found: Data, a: int, best: list[float | None], digits: int) -> str:
    cheats = found["privileged"][a]
    cells = []
    for t, value in enumerate(found["loss"][a]):
        low, high = found["lower"][a][t], found["upper"][a][t]
        note = f"{number(low, digits)} to {number(high, digits)}"
        css = "best" if not cheats and value == best[t] else ""
        cells.append(cell(number(value, digits), note=note, css=css))
    worst = found["worst"][a]
    css = "best" if not cheats and worst == best[-1] else ""
    cells.append(cell(number(worst, digits), note=f"on {esc(found['worst_mixture'][a])}", css=css))
    name = found["methods"][a]
    return row(name + "*" * cheats, cells, "ours" if name == OURS else "")


def cross_table(record: Data) -> str:
    """Show each source's model on each domain: darker is worse."""
    found = record.get("cross_loss")
    if found is None:
        return ""
    lead = (
        "Rows are models, columns the domains they were judged on. Darker is worse than the best "
        "model of that domain; on the diagonal each model is at home."
    )
    columns = [heats(column) for column in zip(*found["mean"], strict=True)]
    shades = [list(line) for line in zip(*columns, strict=True)]
    digits = decimals(flat(found["mean"]))
    notes = [
        [f"{number(a, digits)} to {number(b, digits)}" for a, b in zip(low, high, strict=True)]
        for low, high in zip(found["lower"], found["upper"], strict=True)
    ]
    body = _heat_table(record, "Each model on each domain", found["mean"], shades, notes)
    return section("cross", "Each source’s model on each domain", lead, body)


def weights(record: Data) -> str:
    """Show where the weights go."""
    found = record.get("weights")
    if found is None:
        return ""
    lead = (
        "Mean weight of each source’s model (rows) on the held-out rows of each domain (columns); "
        "every column sums to one."
    )
    body = f'<div class="shares">{_heat_table(record, "Mean weights", found, found, None, 3)}</div>'
    return section("weights", "Where the weights go", lead, body)


def _heat_table(
    record: Data, caption: str, values: Any, shades: Any, notes: Any, digits: int | None = None
) -> str:
    names = record["sources"]
    digits = decimals(flat(values)) if digits is None else digits
    rows = []
    for k, name in enumerate(names):
        cells = [
            cell(
                number(value, digits),
                heat=shades[k][j],
                note=notes[k][j] if notes else "",
                css="heat home" if k == j else "heat",
            )
            for j, value in enumerate(values[k])
        ]
        rows.append(row(name, cells))
    return table(caption, ["Model", *(f"on {esc(name)}" for name in names)], rows)


def calibration(record: Data) -> str:
    """Show whether the responsibilities can be believed."""
    found = record.get("calibration")
    if found is None:
        return ""
    body = ""
    if found.get("after"):
        body = f"<div>{charts.reliability(found)}{_legend(found)}</div>"
    report = found.get("report")
    if report is not None:
        body += _calibration_table(report)
    lead = (
        "Each row is weighed by how likely it is to come from each source. When that says 80 %, it "
        "should be right for 80 of 100 rows: the closer to the dotted line, the better."
    )
    return section(
        "calibration", "Can the weights be believed?", lead, f'<div class="pair">{body}</div>'
    )


def _legend(found: Data) -> str:
    marks = [("ideal", "perfect"), ("other", "before calibration"), ("ours", "as used")]
    shown = [(css, text) for css, text in marks if css != "other" or found.get("before")]
    items = "".join(f'<li><i class="{css}"></i>{text}</li>' for css, text in shown)
    return f'<ul class="legend">{items}</ul>'


def _calibration_table(report: Data) -> str:
    rows = [
        row(
            title,
            [
                cell(number(report[f"{field}_before"], 4)),
                cell(number(report[f"{field}_after"], 4), css="ours"),
            ],
        )
        for title, field in (("Log-loss of the source", "log_loss"), ("Calibration error", "error"))
    ]
    return table("Calibration in numbers", ["On held-out rows", "before", "after"], rows)


def convergence(record: Data) -> str:
    """Show how the solver came to its answer."""
    found = record.get("solution")
    if found is None:
        return ""
    said = f"The solver ended “{found['status']}” after {found['n_evaluations']:.0f} evaluations"
    lead = f"{said} of the losses; what was left to gain was {found['optimality']:.1e} of the loss."
    trace = [step for step in found.get("trace") or [] if step["worst"] is not None]
    body = charts.convergence(trace, found.get("objective", "regret")) if trace else ""
    return section("convergence", "Convergence of the solver", lead, body)


def traffic(record: Data) -> str:
    """Tell which mixture the traffic is, and whether it is one."""
    found = record.get("traffic")
    if found is None:
        return ""
    estimate, alarm = found["estimate"], found["alarm"]
    css = "alarm" if alarm["rings"] else "calm"
    rows = [
        row(name, [cell(percent(m)), cell(f"{percent(low)} to {percent(high)}"), _share_bar(m)])
        for name, m, low, high in zip(
            record["sources"],
            estimate["mixture"],
            estimate["lower"],
            estimate["upper"],
            strict=True,
        )
    ]
    interval = f"{100 * estimate['confidence']:g} % interval"
    body = f'<p class="status {css}" role="status">{prose(found["sentence"])}</p>'
    body += table("Mixture of the traffic", ["Source", "share", interval, ""], rows)
    lead = (
        f"{estimate['n']} unlabelled rows, set beside the held-out rows of the sources. Alarm at "
        f"p ≤ {alarm['level']:g}; here p = {alarm['p_value']:.2g}."
    )
    return section("traffic", "Today’s traffic", lead, body)


def _share_bar(share: float) -> str:
    return f'<td class="wide"><span class="bar" style="--size:{100 * share:.1f}%"></span></td>'
