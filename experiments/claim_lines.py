"""Sentences that compare methods, made from records: the words of a claim are those it has earned.

    duels METHOD; PROTOCOL [; PROTOCOL OF THE RIVALS]          a line for each rival
    holds METHOD; PROTOCOL [; PROTOCOL OF THE RIVALS [; WHERE]]
                                                whom it is better than on all columns, whom not
    claim METHOD; PROTOCOL; RELATION; RIVAL [+ RIVAL ...]; PROTOCOL; WHERE
                                                refused unless each gain has that relation
    value METHOD; PROTOCOL; WHERE               the mean over seeds
    near METHOD [+ METHOD ...]; PROTOCOL        cells within the paper's standard deviation

RELATION is better, worse, level, "no worse", or "?" for whatever holds; WHERE is as in
`experiments.claims.cells`.  The rival 0 is the number.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import NamedTuple

from experiments.claims import (
    RELATIONS,
    ZERO,
    Paired,
    Row,
    cells,
    duels,
    gains,
    others,
    signed,
    title,
)
from experiments.runner import Result
from experiments.tables import number

ALLOWED = {
    "better": {"above"},
    "worse": {"below"},
    "level": {"level"},
    "no worse": {"above", "level"},
}
# More columns than these are counted and not named; the duels name them.
FEW = 4
THAN = {"better": "better than", "worse": "worse than", "level": "level with"}


class Claim(NamedTuple):
    """A method, its relation to rivals, and where."""

    method: Row
    relation: str
    rivals: list[Row]
    where: str

    def gains(self, results: Sequence[Result]) -> dict[tuple[Row, str], Paired]:
        """Return the gain against each rival on each column."""
        return {
            (rival, column): gain
            for rival in self.rivals
            for column, gain in gains(results, self.method, rival, self.where).items()
        }


def read_claim(text: str) -> Claim:
    """Read the six parts of a claim.

    >>> read_claim("DW; clean; better; K + unif; clean; mean").rivals
    [('K', 'clean'), ('unif', 'clean')]
    """
    parts = [part.strip() for part in text.split(";")]
    if len(parts) != 6 or parts[2] not in (*ALLOWED, "?"):
        raise ValueError(
            f"{text!r} is no claim; write METHOD; PROTOCOL; RELATION; RIVALS; PROTOCOL; WHERE."
        )
    method, protocol, relation, rivals, against, where = parts
    return Claim(
        (method, protocol), relation, [(r.strip(), against) for r in rivals.split("+")], where
    )


def say_claim(results: Sequence[Result], text: str) -> str:
    """Say a claim, or refuse it.

    Examples
    --------
    >>> def cell(method, seed, value):
    ...     return Result("s", "Table 1", "clean", method, "K", "MSE", seed, value)
    >>> values = {"DW": (1.0, 1.2, 1.1), "unif": (1.5, 1.6, 1.5)}
    >>> records = [cell(m, s, v) for m, series in values.items() for s, v in enumerate(series)]
    >>> print(say_claim(records, "DW; clean; ?; unif; clean; mean"))
    DW is better than unif on the mean: +0.433 ± 0.033. <!-- claim: DW; clean; ?; unif; ... -->
    >>> say_claim(records, "DW; clean; level; unif; clean; mean")
    Traceback (most recent call last):
    ValueError: The records do not bear 'DW; clean; level; unif; clean; mean': unif, mean: ...
    """
    claim = read_claim(text)
    found = claim.gains(results)
    if claim.relation == "?":
        return f"{_whatever(results, claim, found)} <!-- claim: {text} -->"
    against = [
        f"{rival[0]}, {column}: {signed(gain)} is {RELATIONS[gain.verdict]}"
        for (rival, column), gain in found.items()
        if gain.verdict not in ALLOWED[claim.relation]
    ]
    if against:
        raise ValueError(f"The records do not bear {text!r}: {'; '.join(against)}; change it.")
    names = listed([title(results, rival, claim.method) for rival in claim.rivals])
    than = THAN.get(claim.relation, "nowhere worse than")
    sentence = f"{title(results, claim.method)} is {than} {names} {_place(claim, found)}"
    return f"{sentence}: {_numbers(claim, found)}. <!-- claim: {text} -->"


def _whatever(results: Sequence[Result], claim: Claim, found: dict[tuple[Row, str], Paired]) -> str:
    """Say for each rival and column what holds."""
    said = []
    for (rival, column), gain in found.items():
        at = "on the mean" if column == "mean" else f"on {column}"
        if rival == ZERO:
            raw = Paired(-gain.difference, gain.error)
            word = {"level": "level with"}.get(raw.verdict, raw.verdict)
            said.append(f"{word} zero {at}: {signed(raw)}")
        else:
            than = THAN[RELATIONS[gain.verdict]]
            said.append(f"{than} {title(results, rival, claim.method)} {at}: {signed(gain)}")
    return f"{title(results, claim.method)} is {'; '.join(said)}."


def _place(claim: Claim, found: dict[tuple[Row, str], Paired]) -> str:
    n = len({column for _, column in found})
    names, _, table = (part.strip() for part in claim.where.partition("@"))
    words = {"all": f"on all {n} columns", "mean": "on the mean", "points": f"at all {n} points"}
    return words.get(names, f"on {names}") + (f" of {table}" if table else "")


def _numbers(claim: Claim, found: dict[tuple[Row, str], Paired]) -> str:
    """The one gain, or the least of several in the direction of the claim."""
    if len(found) == 1:
        return signed(*found.values())
    turn = -1 if claim.relation == "worse" else 1
    (rival, column), gain = min(found.items(), key=lambda item: turn * item[1].difference)
    return f"{signed(gain)} where it is closest, {rival[0]} on {column}"


def say_holds(results: Sequence[Result], text: str) -> str:
    """Say whom a method is better than on all columns, whom not, and where."""
    method, protocol, *more = (part.strip() for part in text.split(";"))
    against, where = [*more, *[protocol, "all"][len(more) :]]
    ours = (method, protocol)
    everywhere, not_so, n = [], [], 0
    for rival in others(results, ours, against):
        found = gains(results, ours, rival, where)
        name, n = title(results, rival, ours), len(found)
        parts = [
            f"{word} on {_few(columns, n)}"
            for word, verdict in (("level", "level"), ("worse", "below"))
            if (columns := [c for c, gain in found.items() if gain.verdict == verdict])
        ]
        if parts:
            not_so.append(f"{name} ({'; '.join(parts)})")
        else:
            everywhere.append(name)
    place = f"all {n} {'points of the figures' if where == 'points' else 'columns'}"
    yes = f"on {place} than {listed(everywhere) or 'none of the rows'}"
    no = f"; not so against {listed(not_so)}" if not_so else ""
    return (
        f"{method} is better {yes}{no}. <!-- holds: {ours[0]}; {protocol}; {against}; {where} -->"
    )


def _few(columns: Sequence[str], n: int) -> str:
    """Name a few columns, count many."""
    return (
        "all"
        if len(columns) == n
        else str(len(columns))
        if len(columns) > FEW
        else ", ".join(columns)
    )


def say_duels(results: Sequence[Result], text: str) -> str:
    """Compare a method with all rows of its or another protocol, a line for each."""
    method, protocol, *other = (part.strip() for part in text.split(";"))
    ours, against = (method, protocol), other[0] if other else protocol
    found = duels(results, ours, others(results, ours, against))
    lines = [f"- {duel.sentence}." for duel in found]
    return "\n".join([f"<!-- duels: {method}; {protocol}; {against} -->", "", *lines])


def say_value(results: Sequence[Result], text: str) -> str:
    """Write the mean over seeds of one cell."""
    method, protocol, where = (part.strip() for part in text.split(";"))
    (values,) = cells(results, (method, protocol), where).values()
    return number(mean(values.values()))


def say_near(results: Sequence[Result], text: str) -> str:
    """Count the cells within one of the paper's standard deviations; shared columns count once."""
    methods, protocol = (part.strip() for part in text.split(";"))
    close = {}
    for row in [(m.strip(), protocol) for m in methods.split("+")]:
        paper = {
            r.target: (r.paper, r.paper_sd)
            for r in results
            if (r.method, r.protocol) == row and r.paper is not None and r.paper_sd is not None
        }
        for column, values in cells(results, row).items():
            if column in paper:
                centre, sd = paper[column]
                close[row, column] = abs(mean(values.values()) - centre) <= sd
    return f"{sum(close.values())} of {len(close)}"


def listed(names: Sequence[str]) -> str:
    """Write names with commas and one "and".

    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return " and ".join([*([", ".join(names[:-1])] if names[:-1] else []), *names[-1:]])


SAY = {
    "duels": say_duels,
    "holds": say_holds,
    "claim": say_claim,
    "value": say_value,
    "near": say_near,
}
