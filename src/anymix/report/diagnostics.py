"""Diagnostics: cross losses, weights, calibration, solver, traffic, sets."""

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
    remark,
    row,
    section,
    table,
    unit_of,
)
from anymix.report.record import recorded

Data = dict[str, Any]


def cross_table(record: Data) -> str:
    """Show each source's model on each domain: darker is worse."""
    losses = record["cross_loss"]
    lead = (
        "Rows are models, columns the domains they were judged on, by the "
        f"{unit_of(record.get('loss')).head}. Darker is worse than the best model of that domain; "
        "on the diagonal each model is at home."
    )
    columns = [heats(column) for column in zip(*losses["mean"], strict=True)]
    shades = [list(line) for line in zip(*columns, strict=True)]
    digits = decimals(flat(losses["mean"]))
    notes: list[list[str]] = []
    for lows, means, highs in zip(losses["lower"], losses["mean"], losses["upper"], strict=True):
        notes.append([])
        for low, mean, high in zip(lows, means, highs, strict=True):
            # Lower ends of losses that are not negative are not, either.
            low = low if None in (low, mean) or mean < 0 else max(low, 0.0)
            notes[-1].append(f"{number(low, digits)} to {number(high, digits)}")
    body = heat_table(record, "Each model on each domain", losses["mean"], shades, notes)
    if record.get("learner"):
        body = remark(record["learner"]) + body
    return section("cross", "Each source’s model on each domain", lead, body)


def weights(record: Data) -> str:
    """Show the mean weights of the sources on each domain."""
    data = record["weights"]
    lead = (
        "Mean weight of each source’s model (rows) on the held-out rows of each domain (columns); "
        "every column sums to one."
    )
    body = f'<div class="shares">{heat_table(record, "Mean weights", data, data, None, 3)}</div>'
    if record.get("density"):
        body = remark(record["density"]) + body
    return section("weights", "Where the weights go", lead, body)


def clipped(share: float) -> float:
    """Bring a share into 0..1."""
    return min(max(share, 0.0), 1.0)


def heat_table(
    record: Data, caption: str, values: Any, shades: Any, notes: Any, digits: int | None = None
) -> str:
    """Lay out values [k][j] of each source on each domain, shaded, with notes below them.

    An additional row is that of the generalist.
    """
    names = record["sources"]
    digits = decimals(flat(values)) if digits is None else digits
    rows = []
    for k, name in enumerate([*names, "generalist"][: len(values)]):
        cells = []
        for j, value in enumerate(values[k]):
            css, note = "heat home" if k == j else "heat", notes[k][j] if notes else ""
            cells.append(cell(number(value, digits), heat=shades[k][j], note=note, css=css))
        rows.append(row(name, cells))
    return table(caption, ["Model", *(f"on {esc(name)}" for name in names)], rows)


def calibration(record: Data) -> str:
    """Show the calibration of the responsibilities."""
    data = record["calibration"]
    body, report = "", data.get("report")
    if data.get("after"):
        marks = {"ideal": "perfect", "other": "before calibration", "ours": "as used"}
        if not data.get("before"):
            del marks["other"]
        items = "".join(f'<li><i class="{css}"></i>{text}</li>' for css, text in marks.items())
        body = f'<div>{charts.reliability(data)}<ul class="legend">{items}</ul></div>'
    if report is not None:
        titles = {
            "log_loss": "Log-loss of the source, in nats",
            "error": "Calibration error, as a share",
        }
        rows = [
            row(title, [cell(number(report[f"{field}_before"], 4)), after])
            for field, title in titles.items()
            for after in [cell(number(report[f"{field}_after"], 4), css="ours")]
        ]
        body += table("Calibration in numbers", ["On held-out rows", "before", "after"], rows)
    lead = (
        "At each row the sources are weighted by how likely it is to come from them. Where that "
        "says 80 %, it should be right for 80 of 100 rows: the closer to the dotted line, the "
        "better."
    )
    body = f'<div class="pair">{body}</div>'
    if (data.get("sharpness") or 1) > 1:
        power = f"raised to the power {data['sharpness']:g}"
        better = "surer than calibrated, because that predicted better"
        body += remark(f"As used, the calibrated weights are {power}: {better}.")
    return section("calibration", "Can the weights be believed?", lead, body)


def convergence(record: Data) -> str:
    """Show the convergence of the solver."""
    data = record["solution"]
    aim = f" Objective: {record['objective']}." if "objective" in record else ""
    sentence = f"The solver ended “{data['status']}” after {data['n_evaluations']:.0f} evaluations"
    left = f"what was left to gain was {data['optimality']:.1e} of the loss."
    lead = f"{sentence} of the losses; {left}{aim}"
    trace = [step for step in data.get("trace") or [] if None not in step.values()]
    body = charts.convergence(trace, data.get("objective", "regret")) if trace else ""
    if body:
        sentence = remark("Dots: each evaluation, further starts included. Line: the closest.")
        body = f'<div class="pair">{body}{sentence}</div>'
    return section("convergence", "Convergence of the solver", lead, body)


