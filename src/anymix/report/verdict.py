"""The verdict: is the model better than the alternatives, in words and one picture."""

from __future__ import annotations

from typing import Any

import numpy as np

from anymix.report.markup import cell, esc, number, prose, remark, row, significant, table, unit_of
from anymix.report.record import claimed, recorded
from anymix.report.standing import GUESSES, Stand, listed, standing

Data = dict[str, Any]
HEADS = {"own": "own model", "average": "plain average", "constant": "guessing", "chance": "chance"}
BLIND = ("chance", "a constant")
OTHERWISE = ("mixed", "deploy it for its labels; look at its probabilities first")
COUNTS = "also counts how sure it was"
# Below this share of wrong labels by always saying the commonest, labels alone are no measure.
RARE = 0.2
ALARM = ("bad", "do not rely on it for today’s traffic, which is no mixture of these sources")


def verdict(record: Data) -> str:
    """State whether to deploy the model, by how much it is better, and what would help most."""
    stands = [Stand(data, record["sources"]) for data in record["verdict"]]
    if not stands:
        return ""
    constant = stands[0].rival("constant") if stands[0].unit.share else None
    if constant is not None and constant["loss"][-1] < RARE:
        # One label is so common that labels alone tell models hardly apart.
        stands.reverse()
    lead = stands[0]
    css, title = lead.decision()
    others = {stand.decision()[0] for stand in stands[1:]}
    if css == "good" and lead.unit.share and others - {"good"}:
        css, title = OTHERWISE
    if record.get("traffic") is not None and record["traffic"]["alarm"]["rings"]:
        css, title = ALARM
    sentence = f"Measured by the {lead.unit.name}, it is {_joined(lead.phrases())}."
    tiles = [_average(lead), _own(lead), _guess(lead), _guarantee(record)]
    body = (
        f'<p class="headline">{prose(sentence)}{_otherwise(stands)}</p>'
        f'<div class="tiles">{"".join(tiles)}</div>{picture(lead)}'
        f'<p class="help"><strong>What would help most:</strong> {prose(lead.advice())}</p>'
        f"{remark(_how(record, lead))}{''.join(map(_numbers, stands))}"
    )
    return (
        f'<section id="standing" class="{css}" aria-labelledby="standing-title">'
        f'<h2 id="standing-title">Verdict: {prose(title)}</h2>{body}</section>'
    )


def _joined(phrases: list[str]) -> str:
    *first, last = phrases
    return f"{', '.join(first)}, and {last}" if first else last


def _otherwise(stands: list[Stand]) -> str:
    """Say what another measure says, where there is one."""
    sentence = ""
    for other in stands[1:]:
        new = [phrase for phrase in other.phrases() if phrase not in stands[0].phrases()]
        which = "tells little as one label is rare" if other.unit.share else COUNTS
        finding = f"it is {_joined(new)}" if new else "the same holds"
        sentence += prose(f" By {other.unit.name}, which {which}, {finding}.")
    last = stands[-1].found
    if last["measure"] == "squared" and last["loss"][-1] is not None:
        root = significant(last["loss"][-1] ** 0.5)
        sentence += prose(f" Its typical error, the root of it, is {root} units.")
    return sentence


def _tile(title: str, word: str, text: str, css: str) -> str:
    return (
        f'<div class="tile {css}"><h3>{esc(title)}</h3><p class="word">{esc(word)}</p>'
        f"<p>{prose(text)}</p></div>"
    )


COLOURS = {"better": "good", "level": "mixed", "worse": "bad"}


def _average(stand: Stand) -> str:
    rival = stand.rival("average")
    if rival is None:
        return ""
    word = stand.average
    text = f"All sources in equal parts: {_beside(stand, rival, -1)}"
    return _tile("Than the plain average", word.capitalize(), text, COLOURS[word])


def _own(stand: Stand) -> str:
    rival = stand.rival("own")
    if rival is None:
        return ""
    by_verdict = {word: stand.where(word, "own") for word in ("better", "level", "worse")}
    there = [word for word, names in by_verdict.items() if names]
    word = (
        there[0]
        if len(there) == 1
        else "worse for some"
        if by_verdict["worse"]
        else "better or level"
    )
    css = "bad" if by_verdict["worse"] else "good" if not by_verdict["level"] else "mixed"
    parts = [f"{verdict.capitalize()} at {listed(by_verdict[verdict])}." for verdict in there]
    k, gap = _largest_gap(rival)
    how = "It falls short most at" if gap > 0 else "It gains least at"
    text = f"{' '.join(parts)} {how} {stand.sources[k]}: {_beside(stand, rival, k)}"
    return _tile("Than own models at home", word.capitalize(), text, css)


