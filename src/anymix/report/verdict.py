"""The verdict: is the model better than what one would do without it, in words and one picture."""

from __future__ import annotations

from typing import Any

from anymix.report.dots import ALL, picture
from anymix.report.markup import cell, esc, number, prose, row, significant, table
from anymix.report.record import recorded
from anymix.report.standing import GUESSES, Stand, listed, standing
from anymix.report.units import unit_of

Data = dict[str, Any]
HEADS = {"own": "own model", "average": "plain average", "constant": "guessing", "chance": "chance"}
BLIND = ("chance", "a constant")
OTHERWISE = ("mixed", "deploy it for its labels; look at its probabilities first")
COUNTS = "also counts how sure it was"
# Below this share of wrong labels by always saying the commonest, labels alone are no measure.
RARE = 0.2
ALARM = ("bad", "do not rely on it for today’s traffic, which is no mixture of these sources")


def verdict(record: Data) -> str:
    """Say whether to deploy it, by how much it is better, and what would help most."""
    stands = _ordered([Stand(found, record["sources"]) for found in record.get("verdict") or []])
    if not stands:
        return ""
    lead = stands[0]
    css, title = _decision(record, stands)
    said = f"Measured by the {lead.unit.name}, it is {_joined(lead.phrases())}."
    tiles = [_average(lead), _own(lead), _guess(lead), _guarantee(record)]
    body = (
        f'<p class="headline">{prose(said)}{_otherwise(stands)}</p>'
        f'<div class="tiles">{"".join(tiles)}</div>{picture(lead)}'
        f'<p class="help"><strong>What would help most:</strong> {prose(lead.advice())}</p>'
        f'<p class="note">{prose(_how(record, lead))}</p>{"".join(map(_numbers, stands))}'
    )
    return (
        f'<section id="standing" class="{css}" aria-labelledby="standing-title">'
        f'<h2 id="standing-title">Verdict: {prose(title)}</h2>{body}</section>'
    )


def _ordered(stands: list[Stand]) -> list[Stand]:
    """Lead with wrong labels, unless one label is so common that they tell models hardly apart."""
    constant = stands[0].rival("constant") if stands and stands[0].unit.share else None
    return stands[::-1] if constant is not None and constant["loss"][-1] < RARE else stands


def _joined(phrases: list[str]) -> str:
    *first, last = phrases
    return f"{', '.join(first)}, and {last}" if first else last


def _decision(record: Data, stands: list[Stand]) -> tuple[str, str]:
    """Take what the first measure says, unless traffic or another measure speaks against it."""
    if record.get("traffic") is not None and record["traffic"]["alarm"]["rings"]:
        return ALARM
    found = stands[0].decision()
    others = [one.decision()[0] for one in stands[1:]]
    speaks = stands[0].unit.share and set(others) - {"good"}
    return OTHERWISE if found[0] == "good" and speaks else found


def _otherwise(stands: list[Stand]) -> str:
    """Say what another measure says, where there is one."""
    said = ""
    for other in stands[1:]:
        new = [phrase for phrase in other.phrases() if phrase not in stands[0].phrases()]
        which = "tells little as one label is rare" if other.unit.share else COUNTS
        told = f"it is {_joined(new)}" if new else "the same holds"
        said += prose(f" By {other.unit.name}, which {which}, {told}.")
    return said + _root(stands[-1])


def _root(stand: Stand) -> str:
    """Say what a squared error is in the unit that people think in."""
    loss = stand.found["loss"][-1]
    if stand.found["measure"] != "squared" or loss is None:
        return ""
    return prose(f" Its typical error, the root of it, is {significant(loss**0.5)} units.")


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
    told = {word: stand.where(word, "own") for word in ("better", "level", "worse")}
    there = [word for word, names in told.items() if names]
    word = there[0] if len(there) == 1 else "worse for some" if told["worse"] else "better or level"
    css = "bad" if told["worse"] else "good" if not told["level"] else "mixed"
    parts = [f"{one.capitalize()} at {listed(told[one])}." for one in there]
    gaps = rival["difference"][:-1]
    k = max(range(len(gaps)), key=gaps.__getitem__)
    how = "It falls short most at" if gaps[k] > 0 else "It gains least at"
    text = f"{' '.join(parts)} {how} {stand.sources[k]}: {_beside(stand, rival, k)}"
    return _tile("Than own models at home", word.capitalize(), text, css)


def _guess(stand: Stand) -> str:
    rival = stand.rival(*GUESSES)
    if rival is None:
        return ""
    weak, gaps = stand.not_above_guessing, rival["difference"][:-1]
    k = max(range(len(gaps)), key=gaps.__getitem__)
    where = f"No better at {listed(weak)}." if weak else "Better at every source."
    text = f"{where} Least so at {stand.sources[k]}: {_beside(stand, rival, k)}"
    word = "Not everywhere" if weak else "Better"
    return _tile("Than guessing", word, text, "bad" if weak else "good")