def traffic(record: Data) -> str:
    """Show the mixture of the traffic, and whether it is one."""
    data = record["traffic"]
    estimate, alarm = data["estimate"], data["alarm"]
    css = "alarm" if alarm["rings"] else "calm"
    columns = (estimate[name] for name in ("mixture", "lower", "upper"))
    rows = [
        row(name, [cell(percent(m)), cell(f"{percent(low)} to {percent(high)}"), bar(m)])
        for name, m, low, high in zip(record["sources"], *columns, strict=True)
    ]
    interval = f"{100 * estimate['confidence']:g} % interval of each"
    body = f'<p class="status {css}" role="status">{prose(data["sentence"])}</p>'
    if data.get("expected_loss") is not None:
        body += f'<p class="status {css}">{prose(data["expected_loss"]["sentence"])}</p>'
    body += table("Mixture of the traffic", ["Source", "share", interval, ""], rows)
    level = f"p ≤ {alarm['level']:g}"
    if alarm.get("look") is not None:
        level = f"a level of {100 * alarm['level']:g} % for all looks together"
    tested = f"Alarm at {level}; here p = {alarm['p_value']:.2g}."
    if not alarm.get("tested", True):
        tested = "Whether they are a mixture of the sources was not tested."
    lead = (
        f"{estimate['n']} unlabelled rows, compared with the held-out rows of the sources. {tested}"
        f"{recorded(record, 'traffic')}"
    )
    return section("traffic", "Today’s traffic", lead, body)


def consulting(record: Data) -> str:
    """Show the weight of each model in each source's pool, and the gain on its own rows."""
    data = record["consulting"]
    lead = (
        "Before it predicts, each source (columns) consults the models of all (rows), and takes "
        "each with the weight that it has learned on its own held-out rows. The loss at home is "
        "measured on rows that the weights have not seen."
    )
    columns = [list(column) for column in zip(*data["weights"], strict=True)]
    if data.get("generalist"):
        lead += " The generalist is a model of the rows of all sources, and no source."
        columns.append(data["generalist"])
    largest = max((abs(value) for line in columns for value in line), default=1.0) or 1.0
    shades = [[clipped(value / largest) for value in line] for line in columns]
    body = remark(" ".join(data.get("sentences") or []))
    body += heat_table(record, "Weight of each model for each source", columns, shades, None, 2)
    return section("consulting", "Who consults whom", lead, body)


def coverage(record: Data) -> str:
    """Show the guaranteed and the measured coverage of sets or intervals on each source."""
    data = record["sets"]
    labels = data.get("of", "labels") == "labels"
    what = "a set of labels" if labels else "an interval"
    lead = (
        f"Instead of one answer the model can give {what} that holds the truth "
        f"{percent(1 - data['alpha'])} of the time, whatever the mixture. Each held-out row is "
        "judged by the others, and by the part of the model that was learned without it."
    )
    digits, share = 2 if labels else decimals(data["size"]), unit_of("error_rate")
    columns = (data[name] for name in ("rows", "coverage", "size"))
    rows = [
        row(name, [cell(f"{int(n)}"), cell(share.text(covered, 1)), cell(number(size, digits))])
        for name, n, covered, size in zip(record["sources"], *columns, strict=True)
    ]
    mean = "mean number of labels" if labels else "mean width, in the target’s unit"
    head = ["Source", "rows", "covered", mean]
    body = remark(data["sentence"]) + table("Coverage and size on each source", head, rows)
    return section("sets", "How sure is an answer?", lead, body)


def influence(record: Data) -> str:
    """Show the influence of each source on the loss of each other one."""
    data = record["influence"]
    sentences = data.get("sentences") or []
    words = " ".join(sentences) or "No site and no source moves the loss of another by much."
    css = "alarm" if sentences else "calm"
    body = f'<p class="status {css}" role="status">{prose(words)}</p>'
    for kind, who in (("rows", "the rows of"), ("sources", "the source")):
        harm, losses = data[kind], data["losses"]
        shades = [
            [clipped(value / (losses[k] or 1.0)) for k, value in enumerate(line)] for line in harm
        ]
        body += remark(f"Loss (columns) owed to {who} (rows):")
        digits = decimals(losses) + 1
        body += heat_table(record, f"Loss owed to {who}", harm, shades, None, digits)
    lead = (
        f"How much of the loss ({unit_of(record.get('loss')).head}) on the rows of each source "
        "(columns) is owed to another one (rows): "
        "z and the calibration are learned once more without its rows, and without it altogether. "
        "Positive is harm."
    )
    return section("influence", "Who moves whom", lead, body)