def _guess(stand: Stand) -> str:
    rival = stand.rival(*GUESSES)
    if rival is None:
        return ""
    weak, (k, _) = stand.not_above_guessing, _largest_gap(rival)
    where = f"No better at {listed(weak)}." if weak else "Better at every source."
    text = f"{where} Least so at {stand.sources[k]}: {_beside(stand, rival, k)}"
    word, css = ("Not everywhere", "bad") if weak else ("Better", "good")
    return _tile("Than guessing", word, text, css)


def _largest_gap(rival: Data) -> tuple[int, float]:
    """The source at which the model falls short of a rival most, and by how much."""
    gaps = rival["difference"][:-1]
    k = max(range(len(gaps)), key=gaps.__getitem__)
    return k, gaps[k]


def _beside(stand: Stand, rival: Data, i: int) -> str:
    """Set both losses side by side, and say by how much they differ."""
    unit, digits, data = stand.unit, stand.digits, stand.found
    ours, theirs = (unit.said(part["loss"][i], digits) for part in (data, rival))
    wrong = " wrong" if unit.share else ""
    values = [rival[name][i] for name in ("difference", "lower", "upper")]
    word = standing(*values[1:])
    name = f"\u00a0{unit.gap_unit}" if unit.gap_unit else ""
    if word == "level":
        low, high = (unit.gap(value, digits) for value in values[1:])
        by = f"a difference between {low} and {high}{name}"
    else:
        size, *ends = (number(v and abs(unit.scale * v), digits) for v in values)
        near, far = ends[::-1] if word == "better" else ends
        less = ("fewer" if unit.share else "less") if word == "better" else "more"
        by = f"{size}{name} {less} ({near} to {far})"
    return f"{ours}{wrong} compared with {theirs}{wrong}, {by}."


def _guarantee(record: Data) -> str:
    """Say what the certificate promises on every mixture, and whether that is worth anything."""
    data = record.get("certificate")
    if data is None:
        return ""
    unit, upper = unit_of(data.get("loss") or record.get("loss")), data.get("loss_upper")
    which = "the stated mixtures" if data.get("mixtures") else "every mixture"
    title, confidence = f"Guaranteed on {which}", data.get("confidence")
    if upper is None or confidence is None:
        text = data.get("reason") or "No confidence is claimed: the model was fitted on these rows."
        return _tile(title, "Nothing yet", text, "mixed")
    digits = unit.digits([upper])
    clip, share, cut = data.get("clip"), data.get("share_above"), ""
    more = f" At most {100 * (share or 0):.2g} % of any source’s rows lose more than that."
    if clip is not None:
        cut = f", clipped at {unit.said(clip, digits)}"
    blind = [reference for reference in data.get("beside") or [] if reference["name"] in BLIND]
    how = f" ({data['loss_ground']})" if data.get("loss_ground") else ""
    text = f"Expected {unit.name}, with {100 * confidence:g} % confidence{how}."
    text += more * bool(share)
    css = "good"
    if blind:
        alike = "" if clip is None else ", clipped likewise,"
        lost = blind[0]["clipped"]
        text += f" {blind[0]['name'].capitalize()}{alike} loses {unit.said(lost, digits)}."
        if upper >= lost:
            css, text = "bad", f"{text} The bound is vacuous: guessing does as well."
    text += claimed(record, "certificate")
    return _tile(title, f"At most {unit.said(upper, digits)}{cut}", text, css)


def _how(record: Data, stand: Stand) -> str:
    """Say on which rows it was judged, and how intervals are meant."""
    data, p = stand.found, len(stand.sources)
    each = listed([f"{n} {r:.0f}" for n, r in zip(stand.sources, data["rows"], strict=True)], 8)
    total = f"{sum(data['rows']):,.0f}".replace(",", "\u202f")
    counted = f" ({each})" if p <= 8 else ""
    day = recorded(record, "verdict")
    kind = f"new rows{counted}." if day else f"held-out rows{counted}, each by what never saw it."
    if not data["fresh"]:
        kind = f"rows{counted} that the model was fitted on: the numbers are too optimistic."
    return (
        f"Judged on {total} {kind}{day} Differences are of the same rows; "
        f"intervals have {100 * data['confidence']:g} % confidence, those of the {p} sources "
        "together. Level: the interval of the difference holds zero. Guessing: "
        f"{stand.guess}."
    )


def _numbers(stand: Stand) -> str:
    """Lay out all that the words rest on, folded away."""
    data, unit, digits = stand.found, stand.unit, stand.digits
    head = ["Where", "this model"]
    for rival in data["rivals"]:
        head += [HEADS.get(rival["name"], esc(rival["name"])), "difference"]
    rows = []
    for i, name in enumerate([*stand.sources, ALL]):
        low, high = (unit.text(data[end][i], digits) for end in ("lower", "upper"))
        ours = unit.text(data["loss"][i], digits)
        cells = [cell(ours, note=f"{low} to {high}", css="ours")]
        for rival in data["rivals"]:
            ends = rival["lower"][i], rival["upper"][i]
            low, high = (unit.gap(end, digits) for end in ends)
            gap = unit.gap(rival["difference"][i], digits)
            cells.append(cell(unit.text(rival["loss"][i], digits)))
            cells.append(cell(gap, note=f"{low} to {high}", css=COLOURS[standing(*ends)]))
        rows.append(row(name, cells))
    points = ", differences in points" if unit.share else ""
    title = f"The numbers behind it: {unit.head}{points}"
    return f"<details><summary>{esc(title)}</summary>{table(title, head, rows)}</details>"


