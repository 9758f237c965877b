"""The parts of the page on guarantees, each HTML from the whole record; see `page.PARTS`."""

from __future__ import annotations

from typing import Any

import numpy as np

from anymix.core import CLAIMED, clipping
from anymix.report.markup import (
    Unit,
    bar,
    cell,
    esc,
    flat,
    number,
    prose,
    remark,
    row,
    section,
    significant,
    table,
    unit_of,
)
from anymix.report.record import OURS, corner_losses, corner_measure, recorded
from anymix.report.standing import listed

Data = dict[str, Any]
# More names than this are not listed under the title.
MOST_NAMED = 8


def facts(record: Data) -> str:
    """Describe the model in one line."""
    names = record["sources"]
    named = f": {', '.join(names)}" if len(names) <= MOST_NAMED else ""
    parts = [f"{len(names)} sources{named}"]
    if "rows" in record:
        parts.append(f"{sum(record['rows']):,} held-out rows".replace(",", "\u202f"))
    if "loss" in record:
        parts.append(f"learned by {unit_of(record['loss']).head}")
    days = record.get("recorded", {})
    for day in sorted({*days.values()}):
        parts.append(f"{listed([part for part in days if days[part] == day])} recorded {day}")
    if record.get("stated"):
        parts.append(f"evidence {CLAIMED}")
    if "anymix" in record:
        parts.append(f"anymix {record['anymix']}")
    return " · ".join(map(esc, parts))


def alarm(record: Data) -> str:
    """Put an alarm of the monitor at the top."""
    data = record["traffic"]
    sentence = f'<p class="status alarm" role="alert">{prose(data["sentence"])}</p>'
    return sentence if data["alarm"]["rings"] else ""


HANDED_OVER = "Each source’s own model is the one it contributed, before it consults the others."


def certificate(record: Data) -> str:
    """State what is guaranteed, in a sentence, then source by source."""
    data = record.get("certificate")
    if data is None:
        why = (
            "There is no certificate: z was adapted to today’s traffic, so what was certified "
            "before no longer holds."
        )
        return f'<p class="status missing">{prose(why)}</p>' if record.get("adapted") else ""
    aside = " and ".join(record.get("set_aside", []))
    notes = [f"The rows of {aside} did not choose z; the certificate covers them all the same."]
    notes = notes * bool(aside) + [HANDED_OVER] * ("consulting" in record)
    body = (
        f'<blockquote class="sentence">{prose(data.get("sentence", ""))}</blockquote>'
        + "".join(map(remark, notes))
        + f'<dl class="figures">{"".join(figures(record))}</dl>{clipped_note(record)}'
        f"{_at_home(record, data)}{beside(record)}{_bounds(data)}"
    )
    lead = "What holds for every mixture of the sources, whichever one the future brings."
    if data.get("mixtures"):
        lead = "What holds for mixtures of the sources with the shares that are stated."
    lead += recorded(record, "certificate")
    return section("certificate", "Certificate", lead, body)


def _bounds(data: Data) -> str:
    """List the theorems as numbers, folded away for those who ask."""
    rows = []
    for bound in data.get("bounds") or []:
        refuted = ""
        # In older records a bound does not say what refutes it; the measured loss does.
        measured = data.get("robust_loss") if bound["name"] == "loss on any mixture" else None
        if bound.get("contradicted"):
            refuted = f"Does not hold here: {bound['contradicted']}"
        elif measured is not None and not bound.get("checked") and bound["value"] < measured:
            refuted = "More was measured: this does not hold here."
        value, assumed = significant(bound["value"]), esc(bound["assumptions"])
        if refuted:
            value = f"<s>{value}</s>"
            assumed = f"<s>{assumed}</s> <strong>{prose(refuted)}</strong>"
        elif not bound.get("checked"):
            assumed += " Taken on trust: the rows cannot show it."
        grounds = [cell(text, css="text") for text in (esc(bound["paper"]), assumed)]
        rows.append(row(bound["name"], [cell(value), *grounds]))
    if not rows:
        return ""
    body = table("Bounds", ["Bound", "at most", "paper", "provided that"], rows)
    return f"<details><summary>The theorems behind it</summary>{body}</details>"


