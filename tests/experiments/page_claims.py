"""The claims of a page, read back and asked of the records by arithmetic of their own.

Nothing here uses the code that wrote the page: a claim's form stands in a comment beside it, and
values come from the lines of the records.
"""

import json
import re
from collections import defaultdict

import numpy as np

WORD = {1: "better", 0: "level", -1: "worse"}
NUMBER = r"[+−]?[\d.]+(?:e[-+]?\d+)?(?: ± [\d.]+(?:e[-+]?\d+)?)?"


class Records:
    """Values of a study by row, table and column, in the order of the seeds."""

    def __init__(self, path):
        _, *rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        self.values = defaultdict(lambda: defaultdict(dict))
        self.starred, self.accuracy = set(), False
        for r in rows:
            row = (r["method"], r["protocol"])
            self.values[row][r["table"], r["target"]][r["seed"]] = r["value"]
            if r["privileged"]:
                self.starred.add(row)
            self.accuracy |= r["metric"].startswith("accuracy")

    def columns(self, row, where):
        names, _, table = (part.strip() for part in where.partition("@"))
        cells = self.values[row]
        if table:
            listed = [name.strip() for name in names.split(",")]
            return {c: v for (t, c), v in cells.items() if t == table and c in listed}
        if names == "points":
            return {f"{t.split()[-1]} {c}": v for (t, c), v in cells.items() if "Fig." in t}
        proper = {c: v for (t, c), v in cells.items() if t.startswith("Table")}
        if names == "mean":
            return {"mean": proper["mean"] if "mean" in proper else over_columns(proper)}
        del_mean = {c: v for c, v in proper.items() if c != "mean"}
        if names == "all":
            return del_mean
        return {c: del_mean[c] for c in (name.strip() for name in names.split(","))}

    def gains(self, method, rival, where):
        """Column -> (sign of the verdict, gain, standard error)."""
        ours = self.columns(method, where)
        if rival[0] == "0":
            theirs = {c: dict.fromkeys(v, 0.0) for c, v in ours.items()}
        else:
            theirs = self.columns(rival, where)
        turn = 1 if self.accuracy or rival[0] == "0" else -1
        return {c: standing(turn, ours[c], theirs[c]) for c in ours}

    def rivals(self, method, protocol):
        rows = [
            row
            for row, cells in self.values.items()
            if row[1] == protocol and any(t.startswith("Table") for t, _ in cells)
        ]
        return [row for row in rows if row != method]

    def title(self, row, beside):
        name = row[0] + "*" * (row in self.starred)
        return name if row[1] == beside[1] else f"{name} ({row[1]})"


def over_columns(proper):
    seeds = set.intersection(*(set(v) for v in proper.values()))
    return {s: float(np.mean([v[s] for v in proper.values()])) for s in seeds}


def standing(turn, ours, theirs):
    both = sorted(set(ours) & set(theirs))
    assert len(both) >= 3, "two seeds tell nothing"
    gap = turn * (np.array([ours[s] for s in both]) - np.array([theirs[s] for s in both]))
    error = gap.std(ddof=1) / np.sqrt(len(gap))
    sign = 0 if abs(gap.mean()) <= 2 * error else int(np.sign(gap.mean()))
    return sign, gap.mean(), error


def check_n_sources(text, gain, error):
    """The number is the gain, rounded so that its error has two digits."""
    said, _, spread = text.replace("−", "-").partition(" ± ")
    unit = 10.0 ** -len(said.partition(".")[2]) if "e" not in said else 1e-2 * abs(gain)
    assert abs(float(said) - gain) <= 0.501 * unit, f"{text} stands for {gain}"
    assert abs(float(spread or 0.0) - error) <= 0.501 * unit, f"{text} stands for ± {error}"


def names(text):
    return [name.strip() for name in text.split(",")] if text else []


