"""Who is ahead of whom, on records: paired differences over seeds, column by column.

A gain is the mean over seeds of method less rival, its sign turned so that a positive one favours
the method.  Its standard error is that of the paired differences, s/√n.  A gain within two standard
errors is level; only beyond them a column is won or lost.  A column that two tables share counts
once, and a table's own "mean" is not counted among its columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import floor, log10
from statistics import mean, stdev
from typing import NamedTuple

from experiments.runner import Result

# Within so many standard errors two methods are level.
LEVEL = 2.0
# Two differences have a standard error, but it says next to nothing.
FEWEST = 3
STANDINGS = {"won": "above", "level": "level", "lost": "below"}
RELATIONS = {"above": "better", "level": "level", "below": "worse"}
# The rival of a column that is itself a difference.
ZERO = ("0", "")

Row = tuple[str, str]
Cells = dict[str, dict[int, float]]


class Paired(NamedTuple):
    """A mean difference and its standard error."""

    difference: float
    error: float

    @property
    def verdict(self) -> str:
        """In one word.

        >>> [Paired(d, 0.1).verdict for d in (-0.3, 0.1, 0.3)]
        ['below', 'level', 'above']
        """
        if abs(self.difference) <= LEVEL * self.error:
            return "level"
        return "below" if self.difference < 0 else "above"


def signed(found: Paired) -> str:
    """Write a difference and its standard error, which has two digits.

    >>> signed(Paired(-0.01234, 0.0023)), signed(Paired(1.5, 12.3)), signed(Paired(0.0, 0.0))
    ('−0.0123 ± 0.0023', '+2 ± 12', '0')
    """
    difference, error = found
    if error == 0:
        return f"{difference:+.3g}".replace("-", "−") if difference else "0"
    digits = max(0, 1 - floor(log10(error)))
    return f"{difference:+.{digits}f} ± {error:.{digits}f}".replace("-", "−")


class Duel(NamedTuple):
    """How a method stands against one rival: its gain on each column, and on the mean."""

    rival: str
    gains: dict[str, Paired]
    mean: Paired
    fewer: str = ""

    def on(self, standing: str) -> list[str]:
        """Return the columns where the gain is "above" zero, "level" or "below"."""
        return [column for column, gain in self.gains.items() if gain.verdict == standing]

    @property
    def sentence(self) -> str:
        """Count the columns won, level and lost, name all but the most, and give the mean gain."""
        groups = {word: self.on(verdict) for word, verdict in STANDINGS.items()}
        most = max(groups.values(), key=len)
        counts = [
            f"{word} {len(columns)}"
            + (f" ({', '.join(columns)})" if columns and columns is not most else "")
            for word, columns in groups.items()
        ]
        return (
            f"{self.rival}: {', '.join(counts)} of {len(self.gains)} columns; "
            f"{RELATIONS[self.mean.verdict]} on the mean, {signed(self.mean)}{self.fewer}"
        )


def larger_is_better(results: Sequence[Result]) -> bool:
    """Whether the values are accuracies, and not losses."""
    return any(r.metric.startswith("accuracy") for r in results)


def cells(results: Sequence[Result], row: Row, where: str = "all") -> Cells:
    """Return the values of a row by column and seed.

    `where` is "all", the columns of the tables proper; "mean", their mean; "points", those of the
    figures; names of columns with commas; or "NAMES @ TABLE" in any other table.
    """
    names, _, table = (part.strip() for part in where.partition("@"))
    found: Cells = {}
    for r in results:
        if (r.method, r.protocol) != row or not _within(r, names, table):
            continue
        column = f"{r.table.split()[-1]} {r.target}" if names == "points" else r.target
        before = found.setdefault(column, {}).setdefault(r.seed, r.value)
        if abs(before - r.value) > 1e-9 * abs(before):
            raise ValueError(f"Two tables differ on {column} of {row}; run the study again.")
    if not found:
        raise ValueError(f"No record of {row} on {where!r}; check the names.")
    if names not in ("all", "mean", "points") and set(_listed(names)) != set(found):
        raise ValueError(f"{row} has the columns {[*found]} and not all of {names}; check them.")
    return found if names != "mean" or set(found) == {"mean"} else {"mean": _mean(found)}


def _within(r: Result, names: str, table: str) -> bool:
    if table or names == "points":
        here = r.table == table if table else r.table.startswith("Fig.")
        return here and (names == "points" or r.target in _listed(names))
    if not r.table.startswith("Table"):
        return False
    if names == "mean":
        # A table of recognition has its mean; of the reviews' tables it is over all columns.
        return r.target == "mean" or not larger_is_better([r])
    return r.target != "mean" if names == "all" else r.target in _listed(names)


def _listed(names: str) -> list[str]:
    return [name.strip() for name in names.split(",")]


def _mean(found: Cells) -> dict[int, float]:
    seeds = set.intersection(*(set(values) for values in found.values()))
    return {seed: mean(values[seed] for values in found.values()) for seed in sorted(seeds)}


def gains(
    results: Sequence[Result], method: Row, rival: Row, where: str = "all"
) -> dict[str, Paired]:
    """Return for each column by how much a method is better than a rival, paired over seeds."""
    ours = cells(results, method, where)
    theirs = (
        {c: dict.fromkeys(v, 0.0) for c, v in ours.items()}
        if rival == ZERO
        else cells(results, rival, where)
    )
    sign = 1.0 if larger_is_better(results) else -1.0
    return {c: _paired(sign, ours[c], theirs[c]) for c in ours if c in theirs}


def _paired(sign: float, ours: dict[int, float], theirs: dict[int, float]) -> Paired:
    gaps = [sign * (ours[seed] - theirs[seed]) for seed in ours if seed in theirs]
    if len(gaps) < FEWEST:
        raise ValueError(f"A verdict needs {FEWEST} seeds that both methods have; run more.")
    return Paired(mean(gaps), stdev(gaps) / len(gaps) ** 0.5)


def title(results: Iterable[Result], row: Row, beside: Row | None = None) -> str:
    """Return the name of a row, with a star if privileged, and its protocol if it is another."""
    star = any(r.privileged for r in results if (r.method, r.protocol) == row)
    name = row[0] + ("*" if star else "")
    return name if beside is None or row[1] == beside[1] else f"{name} ({row[1]})"


def duels(results: Sequence[Result], method: Row, rivals: Sequence[Row]) -> list[Duel]:
    """Compare (method, protocol) with each rival (method, protocol), column by column.

    Examples
    --------
    >>> def cell(method, target, seed, value):
    ...     return Result("s", "Table 1", "clean", method, target, "MSE", seed, value)
    >>> values = {("DW", "K"): (1.0, 1.1, 1.0), ("unif", "K"): (1.5, 1.7, 1.6),
    ...           ("DW", "D"): (2.0, 2.1, 2.0), ("unif", "D"): (2.1, 2.0, 2.0)}
    >>> records = [cell(*at, i, v) for at, seeds in values.items() for i, v in enumerate(seeds)]
    >>> duels(records, ("DW", "clean"), [("unif", "clean")])[0].sentence
    'unif: won 1, level 1 (D), lost 0 of 2 columns; better on the mean, +0.283 ± 0.017'
    """
    return [
        Duel(
            title(results, rival, method),
            gains(results, method, rival),
            gains(results, method, rival, "mean")["mean"],
            _fewer(results, method, rival),
        )
        for rival in rivals
    ]


def _fewer(results: Sequence[Result], method: Row, rival: Row) -> str:
    """Say so where a rival was run on fewer seeds."""
    ours, theirs = (
        {r.seed for r in results if (r.method, r.protocol) == row} for row in (method, rival)
    )
    return "" if ours <= theirs else f" (on {len(ours & theirs)} of {len(ours)} seeds)"


def others(results: Sequence[Result], method: Row, protocol: str) -> list[Row]:
    """Return all rows of the tables proper under a protocol, but for the method itself."""
    rows = dict.fromkeys(
        (r.method, r.protocol)
        for r in results
        if r.protocol == protocol and r.table.startswith("Table")
    )
    return [row for row in rows if row != method]