def _at_home(record: Data, data: Data) -> str:
    """Compare each source's own model with the combined one, on its own rows."""
    own, ours, unit = data["own_losses"], data["source_losses"], certified_unit(record)
    digits = unit.digits([*own, *ours])
    # A certificate of new rows does not tell how many they were.
    counted = "rows of fit" if recorded(record, "certificate") else "held-out rows"
    heads = {"rows": counted, "z": "weight z"}
    extra = [name for name in heads if name in record]
    rows = []
    for k, name in enumerate(record["sources"]):
        gap = ours[k] - own[k]
        cells = [cell(unit.text(own[k], digits)), cell(unit.text(ours[k], digits), css="ours")]
        cells.append(cell(unit.gap(gap, digits), css="good" if gap <= 0 else "bad"))
        extras = {name: record[name][k] for name in extra}
        cells += [cell(number(v, 3) if name == "z" else f"{v}") for name, v in extras.items()]
        rows.append(row(name, cells))
    head = ["At home", "own model", "anymix", "difference", *(heads[name] for name in extra)]
    title = "Each source at home"
    return f'<p class="note">{esc(f"{title}: {unit.head}")}.</p>{table(title, head, rows)}'


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
    lead = (
        "Choose a mixture of the sources and see what each method would lose on it, measured by "
        f"the {unit_of(corner_measure(record)).head}. {how}"
    )
    return section("explore", "Mixture explorer", lead, body)


# What the table of methods says about mixtures that are not in it.
OF_RANKS = (
    "Higher is better. It ranks rows of all sources against each other, and is no mean over rows: "
    "on other mixtures it may be lower than on each source, and nothing is guaranteed of it."
)
OF_MIXTURES = "The worst domain is the worst of all mixtures for a model that is the same on each."


def comparison(record: Data) -> str:
    """Tabulate every method on every mixture, with the lowest loss marked."""
    data = record["comparison"]
    unit = unit_of(data.get("measure"))
    digits = unit.digits(flat(data["loss"]))
    allowed = [not cheats for cheats in data["privileged"]]
    best = []
    for column in (*zip(*data["loss"], strict=True), data["worst"]):
        values = [v for v, fair in zip(column, allowed, strict=True) if fair and v is not None]
        best.append((max if unit.higher else min)(values, default=None))
    rows = [_method_row(data, a, best, (unit, digits)) for a in range(len(data["methods"]))]
    head = ["Method", *map(esc, data["mixtures"]), "worst domain" if unit.mean else "worst shown"]
    note = remark(
        "* uses what a deployed model must do without: the mixture itself, or the rows of all "
        "sources in one place. It is not ranked."
    )
    sure = data.get("confidence")
    interval = "its interval" if sure is None else f"its {100 * sure:g}\u00a0% interval"
    does, most = ("reaches", "highest") if unit.higher else ("loses", "lowest")
    what = OF_MIXTURES if unit.mean else OF_RANKS
    lead = (
        f"What each method {does} on each mixture, by the {unit.head}, with {interval}; the {most} "
        f"is bold. {what}{_beside_certificate(record, unit)}"
    )
    lead += recorded(record, "comparison")
    title = "anymix compared with the alternatives"
    return section(
        "comparison", title, lead, table(title, head, rows) + note * any(data["privileged"])
    )


def _beside_certificate(record: Data, unit: Unit) -> str:
    """Say why the numbers of the table are not those of the certificate, where they are not."""
    data, table_data = record.get("certificate"), record["comparison"]
    if data is None or OURS not in table_data["methods"]:
        return ""
    other = certified_unit(record)
    if other != unit:
        return (
            f" The certificate is in another measure, {other.head}: its numbers and these cannot "
            "be set side by side."
        )
    if not unit.mean:
        return ""
    worst, measured = (
        table_data["worst"][table_data["methods"].index(OURS)],
        data.get("robust_loss"),
    )
    if measured is None or worst is None or abs(worst - measured) <= 1e-9 * abs(measured):
        return ""
    return " The certificate was measured on other rows, so that its numbers are not quite these."