def check_duels(form, lines, records):
    method, protocol, against = (part.strip() for part in form.split(";"))
    ours = (method, protocol)
    left = {records.title(row, ours): row for row in records.rivals(ours, against)}
    for line in lines:
        found = re.fullmatch(
            r"- (.+?): won (\d+)(?: \((.+?)\))?, level (\d+)(?: \((.+?)\))?, "
            r"lost (\d+)(?: \((.+?)\))? of (\d+) columns; (\w+) on the mean, "
            rf"({NUMBER})(?: \(on (\d+) of (\d+) seeds\))?\.",
            line,
        )
        assert found, f"no duel: {line}"
        rival = left.pop(found[1])
        gains = records.gains(ours, rival, "all")
        assert len(gains) == int(found[8]), line
        for sign, (count, listed) in zip((1, 0, -1), ((2, 3), (4, 5), (6, 7)), strict=True):
            columns = [c for c, gain in gains.items() if gain[0] == sign]
            assert len(columns) == int(found[count]), line
            assert not found[listed] or names(found[listed]) == columns, line
        sign, gain, error = records.gains(ours, rival, "mean")["mean"]
        assert found[9] == WORD[sign], line
        check_n_sources(found[10], gain, error)
    assert not left, f"{form} leaves out {list(left)}"


def check_holds(form, sentence, records):
    method, protocol, against, where = (part.strip() for part in form.split(";"))
    ours, n = (method, protocol), 0
    everywhere, not_so = [], []
    for row in records.rivals(ours, against):
        gains = records.gains(ours, row, where)
        n = len(gains)
        part = {s: [c for c, gain in gains.items() if gain[0] == s] for s in (0, -1)}
        title = records.title(row, ours)
        said = [
            f"{WORD[s]} on {'all' if len(c) == n else len(c) if len(c) > 4 else ', '.join(c)}"
            for s, c in part.items()
            if c
        ]
        (not_so.append(f"{title} ({'; '.join(said)})") if said else everywhere.append(title))
    head, _, tail = sentence.removesuffix(".").partition("; not so against ")
    start = f"{method} is better on all {n} "
    assert head.startswith(start), sentence
    whom = re.sub(r"^.*? than ", "", head[len(start) :])
    assert whom == (together(everywhere) or "none of the rows"), sentence
    assert tail == together(not_so), sentence


def together(items):
    return (
        items[0]
        if len(items) == 1
        else ", ".join(items[:-1]) + " and " * bool(items[1:]) + "".join(items[-1:])
    )


def check_claim(form, sentence, records):
    method, protocol, relation, rivals, against, where = (p.strip() for p in form.split(";"))
    ours = (method, protocol)
    found = {
        (rival.strip(), column): gain
        for rival in rivals.split("+")
        for column, gain in records.gains(ours, (rival.strip(), against), where).items()
    }
    assert found, form
    signs = {gain[0] for gain in found.values()}
    if relation == "?":
        said = re.findall(r"(better|worse|level|above|below)(?: than| with)? ", sentence)
        other = {"above": "better", "below": "worse"}
        assert [other.get(word, word) for word in said] == [
            WORD[gain[0]] for gain in found.values()
        ], sentence
        numbers = re.findall(rf": ({NUMBER})[;.](?=\s|$)", sentence + " ")
        for text, (_, gain, error) in zip(numbers, found.values(), strict=True):
            check_n_sources(text, gain, error)
        return
    allowed = {"better": {1}, "worse": {-1}, "level": {0}, "no worse": {0, 1}}[relation]
    assert signs <= allowed, f"{form}: {found}"
    words = {"better": "is better than", "worse": "is worse than", "level": "is level with"}
    assert words.get(relation, "is nowhere worse than") in sentence, sentence
    (text,) = re.findall(rf": ({NUMBER})(?= where|\.$)", sentence)
    least = min(found.values(), key=lambda gain: gain[1] * (-1 if relation == "worse" else 1))
    check_n_sources(text, *least[1:])


def check_section(text, records):
    """Check every claim of a section; return how many there are."""
    n = 0
    for found in re.finditer(r"<!-- (\w+): (.+?) -->", text):
        kind, form = found[1], found[2]
        n += 1
        if kind == "duels":
            body = text[found.end() :].lstrip("\n").split("\n")
            lines = []
            for line in body:
                if not line.startswith("- "):
                    break
                lines.append(line)
            check_duels(form, lines, records)
        else:
            sentence = text[: found.start()].rstrip().rpartition("\n")[2]
            # A bullet or a title may stand before it on its line.
            start = re.search(rf"{re.escape(form.partition(';')[0])}\*? is ", sentence)
            assert start, f"{form} stands beside {sentence!r}"
            sentence = sentence[start.start() :]
            {"holds": check_holds, "claim": check_claim}[kind](form, sentence, records)
    return n
