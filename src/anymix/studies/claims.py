"""The paper's claims, counted on records: on how many columns is one method below others?"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import NamedTuple

from anymix.studies.runner import Result

Column = tuple[str, str]


class Duel(NamedTuple):
    """How a method stands against one rival, by means over seeds; lost columns by table."""

    rival: str
    n_columns: int
    lost: list[Column]
    difference: float

    @property
    def sentence(self) -> str:
        """Say it in words, the mean difference in favour of the method as a positive number."""
        won = self.n_columns - len(self.lost)
        names = ", ".join(dict.fromkeys(column for _, column in self.lost))
        lost = f" (not on {names})" if names else ""
        return (
            f"{self.rival}: better on {won} of {self.n_columns} columns{lost}, "
            f"by {self.difference:+.3f} on the mean"
        )


def column_means(results: Sequence[Result], method: str, protocol: str) -> dict[Column, float]:
    """Return the mean over seeds for each column of each table proper, figures left out."""
    cells: dict[Column, list[float]] = {}
    for r in results:
        if (r.method, r.protocol) == (method, protocol) and r.table.startswith("Table"):
            cells.setdefault((r.table, r.target), []).append(r.value)
    if not cells:
        raise ValueError(f"No record of {method!r} under {protocol!r}; check both names.")
    return {column: mean(values) for column, values in cells.items()}


def duels(
    results: Sequence[Result],
    method: tuple[str, str],
    rivals: Sequence[tuple[str, str]],
    larger_is_better: bool = False,
) -> list[Duel]:
    """Compare (method, protocol) with each rival (method, protocol), column by column.

    Examples
    --------
    >>> def cell(method, target, value):
    ...     return Result("s", "Table 1", "clean", method, target, "MSE", 0, value)
    >>> cells = [cell("DW", "K", 1.0), cell("unif", "K", 1.5), cell("DW", "D", 2.0),
    ...          cell("unif", "D", 1.9)]
    >>> duels(cells, ("DW", "clean"), [("unif", "clean")])[0].sentence
    'unif: better on 1 of 2 columns (not on D), by +0.200 on the mean'
    """
    ours = column_means(results, *method)
    sign = 1.0 if larger_is_better else -1.0
    answer = []
    for rival in rivals:
        theirs = column_means(results, *rival)
        gain = {column: sign * (ours[column] - theirs[column]) for column in ours}
        lost = [column for column, value in gain.items() if value <= 0]
        name = rival[0] if rival[1] == method[1] else f"{rival[0]} ({rival[1]})"
        answer.append(Duel(name, len(ours), lost, mean(gain.values())))
    return answer