def _method_row(data: Data, a: int, best: list[float | None], shown: tuple[Unit, int]) -> str:
    cheats, (unit, digits), cells = data["privileged"][a], shown, []
    values, notes = [*data["loss"][a], data["worst"][a]], []
    for t, value in enumerate(data["loss"][a]):
        ends = [data[end][a][t] for end in ("lower", "upper")]
        if value is not None and value >= 0:
            # An interval ends where the measure itself does: shares in [0, 1], errors at 0.
            most = 1.0 if unit.share else np.inf
            ends = [None if end is None else min(max(end, 0.0), most) for end in ends]
        notes.append(" to ".join(unit.text(end, digits) for end in ends))
    notes.append(f"on {esc(data['worst_mixture'][a])}")
    for value, least, note in zip(values, best, notes, strict=True):
        css = "best" if not cheats and value == least else ""
        cells.append(cell(unit.text(value, digits), note=note, css=css))
    name = data["methods"][a]
    return row(name + "*" * cheats, cells, "ours" if name == OURS else "")


FIGURES = (
    ("Largest excess over a source’s own model, measured", "regret", True),
    ("Worst loss, measured", "loss", False),
)
MEASURED = {"regret": "regret", "loss": "robust_loss"}


def certified_unit(record: Data) -> Unit:
    """Return the unit of the certificate: its own measure, or the model's loss."""
    return unit_of(record["certificate"].get("loss") or record.get("loss"))


def figures(record: Data) -> list[str]:
    """Show the measured values above the guaranteed ones, with their ground."""
    data, unit, parts = record["certificate"], certified_unit(record), []
    confidence, clip = data.get("confidence"), data.get("clip")
    for title, half, sign in FIGURES:
        value = _written(data.get(MEASURED[half]), unit, sign)
        upper, ground = data.get(f"{half}_upper"), data.get(f"{half}_ground") or ""
        if upper is None or confidence is None:
            note = "no confidence is claimed" if ground == "measured" else ""
        else:
            how = f" ({ground})" if ground else ""
            cut = clip and clipping(clip, data.get("share_above"), _written(clip, unit))
            cut = f", {cut}" if cut else ""
            most = _written(upper, unit, sign)
            note = f"at most {most} with {100 * confidence:g} % confidence{how}{cut}"
        head = esc(f"{title}: {unit.head}")
        parts.append(f"<div><dt>{head}</dt><dd>{value}<small>{note}</small></dd></div>")
    share, upper = data.get("subpopulation"), data.get("subpopulation_upper")
    if share is not None and upper is not None and confidence is not None:
        head = esc(f"Loss on any {100 * share:g} % of any mixture, at most: {unit.head}")
        note = f"with {100 * confidence:g} % confidence"
        value = _written(upper, unit)
        parts.append(f"<div><dt>{head}</dt><dd>{value}<small>{note}</small></dd></div>")
    return parts


def _written(value: float | None, unit: Unit, sign: bool = False) -> str:
    if value is None:
        return significant(None)
    return significant(unit.scale * value, sign) + "\u00a0%" * unit.share


def clipped_note(record: Data) -> str:
    """Explain why a measured loss may exceed a guaranteed clipped one."""
    data, unit = record["certificate"], certified_unit(record)
    clip = data.get("clip")
    both = [(data.get(MEASURED[half]), data.get(f"{half}_upper")) for half in MEASURED]
    if clip is None or not any(None not in pair and pair[0] > pair[1] for pair in both):
        return ""
    sentence = (
        "What was measured stands above what is guaranteed, and both are right: the measured loss "
        f"counts every row in full, the bound no row for more than {_written(clip, unit)}. The few "
        "rows that lose more make the difference."
    )
    return f'<p class="aside">{prose(sentence)}</p>'


def beside(record: Data) -> str:
    """Tabulate the worst losses of chance, the plain average and each source alone."""
    data = record["certificate"]
    others = data.get("beside") or []
    if not others:
        return ""
    unit, values = certified_unit(record), [data["robust_loss"], *(o["loss"] for o in others)]
    digits = unit.digits(values)
    names, most = ["anymix", *(reference["name"] for reference in others)], max(values) or 1.0
    rows = []
    for name, value in zip(names, values, strict=True):
        css = "ours" if name == "anymix" else ""
        cells = [cell(unit.text(value, digits), css=css), bar(value / most, css or "other")]
        rows.append(row(name, cells, css))
    return table("On its worst source", ["On its worst source", esc(unit.head), ""], rows)