def _beside(stand: Stand, rival: Data, i: int) -> str:
    """Set both losses side by side, and say by how much they differ."""
    unit, digits, found = stand.unit, stand.digits, stand.found
    ours, theirs = (unit.said(one["loss"][i], digits) for one in (found, rival))
    wrong = " wrong" if unit.share else ""
    return f"{ours}{wrong} beside {theirs}{wrong}, {_by(stand, rival, i)}."


def _by(stand: Stand, rival: Data, i: int) -> str:
    unit, digits = stand.unit, stand.digits
    values = [rival[name][i] for name in ("difference", "lower", "upper")]
    word = standing(*values[1:])
    name = f"\u00a0{unit.gap_unit}" if unit.gap_unit else ""
    if word == "level":
        low, high = (unit.gap(value, digits) for value in values[1:])
        return f"a difference between {low} and {high}{name}"
    by, *ends = (None if v is None else abs(unit.scale * v) for v in values)
    near, far = (number(end, digits) for end in (ends[::-1] if word == "better" else ends))
    less = ("fewer" if unit.share else "less") if word == "better" else "more"
    return f"{number(by, digits)}{name} {less} ({near} to {far})"


def _guarantee(record: Data) -> str:
    """Say what the certificate promises on every mixture, and whether that is worth anything."""
    found = record.get("certificate")
    if found is None:
        return ""
    unit, upper = unit_of(found.get("loss") or record.get("loss")), found.get("loss_upper")
    title, confidence = "Guaranteed on every mixture", found.get("confidence")
    if upper is None or confidence is None:
        text = "No confidence is claimed: too few rows, or rows that have taught the model."
        return _tile(title, "Nothing yet", text, "mixed")
    digits = unit.digits([upper])
    clip = found.get("clip")
    cut = "" if clip is None else f", no row counted above {unit.said(clip, digits)}"
    blind = [one for one in found.get("beside") or [] if one["name"] in BLIND]
    text = f"Of {unit.name}, with {100 * confidence:g} % confidence{cut}."
    css = "good"
    if blind:
        alike = "" if clip is None else ", counted alike,"
        lost = unit.said(blind[0]["clipped"], digits)
        text += f" {blind[0]['name'].capitalize()}{alike} loses {lost}."
        css = "good" if upper < blind[0]["clipped"] else "bad"
    if css == "bad":
        text += " So it promises nothing that guessing does not."
    return _tile(title, f"At most {unit.said(upper, digits)}", text, css)


def _how(record: Data, stand: Stand) -> str:
    """Say on which rows it was judged, and how intervals are meant."""
    found, p = stand.found, len(stand.sources)
    each = listed([f"{n} {r:.0f}" for n, r in zip(stand.sources, found["rows"], strict=True)], 8)
    rows = f"{sum(found['rows']):,.0f} rows".replace(",", "\u202f")
    counted = f" ({each})" if p <= 8 else ""
    day = recorded(record, "verdict")
    kind = f"new rows{counted}." if day else f"held-out rows{counted}, each by what never saw it."
    if not found["fresh"]:
        kind = f"rows{counted} that have taught the model: the numbers are too kind to it."
    return (
        f"Judged on {rows.removesuffix(' rows')} {kind}{day} Differences are of the same rows; "
        f"intervals have {100 * found['confidence']:g} % confidence, those of the {p} sources "
        "together. Level: the interval of the difference holds zero. Guessing: "
        f"{stand.guess}."
    )


def _numbers(stand: Stand) -> str:
    """Lay out all that the words rest on, folded away."""
    found, unit, digits = stand.found, stand.unit, stand.digits
    head = ["Where", "this model"]
    for rival in found["rivals"]:
        head += [HEADS.get(rival["name"], esc(rival["name"])), "difference"]
    rows = []
    for i, name in enumerate([*stand.sources, ALL]):
        cells = [_with_interval(unit.text(found["loss"][i], digits), stand, found, i, "ours")]
        for rival in found["rivals"]:
            css = COLOURS[standing(rival["lower"][i], rival["upper"][i])]
            gap = unit.gap(rival["difference"][i], digits)
            cells.append(cell(unit.text(rival["loss"][i], digits)))
            cells.append(_with_interval(gap, stand, rival, i, css))
        rows.append(row(name, cells))
    points = ", differences in points" if unit.share else ""
    title = f"The numbers behind it: {unit.head}{points}"
    return f"<details><summary>{esc(title)}</summary>{table(title, head, rows)}</details>"


def _with_interval(text: str, stand: Stand, found: Data, i: int, css: str) -> str:
    ends = (found["lower"][i], found["upper"][i])
    write = stand.unit.text if css == "ours" else stand.unit.gap
    low, high = (write(end, stand.digits) for end in ends)
    return cell(text, note=f"{low} to {high}", css=css)