ALL = "all, in equal parts"
# More sources than this would be a wall; those that lose most are drawn.
MOST_ROWS = 12
# A guess that loses so many times more than all others is drawn at the edge of the axis.
FAR = 3.0
MARKS = {
    "own": "its own model at home",
    "average": "plain average of the models",
    "guess": "guessing, without a look at the row",
}


def picture(stand: Stand) -> str:
    """Draw the losses of the model, the own models, the average and guessing on each source."""
    data, p = stand.found, len(stand.sources)
    named = {"own": ("own",), "average": ("average",), "guess": GUESSES}
    rivals = {css: stand.rival(*names) for css, names in named.items()}
    marks = {css: rival["loss"] for css, rival in rivals.items() if rival is not None}
    # The scale ends beyond all that is drawn, unless a guess lies far away.
    near = [*data["loss"], *data["upper"]]
    near += [value for css, losses in marks.items() if css != "guess" for value in losses]
    end = max([value for value in near if value is not None and value > 0], default=1.0)
    far = max([end, *(value for value in marks.get("guess", []) if value is not None)])
    end = 1.04 * (far if far <= FAR * end else end)
    most = sorted(range(p), key=lambda k: -data["loss"][k])[:MOST_ROWS]
    rows = [_dot_row(stand, i, marks, end) for i in (p, *sorted(most))]
    items = {"ours": f"this model, with its {100 * data['confidence']:g}\u00a0% interval"}
    items |= {css: MARKS[css] for css in marks}
    legend = "".join(f'<li><i class="mark {css}"></i>{text}</li>' for css, text in items.items())
    hidden = p - len(most)
    note = remark(f"The {hidden} sources that lose least are not drawn.") * (hidden > 0)
    return (
        f'<div class="dots">{"".join(rows)}{_axis(stand, end)}</div>'
        f'<ul class="legend marks">{legend}</ul>{note}'
    )


def _dot_row(stand: Stand, i: int, marks: dict[str, list[float | None]], end: float) -> str:
    data, unit, digits = stand.found, stand.unit, stand.digits
    name = stand.sources[i] if i < len(stand.sources) else ALL
    low, high = data["lower"][i], data["upper"][i]
    drawn = ""
    if low is not None and high is not None:
        a, b = _at(low, end), _at(high, end)
        drawn = f'<i class="range" style="--at:{a:.2f}%;--size:{b - a:.2f}%"></i>'
    text = unit.said(data["loss"][i], digits)
    dots = {"ours": ("this model", data["loss"][i])}
    dots |= {css: (MARKS[css], losses[i]) for css, losses in marks.items()}
    for css, (what, value) in dots.items():
        if value is not None:
            beyond = " beyond" if value > end else ""
            title = esc(f"{what}: {unit.said(value, digits)}")
            place = f'style="--at:{_at(value, end):.2f}%"'
            drawn += f'<i class="mark {css}{beyond}" {place} title="{title}"></i>'
    least = number(None if low is None else unit.scale * low, digits)
    css = " whole" if i == len(stand.sources) else ""
    return (
        f'<span class="name{css}" title="{esc(name)}">{esc(name)}</span>'
        f'<span class="value{css}">{text}<small>{least} to {unit.said(high, digits)}</small></span>'
        f'<span class="track{css}">{drawn}</span>'
    )


def _at(value: float, end: float) -> float:
    return float(np.clip(100.0 * value / end, 0.0, 100.0))


def _axis(stand: Stand, end: float) -> str:
    """Number the scale in round steps, and name its unit."""
    steps, scale = np.array([1.0, 2.0, 2.5, 5.0, 10.0]), stand.unit.scale
    raw = scale * end / 4
    power = 10.0 ** np.floor(np.log10(raw))
    step = float(power * steps[np.searchsorted(steps, raw / power)])
    sign = "\u00a0%" * stand.unit.share
    texts = "".join(
        f'<b style="--at:{_at(t / scale, end):.2f}%">{t:.10g}{sign}</b>'
        for t in np.arange(0.0, scale * end, step)
    )
    head = f"{stand.unit.head}, less is better"
    return (
        f'<span class="axis" aria-hidden="true">{texts}</span><span class="unit">{esc(head)}</span>'
    )
