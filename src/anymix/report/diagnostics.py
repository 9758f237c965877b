"""What the guarantees rest on: who is good where, weights, calibration, solver, traffic."""

from __future__ import annotations

from typing import Any

from anymix.report import charts
from anymix.report.markup import (
    bar,
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
from anymix.report.record import recorded
from anymix.report.units import unit_of

Data = dict[str, Any]


def cross_table(record: Data) -> str:
    """Show each source's model on each domain: darker is worse."""
    found = record.get("cross_loss")
    if found is None:
        return ""
    lead = (
        "Rows are models, columns the domains they were judged on, by the "
        f"{unit_of(record.get('loss')).head}. Darker is worse than the best model of that domain; "
        "on the diagonal each model is at home."
    )
    columns = [heats(column) for column in zip(*found["mean"], strict=True)]
    shades = [list(line) for line in zip(*columns, strict=True)]
    digits = decimals(flat(found["mean"]))
    notes = [
        [f"{number(a, digits)} to {number(b, digits)}" for a, b in zip(low, high, strict=True)]
        for low, high in zip(_above_zero(found), found["upper"], strict=True)
    ]
    body = heat_table(record, "Each model on each domain", found["mean"], shades, notes)
    return section("cross", "Each source’s model on each domain", lead, body)


def _above_zero(found: Data) -> Any:
    """Lower ends of intervals; those of losses that are not negative are not, either."""
    return [
        [
            low if None in (low, mean) or mean < 0 else max(low, 0.0)
            for low, mean in zip(*both, strict=True)
        ]
        for both in zip(found["lower"], found["mean"], strict=True)
    ]


def weights(record: Data) -> str:
    """Show where the weights go."""
    found = record.get("weights")
    if found is None:
        return ""
    lead = (
        "Mean weight of each source’s model (rows) on the held-out rows of each domain (columns); "
        "every column sums to one."
    )
    body = f'<div class="shares">{heat_table(record, "Mean weights", found, found, None, 3)}</div>'
    if record.get("density"):
        body = f'<p class="note">{prose(record["density"])}</p>{body}'
    return section("weights", "Where the weights go", lead, body)


def heat_table(
    record: Data, caption: str, values: Any, shades: Any, notes: Any, digits: int | None = None
) -> str:
    """Lay out values [k][j] of each source on each domain, shaded, with notes below them."""
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
        "At each row the sources are weighted by how likely it is to come from them. Where that "
        "says 80 %, it should be right for 80 of 100 rows: the closer to the dotted line, the "
        "better."
    )
    body = f'<div class="pair">{body}</div>'
    if (found.get("sharpness") or 1) > 1:
        body += (
            f'<p class="note">As used, the calibrated weights are raised to the power '
            f"{found['sharpness']:g}: surer than calibrated, because that predicted better.</p>"
        )
    return section("calibration", "Can the weights be believed?", lead, body)


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
        for title, field in (
            ("Log-loss of the source, in nats", "log_loss"),
            ("Calibration error, as a share", "error"),
        )
    ]
    return table("Calibration in numbers", ["On held-out rows", "before", "after"], rows)


def convergence(record: Data) -> str:
    """Show how the solver came to its answer."""
    found = record.get("solution")
    if found is None:
        return ""
    aim = f" Objective: {record['objective']}." if "objective" in record else ""
    said = f"The solver ended “{found['status']}” after {found['n_evaluations']:.0f} evaluations"
    left = f"what was left to gain was {found['optimality']:.1e} of the loss."
    lead = f"{said} of the losses; {left}{aim}"
    trace = [step for step in found.get("trace") or [] if None not in step.values()]
    body = charts.convergence(trace, found.get("objective", "regret")) if trace else ""
    if body:
        note = "Dots: each evaluation, further starts included. Line: the closest."
        body = f'<div class="pair">{body}<p class="note">{note}</p></div>'
    return section("convergence", "Convergence of the solver", lead, body)


def traffic(record: Data) -> str:
    """Tell which mixture the traffic is, and whether it is one."""
    found = record.get("traffic")
    if found is None:
        return ""
    estimate, alarm = found["estimate"], found["alarm"]
    css = "alarm" if alarm["rings"] else "calm"
    rows = [
        row(name, [cell(percent(m)), cell(f"{percent(low)} to {percent(high)}"), bar(m)])
        for name, m, low, high in zip(
            record["sources"],
            estimate["mixture"],
            estimate["lower"],
            estimate["upper"],
            strict=True,
        )
    ]
    interval = f"{100 * estimate['confidence']:g} % interval of each"
    body = f'<p class="status {css}" role="status">{prose(found["sentence"])}</p>'
    lost = found.get("expected_loss")
    if lost is not None:
        body += f'<p class="status {css}">{prose(lost["sentence"])}</p>'
    body += table("Mixture of the traffic", ["Source", "share", interval, ""], rows)
    lead = (
        f"{estimate['n']} unlabelled rows, set beside the held-out rows of the sources. Alarm at "
        f"p ≤ {alarm['level']:g}; here p = {alarm['p_value']:.2g}.{recorded(record, 'traffic')}"
    )
    return section("traffic", "Today’s traffic", lead, body)
